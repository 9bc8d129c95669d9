// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/command.h"

#include "core/formats/designplace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>

namespace pipewright::app {

void printJson(const Json& object) { fmt::print("{}\n", object.dump()); }

void printDiagnostics(const Diagnostics& diagnostics)
{
    for (const Diagnostic& diagnostic : diagnostics)
        fmt::print(stderr, "{}\n", toString(diagnostic));
}

Prediction predictOrFind(const Design& design, const std::string& file)
{
    try {
        return predict(design);
    } catch (const Error& error) {
        throw Finding(placedInFile(error.diagnostics(), file));
    }
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
