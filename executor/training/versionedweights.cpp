// SPDX-License-Identifier: GPL-3.0-or-later
// Counts updates beside the maths: beforeBlock() writes down which version a block found in memory, update() which
// version each copy then holds. O(1) per block.
#include "executor/training/versionedweights.h"

#include "core/base/diagnostic.h"
#include "executor/training/blockmemory.h"

#include <fmt/format.h>

#include <algorithm>

namespace pipewright {

namespace {

const BufferView* find(std::span<const BufferView> views, BufferKind kind)
{
    for (const BufferView& view : views)
        if (view.description.kind == kind)
            return &view;
    return nullptr;
}

/// The partial sum of the block before: received from another device or, with sharded states, made on this one.
const BufferView* partialSum(std::span<const BufferView> reads)
{
    const BufferView* received = find(reads, BufferKind::ReceivedPartialGradient);
    return received != nullptr ? received : find(reads, BufferKind::PartialGradient);
}

} // namespace

void VersionedWeights::prepare(const Program& program)
{
    m_program = &program;
    m_held.assign(program.buffers.size(), {});
    m_cameFrom.assign(program.buffers.size(), none);
    m_readings.assign(program.tasks.size(), {});
    for (TaskId t = 0; t < program.tasks.size(); ++t)
        if (program.tasks[t].kind == TaskKind::Transfer)
            for (std::size_t i = 0; i < program.writes(t).size(); ++i)
                m_cameFrom[program.writes(t)[i]] = program.reads(t)[i];
}

void VersionedWeights::beginStep(std::span<const StageCopy> copies)
{
    for (const StageCopy& copy : copies)
        m_base = std::max(m_base, copy.version); // all are at the last version of the step before
    m_readings.assign(m_readings.size(), {});
}

std::span<const std::byte> VersionedWeights::beforeBlock(const TaskContext& context, const StageCopy& copy, bool bf16,
                                                         const StageOptimizer& optimizer)
{
    if (context.task->op == Op::W)
        return {};
    WeightReading& reading = m_readings[context.id];
    if (const BufferView* copied = find(context.reads, BufferKind::SentWeights)) {
        reading = held(copied->id);
        return bytes(copied->region);
    }
    if (const BufferView* brought = find(context.reads, BufferKind::ReceivedWeights)) {
        reading = m_held[brought->id] = held(m_cameFrom[brought->id]); // kept for the one that it hops to
        return bytes(brought->region);
    }
    for (const BufferKind kind : {BufferKind::PredictedWeights, BufferKind::WeightVersion})
        if (const BufferView* other = find(context.reads, kind)) {
            reading = held(other->id);
            return bytes(other->region);
        }
    reading = {copy.version - m_base, 0};
    const BufferView* made = find(context.writes, BufferKind::PredictedWeights);
    if (made == nullptr)
        return copy.stored;
    reading.steps = m_program->weights[context.id].steps;
    predict(context, copy, bf16, optimizer, reading.steps, bytes(made->region));
    m_held[made->id] = reading;
    return bytes(made->region);
}

void VersionedWeights::predict(const TaskContext& context, const StageCopy& copy, bool bf16,
                               const StageOptimizer& optimizer, int steps, std::span<std::byte> made)
{
    const kernels::Operations& on = *context.operations;
    if (!bf16) {
        optimizer.predict(on, copy.version, steps, copy.parameters, copy.state,
                          {reinterpret_cast<float*>(made.data()), made.size() / sizeof(float)});
        return;
    }
    const std::span<std::uint16_t> narrow{reinterpret_cast<std::uint16_t*>(made.data()),
                                          made.size() / sizeof(std::uint16_t)};
    if (on.computesWithStored()) {
        optimizer.predict(on, copy.version, steps, copy.parameters, copy.state, narrow);
        return;
    }
    const BufferView* workspace = find(context.writes, BufferKind::Workspace);
    if (workspace == nullptr || floats(workspace->region).empty())
        throw Error(fmt::format("stage {}", context.task->stage), "has no workspace to predict its weights in",
                    "write \"widened\": true in the model");
    const std::span<float> wide = floats(workspace->region);
    for (std::size_t first = 0; first < copy.parameters.size(); first += wide.size()) {
        const std::span<float> part = wide.first(std::min(wide.size(), copy.parameters.size() - first));
        optimizer.predict(on, copy.version, steps, copy.parameters, copy.state, part, first);
        on.run(kernels::Narrow{part, narrow.subspan(first, part.size())});
    }
}

std::span<float> VersionedWeights::gradientSum(const TaskContext& context, const StageCopy& copy)
{
    const kernels::Operations& on = *context.operations;
    const BufferView* sum = partialSum(context.reads);
    const BufferView* hopping = m_program->shardedStates ? find(context.writes, BufferKind::PartialGradient) : nullptr;
    const std::span<float> place = hopping != nullptr ? floats(hopping->region) : copy.gradients;
    if (sum != nullptr)
        on.copy(std::span<const float>(floats(sum->region)), place);
    else if (hopping != nullptr)
        on.run(kernels::Fill{place, 0});
    return place;
}

void VersionedWeights::afterBlock(const TaskContext& context, StageCopy& copy)
{
    if (m_program->shardedStates)
        return; // gradientSum() already accumulates in the buffer that is sent
    const kernels::Operations& on = *context.operations;
    if (const BufferView* sum = find(context.writes, BufferKind::PartialGradient)) {
        on.copy(std::span<const float>(copy.gradients), floats(sum->region));
        on.run(kernels::Fill{copy.gradients, 0});
    }
}

void VersionedWeights::update(const TaskContext& context, StageCopy& copy, bool bf16, const StageOptimizer& optimizer)
{
    const kernels::Operations& on = *context.operations;
    const auto copyInto = [&on](const BufferView& view, std::span<const std::byte> weights) {
        on.run(kernels::copyOf<std::byte>(weights, bytes(view.region)));
    };
    if (const BufferView* older = find(context.writes, BufferKind::WeightVersion)) {
        copyInto(*older, copy.stored);
        m_held[older->id] = {copy.version - m_base, 0};
    }
    if (context.task->kind == TaskKind::CopyWeightsOut) {
        const BufferView* sent = find(context.writes, BufferKind::SentWeights);
        copyInto(*sent, copy.stored);
        m_held[sent->id] = {copy.version - m_base, 0};
        return;
    }
    if (context.task->kind == TaskKind::CopyWeightsIn) {
        const BufferView* received = find(context.reads, BufferKind::ReceivedWeights);
        if (received == nullptr)
            throw Error(m_program->label(context.id), "has no weights to put in place", "compile the schedule again");
        on.run(kernels::copyOf<std::byte>(bytes(received->region), copy.stored));
        copy.version = held(m_cameFrom[received->id]).version + m_base;
        return;
    }
    // Sums from elsewhere in ascending order of microbatches, then the own one: addition commutes bit by bit.
    std::span<float> sum;
    for (const BufferView& view : context.reads)
        if (view.description.kind == BufferKind::ReceivedPartialGradient) {
            if (sum.empty())
                sum = floats(view.region);
            else
                on.run(kernels::Add{sum, std::span<const float>(floats(view.region))});
        }
    if (m_program->shardedStates)
        on.copy(std::span<const float>(floats(partialSum(context.reads)->region)), copy.gradients);
    else if (!sum.empty())
        on.run(kernels::Add{copy.gradients, std::span<const float>(sum)});
    optimizer.update(on, copy.version + 1, copy.parameters, copy.gradients, copy.state);
    if (bf16) // else they are the same
        on.run(kernels::Narrow{copy.parameters,
                               {reinterpret_cast<std::uint16_t*>(copy.stored.data()), copy.parameters.size()}});
    ++copy.version;
    if (const BufferView* sent = find(context.writes, BufferKind::SentWeights)) {
        copyInto(*sent, copy.stored);
        m_held[sent->id] = {copy.version - m_base, 0};
    }
    on.run(kernels::Fill{copy.gradients, 0});
}

TaskId VersionedWeights::firstDifference() const
{
    for (TaskId t = 0; t < m_readings.size(); ++t)
        if (m_readings[t].version >= 0
            && !(m_readings[t] == WeightReading{m_program->weights[t].version, m_program->weights[t].steps}))
            return t;
    return none;
}

} // namespace pipewright
