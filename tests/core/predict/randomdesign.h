// SPDX-License-Identifier: GPL-3.0-or-later
// Random designs of every family, with random features of a design, as far as they can be combined.
#pragma once

#include "core/families/family.h"
#include "core/program/compile.h"
#include "core/program/gatheredits.h"
#include "core/program/transferedits.h"
#include "core/schedule/edits.h"
#include "core/schedule/recomputeblocks.h"
#include "core/schedule/weightplan.h"
#include "makers/designs.h"

#include <optional>
#include <random>

namespace pipewright::test {

class RandomDesign {
public:
    explicit RandomDesign(unsigned seed) : m_random(seed) {}

    /// Nothing when the random choices cannot be combined.
    std::optional<Design> make()
    {
        const auto all = families();
        const Family& family = all[upTo(all.size() - 1)];
        const std::optional<Schedule> schedule = scheduleOf(family);
        if (!schedule)
            return std::nullopt;
        Design design = designOf(*schedule, costsOf(*schedule), std::string(family.name));
        recompute(design);
        addDataflow(design);
        if (!compiles(design))
            return std::nullopt;
        edit(design);
        for (int i = static_cast<int>(upTo(6)) - 3; i > 0; --i)
            design.schedule.pins.push_back({blockOf(design.schedule), static_cast<Nanoseconds>(upTo(30'000))});
        if (chance(4))
            stateAnOrder(design);
        statePartOrders(design);
        offload(design);
        shareStates(design);
        stateGathers(design);
        return compiles(design) ? std::optional(design) : std::nullopt;
    }

    /// Changes the times but not the bytes, so the Program has an order that these times would not give.
    void changeTimes(Costs& costs)
    {
        for (StageCosts& stage : costs.stages)
            setTimes(stage);
        costs.link.latency = static_cast<Nanoseconds>(upTo(1500));
        if (costs.hostLink)
            costs.hostLink->latency = static_cast<Nanoseconds>(upTo(3000));
    }

private:
    std::size_t upTo(std::size_t most) { return m_random() % (most + 1); }
    bool chance(unsigned oneIn) { return m_random() % oneIn == 0; }
    Nanoseconds time() { return static_cast<Nanoseconds>(8 + upTo(5000)); }
    Bytes bytes() { return chance(8) ? 0 : static_cast<Bytes>(upTo(600)); }

    std::optional<Schedule> scheduleOf(const Family& family)
    {
        FamilyParameters p = sized(2 + static_cast<int>(upTo(2)), 2 + static_cast<int>(upTo(6)));
        if (family.dataParallel) {
            p.layout = static_cast<WorkerLayout>(upTo(workerLayoutCount - 1));
            p.workers = 2 + static_cast<int>(upTo(1));
            for (p.devices = 1; p.devices < 12 && hasErrors(family.check(p)); ++p.devices)
                p.microbatches = *p.workers * 2;
        }
        if (family.chunksSelectable && chance(2))
            p.chunks = 1 + static_cast<int>(upTo(2));
        if (!family.updates && !family.dataParallel && chance(3)) {
            p.replicas = 2 + static_cast<int>(upTo(2));
            p.devices *= p.replicas;
            p.microbatches *= p.replicas;
        }
        if (family.cutsSequences)
            p.pieces = 2 + static_cast<int>(upTo(1));
        if (family.accumulates && chance(2))
            p.accumulate = 2;
        p.forward = time();
        p.inputGrad = time();
        p.weightGrad = time();
        for (int more = 0; more < 12; ++more, ++p.microbatches)
            try {
                return makeSchedule(family.name, p);
            } catch (const Error&) {
                // the family needs another number of microbatches
            }
        return std::nullopt;
    }

    void setTimes(StageCosts& stage)
    {
        for (Nanoseconds* at :
             {&stage.forward, &stage.inputGrad, &stage.weightGrad, &stage.backward, &stage.update, &stage.recompute})
            *at = time();
        stage.fitParts();
    }

    /// Few enough parts that all orders of a pair can be tried.
    void setParts(StageCosts& stage)
    {
        for (const Op op : {Op::F, Op::B, Op::I, Op::W, Op::R}) {
            std::vector<BlockPart>& parts = stage.parts[indexOf(op)];
            for (std::size_t left = chance(3) ? 0 : 1 + upTo(4); left > 0; --left)
                parts.push_back({"part", static_cast<Nanoseconds>(upTo(100)),
                                 chance(2) ? PartStream::Compute : PartStream::Communication, !chance(3)});
        }
        stage.fitParts();
    }

    Costs costsOf(const Schedule& schedule)
    {
        Costs costs;
        costs.stages.resize(static_cast<std::size_t>(schedule.stages()));
        for (StageCosts& stage : costs.stages) {
            setTimes(stage);
            for (Bytes* at : {&stage.savedUntilInputGrad, &stage.savedUntilWeightGrad, &stage.savedFromInputGrad,
                              &stage.sparedByBackward, &stage.output, &stage.sequenceGradient, &stage.workspaceForward,
                              &stage.workspaceInputGrad, &stage.workspaceWeightGrad, &stage.workspaceBackward,
                              &stage.parameters, &stage.gradients, &stage.optimizerState})
                *at = bytes();
        }
        if (!schedule.overlaps.empty() && !chance(3))
            for (StageCosts& stage : costs.stages)
                setParts(stage);
        if (chance(3))
            for (int m = 0; m < schedule.microbatches; ++m)
                costs.microbatches.push_back(
                    {0.25 + static_cast<double>(upTo(12)) / 8, static_cast<double>(upTo(6)) / 4});
        if (chance(3))
            costs.hostGaps.resize(1 + upTo(schedule.order.size() - 1));
        for (HostGaps& gaps : costs.hostGaps)
            for (Nanoseconds& gap : gaps.before)
                gap = static_cast<Nanoseconds>(upTo(700));
        costs.overlapFactor = 0.5 + static_cast<double>(upTo(64)) / 128;
        costs.reduce = time();
        costs.communication = chance(3)   ? Communication::Blocking
                              : chance(3) ? Communication::OneStream
                                          : Communication::Overlapped;
        const bool buses = chance(2), oneBus = chance(2);
        const auto link = [&] {
            const char* const names[] = {"", "switch", "host bridge"};
            return LinkCosts{static_cast<Nanoseconds>(upTo(1500)),
                             chance(5) ? 0 : 5e7 * static_cast<double>(1 + upTo(9)),
                             !buses   ? ""
                             : oneBus ? "switch"
                                      : names[upTo(2)]};
        };
        costs.link = link();
        for (int pair = 0; pair < static_cast<int>(upTo(4)); ++pair)
            costs.linkOfPair[{static_cast<int>(upTo(3)), static_cast<int>(upTo(3))}] = link();
        return costs;
    }

    void recompute(Design& design)
    {
        const Schedule& schedule = design.schedule;
        if (hasUpdates(schedule) || chance(2))
            return;
        std::vector<Recompute> ofStage;
        for (StageCosts& stage : design.costs.stages) {
            ofStage.push_back(recomputeKinds[upTo(std::size(recomputeKinds) - 1)]);
            if (!ofStage.back().byBlock())
                continue;
            for (Bytes* at :
                 {&stage.recomputedUntilInputGrad, &stage.recomputedUntilWeightGrad, &stage.workspaceRecompute})
                *at = bytes();
        }
        design.schedule = withRecompute(schedule, ofStage);
    }

    /// With copies that are only counted, or among drawn replicas.
    void shareStates(Design& design)
    {
        if (chance(3))
            return;
        Zero& zero = design.schedule.zero;
        const bool drawn = design.schedule.replicas() > 1;
        zero.level = hasUpdates(design.schedule) ? 0
                     : chance(3)                 ? Zero::highestLevel
                                                 : static_cast<int>(upTo(Zero::highestLevel));
        zero.prefetch = static_cast<int>(upTo(2));
        zero.reduce = !drawn && chance(2) ? Zero::Reduce::Each : Zero::Reduce::Last;
        zero.reshard.every = chance(2);
        for (int stage = 0; stage < design.schedule.stages() && !zero.reshard.every; ++stage)
            if (chance(2))
                zero.reshard.stages.push_back(stage);
        if (drawn && zero.sharesGradients())
            return;
        for (StageCosts& stage : design.costs.stages) {
            stage.reduceGradients = chance(4) ? 0 : time();
            stage.gather = zero.level < 3 && chance(4) ? 0 : time();
            if (zero.level >= 2 && !chance(5))
                stage.wholeGradients = stage.gradients + bytes();
            if (zero.level >= 3 && !chance(5))
                stage.gatheredParameters = stage.parameters + bytes();
        }
    }

    void stateGathers(Design& design)
    {
        if (!design.schedule.zero.sharesParameters() || !compiles(design))
            return;
        for (std::size_t left = upTo(4); left > 0; --left) {
            const auto& lane = design.schedule.order[upTo(design.schedule.order.size() - 1)];
            const EditResult placed = placeGather(design, lane[upTo(lane.size() - 1)], lane[upTo(lane.size() - 1)]);
            if (placed.legal())
                design.schedule = placed.schedule;
        }
    }

    void offload(Design& design)
    {
        Design with = design;
        with.costs.hostLink =
            LinkCosts{static_cast<Nanoseconds>(upTo(800)), chance(5) ? 0 : 5e7 * static_cast<double>(1 + upTo(30))};
        for (int stage = 0; stage < design.schedule.stages(); ++stage)
            with.schedule.offload.push_back(!chance(3));
        if (!chance(3) && compiles(with))
            design = with;
    }

    void addDataflow(Design& design)
    {
        const int stages = design.schedule.stages();
        if (stages >= 3 && chance(4)) {
            const int from = static_cast<int>(upTo(static_cast<std::size_t>(stages - 3)));
            const int to = from + 2 + static_cast<int>(upTo(static_cast<std::size_t>(stages - from - 3)));
            design.dataflow.skips.push_back({from, to, bytes()});
        }
        if (stages >= 2 && chance(4))
            design.dataflow.shared.push_back({0, stages - 1, bytes(), chance(2)});
        if (!compiles(design))
            design.dataflow = {};
    }

    static bool compiles(const Design& design)
    {
        try {
            (void)compile(design.schedule, design.costs, design.dataflow);
            return true;
        } catch (const Error&) {
            return false;
        }
    }

    const Block& blockOf(const Schedule& schedule)
    {
        const auto& lane = schedule.order[upTo(schedule.order.size() - 1)];
        return lane[upTo(lane.size() - 1)];
    }

    /// Swaps neighbours where the schedule can still run.
    void edit(Design& design)
    {
        for (std::size_t left = chance(2) ? 0 : upTo(12); left > 0; --left) {
            Design edited = design;
            auto& lane = edited.schedule.order[upTo(edited.schedule.order.size() - 1)];
            if (lane.size() < 2)
                continue;
            const std::size_t at = upTo(lane.size() - 2);
            std::swap(lane[at], lane[at + 1]);
            dropBrokenOverlaps(edited.schedule);
            edited.schedule.family = "custom";
            if (compiles(edited))
                design = edited;
        }
    }

    void statePartOrders(Design& design)
    {
        if (!design.costs.hasParts())
            return;
        for (const Overlap& pair : design.schedule.overlaps) {
            if (!chance(4))
                continue;
            const auto count = [&](const Block& block) {
                return design.costs.stages[static_cast<std::size_t>(block.stage)].partsOrWhole(block.op).size();
            };
            PartSequence sequence(count(pair.first), false);
            sequence.resize(sequence.size() + count(pair.second), true);
            std::shuffle(sequence.begin(), sequence.end(), m_random);
            statePartOrder(design.schedule, pair, sequence);
        }
    }

    void stateAnOrder(Design& design)
    {
        if (hasUpdates(design.schedule))
            return;
        const Program program = compile(design.schedule, design.costs, design.dataflow);
        const int device = static_cast<int>(upTo(program.devices.size() - 1));
        const auto count = transfersOf(program, device).size();
        if (count < 2)
            return;
        const int from = static_cast<int>(upTo(count - 1));
        EditResult moved = moveTransfer(design, program, device, from, std::max(0, from - 1));
        if (moved.legal())
            design.schedule = std::move(moved.schedule);
    }

    std::mt19937 m_random;
};

} // namespace pipewright::test
