// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/describedcommands.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace pipewright::app {

namespace {

/// The type of an option's value in Python.
std::string typeOf(const DescribedOption& option)
{
    const auto isOneOf = [&](const auto& names) {
        return std::find(names.begin(), names.end(), option.values) != names.end();
    };
    if (option.isFlag())
        return "bool";
    if (option.onlyChoices && !std::all_of(option.choices.begin(), option.choices.end(), [](const std::string& word) {
            return std::isdigit(word.front()) != 0;
        }))
        return fmt::format("Literal[\"{}\"]", fmt::join(option.choices, "\", \""));
    constexpr std::array<std::string_view, 10> counts{"N", "P", "M", "V", "K", "G", "S", "INT", "UINT", "DPI"};
    if (isOneOf(counts) && !option.repeated)
        return "int";
    constexpr std::array<std::string_view, 5> numbers{"X", "U", "E", "B", "FLOAT"};
    return isOneOf(numbers) && !option.repeated ? "float" : "Value";
}

/// "--layers-per-stage" is layers_per_stage, and "--from", a word of Python's, from_.
std::string keywordOf(const std::string& longName)
{
    std::string keyword = longName.substr(2);
    std::replace(keyword.begin(), keyword.end(), '-', '_');
    constexpr std::array<std::string_view, 5> reserved{"from", "for", "with", "in", "lambda"};
    if (std::find(reserved.begin(), reserved.end(), keyword) != reserved.end())
        keyword += '_';
    return keyword;
}

/// Whether the package says it itself.
bool isImplied(const DescribedOption& option)
{
    constexpr std::array<std::string_view, 3> implied{"--help", "--json", "--output"};
    return option.isPositional() || std::find(implied.begin(), implied.end(), option.longName()) != implied.end();
}

} // namespace

std::string pythonOptions(const std::vector<DescribedCommand>& commands)
{
    std::string text = R"(# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of the program's commands as keywords: --layers-per-stage 3,2 is layers_per_stage=[3, 2].

Written by `pipewright --generate python`; a test compares it with what that prints.
"""

from typing import Any, Dict, Literal, Sequence, TypedDict, Union

Value = Union[str, int, float, Sequence[Any]]  # a time is a text with a unit: "12ms"
)";
    std::string all;
    for (auto command = commands.begin() + 1; command != commands.end(); ++command) {
        std::string name = command->name;
        name.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(name.front())));
        text += fmt::format("\n\nclass {}(TypedDict, total=False):\n    \"\"\"Of `pipewright {}`.\"\"\"\n\n", name,
                            command->name);
        for (const DescribedOption& option : command->options)
            if (!isImplied(option))
                text += fmt::format("    {}: {}\n", keywordOf(option.longName()), typeOf(option));
        all += fmt::format("    \"{}\": {},\n", command->name, name);
    }
    return text + "\n\nOF_COMMAND: Dict[str, Any] = {\n" + all + "}\n";
}

} // namespace pipewright::app
