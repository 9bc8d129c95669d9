// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/command.h"
#include "app/picture.h"
#include "app/stepchoice.h"
#include "app/terminal.h"
#include "core/base/formattedtext.h"

#include "traces/analysis/missingblocks.h"
#include "traces/store/tracereader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <deque>
#include <memory>

namespace pipewright::app {

namespace {

struct RenderOptions {
    explicit RenderOptions(CLI::App& command)
    {
        command.add_option("files", files, "the design files, drawn under one another on one time axis")
            ->required()
            ->type_name("FILE...");
        command
            .add_option("--trace", traces, "a trace of the first design; again: of the second, and so on; - for none")
            ->type_name("TRACE")
            ->allow_extra_args(false);
        step.addTo(command);
        command.add_option("-o,--output", path, "the picture to write: .svg, .pdf, .png, or .html for an animation")
            ->required()
            ->type_name("PICTURE");
        command.add_option("--title", titles, "of the first design (its name); again: of the second, and so on")
            ->type_name("TEXT")
            ->allow_extra_args(false);
        picture.addTo(command);
        command.add_flag("--force", force, "replace the picture if it exists");
        command.add_flag("--json", json, "print one JSON object");
    }
    std::vector<std::string> files, traces, titles;
    std::string path;
    StepChoice step;
    PictureChoice picture;
    bool force = false, json = false;
};

/// A design with the data that its picture needs.
struct Drawn {
    LocatedDesign located;
    Prediction prediction;
    Timeline measured;
};

void checkCount(const char* option, std::size_t given, std::size_t files)
{
    if (given > files)
        throw Error(option, fmt::format("{} for {} design file{}", given, files, files == 1 ? "" : "s"),
                    "at most one for each, in their order");
}

void render(const RenderOptions& options)
{
    checkPictureName(options.path, options.force);
    checkCount("--trace", options.traces.size(), options.files.size());
    checkCount("--title", options.titles.size(), options.files.size());
    const PictureOptions look = options.picture.options(options.path);
    const double dotsPerInch = options.picture.dotsPerInch(options.path);
    const double seconds = options.picture.seconds(options.path);
    std::deque<Drawn> drawn; // panels refer to its elements
    std::vector<PicturePanel> panels;
    for (std::size_t i = 0; i < options.files.size(); ++i) {
        LocatedDesign located = readLocatedDesign(options.files[i]);
        Prediction prediction = predictOrFind(located);
        Drawn& each = drawn.emplace_back(Drawn{std::move(located), std::move(prediction), {}});
        PicturePanel& panel = panels.emplace_back(each.located.design, each.prediction);
        if (i < options.titles.size())
            panel.title = options.titles[i];
        if (i >= options.traces.size() || options.traces[i] == "-")
            continue;
        const TraceReader trace(options.traces[i]);
        StepChoice::Chosen chosen = options.step.of(trace, each.prediction.program);
        printDiagnostics(warningOfMissing(each.prediction.program, chosen.timeline, options.traces[i], chosen.name));
        each.measured = std::move(chosen.timeline);
        panel.measured = &each.measured;
        panel.measuredSource = measuredSource(options.traces[i], chosen.name);
    }
    writePicture(options.path, options.force, drawPicture(panels, look), dotsPerInch, seconds);

    const auto isMeasured = [](const PicturePanel& panel) { return panel.measured != nullptr; };
    const bool anyMeasured = std::any_of(panels.begin(), panels.end(), isMeasured);
    if (options.json) {
        Json designs = Json::array();
        for (const std::string& file : options.files)
            designs.push_back(file);
        printJson({{"picture", options.path},
                   {"design", options.files.front()},
                   {"designs", designs},
                   {"measured", anyMeasured}});
        return;
    }
    std::vector<std::string> names;
    for (const Drawn& each : drawn)
        names.push_back(each.located.design.name);
    printText("{}: {}\n", options.path, joined(names, ", "));
}

} // namespace

void addRenderCommand(CLI::App& program, int& exitCode)
{
    CLI::App& command = *program.add_subcommand(
        "render", "Draws timelines: of designs, of runs, several under one another, for a page or as animation");
    const auto options = std::make_shared<RenderOptions>(command);
    command.callback([options, &exitCode] {
        render(*options);
        exitCode = exitSuccess;
    });
}

} // namespace pipewright::app
