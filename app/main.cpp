// SPDX-License-Identifier: GPL-3.0-or-later
// The program: parses the command line, calls one command, and turns exceptions into diagnostics and an exit code.
// Without a command it opens the designer.
#include "app/blasthreads.h"
#include "app/command.h"
#include "app/describedcommands.h"
#include "app/terminal.h"
#include "app/version.h"
#include "app/withqt.h"
#include "core/base/formattedtext.h"
#include "core/base/freedmemory.h"
#include "core/base/inputfile.h"
#include "core/base/outputfile.h"
#include "executor/cuda/loader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <csignal>
#include <cstdlib>
#include <exception>
#include <new>
#include <sstream>
#include <system_error>

#include <unistd.h>

namespace {

using namespace pipewright;
using namespace pipewright::app;

int openFiles(const CLI::App& program, int argc, char** argv, const std::vector<std::string>& files)
{
    std::vector<std::string> commands;
    for (const CLI::App* command : program.get_subcommands(nullptr))
        commands.push_back(command->get_name());
    for (const std::string& file : files)
        if (!pathExists(file))
            throw Error(file, "is neither a command nor a file", fmt::format("commands: {}", joined(commands, ", ")));
    return openDesigner(argc, argv, files);
}

int run(int argc, char** argv)
{
    CLI::App program("Designs, predicts, runs and compares pipeline-parallel training schedules", "pipewright");
    program.set_version_flag("--version", versionText());
    program.require_subcommand(0, 1);
    program.option_defaults()->disable_flag_override(); // --flag=VALUE is an error
    std::vector<std::string> files;
    program.add_option("files", files, "without a command: designs and traces to open in the designer")
        ->type_name("FILE");
    std::string generated;
    program
        .add_option("--generate", generated,
                    "prints the manual page, completions for a shell, or the options that the Python package knows")
        ->type_name(generatedKinds);
    int exitCode = exitSuccess;
    addNewCommand(program, exitCode);
    addPredictCommand(program, exitCode);
    addCheckCommand(program, exitCode);
    addRunCommand(program, exitCode);
    addCompareCommand(program, exitCode);
    addExplainCommand(program, exitCode);
    addQueryCommand(program, exitCode);
    addCalibrateCommand(program, exitCode);
    addRenderCommand(program, exitCode);
    addExportCommand(program, exitCode);
    addImportCommand(program, exitCode);
    addSearchCommand(program, exitCode);
    addPlanCommand(program, exitCode);
    addExperimentCommand(program, exitCode);
    addShardCommand(program, exitCode);
    addDevicesCommand(program, exitCode);
    addProfileCommand(program, exitCode);
    try {
        program.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        // For CLI11, help and version are errors; here they are successful outcomes.
        std::ostringstream output, errors;
        const int code = program.exit(error, output, errors);
        writeEscaped(stdout, output.str());
        writeEscaped(stderr, errors.str());
        return code == 0 ? exitSuccess : exitBadInput;
    }
    if (!generated.empty()) {
        printText("{}", generatedText(generated, program));
        return exitSuccess;
    }
    return program.get_subcommands().empty() ? openFiles(program, argc, argv, files) : exitCode;
}

/// run(), with exceptions reported and turned into an exit code.
int runTelling(int argc, char** argv)
{
    try {
        return run(argc, argv);
    } catch (const Finding& finding) {
        printDiagnostics(finding.diagnostics());
        return exitFinding;
    } catch (const Error& error) {
        printDiagnostics(error.diagnostics());
    } catch (const std::bad_alloc&) {
        printDiagnostics({{Severity::Error,
                           {},
                           "out of memory",
                           "allow more memory (ulimit -v), or use fewer microbatches or a smaller model"}});
    } catch (const std::system_error& error) {
        const bool starved = error.code() == std::errc::resource_unavailable_try_again;
        printDiagnostics({{Severity::Error,
                           {},
                           starved ? std::string("a thread cannot be started: ") + error.what() : error.what(),
                           starved ? "allow more threads or memory (ulimit -u, ulimit -v)" : ""}});
    } catch (const std::exception& error) {
        printDiagnostics({{Severity::Error, {}, error.what(), {}}});
    }
    return exitBadInput;
}

extern "C" void endBySignal(int signal)
{
    removeUnfinishedFiles();
    std::raise(signal); // with its default effect
}

/// Where nothing else takes these signals.
void cleanUpOnSignals()
{
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
        struct sigaction before {
        }, action{};
        action.sa_handler = endBySignal;
        action.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER);
        if (sigaction(signal, nullptr, &before) == 0 && before.sa_handler == SIG_DFL)
            sigaction(signal, &action, nullptr);
    }
}

/// For want of memory in a function that may not throw, as some of Qt's.
[[noreturn]] void endAtOnce()
{
    try {
        if (std::current_exception())
            throw;
    } catch (const std::bad_alloc&) {
        constexpr std::string_view text = "error: out of memory (allow more memory (ulimit -v))\n";
        removeUnfinishedFiles();
        (void)!::write(STDERR_FILENO, text.data(), text.size());
        _exit(exitBadInput);
    } catch (...) {
    }
    std::abort();
}

} // namespace

int main(int argc, char** argv)
{
    restoreEnvironment();
    setDriverEnvironment();
    keepFreedMemory();
    reserveStandardStreams();
    std::signal(SIGPIPE, SIG_IGN); // a run continues when nobody reads its output; the exit code shows it
    std::signal(SIGXFSZ, SIG_IGN); // writing beyond the file size limit then fails with an error
    cleanUpOnSignals();
    std::set_terminate(endAtOnce);
    endProcess(runTelling(argc, argv));
}
