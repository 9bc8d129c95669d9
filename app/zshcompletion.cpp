// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/describedcommands.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace pipewright::app {

namespace {

/// Inside single quotes; `special` needs a backslash besides.
std::string zshText(std::string_view text, std::string_view special)
{
    std::string escaped;
    for (const char c : text) {
        if (c == '\'')
            escaped += "'\\''";
        else if (special.find(c) != std::string_view::npos)
            escaped += fmt::format("\\{}", c);
        else
            escaped += c;
    }
    return escaped;
}

/// What _arguments calls the message and the action of a value.
std::string valueSpecification(const DescribedOption& option)
{
    std::string action = option.namesFile ? "_files" : " ";
    if (!option.choices.empty() && option.namesFile)
        action = fmt::format("_alternative \"words:word:({})\" \"files:file:_files\"", fmt::join(option.choices, " "));
    else if (!option.choices.empty())
        action = fmt::format("({})", fmt::join(option.choices, " "));
    return fmt::format(":{}:{}", zshText(option.values, ":\\"), action);
}

/// An option as an argument of _arguments.
std::string specification(const DescribedOption& option)
{
    if (option.isPositional())
        return fmt::format("'{}{}'", option.repeated ? "*" : "", valueSpecification(option));
    const std::string text = zshText(option.text, "[]:\\");
    const std::string value = option.isFlag() ? std::string() : valueSpecification(option);
    if (option.names.size() == 1)
        return fmt::format("'{}[{}]{}'", option.longName(), text, value);
    return fmt::format("'({})'{{{}}}'[{}]{}'", fmt::join(option.names, " "), fmt::join(option.names, ","), text, value);
}

std::string specifications(const DescribedCommand& command, const char* indent)
{
    std::string lines;
    for (const DescribedOption& option : command.options)
        lines += fmt::format(" \\\n{}{}", indent, specification(option));
    return lines;
}

} // namespace

std::string zshCompletion(const std::vector<DescribedCommand>& commands)
{
    std::string names, cases;
    for (auto command = commands.begin() + 1; command != commands.end(); ++command) {
        names += fmt::format("        '{}:{}'\n", command->name, zshText(command->text, ":\\"));
        cases += fmt::format("    {})\n        _arguments -s{} ;;\n", command->name,
                             specifications(*command, "            "));
    }
    DescribedCommand program = commands.front();
    std::erase_if(program.options, [](const DescribedOption& option) { return option.isPositional(); });
    return fmt::format(R"(#compdef pipewright
# Completions of pipewright for zsh, written by pipewright --generate zsh.
_pipewright() {{
    local context state state_descr line
    local -a commands
    typeset -A opt_args
    commands=(
{0}    )
    _arguments -C{1} \
        '1: :->command' '*:: :->arguments' && return
    case $state in
    command)
        _describe command commands
        _files ;;
    arguments) case $line[1] in
{2}    *) _files ;;
    esac ;;
    esac
}}
_pipewright "$@"
)",
                       names, specifications(program, "        "), cases);
}

} // namespace pipewright::app
