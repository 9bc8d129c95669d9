// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/command.h"

#include "core/formats/designfile.h"
#include "core/formats/exchange.h"
#include "core/formats/textfile.h"

#include <fmt/format.h>

#include <memory>

namespace pipewright::app {

namespace {

struct ImportCommandOptions {
    explicit ImportCommandOptions(CLI::App& command)
    {
        std::string formats = "format of the file (default: found out from its content):";
        for (const ImportFormat& format : importFormats())
            formats += fmt::format("\n{} ({})", format.name, format.title);
        command.add_option("file", file, "the other tool's file")->required()->type_name("FILE");
        command.add_option("-o,--output", output, "the design file to write")->required()->type_name("FILE");
        command.add_option("--from", from, formats)->type_name("FORMAT");
        command.add_flag("--legacy-letters", legacyLetters,
                         "PyTorch files from before late 2024: B is the input gradient, BW the full backward");
        command.add_option("--name", name, "the design's name (default: the file's)")->type_name("NAME");
        command.add_flag("--force", force, "replace the file if it exists");
        command.add_flag("--json", json, "print one JSON object");
    }
    std::string file, output, from, name;
    bool legacyLetters = false, force = false, json = false;
};

void run(const ImportCommandOptions& options)
{
    ImportOptions importOptions;
    importOptions.format = options.from;
    importOptions.letters = options.legacyLetters ? PytorchLetters::Legacy : PytorchLetters::Current;
    Imported imported = importDesign(readTextFile(options.file), options.file, importOptions);
    if (!options.name.empty())
        imported.design.name = options.name;
    writeDesign(imported.design, options.output, options.force);
    printDiagnostics(imported.diagnostics);
    const Schedule& schedule = imported.design.schedule;
    if (options.json)
        printJson({{"design", options.output},
                   {"devices", schedule.devices()},
                   {"stages", schedule.stages()},
                   {"microbatches", schedule.microbatches},
                   {"blocks", schedule.blocks()},
                   {"backward", schedule.backward == BackwardStyle::Full ? "full" : "split"}});
    else
        fmt::print("{}: {} blocks of {} stages on {} devices, {} microbatches\n", options.output, schedule.blocks(),
                   schedule.stages(), schedule.devices(), schedule.microbatches);
}

} // namespace

void addImportCommand(CLI::App& app, int& exitCode)
{
    CLI::App* command = app.add_subcommand("import", "Writes a design made from another tool's schedule file");
    const auto options = std::make_shared<ImportCommandOptions>(*command);
    command->callback([options, &exitCode] {
        run(*options);
        exitCode = exitSuccess;
    });
}

} // namespace pipewright::app
