// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/predict/designcheck.h"

#include "core/base/stageranges.h"
#include "core/design/groupstages.h"
#include "core/design/redesign.h"
#include "core/design/stagecosts.h"
#include "core/predict/busqueues.h"
#include "core/predict/predict.h"
#include "core/program/deadlock.h"
#include "core/program/gatherplan.h"
#include "core/program/memberprogram.h"
#include "core/program/transferorder.h"
#include "core/schedule/validate.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>
#include <tuple>

namespace pipewright {

namespace {

/// From this size on, instruction lists are made only for devices that need them.
constexpr std::int64_t manyBlocks = 500'000;

void append(Diagnostics& to, Diagnostics from)
{
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

bool exceedsMemory(const Program& program, std::size_t device, const DeviceSpec& spec)
{
    return spec.memory > 0 && program.devices[device].peakBytes > spec.memory;
}

bool exceedsMemory(const Design& design, const Program& program)
{
    for (std::size_t device = 0; device < std::min(program.devices.size(), design.cluster.devices.size()); ++device)
        if (exceedsMemory(program, device, design.cluster.devices[device]))
            return true;
    return false;
}

std::vector<MemoryPeak> crossedLimits(const Design& design, const Prediction& prediction)
{
    std::vector<MemoryPeak> crossed;
    const std::size_t devices = std::min(prediction.program.devices.size(), design.cluster.devices.size());
    for (std::size_t device = 0; device < devices; ++device) {
        const DeviceSpec& spec = design.cluster.devices[device];
        if (!exceedsMemory(prediction.program, device, spec))
            continue;
        MemoryPeak& peak =
            crossed.emplace_back(memoryPeak(prediction.program, prediction.timeline, static_cast<int>(device)));
        peak.deviceName = spec.name;
        peak.limit = spec.memory;
    }
    return crossed;
}

/// "device 3", "devices 1-6, 9".
std::string devicesText(const std::vector<int>& devices)
{
    if (devices.size() == 1)
        return fmt::format("device {}", devices.front());
    std::vector<bool> named(static_cast<std::size_t>(*std::max_element(devices.begin(), devices.end())) + 1);
    for (const int device : devices)
        named[static_cast<std::size_t>(device)] = true;
    return "devices " + textOf(named);
}

/// One error for all devices whose peaks and limits read alike; it describes the first of them.
Diagnostics explain(std::span<const MemoryPeak> peaks)
{
    std::map<std::tuple<std::string, std::string, std::string>, std::size_t> known;
    std::vector<std::pair<const MemoryPeak*, std::vector<int>>> alike;
    for (const MemoryPeak& peak : peaks) {
        const auto [place, isNew] =
            known.try_emplace({formatSize(peak.peak), formatSize(peak.limit), peak.deviceName}, alike.size());
        if (isNew)
            alike.push_back({&peak, {}});
        alike[place->second].second.push_back(peak.device);
    }
    Diagnostics diagnostics;
    for (const auto& [peak, devices] : alike) {
        const bool several = devices.size() > 1;
        diagnostics.push_back(
            {Severity::Error, devicesText(devices),
             fmt::format("{} {}{} at {}{}, {} more than the {} of {}: {}", several ? "each need" : "needs",
                         formatSize(peak->peak), several ? fmt::format(", device {}", peak->device) : std::string(),
                         formatDuration(peak->time), peak->during.empty() ? "" : " (" + peak->during + ")",
                         formatSize(peak->peak - peak->limit), formatSize(peak->limit),
                         peak->deviceName.empty() ? "the device" : peak->deviceName, describeParts(*peak)),
             remedy(*peak)});
    }
    return diagnostics;
}

/// States that are shared out need copies. When the partition was edited by hand, the stages' bytes still belong to the
/// old one and the predicted memory is wrong. The check compares parameter bytes, which depend only on the partition.
/// Devices of a group hold shares of a stage.
Diagnostics checkBytes(const Design& design)
{
    Diagnostics diagnostics;
    if (design.schedule.zero.level > 0 && copiesSharing(design) == 1)
        diagnostics.push_back({Severity::Warning, "schedule.zero",
                               "one copy of the pipeline has nobody to share its states with, and keeps them whole",
                               "leave it out, or make the design with --replicas N or --data-parallel N"});
    if (!design.workload || design.layersPerStage.empty())
        return diagnostics;
    Costs fitting;
    applyBytes(*design.workload, design.layersPerStage, design.schedule.memoryChoices(), fitting);
    for (std::size_t s = 0; s < std::min(fitting.stages.size(), design.costs.stages.size()); ++s) {
        const auto device = static_cast<std::size_t>(design.schedule.deviceOfStage[s]);
        const bool group = device < design.cluster.devices.size() && design.cluster.devices[device].group;
        const Bytes stated = design.costs.stages[s].parameters, due = fitting.stages[s].parameters;
        if (!group && stated != due)
            diagnostics.push_back(
                {Severity::Error, fmt::format("costs of stage {}", s),
                 fmt::format("{} of parameters, but the {} layers that layers_per_stage gives it have {}",
                             formatSize(stated), design.layersPerStage[s], formatSize(due)),
                 "put layers_per_stage back as it was, and move layers with `new FAMILY --costs-from FILE "
                 "--layers-per-stage N,N,…`, `search --partition` or in the designer, which move their costs too"});
    }
    return diagnostics;
}

/// The members run in an order of their own, each with a memory of its own. Appends to `crossed` those that exceed it.
Diagnostics checkMembers(const Design& design, const Program& groups, std::vector<MemoryPeak>& crossed)
{
    const Program members =
        memberProgram(groups, groupStages(design), design.costs, design.schedule.transferOrder).program;
    Diagnostics diagnostics = checkDeadlock(members, members.communication);
    std::map<std::tuple<Bytes, Bytes, std::string>, std::vector<int>> alike;
    std::size_t member = 0;
    for (const DeviceSpec& device : design.cluster.devices)
        for (std::size_t m = 0; m < (device.group ? device.group->devices.size() : 1); ++m, ++member) {
            if (!device.group || member >= members.devices.size())
                continue;
            const DeviceSpec& own = device.group->devices[m];
            if (const Bytes peak = members.devices[member].peakBytes; own.memory > 0 && peak > own.memory) {
                alike[{peak, own.memory, own.name}].push_back(static_cast<int>(member));
                MemoryPeak& over = crossed.emplace_back();
                over.device = static_cast<int>(member);
                over.deviceName = own.name;
                over.limit = own.memory;
                over.peak = peak;
            }
        }
    for (const auto& [what, devices] : alike) {
        const auto& [peak, limit, name] = what;
        diagnostics.push_back(
            {Severity::Error, devicesText(devices),
             fmt::format("{}, {} more than the {} of {}",
                         devices.size() == 1 ? fmt::format("a group's member, needs {}", formatSize(peak))
                                             : fmt::format("members of groups, each need {}", formatSize(peak)),
                         formatSize(peak - limit), formatSize(limit), name.empty() ? "the device" : name),
             "give it a smaller share of its stages (--sharding), recompute or offload, or use "
             "fewer microbatches at a time"});
    }
    return diagnostics;
}

} // namespace

Diagnostics checkDesign(const Design& design, std::vector<MemoryPeak>* crossed)
{
    // The usual long schedule: if its shortened schedule is valid, the whole one is, with the same diagnostics.
    if (const std::optional<OutlinedPrediction> steady = hasGroups(design) ? std::nullopt : predictSteady(design);
        steady && steady->cannotHang && !exceedsMemory(design, steady->program)) {
        if (crossed != nullptr)
            crossed->clear();
        return checkBytes(design);
    }
    Diagnostics diagnostics = validate(design.schedule, design.dataflow.skips);
    if (hasErrors(diagnostics))
        return diagnostics;
    const auto note = [&diagnostics, &design](const Program& program) {
        append(diagnostics, notesOnStatedPairs(program, design.schedule.transferOrder));
        if (!program.busOfLink.empty())
            diagnostics.push_back({Severity::Note, "costs.link.bus", busSentence(program),
                                   "links without a bus have a wire of their own"});
    };
    append(diagnostics, notesOnGathers(design.schedule, design.costs, design.dataflow));
    try {
        append(diagnostics, checkBytes(design));
        if (design.schedule.blocks() >= manyBlocks && !hasGroups(design)) {
            const OutlinedPrediction outline = predictOutline(design);
            if (outline.cannotHang && !exceedsMemory(design, outline.program)) {
                note(outline.program);
                if (crossed != nullptr)
                    crossed->clear();
                return diagnostics;
            }
        }
        const Prediction prediction = predict(design);
        append(diagnostics, checkDeadlock(prediction.program, Communication::Overlapped));
        note(prediction.program);
        if (!hasErrors(diagnostics))
            for (Diagnostic blocking : checkDeadlock(prediction.program, Communication::Blocking)) {
                blocking.severity = Severity::Warning;
                blocking.what = "with blocking communication: " + blocking.what;
                diagnostics.push_back(std::move(blocking));
            }
        std::vector<MemoryPeak> peaks = crossedLimits(design, prediction);
        std::vector<MemoryPeak> ofMembers;
        if (hasGroups(design) && whyNoMembers(design).empty()) {
            append(diagnostics, checkMembers(design, prediction.program, ofMembers));
            // A group's own memory is that of its smallest member, and its bytes are those of its fullest one.
            std::erase_if(peaks, [&](const MemoryPeak& peak) {
                return design.cluster.devices[static_cast<std::size_t>(peak.device)].group != nullptr;
            });
        }
        append(diagnostics, explain(peaks));
        peaks.insert(peaks.end(), ofMembers.begin(), ofMembers.end());
        if (crossed != nullptr)
            *crossed = std::move(peaks);
    } catch (const Error& error) {
        append(diagnostics, error.diagnostics());
    }
    return diagnostics;
}

std::string streamSentence(const Program& program)
{
    switch (program.communication) {
    case Communication::Overlapped: return {};
    case Communication::OneStream:
        return "the transfers of a device run one after the other, on one stream in the order of its list; a send "
               "begins together with its receive";
    case Communication::Blocking: return "a device computes nothing while it sends or receives";
    }
    return {};
}

std::string busSentence(const Program& program)
{
    const std::string names = busNames(program);
    return names.empty() ? names : fmt::format("transfers share {}: {}", names, busDiscipline());
}

} // namespace pipewright
