// SPDX-License-Identifier: GPL-3.0-or-later
// The program: parses the command line, calls one command, and turns exceptions into diagnostics and an exit code.
// Without a command it opens the designer.
#include "app/blasthreads.h"
#include "app/command.h"
#include "app/terminal.h"
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
#include <system_error>

#include <unistd.h>

namespace {

using namespace pipewright;
using namespace pipewright::app;

int openFiles(const CommandLine& line, int argc, char** argv, const std::vector<std::string>& files)
{
    for (const std::string& file : files)
        if (!pathExists(file))
            throw Error(file, "is neither a command nor a file",
                        fmt::format("commands: {}", joined(line.commandNames(), ", ")));
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
    CommandLine line("pipewright", "Designs, predicts, runs and compares pipeline-parallel training schedules",
                     "pipewright " PIPEWRIGHT_VERSION);
    std::vector<std::string> files;
    line.withoutCommand()
        .option("files", files, "without a command: designs and traces to open in the designer")
        .typeName("FILE");
    int exitCode = exitSuccess;
    addNewCommand(line, exitCode);
    addPredictCommand(line, exitCode);
    addCheckCommand(line, exitCode);
    addRunCommand(line, exitCode);
    addCompareCommand(line, exitCode);
    addExplainCommand(line, exitCode);
    addQueryCommand(line, exitCode);
    addCalibrateCommand(line, exitCode);
    addRenderCommand(line, exitCode);
    addExportCommand(line, exitCode);
    addImportCommand(line, exitCode);
    addSearchCommand(line, exitCode);
    addExperimentCommand(line, exitCode);
    addShardCommand(line, exitCode);
    addDevicesCommand(line, exitCode);
    addProfileCommand(line, exitCode);
    switch (line.parse(argc, argv)) {
    case CommandLine::Outcome::Called: return exitCode;
    case CommandLine::Outcome::NoCommand: return openFiles(line, argc, argv, files);
    case CommandLine::Outcome::Informed: return exitSuccess;
    case CommandLine::Outcome::BadUsage: break;
    }
    return exitBadInput;
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
