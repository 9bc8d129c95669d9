// SPDX-License-Identifier: GPL-3.0-or-later
// The commands of the program: each function adds one to the command line, with its options and what runs
// when it is called. A command returns by leaving an exit code in `exitCode`, or throws: Error for bad input
// (2), Finding for a design or comparison that is at fault (1).
#pragma once

#include "core/base/diagnostic.h"
#include "core/formats/locateddesign.h"
#include "core/predict/predict.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <nlohmann/json.hpp>

#include <string>
#include <string_view>

namespace pipewright::app {

inline constexpr int exitSuccess = 0;
inline constexpr int exitFinding = 1;
inline constexpr int exitBadInput = 2;

/// What was asked for was looked at, and is at fault.
class Finding : public Error {
public:
    using Error::Error;
};

using Json = nlohmann::ordered_json;

void addNewCommand(CLI::App& app, int& exitCode);
void addPredictCommand(CLI::App& app, int& exitCode);
void addCheckCommand(CLI::App& app, int& exitCode);
void addRunCommand(CLI::App& app, int& exitCode);
void addCompareCommand(CLI::App& app, int& exitCode);
void addExplainCommand(CLI::App& app, int& exitCode);
void addQueryCommand(CLI::App& app, int& exitCode);
void addCalibrateCommand(CLI::App& app, int& exitCode);
void addRenderCommand(CLI::App& app, int& exitCode);
void addExportCommand(CLI::App& app, int& exitCode);
void addImportCommand(CLI::App& app, int& exitCode);
void addSearchCommand(CLI::App& app, int& exitCode);
void addExperimentCommand(CLI::App& app, int& exitCode);
void addShardCommand(CLI::App& app, int& exitCode);
void addDevicesCommand(CLI::App& app, int& exitCode);

/// Opens the designer's window; compiled only with the GUI.
int openDesigner(int argc, char** argv, const std::vector<std::string>& files);

void printJson(const Json& object);                   ///< the one object on standard output
void printDiagnostics(const Diagnostics& diagnostics); ///< on standard error

/// predict(), with the file's name and line in front of every diagnostic, thrown as a Finding. A design that
/// was given inline has no source.
Prediction predictOrFind(const LocatedDesign& located);

/// The extension in lower case, without its dot: "svg".
std::string extensionOf(const std::string& path);

} // namespace pipewright::app
