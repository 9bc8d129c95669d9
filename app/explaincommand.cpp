// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/blocktimechoice.h"
#include "app/command.h"
#include "app/devicetimetext.h"
#include "app/explanationtext.h"
#include "app/originstext.h"
#include "app/stepchoice.h"
#include "app/terminal.h"

#include "core/predict/evaluator.h"
#include "traces/analysis/missingblocks.h"
#include "traces/analysis/stepvariation.h"
#include "traces/analysis/whatif.h"
#include "traces/store/tracereader.h"

#include <fmt/format.h>

#include <memory>
#include <optional>

namespace pipewright::app {

namespace {

struct ExplainOptions {
    explicit ExplainOptions(CLI::App& command)
    {
        command.add_option("trace", trace, "a recorded or imported trace")->required()->type_name("TRACE");
        command.add_option("--design", design, "the design to explain it by (the one that the trace holds)")
            ->type_name("FILE");
        step.addTo(command);
        stretch.addTo(command);
        command
            .add_option("--what-if", changes,
                        "replay the step with a change: F1=2ms, F1.3=0.5x, device1=0.8x, link0-1=50us, host1=0ns; may "
                        "be repeated")
            ->type_name("WHAT=VALUE");
        command.add_option("--order", order, "replay the measured blocks in the order of this design")
            ->type_name("FILE");
        command
            .add_option("--kernels", kernels,
                        "another tool's trace: so many kernels by name, those that took most (12); --json has all")
            ->check(CLI::Range(0, 1 << 20))
            ->type_name("N");
        command.add_flag("--json", json, "print one JSON object");
    }
    std::string trace, design, order;
    std::vector<std::string> changes;
    StepChoice step;
    StretchChoice stretch;
    int kernels = 12;
    bool json = false;
};

Json toJson(const WhatIf& answer)
{
    return {{"before_ns", answer.before}, {"after_ns", answer.after}, {"changed", answer.changed}};
}

void print(const WhatIf& answer, const std::string& what)
{
    printText("\n{}: {} -> {} ({})\n", what, formatDuration(answer.before), formatDuration(answer.after),
              signedDuration(answer.after - answer.before));
}

int run(const ExplainOptions& options)
{
    if (options.design.empty() && holdsActivities(options.trace)) {
        if (!options.changes.empty() || !options.order.empty())
            throw Error(options.trace, "another tool's trace holds no design to replay",
                        "name the design of its blocks with --design");
        explainActivities(options.trace, options.step.number(), options.stretch,
                          static_cast<std::size_t>(options.kernels), options.json);
        return exitSuccess;
    }
    if (options.stretch.given())
        throw Error("--from", "a design is explained by whole steps", "choose one with --step");
    const TraceReader trace(options.trace);
    printDiagnostics(trace.whatMayBeMissing());
    LocatedDesign located;
    if (options.design.empty())
        located.design = trace.design();
    else
        located = readLocatedDesign(options.design);
    const Prediction prediction = predictOrFind(located);
    const StepChoice::Chosen chosen = options.step.of(trace, prediction.program);
    const Timeline& measured = chosen.timeline;
    const StepLengths lengths = stepLengths(trace.steps());
    const std::vector<AchievedRate> rates =
        achievedRates(workedDesign(trace, located.design), prediction.program, measured);
    const Explanation explanation = explain(prediction.program, located.design.costs, prediction.timeline, measured,
                                            coreWaitIn(trace.steps(), chosen.step));
    printDiagnostics(warningOfMissing(prediction.program, measured, options.trace, chosen.name));

    std::vector<Nanoseconds> durations;
    const Evaluator evaluator(prediction.program, located.design.costs);
    for (TaskId t = 0; t < prediction.program.tasks.size(); ++t)
        durations.push_back(evaluator.duration(t));
    const Replay replay(prediction.program, measured, durations);
    std::optional<WhatIf> changed, ordered;
    if (!options.changes.empty())
        changed = whatIf(prediction.program, replay, options.changes);
    if (!options.order.empty()) {
        const LocatedDesign other = readLocatedDesign(options.order);
        ordered = inOtherOrder(prediction.program, replay, predictOrFind(other).program, located.design.costs);
    }
    // GPU activity belongs to one real step, so for the typical step that of the median length is shown.
    const int gpuStep = chosen.step >= 0 ? chosen.step : trace.medianStep();
    const std::optional<KernelTotals> kernels = kernelTotals(trace, prediction.program, gpuStep);
    const std::vector<GpuGaps> gaps = kernels && kernels->kind == WorkKind::Kernels
                                          ? gpuGaps(prediction.program, trace.gpuWork(prediction.program, gpuStep),
                                                    trace.timeline(prediction.program, gpuStep))
                                          : std::vector<GpuGaps>();
    if (options.json) {
        Json object{{"trace", options.trace}, {"step", chosen.json()}, {"steps", app::toJson(lengths)}};
        object.update(app::toJson(prediction.program, explanation));
        object["costs"] = originsToJson(located.design);
        object["unmatched"] = missingBlocks(prediction.program, measured).size();
        object["rates"] = app::toJson(rates);
        object["kernels"] = kernels ? app::toJson(*kernels) : Json();
        object["gpus"] = app::toJson(gaps);
        if (changed)
            object["what_if"] = toJson(*changed);
        if (ordered)
            object["other_order"] = toJson(*ordered);
        printJson(object);
        return exitSuccess;
    }
    printText("{}: ", chosen.name);
    app::print(located.design, prediction.program, explanation);
    printText("\npredicted by: {}\n", located.design.costs.source);
    printOrigins(located.design);
    if (kernels) {
        if (kernels->kind == WorkKind::Kernels)
            app::print(located.design, gaps);
        app::print(*kernels);
    }
    app::print(rates, located.design.cluster);
    app::print(lengths);
    if (changed)
        print(*changed, "what if");
    if (ordered)
        print(*ordered, "in the order of " + options.order + ", without gaps on either side");
    return exitSuccess;
}

} // namespace

void addExplainCommand(CLI::App& program, int& exitCode)
{
    CLI::App& command = *program.add_subcommand("explain", "Explains why a measured step took as long as it did");
    const auto options = std::make_shared<ExplainOptions>(command);
    command.callback([options, &exitCode] { exitCode = run(*options); });
}

} // namespace pipewright::app
