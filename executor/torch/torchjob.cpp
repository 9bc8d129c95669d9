// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/torch/torchjob.h"

#include "core/exchange/exchange.h"
#include "core/json/jsonvalue.h"
#include "core/schedule/weightplan.h"
#include "core/workload/parallelism.h"
#include "executor/torch/python.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace pipewright {

namespace {

/// The first block that says what PyTorch lacks, for the place of a fault.
template<class Asked>
std::string firstBlock(const Schedule& schedule, Asked asked)
{
    for (std::size_t device = 0; device < schedule.order.size(); ++device)
        for (const Block& block : schedule.order[device])
            if (asked(block))
                return fmt::format("device {}, {}", device, toString(block));
    return "schedule";
}

void requirePossible(const Design& design, const TorchOptions& options)
{
    const Schedule& schedule = design.schedule;
    if (options.ranks != 0 && options.ranks != schedule.devices())
        throw Error("--ranks",
                    fmt::format("{} ranks, and the design has {} devices", options.ranks, schedule.devices()),
                    "every device is a rank: leave it out, or make the design for so many devices");
    if (hasUpdates(schedule))
        throw Error(firstBlock(schedule, [](const Block& block) { return block.op == Op::U; }),
                    "PyTorch's pipeline updates every stage once, behind the step",
                    "take a family without updates amid the step, such as 1f1b or zb-v");
    if (schedule.replicas() > 1)
        throw Error(firstBlock(schedule, [](const Block& block) { return block.replica > 0; }),
                    "PyTorch's pipeline has one copy of the model", "take a family without replicas");
    if (schedule.sequencePieces > 1)
        throw Error(firstBlock(schedule, [](const Block&) { return true; }),
                    "PyTorch's pipeline has whole microbatches, and this is of a piece of a sequence",
                    "take another family");
    if (const auto again = firstBlock(schedule, [](const Block& block) { return block.op == Op::R; });
        again != "schedule")
        throw Error(again, "PyTorch's schedules have no block that recomputes",
                    "use checkpoints within your layers, and a schedule without these blocks");
    if (!design.dataflow.skips.empty())
        throw Error("dataflow.skips", "PyTorch's schedule runtime hands values on from stage to stage only",
                    "take the skip connections out, or carry the value along in the stages' outputs");
    if (design.workload && design.workload->shape.parallel.members() > 1)
        throw Error("model.parallel",
                    "the devices of this design are groups: " + textOf(design.workload->shape.parallel),
                    "make the design without degrees of parallelism; your module may use DTensor itself");
}

/// Whether the design's model stands for the person's module: not for the model that stands in where none was named.
bool isOfModule(const Design& design)
{
    return design.workload && !design.workload->source.starts_with("built in");
}

} // namespace

std::string torchJob(const Design& design, const TorchOptions& options, Diagnostics& notes)
{
    requirePossible(design, options);
    JsonValue job;
    job["version"] = 1;
    job["steps"] = options.steps;
    job["ranks"] = design.schedule.devices();
    job["stages"] = design.schedule.stages();
    job["microbatches"] = design.schedule.microbatches;
    job["device_of_stage"] = design.schedule.deviceOfStage;
    job["layers_per_stage"] = design.layersPerStage.empty() ? JsonValue() : JsonValue(design.layersPerStage);
    job["partition_of_module"] = isOfModule(design);
    for (const char* format : {"pytorch-comms-csv", "pytorch-2.14-comms-csv"}) {
        ExportedText order = exportFormat(format).write(design, {});
        job["orders"][format] = std::move(order.text);
        if (std::string_view(format) == "pytorch-comms-csv")
            std::copy_if(order.diagnostics.begin(), order.diagnostics.end(), std::back_inserter(notes),
                         [](const Diagnostic& each) { // what is shared is said below, of a person's module
                             return each.severity != Severity::Note && each.where != "dataflow.shared";
                         });
    }
    job["module"] = options.syntheticStages ? JsonValue() : JsonValue(options.module);
    job["synthetic"] = JsonValue();
    if (options.syntheticStages) {
        job["synthetic"] = JsonValue::array();
        for (const StageCosts& stage : design.costs.stages)
            job["synthetic"].push_back({{"F", stage.forward},
                                        {"I", stage.inputGrad},
                                        {"W", stage.weightGrad},
                                        {"B", stage.backward},
                                        {"U", stage.update},
                                        {"output", stage.output}});
    }
    job["seed"] = options.seed;
    job["deadline_s"] = static_cast<double>(options.deadline) / 1e9;
    job["device"] = options.device;
    job["check_gradients"] = options.checkGradients && !options.syntheticStages;
    if (!design.dataflow.shared.empty() && isOfModule(design))
        notes.push_back({Severity::Warning, "dataflow.shared",
                         "parameters that stages share are summed by nobody: PyTorch's stages each have their own",
                         "untie them, or sum their gradients in your optimizer"});
    return job.dump();
}

std::string torchCommandText(const TorchOptions& options, int ranks, const std::string& job, const std::string& folder)
{
    const std::string package = torchPackageDirectory();
    const std::string path = package.empty() ? "" : fmt::format("PYTHONPATH={} ", package);
    return fmt::format(
        "{0}torchrun --nproc-per-node {1} -m pipewright.run {2} --record {3}\n"
        "{0}srun --ntasks {1} {4} -m pipewright.run {2} --record {3}    # with MASTER_ADDR and MASTER_PORT\n",
        path, ranks, job, folder, options.python);
}

} // namespace pipewright
