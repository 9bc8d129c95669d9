// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/terminal.h"

#include "app/command.h"

#include "core/base/utf8.h"

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

namespace pipewright::app {

namespace {

std::atomic<int> firstFault{0}; ///< errno of the first text that was lost

} // namespace

void writeEscaped(std::FILE* stream, std::string_view text)
{
    const std::string escaped = escapedForTerminal(text);
    if (std::fwrite(escaped.data(), 1, escaped.size(), stream) != escaped.size() && firstFault == 0)
        firstFault = errno;
}

void reserveStandardStreams()
{
    for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
        if (::fcntl(stream, F_GETFD) < 0 && errno == EBADF)
            (void)::open("/dev/null", O_RDONLY); // gets the lowest free number, which is this one
}

namespace {

/// `exitCode`, or exitBadInput in place of success when some output could not be written.
int exitCodeAfterWriting(int exitCode)
{
    for (std::FILE* stream : {stdout, stderr})
        if (std::fflush(stream) != 0 && firstFault == 0)
            firstFault = errno;
    if (firstFault == 0)
        return exitCode;
    if (firstFault != EPIPE) // a reader that stopped, such as head, already knows
        printDiagnostics({{Severity::Error,
                           {},
                           std::string("what it says could not all be written: ") + std::strerror(firstFault),
                           "what it wrote into files is whole"}});
    return exitCode == exitSuccess ? exitBadInput : exitCode;
}

} // namespace

void endProcess(int exitCode)
{
    std::quick_exit(exitCodeAfterWriting(exitCode));
}

} // namespace pipewright::app
