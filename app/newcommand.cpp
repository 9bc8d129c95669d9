// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/command.h"
#include "app/inlinedesign.h"
#include "app/terminal.h"

#include "core/design/costorigins.h"
#include "core/files/designfile.h"
#include "executor/run/backendcheck.h"

#include <fmt/format.h>

#include <memory>

namespace pipewright::app {

namespace {

struct NewOptions {
    explicit NewOptions(CLI::App& command) : design(command, false)
    {
        command.add_option("-o,--output", output, "the design file to write")->required()->type_name("FILE");
        command.add_flag("--force", force, "replace the file if it exists");
        command.add_flag("--json", json, "print one JSON object");
    }
    InlineDesign design;
    std::string output;
    bool force = false, json = false;
};

} // namespace

void addNewCommand(CLI::App& program, int& exitCode)
{
    CLI::App& command = *program.add_subcommand("new", "Writes a design of one of the published families");
    const auto options = std::make_shared<NewOptions>(command);
    command.callback([options, &exitCode] {
        std::optional<UnevenEnds> uneven;
        const Design design = options->design.make(nullptr, &uneven).design;
        writeDesign(design, options->output, options->force);
        const Schedule& schedule = design.schedule;
        if (options->json)
            printJson({{"design", options->output},
                       {"family", schedule.family},
                       {"devices", schedule.devices()},
                       {"stages", schedule.stages()},
                       {"microbatches", schedule.microbatches},
                       {"blocks", schedule.blocks()},
                       {"estimated", estimatesText(design)},
                       {"uneven", uneven ? toJson(*uneven) : Json()}});
        else {
            printText("{}: {}, {} blocks on {} devices\n", options->output, design.name, schedule.blocks(),
                      schedule.devices());
            if (const std::string estimates = estimatesText(design); !estimates.empty())
                printText("estimated, not measured: {}\n", estimates);
        }
        if (schedule.sequencePieces > 1) { // faults of what the family requires; others concern the model alone
            Diagnostics why = whyNotTrainable(design);
            std::erase_if(why, [](const Diagnostic& reason) { return reason.where != "model.sequence_pieces"; });
            for (Diagnostic& reason : why)
                reason.hint = "use a decoder, or a family with whole sequences, such as 1f1b";
            printDiagnostics(notesOfTimes(why));
        }
        exitCode = exitSuccess;
    });
}

} // namespace pipewright::app
