// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/backendmemory.h"
#include "app/command.h"
#include "app/inlinedesign.h"
#include "app/noiseoptions.h"
#include "app/originstext.h"
#include "app/predictionjson.h"
#include "app/table.h"
#include "app/terminal.h"

#include "core/base/formattedtext.h"
#include "core/design/costorigins.h"
#include "core/design/knownerror.h"
#include "core/design/stageplans.h"
#include "core/model/parallelism.h"
#include "core/predict/bubblerates.h"
#include "core/predict/busqueues.h"
#include "core/predict/criticalpath.h"
#include "core/predict/designcheck.h"
#include "core/predict/leftout.h"
#include "core/predict/stagememory.h"
#include "core/predict/throughput.h"
#include "core/presets/scaledshape.h"
#include "core/program/pairtimes.h"
#include "core/program/weightreport.h"
#include "core/search/tradeoffs.h"
#include "executor/run/backendcheck.h"
#include "executor/run/grouprun.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <optional>

namespace pipewright::app {

namespace {

Parallelism parallelismOf(const Design& design)
{
    return design.workload ? design.workload->shape.parallel : Parallelism{};
}

FrameworkMemory frameworkOf(const Design& design)
{
    return design.workload ? design.workload->shape.framework : FrameworkMemory{};
}

/// For more blocks, all buffers take much longer than the prediction.
bool isLong(const Design& design)
{
    constexpr std::int64_t mostBlocks = 100'000;
    return design.schedule.blocks() > mostBlocks;
}

std::int64_t countOf(const Program& program, TaskKind kind)
{
    return std::count_if(program.tasks.begin(), program.tasks.end(),
                         [kind](const Task& task) { return task.kind == kind; });
}
std::int64_t offloadCount(const Program& program)
{
    return countOf(program, TaskKind::Offload);
}

/// Among drawn replicas, or over copies that are only counted.
std::int64_t gatherCount(const Program& program)
{
    return countOf(program, program.replicas() > 1 ? TaskKind::CopyWeightsOut : TaskKind::Gather);
}
std::int64_t sumCount(const Program& program)
{
    return countOf(program, program.replicas() > 1 ? TaskKind::ReplicaSum : TaskKind::ReduceGradients);
}

Json zeroToJson(const Program& program)
{
    const Zero& zero = program.zero;
    Json object{{"level", zero.level}, {"over", nameOf(zero.over)}};
    if (zero.sharesParameters()) {
        object["reshard"] = zero.reshard.every ? Json("always") : Json(zero.reshard.stages);
        object["prefetch"] = zero.prefetch;
    }
    if (zero.sharesGradients())
        object["reduce"] = nameOf(zero.reduce);
    object["gathers"] = gatherCount(program);
    object["gradient_sums"] = sumCount(program);
    return object;
}

/// The members' own program; nothing when the design has no groups, or none that runs member by member.
struct OfMembers {
    Prediction prediction;
    std::vector<std::vector<double>> shares; ///< per stage
};
std::optional<OfMembers> memberPrediction(const Design& design)
{
    if (!runsMemberByMember(design))
        return std::nullopt;
    const GroupRun run(design, whyNotTrainable(design).empty());
    OfMembers found{predictMembers(run.members), {}};
    for (const sharding::SharedStage& stage : run.stages.plans)
        found.shares.push_back(stage.plan.ratios.front());
    return found;
}

/// "megatron, as stated", or "hap, found".
std::string planText(const sharding::StatedPlan& plan)
{
    return fmt::format("{}, {}", nameOf(plan.strategy), plan.program.empty() ? "found" : "as stated");
}

/// `ofMembers`: for a design with groups; the blocks and the critical path are those of the groups.
Json toJson(const Design& design, const Prediction& prediction, const OfMembers* ofMembers, const MemoryCheck& held)
{
    const Parallelism parallel = parallelismOf(design);
    const std::size_t members = parallel.members();
    const Program& program = prediction.program;
    const Metrics& metrics = ofMembers ? ofMembers->prediction.metrics : prediction.metrics;
    Json object;
    object["family"] = design.schedule.family;
    object["devices"] = metrics.devices.size() * members;
    if (ofMembers) {
        object["groups"] = {{"count", program.devices.size()}, {"makespan_ns", prediction.metrics.makespan}};
        for (int s = 0; s < program.stages(); ++s) {
            const sharding::StatedPlan plan = planOfStage(design, s);
            object["plans"].push_back({{"stage", s},
                                       {"strategy", nameOf(plan.strategy)},
                                       {"stated", !plan.program.empty()},
                                       {"ratios", ofMembers->shares[s]}});
        }
    }
    object["stages"] = program.stages();
    object["microbatches"] = program.microbatches / program.sequencePieces;
    object["blocks"] = program.computeCount();
    object["transfers"] = program.transferCount();
    object["makespan_ns"] = metrics.makespan;
    object["span_ns"] = metrics.span;
    object["ideal_ns"] = metrics.ideal;
    for (const BubbleRate& rate : bubbleRates)
        object["bubble"][std::string(rate.key)] = metrics.*rate.value;
    for (const Recompute recompute : program.recompute)
        object["recompute"].push_back(nameOf(recompute));
    if (!program.offload.empty()) {
        object["offload"] = program.offload;
        object["offloads"] = offloadCount(program);
    }
    if (program.zero.level > 0)
        object["zero"] = zeroToJson(program);
    if (!program.busOfLink.empty())
        object["buses"] = {{"names", busNames(program)}, {"discipline", busDiscipline()}};
    if (program.communication != Communication::Overlapped)
        object["communication"] = nameOf(program.communication);
    if (!(parallel == Parallelism{}))
        object["parallel"] = {{"tensor", parallel.tensor},
                              {"sequence", parallel.sequence},
                              {"context", parallel.context},
                              {"expert", parallel.expert},
                              {"folded_experts", parallel.foldedExperts},
                              {"node_dispatch", parallel.nodeDispatch},
                              {"data", parallel.data},
                              {"overlap", parallel.overlap},
                              {"expert_spread", parallel.expertSpread},
                              {"devices_in_all", program.devices.size() * members * parallel.data}};
    if (design.workload)
        object["precision"] = nameOf(design.workload->shape.precision());
    const FrameworkMemory framework = frameworkOf(design);
    if (framework != FrameworkMemory{})
        object["framework"] = {{"name", nameOf(framework)}, {"keeps", wordsOf(framework)}};
    const std::vector<DeviceMemory> kinds =
        ofMembers || isLong(design) ? std::vector<DeviceMemory>{} : memoryBreakdown(design, predict(design)).devices;
    if (design.workload && design.costs.isFormula()) {
        object["tokens_per_second"] = tokensPerSecond(design, metrics.makespan);
        if (design.workload->shape.architecture != Architecture::Table) // a table has no FLOPs
            object["model_flops_utilization"] = modelFlopsUtilization(design, metrics.makespan);
    }
    object["costs"] = originsToJson(design);
    if (!design.schedule.overlaps.empty())
        object["overlapped_pairs"] = pairLengthsText(design.schedule, design.costs);
    const bool gaps = design.costs.hasHostGaps();
    for (const HostGaps& before : design.costs.hostGaps) {
        Json entry;
        for (const Op op : allOps)
            entry[std::string(timeKey(op)) + "_ns"] = before.before[indexOf(op)];
        object["costs"]["host_gaps"].push_back(std::move(entry));
    }
    object["per_device"] = Json::array();
    for (std::size_t device = 0; device < metrics.devices.size() * members; ++device) {
        const std::size_t group = device / members; // all members of a group are alike
        const DeviceMetrics& d = metrics.devices[group];
        Json entry{{"device", device},
                   {"busy_ns", d.busy},
                   {"idle_ns", d.idle},
                   {"span_ns", d.span},
                   {"peak_activations", d.peakActivations},
                   {"peak_bytes", d.peakBytes}};
        if (!kinds.empty())
            entry["peak_by_kind"] = byKind(kinds[group]);
        if (const Bytes reserved = reservedBytes(d.peakBytes, framework); reserved > 0)
            entry["reserved_bytes"] = reserved;
        if (gaps)
            entry["host_ns"] = metrics.idleCauses[group].host;
        if (const Nanoseconds copies = metrics.idleCauses[group].copies; copies > 0)
            entry["copies_ns"] = copies;
        if (!program.offload.empty())
            entry["host_peak_bytes"] = program.devices[group].hostPeakBytes;
        if (members > 1)
            entry["group"] = group;
        if (ofMembers)
            entry["group"] = ofMembers->prediction.program.groupOfDevice[device];
        object["per_device"].push_back(std::move(entry));
    }
    if (held.memory.empty())
        object["not_allocated"] = held.reason;
    else
        addHeldMemory(object, held.memory);
    if (program.versioned())
        object["weights"] = weightsToJson(program);
    object["critical_path"] = Json::array();
    for (const TaskId id : criticalPath(program, prediction.timeline)) {
        const Task& task = program.tasks[id];
        if (task.kind == TaskKind::Compute)
            object["critical_path"].push_back({{"device", task.device}, {"block", toString(task.block())}});
    }
    return object;
}

Json scaleToJson(const ScaleReport& scale)
{
    Json object{
        {"fields", Json::array()}, {"full_makespan_ns", scale.fullMakespan}, {"full_peak_bytes", Json::array()}};
    for (const ScaledField& field : scale.fields)
        object["fields"].push_back({{"key", field.key}, {"before", field.before}, {"after", field.after}});
    for (const Bytes bytes : scale.fullPeaks)
        object["full_peak_bytes"].push_back(bytes);
    return object;
}

void print(const Design& design, const Prediction& prediction, const OfMembers* ofMembers, const MemoryCheck& held,
           const std::string& backend)
{
    const Program& program = prediction.program;
    const Metrics& metrics = ofMembers ? ofMembers->prediction.metrics : prediction.metrics;
    printText("{}: {} on {} devices, {} stages, {} microbatches\n", design.name, design.schedule.family,
              program.devices.size(), program.stages(), program.microbatches / program.sequencePieces);
    printText("{} blocks, {} transfers; costs: {}\n", program.computeCount(), program.transferCount(),
              design.costs.source);
    printOrigins(design);
    if (const std::vector<std::string> list = leftOut(design); !list.empty())
        printText("left out: {}\n", joined(list, "; "));
    if (const std::string pairs = pairLengthsText(design.schedule, design.costs); !pairs.empty())
        printText("overlapped pairs: {}\n", pairs);
    const std::string gaps = hostGapsText(design);
    if (!gaps.empty())
        printText("the host takes {}\n", gaps);
    if (!program.offload.empty())
        printText("stages {} offload {} of {} microbatches (the others have no time for it); {} in the host's memory\n",
                  pipewright::textOf(program.offload), offloadCount(program),
                  std::count(program.offload.begin(), program.offload.end(), true) * program.microbatches,
                  formatSize(std::accumulate(
                      program.devices.begin(), program.devices.end(), Bytes{0},
                      [](Bytes sum, const Program::Device& device) { return sum + device.hostPeakBytes; })));
    if (!program.busOfLink.empty())
        printText("shared by transfers: {}; {}\n", busNames(program), busDiscipline());
    if (const std::string streams = streamSentence(program); !streams.empty())
        printText("{}\n", streams);
    if (const Parallelism parallel = parallelismOf(design); !(parallel == Parallelism{}))
        printText("{}: {} on each device of the schedule, {} in all\n", textOf(parallel),
                  parallel.members() == 1 ? "one" : fmt::format("a group of {}", parallel.members()),
                  static_cast<std::int64_t>(program.devices.size()) * parallel.devicesPerStage());
    if (program.zero.level > 0)
        printText("{}: {} gathers and {} sums of gradients {}\n", textOf(program.zero), gatherCount(program),
                  sumCount(program),
                  program.replicas() > 1 ? fmt::format("among {} replicas", program.replicas())
                                         : "over copies that are only counted");
    const FrameworkMemory framework = frameworkOf(design);
    if (productsOf(design) != ProductType::Own)
        printText(
            "products in {}: those of the layers' matrices{}; attention's own, routers, embedding and head in bf16; "
            "predicted, not trained here\n",
            nameOf(productsOf(design)),
            design.workload->shape.narrowParameters ? ", whose parameters exist in that type alone" : "");
    if (framework != FrameworkMemory{})
        printText("memory as {} keeps it: {}\n", nameOf(framework), joined(wordsOf(framework), "; "));
    if (ofMembers)
        printText("{} members of groups, who wait for each other at collectives only (the groups' blocks one after "
                  "the other: {})\n",
                  metrics.devices.size(), formatDuration(prediction.metrics.makespan));
    for (int s = 0; ofMembers && s < program.stages(); ++s)
        if (groupOfStage(design, s)) {
            std::vector<std::string> shares;
            for (const double share : ofMembers->shares[s])
                shares.push_back(fmt::format("{:.3f}", share));
            printText("stage {}: plan {}; shares {}\n", s, planText(planOfStage(design, s)), joined(shares, " : "));
        }
    printText("\n");
    const std::pair<std::string_view, std::string> lengths[] = {{"makespan", formatDuration(metrics.makespan)},
                                                                {"span", formatDuration(metrics.span)},
                                                                {},
                                                                {"ideal", formatDuration(metrics.ideal)}};
    for (std::size_t i = 0; i < bubbleRates.size(); ++i)
        printText("{:<10}{:>10}   {:<28} {:>8}  {:<13}  {}\n", lengths[i].first, lengths[i].second,
                  bubbleRates[i].formula, percent(metrics.*bubbleRates[i].value), bubbleRates[i].key,
                  bubbleRates[i].counts);
    printText("\n");
    std::vector<std::string> head{"device", "busy", "idle", "span", "activations", "peak memory"};
    if (!gaps.empty())
        head.insert(head.begin() + 3, "of it host");
    if (ofMembers)
        head.insert(head.begin() + 1, "group");
    if (framework.cached > 0)
        head.emplace_back("reserved");
    TextTable table(head);
    for (std::size_t device = 0; device < metrics.devices.size(); ++device) {
        const DeviceMetrics& d = metrics.devices[device];
        std::vector<std::string> row{std::to_string(device),
                                     formatDuration(d.busy),
                                     formatDuration(d.idle),
                                     formatDuration(d.span),
                                     fmt::format("{:.4g}", d.peakActivations),
                                     formatSize(d.peakBytes)};
        if (!gaps.empty())
            row.insert(row.begin() + 3, formatDuration(metrics.idleCauses[device].host));
        if (ofMembers)
            row.insert(row.begin() + 1, std::to_string(ofMembers->prediction.program.groupOfDevice[device]));
        if (framework.cached > 0)
            row.push_back(formatSize(reservedBytes(d.peakBytes, framework)));
        table.addRow(row);
    }
    table.print();
    printText("{}\n", held.memory.empty() ? "what a run would allocate is not known: " + held.reason
                                          : backendMemoryText(held.memory, backend));
    if (!program.versioned())
        return;
    printText("\nweights: {}, {}\n", titleOf(program.weightPolicy.rule), nameOf(program.weightPolicy.optimizer));
    TextTable weights({"stage", "updates", "staleness", "mean", "predicted F", "B", "versions", "copies", "in flight"});
    for (const StageWeights& stage : weightReport(program))
        weights.addRow({std::to_string(stage.stage), std::to_string(stage.updates), std::to_string(stage.staleness),
                        fmt::format("{:.3g}", stage.meanStaleness), std::to_string(stage.forwardSteps),
                        std::to_string(stage.backwardSteps), std::to_string(stage.versions),
                        std::to_string(stage.copies), std::to_string(stage.inFlight)});
    weights.print();
}

struct PredictOptions {
    explicit PredictOptions(CLI::App& command) : design(command, true), noise(command, "what --families ranks by")
    {
        command.add_option("--seed", seed, "of the samples (1)")->type_name("N");
        command
            .add_option(
                "--for", backend,
                "of what `run --backend` of that name would allocate: all that a device holds (host; of schedules "
                "of more than 100,000 blocks only when it is asked for)")
            ->type_name("host|mpi|cuda");
        command.add_flag("--families", families, "rank every family over the design's costs instead");
        command.add_flag("--json", json, "print one JSON object");
    }
    InlineDesign design;
    NoiseOptions noise;
    std::uint64_t seed = 1;
    std::string backend; ///< empty: the host, and only for schedules short enough to count without being asked
    bool families = false, json = false;
};

MemoryCheck heldMemory(const Design& design, const PredictOptions& given)
{
    if (given.backend.empty() && isLong(design))
        return {{}, "the schedule is long; --for host counts it", {}};
    return memoryWith(design, given.backend.empty() ? "host" : given.backend, RunOptions::Maths::Automatic);
}

void rankFamilies(const Design& design, const PredictOptions& given)
{
    const std::optional<SpreadOptions> noise = given.noise.noise(given.seed, design.costs);
    const std::vector<TradeOff> ranked = rankedFamilies(design, given.noise.by(), noise);
    const std::vector<const TradeOff*> alike = alikeWithFirst(ranked);
    if (given.json) {
        Json object{{"by", given.noise.byName()},
                    {"costs", {{"source", design.costs.source}}},
                    {"error_of_schedules", app::toJson(knownErrorOfSchedules())},
                    {"families", Json::array()}};
        for (const TradeOff& each : ranked) {
            Json entry{{"family", each.candidate.family->name}, {"label", each.candidate.label()}};
            if (each.possible) {
                const auto isThis = [&](const TradeOff* other) { return other == &each; };
                entry.update({{"makespan_ns", each.makespan},
                              {"alike_with_first", std::any_of(alike.begin(), alike.end(), isThis)},
                              {"rate_makespan", each.bubble},
                              {"peak_bytes", each.peakBytes},
                              {"peak_activations", each.peakActivations},
                              {"optimizer_change", each.optimizerChange}});
                if (noise)
                    entry["spread"] = spreadToJson(*noise, each.noisy);
            } else {
                entry["reason"] = each.reason;
            }
            object["families"].push_back(std::move(entry));
        }
        return printJson(object);
    }
    printText("{}; costs: {}\n", design.name, design.costs.source);
    if (noise)
        printText("{}\n", describe(*noise));
    printText("\n");
    std::vector<std::string> titles{"family", "makespan"};
    if (noise)
        titles.insert(titles.end(), {"median", "95th percentile"});
    titles.insert(titles.end(), {"bubble", "activations", "peak memory"});
    TextTable table(titles);
    for (const TradeOff& each : ranked) {
        if (!each.possible)
            continue;
        std::vector<std::string> row{each.candidate.label(), formatDuration(each.makespan)};
        if (noise)
            row.insert(row.end(), {formatDuration(each.noisy.median), formatDuration(each.noisy.p95)});
        row.insert(row.end(),
                   {percent(each.bubble), fmt::format("{:.4g}", each.peakActivations), formatSize(each.peakBytes)});
        table.addRow(row);
    }
    table.print();
    std::vector<std::string> names;
    for (const TradeOff* each : alike)
        names.push_back(each->candidate.label());
    if (!names.empty())
        printText("alike with the shortest: {}; ratios of schedules with the same costs were {}\n", joined(names, "; "),
                  textOf(knownErrorOfSchedules()));
    std::map<std::string, std::string> changes; // by change: the families
    for (const TradeOff& each : ranked)
        if (each.possible && !each.optimizerChange.empty())
            changes[each.optimizerChange] +=
                (changes[each.optimizerChange].empty() ? "" : ", ") + each.candidate.label();
    for (const auto& [change, labels] : changes)
        printText("with {}: {}\n", change, labels);
    for (const TradeOff& each : ranked)
        if (!each.possible)
            printText("not possible: {}: {}\n", each.candidate.label(), each.reason);
}

} // namespace

void addPredictCommand(CLI::App& program, int& exitCode)
{
    CLI::App& command = *program.add_subcommand("predict", "Evaluates a design: time, bubbles, memory, critical path");
    const auto options = std::make_shared<PredictOptions>(command);
    command.callback([options, &exitCode] {
        std::optional<ScaleReport> scale;
        std::optional<UnevenEnds> uneven;
        const LocatedDesign located = options->design.make(&scale, &uneven);
        exitCode = exitSuccess;
        if (options->families)
            return rankFamilies(located.design, *options);
        const std::optional<SpreadOptions> noise = options->noise.noise(options->seed, located.design.costs);
        // Durations under noise are those of buffers.
        const Prediction prediction = noise ? predictOrFind(located) : predictTimesOrFind(located);
        const std::optional<OfMembers> members = orFind(located, [&] { return memberPrediction(located.design); });
        const StepSpread step = noise ? spreadOfStep(prediction.program, located.design.costs, *noise) : StepSpread{};
        const MemoryCheck held = heldMemory(located.design, *options);
        if (options->json) {
            Json object = toJson(located.design, prediction, members ? &*members : nullptr, held);
            if (noise)
                object["spread"] = spreadToJson(*noise, step);
            if (scale)
                object["scale"] = scaleToJson(*scale);
            if (uneven)
                object["uneven"] = toJson(*uneven);
            printJson(object);
            return;
        }
        print(located.design, prediction, members ? &*members : nullptr, held,
              options->backend.empty() ? "host" : options->backend);
        if (scale)
            printText("\nscaled: {}; the full model takes {}, and at most {} on a device\n", scale->text(),
                      formatDuration(scale->fullMakespan),
                      formatSize(*std::max_element(scale->fullPeaks.begin(), scale->fullPeaks.end())));
        if (noise)
            printText("\n{}: median {}, 95th percentile {}\n", describe(*noise), formatDuration(step.median),
                      formatDuration(step.p95));
    });
}

} // namespace pipewright::app
