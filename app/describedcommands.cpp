// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/describedcommands.h"

#include "core/base/diagnostic.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace pipewright::app {

namespace {

std::vector<std::string> split(std::string_view text, std::string_view separator)
{
    std::vector<std::string> parts;
    for (std::size_t end = 0; end != std::string_view::npos; text.remove_prefix(end + separator.size())) {
        end = text.find(separator);
        parts.emplace_back(text.substr(0, end));
        if (end == std::string_view::npos)
            break;
    }
    return parts;
}

/// Whether a part of a value's name is a value itself, "host", and not the name of one, "STAGES" or "every:N".
bool isWord(std::string_view part)
{
    return !part.empty() && std::all_of(part.begin(), part.end(), [](unsigned char c) {
        return std::islower(c) || std::isdigit(c) || c == '-' || c == '.';
    });
}

/// The values that the name of a value, "none|auto|STAGES", or the description, "one of: a, b", lists.
void findChoices(DescribedOption& option)
{
    const std::vector<std::string> parts = split(option.values, "|");
    for (const std::string& part : parts)
        if (isWord(part) && (parts.size() > 1 || part.size() > 1))
            option.choices.push_back(part);
    option.onlyChoices = !option.choices.empty() && option.choices.size() == parts.size();
    const std::string_view marker = "one of: ";
    if (const std::size_t at = option.text.find(marker); at != std::string::npos)
        for (const std::string& word : split(option.text.substr(at + marker.size()), ", "))
            if (isWord(word))
                option.choices.push_back(word);
}

bool canNameFile(std::string_view values)
{
    const std::array words{"FILE", "TRACE", "PICTURE", "FOLDER", "PATH", "PROGRAM", "PYTHON"};
    return std::any_of(words.begin(), words.end(),
                       [&](std::string_view word) { return values.find(word) != std::string_view::npos; });
}

DescribedOption describeOption(const CLI::Option& option)
{
    DescribedOption described;
    for (const std::string& name : option.get_snames())
        described.names.push_back('-' + name);
    for (const std::string& name : option.get_lnames())
        described.names.push_back("--" + name);
    if (described.names.empty())
        described.names.push_back(option.get_name(true));
    described.text = option.get_description();
    described.required = option.get_required();
    if (option.get_items_expected_max() > 0) {
        // Behind a colon come the names of validators.
        described.values = split(option.get_type_name(), ":{").front();
        described.repeated = option.get_items_expected_max() > 1;
        findChoices(described);
        described.namesFile = canNameFile(described.values);
    }
    return described;
}

/// The options of a command and of its groups of options, as far as the help shows them.
void collect(const CLI::App& command, std::vector<DescribedOption>& options)
{
    for (const CLI::Option* option : command.get_options())
        if (!option->get_group().empty())
            options.push_back(describeOption(*option));
    for (const CLI::App* group : command.get_subcommands(nullptr))
        if (group->get_name().empty())
            collect(*group, options);
}

} // namespace

std::vector<DescribedCommand> describeCommands(const CLI::App& program)
{
    std::vector<const CLI::App*> apps{&program};
    for (const CLI::App* command : program.get_subcommands(nullptr))
        apps.push_back(command);
    std::vector<DescribedCommand> commands;
    for (const CLI::App* app : apps) {
        commands.push_back({app->get_name(), app->get_description(), {}});
        collect(*app, commands.back().options);
    }
    return commands;
}

std::string generatedText(std::string_view kind, const CLI::App& program)
{
    const std::vector<DescribedCommand> commands = describeCommands(program);
    if (kind == "man")
        return manualPage(commands);
    if (kind == "bash")
        return bashCompletion(commands);
    if (kind == "zsh")
        return zshCompletion(commands);
    if (kind == "fish")
        return fishCompletion(commands);
    if (kind == "python")
        return pythonOptions(commands);
    throw Error("--generate", fmt::format("\"{}\" is not known", kind), fmt::format("use one of {}", generatedKinds));
}

} // namespace pipewright::app
