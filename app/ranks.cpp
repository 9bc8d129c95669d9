// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/ranks.h"

#include "app/cancel.h"
#include "app/command.h"
#include "app/rankguard.h"
#include "app/terminal.h"

#include "core/base/diagnostic.h"
#include "executor/mpi/processes.h"
#include "executor/mpi/ranksecret.h"
#include "executor/mpi/socketmesh.h"
#ifdef PIPEWRIGHT_HAS_MPI
#include "executor/mpi/mpimesh.h"
#endif

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <iterator>
#include <optional>
#include <poll.h>
#include <string_view>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace pipewright::app {

namespace {

constexpr const char* installHint =
    "install libopenmpi-dev and openmpi-bin and build again, or start the processes with torchrun or srun";

constexpr const char* verdictVariable = "PIPEWRIGHT_VERDICT";

/// The whole content of a file that waits for an exit code. So the variable cannot be used to write to other files.
constexpr std::string_view verdictAwaited = "the exit code of pipewright:\n";

const char* environment(const char* name)
{
    return std::getenv(name);
}

std::string launcher()
{
    const char* path = std::getenv("PATH");
    return findLauncher(path ? path : "");
}

/// This process's command line, with the program's full path.
std::vector<std::string> ownCommand()
{
    std::ifstream file("/proc/self/cmdline", std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    std::vector<std::string> words;
    for (std::size_t begin = 0; begin < text.size(); begin = text.find('\0', begin) + 1)
        words.emplace_back(text.c_str() + begin);
    char self[4096] = {};
    if (!words.empty() && readlink("/proc/self/exe", self, sizeof self - 1) > 0)
        words.front() = self;
    return words;
}

/// Forwards a piece of the ranks' standard output; false when there is none at present or the output has ended.
bool handOn(int output)
{
    char text[1 << 16];
    const ssize_t length = read(output, text, sizeof text);
    if (length > 0)
        handOnText(stdout, {text, static_cast<std::size_t>(length)});
    return length > 0;
}

/// The place where a rank leaves the exit code: a file in memory that only the launcher holds open, so it vanishes with
/// the launcher. It is needed because mpirun lets surviving ranks finish and then always returns success.
class Verdict {
public:
    Verdict() : m_file(memfd_create("pipewright-verdict", MFD_CLOEXEC))
    {
        if (m_file < 0 || write(m_file, verdictAwaited.data(), verdictAwaited.size()) != ssize_t(verdictAwaited.size()))
            throw Error("--backend", std::string("no memory for the exit code: ") + std::strerror(errno),
                        "free some memory");
        setenv(verdictVariable, ("/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(m_file)).c_str(), 1);
    }
    ~Verdict() { close(m_file); }
    Verdict(const Verdict&) = delete;
    Verdict& operator=(const Verdict&) = delete;

    /// Whether any process that called holdVerdict() is alive.
    bool hasRank() const
    {
        struct flock lock {};
        lock.l_type = F_WRLCK;
        lock.l_whence = SEEK_SET;
        return fcntl(m_file, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
    }

    std::optional<int> code() const
    {
        char text[16] = {};
        const ssize_t length = pread(m_file, text, sizeof text - 1, verdictAwaited.size());
        return length > 0 ? std::optional(std::atoi(text)) : std::nullopt;
    }

private:
    int m_file;
};

/// Forwards signals to the process that runs the ranks, and the ranks' output to this process's output, until that
/// process ends. The output passes through here because mpirun does not report that it could not write. mpirun waits
/// for ever for a rank that hangs, and, where memory is short, for ranks that never began. It gets SIGTERM ten seconds
/// after the exit code is known, or when no rank has been alive for `deadline` and ten seconds. Then the guard's
/// patience lets it end in order, and SIGKILL follows.
void attend(pid_t child, int output, int arrivedSignals, const Verdict& verdict, Nanoseconds deadline)
{
    pollfd sources[] = {{arrivedSignals, POLLIN, 0}, {output, POLLIN, 0}};
    const auto secondsSince = [](std::chrono::steady_clock::time_point begin) {
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    };
    auto lastRank = std::chrono::steady_clock::now();
    std::optional<std::chrono::steady_clock::time_point> over, told;
    for (bool ended = false; !ended;) {
        if (verdict.hasRank())
            lastRank = std::chrono::steady_clock::now();
        if (!over && verdict.code())
            over = std::chrono::steady_clock::now();
        if (!told
            && ((over && secondsSince(*over) > 10)
                || secondsSince(lastRank) > 10 + static_cast<double>(deadline) / 1e9)) {
            told = std::chrono::steady_clock::now();
            kill(child, SIGTERM);
        }
        if (told && secondsSince(*told) > 20)
            kill(child, SIGKILL); // the guard itself hangs; mpirun and its ranks end with it
        if (poll(sources, 2, 500) <= 0)
            continue; // interrupted, or time to check for the exit code
        signalfd_siginfo signal{};
        if ((sources[0].revents & POLLIN) && read(sources[0].fd, &signal, sizeof signal) == sizeof signal) {
            ended = signal.ssi_signo == SIGCHLD;
            if (!ended)
                kill(child, static_cast<int>(signal.ssi_signo));
        }
        if (sources[1].revents != 0 && !handOn(output))
            sources[1].fd = -1;
    }
}

/// A folder that is removed with this object, in the first of `bases` where one can be made.
class RanksFolder {
public:
    explicit RanksFolder(const std::vector<std::string>& bases)
    {
        for (const std::string& base : bases) {
            m_path = base + "/pipewright-ranks-XXXXXX";
            if (mkdtemp(m_path.data()) != nullptr)
                return;
        }
        throw Error(m_path, std::string("no folder for the ranks could be made: ") + std::strerror(errno),
                    "let TMPDIR name a folder that can be written to");
    }
    /// The guard has already removed it, unless the guard was killed.
    ~RanksFolder()
    {
        std::error_code ignored;
        std::filesystem::remove_all(m_path, ignored);
    }
    RanksFolder(const RanksFolder&) = delete;
    RanksFolder& operator=(const RanksFolder&) = delete;

    const std::string& path() const { return m_path; }

private:
    std::string m_path;
};

/// Folders for the files and the shared memory of mpirun and the ranks, which these leave behind when they are killed.
/// They are removed with this object, and by the guard.
class RanksFolders {
public:
    RanksFolders() : m_files({temporary()}), m_shared({"/dev/shm", temporary()})
    {
        setenv("TMPDIR", m_files.path().c_str(), 1);
        // The transport between ranks of one machine is called vader in Open MPI 4 and sm in later versions. A folder
        // that the user has chosen stays.
        for (const char* name : {"OMPI_MCA_btl_vader_backing_directory", "OMPI_MCA_btl_sm_backing_directory"})
            setenv(name, m_shared.path().c_str(), 0);
    }

    std::vector<std::string> paths() const { return {m_files.path(), m_shared.path()}; }

private:
    static std::string temporary()
    {
        const char* const base = environment("TMPDIR");
        return base && *base ? base : "/tmp";
    }

    RanksFolder m_files, m_shared;
};

/// If mpirun cannot open the pipes of a process that it starts, it waits for ever and ignores SIGTERM.
void requireFiles(const std::string& program, int processes)
{
    const rlim_t needed = 64 + 8 * static_cast<rlim_t>(processes);
    rlimit files{};
    getrlimit(RLIMIT_NOFILE, &files);
    if (files.rlim_cur >= needed)
        return;
    files.rlim_cur = std::min(needed, files.rlim_max);
    if (setrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur < needed)
        throw Error(program,
                    fmt::format("needs some {} open files to start {} processes, and {} are allowed", needed, processes,
                                files.rlim_cur),
                    fmt::format("allow more: ulimit -n {}", std::max<rlim_t>(1024, needed)));
}

[[noreturn]] void launch(int devices, Nanoseconds deadline)
{
    if (const std::string why = whyNoRanks(); !why.empty())
        throw Error("--backend", why, installHint);
    const std::string program = launcher();
    requireFiles(program, devices);
    const Verdict verdict;
    sigset_t signals;
    sigemptyset(&signals);
    for (const int signal : {SIGINT, SIGTERM, SIGCHLD})
        sigaddset(&signals, signal);
    sigprocmask(SIG_BLOCK, &signals, nullptr);
    int output[2] = {-1, -1};
    const int arrivedSignals = signalfd(-1, &signals, SFD_CLOEXEC);
    if (arrivedSignals < 0 || pipe2(output, O_CLOEXEC | O_NONBLOCK) != 0 || fcntl(output[1], F_SETFL, 0) != 0)
        throw Error(program, std::strerror(errno), "close some files");
    const int status = [&] {
        const RanksFolders folders;
        const pid_t child = startGuarded(program, launchCommand(program, devices, ownCommand(), geteuid() == 0),
                                         output[1], folders.paths());
        if (child > 0) {
            close(output[1]);
            attend(child, output[0], arrivedSignals, verdict, deadline);
        }
        int ended = 0;
        if (child < 0 || waitpid(child, &ended, 0) < 0)
            throw Error(program, std::strerror(errno), "start the processes yourself: mpirun -n N pipewright run …");
        return ended;
    }();
    while (handOn(output[0])) {
    }
    const std::optional<int> code = verdict.code();
    if (!code)
        printDiagnostics(
            {{Severity::Error, "ranks",
              std::string("no rank said how the run ended: ") + program
                  + (WIFSIGNALED(status) ? std::string(" was ended by signal ") + strsignal(WTERMSIG(status))
                                         : " ended with code " + std::to_string(WEXITSTATUS(status))),
              "look at what it and its processes said before; the trace has the steps that are over"}});
    endProcess(code.value_or(exitBadInput));
}

/// The launcher's verdict in a rank, to read and to write at the end; -1 where there is none. `content`: what it says.
int openVerdict(std::string& content)
{
    const char* path = std::getenv(verdictVariable);
    if (!path || ownRank().launcher != RankEnvironment::Launcher::Mpi || !std::string_view(path).starts_with("/proc/"))
        return -1;
    const int file = open(path, O_RDWR | O_APPEND | O_NONBLOCK | O_CLOEXEC);
    if (file < 0)
        return -1;
    content.resize(verdictAwaited.size() + 1);
    const ssize_t length = read(file, content.data(), content.size());
    content.resize(static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
    struct stat status {};
    if (fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid()
        && content.starts_with(verdictAwaited))
        return file;
    close(file);
    return -1;
}

#ifdef PIPEWRIGHT_HAS_MPI
/// Called when not all processes can come any more, for example because one has ended.
void giveUpStart(const std::string& why)
{
    printDiagnostics({{Severity::Error, "ranks", why, "look at what the other processes said"}});
    leaveVerdict(exitBadInput, FromRank::Any);
    _exit(exitBadInput);
}
#endif

} // namespace

RankEnvironment ownRank()
{
    return rankEnvironment(environment);
}

void holdVerdict()
{
    std::string content;
    const int file = openVerdict(content); // stays open: the lock ends with the process
    struct flock lock {};
    lock.l_type = F_RDLCK;
    lock.l_whence = SEEK_SET;
    if (file >= 0)
        fcntl(file, F_OFD_SETLK, &lock); // if this fails, the launcher does not wait beyond its patience
}

void leaveVerdict(int exitCode, FromRank from)
{
    if (from == FromRank::First && ownRank().rank != 0)
        return;
    std::string content;
    const int file = openVerdict(content);
    if (file < 0)
        return;
    if (content == verdictAwaited) {
        const std::string code = std::to_string(exitCode) + "\n";
        (void)!write(file, code.data(), code.size()); // if this fails, the launcher reports a failure
    }
    close(file);
}

std::string whyNoRanks()
{
#ifdef PIPEWRIGHT_HAS_MPI
    return launcher().empty() ? "mpirun was not found in PATH" : std::string();
#else
    return "this build has no MPI (libopenmpi-dev was not found, or PIPEWRIGHT_MPI is off)";
#endif
}

std::string ranksDescription()
{
#ifdef PIPEWRIGHT_HAS_MPI
    return mpiVersion() + ", started with " + launcher();
#else
    return {};
#endif
}

std::function<std::unique_ptr<Backend>(int devices)>
rankBackendOrLaunch(const RankEnvironment& ranks, int devices, Nanoseconds deadline, const RankCreator& create)
{
    if (ranks.launcher == RankEnvironment::Launcher::None)
        launch(devices, deadline);
    if (ranks.launcher == RankEnvironment::Launcher::Mpi)
        endWithParent(SIGKILL, getppid());
    return [ranks, deadline, create](int) {
        if (ranks.launcher == RankEnvironment::Launcher::Sockets)
            return create(
                connectSocketMesh(ranks.rank, ranks.size, ranks.address, ranks.port, rankSecret(environment), deadline),
                deadline);
#ifdef PIPEWRIGHT_HAS_MPI
        return create(createMpiMesh(deadline, cancelOnSignals(), giveUpStart), deadline);
#else
        throw Error("--backend", whyNoRanks(), installHint);
#endif
    };
}

} // namespace pipewright::app
