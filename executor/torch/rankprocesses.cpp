// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/torch/rankprocesses.h"

#include "core/base/diagnostic.h"

#include <fmt/format.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace pipewright {

namespace {

constexpr int reportDescriptor = 3;
constexpr std::size_t longestLine = std::size_t{1} << 28; ///< a whole step's records of one rank are far shorter

std::vector<char*> pointers(std::vector<std::string>& words)
{
    std::vector<char*> result;
    for (std::string& word : words)
        result.push_back(word.data());
    result.push_back(nullptr);
    return result;
}

std::vector<std::string> environmentWith(const std::vector<std::pair<std::string, std::string>>& more)
{
    std::vector<std::string> result;
    for (char** entry = environ; *entry != nullptr; ++entry) {
        const std::string_view text = *entry;
        const std::string_view name = text.substr(0, text.find('='));
        bool replaced = false;
        for (const auto& [key, value] : more)
            replaced = replaced || key == name;
        if (!replaced)
            result.emplace_back(text);
    }
    for (const auto& [key, value] : more)
        result.push_back(fmt::format("{}={}", key, value));
    return result;
}

} // namespace

RankProcesses::RankProcesses(const std::vector<ProcessToStart>& processes)
{
    m_processes.reserve(processes.size());
    try {
        for (const ProcessToStart& wanted : processes)
            start(wanted);
    } catch (...) {
        end(std::chrono::milliseconds(0));
        throw;
    }
}

RankProcesses::~RankProcesses()
{
    end();
    for (const Process& process : m_processes)
        if (process.pipe >= 0)
            close(process.pipe);
}

void RankProcesses::start(const ProcessToStart& wanted)
{
    if (!wanted.words.front().starts_with('/'))
        throw Error(wanted.words.front(), "is not the absolute path of a program", "find it with findProgram()");
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        throw Error(wanted.words.front(), std::string("no pipe can be made: ") + std::strerror(errno),
                    "close other programs");
    std::vector<std::string> words = wanted.words, environment = environmentWith(wanted.environment);
    const std::vector<char*> arguments = pointers(words), variables = pointers(environment);
    const pid_t parent = getpid();
    const bool ownOutput = wanted.ownOutput;
    // This process's signal handlers must not run in the child: signals are blocked until the child has reset them.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    const pid_t id = fork();
    if (id != 0)
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (id < 0) {
        const int why = errno;
        close(ends[0]);
        close(ends[1]);
        throw Error(wanted.words.front(), std::string("cannot be started: ") + std::strerror(why),
                    "close other programs");
    }
    if (id == 0) { // from here to exec only async-signal-safe calls
        setpgid(0, 0);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(127);
        if (!ownOutput)
            dup2(STDERR_FILENO, STDOUT_FILENO);
        if (ends[1] == reportDescriptor)
            fcntl(ends[1], F_SETFD, 0);
        else
            dup2(ends[1], reportDescriptor);
        for (int number = 1; number < NSIG; ++number)
            signal(number, SIG_DFL); // it fails only for signals that are SIG_DFL anyway
        sigset_t none;
        sigemptyset(&none);
        pthread_sigmask(SIG_SETMASK, &none, nullptr);
        execve(arguments[0], arguments.data(), variables.data());
        _exit(127);
    }
    setpgid(id, id); // in parent and child, whichever runs first
    close(ends[1]);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    m_processes.push_back({id, ends[0], true, {}});
}

bool RankProcesses::read(std::size_t index, std::vector<ProcessEvent>& events)
{
    Process& process = m_processes[index];
    char buffer[1 << 16];
    for (;;) {
        const ssize_t count = ::read(process.pipe, buffer, sizeof buffer);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return count < 0; // below 0: nothing more for now; 0: all writers have closed the pipe
        process.text.append(buffer, static_cast<std::size_t>(count));
        std::size_t begin = 0;
        for (std::size_t end = 0; (end = process.text.find('\n', begin)) != std::string::npos; begin = end + 1)
            events.push_back({static_cast<int>(index), false, process.text.substr(begin, end - begin), 0});
        process.text.erase(0, begin);
        if (process.text.size() > longestLine)
            process.text.clear();
    }
}

std::vector<ProcessEvent> RankProcesses::wait(std::chrono::milliseconds atMost)
{
    std::vector<pollfd> watched;
    std::vector<std::size_t> indices;
    for (std::size_t i = 0; i < m_processes.size(); ++i)
        if (m_processes[i].pipe >= 0) {
            watched.push_back({m_processes[i].pipe, POLLIN, 0});
            indices.push_back(i);
        }
    std::vector<ProcessEvent> events;
    // Without a pipe to watch this only sleeps: the end of a process does not wake it.
    poll(watched.data(), watched.size(), static_cast<int>(atMost.count()));
    for (std::size_t i = 0; i < watched.size(); ++i)
        if (watched[i].revents != 0 && !read(indices[i], events)) {
            close(m_processes[indices[i]].pipe);
            m_processes[indices[i]].pipe = -1;
        }
    for (std::size_t i = 0; i < m_processes.size(); ++i) {
        Process& process = m_processes[i];
        int status = 0;
        if (!process.runs || waitpid(process.id, &status, WNOHANG) != process.id)
            continue;
        process.runs = false;
        if (process.pipe >= 0)
            read(i, events);
        kill(-process.id, SIGKILL); // also the processes that it started
        events.push_back({static_cast<int>(i), true, {}, status});
    }
    return events;
}

bool RankProcesses::anyRuns() const
{
    for (const Process& process : m_processes)
        if (process.runs)
            return true;
    return false;
}

void RankProcesses::send(int signal) const
{
    for (const Process& process : m_processes)
        if (process.runs)
            kill(-process.id, signal);
}

void RankProcesses::end(std::chrono::milliseconds grace)
{
    const auto collect = [this] {
        for (Process& process : m_processes)
            if (process.runs && waitpid(process.id, nullptr, WNOHANG) == process.id) {
                kill(-process.id, SIGKILL);
                process.runs = false;
            }
    };
    send(SIGTERM);
    const auto last = std::chrono::steady_clock::now() + grace;
    for (collect(); anyRuns() && std::chrono::steady_clock::now() < last; collect())
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    send(SIGKILL);
    for (Process& process : m_processes)
        if (process.runs) {
            waitpid(process.id, nullptr, 0);
            process.runs = false;
        }
}

std::string endText(int status)
{
    if (WIFSIGNALED(status))
        return fmt::format("was killed by signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)));
    return fmt::format("ended with code {}", WEXITSTATUS(status));
}

} // namespace pipewright
