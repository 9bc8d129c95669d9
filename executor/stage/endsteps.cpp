// SPDX-License-Identifier: GPL-3.0-or-later
// The operations of a model's two ends: embeddings of tokens, positions and segments, features, class tokens, and the
// loss. W accumulates the gradients of tables from the gradient of the values that leave the embedding.
#include "executor/stage/stepwriter.h"

namespace pipewright {

namespace {

using kernels::TensorOperation;

/// Values [first, first + count) of a span, for every sequence.
template<class Visit>
void forEachSequence(std::size_t values, int sequences, Visit visit)
{
    const std::size_t each = values / std::size_t(sequences);
    for (std::size_t sequence = 0; sequence < std::size_t(sequences); ++sequence)
        visit(sequence * each, each);
}

/// The positions whose table the embedding itself adds; -1: none.
int positionsOf(const LayerPlan& plan, int embedding)
{
    const int by = plan.reader(embedding);
    return by >= 0 && plan.operation(by) == "positions" ? by : -1;
}

/// The rows of a table of positions that a piece of a sequence uses.
template<class T>
std::span<T> ofPiece(std::span<T> table, int piece, std::size_t rows)
{
    return table.empty() ? table : table.subspan(std::size_t(piece) * rows, rows);
}

struct EmbeddingPlaces {
    int length, width;
    Slice tokens;
    ParameterPlace table, positions;
    std::size_t ofSequence() const { return std::size_t(length) * std::size_t(width); }
};

EmbeddingPlaces embeddingOf(const LayerPlan& plan, int tensor)
{
    const int positions = positionsOf(plan, tensor);
    return {int(plan.node(plan.operand(tensor, 0)).shape.back()), int(plan.width(tensor)),
            *plan.kept(plan.operand(tensor, 0)), plan.parameter(plan.operand(tensor, 1)),
            positions < 0 ? ParameterPlace() : plan.parameter(plan.operand(positions, 1))};
}

void keepInputs(StepWriter& writer, const Slice& tokens)
{
    writer.forward([tokens](const StepContext& pass) { pass.on().copy(pass.inputs, pass.memory.integers(tokens)); });
}

void embedding(StepWriter& writer, int tensor)
{
    const EmbeddingPlaces of = embeddingOf(writer.plan, tensor);
    keepInputs(writer, of.tokens);
    writer.forward([of](const StepContext& pass) {
        pass.on().run(kernels::EmbeddingForward{
            of.length, of.width, pass.inputs, of.table.in(pass.parameters),
            ofPiece(of.positions.in(pass.parameters), pass.memory.piece, of.ofSequence()), pass.stream});
    });
}

void embeddingWeightGrad(StepWriter& writer, int tensor)
{
    writer.weightGrad([of = embeddingOf(writer.plan, tensor),
                       grad = writer.plan.embeddingGradient()](const StepContext& pass) {
        pass.on().run(kernels::EmbeddingWeightGrad{
            of.length, of.width, pass.memory.integers(of.tokens), pass.memory.floats(grad), of.table.in(pass.gradients),
            ofPiece(of.positions.in(pass.gradients), pass.memory.piece, of.ofSequence())});
    });
}

void featureBag(StepWriter& writer, int tensor)
{
    const EmbeddingPlaces of = embeddingOf(writer.plan, tensor);
    keepInputs(writer, of.tokens);
    writer.forward([of](const StepContext& pass) {
        pass.on().run(
            kernels::FeatureBagForward{of.length, of.width, pass.inputs, of.table.in(pass.parameters), pass.stream});
    });
}

void featureBagWeightGrad(StepWriter& writer, int tensor)
{
    writer.weightGrad(
        [of = embeddingOf(writer.plan, tensor), grad = writer.plan.embeddingGradient()](const StepContext& pass) {
            pass.on().run(kernels::FeatureBagWeightGrad{of.length, of.width, pass.memory.integers(of.tokens),
                                                        pass.memory.floats(grad), of.table.in(pass.gradients)});
        });
}

bool isDoneByTheEmbedding(const LayerPlan& plan, int positions)
{
    return plan.operation(plan.operand(positions, 0)) == "embedding";
}

void positions(StepWriter& writer, int tensor)
{
    const LayerPlan& plan = writer.plan;
    if (isDoneByTheEmbedding(plan, tensor))
        return;
    writer.forward([table = plan.parameter(plan.operand(tensor, 1)),
                    sequences = int(plan.node(tensor).shape[0])](const StepContext& pass) {
        forEachSequence(pass.stream.size(), sequences, [&](std::size_t first, std::size_t count) {
            pass.on().run(kernels::Add{pass.stream.subspan(first, count),
                                       ofPiece(table.in(pass.parameters), pass.memory.piece, count)});
        });
    });
}

void positionsWeightGrad(StepWriter& writer, int tensor)
{
    const LayerPlan& plan = writer.plan;
    if (isDoneByTheEmbedding(plan, tensor))
        return;
    writer.weightGrad([table = plan.parameter(plan.operand(tensor, 1)), from = plan.embeddingGradient(),
                       sequences = int(plan.node(tensor).shape[0])](const StepContext& pass) {
        const std::span<const float> grad = pass.memory.floats(from);
        forEachSequence(grad.size(), sequences, [&](std::size_t first, std::size_t count) {
            pass.on().run(
                kernels::Add{ofPiece(table.in(pass.gradients), pass.memory.piece, count), grad.subspan(first, count)});
        });
    });
}

Step scaling(const LayerPlan& plan, int tensor)
{
    return [factor = float(plan.node(tensor).attribute("factor"))](const StepContext& pass) {
        pass.on().run(kernels::TensorCall{TensorOperation::Scale,
                                          factor,
                                          {std::int64_t(pass.stream.size())},
                                          {pass.stream.data()},
                                          pass.stream.data(),
                                          nullptr,
                                          nullptr});
    };
}

void scale(StepWriter& writer, int tensor)
{
    writer.forward(scaling(writer.plan, tensor));
}

void scaleInputGrad(StepWriter& writer, int tensor)
{
    writer.inputGrad(scaling(writer.plan, tensor));
}

/// Calls visit(first value, values, half) for the two halves of every sequence: the first, which has the middle token
/// and is the first segment (BERT's sentence A), and the second.
template<class Visit>
void forEachHalf(std::size_t values, const Shape& shape, Visit visit)
{
    const auto width = std::size_t(shape[2]), length = std::size_t(shape[1]);
    const std::size_t first = (length - length / 2) * width;
    for (std::size_t begin = 0; begin < values; begin += length * width) {
        visit(begin, first, std::size_t(0));
        if (first < length * width)
            visit(begin + first, length * width - first, std::size_t(1));
    }
}

void segments(StepWriter& writer, int tensor)
{
    const LayerPlan& plan = writer.plan;
    writer.forward(
        [table = plan.parameter(plan.operand(tensor, 1)), shape = plan.node(tensor).shape](const StepContext& pass) {
            forEachHalf(pass.stream.size(), shape, [&](std::size_t first, std::size_t count, std::size_t half) {
                float* const values = pass.stream.data() + first;
                const float* const segment = table.in(pass.parameters).data() + half * std::size_t(shape[2]);
                pass.on().run(kernels::TensorCall{TensorOperation::AddRepeated,
                                                  0,
                                                  {std::int64_t(count), shape[2]},
                                                  {values, segment},
                                                  values,
                                                  nullptr,
                                                  nullptr});
            });
        });
}

void segmentsWeightGrad(StepWriter& writer, int tensor)
{
    const LayerPlan& plan = writer.plan;
    writer.weightGrad([table = plan.parameter(plan.operand(tensor, 1)), shape = plan.node(tensor).shape,
                       from = plan.embeddingGradient()](const StepContext& pass) {
        const std::span<const float> grad = pass.memory.floats(from);
        forEachHalf(grad.size(), shape, [&](std::size_t first, std::size_t count, std::size_t half) {
            pass.on().run(kernels::TensorCall{TensorOperation::SumRepeated,
                                              0,
                                              {std::int64_t(count), shape[2]},
                                              {grad.data() + first},
                                              table.in(pass.gradients).data() + half * std::size_t(shape[2]),
                                              nullptr,
                                              nullptr});
        });
    });
}

// The patches behind it are written by their product.
void classToken(StepWriter& writer, int tensor)
{
    const LayerPlan& plan = writer.plan;
    writer.forward([value = plan.parameter(plan.operand(tensor, 1)),
                    pictures = int(plan.node(tensor).shape[0])](const StepContext& pass) {
        forEachSequence(pass.stream.size(), pictures, [&](std::size_t first, std::size_t) {
            pass.on().copy(value.in(pass.parameters), pass.stream.subspan(first, value.count));
        });
    });
}

void classTokenWeightGrad(StepWriter& writer, int tensor)
{
    const LayerPlan& plan = writer.plan;
    writer.weightGrad([value = plan.parameter(plan.operand(tensor, 1)), from = plan.embeddingGradient(),
                       pictures = int(plan.node(tensor).shape[0])](const StepContext& pass) {
        const std::span<const float> grad = pass.memory.floats(from);
        forEachSequence(grad.size(), pictures, [&](std::size_t first, std::size_t) {
            pass.on().run(kernels::Add{value.in(pass.gradients), grad.subspan(first, value.count)});
        });
    });
}

// A norm before it writes these rows alone.
void firstRow(StepWriter& writer, int tensor)
{
    const LayerPlan& plan = writer.plan;
    if (plan.isNorm(plan.operand(tensor, 0)))
        return;
    writer.forward([from = plan.read(plan.operand(tensor, 0)), output = plan.value(tensor),
                    shape = plan.node(tensor).shape](const StepContext& pass) {
        const auto width = std::size_t(shape[1]);
        std::size_t row = 0;
        forEachSequence(pass.at(from).size(), int(shape[0]), [&](std::size_t first, std::size_t) {
            pass.on().copy(std::span<const float>(pass.at(from).subspan(first, width)),
                           pass.at(output).subspan(row++ * width, width));
        });
    });
}

void firstRowInputGrad(StepWriter& writer, int tensor)
{
    const LayerPlan& plan = writer.plan;
    if (plan.isNorm(plan.operand(tensor, 0)))
        return;
    writer.emptyStream();
    writer.inputGrad([from = plan.gradient(tensor), shape = plan.node(tensor).shape](const StepContext& pass) {
        const auto width = std::size_t(shape[1]);
        std::size_t row = 0;
        forEachSequence(pass.stream.size(), int(shape[0]), [&](std::size_t first, std::size_t) {
            pass.on().copy(std::span<const float>(pass.at(from).subspan(row++ * width, width)),
                           pass.stream.subspan(first, width));
        });
    });
}

void softCap(StepWriter& writer, int tensor)
{
    const LayerPlan& plan = writer.plan;
    writer.forward([cap = float(plan.node(tensor).attribute("cap")), values = plan.value(tensor),
                    capped = plan.own(tensor, "logits")](const StepContext& pass) {
        pass.on().run(kernels::SoftCap{cap, pass.at(values)});
        pass.on().copy(std::span<const float>(pass.at(values)), pass.memory.floats(capped));
    });
}

void softCapInputGrad(StepWriter& writer, int tensor)
{
    const LayerPlan& plan = writer.plan;
    writer.inputGrad([cap = float(plan.node(tensor).attribute("cap")), grad = plan.gradient(tensor),
                      capped = plan.own(tensor, "logits")](const StepContext& pass) {
        pass.on().run(kernels::SoftCapGrad{cap, pass.memory.floats(capped), pass.at(grad)});
    });
}

struct LossPlaces {
    int rows, classes;
    float scale;
    Slice probabilities, targets;
};

LossPlaces lossOf(const StepWriter& writer, int tensor)
{
    const LayerPlan& plan = writer.plan;
    const int logits = plan.operand(tensor, 0);
    return {plan.rows(logits), int(plan.width(logits)), writer.settings.lossScale, plan.own(tensor, "probabilities"),
            plan.own(tensor, "targets")};
}

void crossEntropy(StepWriter& writer, int tensor)
{
    writer.forward([of = lossOf(writer, tensor)](const StepContext& pass) {
        pass.on().copy(pass.targets, pass.memory.integers(of.targets));
        pass.on().run(kernels::CrossEntropyForward{of.rows, of.classes, pass.memory.floats(of.probabilities),
                                                   pass.targets, of.scale, pass.loss});
    });
}

void crossEntropyInputGrad(StepWriter& writer, int tensor)
{
    writer.inputGrad([of = lossOf(writer, tensor),
                      grad = writer.plan.gradient(writer.plan.operand(tensor, 0))](const StepContext& pass) {
        pass.on().run(kernels::CrossEntropyInputGrad{of.rows, of.classes, pass.memory.floats(of.probabilities),
                                                     pass.memory.integers(of.targets), of.scale, pass.at(grad)});
    });
}

constexpr OperationSteps endTable[] = {
    {"embedding", embedding, nullptr, embeddingWeightGrad},
    {"feature_bag", featureBag, nullptr, featureBagWeightGrad},
    {"positions", positions, nullptr, positionsWeightGrad},
    {"scale", scale, scaleInputGrad},
    {"segments", segments, nullptr, segmentsWeightGrad},
    {"class_token", classToken, nullptr, classTokenWeightGrad},
    {"first_row", firstRow, firstRowInputGrad},
    {"soft_cap", softCap, softCapInputGrad},
    {"cross_entropy", crossEntropy, crossEntropyInputGrad},
    {"hand_over"},
};

} // namespace

std::span<const OperationSteps> endSteps()
{
    return endTable;
}

} // namespace pipewright
