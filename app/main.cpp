// SPDX-License-Identifier: GPL-3.0-or-later
// The program: parses the command line, calls one command, and turns what it throws into diagnostics and an
// exit code. Without a command it opens the designer.
#include "app/command.h"
#include "core/base/freedmemory.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>

namespace {

using namespace pipewright;
using namespace pipewright::app;

int openFiles(const CLI::App& app, int argc, char** argv, const std::vector<std::string>& files)
{
    std::vector<std::string> commands;
    for (const CLI::App* command : app.get_subcommands(nullptr))
        commands.push_back(command->get_name());
    for (const std::string& file : files)
        if (!std::filesystem::exists(file))
            throw Error(file, "is neither a command nor a file", fmt::format("commands: {}", fmt::join(commands, ", ")));
#ifdef PIPEWRIGHT_HAS_GUI
    return openDesigner(argc, argv, files);
#else
    (void)argc;
    (void)argv;
    throw Error({}, "this build has no designer, since Qt was not found or switched off when it was configured",
                "install Qt 6 Widgets, Charts and Svg and configure again, or use a command: pipewright --help");
#endif
}

int run(int argc, char** argv)
{
    CLI::App app("Designs, predicts, runs and compares pipeline-parallel training schedules", "pipewright");
    app.set_version_flag("--version", "pipewright " PIPEWRIGHT_VERSION);
    std::vector<std::string> files;
    app.add_option("files", files, "without a command: designs and traces to open in the designer")->type_name("FILE");
    app.require_subcommand(0, 1);
    int exitCode = exitSuccess;
    addNewCommand(app, exitCode);
    addPredictCommand(app, exitCode);
    addCheckCommand(app, exitCode);
    addRunCommand(app, exitCode);
    addCompareCommand(app, exitCode);
    addExplainCommand(app, exitCode);
    addQueryCommand(app, exitCode);
    addCalibrateCommand(app, exitCode);
    addRenderCommand(app, exitCode);
    addExportCommand(app, exitCode);
    addImportCommand(app, exitCode);
    addSearchCommand(app, exitCode);
    addExperimentCommand(app, exitCode);
    addShardCommand(app, exitCode);
    addDevicesCommand(app, exitCode);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        // Help and version are errors to the parser and success to a person.
        return app.exit(error) == 0 ? exitSuccess : exitBadInput;
    }
    return app.get_subcommands().empty() ? openFiles(app, argc, argv, files) : exitCode;
}

} // namespace

int main(int argc, char** argv)
{
    keepFreedMemory();
    try {
        return run(argc, argv);
    } catch (const Finding& finding) {
        printDiagnostics(finding.diagnostics());
        return exitFinding;
    } catch (const Error& error) {
        printDiagnostics(error.diagnostics());
    } catch (const std::bad_alloc&) {
        printDiagnostics({{Severity::Error, {}, "out of memory", "use fewer microbatches, or a smaller model"}});
    } catch (const std::exception& error) {
        printDiagnostics({{Severity::Error, {}, error.what(), {}}});
    }
    return exitBadInput;
}
