// SPDX-License-Identifier: GPL-3.0-or-later
// Small random designs with everything that the search takes, and all orders of a design as the predictor sees them.
// The model of the search has no part in either, so both judge it.
#pragma once

#include "core/predict/predict.h"
#include "core/program/compile.h"
#include "core/search/placement.h"
#include "core/search/search.h"
#include "makers/designs.h"

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace pipewright::test {

/// What a random design may have; each is forced in its turn, so that every one is seen.
enum class SearchedFeature {
    Recompute,
    MixedBackwards,
    Skips,
    Pins,
    Locks,
    UnlikeMicrobatches,
    HostGaps,
    Bus,
    WaitingTransfers,
    SharedParameter,
    TransferOrder,
    LinksOfPairs,
    SharedStates,
    MemoryInBytes,
    MemoryOfDevices,
    MemoryAsFactor,
    Count
};

class SearchedDesign {
public:
    explicit SearchedDesign(unsigned seed) : m_random(seed), m_forced(static_cast<int>(seed % features)) {}

    static constexpr int features = static_cast<int>(SearchedFeature::Count);
    using Feature = SearchedFeature;

    Design design;
    SearchOptions options;

    int below(int count) { return static_cast<int>(m_random() % static_cast<unsigned>(count)); }
    bool has(Feature feature) const { return m_has[static_cast<std::size_t>(feature)]; }

    /// One microbatch after the other; memory limits come later (limitMemory()).
    void make()
    {
        for (int f = 0; f < features; ++f)
            m_has[static_cast<std::size_t>(f)] = f == m_forced || below(6) == 0;
        Schedule& schedule = design.schedule;
        schedule.family = "custom";
        schedule.firstStageMaySplit = true;
        const int devices = 1 + below(3), stages = devices + below(2);
        schedule.microbatches = 1 + below(3);
        schedule.order.resize(static_cast<std::size_t>(devices));
        for (int s = 0; s < stages; ++s)
            schedule.deviceOfStage.push_back(s < devices ? s : below(devices));
        std::shuffle(schedule.deviceOfStage.begin(), schedule.deviceOfStage.end(), m_random);
        schedule.backward = below(2) == 0 ? BackwardStyle::Split : BackwardStyle::Full;
        design.costs = uniformCosts({}, stages, 1);
        design.costs.link.latency = below(4);
        design.cluster.devices.resize(static_cast<std::size_t>(devices));
        if (has(Feature::Recompute))
            for (int s = 0; s < stages; ++s)
                schedule.recompute.push_back(std::array{Recompute::None, Recompute::Block, Recompute::BlockSelective,
                                                        Recompute::Block}[static_cast<std::size_t>(below(4))]);
        for (int s = 0; s < stages; ++s)
            fill(design.costs.stages[s], schedule.recomputeOf(s) != Recompute::None);
        placeInTurn(schedule);
        if (has(Feature::MixedBackwards))
            mixBackwards(schedule);
        fillCosts(devices);
        fillDataflow(stages);
        if (has(Feature::SharedStates))
            shareStates();
        for (int pins = has(Feature::Pins) ? 1 + below(2) : 0; pins > 0; --pins)
            schedule.pins.push_back({anyBlock(), below(40)});
        for (const std::vector<Block>& lane : schedule.order)
            for (const Block& block : lane)
                if (has(Feature::Locks) && below(3) == 0)
                    options.locked.push_back(block);
        options.objective = below(2) == 0 ? SearchObjective::Span : SearchObjective::Makespan;
        options.timeLimit = std::chrono::milliseconds(0);
        options.rounds = 1;
        options.seed = m_random();
    }

    /// A limit that this prediction just meets, or one that is a little lower.
    void limitMemory(const Metrics& metrics)
    {
        const Bytes less = below(3);
        if (has(Feature::MemoryAsFactor) && design.schedule.recompute.empty()) {
            for (StageCosts& stage : design.costs.stages) // counted in microbatches, which I does not release
                stage.savedUntilInputGrad = stage.savedUntilWeightGrad = stage.savedFromInputGrad = 0;
            options.limit.factor = (1 + below(4)) * 0.5;
        } else if (has(Feature::MemoryInBytes)) {
            Bytes most = 0;
            for (const DeviceMetrics& device : metrics.devices)
                most = std::max(most, device.peakBytes);
            options.limit.bytes = std::max<Bytes>(1, most - less);
        } else if (has(Feature::MemoryOfDevices)) {
            for (std::size_t d = 0; d < metrics.devices.size(); ++d)
                design.cluster.devices[d].memory = std::max<Bytes>(1, metrics.devices[d].peakBytes - less);
        }
    }

private:
    void fill(StageCosts& stage, bool recomputes)
    {
        const auto time = [&] { return below(8) == 0 ? Nanoseconds{0} : Nanoseconds{1 + below(9)}; };
        stage.forward = time(), stage.inputGrad = time(), stage.weightGrad = time();
        stage.backward = below(3) == 0 ? time() : stage.inputGrad + stage.weightGrad;
        stage.update = below(3);
        stage.savedUntilInputGrad = below(4), stage.savedUntilWeightGrad = below(4);
        stage.savedFromInputGrad = below(4), stage.sparedByBackward = below(3);
        stage.output = below(5);
        stage.workspaceForward = below(3), stage.workspaceInputGrad = below(3);
        stage.workspaceWeightGrad = below(3), stage.workspaceBackward = below(3);
        stage.parameters = below(3), stage.gradients = below(3), stage.optimizerState = below(3);
        stage.framework = below(3);
        if (!recomputes)
            return;
        stage.recompute = time();
        stage.recomputedUntilInputGrad = below(4), stage.recomputedUntilWeightGrad = below(4);
        stage.workspaceRecompute = below(3);
    }

    /// With copies of the pipeline that are only counted.
    void shareStates()
    {
        Zero& zero = design.schedule.zero;
        zero.level = 2 + below(2);
        zero.prefetch = below(3);
        zero.reduce = below(2) == 0 ? Zero::Reduce::Each : Zero::Reduce::Last;
        zero.reshard.every = below(2) == 0;
        for (StageCosts& stage : design.costs.stages) {
            stage.reduceGradients = below(6);
            stage.gather = below(6);
            stage.wholeGradients = stage.gradients + below(4);
            if (zero.sharesParameters())
                stage.gatheredParameters = stage.parameters + below(4);
        }
    }

    /// Joins or splits single backwards.
    void mixBackwards(Schedule& schedule)
    {
        for (std::vector<Block>& lane : schedule.order)
            for (std::size_t i = 0; i < lane.size(); ++i) {
                if (!makesInputGrad(lane[i].op) || below(2) == 0)
                    continue;
                if (lane[i].op == Op::I) {
                    lane[i].op = Op::B;
                    lane.erase(lane.begin() + static_cast<std::ptrdiff_t>(i) + 1);
                } else {
                    lane[i].op = Op::I;
                    Block weight = lane[i];
                    weight.op = Op::W;
                    lane.insert(lane.begin() + static_cast<std::ptrdiff_t>(i) + 1, weight);
                }
            }
    }

    void fillCosts(int devices)
    {
        Costs& costs = design.costs;
        if (has(Feature::UnlikeMicrobatches))
            for (int m = 0; m < design.schedule.microbatches; ++m)
                costs.microbatches.push_back({0.5 * (1 + below(4)), 0.5 * (1 + below(4))});
        for (int d = 0; has(Feature::HostGaps) && d < devices; ++d) {
            HostGaps& gaps = costs.hostGaps.emplace_back();
            for (Nanoseconds& gap : gaps.before)
                gap = below(4);
        }
        if (below(2) == 0)
            costs.link.bytesPerSecond = 1e9; // a byte in a nanosecond
        if (has(Feature::Bus)) {
            costs.link.bytesPerSecond = 5e8;
            costs.link.bus = "bus";
        }
        if (has(Feature::WaitingTransfers))
            costs.communication = below(2) == 0 ? Communication::Blocking : Communication::OneStream;
        if (has(Feature::LinksOfPairs))
            for (int from = 0; from < devices; ++from)
                for (int to = 0; to < devices; ++to)
                    if (from != to && below(2) == 0)
                        costs.linkOfPair[{from, to}] = {below(9), below(2) == 0 ? 1e9 : 0};
        costs.reduce = below(4);
    }

    void fillDataflow(int stages)
    {
        if (has(Feature::Skips) && stages > 1)
            for (int skips = 1 + below(2), from = below(stages - 1); skips > 0; --skips)
                design.dataflow.skips.push_back({from, from + 1 + below(stages - from - 1), Bytes{below(9)}});
        if (has(Feature::SharedParameter) && stages > 1)
            design.dataflow.shared.push_back({0, stages - 1, Bytes{below(4)}});
        const std::vector<int>& device = design.schedule.deviceOfStage;
        if (has(Feature::TransferOrder) && design.schedule.microbatches > 1)
            for (int s = 0; s + 1 < stages; ++s)
                if (device[s] != device[s + 1] && below(2) == 0) {
                    const auto sent = [&](int m) { return Transfer{{Op::F, s, m, 0}, device[s + 1]}; };
                    const int first = below(design.schedule.microbatches);
                    design.schedule.transferOrder.push_back(
                        {sent(first), sent((first + 1) % design.schedule.microbatches)});
                }
    }

    Block anyBlock()
    {
        const std::vector<Block>& lane =
            design.schedule.order[static_cast<std::size_t>(below(design.schedule.devices()))];
        return lane[static_cast<std::size_t>(below(static_cast<int>(lane.size())))];
    }

    std::mt19937 m_random;
    int m_forced;
    std::array<bool, features> m_has{};
};

/// An order that can run.
struct PredictedOrder {
    Schedule schedule;
    Metrics metrics;
    std::vector<double> chunks; ///< per device: most microbatches of its stages that are kept at a time
};

/// Calls `see` with every order of the blocks of `design` that can run and keeps `locked` in its order; false, perhaps
/// after some, when there are more than `most`.
inline bool eachPredictedOrder(const Design& design, const std::vector<Block>& locked, std::size_t most,
                               const std::function<void(const PredictedOrder&)>& see)
{
    std::vector<std::vector<std::vector<Block>>> lanes; // per device: all its orders
    std::size_t count = 1;
    for (const std::vector<Block>& lane : design.schedule.order) {
        std::vector<std::vector<Block>>& all = lanes.emplace_back();
        const auto isLocked = [&](const Block& block) {
            return std::find(locked.begin(), locked.end(), block) != locked.end();
        };
        const auto comesFirst = [&](const Block& a, const Block& b) { // `lane` is an order that may run
            const bool sameCell = a.stage == b.stage && a.microbatch == b.microbatch;
            return sameCell || (isLocked(a) && isLocked(b));
        };
        std::vector<Block> made;
        std::vector<bool> placed(lane.size(), false);
        const auto extend = [&](const auto& self) -> void {
            if (made.size() == lane.size())
                all.push_back(made);
            for (std::size_t i = 0; i < lane.size() && all.size() <= most; ++i) {
                bool ready = !placed[i];
                for (std::size_t before = 0; ready && before < i; ++before)
                    ready = placed[before] || !comesFirst(lane[before], lane[i]);
                if (!ready)
                    continue;
                placed[i] = true;
                made.push_back(lane[i]);
                self(self);
                made.pop_back();
                placed[i] = false;
            }
        };
        extend(extend);
        if ((count *= all.size()) > most)
            return false;
    }
    PredictedOrder order{design.schedule, {}, {}};
    Design one = design;
    for (std::size_t number = 0; number < count; ++number) {
        std::size_t rest = number;
        for (std::size_t d = 0; d < lanes.size(); ++d) {
            one.schedule.order[d] = lanes[d][rest % lanes[d].size()];
            rest /= lanes[d].size();
        }
        try {
            order.metrics = predict(one).metrics;
        } catch (const Deadlock&) {
            continue;
        }
        order.schedule = one.schedule;
        see(order);
    }
    return true;
}

/// Does the prediction of an order of this design keep the limit?
inline bool keepsLimit(const Design& design, const Metrics& metrics, const MemoryLimit& limit)
{
    for (int d = 0; d < design.schedule.devices(); ++d) {
        const DeviceMetrics& device = metrics.devices[static_cast<std::size_t>(d)];
        if (limit.factor) { // counted in chunks: activations of one microbatch in one stage
            const std::vector<int>& placement = design.schedule.deviceOfStage;
            const double own = static_cast<double>(std::count(placement.begin(), placement.end(), d));
            if (device.peakActivations * design.schedule.chunks()
                > *limit.factor * design.schedule.devices() * own + 1e-9)
                return false;
            continue;
        }
        const Bytes bytes = limit.bytes.value_or(design.cluster.devices[static_cast<std::size_t>(d)].memory);
        if (bytes > 0 && device.peakBytes > bytes)
            return false;
    }
    return true;
}

} // namespace pipewright::test
