// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/command.h"
#include "app/terminal.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

namespace pipewright::app {

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
    try {
        return predict(located.design);
    } catch (const Error& error) {
        throw Finding(located.source.empty() ? error.diagnostics() : located.locate(error.diagnostics()));
    }
}

Prediction predictTimesOrFind(const LocatedDesign& located)
{
    if (std::optional<SteadyPrediction> steady = predictSteady(located.design))
        return *std::move(steady);
    return predictOrFind(located);
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
