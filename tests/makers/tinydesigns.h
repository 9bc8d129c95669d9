// SPDX-License-Identifier: GPL-3.0-or-later
// Small schedules for executor tests, each with bytes in every kind of buffer so that memory is exercised,
// and a work that computes checksums, so that a wrong or late buffer changes the result.
#pragma once

#include "core/program/compile.h"
#include "core/program/transferorder.h"
#include "core/schedule/schedule.h"
#include "executor/runtime/stagework.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace tiny {

using namespace pipewright;

struct Case {
    Schedule schedule;
    Costs costs;
    Dataflow dataflow;
};

/// Different sizes and times per stage, so that nothing fits by accident.
inline Costs costsFor(int stages)
{
    Costs costs;
    for (int s = 0; s < stages; ++s) {
        StageCosts stage;
        stage.forward = 1000 + 100 * s;
        stage.inputGrad = 1300 + 70 * s;
        stage.weightGrad = 900 + 30 * s;
        stage.backward = stage.inputGrad + stage.weightGrad;
        stage.update = 500;
        stage.savedUntilInputGrad = 200 + 24 * s;
        stage.savedUntilWeightGrad = 120 + 8 * s;
        stage.savedFromInputGrad = 72;
        stage.output = 160;
        stage.workspaceForward = 40;
        stage.workspaceInputGrad = 300;
        stage.workspaceWeightGrad = 16;
        stage.workspaceBackward = 320;
        stage.parameters = 256;
        stage.gradients = 256;
        stage.optimizerState = 512;
        costs.stages.push_back(stage);
    }
    costs.link = {250, 1e9};
    costs.reduce = 700;
    return costs;
}

inline Case make(std::vector<int> deviceOfStage, int microbatches, std::vector<std::string> lists, bool split = false)
{
    Case result;
    result.schedule.family = "custom";
    result.schedule.microbatches = microbatches;
    result.schedule.deviceOfStage = std::move(deviceOfStage);
    result.schedule.backward = split ? BackwardStyle::Split : BackwardStyle::Full;
    result.schedule.firstStageMaySplit = split;
    for (const std::string& list : lists) {
        auto& order = result.schedule.order.emplace_back();
        for (std::size_t begin = 0; begin < list.size();) {
            const std::size_t end = std::min(list.find(' ', begin), list.size());
            if (end > begin)
                order.push_back(parseBlock(list.substr(begin, end - begin)).value());
            begin = end + 1;
        }
    }
    result.costs = costsFor(result.schedule.stages());
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
                {"F0.0 F0.1 I0.0 F0.2 I0.1 W0.0 I0.2 W0.1 W0.2", "F1.0 I1.0 F1.1 I1.1 W1.0 F1.2 I1.2 W1.1 W1.2"}, true);
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
    result.dataflow.shared.push_back({0, 1, 96});
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
    result.dataflow.shared.push_back({0, 1, 96});
    return result;
}

/// Forwards and backwards that run together, on both devices.
inline Case overlapping()
{
    Case result =
        make({0, 1}, 4, {"F0.0 F0.1 F0.2 B0.0 F0.3 B0.1 B0.2 B0.3", "F1.0 B1.0 F1.1 B1.1 F1.2 B1.2 F1.3 B1.3"});
    for (const auto& [first, second] :
         {std::pair{"B0.0", "F0.3"}, {"B1.0", "F1.1"}, {"B1.1", "F1.2"}, {"B1.2", "F1.3"}})
        result.schedule.overlaps.push_back({parseBlock(first).value(), parseBlock(second).value()});
    std::sort(result.schedule.overlaps.begin(), result.schedule.overlaps.end());
    result.costs.overlapFactor = 0.75;
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
                                {"pieces of sequences", pieces}};

/// What else costs may say about links and microbatches.
enum class Variant { Plain, Blocking, SharedLink, UnevenMicrobatches, StatedTransfers };

inline void apply(Variant variant, Case& which)
{
    switch (variant) {
    case Variant::Plain: break;
    case Variant::Blocking: which.costs.blockingTransfers = true; break;
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
    case Variant::StatedTransfers:
        // On every device the later of the first two sends that can change places goes first.
        for (int device = 0; device < which.schedule.devices(); ++device) {
            Design design;
            design.schedule = which.schedule;
            design.costs = which.costs;
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

/// Every buffer that a task writes is filled from what it reads, its own name and the step; weight
/// gradients add up. Any stale, early or misplaced read changes the sums.
class ChecksumWork : public StageWork {
public:
    std::string name() const override { return "checksum"; }
    void prepare(const Program& program, std::span<const Region> regions) override
    {
        m_program = &program;
        m_gradients.resize(static_cast<std::size_t>(program.stages() * program.replicas()));
        for (BufferId b = 0; b < program.buffers.size(); ++b) {
            if (program.buffers[b].kind == BufferKind::Gradients)
                m_gradients[gradientIndex(program.buffers[b].stage, program.buffers[b].replica)] = regions[b];
        }
    }
    void beginStep(int) override
    {
        for (const Region& region : m_gradients)
            std::memset(region.data, 0, static_cast<std::size_t>(region.bytes));
    }
    double endStep(int) override { return noLoss; }
    void compute(const TaskContext& context) override
    {
        if (onCompute)
            onCompute(context);
        std::uint64_t sum =
            0x9e3779b97f4a7c15u * (context.task->microbatch + 1) + static_cast<std::uint64_t>(context.task->op);
        for (const BufferView& view : context.reads)
            sum = fold(sum, view.region);
        for (const BufferView& view : context.writes)
            fill(sum, view.region);
        for (const BufferView& view : context.reads)
            if (view.description->kind == BufferKind::SequenceGradient) // every piece adds to it
                fill(sum, view.region);
        if (context.task->op == Op::B || context.task->op == Op::W) {
            const Region gradients = m_gradients[gradientIndex(context.task->stage, context.task->replica)];
            for (Bytes i = 0; i + 8 <= gradients.bytes; i += 8) {
                std::uint64_t value;
                std::memcpy(&value, gradients.data + i, 8);
                value = value * 3 + (sum ^ static_cast<std::uint64_t>(i)); // order of microbatches matters
                std::memcpy(gradients.data + i, &value, 8);
            }
        }
    }
    void update(const TaskContext&) override {}
    Region sharedPart(const Task& reduce, const BufferView& gradients) override
    {
        return reduce.kind == TaskKind::ReplicaSum ? gradients.region : Region{gradients.region.data, 96};
    }
    void reduce(const TaskContext&, Region own, Region theirs, bool both) override
    {
        for (Bytes i = 0; i + 8 <= own.bytes; i += 8) {
            std::uint64_t a, b;
            std::memcpy(&a, own.data + i, 8);
            std::memcpy(&b, theirs.data + i, 8);
            a += b;
            std::memcpy(own.data + i, &a, 8);
            if (both)
                std::memcpy(theirs.data + i, &a, 8);
        }
    }

    /// The gradient sums of all stages and replicas, as bytes.
    std::vector<std::byte> result() const
    {
        std::vector<std::byte> bytes;
        for (const Region& region : m_gradients)
            bytes.insert(bytes.end(), region.data, region.data + region.bytes);
        return bytes;
    }

    std::function<void(const TaskContext&)> onCompute;

private:
    std::size_t gradientIndex(int stage, int replica) const
    {
        return static_cast<std::size_t>(replica * m_program->stages() + stage);
    }
    static void fill(std::uint64_t& sum, Region region)
    {
        for (Bytes i = 0; i < region.bytes; ++i) {
            sum = sum * 6364136223846793005u + 1442695040888963407u;
            region.data[i] = static_cast<std::byte>(sum >> 56);
        }
    }
    static std::uint64_t fold(std::uint64_t sum, Region region)
    {
        for (Bytes i = 0; i < region.bytes; ++i)
            sum = (sum ^ static_cast<std::uint64_t>(region.data[i])) * 1099511628211u;
        return sum;
    }
    const Program* m_program = nullptr;
    std::vector<Region> m_gradients;
};

} // namespace tiny
