// SPDX-License-Identifier: GPL-3.0-or-later
// Everything that commands say on standard output and standard error goes through here. Control characters in it, which
// names from files may hold, are escaped, so that no file can command a terminal. A text that could not be written
// ends no work; it is remembered, and makes the exit code a failure.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <string_view>

namespace pipewright::app {

void writeEscaped(std::FILE* stream, std::string_view text);

template<class... Values>
void printText(fmt::format_string<Values...> format, Values&&... values)
{
    writeEscaped(stdout, fmt::vformat(format, fmt::make_format_args(values...)));
}

template<class... Values>
void printError(fmt::format_string<Values...> format, Values&&... values)
{
    writeEscaped(stderr, fmt::vformat(format, fmt::make_format_args(values...)));
}

/// What another process of this program has escaped already; written at once.
void handOnText(std::FILE* stream, std::string_view text);

/// Gives the standard streams that are closed a place that cannot be written to: the next file to be opened would
/// otherwise become standard output.
void reserveStandardStreams();

/// Ends the process, after a command that is over: with `exitCode`, or exitBadInput in place of success when not all it
/// said was written. Destructors of libraries are left out: OpenBLAS's waits for a thread of its own, which where
/// memory is short tries for ever to get some.
[[noreturn]] void endProcess(int exitCode);

} // namespace pipewright::app
