// SPDX-License-Identifier: GPL-3.0-or-later
// All output of commands on standard output and standard error goes through here. Control characters in it, which names
// from files may contain, are escaped, so that no file can control a terminal. When a text cannot be written, the work
// continues; the failure is remembered and makes the exit code a failure.
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

/// Opens standard streams that are closed, in a way that cannot be written to. Otherwise the next file to be opened
/// would become standard output.
void reserveStandardStreams();

/// Ends the process after a command: with `exitCode`, or with exitBadInput in place of success when some output could
/// not be written. Destructors of libraries are skipped: that of OpenBLAS waits for its threads, which in an empty
/// environment it has (app/blasthreads.h).
[[noreturn]] void endProcess(int exitCode);

} // namespace pipewright::app
