// SPDX-License-Identifier: GPL-3.0-or-later
// What can be written on the command line, read from CLI11's definitions of it: the one source of the manual page, of
// completions in shells, and of the options that the Python package knows. --generate prints them.
#pragma once

#include <CLI/CLI.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace pipewright::app {

struct DescribedOption {
    std::vector<std::string> names;   ///< "-o", "--output"; one word without a hyphen is a positional
    std::string values;               ///< what the help calls its value, "N"; empty for a flag
    std::string text;                 ///< what the help says of it
    std::vector<std::string> choices; ///< values that are words of their own, where they are listed: host, mpi
    bool onlyChoices = false;         ///< no other value is taken
    bool namesFile = false;           ///< a value may be the name of a file or folder
    bool required = false;
    bool repeated = false; ///< takes several values, or may be given several times

    bool isFlag() const { return values.empty(); }
    bool isPositional() const { return names.front().front() != '-'; }
    const std::string& longName() const ///< "--output"; of several the first
    {
        for (const std::string& name : names)
            if (name.starts_with("--"))
                return name;
        return names.front();
    }
};

struct DescribedCommand {
    std::string name, text; ///< the program itself has its own name
    std::vector<DescribedOption> options;
};

/// The program itself, then its commands in the order of its help.
std::vector<DescribedCommand> describeCommands(const CLI::App& program);

inline constexpr char generatedKinds[] = "man|bash|zsh|fish|python";

/// The text of one of generatedKinds for all of the program's commands. Throws Error for another kind.
std::string generatedText(std::string_view kind, const CLI::App& program);

std::string manualPage(const std::vector<DescribedCommand>& commands);
std::string bashCompletion(const std::vector<DescribedCommand>& commands);
std::string zshCompletion(const std::vector<DescribedCommand>& commands);
std::string fishCompletion(const std::vector<DescribedCommand>& commands);
std::string pythonOptions(const std::vector<DescribedCommand>& commands);

} // namespace pipewright::app
