// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/describedcommands.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace pipewright::app {

namespace {

std::string fishText(std::string_view text)
{
    std::string escaped = "'";
    for (const char c : text) {
        if (c == '\'' || c == '\\')
            escaped += '\\';
        escaped += c;
    }
    return escaped + '\'';
}

/// The line of an option, or of the words that may stand for a positional; empty for a positional without any.
std::string lineOf(const DescribedOption& option, const std::string& condition)
{
    std::string line = "complete -c pipewright" + condition;
    if (option.isPositional()) {
        if (option.choices.empty())
            return {};
    } else {
        for (const std::string& name : option.names)
            line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
        if (!option.isFlag())
            line += option.namesFile ? " -r -F" : " -x";
    }
    if (!option.choices.empty())
        line += fmt::format(" -a '{}'", fmt::join(option.choices, " "));
    return fmt::format("{} -d {}\n", line, fishText(option.isPositional() ? option.values : option.text));
}

} // namespace

std::string fishCompletion(const std::vector<DescribedCommand>& commands)
{
    std::string text = "# Completions of pipewright for fish, written by pipewright --generate fish.\n";
    const std::string first = " -n __fish_use_subcommand";
    for (auto command = commands.begin() + 1; command != commands.end(); ++command)
        text += fmt::format("complete -c pipewright{} -a {} -d {}\n", first, command->name, fishText(command->text));
    for (const DescribedCommand& command : commands) {
        const bool isProgram = &command == &commands.front();
        const std::string condition =
            isProgram ? first : fmt::format(" -n '__fish_seen_subcommand_from {}'", command.name);
        for (const DescribedOption& option : command.options)
            text += lineOf(option, condition);
    }
    return text;
}

} // namespace pipewright::app
