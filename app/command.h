// SPDX-License-Identifier: GPL-3.0-or-later
// The commands of the program: each function adds one command with its options to the command line, and the work that
// runs when it is called. A command returns by leaving an exit code in `exitCode`, or throws: Error for bad input (2),
// Finding for a faulty design or comparison (1).
#pragma once

#include "app/commandline.h"

#include "core/base/diagnostic.h"
#include "core/files/locateddesign.h"
#include "core/json/jsonvalue.h"
#include "core/predict/predict.h"

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

void addNewCommand(CommandLine& line, int& exitCode);
void addPredictCommand(CommandLine& line, int& exitCode);
void addCheckCommand(CommandLine& line, int& exitCode);
void addRunCommand(CommandLine& line, int& exitCode);
void addCompareCommand(CommandLine& line, int& exitCode);
void addExplainCommand(CommandLine& line, int& exitCode);
void addQueryCommand(CommandLine& line, int& exitCode);
void addCalibrateCommand(CommandLine& line, int& exitCode);
void addRenderCommand(CommandLine& line, int& exitCode);
void addExportCommand(CommandLine& line, int& exitCode);
void addImportCommand(CommandLine& line, int& exitCode);
void addSearchCommand(CommandLine& line, int& exitCode);
void addExperimentCommand(CommandLine& line, int& exitCode);
void addShardCommand(CommandLine& line, int& exitCode);
void addDevicesCommand(CommandLine& line, int& exitCode);
void addProfileCommand(CommandLine& line, int& exitCode);

/// Opens the designer's window; compiled only with the GUI.
int openDesigner(int argc, char** argv, const std::vector<std::string>& files);

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
