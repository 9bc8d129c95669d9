// SPDX-License-Identifier: GPL-3.0-or-later
// Queries and keys are rotated where they are; the cores of attention and their gradients are kernels (attention.h,
// groupedattention.h).
#include "executor/stage/kernelsettings.h"
#include "executor/stage/stepwriter.h"

#include "core/base/diagnostic.h"

namespace pipewright {

namespace {

kernels::GroupedAttentionShape shapeOf(const LayerPlan& plan, int tensor)
{
    return attentionOf(plan.node(tensor), plan.node(plan.operand(tensor, 0)).shape,
                       plan.node(plan.operand(tensor, 1)).shape);
}

kernels::AttentionShape plainShape(const kernels::GroupedAttentionShape& of)
{
    return {of.sequences, of.length, of.heads, of.querySize, of.pieces};
}

/// A call for queries or keys, or for their gradients.
Step rotation(const LayerPlan& plan, int attention, std::size_t operand, const Place& place, bool backwards)
{
    const Node& node = plan.node(attention);
    const Shape& shape = plan.node(plan.operand(attention, operand)).shape;
    return [call = rotationOf(node, shape, backwards, {}), place](const StepContext& pass) {
        kernels::Rotate rotate = call;
        rotate.first = pass.memory.piece * call.length;
        rotate.values = pass.at(place);
        pass.on().run(rotate);
    };
}

struct CorePlaces {
    kernels::GroupedAttentionShape shape;
    Slice query, key, value, numbers;
    Place output;
    ParameterPlace sinks;
};

CorePlaces coreOf(const LayerPlan& plan, int tensor)
{
    CorePlaces of{shapeOf(plan, tensor),
                  plan.value(plan.operand(tensor, 0)).slice,
                  plan.value(plan.operand(tensor, 1)).slice,
                  plan.value(plan.operand(tensor, 2)).slice,
                  plan.own(tensor, "probabilities"),
                  plan.value(tensor),
                  plan.optionalParameter(tensor, 3)};
    if (!plan.isPartOfPlain(plan.operand(tensor, 0)) && std::size_t(of.numbers.elements) != of.shape.numbers())
        throw Error("model.attention",
                    "the matrices of scores are to be stored, and this attention keeps one number per query and head",
                    "write \"attention\": \"streamed\"");
    return of;
}

void attention(StepWriter& writer, int tensor)
{
    const LayerPlan& plan = writer.plan;
    const CorePlaces of = coreOf(plan, tensor);
    if (isRotated(plan.node(tensor)))
        for (const std::size_t operand : {0, 1})
            writer.forward(rotation(plan, tensor, operand, {.slice = operand == 0 ? of.query : of.key}, false));
    if (plan.isPartOfPlain(plan.operand(tensor, 0))) {
        writer.core([of](const StepContext& pass) {
            const StageMemory& memory = pass.memory;
            pass.on().run(kernels::AttentionForward{
                plainShape(of.shape), memory.floats(of.query), memory.floats(of.key), memory.floats(of.value),
                memory.floats(of.numbers), pass.at(of.output), memory.earlierPieces(of.key, of.value)});
        });
        return;
    }
    writer.core([of](const StepContext& pass) {
        const StageMemory& memory = pass.memory;
        pass.on().run(kernels::GroupedAttentionForward{of.shape, memory.floats(of.query), memory.floats(of.key),
                                                       memory.floats(of.value), memory.floats(of.numbers),
                                                       pass.at(of.output), memory.earlierPieces(of.key, of.value),
                                                       of.sinks.in(pass.parameters)});
    });
}

void attentionInputGrad(StepWriter& writer, int tensor)
{
    const LayerPlan& plan = writer.plan;
    const CorePlaces of = coreOf(plan, tensor);
    const Place outputGrad = plan.gradient(tensor), queryGrad = plan.gradient(plan.operand(tensor, 0)),
                keyGrad = plan.gradient(plan.operand(tensor, 1)), valueGrad = plan.gradient(plan.operand(tensor, 2));
    const Slice scratch = plan.workspace("d.scores", of.numbers.elements),
                between = plan.workspace("attention.sequenceGradient", std::int64_t(of.shape.sequenceGradient()));
    if (plan.isPartOfPlain(plan.operand(tensor, 0))) {
        writer.inputGrad([of, outputGrad, all = queryGrad, scratch, between](const StepContext& pass) {
            const StageMemory& memory = pass.memory;
            pass.on().run(kernels::AttentionInputGrad{
                plainShape(of.shape), memory.floats(of.query), memory.floats(of.key), memory.floats(of.value),
                memory.floats(of.numbers), pass.at(of.output), pass.at(outputGrad), pass.at(all),
                memory.floats(scratch), memory.earlierPieces(of.key, of.value), memory.floats(between)});
        });
        return;
    }
    writer.inputGrad([of, outputGrad, queryGrad, keyGrad, valueGrad, scratch, between](const StepContext& pass) {
        const StageMemory& memory = pass.memory;
        pass.on().run(kernels::GroupedAttentionInputGrad{
            of.shape, memory.floats(of.query), memory.floats(of.key), memory.floats(of.value),
            memory.floats(of.numbers), pass.at(of.output), pass.at(outputGrad), pass.at(queryGrad), pass.at(keyGrad),
            pass.at(valueGrad), memory.floats(scratch), memory.earlierPieces(of.key, of.value), memory.floats(between),
            of.sinks.in(pass.parameters), of.sinks.in(pass.gradients)});
    });
    if (isRotated(plan.node(tensor)))
        for (const std::size_t operand : {0, 1})
            writer.inputGrad(rotation(plan, tensor, operand, operand == 0 ? queryGrad : keyGrad, true));
}

kernels::LatentKeys keysOf(const LayerPlan& plan, int tensor)
{
    return latentKeysOf(plan.node(tensor), plan.node(plan.operand(tensor, 0)).shape,
                        plan.node(plan.operand(tensor, 1)).shape);
}

void joinKeys(StepWriter& writer, int tensor)
{
    const LayerPlan& plan = writer.plan;
    writer.forward([keys = keysOf(plan, tensor), own = plan.value(plan.operand(tensor, 0)),
                    shared = plan.value(plan.operand(tensor, 1)),
                    output = plan.value(tensor)](const StepContext& pass) {
        pass.on().run(kernels::JoinKeys{keys, pass.at(own), pass.at(shared), pass.at(output)});
    });
}

void joinKeysInputGrad(StepWriter& writer, int tensor)
{
    const LayerPlan& plan = writer.plan;
    writer.inputGrad([keys = keysOf(plan, tensor), grad = plan.gradient(tensor),
                      own = plan.gradient(plan.operand(tensor, 0)),
                      shared = plan.gradient(plan.operand(tensor, 1))](const StepContext& pass) {
        pass.on().run(kernels::SplitKeysGrad{keys, pass.at(grad), pass.at(own), pass.at(shared)});
    });
}

constexpr OperationSteps attentionTable[] = {
    {"attention", attention, attentionInputGrad},
    {"latent_attention", attention, attentionInputGrad},
    {"join_keys", joinKeys, joinKeysInputGrad},
};

} // namespace

std::span<const OperationSteps> attentionSteps()
{
    return attentionTable;
}

} // namespace pipewright
