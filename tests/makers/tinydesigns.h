// SPDX-License-Identifier: GPL-3.0-or-later
// Small schedules with their costs, one for each feature of a pipeline: tied weights, skips, replicas, overlaps, pieces
// of sequences. Each has bytes in every kind of buffer, so that memory is exercised.
#pragma once

#include "core/program/compile.h"
#include "core/program/transferedits.h"
#include "makers/designs.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace pipewright::tiny {

struct Case {
    Schedule schedule;
    Costs costs;
    Dataflow dataflow;
};

inline Case make(std::vector<int> deviceOfStage, int microbatches, const std::vector<std::string>& lanes,
                 BackwardStyle backward = BackwardStyle::Full)
{
    Case result;
    result.schedule = test::schedule(microbatches, std::move(deviceOfStage), lanes, backward);
    result.schedule.firstStageMaySplit = backward == BackwardStyle::Split;
    result.costs = test::distinctCosts(result.schedule.stages());
    return result;
}

inline Case gpipe()
{
    return make({0, 1, 2}, 3,
                {"F0.0 F0.1 F0.2 B0.0 B0.1 B0.2", "F1.0 F1.1 F1.2 B1.0 B1.1 B1.2", "F2.0 F2.1 F2.2 B2.0 B2.1 B2.2"});
}

inline Case oneForwardOneBackward()
{
    return make({0, 1}, 4, {"F0.0 F0.1 B0.0 F0.2 B0.1 F0.3 B0.2 B0.3", "F1.0 B1.0 F1.1 B1.1 F1.2 B1.2 F1.3 B1.3"});
}

inline Case zeroBubble()
{
    return make({0, 1}, 3,
                {"F0.0 F0.1 I0.0 F0.2 I0.1 W0.0 I0.2 W0.1 W0.2", "F1.0 I1.0 F1.1 I1.1 W1.0 F1.2 I1.2 W1.1 W1.2"},
                BackwardStyle::Split);
}

/// Stage 0 and 3 on device 0: a value stays on device 1 between stages 1 and 2.
inline Case vPlacement()
{
    return make({0, 1, 1, 0}, 2,
                {"F0.0 F0.1 F3.0 B3.0 F3.1 B3.1 B0.0 B0.1", "F1.0 F2.0 F1.1 F2.1 B2.0 B1.0 B2.1 B1.1"});
}

/// 1F1B whose first and last stage share a parameter on different devices.
inline Case tied()
{
    Case result = oneForwardOneBackward();
    result.dataflow.shared.push_back({0, 1, 96, true});
    return result;
}

/// A stage 0 that also hands its output to stage 2.
inline Case skipping()
{
    Case result = gpipe();
    result.dataflow.skips.push_back({0, 2, 48});
    return result;
}

/// Two copies of the model in opposite directions, with a parameter that stages 0 and 1 share.
inline Case twoReplicas()
{
    Case result =
        make({0, 1}, 4,
             {"F0.0 F0.1 B0.0 F1.2/1 B1.2/1 B0.1 F1.3/1 B1.3/1", "F0.2/1 F1.0 B1.0 F0.3/1 F1.1 B1.1 B0.2/1 B0.3/1"});
    result.schedule.replicaPlacements = {{1, 0}};
    result.dataflow.shared.push_back({0, 1, 96, true});
    return result;
}

/// Forwards and backwards that run together, on both devices.
inline Case overlapping()
{
    Case result =
        make({0, 1}, 4, {"F0.0 F0.1 F0.2 B0.0 F0.3 B0.1 B0.2 B0.3", "F1.0 B1.0 F1.1 B1.1 F1.2 B1.2 F1.3 B1.3"});
    for (const auto& [first, second] :
         {std::pair{"B0.0", "F0.3"}, {"B1.0", "F1.1"}, {"B1.1", "F1.2"}, {"B1.2", "F1.3"}})
        result.schedule.overlaps.push_back({test::block(first), test::block(second)});
    std::sort(result.schedule.overlaps.begin(), result.schedule.overlaps.end());
    result.costs.overlapFactor = 0.75;
    return result;
}

/// The same, and the blocks have parts on two streams.
inline Case pairsWithParts()
{
    Case result = overlapping();
    for (StageCosts& stage : result.costs.stages) {
        stage.parts[indexOf(Op::F)] = {{"attention", 3, PartStream::Compute, true},
                                       {"dispatch", 2, PartStream::Communication, true}};
        stage.parts[indexOf(Op::B)] = {{"combine", 2, PartStream::Communication, true},
                                       {"weights", 3, PartStream::Compute, false},
                                       {"attention", 2, PartStream::Compute, true}};
        stage.fitParts();
    }
    return result;
}

/// Sequences in two pieces: forwards go from the first to the second, backwards the other way.
inline Case pieces()
{
    Case result =
        make({0, 1}, 4, {"F0.0 F0.1 F0.2 B0.1 F0.3 B0.0 B0.3 B0.2", "F1.0 F1.1 B1.1 F1.2 B1.0 F1.3 B1.3 B1.2"});
    result.schedule.sequencePieces = 2;
    for (StageCosts& stage : result.costs.stages)
        stage.sequenceGradient = stage.output + 24;
    return result;
}

struct Named {
    const char* name;
    Case (*make)();
};
inline constexpr Named all[] = {{"GPipe", gpipe},
                                {"1F1B", oneForwardOneBackward},
                                {"split backward", zeroBubble},
                                {"V placement", vPlacement},
                                {"tied parameter", tied},
                                {"skip connection", skipping},
                                {"two replicas", twoReplicas},
                                {"overlapped pairs", overlapping},
                                {"pairs with parts", pairsWithParts},
                                {"pieces of sequences", pieces}};

/// Further variants of the costs: links, microbatches, hosts.
enum class Variant { Plain, Blocking, SharedLink, UnevenMicrobatches, StatedTransfers, HostGaps };

inline void apply(Variant variant, Case& which)
{
    switch (variant) {
    case Variant::Plain: break;
    case Variant::Blocking: which.costs.communication = Communication::Blocking; break;
    case Variant::SharedLink:
        // Slow enough that transfers queue up, and with one pair of devices on a wire of its own.
        which.costs.link = {250, 1e8, "switch"};
        which.costs.linkOfPair[{1, 0}] = {100, 2e8, "other"};
        which.costs.linkOfPair[{1, 2}] = {400, 5e7, "other"};
        break;
    case Variant::UnevenMicrobatches:
        for (int m = 0; m < which.schedule.microbatches; ++m)
            which.costs.microbatches.push_back({1 + m / 4.0, 1 + m / 8.0});
        break;
    case Variant::HostGaps:
        for (int d = 0; d < which.schedule.devices(); ++d)
            which.costs.hostGaps.push_back({{130 + 40 * d, 90, 80, 60, 50, 20}, {}});
        break;
    case Variant::StatedTransfers:
        // On every device the later of the first two sends that can change places goes first.
        for (int device = 0; device < which.schedule.devices(); ++device) {
            Design design = test::designOf(which.schedule, which.costs);
            design.dataflow = which.dataflow;
            const Program program = compile(which.schedule, which.costs, which.dataflow);
            const std::vector<IssuedTransfer> list = transfersOf(program, device);
            for (int i = 1; i < static_cast<int>(list.size()); ++i) {
                if (!list[i].sends || !list[i - 1].sends)
                    continue;
                if (EditResult edit = moveTransfer(design, program, device, i, i - 1); edit.legal()) {
                    which.schedule = std::move(edit.schedule);
                    break;
                }
            }
        }
        break;
    }
}

inline Program compiled(const Case& which, int outstandingSends = 2)
{
    return compile(which.schedule, which.costs, which.dataflow, {.outstandingSends = outstandingSends});
}

} // namespace pipewright::tiny
