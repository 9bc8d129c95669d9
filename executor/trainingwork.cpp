// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/trainingwork.h"

#include "core/base/diagnostic.h"
#include "kernels/elementwise.h"
#include "kernels/matmul.h"

#include <fmt/format.h>

namespace pipewright {

namespace {

std::span<float> floats(Region region)
{
    return {reinterpret_cast<float*>(region.data), static_cast<std::size_t>(region.bytes) / sizeof(float)};
}

std::span<std::byte> bytes(Region region)
{
    return {region.data, static_cast<std::size_t>(region.bytes)};
}

/// The buffers of one block, told apart by kind.
struct BlockMemory {
    StageMemory saved;
    std::span<float> input, output; ///< activations
    std::span<float> outputGrad, inputGrad;

    explicit BlockMemory(const TaskContext& context) : m_microbatch(context.task->microbatch)
    {
        for (const BufferView& view : context.reads)
            place(view, false);
        for (const BufferView& view : context.writes)
            place(view, true);
    }

private:
    void place(const BufferView& view, bool written)
    {
        switch (view.description->kind) {
        case BufferKind::SavedUntilInputGrad:
            if (view.description->microbatch == m_microbatch) // not that of an earlier piece
                saved.savedUntilInputGrad = bytes(view.region);
            break;
        case BufferKind::SavedUntilWeightGrad: saved.savedUntilWeightGrad = bytes(view.region); break;
        case BufferKind::SavedFromInputGrad: saved.savedFromInputGrad = bytes(view.region); break;
        case BufferKind::SequenceGradient: saved.sequenceGradient = bytes(view.region); break;
        case BufferKind::Workspace: saved.workspace = bytes(view.region); break;
        case BufferKind::Output:
        case BufferKind::ReceivedOutput: (written ? output : input) = floats(view.region); break;
        case BufferKind::Gradient:
        case BufferKind::ReceivedGradient: (written ? inputGrad : outputGrad) = floats(view.region); break;
        default: break;
        }
    }

    int m_microbatch;
};

} // namespace

TrainingWork::TrainingWork(const Workload& workload, const std::vector<int>& layersPerStage, int microbatches,
                           const OptimizerSettings& optimizer, const TrainingData& data, std::uint64_t seed, int batch)
    : m_batch(batch > 0 ? batch : microbatches), m_sequencePieces(workload.shape.sequencePieces), m_seed(seed),
      m_data(data), m_losses(static_cast<std::size_t>(microbatches))
{
    int first = 0;
    for (const int layers : layersPerStage) {
        StageMaths maths(workload, first, first + layers, m_batch);
        StageOptimizer stageOptimizer(maths.parameters(), optimizer);
        m_stages.push_back({std::move(maths), std::move(stageOptimizer)});
        first += layers;
    }
    if (first != static_cast<int>(workload.layers.size()))
        throw Error("layersPerStage",
                    fmt::format("the stages hold {} of the model's {} layers", first, workload.layers.size()),
                    "embedding and head count as layers");
    const auto count = static_cast<std::size_t>(microbatches);
    m_tokens.assign(count, std::vector<std::int32_t>(static_cast<std::size_t>(workload.shape.inputs())));
    m_targets.assign(count, std::vector<std::int32_t>(static_cast<std::size_t>(workload.shape.tokens())));
}

void TrainingWork::prepare(const Program& program, std::span<const Region> regions)
{
    if (program.stages != stages() || program.microbatches != static_cast<int>(m_losses.size()))
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
    m_saved.assign(m_stages.size() * m_losses.size(), nullptr);
    m_copies.assign(m_stages.size()
                        * (program.versioned() ? program.devices.size() : static_cast<std::size_t>(program.replicas)),
                    {});
    for (BufferId b = 0; b < program.buffers.size(); ++b) {
        const Buffer& buffer = program.buffers[b];
        const Stage& stage = at(buffer.stage);
        StageCopy& copy = m_copies[copyIndex(buffer.stage, holderOf(buffer.replica, buffer.device))];
        const StageLayout& layout = stage.maths.layout();
        auto expected = static_cast<std::size_t>(buffer.bytes);
        const std::size_t count = stage.maths.parameters().count();
        switch (buffer.kind) {
        case BufferKind::Parameters:
            copy.parameters = floats(regions[b]);
            expected = count * sizeof(float);
            break;
        case BufferKind::Gradients:
            copy.gradients = floats(regions[b]);
            expected = count * sizeof(float);
            break;
        case BufferKind::OptimizerState:
            copy.state = floats(regions[b]);
            expected = stage.optimizer.stateElements() * sizeof(float);
            break;
        case BufferKind::SavedUntilInputGrad:
            m_saved[savedIndex(buffer.stage, buffer.microbatch)] = floats(regions[b]).data();
            [[fallthrough]];
        case BufferKind::SavedUntilWeightGrad:
        case BufferKind::SavedFromInputGrad:
        case BufferKind::SequenceGradient:
        case BufferKind::Workspace: expected = static_cast<std::size_t>(layout.bytes(buffer.kind)); break;
        case BufferKind::Output:
        case BufferKind::ReceivedOutput:
        case BufferKind::Gradient:
        case BufferKind::ReceivedGradient: expected = stage.maths.activationElements() * sizeof(float); break;
        case BufferKind::WeightVersion:
        case BufferKind::PredictedWeights:
        case BufferKind::SentWeights:
        case BufferKind::ReceivedWeights:
        case BufferKind::PartialGradient:
        case BufferKind::ReceivedPartialGradient: expected = count * sizeof(float); break;
        case BufferKind::ReduceInbox: break;
        }
        if (expected != static_cast<std::size_t>(buffer.bytes))
            throw Error(fmt::format("stage {}", buffer.stage),
                        fmt::format("a buffer has {} where the model needs {}", exactSize(buffer.bytes),
                                    exactSize(static_cast<Bytes>(expected))),
                        "take the bytes of the costs from the workload");
    }
    for (std::size_t i = 0; i < m_copies.size(); ++i) {
        const StageCopy& copy = m_copies[i];
        if (program.versioned() && copy.parameters.empty())
            continue; // a device that does not work on this stage
        if (copy.parameters.empty() || copy.gradients.empty())
            throw Error("run", "the program has no memory for a stage's parameters",
                        "take the bytes of the costs from the workload");
        m_stages[i % m_stages.size()].maths.parameters().initialise(copy.parameters, m_seed);
        kernels::fill(copy.gradients, 0);
        kernels::fill(copy.state, 0);
    }
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
    for (const StageCopy& copy : m_copies)
        kernels::fill(copy.gradients, 0);
}

double TrainingWork::endStep(int)
{
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
    const StageMaths& maths = at(task.stage).maths;
    StageCopy& copy = copyOf(task);
    const bool versioned = m_program->versioned();
    const std::span<const float> weights = versioned ? m_versions.beforeBlock(context, copy, at(task.stage).optimizer)
                                                     : std::span<const float>(copy.parameters);
    const auto microbatch = static_cast<std::size_t>(task.microbatch);
    BlockMemory memory(context);
    const std::size_t piece = microbatch % static_cast<std::size_t>(m_sequencePieces);
    memory.saved.piece = static_cast<int>(piece);
    memory.saved.earlier = std::span(m_saved).subspan(savedIndex(task.stage, task.microbatch) - piece, piece);
    switch (task.op) {
    case Op::F: {
        const float share = maths.forward(weights, {m_tokens[microbatch], memory.input, m_targets[microbatch]},
                                          memory.saved, memory.output);
        if (maths.hasHead()) {
            m_losses[microbatch] = share;
            if (m_listener)
                m_listener(task.microbatch, double(share) * m_batch);
        }
        break;
    }
    case Op::B: maths.backward(weights, memory.saved, memory.outputGrad, memory.inputGrad, copy.gradients); break;
    case Op::I: maths.inputGrad(weights, memory.saved, memory.outputGrad, memory.inputGrad, copy.gradients); break;
    case Op::W: maths.weightGrad(memory.saved, copy.gradients); break;
    case Op::U:
    case Op::R: break;
    }
    if (versioned)
        m_versions.afterBlock(context, copy);
}

void TrainingWork::update(const TaskContext& context)
{
    const Stage& stage = at(context.task->stage);
    StageCopy& copy = copyOf(*context.task);
    if (m_program->versioned()) {
        if (context.task->peer < 0)
            sumTiedGradients(stage.maths.parameters(), copy.gradients);
        m_versions.update(context, copy, stage.optimizer);
        return;
    }
    sumTiedGradients(stage.maths.parameters(), copy.gradients);
    stage.optimizer.update(context.step + 1, copy.parameters, copy.gradients, copy.state);
}

Region TrainingWork::sharedPart(const Task& reduce, const BufferView& gradients)
{
    if (reduce.microbatch == reduce.stage)
        return gradients.region; // the sum over replicas
    const ParameterLayout& layout = at(gradients.description->stage).maths.parameters();
    const bool isRoot = gradients.description->stage == reduce.stage;
    const Parameter* matrix = isRoot ? layout.embeddingMatrix() : layout.headMatrix();
    if (!matrix)
        throw Error(fmt::format("stage {}", gradients.description->stage), "holds no shared parameter",
                    "the dataflow must name the stages of embedding and head");
    return {gradients.region.data + matrix->offset * sizeof(float),
            static_cast<Bytes>(matrix->count() * sizeof(float))};
}

void TrainingWork::reduce(const TaskContext&, Region own, Region theirs, bool both)
{
    kernels::add(floats(own), floats(theirs));
    if (both)
        kernels::copy(floats(own), floats(theirs));
}

} // namespace pipewright
