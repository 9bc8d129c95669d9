// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/command.h"
#include "app/picture.h"
#include "app/stepchoice.h"

#include "traces/tracereader.h"

#include <fmt/format.h>

#include <memory>

namespace pipewright::app {

namespace {

struct RenderOptions {
    explicit RenderOptions(CLI::App& command)
    {
        command.add_option("file", file, "the design file")->required()->type_name("FILE");
        command.add_option("--trace", trace, "a trace of this design, drawn under the prediction")->type_name("TRACE");
        step.addTo(command);
        command.add_option("-o,--output", picture, "the picture to write (.svg or .png)")->required()->type_name("PICTURE");
        command.add_option("--width", width, "of the picture, in pixels (1400)")->type_name("PIXELS");
        command.add_flag("--dark", dark, "draw on a dark ground");
        command.add_flag("--force", force, "replace the picture if it exists");
        command.add_flag("--json", json, "print one JSON object");
    }
    std::string file, trace, picture;
    StepChoice step;
    int width = 1400;
    bool dark = false, force = false, json = false;
};

} // namespace

void addRenderCommand(CLI::App& app, int& exitCode)
{
    CLI::App* command = app.add_subcommand("render", "Draws the timeline, with a measured one under it if there is a trace");
    const auto options = std::make_shared<RenderOptions>(*command);
    command->callback([options, &exitCode] {
        checkPictureName(options->picture, options->force);
        const LocatedDesign located = readLocatedDesign(options->file);
        const Prediction prediction = predictOrFind(located);
        PictureOptions picture;
        picture.dark = options->dark;
        picture.width = options->width;
        Timeline measured;
        if (!options->trace.empty()) {
            const TraceReader trace(options->trace);
            StepChoice::Chosen chosen = options->step.of(trace, prediction.program);
            measured = std::move(chosen.timeline);
            picture.measured = &measured;
            picture.measuredSource = measuredSource(options->trace, chosen.name);
        }
        writePicture(options->picture, options->force, located.design, prediction, picture);
        if (options->json)
            printJson({{"picture", options->picture}, {"design", options->file}, {"measured", picture.measured != nullptr}});
        else
            fmt::print("{}: {}\n", options->picture, located.design.name);
        exitCode = exitSuccess;
    });
}

} // namespace pipewright::app
