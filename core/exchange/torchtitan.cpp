// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/exchange/torchtitan.h"

#include "core/exchange/layernames.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace pipewright {

namespace {

/// A double-quoted string valid in TOML and YAML.
std::string quotedText(const std::string& text)
{
    return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string withoutLineBreaks(std::string text)
{
    for (char& c : text)
        if (static_cast<unsigned char>(c) < ' ' || c == '\x7f')
            c = ' ';
    return text;
}

/// Both frameworks put stages s, s + p, … on rank s; only the name of a built-in schedule changes that, which a CSV
/// excludes.
void warnAboutPlacement(const Schedule& schedule, std::string_view framework, Diagnostics& diagnostics)
{
    for (int stage = 0; stage < schedule.stages(); ++stage)
        if (schedule.deviceOfStage[stage] != stage % schedule.devices()) {
            diagnostics.push_back(
                {Severity::Warning, "schedule.placement",
                 fmt::format(
                     "{} puts stage {} on rank {}, the design on device {}: with a CSV it builds stages in a loop",
                     framework, stage, stage % schedule.devices(), schedule.deviceOfStage[stage]),
                 "build the stages by a placement of your own (for a V: rank r holds r and 2p-1-r)"});
            return;
        }
    if (schedule.stages() % schedule.devices() != 0)
        diagnostics.push_back({Severity::Warning, "schedule.placement",
                               fmt::format("{} stages are not the same number on each of {} ranks", schedule.stages(),
                                           schedule.devices()),
                               fmt::format("{} expects as many stages on every rank", framework)});
}

std::string heading(const Design& design)
{
    return fmt::format("# Pipewright: {} ({} microbatches, {} stages on {} ranks)\n", withoutLineBreaks(design.name),
                       design.schedule.microbatches, design.schedule.stages(), design.schedule.devices());
}

std::int64_t sequencesPerMicrobatch(const Design& design)
{
    return design.workload ? design.workload->shape.microbatchSize : 1;
}

std::string listOf(const std::vector<std::string>& names)
{
    std::string text = "[";
    for (std::size_t i = 0; i < names.size(); ++i)
        text += (i > 0 ? ", " : "") + quotedText(names[i]);
    return text + "]";
}

} // namespace

ExportedText torchtitanConfig(const Design& given, const std::string& csv)
{
    requireOneReplica(given, "torchtitan");
    ExportedText result;
    const Design design = exportable(given, result.diagnostics);
    const Schedule& schedule = design.schedule;
    warnAboutPlacement(schedule, "torchtitan", result.diagnostics);
    const auto modules = moduleNames(design, ModuleNaming::Torchtitan, result.diagnostics);
    const std::int64_t size = sequencesPerMicrobatch(design);
    std::string& text = result.text;
    text = heading(design);
    text += "\n[training]\n";
    text +=
        fmt::format("local_batch_size = {}  # {} microbatches\n", size * schedule.microbatches, schedule.microbatches);
    text += "\n[parallelism]\n";
    text += fmt::format("pipeline_parallel_degree = {}\n", schedule.devices());
    text += fmt::format("pipeline_parallel_microbatch_size = {}\n", size);
    text += "pipeline_parallel_schedule = \"PipelineScheduleMulti\"\n";
    text += fmt::format("pipeline_parallel_schedule_csv = {}\n", quotedText(csv));
    if (!modules.empty()) {
        text += "module_fqns_per_model_part = [\n";
        for (const auto& stage : modules)
            text += "    " + listOf(stage) + ",\n";
        text += "]\n";
    }
    return result;
}

ExportedText automodelConfig(const Design& given, const std::string& csv)
{
    requireOneReplica(given, "torchtitan");
    ExportedText result;
    const Design design = exportable(given, result.diagnostics);
    const Schedule& schedule = design.schedule;
    warnAboutPlacement(schedule, "Automodel", result.diagnostics);
    const auto modules = moduleNames(design, ModuleNaming::HuggingFace, result.diagnostics);
    const std::int64_t size = sequencesPerMicrobatch(design);
    std::string& text = result.text;
    text = heading(design);
    text += "\ndistributed:\n";
    text += fmt::format("  pp_size: {}\n", schedule.devices());
    text += "\nautopipeline:\n";
    text += "  _target_: nemo_automodel.components.distributed.pipelining.AutoPipeline\n";
    text += "  pp_schedule: PipelineScheduleMulti\n";
    text += fmt::format("  pp_schedule_csv: {}\n", quotedText(csv));
    text += fmt::format("  pp_microbatch_size: {}\n", size);
    text +=
        fmt::format("  pp_batch_size: {}  # {} microbatches\n", size * schedule.microbatches, schedule.microbatches);
    if (!modules.empty()) {
        text += "  module_fqns_per_model_part:\n";
        for (const auto& stage : modules)
            text += "    - " + listOf(stage) + "\n";
    }
    return result;
}

} // namespace pipewright
