// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/exchange/torchtitan.h"

#include "core/exchange/layernames.h"
#include "core/exchange/pytorchgathers.h"
#include "core/json/jsonvalue.h"
#include "core/model/parallelism.h"

#include <fmt/format.h>

#include <algorithm>

namespace pipewright {

namespace {

/// A double-quoted string valid in Python and YAML.
std::string quotedText(std::string_view text)
{
    return JsonValue(text).dump(JsonValue::InvalidText::Replace);
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

constexpr std::string_view indent = "    ";

/// The lines that let torchtitan's copies of the pipeline share out what the design's do, and warnings where they
/// differ. Empty for one copy. torchtitan's source: distributed/fsdp.py; it reads computations from the CSV and leaves
/// the gathers to PyTorch (pytorchgathers.h).
std::string linesOfCopies(const Design& design, Diagnostics& diagnostics)
{
    const Zero& zero = design.schedule.zero;
    const int copies = design.workload ? static_cast<int>(design.workload->shape.parallel.data) : 1;
    if (copies == 1)
        return {};
    const auto warn = [&](std::string what, std::string hint) {
        diagnostics.push_back({Severity::Warning, "schedule.zero", std::move(what), std::move(hint)});
    };
    Parallelism others = design.workload->shape.parallel;
    others.data = 1;
    for (Diagnostic& each : diagnostics)
        if (each.where == "model.parallel")
            each.what = "the file says nothing of " + textOf(others);
    std::erase_if(diagnostics, [&](const Diagnostic& each) {
        return each.where == "schedule.zero" || (each.where == "model.parallel" && others == Parallelism{});
    });
    if (zero.level == 1)
        warn("torchtitan shares out no optimizer state alone: its copies hold it whole",
             "predict that with --zero 0, or share out more with --zero 2 or 3");
    if (zero.sharesGradients() && zero.reduce == Zero::Reduce::Each)
        warn("torchtitan sums gradients over the copies once, after the last microbatch",
             "predict it with --reduce last");
    if (const auto elsewhere = gatheredElsewhere(design.schedule))
        diagnostics.push_back(*elsewhere);
    const bool shared = zero.sharesGradients();
    return fmt::format("{0}put(parallelism, {1}, \"data_parallel_shard_degree\")\n"
                       "{0}put(parallelism, {2}, \"data_parallel_replicate_degree\")\n"
                       "{0}put(parallelism, \"never\", \"fsdp_reshard_after_forward\")  # the schedule does so\n",
                       indent, shared ? copies : 1, shared ? 1 : copies);
}

/// The lines by which torchtitan recomputes as the design does; empty where it cannot, which stays warned of.
std::string linesOfRecompute(const Schedule& schedule, Diagnostics& diagnostics)
{
    if (schedule.recompute.empty())
        return fmt::format("{}put(config, None, \"activation_checkpoint\")\n", indent);
    if (std::any_of(schedule.recompute.begin(), schedule.recompute.end(),
                    [](const Recompute& each) { return each != Recompute::Full; }))
        return {};
    std::erase_if(diagnostics, [](const Diagnostic& each) { return each.where == "schedule.recompute"; });
    return fmt::format("{0}from torchtitan.distributed.activation_checkpoint import FullAC\n\n"
                       "{0}put(config, FullAC.Config(), \"activation_checkpoint\")\n",
                       indent);
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
    if (design.workload && design.workload->shape.products != ProductType::Own)
        result.diagnostics.push_back(
            {Severity::Warning, "model.products",
             fmt::format("products in {} are not written into {}", nameOf(design.workload->shape.products),
                         "a configuration of torchtitan"),
             "add its Float8 or MX converter to your configuration"});
    const auto modules = moduleNames(design, ModuleNaming::Torchtitan, result.diagnostics);
    result.diagnostics.push_back({Severity::Note, "torchtitan",
                                  fmt::format("written for torchtitan {} and its source after that", torchtitanVersion),
                                  "where the fields of another version differ, the file names the field and stops"});
    std::string& text = result.text;
    text = heading(design);
    text +=
        fmt::format("# For torchtitan {0}, and its source after that (num_pp_microbatches). Releases before {0} read "
                    "TOML\n# and call the head \"output\".\n",
                    torchtitanVersion);
    text += R"("""This schedule in a configuration of torchtitan's: in a Python file of yours, here mine.py, write

    from torchtitan.models.llama3.config_registry import llama3_8b
    from THIS_FILE import with_schedule

    def planned():
        return with_schedule(llama3_8b())

and start torchtitan with --module mine --config planned, as many ranks as said above for each copy of the model.
"""

)";
    text += fmt::format("WRITTEN_FOR = {}\n", quotedText(torchtitanVersion));
    text += fmt::format("RANKS = {}\nMICROBATCHES = {}\n", schedule.devices(), schedule.microbatches);
    text += fmt::format("SEQUENCES_PER_MICROBATCH = {}\n", sequencesPerMicrobatch(design));
    text += fmt::format("SCHEDULE_CSV = {}\n", quotedText(csv));
    text += modules.empty() ? "MODULES_OF_STAGE = None  # torchtitan divides the layers\n" : "MODULES_OF_STAGE = [\n";
    for (const auto& stage : modules)
        text += "    " + listOf(stage) + ",\n";
    text += modules.empty() ? "" : "]\n";
    text += R"(

def with_schedule(config):
    """The configuration, changed to train with this schedule."""
    training, parallelism = config.training, config.parallelism
    put(parallelism, RANKS, "pipeline_parallel_degree")
    put(parallelism, "PipelineScheduleMulti", "pipeline_parallel_schedule")
    put(parallelism, SCHEDULE_CSV, "pipeline_parallel_schedule_csv")
    if hasattr(parallelism, "num_pp_microbatches"):  # in the source after that release, which counts tokens
        put(parallelism, MICROBATCHES, "num_pp_microbatches")
        put(training, SEQUENCES_PER_MICROBATCH * training.max_context_length, "num_tokens_per_microbatch_per_dp_rank")
    else:
        put(parallelism, SEQUENCES_PER_MICROBATCH, "pipeline_parallel_microbatch_size")
        put(training, SEQUENCES_PER_MICROBATCH * MICROBATCHES, "local_batch_size")
    if MODULES_OF_STAGE is not None:
        put(parallelism, MODULES_OF_STAGE, "pipeline_parallel_module_fqns_per_model_part", "module_fqns_per_model_part")
)";
    text += linesOfCopies(design, result.diagnostics) + linesOfRecompute(schedule, result.diagnostics);
    text += R"(    return config


def put(part, value, *names):
    """Sets the field, by the first of its names that this version has."""
    for name in names:
        if hasattr(part, name):
            setattr(part, name, value)
            return
    import torchtitan

    version = getattr(torchtitan, "__version__", "of an unknown version")
    raise ValueError(f"torchtitan {version} has no field {' or '.join(names)} in its {type(part).__name__}: "
                     f"this file was written for {WRITTEN_FOR}")
)";
    return result;
}

ExportedText automodelConfig(const Design& given, const std::string& csv)
{
    requireOneReplica(given, "Automodel");
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
