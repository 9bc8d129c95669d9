// SPDX-License-Identifier: GPL-3.0-or-later
// prepare() gives each buffer of the Program its role and checks its size against the stage's layout; compute() then
// only looks up the views and calls the stage (storedstage.h). O(buffers) once, O(1) per block beside the maths.
#include "executor/training/trainingwork.h"

#include "core/base/diagnostic.h"
#include "executor/training/blockmemory.h"
#include "executor/training/tiedgradients.h"
#include "kernels/matmul.h"

#include <cstring>
#include <fmt/format.h>

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
    useProgram(program, regions);
    if (program.versioned()) {
        m_versions.prepare(program);
        for (TaskId t = 0; t < program.tasks.size(); ++t)
            if (program.tasks[t].kind == TaskKind::Compute && program.weights[t].batchSize != m_batch)
                throw Error(
                    program.label(t),
                    fmt::format("its update takes {} microbatches, others {}", program.weights[t].batchSize, m_batch),
                    "the built-in models average over as many in every update");
    }
    findLastWeightGrads();
    preparePlaces();
    for (const Buffer& buffer : program.buffers)
        checkSize(buffer);
    for (TaskId t = 0; t < program.tasks.size(); ++t)
        checkWorkspace(t);
    bindCopies();
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
        if (!place.onHost && (ends.head || ends.embedding)) {
            place.memory = place.device->allocate(textBytes());
            place.staging = place.device->createStaging(textBytes());
        }
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
    return static_cast<Bytes>(m_tokens.size() * (2 * slotBytes() + sizeof(float)));
}

Bytes TrainingWork::bytesBeside(const Program& program, int device, const Capabilities& capabilities) const
{
    const Ends ends = endsOn(program, device);
    return TrainedWork::bytesBeside(program, device, capabilities)
           + (!capabilities.hostAddressable && (ends.head || ends.embedding) ? textBytes() : 0);
}

/// Input data of one microbatch, in the memory or the staging of a device with memory of its own.
Region TrainingWork::textOn(const Allocation& memory, std::size_t microbatch, bool targets) const
{
    // A classifier has fewer targets than it reads bytes; each has a place of the same size.
    return {memory.region().data + (2 * microbatch + targets) * slotBytes(),
            static_cast<Bytes>((targets ? m_targets : m_tokens).front().size() * sizeof(std::int32_t))};
}

Region TrainingWork::lossesOn(const Allocation& memory) const
{
    return {memory.region().data + 2 * m_tokens.size() * slotBytes(),
            static_cast<Bytes>(m_losses.size() * sizeof(float))};
}

void TrainingWork::checkSize(const Buffer& buffer) const
{
    const Stage& stage = at(buffer.stage);
    const std::size_t count = countOf(buffer.stage), masters = isBf16() ? count : 0;
    const auto share = static_cast<std::size_t>(shareOf(count, buffer.replica).count());
    auto expected = static_cast<std::size_t>(buffer.bytes);
    switch (buffer.kind) {
    case BufferKind::Parameters:
        expected = static_cast<std::size_t>(stage.maths.parameterBytes()) / count
                   * (m_program->sharesParametersOfReplicas() ? share : count);
        break;
    case BufferKind::GatheredParameters:
    case BufferKind::WeightVersion:
    case BufferKind::PredictedWeights: expected = static_cast<std::size_t>(stage.maths.parameterBytes()); break;
    case BufferKind::SentWeights:
    case BufferKind::ReceivedWeights:
        expected = static_cast<std::size_t>(stage.maths.parameterBytes()) / count * share;
        break;
    case BufferKind::Gradients: expected = m_program->sharesGradientsOfReplicas() ? 0 : count * sizeof(float); break;
    case BufferKind::KeptGradients: expected = share * sizeof(float); break;
    case BufferKind::WholeGradients:
    case BufferKind::PartialGradient:
    case BufferKind::ReceivedPartialGradient: expected = count * sizeof(float); break;
    case BufferKind::OptimizerState:
        expected = (stage.optimizer.stateElements() + masters) / count * share * sizeof(float);
        break;
    case BufferKind::Framework: break; // of designs that are not trained here
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

void TrainingWork::bindCopies()
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
        const std::size_t saved = savedIndex(buffer.stage, buffer.microbatch);
        bindCopy(b, countOf(buffer.stage), m_copies[index]);
        if (buffer.kind == BufferKind::Parameters) {
            m_deviceOfCopy[index] = buffer.device;
        } else if (buffer.kind == BufferKind::RecomputedUntilWeightGrad) {
            m_recomputedForWeights[saved] = m_regions[b];
        } else if (buffer.kind == BufferKind::SavedUntilWeightGrad) {
            m_savedForWeights[saved] = m_regions[b];
        } else if (buffer.kind == BufferKind::ReloadedUntilWeightGrad) {
            m_reloadedForWeights[saved] = m_regions[b];
        } // the task that uses another kind finds it itself; checkSize() knows all kinds
    }
}

void TrainingWork::initialise(std::size_t index)
{
    const int device = m_deviceOfCopy[index];
    if (!isLocal(device))
        return;
    const ParameterLayout& layout = m_stages[index % m_stages.size()].maths.parameters();
    std::vector<float> values(layout.count());
    if (m_start)
        m_start(layout, values);
    else
        layout.initialise(values, m_seed);
    const auto holder = static_cast<int>(index / m_stages.size());
    TrainedWork::initialise(m_copies[index], device, m_program->versioned() ? 0 : holder, values);
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
        if (device >= 0 && isLocal(device))
            clearGradients(m_copies[i], device);
    }
    for (const Place& place : m_places) {
        for (std::size_t m = 0; place.memory && m < m_tokens.size(); ++m)
            for (const bool targets : {false, true}) {
                const Region text = textOn(*place.staging, m, targets);
                std::memcpy(text.data, (targets ? m_targets : m_tokens)[m].data(),
                            static_cast<std::size_t>(text.bytes));
            }
        if (place.memory)
            place.device->write(*place.stream,
                                {place.memory->region().data, static_cast<Bytes>(2 * m_tokens.size() * slotBytes())},
                                place.staging->region().data);
        if (place.stream)
            place.stream->synchronize();
    }
}

double TrainingWork::endStep(int)
{
    for (const Place& place : m_places) {
        if (!place.memory || !place.hasHead)
            continue;
        const std::span<float> losses = floats(lossesOn(*place.staging));
        place.device->read(*place.stream, lossesOn(*place.memory), losses.data());
        for (const Task& task : m_program->tasks)
            if (task.kind == TaskKind::Compute && task.op == Op::F && at(task.stage).maths.hasHead()
                && &placeOf(task.device) == &place)
                m_losses[task.microbatch()] = losses[task.microbatch()];
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
    std::span<const std::byte> weights =
        versioned ? m_versions.beforeBlock(context, copy, maths.isBf16(), at(task.stage).optimizer) : copy.stored;
    for (const BufferView& view : context.reads)
        if (view.description.kind == BufferKind::GatheredParameters)
            weights = bytes(view.region);
    const std::span<float> gradients =
        versioned && isBackward(task.op) ? m_versions.gradientSum(context, copy) : copy.gradients;
    for (const BufferView& view : context.writes)
        if (view.description.kind == BufferKind::WholeGradients) // the stage's first backward makes it
            context.operations->run(kernels::Fill{floats(view.region), 0});
    const auto microbatch = static_cast<std::size_t>(task.microbatch());
    BlockMemory memory(context, task.microbatch() % m_sequencePieces);
    memory.saved.operations = context.operations;
    if (task.op == Op::I) {
        const Region back = m_reloadedForWeights[savedIndex(task.stage, task.microbatch())];
        memory.saved.savedUntilWeightGrad =
            bytes(back.bytes > 0 ? back : m_savedForWeights[savedIndex(task.stage, task.microbatch())]);
        memory.saved.recomputedUntilWeightGrad =
            bytes(m_recomputedForWeights[savedIndex(task.stage, task.microbatch())]);
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
            input.tokens = integers(textOn(*place.memory, microbatch, false));
            input.targets = integers(textOn(*place.memory, microbatch, true));
            input.loss = floats(lossesOn(*place.memory)).subspan(microbatch, 1);
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
            m_listener(task.microbatch(), double(m_losses[microbatch]) * m_batch);
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
        m_probabilities[task.microbatch()] = maths.probabilities(memory);
}

void TrainingWork::update(const TaskContext& context)
{
    const Stage& stage = at(context.task->stage);
    StageCopy& copy = copyOf(*context.task);
    if (m_program->versioned()) {
        if (context.task->kind == TaskKind::Update)
            sumTiedGradients(*context.operations, stage.maths.parameters(), copy.gradients);
        m_versions.update(context, copy, stage.maths.isBf16(), stage.optimizer);
        return;
    }
    const std::size_t count = countOf(context.task->stage);
    if (!m_program->sharesOptimizer()) {
        updateShare(context, copy, count, stage.optimizer);
        return;
    }
    const ReplicaShare share = shareOf(count, context.task->replica);
    updateShare(context, copy, count,
                stage.optimizer.part(static_cast<std::size_t>(share.begin), static_cast<std::size_t>(share.count())));
}

TrainedWork::Access TrainingWork::access(int device)
{
    const Place& place = placeOf(device);
    if (!place.device)
        return {};
    return {place.device, place.stream.get(), place.operations.get()};
}

std::vector<float> TrainingWork::valuesOf(BufferKind kind, int stage, int replica) const
{
    const auto deviceOf = [&](int of) { return m_program->placement(of)[static_cast<std::size_t>(stage)]; };
    return TrainedWork::valuesOf(kind, stage, countOf(stage), deviceOf, replica);
}

StageValues TrainingWork::values(BufferKind kind) const
{
    StageValues all;
    for (int stage = 0; stage < stages(); ++stage)
        all.push_back(valuesOf(kind, stage));
    return all;
}

std::vector<float> TrainingWork::optimizerState(int stage) const
{
    const int device = m_program->deviceOfStage[static_cast<std::size_t>(stage)];
    const std::span<const float> found = onHost(BufferKind::OptimizerState, stage, 0, device);
    const std::span<const float> own = found.last(at(stage).optimizer.stateElements()); // behind the master copies
    return {own.begin(), own.end()};
}

void TrainingWork::findLastWeightGrads()
{
    m_sumsTied.assign(m_program->tasks.size(), false);
    std::map<std::pair<int, int>, TaskId> last;
    for (TaskId t = 0; t < m_program->tasks.size(); ++t)
        if (const Task& task = m_program->tasks[t]; task.kind == TaskKind::Compute && makesWeightGrad(task.op))
            last[{task.stage, task.replica}] = t;
    for (const auto& [copy, task] : last)
        m_sumsTied[task] = !m_program->versioned();
}

Region TrainingWork::sharedPart(const Task& reduce, const BufferView& gradients)
{
    if (reduce.kind == TaskKind::ReplicaSum)
        return gradients.region;
    const ParameterLayout& layout = at(gradients.description.stage).maths.parameters();
    const bool isRoot = gradients.description.stage == reduce.stage;
    const Parameter* matrix = isRoot ? layout.embeddingMatrix() : layout.headMatrix();
    if (!matrix)
        throw Error(fmt::format("stage {}", gradients.description.stage), "holds no shared parameter",
                    "the dataflow must name the stages of embedding and head");
    std::byte* data = gradients.region.data; // null on another process's device
    return {data ? data + matrix->offset * sizeof(float) : nullptr,
            static_cast<Bytes>(matrix->count() * sizeof(float))};
}

void TrainingWork::reduce(const TaskContext& context, Region own, Region theirs, bool both)
{
    if (own.bytes > 0)
        context.operations->run(kernels::Add{floats(own), floats(theirs)});
    if (both)
        context.operations->copy(floats(own), floats(theirs));
    for (const BufferView& view : context.writes)
        if (const Buffer& kept = view.description; kept.kind == BufferKind::KeptGradients) { // behind the last sum
            const ReplicaShare share = shareOf(countOf(kept.stage), kept.replica);
            const std::span<const float> sum = m_copies[copyIndex(kept.stage, kept.replica)].gradients.subspan(
                static_cast<std::size_t>(share.begin), static_cast<std::size_t>(share.count()));
            context.operations->run(kernels::copyOf<float>(sum, floats(view.region)));
        }
}

} // namespace pipewright
