// SPDX-License-Identifier: GPL-3.0-or-later
// prepare() gives each buffer of the Program its role and checks its size against the stage's layout; compute() then
// only looks up the views and calls the stage (storedstage.h). O(buffers) once, O(1) per block beside the maths.
#include "executor/training/trainingwork.h"

#include "core/base/diagnostic.h"
#include "executor/training/blockmemory.h"
#include "executor/training/tiedgradients.h"
#include "kernels/matmul.h"

#include <fmt/format.h>

#include <cstring>

namespace pipewright {

TrainingWork::TrainingWork(const Workload& workload, const std::vector<int>& layersPerStage, int microbatches,
                           const OptimizerSettings& optimizer, const TrainingData& data, std::uint64_t seed, int batch,
                           const std::vector<Recompute>& recompute)
    : m_batch(batch > 0 ? batch : microbatches), m_sequencePieces(workload.shape.sequencePieces), m_seed(seed),
      m_data(data), m_losses(static_cast<std::size_t>(microbatches))
{
    int first = 0;
    for (const int layers : layersPerStage) {
        const std::size_t stage = m_stages.size();
        StoredStage maths(workload, first, first + layers, m_batch,
                          stage < recompute.size() ? recompute[stage] : Recompute::None);
        StageOptimizer stageOptimizer(maths.parameters(), optimizer);
        m_stages.push_back({std::move(maths), std::move(stageOptimizer)});
        if (layers >= 0 && std::size_t(first + layers) <= workload.layers.size()) // otherwise an error is thrown below
            m_chosen.push_back(choicesOf(std::span(workload.layers).subspan(std::size_t(first), std::size_t(layers))));
        first += layers;
    }
    if (first != static_cast<int>(workload.layers.size()))
        throw Error("layersPerStage",
                    fmt::format("the stages hold {} of the model's {} layers", first, workload.layers.size()),
                    "embedding and head count as layers");
    const auto count = static_cast<std::size_t>(microbatches);
    m_tokens.assign(count, std::vector<std::int32_t>(static_cast<std::size_t>(workload.shape.inputs())));
    m_targets.assign(count, std::vector<std::int32_t>(static_cast<std::size_t>(workload.shape.targets())));
}

void TrainingWork::prepare(const Program& program, std::span<const Region> regions)
{
    if (program.stages() != stages() || program.microbatches != static_cast<int>(m_losses.size()))
        throw Error("run", "the program is of another number of stages or microbatches than the model");
    if (program.sequencePieces != m_sequencePieces)
        throw Error("run", fmt::format("the model is cut for {} pieces of a sequence, the program for {}",
                                       m_sequencePieces, program.sequencePieces));
    if (program.devices.size() > 1 && !kernels::concurrentProductsAreSafe())
        throw Error("OpenBLAS", "the build that was loaded is not safe for several devices at once",
                    "install libopenblas0-pthread, and let update-alternatives and LD_LIBRARY_PATH choose it");
    m_program = &program;
    if (program.versioned()) {
        m_versions.prepare(program);
        for (TaskId t = 0; t < program.tasks.size(); ++t)
            if (program.tasks[t].kind == TaskKind::Compute && program.weights[t].batchSize != m_batch)
                throw Error(
                    program.label(t),
                    fmt::format("its update takes {} microbatches, others {}", program.weights[t].batchSize, m_batch),
                    "the built-in models average over as many in every update");
    }
    m_regions.assign(regions.begin(), regions.end());
    findLastWeightGrads();
    preparePlaces();
    if (m_choices && m_backend)
        m_choices->prepare(program, *m_backend);
    for (const Buffer& buffer : program.buffers)
        checkSize(buffer);
    for (TaskId t = 0; t < program.tasks.size(); ++t)
        checkWorkspace(t);
    bindCopies(regions);
    for (std::size_t i = 0; i < m_copies.size(); ++i)
        if (m_deviceOfCopy[i] >= 0)
            initialise(i);
        else if (!program.versioned())
            throw Error("run", "the program has no memory for a stage's parameters",
                        "take the bytes of the costs from the workload");
}

void TrainingWork::keepChoices()
{
    const auto count = [chosen = m_chosen](const Program& program, TaskId t) {
        const Task& task = program.tasks[t];
        return task.kind == TaskKind::Compute && task.op == Op::F ? chosen[std::size_t(task.stage)] : 0;
    };
    m_choices.emplace(count, KeptChoices::On::OtherMemory);
}

void TrainingWork::preparePlaces()
{
    m_places.clear();
    m_places.resize(m_program->devices.size());
    for (std::size_t d = 0; m_backend && d < m_places.size(); ++d) {
        Place& place = m_places[d];
        if (!isLocal(static_cast<int>(d)))
            continue;
        place.device = &m_backend->device(static_cast<int>(d));
        place.onHost = place.device->capabilities().hostAddressable;
        place.stream = place.device->createStream();
        place.operations = place.device->createOperations(*place.stream);
        const Ends ends = endsOn(*m_program, static_cast<int>(d));
        place.hasHead = ends.head;
        if (!place.onHost && (ends.head || ends.embedding))
            place.memory = place.device->allocate(textBytes());
    }
}

TrainingWork::Ends TrainingWork::endsOn(const Program& program, int device) const
{
    Ends ends;
    for (const Task& task : program.tasks)
        if (task.kind == TaskKind::Compute && task.op == Op::F && task.device == device) {
            const StoredStage& maths = at(task.stage).maths;
            ends.embedding = ends.embedding || maths.hasEmbedding();
            ends.head = ends.head || maths.hasHead();
        }
    return ends;
}

/// In the layout of textOn() and lossesOn().
Bytes TrainingWork::textBytes() const
{
    return static_cast<Bytes>(m_tokens.size() * (2 * m_tokens.front().size() * sizeof(std::int32_t) + sizeof(float)));
}

Bytes TrainingWork::bytesBeside(const Program& program, int device, const Capabilities& capabilities) const
{
    const Ends ends = endsOn(program, device);
    const Bytes choices = m_choices ? m_choices->bytesOn(program, device, capabilities) : 0;
    return choices + (!capabilities.hostAddressable && (ends.head || ends.embedding) ? textBytes() : 0);
}

/// Input data of one microbatch, on a device with memory of its own.
Region TrainingWork::textOn(const Place& place, std::size_t microbatch, bool targets) const
{
    // A classifier has fewer targets than it reads bytes; each has a place of the same size.
    const std::size_t slot = m_tokens.front().size() * sizeof(std::int32_t);
    return {place.memory->region().data + (2 * microbatch + targets) * slot,
            static_cast<Bytes>((targets ? m_targets : m_tokens).front().size() * sizeof(std::int32_t))};
}

Region TrainingWork::lossesOn(const Place& place) const
{
    const std::size_t text = 2 * m_tokens.size() * m_tokens.front().size() * sizeof(std::int32_t);
    return {place.memory->region().data + text, static_cast<Bytes>(m_losses.size() * sizeof(float))};
}

void TrainingWork::checkSize(const Buffer& buffer) const
{
    const Stage& stage = at(buffer.stage);
    const std::size_t count = stage.maths.parameters().count();
    const auto share = static_cast<std::size_t>(shareOf(buffer.stage, buffer.replica).count());
    auto expected = static_cast<std::size_t>(buffer.bytes);
    switch (buffer.kind) {
    case BufferKind::Parameters:
    case BufferKind::WeightVersion:
    case BufferKind::PredictedWeights: expected = static_cast<std::size_t>(stage.maths.parameterBytes()); break;
    case BufferKind::SentWeights:
    case BufferKind::ReceivedWeights:
        expected = static_cast<std::size_t>(stage.maths.parameterBytes()) / count * share;
        break;
    case BufferKind::Gradients:
    case BufferKind::PartialGradient:
    case BufferKind::ReceivedPartialGradient: expected = count * sizeof(float); break;
    case BufferKind::OptimizerState:
        expected = (stage.optimizer.stateElements() + masters(stage)) / count * share * sizeof(float);
        break;
    case BufferKind::SavedUntilInputGrad:
    case BufferKind::SavedUntilWeightGrad:
    case BufferKind::SavedFromInputGrad:
    case BufferKind::RecomputedUntilInputGrad:
    case BufferKind::RecomputedUntilWeightGrad:
    case BufferKind::SequenceGradient: expected = static_cast<std::size_t>(stage.maths.bytes(buffer.kind)); break;
    case BufferKind::OffloadedUntilInputGrad:
    case BufferKind::ReloadedUntilInputGrad:
        expected = static_cast<std::size_t>(stage.maths.bytes(BufferKind::SavedUntilInputGrad));
        break;
    case BufferKind::OffloadedUntilWeightGrad:
    case BufferKind::ReloadedUntilWeightGrad:
        expected = static_cast<std::size_t>(stage.maths.bytes(BufferKind::SavedUntilWeightGrad));
        break;
    case BufferKind::Output:
    case BufferKind::ReceivedOutput:
    case BufferKind::Gradient:
    case BufferKind::ReceivedGradient: expected = static_cast<std::size_t>(stage.maths.activationBytes()); break;
    case BufferKind::ReduceInbox:
    case BufferKind::Workspace: break; // which pass it belongs to depends on the task
    }
    if (expected != static_cast<std::size_t>(buffer.bytes))
        throw Error(fmt::format("stage {}", buffer.stage),
                    fmt::format("a buffer has {} where the model needs {}", exactSize(buffer.bytes),
                                exactSize(static_cast<Bytes>(expected))),
                    "take the bytes of the costs from the workload");
}

void TrainingWork::checkWorkspace(TaskId task) const
{
    const Task& of = m_program->tasks[task];
    if (of.kind != TaskKind::Compute)
        return;
    Bytes found = 0;
    for (const BufferId b : m_program->writes(task))
        if (m_program->buffers[b].kind == BufferKind::Workspace)
            found += m_program->buffers[b].bytes;
    if (const Bytes expected = at(of.stage).maths.workspace(of.op); found != expected)
        throw Error(m_program->label(task),
                    fmt::format("it has {} to work in where the model needs {}", exactSize(found), exactSize(expected)),
                    "take the bytes of the costs from the workload");
}

void TrainingWork::bindCopies(std::span<const Region> regions)
{
    const Program& program = *m_program;
    const std::size_t holders =
        program.versioned() ? program.devices.size() : static_cast<std::size_t>(program.replicas());
    m_savedForWeights.assign(m_stages.size() * m_losses.size(), {});
    m_recomputedForWeights.assign(m_savedForWeights.size(), {});
    m_reloadedForWeights.assign(m_savedForWeights.size(), {});
    m_copies.assign(m_stages.size() * holders, {});
    m_deviceOfCopy.assign(m_copies.size(), -1);
    for (BufferId b = 0; b < program.buffers.size(); ++b) {
        const Buffer& buffer = program.buffers[b];
        const std::size_t index = copyIndex(buffer.stage, holderOf(buffer.replica, buffer.device));
        StageCopy& copy = m_copies[index];
        const std::size_t saved = savedIndex(buffer.stage, buffer.microbatch);
        if (buffer.kind == BufferKind::Parameters) {
            copy.stored = bytes(regions[b]);
            if (masters(at(buffer.stage)) == 0)
                copy.parameters = floats(regions[b]);
            m_deviceOfCopy[index] = buffer.device;
        } else if (buffer.kind == BufferKind::Gradients) {
            copy.gradients = floats(regions[b]);
        } else if (buffer.kind == BufferKind::OptimizerState) {
            const std::span<float> all = floats(regions[b]);
            const bool hasMasters = masters(at(buffer.stage)) > 0;
            const auto share = static_cast<std::size_t>(shareOf(buffer.stage, buffer.replica).count());
            const std::size_t count = std::min(all.size(), hasMasters ? share : 0);
            if (all.data()) // else another process has it
                copy.state = all.subspan(count);
            if (count > 0)
                copy.parameters = all.first(count);
        } else if (buffer.kind == BufferKind::RecomputedUntilWeightGrad) {
            m_recomputedForWeights[saved] = regions[b];
        } else if (buffer.kind == BufferKind::SavedUntilWeightGrad) {
            m_savedForWeights[saved] = regions[b];
        } else if (buffer.kind == BufferKind::ReloadedUntilWeightGrad) {
            m_reloadedForWeights[saved] = regions[b];
        } // the task that uses another kind finds it itself; checkSize() knows all kinds
    }
}

void TrainingWork::initialise(std::size_t index)
{
    const int device = m_deviceOfCopy[index];
    if (!isLocal(device))
        return;
    StageCopy& copy = m_copies[index];
    const StoredStage& maths = m_stages[index % m_stages.size()].maths;
    const ParameterLayout& layout = maths.parameters();
    const Place& place = placeOf(device);
    const kernels::Operations& on = place.operations ? *place.operations : kernels::hostOperations();
    const auto fill = [&](std::span<float> values) {
        if (m_start)
            m_start(layout, values);
        else
            layout.initialise(values, m_seed);
    };
    const bool hasShare = !copy.parameters.empty() && copy.parameters.size() < layout.count();
    if (place.onHost && !copy.parameters.empty() && !hasShare) {
        fill(copy.parameters);
    } else {
        std::vector<float> values(layout.count());
        fill(values);
        const auto write = [&place](std::span<std::byte> to, const void* from) {
            if (place.onHost)
                std::memcpy(to.data(), from, to.size());
            else
                place.device->write(*place.stream, {to.data(), static_cast<Bytes>(to.size())}, from);
        };
        if (copy.parameters.empty() || hasShare) { // the master copies are on the devices that update
            std::vector<std::byte> stored(copy.stored.size());
            maths.store(kernels::hostOperations(), values, stored);
            write(copy.stored, stored.data());
        }
        if (!copy.parameters.empty()) {
            const auto replica = static_cast<int>(index / m_stages.size());
            const auto begin = hasShare ? shareOf(static_cast<int>(index % m_stages.size()), replica).begin : 0;
            write(std::as_writable_bytes(copy.parameters), values.data() + begin);
        }
    }
    if (maths.isBf16() && !copy.parameters.empty() && !hasShare)
        maths.store(on, copy.parameters, copy.stored);
    on.run(kernels::Fill{copy.gradients, 0});
    on.run(kernels::Fill{copy.state, 0});
    if (place.stream)
        place.stream->synchronize();
}

void TrainingWork::beginStep(int step)
{
    for (std::size_t m = 0; m < m_tokens.size(); ++m)
        if (m_feed)
            m_feed(step, static_cast<int>(m), m_tokens[m], m_targets[m]);
        else
            m_data.sample(step, static_cast<int>(m), m_tokens[m], m_targets[m]);
    if (m_program->versioned())
        m_versions.beginStep(m_copies);
    for (std::size_t i = 0; i < m_copies.size(); ++i) {
        const int device = m_deviceOfCopy[i];
        if (device < 0 || !isLocal(device))
            continue;
        const Place& place = placeOf(device);
        (place.operations ? *place.operations : kernels::hostOperations()).run(kernels::Fill{m_copies[i].gradients, 0});
    }
    for (const Place& place : m_places) {
        for (std::size_t m = 0; place.memory && m < m_tokens.size(); ++m)
            for (const bool targets : {false, true})
                place.device->write(*place.stream, textOn(place, m, targets),
                                    (targets ? m_targets : m_tokens)[m].data());
        if (place.stream)
            place.stream->synchronize();
    }
}

double TrainingWork::endStep(int)
{
    for (const Place& place : m_places) {
        if (!place.memory || !place.hasHead)
            continue;
        std::vector<float> losses(m_losses.size());
        place.device->read(*place.stream, lossesOn(place), losses.data());
        for (const Task& task : m_program->tasks)
            if (task.kind == TaskKind::Compute && task.op == Op::F && at(task.stage).maths.hasHead()
                && &placeOf(task.device) == &place)
                m_losses[task.microbatch] = losses[task.microbatch];
    }
    double loss = 0; // ascending, as the reference adds them
    for (const float share : m_losses)
        loss += share;
    return loss * m_batch / static_cast<double>(m_losses.size()); // with several updates: their mean
}

std::vector<double> TrainingWork::microbatchLosses() const
{
    std::vector<double> losses;
    for (const float share : m_losses)
        losses.push_back(double(share) * m_batch);
    return losses;
}

void TrainingWork::compute(const TaskContext& context)
{
    const Task& task = *context.task;
    const StoredStage& maths = at(task.stage).maths;
    StageCopy& copy = copyOf(task);
    const bool versioned = m_program->versioned();
    const std::span<const std::byte> weights =
        versioned ? m_versions.beforeBlock(context, copy, maths, at(task.stage).optimizer) : copy.stored;
    const std::span<float> gradients =
        versioned && isBackward(task.op) ? m_versions.gradientSum(context, copy) : copy.gradients;
    const auto microbatch = static_cast<std::size_t>(task.microbatch);
    BlockMemory memory(context, task.microbatch % m_sequencePieces);
    memory.saved.operations = context.operations;
    if (task.op == Op::I) {
        const Region back = m_reloadedForWeights[savedIndex(task.stage, task.microbatch)];
        memory.saved.savedUntilWeightGrad =
            bytes(back.bytes > 0 ? back : m_savedForWeights[savedIndex(task.stage, task.microbatch)]);
        memory.saved.recomputedUntilWeightGrad = bytes(m_recomputedForWeights[savedIndex(task.stage, task.microbatch)]);
    }
    StoredInput kept; // of a backward that recomputes
    kept.activation = memory.input;
    kept.skips = memory.skipInputs;
    memory.saved.input = &kept;
    switch (task.op) {
    case Op::F:
    case Op::R: {
        StoredInput input{m_tokens[microbatch], memory.input, m_targets[microbatch],
                          std::span(m_losses).subspan(microbatch, 1), memory.skipInputs};
        if (const Place& place = placeOf(task.device); place.memory) {
            input.tokens = integers(textOn(place, microbatch, false));
            input.targets = integers(textOn(place, microbatch, true));
            input.loss = floats(lossesOn(place)).subspan(microbatch, 1);
        }
        if (task.op == Op::R) {
            maths.recompute(weights, input, memory.saved);
            keepProbabilities(task, memory.saved);
            break;
        }
        std::optional<KeepingChoices> keeping;
        if (const auto kept = m_choices ? m_choices->on(context.id) : std::span<std::int32_t>(); !kept.empty())
            memory.saved.operations = &keeping.emplace(*context.operations, kept);
        maths.forward(weights, input, memory.saved, memory.output);
        for (const std::span<std::byte> skip : memory.skipOutputs)
            context.operations->run(kernels::copyOf<std::byte>(memory.output, skip));
        keepProbabilities(task, memory.saved);
        if (maths.hasHead() && m_listener)
            m_listener(task.microbatch, double(m_losses[microbatch]) * m_batch);
        break;
    }
    case Op::B:
        maths.backward(weights, memory.saved, memory.outputGrad, memory.inputGrad, gradients, memory.skipGrads);
        break;
    case Op::I:
        maths.inputGrad(weights, memory.saved, memory.outputGrad, memory.inputGrad, gradients, memory.skipGrads);
        break;
    case Op::W: maths.weightGrad(memory.saved, gradients); break;
    case Op::U: break;
    }
    if (m_sumsTied[context.id])
        sumTiedGradients(*context.operations, maths.parameters(), copy.gradients);
    for (const std::span<std::byte> skip : memory.skipInputGrads)
        context.operations->run(kernels::copyOf<std::byte>(memory.inputGrad, skip));
    if (versioned)
        m_versions.afterBlock(context, copy);
}

/// In a stage with full recomputation the probabilities exist after R, not after F.
void TrainingWork::keepProbabilities(const Task& task, const StageMemory& memory)
{
    const StoredStage& maths = at(task.stage).maths;
    const auto& recompute = m_program->recompute;
    const bool isMadeAgain = !recompute.empty() && recompute[task.stage] == Recompute::Block;
    if (maths.hasHead() && !m_probabilities.empty() && !placeOf(task.device).memory
        && task.op == (isMadeAgain ? Op::R : Op::F))
        m_probabilities[task.microbatch] = maths.probabilities(memory);
}

void TrainingWork::update(const TaskContext& context)
{
    const Stage& stage = at(context.task->stage);
    StageCopy& copy = copyOf(*context.task);
    if (m_program->versioned()) {
        if (context.task->kind == TaskKind::Update)
            sumTiedGradients(*context.operations, stage.maths.parameters(), copy.gradients);
        m_versions.update(context, copy, stage.maths, stage.optimizer);
        return;
    }
    if (m_program->sharesOptimizer()) {
        updateShare(context, copy);
        return;
    }
    stage.optimizer.update(*context.operations, context.step + 1, copy.parameters, copy.gradients, copy.state);
    if (stage.maths.isBf16())
        stage.maths.store(*context.operations, copy.parameters, copy.stored);
}

Region TrainingWork::mirrorOf(BufferId buffer)
{
    const Region region = m_regions[buffer];
    const Place& place = placeOf(m_program->buffers[buffer].device);
    if (region.data && place.onHost)
        return region;
    std::vector<std::byte>& mirror = m_mirrors[buffer];
    mirror.resize(static_cast<std::size_t>(region.bytes));
    return {mirror.data(), region.bytes};
}

void TrainingWork::fetch(BufferKind kind)
{
    for (BufferId b = 0; b < m_program->buffers.size(); ++b) {
        const Buffer& buffer = m_program->buffers[b];
        const Place& place = placeOf(buffer.device);
        if (buffer.kind == kind && isLocal(buffer.device) && !place.onHost)
            place.device->read(*place.stream, m_regions[b], mirrorOf(b).data);
    }
}

std::span<const float> TrainingWork::onHost(std::span<float> values, int stage, int replica, BufferKind kind) const
{
    const std::size_t index = copyIndex(stage, holderOf(replica, m_program->deviceOfStage[stage]));
    if (values.data() && placeOf(m_deviceOfCopy[index]).onHost)
        return values;
    for (const auto& [buffer, mirror] : m_mirrors) {
        const Buffer& description = m_program->buffers[buffer];
        if (description.kind == kind && description.stage == stage
            && copyIndex(description.stage, holderOf(description.replica, description.device)) == index)
            return {reinterpret_cast<const float*>(mirror.data()), mirror.size() / sizeof(float)};
    }
    return {}; // not fetched
}

} // namespace pipewright
