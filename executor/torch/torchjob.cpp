// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/torch/torchjob.h"

#include "core/design/designbuilder.h"
#include "core/exchange/exchange.h"
#include "core/exchange/exportedtext.h"
#include "core/json/jsonvalue.h"
#include "core/model/recomputedtensors.h"
#include "core/schedule/ordergraph.h"
#include "core/schedule/replicas.h"
#include "core/schedule/weightplan.h"
#include "executor/torch/python.h"
#include "executor/torch/torchcopies.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace pipewright {

namespace {

/// The first block to which `asked` applies: the place of a fault that PyTorch cannot run.
template<class Asked>
std::string firstBlock(const Schedule& schedule, Asked asked)
{
    for (std::size_t device = 0; device < schedule.order.size(); ++device)
        for (const Block& block : schedule.order[device])
            if (asked(block))
                return fmt::format("device {}, {}", device, toString(block));
    return "schedule";
}

/// What the ranks recompute: per stage how many layers together, and which layers of the model keep their activations.
JsonValue recomputeOf(const Design& design)
{
    JsonValue together = JsonValue::array(), kept = JsonValue::array();
    for (int stage = 0; stage < design.schedule.stages(); ++stage) {
        const Recompute recompute = design.schedule.recomputeOf(stage);
        together.push_back(recompute.insideBackward() ? recompute.layers : 0);
    }
    if (design.workload && !hasStandInModel(design))
        for (std::size_t layer = 0; layer < design.workload->layers.size(); ++layer)
            if (!isCheckpointed(design.workload->layers[layer].kind))
                kept.push_back(layer);
    return JsonValue{{"layers_together", std::move(together)}, {"kept_layers", std::move(kept)}};
}

} // namespace

void requirePossible(const Design& design, const TorchOptions& options)
{
    const Schedule& schedule = design.schedule;
    const int copies = copiesOf(design, options), ranks = schedule.devices() * copies;
    if (options.ranks != 0 && options.ranks != ranks)
        throw Error("--ranks",
                    copies > 1
                        ? fmt::format("{} ranks, and {} copies of {} devices are {}", options.ranks, copies,
                                      schedule.devices(), ranks)
                        : fmt::format("{} ranks, and the design has {} devices", options.ranks, schedule.devices()),
                    "every device is a rank: leave it out, or make the design for so many devices");
    requirePossibleCopies(design, options);
    if (options.profile && hasUpdates(schedule))
        throw Error("--record kernels",
                    "schedules that update weights amid the step do not go through what is profiled",
                    "leave it out, or take a family that updates at the step's end");
    if (hasUpdates(schedule)) {
        if (!schedule.dataParallelDevices.empty() || schedule.shardedStates)
            throw Error(firstBlock(schedule, [](const Block& block) { return block.op == Op::U; }),
                        "several devices work on a stage, and a rank has its stages for itself",
                        "make the design with --layout pipeline, or single");
        const auto half = [](const Block& block) { return isHalfBackward(block.op); };
        if (const std::string place = firstBlock(schedule, half); place != "schedule")
            throw Error(place, "where weights are updated amid the step, backwards run whole", "use full backwards");
    }
    if (schedule.replicas() > 1)
        throw Error(firstBlock(schedule, [](const Block& block) { return block.replica > 0; }),
                    "PyTorch's pipeline has one copy of the model",
                    pipelinesOf(schedule) == schedule.replicas()
                        ? "make the design without --replicas, and give it to this run"
                        : "take a family without replicas");
    if (schedule.sequencePieces > 1)
        throw Error(firstBlock(schedule, [](const Block&) { return true; }),
                    "PyTorch's pipeline has whole microbatches, and this is of a piece of a sequence",
                    "take another family");
    if (const auto again = firstBlock(schedule, [](const Block& block) { return block.op == Op::R; });
        again != "schedule")
        throw Error(
            again, "PyTorch's schedules have no block that recomputes",
            "make the design with --recompute full: the backward makes one layer after another again; or with none");
    if (!options.syntheticStages
        && std::any_of(schedule.recompute.begin(), schedule.recompute.end(),
                       [](Recompute each) { return each.coresOnly(); }))
        throw Error("schedule.recompute", "which of your module's operations are its attention is not known here",
                    "make the design with --recompute full, or with none and use torch.utils.checkpoint around the "
                    "attention within your layers: they are measured with it");
    if (std::find(schedule.offload.begin(), schedule.offload.end(), true) != schedule.offload.end())
        throw Error("schedule.offload", "PyTorch's schedules copy nothing to the host's memory",
                    "make the design with --offload none, and let your layers save on the host "
                    "(torch.autograd.graph.save_on_cpu)");
    if (!design.dataflow.skips.empty())
        throw Error("dataflow.skips", "PyTorch's schedule runtime hands values on from stage to stage only",
                    "take the skip connections out, or carry the value along in the stages' outputs");
    if (const auto besides = design.workload ? whyNotAllocated(design.workload->shape.framework) : std::nullopt)
        throw Error(Diagnostics{*besides});
    if (!isNamedInExports(design)) // the rest is run, noted, or refused above
        throw Error("schedule", "the design states what PyTorch's ranks do not know", "run a family, such as 1f1b");
}

JsonValue versionsOf(const Design& design)
{
    const Schedule& schedule = design.schedule;
    Diagnostics diagnostics;
    const OrderGraph graph(schedule, design.dataflow.skips, false, diagnostics);
    const WeightPlan plan = planWeights(schedule, graph, false, diagnostics);
    if (hasErrors(diagnostics))
        throw Error(std::move(diagnostics));
    JsonValue versions;
    versions["rule"] = nameOf(schedule.weightPolicy.rule);
    versions["optimizer"] = factsOf(schedule.weightPolicy.optimizer).name;
    versions["batches"] = plan.batches;
    for (int device = 0; device < schedule.devices(); ++device) {
        JsonValue order = JsonValue::array();
        for (BlockIndex b = graph.firstOfDevice[device]; b < graph.firstOfDevice[device + 1]; ++b) {
            const Block& block = graph.blocks[b];
            const WeightRead& read = plan.reads[b];
            JsonValue entry{{"op", std::string(1, letter(block.op))},
                            {"stage", block.stage},
                            {"microbatch", block.microbatch},
                            {"version", read.version},
                            {"steps", read.steps},
                            {"update", read.update}};
            if (read.madeBy != noBlock) {
                const Block& maker = graph.blocks[read.madeBy];
                entry["made_by"] = {std::string(1, letter(maker.op)), maker.stage, maker.microbatch};
            }
            order.push_back(std::move(entry));
        }
        versions["order"].push_back(std::move(order));
    }
    return versions;
}

Diagnostics notesForTorch(const Design& design, const TorchOptions& options)
{
    Diagnostics notes = notesOfCopies(design);
    const auto isHalfOfRecomputing = [&design, &options](const Block& block) {
        return !options.syntheticStages && isHalfBackward(block.op)
               && design.schedule.recomputeOf(block.stage).insideBackward();
    };
    if (const std::string place = firstBlock(design.schedule, isHalfOfRecomputing); place != "schedule")
        notes.push_back(
            {Severity::Note, place,
             "where layers are recomputed, I runs the whole backward and W has nothing to do: PyTorch would "
             "recompute a layer for each part of its backward",
             "take a family with full backwards, such as 1f1b, or --recompute none"});
    if (productsOf(design) != ProductType::Own)
        notes.push_back({Severity::Note, "model.products",
                         fmt::format("your modules multiply in the types that they have: predicted are products in {}",
                                     nameOf(productsOf(design))),
                         "make their layers such (as torchao and Transformer Engine do), or use --precision bf16"});
    return notes;
}

std::string torchJob(const Design& design, const TorchOptions& options, Diagnostics& notes)
{
    requirePossible(design, options);
    const Diagnostics differences = notesForTorch(design, options);
    notes.insert(notes.end(), differences.begin(), differences.end());
    JsonValue job;
    job["version"] = 1;
    job["steps"] = options.steps;
    job["ranks"] = design.schedule.devices();
    job["replicas"] = copiesOf(design, options);
    job["zero"] = countsCopies(design) ? JsonValue(design.schedule.zero.level) : JsonValue();
    job["stages"] = design.schedule.stages();
    job["microbatches"] = design.schedule.microbatches;
    job["device_of_stage"] = design.schedule.deviceOfStage;
    job["layers_per_stage"] = design.layersPerStage.empty() ? JsonValue() : JsonValue(design.layersPerStage);
    job["recompute"] = design.schedule.recompute.empty() ? JsonValue() : recomputeOf(design);
    job["partition_of_module"] = design.workload && !hasStandInModel(design);
    const bool updates = hasUpdates(design.schedule);
    if (updates) {
        job["versions"] = versionsOf(design);
        if (!design.schedule.pins.empty())
            notes.push_back({Severity::Note,
                             "schedule.pins",
                             "blocks begin when what they need is there, and wait for no earliest start",
                             {}});
    }
    for (const char* format : {"pytorch-comms-csv", "pytorch-2.14-comms-csv"}) {
        if (updates)
            break; // no PyTorch schedule runtime here: it has no updates within the step
        ExportedText order = exportFormat(format).write(design, {});
        job["orders"][format] = std::move(order.text);
        if (std::string_view(format) == "pytorch-comms-csv")
            std::copy_if(order.diagnostics.begin(), order.diagnostics.end(), std::back_inserter(notes),
                         [](const Diagnostic& each) { // the ranks do these themselves
                             return each.severity != Severity::Note && each.where != "dataflow.shared"
                                    && each.where != "model.parallel" && each.where != "schedule.recompute"
                                    && each.where != "schedule.zero";
                         });
    }
    job["module"] = options.syntheticStages ? JsonValue() : JsonValue(options.module);
    job["synthetic"] = JsonValue();
    if (options.syntheticStages) {
        job["synthetic"] = JsonValue::array();
        for (const StageCosts& stage : design.costs.stages) {
            JsonValue times{{"output", stage.output}};
            for (const Op op : allOps)
                times[std::string(1, letter(op))] = stage.*timeField(op);
            job["synthetic"].push_back(std::move(times));
        }
    }
    job["seed"] = options.seed;
    job["deadline_s"] = static_cast<double>(options.deadline) / 1e9;
    job["device"] = options.device;
    job["profile"] = options.profile;
    job["check_gradients"] = options.checkGradients && !options.syntheticStages;
    return job.dump();
}

std::string shellWord(const std::string& text)
{
    const auto isPlain = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')
               || std::string_view("_-./:=,+@%").find(c) != std::string_view::npos;
    };
    if (!text.empty() && std::all_of(text.begin(), text.end(), isPlain))
        return text;
    std::string quoted = "'";
    for (const char c : text)
        quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return quoted + "'";
}

std::string torchCommandText(const TorchOptions& options, int ranks, const std::string& job, const std::string& folder)
{
    const std::string package = torchPackageDirectory();
    const std::string path =
        "PYTHONSAFEPATH=1 " + (package.empty() ? "" : fmt::format("PYTHONPATH={} ", shellWord(package)));
    return fmt::format(
        "{0}torchrun --nproc-per-node {1} -m pipewright.run {2} --record {3}\n"
        "# over several machines: on each of them, which all see the job's file and the folder\n"
        "{0}torchrun --nnodes MACHINES --nproc-per-node RANKS_OF_EACH --rdzv-backend c10d --rdzv-endpoint "
        "FIRST_MACHINE:29500 -m pipewright.run {2} --record {3}    # {1} ranks together\n"
        "{0}srun --ntasks {1} {4} -m pipewright.run {2} --record {3}    # with MASTER_ADDR and MASTER_PORT\n",
        path, ranks, shellWord(job), shellWord(folder), shellWord(options.python));
}

} // namespace pipewright
