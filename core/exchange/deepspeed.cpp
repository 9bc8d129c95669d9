// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/exchange/deepspeed.h"

#include "core/exchange/megatronlayout.h"
#include "core/json/jsontext.h"
#include "core/model/parallelism.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

namespace pipewright {

namespace {

/// What it says is no longer warned of; what DeepSpeed does otherwise is.
int stageOf(const Schedule& schedule, Diagnostics& diagnostics)
{
    const Zero& zero = schedule.zero;
    std::erase_if(diagnostics, [](const Diagnostic& each) { return each.where == "schedule.zero"; });
    const bool pipeline = schedule.devices() > 1;
    if (pipeline && zero.sharesGradients())
        diagnostics.push_back({Severity::Warning, "schedule.zero",
                               fmt::format("DeepSpeed's pipelines share out the optimizer's state at most, the design "
                                           "ZeRO {}",
                                           zero.level),
                               "predict it with --zero 1"});
    return pipeline ? std::min(zero.level, 1) : zero.level;
}

/// Layers that are recomputed together; 0: none, or not said.
int recomputedTogether(const Schedule& schedule, Diagnostics& diagnostics)
{
    if (schedule.recompute.empty() || schedule.recompute.front().kind != RecomputeKind::Full
        || std::any_of(schedule.recompute.begin(), schedule.recompute.end(),
                       [&](const Recompute& each) { return each != schedule.recompute.front(); }))
        return 0;
    std::erase_if(diagnostics, [](const Diagnostic& each) { return each.where == "schedule.recompute"; });
    return schedule.recompute.front().layers;
}

} // namespace

ExportedText deepspeedConfig(const Design& given)
{
    requireOneReplica(given, "DeepSpeed");
    ExportedText result;
    const Design design = exportable(given, result.diagnostics);
    if (!design.workload)
        throw Error("model", "a configuration has the size of a batch, and this design has no model",
                    "give the design a model");
    const ModelShape& shape = design.workload->shape;
    if (shape.products != ProductType::Own)
        result.diagnostics.push_back(
            {Severity::Warning, "model.products",
             fmt::format("products in {} are not written into {}", nameOf(shape.products), "DeepSpeed's configuration"),
             "use Transformer Engine's layers in your model"});
    const Schedule& schedule = design.schedule;
    const std::int64_t data = shape.parallel.data;
    nlohmann::ordered_json config;
    config["train_batch_size"] = shape.microbatchSize * schedule.microbatches * data;
    config["train_micro_batch_size_per_gpu"] = shape.microbatchSize;
    config["gradient_accumulation_steps"] = schedule.microbatches;
    config["bf16"] = {{"enabled", shape.dataType == DataType::Bf16}};
    config["zero_optimization"] = {{"stage", stageOf(schedule, result.diagnostics)}};
    const int together = recomputedTogether(schedule, result.diagnostics);
    if (schedule.devices() > 1)
        config["pipeline"] = {{"stages", schedule.devices()}, {"activation_checkpoint_interval", together}};
    result.text = prettyJson(config);
    const bool onePerDevice = schedule.chunks() == 1, pairs = !schedule.overlaps.empty();
    if (pairs || (schedule.devices() > 1 && (!onePerDevice || !megatronOrder(schedule))))
        result.diagnostics.push_back({Severity::Warning, "schedule.order",
                                      "the order is not 1F1B with a stage on each device, which is what will run",
                                      "export pytorch-csv for the order"});
    if (Parallelism others = shape.parallel; others.tensor > 1 || others.context > 1 || others.expert > 1)
        for (Diagnostic& each : result.diagnostics) {
            if (each.where == "model.parallel") {
                others.data = 1;
                each.what = "the file says nothing of " + textOf(others);
            }
        }
    else
        std::erase_if(result.diagnostics, [](const Diagnostic& each) { return each.where == "model.parallel"; });
    return result;
}

} // namespace pipewright
