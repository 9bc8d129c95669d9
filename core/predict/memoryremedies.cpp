// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/predict/memoryremedies.h"

#include "core/base/diagnostic.h"
#include "core/design/redesign.h"
#include "core/families/family.h"
#include "core/predict/designcheck.h"
#include "core/predict/offloadedstages.h"
#include "core/predict/predict.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

namespace pipewright {

namespace {

/// A way to change a design; it may throw Error.
struct Change {
    std::string name;
    std::function<Design(const Design&)> made;
};

/// These stages recompute more than before: `kind` is Selective or Full. No devices: all.
std::vector<Recompute> recomputing(const Design& design, Recompute kind, const std::set<int>& devices)
{
    std::vector<Recompute> ofStage = design.schedule.recompute;
    ofStage.resize(static_cast<std::size_t>(design.schedule.stages()), Recompute::None);
    for (std::size_t stage = 0; stage < ofStage.size(); ++stage)
        if ((devices.empty() || devices.contains(design.schedule.deviceOfStage[stage]))
            && (ofStage[stage] == Recompute::None || kind == Recompute::Full))
            ofStage[stage] = kind;
    return ofStage;
}

std::set<int> devicesOver(const Design& design)
{
    std::vector<MemoryPeak> crossed;
    checkDesign(design, &crossed);
    std::set<int> devices;
    if (!hasGroups(design)) // else members are named
        for (const MemoryPeak& peak : crossed)
            devices.insert(peak.device);
    return devices;
}

/// More of what copies of the pipeline can share out, least first.
std::vector<std::pair<std::string, Zero>> sharingMore(const Design& design)
{
    const Zero& now = design.schedule.zero;
    std::vector<std::pair<std::string, Zero>> more;
    if (copiesSharing(design) == 1)
        return more;
    Zero zero = now;
    const auto offer = [&](std::string what) {
        if (zero != (more.empty() ? now : more.back().second))
            more.emplace_back(std::move(what), zero);
    };
    zero.level = std::max(now.level, 1);
    offer("share the optimizer's state among copies (ZeRO 1)");
    zero.level = std::max(now.level, 2);
    if (design.schedule.replicas() > 1) {
        offer("share gradients (ZeRO 2)");
    } else {
        zero.reduce = Zero::Reduce::Each;
        offer(fmt::format("share gradients and sum them after each microbatch (ZeRO {})", zero.level));
    }
    zero.level = 3;
    offer("share parameters too (ZeRO 3)");
    zero.reshard = {true, {}};
    zero.prefetch = 0;
    offer("share parameters and free them after each visit (ZeRO 3)");
    return more;
}

std::vector<Change> changesOf(const Design& design)
{
    const std::set<int> over = devicesOver(design);
    const auto recompute = [](Recompute kind, const std::set<int>& devices) {
        return [kind, devices](const Design& base) { return withRecompute(base, recomputing(base, kind, devices)); };
    };
    std::vector<Change> changes{
        {"recompute the attention core of every stage", recompute(Recompute::Selective, {})},
        {"recompute every layer", recompute(Recompute::Full, {})},
        {"offload activations to the host's memory",
         [](const Design& base) { return chooseOffloadedStages(base).design; }},
    };
    if (!over.empty() && std::ssize(over) < design.schedule.devices())
        changes.push_back({"recompute the stages of the devices that are over", recompute(Recompute::Full, over)});
    for (const auto& [name, zero] : sharingMore(design))
        changes.push_back({name, [more = zero](const Design& base) { return withZero(base, more); }});
    for (const Family& family : families())
        for (const char* lean : {"1f1b", "v-half", "v-min"}) // that keep few activations, and search nothing
            if (family.name == lean && design.schedule.family != lean)
                changes.push_back({"switch to " + std::string(family.title),
                                   [&family](const Design& base) { return withFamily(base, family); }});
    return changes;
}

/// Nothing where the change is impossible, or does not make it fit.
std::optional<MemoryRemedy> tried(const Design& design, const std::vector<const Change*>& changes)
{
    MemoryRemedy remedy;
    remedy.design = design;
    try {
        for (const Change* change : changes) {
            remedy.design = change->made(remedy.design);
            remedy.name += (remedy.name.empty() ? "" : " and ") + change->name;
        }
        if (remedy.design == design || hasErrors(checkDesign(remedy.design)))
            return std::nullopt;
        const OutlinedPrediction prediction = predictOutline(remedy.design);
        remedy.makespan = prediction.metrics.makespan;
        for (const DeviceMetrics& device : prediction.metrics.devices)
            remedy.peak = std::max(remedy.peak, device.peakBytes);
        return remedy;
    } catch (const Error&) { // such as a family that cannot be cut like this
        return std::nullopt;
    }
}

} // namespace

std::vector<MemoryRemedy> memoryRemedies(const Design& design, std::size_t most, const std::function<bool()>& stop)
{
    const std::vector<Change> changes = changesOf(design);
    std::vector<MemoryRemedy> found;
    const auto attempt = [&](const std::vector<const Change*>& together) {
        if (stop && stop())
            return false;
        if (std::optional<MemoryRemedy> remedy = tried(design, together))
            found.push_back(std::move(*remedy));
        return true;
    };
    for (const Change& change : changes)
        if (!attempt({&change}))
            return {};
    for (std::size_t second = 0; second < changes.size() && found.empty(); ++second)
        for (std::size_t first = 0; first < second; ++first)
            if (changes[second].name.starts_with("switch") != changes[first].name.starts_with("switch")
                && !attempt({&changes[second], &changes[first]}))
                return {};
    std::stable_sort(found.begin(), found.end(),
                     [](const MemoryRemedy& a, const MemoryRemedy& b) { return a.makespan < b.makespan; });
    if (found.size() > most)
        found.erase(found.begin() + static_cast<std::ptrdiff_t>(most), found.end());
    return found;
}

} // namespace pipewright
