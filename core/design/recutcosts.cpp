// SPDX-License-Identifier: GPL-3.0-or-later
// Divides every stage's time among its layers by their work, and adds up the layers' times for the other cut. O(layers
// + stages) per operation.
#include "core/design/recutcosts.h"

#include "core/base/diagnostic.h"
#include "core/design/stagecosts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <span>

namespace pipewright {

namespace {

/// The work to which an operation's time is assumed proportional.
double workOf(const Layer& layer, Op op)
{
    switch (op) {
    case Op::F:
    case Op::R: return layer.forwardWork();
    case Op::B: return layer.backwardWork();
    case Op::I: return layer.inputGradWork();
    case Op::W:
    case Op::U: return layer.weightGradWork();
    }
    return 0;
}

/// The times of one operation, layer by layer, and how fast each device does its work.
class LayerTimes {
public:
    LayerTimes(const std::vector<std::span<const Layer>>& stages, const Costs& costs,
               const std::vector<int>& deviceOfStage, Op op, Unevenness uneven)
        : m_op(op), m_uneven(uneven)
    {
        for (std::size_t s = 0; s < stages.size(); ++s) {
            double all = 0;
            for (const Layer& layer : stages[s])
                all += workOf(layer, op);
            const auto time = static_cast<double>(costs.stages[s].*timeField(op));
            const int device = deviceOfStage.empty() ? 0 : deviceOfStage[s];
            for (const Layer& layer : stages[s]) {
                m_times.push_back(time
                                  * (all > 0 ? workOf(layer, op) / all : 1.0 / static_cast<double>(stages[s].size())));
                m_devices.push_back(device);
            }
            if (all > 0)
                for (Pace* pace : {&m_paces[device], &m_all}) {
                    pace->time += time;
                    pace->work += all;
                }
        }
    }

    double on(int device, std::size_t index, const Layer& layer) const
    {
        const double work = workOf(layer, m_op);
        if (m_uneven == Unevenness::OfLayers || device == m_devices[index] || work <= 0 || m_all.work <= 0)
            return m_times[index];
        const auto own = m_paces.find(device);
        const Pace& pace = own == m_paces.end() ? m_all : own->second;
        return work * pace.time / pace.work;
    }

    double alone(std::size_t index) const { return m_times[index]; }

private:
    struct Pace {
        double time = 0, work = 0;
    };
    Op m_op;
    Unevenness m_uneven;
    std::vector<double> m_times;
    std::vector<int> m_devices; ///< where each layer was
    std::map<int, Pace> m_paces;
    Pace m_all;
};

/// The stage of `from` with the same layers on the same device; -1 when there is none.
int sameStage(const StageCut& from, const StageCut& to, std::size_t stage)
{
    const auto begin = std::accumulate(to.layersPerStage.begin(), to.layersPerStage.begin() + std::ptrdiff_t(stage), 0);
    int at = 0;
    for (std::size_t s = 0; s < from.layersPerStage.size(); at += from.layersPerStage[s++])
        if (at == begin && from.layersPerStage[s] == to.layersPerStage[stage]
            && (to.deviceOfStage.empty() || from.deviceOfStage[s] == to.deviceOfStage[stage]))
            return static_cast<int>(s);
    return -1;
}

} // namespace

namespace {

/// Whether the first stage does next to nothing in its input gradient though its layers have work for one: its input
/// wants no gradient, and the framework (PyTorch's) leaves the whole backward to the weight gradient.
bool leavesAllToWeightGrad(const Workload& workload, const std::vector<int>& layersPerStage, const StageCosts& first)
{
    constexpr double muchWork = 0.2;
    constexpr Nanoseconds shareOfNothing = 20;
    const std::optional<double> share = inputGradShares(workload, layersPerStage).front();
    return share && *share > muchWork && first.weightGrad > 0
           && first.inputGrad < (first.inputGrad + first.weightGrad) / shareOfNothing;
}

/// The first stage's costs as if it were another stage: its backward split by the model's work.
StageCosts asOtherStages(const Workload& workload, const std::vector<int>& layersPerStage, StageCosts first)
{
    const Nanoseconds both = first.inputGrad + first.weightGrad;
    first.inputGrad = std::llround(static_cast<double>(both) * *inputGradShares(workload, layersPerStage).front());
    first.weightGrad = both - first.inputGrad;
    first.fitParts();
    return first;
}

} // namespace

namespace {

/// A fraction of a list, counted from the first layer, which backward passes reach last.
std::vector<BlockPart> shareOfParts(std::span<const BlockPart> parts, Op op, double from, double to)
{
    return isBackward(op) ? cutOf(parts, 1 - to, 1 - from) : cutOf(parts, from, to);
}

bool anyParts(const Costs& costs, Op op)
{
    return std::any_of(costs.stages.begin(), costs.stages.end(),
                       [op](const StageCosts& stage) { return !stage.parts[indexOf(op)].empty(); });
}

/// The parts of a stage with the layers [begin, end): pieces of the lists of their previous stages, by the layers'
/// times.
std::vector<BlockPart> partsOfLayers(const std::vector<std::span<const Layer>>& before, const Costs& costs,
                                     const LayerTimes& times, Op op, std::size_t begin, std::size_t end)
{
    std::vector<BlockPart> parts;
    std::size_t first = 0;
    for (std::size_t s = 0; s < before.size(); first += before[s++].size()) {
        const std::size_t behind = first + before[s].size();
        if (std::max(begin, first) >= std::min(end, behind))
            continue;
        double all = 0, front = 0, within = 0;
        for (std::size_t layer = first; layer < behind; ++layer) {
            const double time = times.alone(layer);
            all += time;
            (layer < begin ? front : within) += layer < end ? time : 0;
        }
        if (all <= 0)
            continue;
        const std::vector<BlockPart> list = costs.stages[s].partsOrWhole(op);
        std::vector<BlockPart> piece = shareOfParts(list, op, front / all, (front + within) / all);
        if (isBackward(op))
            std::swap(parts, piece);
        appendParts(parts, piece);
    }
    return parts;
}

} // namespace

namespace {

/// What copies of the pipeline exchange is in proportion to the parameters.
void shareByParameters(const Costs& from, Nanoseconds StageCosts::*time, Costs& to)
{
    double all = 0, parameters = 0;
    for (const StageCosts& stage : from.stages) {
        all += static_cast<double>(stage.*time);
        parameters += static_cast<double>(stage.allParameters());
    }
    for (StageCosts& stage : to.stages)
        stage.*time = parameters > 0 ? std::llround(all * static_cast<double>(stage.allParameters()) / parameters) : 0;
}

} // namespace

Costs recutCosts(const Workload& workload, const Costs& costs, const StageCut& from, const StageCut& to,
                 Unevenness uneven)
{
    const auto before = layersOfStages(workload, from.layersPerStage);
    const auto after = layersOfStages(workload, to.layersPerStage);
    if (before.size() != costs.stages.size())
        throw Error("costs.stages",
                    fmt::format("costs of {} stages for a cut into {}", costs.stages.size(), before.size()),
                    "give one entry per stage");
    if (leavesAllToWeightGrad(workload, from.layersPerStage, costs.stages.front())) {
        Costs plain = costs;
        plain.stages.front() = asOtherStages(workload, from.layersPerStage, costs.stages.front());
        Costs recut = recutCosts(workload, plain, from, to, uneven);
        StageCosts& first = recut.stages.front();
        const Nanoseconds both = first.inputGrad + first.weightGrad;
        first.inputGrad = std::min(both, costs.stages.front().inputGrad);
        first.weightGrad = both - first.inputGrad;
        first.fitParts();
        return recut;
    }
    Costs recut = costs;
    recut.linkOfPair.clear();
    recut.stages.assign(after.size(), {});
    std::vector<int> sameStages;
    for (std::size_t s = 0; s < after.size(); ++s)
        sameStages.push_back(sameStage(from, to, s));
    for (const Op op : allOps) {
        const LayerTimes times(before, costs, to.deviceOfStage.empty() ? std::vector<int>{} : from.deviceOfStage, op,
                               uneven);
        const bool parts = anyParts(costs, op);
        std::size_t index = 0;
        for (std::size_t s = 0; s < after.size(); ++s) {
            const std::size_t begin = index;
            double sum = 0;
            for (const Layer& layer : after[s])
                sum += times.on(to.deviceOfStage.empty() ? 0 : to.deviceOfStage[s], index++, layer);
            const int same = sameStages[s];
            recut.stages[s].*timeField(op) = same < 0 ? std::llround(sum) : costs.stages[same].*timeField(op);
            recut.stages[s].origin[indexOf(op)] =
                same < 0 ? CostOrigin::Estimated : costs.stages[same].origin[indexOf(op)];
            recut.stages[s].spread[indexOf(op)] =
                same < 0 ? costs.usualSpread(op) : costs.stages[same].spread[indexOf(op)];
            if (parts)
                recut.stages[s].parts[indexOf(op)] = same < 0 ? partsOfLayers(before, costs, times, op, begin, index)
                                                              : costs.stages[same].parts[indexOf(op)];
        }
    }
    for (StageCosts& stage : recut.stages)
        stage.fitParts();
    applyBytes(workload, to.layersPerStage, to.choices, recut);
    for (const auto time : {&StageCosts::reduceGradients, &StageCosts::gather})
        shareByParameters(costs, time, recut);
    return recut;
}

namespace {

/// The time of the part [from, to) of a model of which every stage is an equal part; 0 to 1 is all of it.
Nanoseconds timeOfPart(const Costs& costs, Nanoseconds StageCosts::*time, double from, double to)
{
    const auto stages = static_cast<double>(costs.stages.size());
    double sum = 0;
    for (std::size_t s = 0; s < costs.stages.size(); ++s) {
        const double begin = std::max(from * stages, static_cast<double>(s)),
                     end = std::min(to * stages, static_cast<double>(s + 1));
        sum += std::max(0.0, end - begin) * static_cast<double>(costs.stages[s].*time);
    }
    return std::llround(sum);
}

} // namespace

Costs shareOutCosts(const Costs& costs, const std::vector<int>& fromDeviceOfStage,
                    const std::vector<int>& toDeviceOfStage, Unevenness uneven)
{
    const int devices = 1 + *std::max_element(fromDeviceOfStage.begin(), fromDeviceOfStage.end());
    const auto holds = [](const std::vector<int>& placement, int device) {
        return std::count(placement.begin(), placement.end(), device);
    };
    const auto used =
        static_cast<std::int64_t>(std::set<int>(fromDeviceOfStage.begin(), fromDeviceOfStage.end()).size());
    Costs shared = costs;
    shared.stages.clear();
    for (const int device : toDeviceOfStage) {
        const bool own = device < devices && holds(fromDeviceOfStage, device) > 0;
        const std::int64_t parts = holds(toDeviceOfStage, device) * (own ? 1 : used);
        StageCosts& stage = shared.stages.emplace_back();
        stage.output = costs.stages.front().output;
        const auto share = [&](auto field) {
            std::int64_t sum = 0;
            for (std::size_t s = 0; s < costs.stages.size(); ++s)
                if (!own || fromDeviceOfStage[s] == device)
                    sum += costs.stages[s].*field;
            stage.*field = sum / parts;
        };
        const auto before = std::count(toDeviceOfStage.begin(),
                                       toDeviceOfStage.begin() + std::ptrdiff_t(shared.stages.size()) - 1, device);
        const auto number = static_cast<double>(shared.stages.size() - 1);
        const auto count = static_cast<double>(toDeviceOfStage.size());
        for (const Op op : allOps) {
            if (uneven == Unevenness::OfLayers)
                stage.*timeField(op) = timeOfPart(costs, timeField(op), number / count, (number + 1) / count);
            else
                share(timeField(op));
            stage.spread[indexOf(op)] = costs.usualSpread(op);
            if (!anyParts(costs, op))
                continue;
            std::vector<BlockPart> all;
            for (std::size_t s = 0; s < costs.stages.size(); ++s)
                if (!own || fromDeviceOfStage[s] == device) {
                    std::vector<BlockPart> more = costs.stages[s].partsOrWhole(op);
                    if (isBackward(op))
                        std::swap(all, more);
                    appendParts(all, more);
                }
            stage.parts[indexOf(op)] = shareOfParts(all, op, static_cast<double>(before) / static_cast<double>(parts),
                                                    static_cast<double>(before + 1) / static_cast<double>(parts));
        }
        stage.fitParts();
        using S = StageCosts;
        for (const auto field : {&S::savedUntilInputGrad,
                                 &S::savedUntilWeightGrad,
                                 &S::savedFromInputGrad,
                                 &S::sparedByBackward,
                                 &S::recomputedUntilInputGrad,
                                 &S::recomputedUntilWeightGrad,
                                 &S::workspaceRecompute,
                                 &S::sequenceGradient,
                                 &S::workspaceForward,
                                 &S::workspaceInputGrad,
                                 &S::workspaceWeightGrad,
                                 &S::workspaceBackward,
                                 &S::parameters,
                                 &S::gradients,
                                 &S::optimizerState,
                                 &S::framework,
                                 &S::gatheredParameters,
                                 &S::wholeGradients,
                                 &S::reduceGradients,
                                 &S::gather})
            share(field);
        stage.origin.fill(CostOrigin::Estimated);
    }
    return shared;
}

std::vector<std::optional<double>> inputGradShares(const Workload& workload, const std::vector<int>& layersPerStage)
{
    std::vector<std::optional<double>> shares;
    for (const std::span<const Layer> layers : layersOfStages(workload, layersPerStage)) {
        double inputGrad = 0, both = 0; // the halves of a table can be more than its full backward
        for (const Layer& layer : layers) {
            inputGrad += workOf(layer, Op::I);
            both += workOf(layer, Op::I) + workOf(layer, Op::W);
        }
        shares.push_back(both > 0 ? std::optional(inputGrad / both) : std::nullopt);
    }
    return shares;
}

} // namespace pipewright
