// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/rankguard.h"

#include "executor/mpi/processes.h"

#include <chrono>
#include <csignal>
#include <iterator>
#include <optional>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace pipewright::app {

namespace {

using GuardClock = std::chrono::steady_clock;

constexpr std::chrono::seconds patience{10}; ///< mpirun waits one second for its ranks; a busy machine takes longer

sigset_t guardedSignals()
{
    sigset_t signals;
    sigemptyset(&signals);
    for (const int signal : {SIGINT, SIGTERM, SIGCHLD})
        sigaddset(&signals, signal);
    return signals;
}

/// Arguments for exec; they point into `words`.
std::vector<char*> asArguments(std::vector<std::string>& words)
{
    std::vector<char*> arguments;
    for (std::string& word : words)
        arguments.push_back(word.data());
    arguments.push_back(nullptr);
    return arguments;
}

/// Ends this process with the same status.
[[noreturn]] void endAs(int status)
{
    if (WIFSIGNALED(status)) {
        const rlimit none{};
        setrlimit(RLIMIT_CORE, &none);
        const sigset_t signals = guardedSignals();
        sigprocmask(SIG_UNBLOCK, &signals, nullptr);
        std::signal(WTERMSIG(status), SIG_DFL);
        raise(WTERMSIG(status));
    }
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

/// Runs another program, since nothing may be allocated after a fork. `command` ends with a null pointer.
void runCommand(char* const* command)
{
    const pid_t remover = fork();
    if (remover == 0) {
        execvp(command[0], command);
        _exit(127);
    }
    if (remover > 0)
        waitpid(remover, nullptr, 0);
}

[[noreturn]] void guard(pid_t child, char* const* removal)
{
    const sigset_t signals = guardedSignals();
    std::optional<GuardClock::time_point> asked;
    for (;;) {
        int status = 0;
        if (waitpid(child, &status, WNOHANG) == child) {
            runCommand(removal);
            endAs(status);
        }
        if (asked && GuardClock::now() - *asked > patience)
            kill(child, SIGKILL); // its ranks end with it
        constexpr timespec aWhile{0, 500'000'000};
        const int signal = sigtimedwait(&signals, nullptr, &aWhile);
        if (signal != SIGINT && signal != SIGTERM)
            continue;
        kill(child, signal);
        if (!asked)
            asked = GuardClock::now();
    }
}

} // namespace

pid_t startGuarded(const std::string& program, std::vector<std::string> words, int output,
                   std::vector<std::string> folders)
{
    // Made before the fork, after which nothing may be allocated.
    std::vector<std::string> removal{"rm", "-rf", "--"};
    std::move(folders.begin(), folders.end(), std::back_inserter(removal));
    std::vector<char*> arguments = asArguments(words), removalArguments = asArguments(removal);
    const pid_t launcher = getpid();
    const pid_t guarding = fork();
    if (guarding != 0)
        return guarding;
    endWithParent(SIGTERM, launcher); // blocked, so guard() receives it by sigtimedwait
    const pid_t self = getpid(), child = fork();
    if (child == 0) {
        dup2(output, STDOUT_FILENO);
        const sigset_t signals = guardedSignals();
        sigprocmask(SIG_UNBLOCK, &signals, nullptr);
        std::signal(SIGPIPE, SIG_DFL); // an ignored signal would stay ignored in mpirun
        endWithParent(SIGKILL, self);
        execv(program.c_str(), arguments.data());
        _exit(127);
    }
    if (child < 0)
        _exit(127);
    close_range(0, ~0U, 0); // readers of the ranks' output wait until all processes have closed it
    guard(child, removalArguments.data());
}

} // namespace pipewright::app
