// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/command.h"
#include "app/picture.h"
#include "app/stepchoice.h"
#include "app/terminal.h"

#include "traces/store/tracereader.h"

#include <fmt/format.h>

#include <memory>

namespace pipewright::app {

namespace {

struct RenderOptions {
    explicit RenderOptions(Command command)
    {
        command.option("file", file, "the design file").required().typeName("FILE");
        command.option("--trace", trace, "a trace of this design, drawn under the prediction").typeName("TRACE");
        step.addTo(command);
        command.option("-o,--output", picture, "the picture to write (.svg or .png)").required().typeName("PICTURE");
        command.option("--width", width, "of the picture, in pixels (1400)").typeName("PIXELS");
        command.flag("--dark", dark, "draw on a dark ground");
        command.flag("--force", force, "replace the picture if it exists");
        command.flag("--json", json, "print one JSON object");
    }
    std::string file, trace, picture;
    StepChoice step;
    int width = 1400;
    bool dark = false, force = false, json = false;
};

} // namespace

void addRenderCommand(CommandLine& line, int& exitCode)
{
    Command command = line.add("render", "Draws the timeline, with a measured one under it if there is a trace");
    const auto options = std::make_shared<RenderOptions>(command);
    command.onCall([options, &exitCode] {
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
            printJson(
                {{"picture", options->picture}, {"design", options->file}, {"measured", picture.measured != nullptr}});
        else
            printText("{}: {}\n", options->picture, located.design.name);
        exitCode = exitSuccess;
    });
}

} // namespace pipewright::app
