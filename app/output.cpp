// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/command.h"
#include "app/terminal.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <utility>

namespace pipewright::app {

std::vector<std::string> givenOptions(const CLI::App& options)
{
    std::vector<std::string> names;
    for (const CLI::Option* option : options.get_options())
        if (option->count() > 0)
            names.push_back(option->get_name());
    return names;
}

void printJson(const Json& object)
{
    printText("{}\n", object.dump());
}

void printDiagnostics(const Diagnostics& diagnostics)
{
    for (const Diagnostic& diagnostic : diagnostics)
        printError("{}\n", toString(diagnostic));
}

Prediction predictOrFind(const LocatedDesign& located)
{
    return orFind(located, [&] { return predict(located.design); });
}

OutlinedPrediction outlineOrFind(const LocatedDesign& located, Curves curves)
{
    return orFind(located, [&] { return predictOutline(located.design, curves); });
}

Prediction predictTimesOrFind(const LocatedDesign& located)
{
    OutlinedPrediction outline = outlineOrFind(located, Curves::NotNeeded);
    if (outline.program.versioned())
        return predictOrFind(located);
    Prediction& times = outline;
    return std::move(times);
}

std::string extensionOf(const std::string& path)
{
    std::string extension = std::filesystem::path(path).extension().string();
    extension.erase(0, 1);
    std::transform(extension.begin(), extension.end(), extension.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return extension;
}

} // namespace pipewright::app
