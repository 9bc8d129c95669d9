// SPDX-License-Identifier: GPL-3.0-or-later
// Processes that report in lines: each is started with a pipe as its file descriptor 3. None outlives this one, nor its
// own children: every process leads a group, which is ended as a whole, and the system ends it when we are killed.
#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

namespace pipewright {

struct ProcessToStart {
    std::vector<std::string> words; ///< the program, found on the path, and its arguments
    std::vector<std::pair<std::string, std::string>> environment{}; ///< beside this process's own
};

struct ProcessEvent {
    int process = 0; ///< in the order they were started
    bool ended = false;
    std::string line; ///< a whole one, without its end; when it did not end
    int status = 0;   ///< as of waitpid(), when it ended
};

class RankProcesses {
public:
    /// What they print goes to standard error. Throws Error when one cannot be started; then none runs.
    explicit RankProcesses(const std::vector<ProcessToStart>& processes);
    ~RankProcesses(); ///< as end()
    RankProcesses(const RankProcesses&) = delete;
    RankProcesses& operator=(const RankProcesses&) = delete;

    /// Waits for something to report, at most so long. A process's lines all come before its end.
    std::vector<ProcessEvent> wait(std::chrono::milliseconds atMost = std::chrono::milliseconds(100));
    bool anyRuns() const;
    /// Asks all to end, and ends those that do not follow within `grace`.
    void end(std::chrono::milliseconds grace = std::chrono::milliseconds(2000));

private:
    struct Process {
        pid_t id = -1;
        int pipe = -1;
        bool runs = false;
        std::string text; ///< of a line that is not complete yet
    };
    void start(const ProcessToStart& wanted);
    bool read(std::size_t index, std::vector<ProcessEvent>& events);

    std::vector<Process> m_processes;
};

/// "was killed by signal 9 (Killed)", "ended with code 3".
std::string endText(int status);

} // namespace pipewright
