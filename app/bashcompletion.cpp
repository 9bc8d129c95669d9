// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/describedcommands.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace pipewright::app {

namespace {

/// The names of all options, and the words that may stand without one.
std::pair<std::string, std::string> wordsOf(const DescribedCommand& command)
{
    std::vector<std::string> options, positionals;
    for (const DescribedOption& option : command.options) {
        const std::vector<std::string>& words = option.isPositional() ? option.choices : option.names;
        std::vector<std::string>& list = option.isPositional() ? positionals : options;
        list.insert(list.end(), words.begin(), words.end());
    }
    return {fmt::format("{}", fmt::join(options, " ")), fmt::format("{}", fmt::join(positionals, " "))};
}

/// The cases of options with values: their choices, else files, else nothing.
std::string valuesOf(const DescribedCommand& command)
{
    std::string cases;
    for (const DescribedOption& option : command.options) {
        if (option.isFlag() || option.isPositional())
            continue;
        std::string complete = ":";
        if (!option.choices.empty())
            complete = fmt::format("COMPREPLY=($(compgen -W '{}' -- \"$word\"))", fmt::join(option.choices, " "));
        if (option.namesFile)
            complete += "; compopt -o default";
        cases += fmt::format("        {}) {}; return ;;\n", fmt::join(option.names, "|"), complete);
    }
    return cases;
}

} // namespace

std::string bashCompletion(const std::vector<DescribedCommand>& commands)
{
    std::vector<std::string> names;
    std::string cases;
    for (const DescribedCommand& command : commands) {
        const bool isProgram = &command == &commands.front();
        auto [options, positionals] = wordsOf(command);
        if (!isProgram)
            names.push_back(command.name);
        cases +=
            fmt::format("    {})\n        options='{}' positionals={}\n        case $before in\n{}        esac ;;\n",
                        isProgram ? "''" : command.name, options,
                        isProgram ? "$commands" : fmt::format("'{}'", positionals), valuesOf(command));
    }
    return fmt::format(R"(# Completions of pipewright for bash, written by pipewright --generate bash.
_pipewright() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} command= options positionals each
    local commands='{0}'
    for each in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
        case " $commands " in *" $each "*) command=$each; break ;; esac
    done
    COMPREPLY=()
    case $command in
{1}    esac
    case $word in
    -*) COMPREPLY=($(compgen -W "$options" -- "$word")) ;;
    *) COMPREPLY=($(compgen -W "$positionals" -- "$word")); compopt -o default ;;
    esac
}}
complete -F _pipewright pipewright
)",
                       fmt::join(names, " "), cases);
}

} // namespace pipewright::app
