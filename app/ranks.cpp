// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/ranks.h"

#include "app/terminal.h"

#include "core/base/diagnostic.h"
#include "executor/mpi/socketmesh.h"
#ifdef PIPEWRIGHT_HAS_MPI
#include "executor/mpi/mpimesh.h"
#endif

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <poll.h>
#include <string_view>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace pipewright::app {

namespace {

constexpr const char* installHint =
    "install libopenmpi-dev and openmpi-bin and build again, or start the processes with torchrun or srun";

constexpr const char* verdictVariable = "PIPEWRIGHT_VERDICT";

/// All that a file waiting for an exit code holds: the variable can make no other file be written to.
constexpr std::string_view verdictAwaited = "the exit code of pipewright:\n";

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

/// One piece of the ranks' standard output; false: there is none now, or none any more.
bool handOn(int output)
{
    char text[1 << 16];
    const ssize_t length = read(output, text, sizeof text);
    if (length > 0)
        handOnText(stdout, {text, static_cast<std::size_t>(length)});
    return length > 0;
}

/// Hands signals on to the launcher of the ranks, and their output to this process's, until it ends. The output comes
/// through here because mpirun does not say when it could not be written.
void attend(pid_t child, int output, int arrivedSignals)
{
    pollfd sources[] = {{arrivedSignals, POLLIN, 0}, {output, POLLIN, 0}};
    for (bool ended = false; !ended;) {
        if (poll(sources, 2, -1) < 0)
            continue; // interrupted
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

[[noreturn]] void launch(int devices)
{
    if (const std::string why = whyNoRanks(); !why.empty())
        throw Error("--backend", why, installHint);
    const std::string program = launcher();
    std::vector<std::string> words = launchCommand(program, devices, ownCommand(), geteuid() == 0);
    std::vector<char*> arguments;
    for (std::string& word : words)
        arguments.push_back(word.data());
    arguments.push_back(nullptr);
    // mpirun lets surviving ranks finish and then always returns success, so rank 0 writes the exit code to a file.
    char verdict[] = "/tmp/pipewright-XXXXXX";
    const int file = mkstemp(verdict);
    if (file < 0 || write(file, verdictAwaited.data(), verdictAwaited.size()) != ssize_t(verdictAwaited.size()))
        throw Error(verdict, std::string("cannot be written: ") + std::strerror(errno), "free some space");
    close(file);
    setenv(verdictVariable, verdict, 1);
    sigset_t signals;
    sigemptyset(&signals);
    for (const int signal : {SIGINT, SIGTERM, SIGCHLD})
        sigaddset(&signals, signal);
    sigprocmask(SIG_BLOCK, &signals, nullptr);
    int output[2] = {-1, -1};
    const int arrivedSignals = signalfd(-1, &signals, SFD_CLOEXEC);
    if (arrivedSignals < 0 || pipe2(output, O_CLOEXEC | O_NONBLOCK) != 0 || fcntl(output[1], F_SETFL, 0) != 0)
        throw Error(program, std::strerror(errno), "close some files");
    const pid_t child = fork();
    if (child == 0) {
        dup2(output[1], STDOUT_FILENO);
        sigprocmask(SIG_UNBLOCK, &signals, nullptr);
        execv(program.c_str(), arguments.data());
        _exit(127);
    }
    int status = 0;
    if (child > 0) {
        close(output[1]);
        std::signal(SIGPIPE, SIG_IGN); // the ranks go on when nobody reads any more
        attend(child, output[0], arrivedSignals);
    }
    if (child < 0 || waitpid(child, &status, 0) < 0)
        throw Error(program, std::strerror(errno), "start the processes yourself: mpirun -n N pipewright run …");
    while (handOn(output[0])) {
    }
    int code = 2;
    std::ifstream(verdict).ignore(verdictAwaited.size()) >> code;
    unlink(verdict);
    std::exit(exitCodeAfterWriting(code));
}

} // namespace

RankEnvironment ownRank()
{
    return rankEnvironment([](const char* name) { return static_cast<const char*>(std::getenv(name)); });
}

void leaveVerdict(int exitCode)
{
    const char* path = std::getenv(verdictVariable);
    if (!path || ownRank().launcher != RankEnvironment::Launcher::Mpi || ownRank().rank != 0)
        return;
    const int file = open(path, O_RDWR | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0)
        return;
    char text[verdictAwaited.size() + 1];
    const ssize_t length = read(file, text, sizeof text);
    struct stat status {};
    if (fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid()
        && length == ssize_t(verdictAwaited.size())
        && std::string_view(text, verdictAwaited.size()) == verdictAwaited) {
        const std::string code = std::to_string(exitCode);
        (void)!write(file, code.data(), code.size()); // without it the launcher reports a failure
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
        launch(devices);
    return [ranks, deadline, create](int) {
        if (ranks.launcher == RankEnvironment::Launcher::Sockets)
            return create(connectSocketMesh(ranks.rank, ranks.size, ranks.address, ranks.port, deadline), deadline);
#ifdef PIPEWRIGHT_HAS_MPI
        return create(createMpiMesh(), deadline);
#else
        throw Error("--backend", whyNoRanks(), installHint);
#endif
    };
}

} // namespace pipewright::app
