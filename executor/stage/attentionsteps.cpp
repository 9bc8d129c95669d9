// SPDX-License-Identifier: GPL-3.0-or-later
// Queries and keys are rotated where they are; the cores of attention and their gradients are kernels (attention.h,
// groupedattention.h).
#include "executor/stage/kernelsettings.h"
#include "executor/stage/stepwriter.h"

#include "core/base/diagnostic.h"

namespace pipewright {

namespace {

kernels::GroupedAttentionShape shapeOf(const NodePlan& plan, int tensor)
{
    return attentionOf(plan.node(tensor), plan.shape(plan.operand(tensor, 0)), plan.shape(plan.operand(tensor, 1)),
                       plan.firstHead());
}

kernels::AttentionShape plainShape(const kernels::GroupedAttentionShape& of)
{
    return {of.sequences, of.length, of.heads, of.querySize, of.pieces};
}

/// A call for queries or keys, or for their gradients.
Step rotation(const NodePlan& plan, int attention, std::size_t operand, const Place& place, bool backwards)
{
    const Node& node = plan.node(attention);
    const Shape& shape = plan.shape(plan.operand(attention, operand));
    return [call = rotationOf(node, shape, backwards, {}), place](const StepContext& pass) {
        kernels::Rotate rotate = call;
        rotate.first = pass.memory.piece * call.length;
        rotate.values = pass.at(place);
        pass.on().run(rotate);
    };
}

struct CorePlaces {
    kernels::GroupedAttentionShape shape;
    Place query, key, value, numbers, output;
    ParameterPlace sinks;

    kernels::EarlierPieces earlier(const StepContext& pass) const
    {
        if (key.tensor < 0)
            return pass.memory.earlierPieces(key.slice, value.slice);
        return {pass.memory.earlier, 0, shape.keys()}; // of a node alone: side by side
    }
};

CorePlaces coreOf(const NodePlan& plan, int tensor)
{
    const int query = plan.operand(tensor, 0), key = plan.operand(tensor, 1);
    const bool turned = isRotated(plan.node(tensor));
    const kernels::GroupedAttentionShape shape = shapeOf(plan, tensor);
    CorePlaces of{shape,
                  turned ? plan.changed(query) : plan.value(query),
                  turned ? plan.changed(key) : plan.value(key),
                  plan.value(plan.operand(tensor, 2)),
                  plan.own(tensor, "probabilities", std::int64_t(shape.numbers())),
                  plan.value(tensor),
                  plan.optionalParameter(tensor, 3)};
    if (!plan.isPartOfPlain(query) && std::size_t(of.numbers.slice.elements) != shape.numbers())
        throw Error("model.attention",
                    "the matrices of scores are to be stored, and this attention keeps one number per query and head",
                    "write \"attention\": \"streamed\"");
    return of;
}

void attention(StepWriter& writer, int tensor)
{
    const NodePlan& plan = writer.plan;
    const CorePlaces of = coreOf(plan, tensor);
    if (isRotated(plan.node(tensor)))
        for (const std::size_t operand : {0, 1}) {
            const Place place = operand == 0 ? of.query : of.key;
            writer.copy(plan.value(plan.operand(tensor, operand)), place);
            writer.forward(rotation(plan, tensor, operand, place, false));
        }
    if (plan.isPartOfPlain(plan.operand(tensor, 0))) {
        writer.core([of](const StepContext& pass) {
            pass.on().run(kernels::AttentionForward{plainShape(of.shape), pass.at(of.query), pass.at(of.key),
                                                    pass.at(of.value), pass.at(of.numbers), pass.at(of.output),
                                                    of.earlier(pass)});
        });
        return;
    }
    writer.core([of](const StepContext& pass) {
        pass.on().run(kernels::GroupedAttentionForward{of.shape, pass.at(of.query), pass.at(of.key), pass.at(of.value),
                                                       pass.at(of.numbers), pass.at(of.output), of.earlier(pass),
                                                       pass.parameter(of.sinks)});
    });
}

void attentionInputGrad(StepWriter& writer, int tensor)
{
    const NodePlan& plan = writer.plan;
    const CorePlaces of = coreOf(plan, tensor);
    const Place outputGrad = plan.gradient(tensor), queryGrad = plan.gradient(plan.operand(tensor, 0)),
                keyGrad = plan.gradient(plan.operand(tensor, 1)), valueGrad = plan.gradient(plan.operand(tensor, 2));
    const Place scratch = plan.workspace("d.scores", of.numbers.slice.elements),
                between = plan.sequenceGradient(std::int64_t(of.shape.sequenceGradient()));
    if (plan.isPartOfPlain(plan.operand(tensor, 0))) {
        writer.inputGrad([of, outputGrad, all = queryGrad, scratch, between](const StepContext& pass) {
            pass.on().run(kernels::AttentionInputGrad{plainShape(of.shape), pass.at(of.query), pass.at(of.key),
                                                      pass.at(of.value), pass.at(of.numbers), pass.at(of.output),
                                                      pass.at(outputGrad), pass.at(all), pass.at(scratch),
                                                      of.earlier(pass), pass.at(between)});
        });
        return;
    }
    writer.inputGrad([of, outputGrad, queryGrad, keyGrad, valueGrad, scratch, between](const StepContext& pass) {
        pass.on().run(kernels::GroupedAttentionInputGrad{
            of.shape, pass.at(of.query), pass.at(of.key), pass.at(of.value), pass.at(of.numbers), pass.at(of.output),
            pass.at(outputGrad), pass.at(queryGrad), pass.at(keyGrad), pass.at(valueGrad), pass.at(scratch),
            of.earlier(pass), pass.at(between), pass.parameter(of.sinks), pass.gradient(of.sinks)});
    });
    if (isRotated(plan.node(tensor)))
        for (const std::size_t operand : {0, 1})
            writer.inputGrad(rotation(plan, tensor, operand, operand == 0 ? queryGrad : keyGrad, true));
}

kernels::LatentKeys keysOf(const NodePlan& plan, int tensor)
{
    return latentKeysOf(plan.node(tensor), plan.shape(plan.operand(tensor, 0)), plan.shape(plan.operand(tensor, 1)));
}

void joinKeys(StepWriter& writer, int tensor)
{
    const NodePlan& plan = writer.plan;
    writer.forward([keys = keysOf(plan, tensor), own = plan.value(plan.operand(tensor, 0)),
                    shared = plan.value(plan.operand(tensor, 1)),
                    output = plan.value(tensor)](const StepContext& pass) {
        pass.on().run(kernels::JoinKeys{keys, pass.at(own), pass.at(shared), pass.at(output)});
    });
}

void joinKeysInputGrad(StepWriter& writer, int tensor)
{
    const NodePlan& plan = writer.plan;
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
