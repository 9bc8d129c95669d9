// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cancel.h"
#include "app/command.h"
#include "app/modeloptions.h"
#include "app/noiseoptions.h"
#include "app/planfolder.h"
#include "app/plantext.h"
#include "app/progress.h"
#include "app/terminal.h"

#include "core/base/units.h"
#include "core/plan/plan.h"
#include "core/plan/planclusters.h"
#include "core/plan/plandifference.h"
#include "core/plan/planrefine.h"
#include "core/presets/modelfile.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>
#include <thread>

namespace pipewright::app {

namespace {

struct PlanCommandOptions {
    explicit PlanCommandOptions(CLI::App& command) : noise(command, {})
    {
        command.add_option("--model", model, "preset, Hugging Face config.json, model file")
            ->required()
            ->type_name("MODEL");
        command.add_option("--cluster", cluster, "preset or file: the devices and their links")
            ->required()
            ->type_name("CLUSTER");
        command.add_option("--devices", devices, "how many of them")->required()->type_name("N");
        command.add_option("--batch", batch, "sequences of a step, of all copies together")
            ->required()
            ->type_name("SEQUENCES");
        command.add_option("--sequence", sequence, "tokens of a sequence (default: the model's)")->type_name("S");
        command.add_option("--top", top, "plans in the list; those on the frontier of step and memory come besides")
            ->type_name("K")
            ->capture_default_str();
        command.add_option("--memory-limit", memoryLimit, "of a device (default: its memory)")->type_name("SIZE");
        command
            .add_option("--families", families,
                        "with commas between them (default: all that update once a step and whose order is fixed)")
            ->type_name("LIST");
        command.add_option("--pin", pins, "fixes dimensions: tensor=8,recompute=full")->type_name("KEY=VALUE,…");
        command.add_option("--why", why, "says where plans with this stand, or why there are none")
            ->type_name("KEY=VALUE");
        command
            .add_option("--what-if", whatIf,
                        "also plans with these changes, and says the difference between the two lists: "
                        "devices=96, batch, sequence, cluster=h200-nodes, memory_limit, slow_node=10%")
            ->type_name("KEY=VALUE,…");
        command
            .add_option("--refine", refine,
                        "so long of changes to the first plan that its space does not have: layers per stage, "
                        "recomputation by stage, offload, order of blocks; never called complete")
            ->type_name("T");
        modelOptions.addTo(command);
        command.add_flag("--node-dispatch", nodeDispatch, nodeDispatchMeaning);
        command.add_option("--expert-spread", expertSpread, expertSpreadMeaning)->type_name("FACTOR");
        command.add_option("--time-limit", timeLimit, "stops with the best so far (default: none)")->type_name("T");
        command.add_option("--threads", threads, "default: as many as there are processors")->type_name("N");
        command.add_option("--seed", seed, "of the samples under noise")->type_name("N")->capture_default_str();
        command.add_option("-o,--output", output, "folder for a design per plan")->type_name("FOLDER");
        command.add_flag("--resume", resume,
                         "go on with the plan of this folder that was stopped, killed or ran out of time");
        command.add_flag("--force", force, "replace designs in the folder");
        command.add_option("--progress", progress, "auto, bar, json (lines on standard error) or none")
            ->type_name("STYLE")
            ->capture_default_str();
        command.add_flag("--json", json, "print one JSON object");
    }
    ModelOptions modelOptions;
    std::string model, cluster, memoryLimit, families, pins, why, whatIf, refine, timeLimit, output, progress = "auto";
    int devices = 0, batch = 0, top = 10, threads = 0;
    std::optional<int> sequence;
    std::optional<double> expertSpread;
    std::uint64_t seed = 1;
    bool force = false, resume = false, json = false, nodeDispatch = false;
    NoiseOptions noise;
    double slowNode = 0; ///< the share by which one node is slower, of --what-if; 0: none is
};

std::vector<std::string> listOf(const std::string& text)
{
    std::vector<std::string> parts;
    for (std::size_t at = 0; at <= text.size() && !text.empty();) {
        const std::size_t end = std::min(text.find(',', at), text.size());
        parts.push_back(text.substr(at, end - at));
        at = end + 1;
    }
    return parts;
}

PlanRequest requestOf(const PlanCommandOptions& given)
{
    PlanRequest request;
    ModelFile model = loadModel(given.model);
    if (given.sequence && model.shape.architecture == Architecture::Table)
        throw Error("--sequence", "the layers of a table hold for the sequence that they are of", "leave it out");
    request.shape = std::move(model.shape);
    request.source = std::move(model.source);
    if (given.sequence)
        request.shape.sequence = *given.sequence;
    if (given.modelOptions.framework)
        request.shape.framework = *given.modelOptions.framework;
    if (given.modelOptions.precision)
        request.shape.setPrecision(*given.modelOptions.precision);
    if ((given.nodeDispatch || given.expertSpread) && request.shape.experts == 0)
        throw Error(given.nodeDispatch ? "--node-dispatch" : "--expert-spread",
                    "the model has no experts to which tokens are sent", "leave it out");
    if (given.expertSpread && !(*given.expertSpread >= 1 && *given.expertSpread <= request.shape.experts))
        throw Error("--expert-spread",
                    fmt::format("{} is not the most tokens of a copy over the mean", *given.expertSpread),
                    fmt::format("1 to {}, the model's experts", request.shape.experts));
    request.shape.parallel.expertSpread = given.expertSpread.value_or(request.shape.parallel.expertSpread);
    request.shape.parallel.nodeDispatch = request.shape.parallel.nodeDispatch || given.nodeDispatch;
    request.devices = given.devices;
    request.batch = given.batch;
    request.top = given.top;
    request.families = listOf(given.families);
    for (const std::string& each : listOf(given.pins))
        pin(request, each, "--pin");
    request.cluster = planClusters(given.cluster);
    if (given.slowNode > 0) {
        request.cluster = withSlowNode(request.cluster, given.slowNode);
        (void)request.cluster(1, 1); // a cluster without nodes is no fault of a plan
    }
    if (!given.memoryLimit.empty())
        request.memoryLimit = parseSize(given.memoryLimit, "--memory-limit");
    if (!given.timeLimit.empty())
        request.timeLimit = std::chrono::milliseconds(parseDuration(given.timeLimit, "--time-limit") / 1'000'000);
    request.threads =
        given.threads > 0 ? given.threads : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    request.noise = given.noise.noise(given.seed, Costs{});
    return request;
}

/// The options with the changes of --what-if.
PlanCommandOptions changed(PlanCommandOptions options)
{
    const std::string where = "--what-if", hint = "KEY=VALUE with devices, batch, sequence, cluster, memory_limit or "
                                                  "slow_node";
    for (const std::string& each : listOf(options.whatIf)) {
        const std::size_t at = each.find('=');
        const std::string key = each.substr(0, at), value = at == std::string::npos ? "" : each.substr(at + 1);
        const auto number = [&] {
            int found = 0;
            const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), found);
            if (error != std::errc() || end != value.data() + value.size() || found < 1)
                throw Error(where, fmt::format("\"{}\" changes nothing", each), hint);
            return found;
        };
        if (value.empty())
            throw Error(where, fmt::format("\"{}\" changes nothing", each), hint);
        if (key == "devices")
            options.devices = number();
        else if (key == "batch")
            options.batch = number();
        else if (key == "sequence")
            options.sequence = number();
        else if (key == "cluster")
            options.cluster = value;
        else if (key == "memory_limit")
            options.memoryLimit = value;
        else if (key == "slow_node")
            options.slowNode = parseShare(value, where);
        else
            throw Error(where, fmt::format("\"{}\" is nothing that can be changed", key), hint);
    }
    return options;
}

/// Throws Error for a time that is none.
RefineOptions refineOptionsOf(const PlanCommandOptions& options, const PlanRequest& request)
{
    RefineOptions refine;
    if (!options.refine.empty())
        refine.timeLimit = std::chrono::milliseconds(parseDuration(options.refine, "--refine") / 1'000'000);
    refine.threads = request.threads;
    refine.seed = options.seed;
    refine.isStopped = request.isStopped;
    return refine;
}

/// findPlans(), with its progress shown.
PlanResult findShowing(PlanRequest request, const std::string& style)
{
    ProgressPrinter printer(style);
    request.progress = [&](const PlanProgress& now) {
        const double share = now.settings > 0 ? static_cast<double>(now.done) / static_cast<double>(now.settings) : 1;
        printer.show(
            share,
            [&] {
                return fmt::format("{} of {} settings, best {}", now.done, now.settings,
                                   now.best > 0 ? formatDuration(now.best) : "none yet");
            },
            [&] {
                return Json{{"progress", share},
                            {"elapsed_s", now.seconds},
                            {"best_ns", now.best > 0 ? Json(now.best) : Json()}}
                    .dump();
            });
    };
    return findPlans(request);
}

} // namespace

void addPlanCommand(CLI::App& program, int& exitCode)
{
    CLI::App& command =
        *program.add_subcommand("plan", "Finds the best ways to train a model on so many devices, a design for each");
    const auto options = std::make_shared<PlanCommandOptions>(command);
    command.callback([options, &exitCode] {
        checkProgressStyle(options->progress);
        PlanRequest request = requestOf(*options);
        PlanRequest changedRequest = requestOf(options->whatIf.empty() ? *options : changed(*options));
        (void)refineOptionsOf(*options, request); // before the search
        std::optional<PlanFolder> folder;
        if (!options->output.empty())
            folder.emplace(options->output, options->force, options->resume, request);
        else if (options->resume)
            throw Error("--resume", "goes on with the plan of a folder", "name it with -o");
        const std::atomic<bool>* const cancelled = cancelOnSignals(); // an interruption returns the best so far
        request.isStopped = changedRequest.isStopped = [cancelled] { return cancelled->load(); };
        PlanRequest first = request;
        if (folder) {
            first.resumed = folder->resumed();
            first.save = [&folder](const PlanState& state) { folder->save(state); };
        }
        const PlanResult result = findShowing(first, options->progress);
        const std::vector<std::string> files = folder ? folder->write(result) : std::vector<std::string>();
        Json object = toJson(result, files, request.noise.has_value());
        if (!options->json) {
            print(result, request);
            if (folder && !(result.complete && result.frontierComplete))
                printText("The same command with --resume goes on from here.\n");
        }
        if (!options->refine.empty() && !result.plans.empty() && !cancelled->load()) {
            const RefinedPlan better = refined(request, result.plans.front(), refineOptionsOf(*options, request));
            const std::string file = folder ? folder->write(better) : std::string();
            object["refined"] = refinedJson(better, file);
            if (!options->json)
                printText("\n1, {}\n", refinedText(better));
        }
        if (!options->why.empty()) {
            PlanRequest fixed = request;
            pin(fixed, options->why, "--why");
            fixed.top = 1;
            const PlanResult with = findShowing(fixed, options->progress);
            object["answer"] = answerJson(options->why, with, result);
            if (!options->json)
                printAnswer(options->why, with, result);
        }
        if (!options->whatIf.empty() && !cancelled->load()) {
            const PlanResult other = findShowing(changedRequest, options->progress);
            const PlanDifference difference = differenceOf({request, result}, {changedRequest, other});
            object["what_if"] = whatIfJson(options->whatIf, difference, other);
            if (!options->json)
                printWhatIf(options->whatIf, difference, result.complete && other.complete);
        }
        if (options->json)
            printJson(object);
        if (result.plans.empty())
            throw Finding("plan",
                          (result.complete ? "no plan is possible" : "no plan was found before it stopped")
                              + mostlyBecause(result),
                          result.complete ? "use more devices, a smaller batch or sequence, or pin less"
                                          : "allow more time, or pin more");
        exitCode = exitSuccess;
    });
}

} // namespace pipewright::app
