// SPDX-License-Identifier: GPL-3.0-or-later
// The commands of the program: each function adds one command with its options to CLI11's program, and the work that
// runs when it is called. A command returns by leaving an exit code in `exitCode`, or throws: Error for bad input (2),
// Finding for a faulty design or comparison (1).
// CLI11 is used as it is: the files here are compiled as one, which its headers do not slow down (18.5 s with and
// without them); a file by itself takes 0.7 s longer.
#pragma once

#include "core/base/diagnostic.h"
#include "core/files/locateddesign.h"
#include "core/json/jsonvalue.h"
#include "core/predict/predict.h"

#include <CLI/CLI.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace pipewright::app {

inline constexpr int exitSuccess = 0;
inline constexpr int exitFinding = 1;
inline constexpr int exitBadInput = 2;

/// The input was examined and found faulty.
class Finding : public Error {
public:
    using Error::Error;
};

using Json = JsonValue;

void addNewCommand(CLI::App& program, int& exitCode);
void addPredictCommand(CLI::App& program, int& exitCode);
void addCheckCommand(CLI::App& program, int& exitCode);
void addRunCommand(CLI::App& program, int& exitCode);
void addCompareCommand(CLI::App& program, int& exitCode);
void addExplainCommand(CLI::App& program, int& exitCode);
void addQueryCommand(CLI::App& program, int& exitCode);
void addCalibrateCommand(CLI::App& program, int& exitCode);
void addRenderCommand(CLI::App& program, int& exitCode);
void addExportCommand(CLI::App& program, int& exitCode);
void addImportCommand(CLI::App& program, int& exitCode);
void addSearchCommand(CLI::App& program, int& exitCode);
void addExperimentCommand(CLI::App& program, int& exitCode);
void addShardCommand(CLI::App& program, int& exitCode);
void addDevicesCommand(CLI::App& program, int& exitCode);
void addProfileCommand(CLI::App& program, int& exitCode);
void addPlanCommand(CLI::App& program, int& exitCode);

/// The names of those options of a command, or of a group of its options, that were given.
std::vector<std::string> givenOptions(const CLI::App& options);

void printJson(const Json& object);                    ///< the one object on standard output
void printDiagnostics(const Diagnostics& diagnostics); ///< on standard error

/// Returns what `work` returns for the design. An Error that it throws becomes a Finding, with the file's name and line
/// before every diagnostic; an inline design has no file.
template<typename Work>
auto orFind(const LocatedDesign& located, Work work)
{
    try {
        return work();
    } catch (const Error& error) {
        throw Finding(located.source.empty() ? error.diagnostics() : located.locate(error.diagnostics()));
    }
}

/// predict(), with Errors turned into Findings as by orFind.
Prediction predictOrFind(const LocatedDesign& located);
/// The same without the Program's lists and the memory curves, which takes a fraction of the memory. Designs with
/// updates within the step keep them, since the output about weights needs them.
Prediction predictTimesOrFind(const LocatedDesign& located);
/// The same, always without them.
OutlinedPrediction outlineOrFind(const LocatedDesign& located, Curves curves);

/// The extension in lower case, without its dot: "svg".
std::string extensionOf(const std::string& path);

} // namespace pipewright::app
