// SPDX-License-Identifier: GPL-3.0-or-later
// Processes that report in lines: each is started with a pipe as its file descriptor 3. None outlives this process, nor
// do their own children: every process leads a process group, which is ended as a whole, and the system ends it when
// this process is killed.
#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace pipewright {

struct ProcessToStart {
    std::vector<std::string> words; ///< the program's absolute path (findProgram), and its arguments
    std::vector<std::pair<std::string, std::string>> environment{}; ///< in addition to this process's own
    bool ownOutput = false; ///< its output is this process's own; else it goes to standard error
};

struct ProcessEvent {
    int process = 0; ///< in the order they were started
    bool ended = false;
    std::string line; ///< a complete line, without its end; unless the process ended
    int status = 0;   ///< as of waitpid(), if the process ended
};

class RankProcesses {
public:
    /// Throws Error when one cannot be started; then none runs.
    explicit RankProcesses(const std::vector<ProcessToStart>& processes);
    ~RankProcesses(); ///< as end()
    RankProcesses(const RankProcesses&) = delete;
    RankProcesses& operator=(const RankProcesses&) = delete;

    /// Waits for reports, at most so long. All lines of a process come before its end.
    std::vector<ProcessEvent> wait(std::chrono::milliseconds atMost = std::chrono::milliseconds(100));
    bool anyRuns() const;
    void send(int signal) const; ///< to all that run, and to what they started
    /// Asks all processes to end, and kills those that do not within `grace`.
    void end(std::chrono::milliseconds grace = std::chrono::milliseconds(2000));

private:
    struct Process {
        pid_t id = -1;
        int pipe = -1;
        bool runs = false;
        std::string text; ///< of an incomplete line
    };
    void start(const ProcessToStart& wanted);
    bool read(std::size_t index, std::vector<ProcessEvent>& events);

    std::vector<Process> m_processes;
};

/// "was killed by signal 9 (Killed)", "ended with code 3".
std::string endText(int status);

} // namespace pipewright
