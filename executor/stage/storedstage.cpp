// SPDX-License-Identifier: GPL-3.0-or-later
// The layers of an fp32 stage run on the stored tensors themselves. The layers of a widened stage run one after another
// on fp32 copies in one workspace (storedwidening.cpp), which is as large as the largest layer needs.
#include "executor/stage/storedstage.h"

#include "core/base/diagnostic.h"
#include "core/model/recomputedtensors.h"
#include "core/model/transformer.h"
#include "executor/stage/stagesegments.h"
#include "executor/stage/viewed.h"

#include <algorithm>
#include <cassert>

namespace pipewright {

namespace {

constexpr std::array<BufferKind, 5> bufferKinds{BufferKind::SavedUntilInputGrad, BufferKind::SavedUntilWeightGrad,
                                                BufferKind::SavedFromInputGrad, BufferKind::RecomputedUntilInputGrad,
                                                BufferKind::RecomputedUntilWeightGrad};

std::size_t indexOf(BufferKind kind)
{
    return static_cast<std::size_t>(std::find(bufferKinds.begin(), bufferKinds.end(), kind) - bufferKinds.begin());
}

BufferKind bufferOf(Lifetime lifetime, bool recomputed)
{
    switch (lifetime) {
    case Lifetime::UntilInputGrad:
        return recomputed ? BufferKind::RecomputedUntilInputGrad : BufferKind::SavedUntilInputGrad;
    case Lifetime::UntilWeightGrad:
        return recomputed ? BufferKind::RecomputedUntilWeightGrad : BufferKind::SavedUntilWeightGrad;
    case Lifetime::FromInputGrad: break;
    }
    return BufferKind::SavedFromInputGrad;
}

/// The sum of a stage's inputs, from its neighbour and from skip connections, in fp32.
void widenSum(const kernels::Operations& on, std::span<const std::byte> values,
              std::span<const std::span<const std::byte>> skips, std::span<float> sum)
{
    on.run(kernels::Widen{viewed<const std::uint16_t>(values), sum});
    for (const std::span<const std::byte> skip : skips) {
        on.run(kernels::Widen{viewed<const std::uint16_t>(skip), sum, kernels::Store::Add});
        on.run(kernels::RoundToBf16{sum});
    }
}

/// Their views, for as long as the pass runs.
std::vector<std::span<const float>> floatsOf(std::span<const std::span<const std::byte>> stored)
{
    std::vector<std::span<const float>> result;
    for (const std::span<const std::byte> values : stored)
        result.push_back(viewed<const float>(values));
    return result;
}

} // namespace

Bytes workspaceOf(const PassWorkspace& passes, Op op)
{
    switch (op) {
    case Op::F: return passes.forward;
    case Op::B: return passes.backward;
    case Op::I: return passes.inputGrad;
    case Op::W: return passes.weightGrad;
    case Op::R: return passes.recompute;
    case Op::U: break;
    }
    return 0;
}

StoredStage::StoredStage(const Workload& workload, int first, int last, int microbatches, Recompute recompute)
    : m_parameters(workload, first, last), m_recompute(recompute), m_isBf16(workload.shape.dataType == DataType::Bf16),
      m_isSegmented(recompute.insideBackward()), m_activation(workload.shape.tokens() * workload.shape.hidden)
{
    const auto layers = std::span(workload.layers).subspan(std::size_t(first), std::size_t(last - first));
    m_workspace = passMemory(workload.shape, layers, recompute).workspace;
    if (m_isSegmented || layers.size() > 1)
        m_segments = std::make_shared<const StageSegments>(workload, first, last, microbatches, recompute);
    if (m_isSegmented) {
        m_hasEmbedding = m_segments->front().hasEmbedding();
        m_hasHead = m_segments->back().hasHead();
        return;
    }
    if (workload.shape.dataType == DataType::Fp32) {
        m_maths = std::make_shared<const StageMaths>(workload, first, last, microbatches, recompute);
        m_hasEmbedding = m_maths->hasEmbedding();
        m_hasHead = m_maths->hasHead();
        return;
    }
    m_isWidened = workload.shape.widened;
    ModelShape shape = workload.shape;
    shape.dataType = DataType::Fp32;
    shape.widened = false;
    const Workload wide = makeWorkload(shape, workload.optimizer, workload.source);
    for (int index = first; index < last; ++index)
        addLayer(workload, wide, index, microbatches);
    m_hasEmbedding = m_layers.front().maths.hasEmbedding();
    m_hasHead = m_layers.back().maths.hasHead();
}

void StoredStage::addLayer(const Workload& workload, const Workload& wide, int index, int microbatches)
{
    const std::size_t before = m_layers.empty() ? 0 : m_layers.back().firstParameter + m_layers.back().parameters;
    StageMaths maths(wide, index, index + 1, microbatches);
    const std::size_t count = maths.parameters().count();
    const Bytes sequenceGradient = maths.layout().bytes(BufferKind::SequenceGradient);
    Layer layer{std::move(maths), before, count, {}, wide.layers[std::size_t(index)].workspace, {}, m_sequenceGradient};
    m_sequenceGradient += sequenceGradient;
    for (const SavedTensor& tensor : workload.layers[std::size_t(index)].saved) {
        const BufferKind buffer =
            bufferOf(tensor.lifetime, isRecomputed(tensor, m_recompute, workload.shape.sequencePieces));
        Bytes& end = m_bytes[indexOf(buffer)];
        const auto kept = static_cast<std::size_t>(tensor.lifetime);
        layer.kept[kept].push_back({buffer, end, tensor.elements, tensor.bytesPerElement});
        layer.copies[kept] += tensor.elements * bytesOf(DataType::Fp32);
        end += tensor.bytes();
    }
    m_layers.push_back(std::move(layer));
}

Bytes StoredStage::parameterBytes() const
{
    return Bytes(m_parameters.count()) * bytesOf(isBf16() ? DataType::Bf16 : DataType::Fp32);
}

Bytes StoredStage::activationBytes() const
{
    return m_activation * bytesOf(isBf16() ? DataType::Bf16 : DataType::Fp32);
}

Bytes StoredStage::bytes(BufferKind kind) const
{
    if (m_isSegmented)
        return m_segments->bytes(kind);
    if (!isBf16())
        return m_maths->layout().bytes(kind);
    if (kind == BufferKind::SequenceGradient)
        return m_sequenceGradient;
    const std::size_t index = indexOf(kind);
    assert(index < m_bytes.size());
    return m_bytes[index];
}

Bytes StoredStage::workspace(Op op) const
{
    return workspaceOf(m_workspace, op);
}

void StoredStage::store(const kernels::Operations& on, std::span<const float> values,
                        std::span<std::byte> parameters) const
{
    if (isBf16())
        on.run(kernels::Narrow{values, viewed<std::uint16_t>(parameters)});
    else
        on.copy(values, viewed<float>(parameters));
}

bool StoredStage::computesAsStored(const kernels::Operations& on) const
{
    if (on.computesWithStored())
        return true;
    if (!m_isWidened)
        throw Error("model.widened", "this device computes with bf16 in fp32 copies only, for which there is no room",
                    "write \"widened\": true in the model");
    return false;
}

std::span<float> StoredStage::streamIn(std::span<std::byte> workspace) const
{
    return viewed<float>(workspace).first(std::size_t(m_activation));
}

void StoredStage::runForward(std::span<const std::byte> parameters, const StoredInput& input, const StageMemory& memory,
                             std::span<std::byte> output, bool recomputes) const
{
    if (computesAsStored(*memory.operations)) {
        forwardAsStored(parameters, input, memory, output, recomputes);
        return;
    }
    RoundingOperations on(*memory.operations);
    const std::span<float> stream = streamIn(memory.workspace);
    const std::span<std::byte> room = memory.workspace.subspan(stream.size_bytes());
    if (!m_hasEmbedding)
        widenSum(on, input.activation, input.skips, stream);
    for (const Layer& layer : m_layers) {
        Copies copies = copiesOf(layer, room, on, true, {UntilInputGrad, UntilWeightGrad});
        addEarlier(layer, memory, copies);
        widenParameters(layer, parameters, copies);
        Holdings held;
        for (const Kept kept : {UntilInputGrad, UntilWeightGrad})
            addHeld(layer, kept, memory, copies, {.recomputed = recomputes}, held);
        on.hold(std::move(held.twice), std::move(held.wide));
        layer.maths.forward(copies.parameters, {input.tokens, stream, input.targets, input.loss}, copies.memory,
                            stream);
        for (const Kept kept : {UntilInputGrad, UntilWeightGrad})
            store(layer, kept, memory, copies, recomputes, on);
    }
    if (!m_hasHead && !recomputes)
        on.run(kernels::Narrow{stream, viewed<std::uint16_t>(output)});
}

void StoredStage::forward(std::span<const std::byte> parameters, const StoredInput& input, const StageMemory& memory,
                          std::span<std::byte> output) const
{
    if (m_isSegmented)
        m_segments->forward(parameters, input, memory, output);
    else if (isBf16())
        runForward(parameters, input, memory, output, false);
    else
        m_maths->forward(
            viewed<const float>(parameters),
            {input.tokens, viewed<const float>(input.activation), input.targets, input.loss, floatsOf(input.skips)},
            memory, viewed<float>(output));
}

void StoredStage::recompute(std::span<const std::byte> parameters, const StoredInput& input,
                            const StageMemory& memory) const
{
    if (!isBf16()) {
        m_maths->recompute(
            viewed<const float>(parameters),
            {input.tokens, viewed<const float>(input.activation), input.targets, input.loss, floatsOf(input.skips)},
            memory);
        return;
    }
    if (m_recompute == Recompute::BlockSelective)
        recomputeCores(parameters, memory);
    else if (m_recompute == Recompute::Block)
        runForward(parameters, input, memory, {}, true);
}

void StoredStage::recomputeCores(std::span<const std::byte> parameters, const StageMemory& memory) const
{
    if (computesAsStored(*memory.operations)) {
        recomputeCoresAsStored(parameters, memory);
        return;
    }
    RoundingOperations on(*memory.operations);
    for (const Layer& layer : m_layers) {
        Copies copies = copiesOf(layer, memory.workspace, on, true, {UntilInputGrad, UntilWeightGrad});
        addEarlier(layer, memory, copies);
        widenParameters(layer, parameters, copies);
        Holdings held;
        for (const Kept kept : {UntilInputGrad, UntilWeightGrad})
            widen(layer, kept, memory, copies);
        for (const Kept kept : {UntilInputGrad, UntilWeightGrad})
            addHeld(layer, kept, memory, copies, {.recomputed = true}, held);
        on.hold(std::move(held.twice), std::move(held.wide));
        layer.maths.recomputeCores(copies.parameters, copies.memory);
        for (const Kept kept : {UntilInputGrad, UntilWeightGrad})
            store(layer, kept, memory, copies, true, on);
    }
}

void StoredStage::inputGrad(std::span<const std::byte> parameters, const StageMemory& memory,
                            std::span<const std::byte> outputGrad, std::span<std::byte> inputGrad,
                            std::span<float> gradients, std::span<const std::span<const std::byte>> skipGrads) const
{
    if (m_isSegmented) {
        m_segments->inputGrad(parameters, memory, outputGrad, inputGrad, gradients, skipGrads);
        return;
    }
    if (!isBf16()) {
        m_maths->inputGrad(viewed<const float>(parameters), memory, viewed<const float>(outputGrad),
                           viewed<float>(inputGrad), gradients, floatsOf(skipGrads));
        return;
    }
    if (computesAsStored(*memory.operations)) {
        inputGradAsStored(parameters, memory, outputGrad, inputGrad, gradients, skipGrads);
        return;
    }
    RoundingOperations on(*memory.operations);
    const std::span<float> stream = streamIn(memory.workspace);
    const std::span<std::byte> room = memory.workspace.subspan(stream.size_bytes());
    if (!m_hasHead)
        widenSum(on, outputGrad, skipGrads, stream);
    for (auto layer = m_layers.rbegin(); layer != m_layers.rend(); ++layer) {
        Copies copies = copiesOf(*layer, room, on, true, {UntilInputGrad, UntilWeightGrad, FromInputGrad});
        addEarlier(*layer, memory, copies);
        widenParameters(*layer, parameters, copies);
        Holdings held;
        widen(*layer, UntilInputGrad, memory, copies);
        widen(*layer, UntilWeightGrad, memory, copies);
        for (const Kept kept : {UntilInputGrad, UntilWeightGrad})
            addHeld(*layer, kept, memory, copies, {.isStored = true}, held);
        addHeld(*layer, FromInputGrad, memory, copies, {}, held);
        on.hold(std::move(held.twice), std::move(held.wide));
        layer->maths.inputGrad(copies.parameters, copies.memory, stream, stream,
                               gradients.subspan(layer->firstParameter, layer->parameters));
        store(*layer, FromInputGrad, memory, copies, false, on);
    }
    if (!m_hasEmbedding)
        on.run(kernels::Narrow{stream, viewed<std::uint16_t>(inputGrad)});
}

void StoredStage::weightGrad(const StageMemory& memory, std::span<float> gradients) const
{
    if (m_isSegmented) {
        m_segments->weightGrad(memory, gradients);
        return;
    }
    if (!isBf16()) {
        m_maths->weightGrad(memory, gradients);
        return;
    }
    if (computesAsStored(*memory.operations)) {
        weightGradAsStored(memory, gradients);
        return;
    }
    for (const Layer& layer : m_layers) {
        const Copies copies =
            copiesOf(layer, memory.workspace, *memory.operations, false, {UntilWeightGrad, FromInputGrad});
        for (const Kept kept : {UntilWeightGrad, FromInputGrad})
            widen(layer, kept, memory, copies);
        layer.maths.weightGrad(copies.memory, gradients.subspan(layer.firstParameter, layer.parameters));
    }
}

void StoredStage::backward(std::span<const std::byte> parameters, const StageMemory& memory,
                           std::span<const std::byte> outputGrad, std::span<std::byte> inputGrad,
                           std::span<float> gradients, std::span<const std::span<const std::byte>> skipGrads) const
{
    if (m_segments) {
        m_segments->backward(parameters, memory, outputGrad, inputGrad, gradients, skipGrads);
        return;
    }
    StageMemory of = memory; // one layer: what I makes for W is in the workspace
    const auto made = static_cast<std::size_t>(bytes(BufferKind::SavedFromInputGrad));
    of.savedFromInputGrad = memory.workspace.first(made);
    of.workspace = memory.workspace.subspan(static_cast<std::size_t>(alignedForPass(static_cast<Bytes>(made))));
    this->inputGrad(parameters, of, outputGrad, inputGrad, gradients, skipGrads);
    weightGrad(of, gradients);
}

template<class Look>
auto StoredStage::lookAtHead(const StageMemory& memory, Look look) const
{
    if (!isBf16())
        return look(*m_maths, memory);
    const Layer& layer = m_layers.back();
    std::vector<std::byte> room(std::size_t(layer.copies[UntilInputGrad]));
    const Copies copies = copiesOf(layer, room, *memory.operations, false, {UntilInputGrad});
    widen(layer, UntilInputGrad, memory, copies);
    return look(layer.maths, copies.memory);
}

int StoredStage::correct(const StageMemory& memory) const
{
    if (!m_hasHead)
        return 0;
    if (m_isSegmented)
        return m_segments->correct(memory);
    return lookAtHead(memory, [](const StageMaths& maths, const StageMemory& of) { return maths.correct(of); });
}

std::vector<float> StoredStage::probabilities(const StageMemory& memory) const
{
    if (m_isSegmented)
        return m_segments->probabilities(memory);
    return lookAtHead(memory, [](const StageMaths& maths, const StageMemory& of) {
        const std::span<const float> found = maths.probabilities(of);
        return std::vector<float>(found.begin(), found.end());
    });
}

} // namespace pipewright
