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
int positionsOf(const NodePlan& plan, int embedding)
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
    Place tokens;
    ParameterPlace table, positions;
    std::size_t ofSequence() const { return std::size_t(length) * std::size_t(width); }
};

EmbeddingPlaces embeddingOf(const NodePlan& plan, int tensor)
{
    const int positions = positionsOf(plan, tensor);
    return {int(plan.shape(plan.operand(tensor, 0)).back()), int(plan.width(tensor)),
            plan.read(plan.operand(tensor, 0)), plan.parameter(plan.operand(tensor, 1)),
            positions < 0 ? ParameterPlace() : plan.parameter(plan.operand(positions, 1))};
}

void keepInputs(StepWriter& writer, const Place& tokens)
{
    if (!writer.plan.isAlone())
        writer.forward([tokens](const StepContext& pass) { pass.on().copy(pass.inputs, pass.integers(tokens)); });
}

void embedding(StepWriter& writer, int tensor)
{
    const EmbeddingPlaces of = embeddingOf(writer.plan, tensor);
    keepInputs(writer, of.tokens);
    writer.forward([of](const StepContext& pass) {
        pass.on().run(kernels::EmbeddingForward{
            of.length, of.width, pass.inputs, pass.parameter(of.table),
            ofPiece(pass.parameter(of.positions), pass.memory.piece, of.ofSequence()), pass.stream});
    });
}

void embeddingWeightGrad(StepWriter& writer, int tensor)
{
    writer.weightGrad(
        [of = embeddingOf(writer.plan, tensor), grad = writer.plan.tableGradient(tensor)](const StepContext& pass) {
            pass.on().run(kernels::EmbeddingWeightGrad{
                of.length, of.width, pass.integers(of.tokens), pass.at(grad), pass.gradient(of.table),
                ofPiece(pass.gradient(of.positions), pass.memory.piece, of.ofSequence())});
        });
}

void featureBag(StepWriter& writer, int tensor)
{
    const EmbeddingPlaces of = embeddingOf(writer.plan, tensor);
    keepInputs(writer, of.tokens);
    writer.forward([of, output = writer.plan.value(tensor)](const StepContext& pass) {
        pass.on().run(
            kernels::FeatureBagForward{of.length, of.width, pass.inputs, pass.parameter(of.table), pass.at(output)});
    });
}

void featureBagWeightGrad(StepWriter& writer, int tensor)
{
    writer.weightGrad(
        [of = embeddingOf(writer.plan, tensor), grad = writer.plan.tableGradient(tensor)](const StepContext& pass) {
            pass.on().run(kernels::FeatureBagWeightGrad{of.length, of.width, pass.integers(of.tokens), pass.at(grad),
                                                        pass.gradient(of.table)});
        });
}

bool isDoneByTheEmbedding(const NodePlan& plan, int positions)
{
    return plan.operation(plan.operand(positions, 0)) == "embedding";
}

void positions(StepWriter& writer, int tensor)
{
    const NodePlan& plan = writer.plan;
    if (isDoneByTheEmbedding(plan, tensor))
        return;
    const Place output = plan.value(tensor);
    writer.copy(plan.value(plan.operand(tensor, 0)), output);
    const ParameterPlace table = plan.parameter(plan.operand(tensor, 1));
    if (table.count == 0) // another member adds them
        return;
    writer.forward([table, output, sequences = int(plan.shape(tensor)[0])](const StepContext& pass) {
        forEachSequence(pass.at(output).size(), sequences, [&](std::size_t first, std::size_t count) {
            pass.on().run(kernels::Add{pass.at(output).subspan(first, count),
                                       ofPiece(pass.parameter(table), pass.memory.piece, count)});
        });
    });
}

void positionsWeightGrad(StepWriter& writer, int tensor)
{
    const NodePlan& plan = writer.plan;
    if (isDoneByTheEmbedding(plan, tensor))
        return;
    writer.weightGrad([table = plan.parameter(plan.operand(tensor, 1)), from = plan.tableGradient(tensor),
                       sequences = int(plan.shape(tensor)[0])](const StepContext& pass) {
        const std::span<const float> grad = pass.at(from);
        forEachSequence(grad.size(), sequences, [&](std::size_t first, std::size_t count) {
            pass.on().run(
                kernels::Add{ofPiece(pass.gradient(table), pass.memory.piece, count), grad.subspan(first, count)});
        });
    });
}

Step scaling(const NodePlan& plan, int tensor, const Place& from, const Place& to)
{
    return [from, to, factor = float(plan.node(tensor).attribute("factor"))](const StepContext& pass) {
        const std::span<float> made = pass.at(to);
        pass.on().run(kernels::TensorCall{TensorOperation::Scale,
                                          factor,
                                          {std::int64_t(made.size())},
                                          {pass.at(from).data()},
                                          made.data(),
                                          nullptr,
                                          nullptr});
    };
}

void scale(StepWriter& writer, int tensor)
{
    const NodePlan& plan = writer.plan;
    writer.forward(scaling(plan, tensor, plan.value(plan.operand(tensor, 0)), plan.value(tensor)));
}

void scaleInputGrad(StepWriter& writer, int tensor)
{
    const NodePlan& plan = writer.plan;
    const auto gradient = [&](int of) { return plan.isOnStream(of) ? Place{.isStream = true} : plan.gradient(of); };
    writer.inputGrad(scaling(plan, tensor, gradient(tensor), gradient(plan.operand(tensor, 0))));
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
    const NodePlan& plan = writer.plan;
    writer.forward([table = plan.parameter(plan.operand(tensor, 1)), shape = plan.shape(tensor),
                    from = plan.value(plan.operand(tensor, 0)), to = plan.value(tensor)](const StepContext& pass) {
        const std::span<float> made = pass.at(to);
        forEachHalf(made.size(), shape, [&](std::size_t first, std::size_t count, std::size_t half) {
            const float* const segment = pass.parameter(table).data() + half * std::size_t(shape[2]);
            pass.on().run(kernels::TensorCall{TensorOperation::AddRepeated,
                                              0,
                                              {std::int64_t(count), shape[2]},
                                              {pass.at(from).data() + first, segment},
                                              made.data() + first,
                                              nullptr,
                                              nullptr});
        });
    });
}

void segmentsWeightGrad(StepWriter& writer, int tensor)
{
    const NodePlan& plan = writer.plan;
    writer.weightGrad([table = plan.parameter(plan.operand(tensor, 1)), shape = plan.shape(tensor),
                       from = plan.tableGradient(tensor)](const StepContext& pass) {
        const std::span<const float> grad = pass.at(from);
        forEachHalf(grad.size(), shape, [&](std::size_t first, std::size_t count, std::size_t half) {
            pass.on().run(kernels::TensorCall{TensorOperation::SumRepeated,
                                              0,
                                              {std::int64_t(count), shape[2]},
                                              {grad.data() + first},
                                              pass.gradient(table).data() + half * std::size_t(shape[2]),
                                              nullptr,
                                              nullptr});
        });
    });
}

/// Copies between patches and the rows behind class tokens.
Step copyOfPatches(const NodePlan& plan, int tensor, const Place& patches, const Place& rows, bool back)
{
    return [patches, rows, back, pictures = plan.shape(tensor)[0],
            width = std::size_t(plan.width(tensor))](const StepContext& pass) {
        const std::size_t each = pass.at(patches).size() / std::size_t(pictures);
        for (std::size_t picture = 0; picture < std::size_t(pictures); ++picture) {
            const std::span<float> alone = pass.at(patches).subspan(picture * each, each),
                                   behind = pass.at(rows).subspan(picture * (each + width) + width, each);
            pass.on().copy(std::span<const float>(back ? behind : alone), back ? alone : behind);
        }
    };
}

void classToken(StepWriter& writer, int tensor)
{
    const NodePlan& plan = writer.plan;
    const int patches = plan.operand(tensor, 0);
    const Place output = plan.value(tensor);
    writer.forward([value = plan.parameter(plan.operand(tensor, 1)), output,
                    pictures = int(plan.shape(tensor)[0])](const StepContext& pass) {
        forEachSequence(pass.at(output).size(), pictures, [&](std::size_t first, std::size_t) {
            pass.on().copy(pass.parameter(value), pass.at(output).subspan(first, value.count));
        });
    });
    if (!plan.isBehindClassToken(patches)) // there the product has written them
        writer.forward(copyOfPatches(plan, tensor, plan.value(patches), output, false));
}

void classTokenInputGrad(StepWriter& writer, int tensor)
{
    const NodePlan& plan = writer.plan;
    const int patches = plan.operand(tensor, 0);
    if (!plan.isBehindClassToken(patches))
        writer.inputGrad(copyOfPatches(plan, tensor, plan.gradient(patches), plan.gradient(tensor), true));
}

void classTokenWeightGrad(StepWriter& writer, int tensor)
{
    const NodePlan& plan = writer.plan;
    writer.weightGrad([value = plan.parameter(plan.operand(tensor, 1)), from = plan.tableGradient(tensor),
                       pictures = int(plan.shape(tensor)[0])](const StepContext& pass) {
        const std::span<const float> grad = pass.at(from);
        forEachSequence(grad.size(), pictures, [&](std::size_t first, std::size_t) {
            pass.on().run(kernels::Add{pass.gradient(value), grad.subspan(first, value.count)});
        });
    });
}

// A norm before it writes these rows alone.
void firstRow(StepWriter& writer, int tensor)
{
    const NodePlan& plan = writer.plan;
    if (plan.isNorm(plan.operand(tensor, 0)))
        return;
    writer.forward([from = plan.read(plan.operand(tensor, 0)), output = plan.value(tensor),
                    shape = plan.shape(tensor)](const StepContext& pass) {
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
    const NodePlan& plan = writer.plan;
    if (plan.isNorm(plan.operand(tensor, 0)))
        return;
    const Place to = writer.empty(plan.operand(tensor, 0));
    writer.inputGrad([to, from = plan.gradient(tensor), shape = plan.shape(tensor)](const StepContext& pass) {
        const auto width = std::size_t(shape[1]);
        std::size_t row = 0;
        forEachSequence(pass.at(to).size(), int(shape[0]), [&](std::size_t first, std::size_t) {
            pass.on().copy(std::span<const float>(pass.at(from).subspan(row++ * width, width)),
                           pass.at(to).subspan(first, width));
        });
    });
}

void softCap(StepWriter& writer, int tensor)
{
    const NodePlan& plan = writer.plan;
    const Place values = plan.value(tensor);
    writer.copy(plan.value(plan.operand(tensor, 0)), values);
    writer.forward([values, cap = float(plan.node(tensor).attribute("cap"))](const StepContext& pass) {
        pass.on().run(kernels::SoftCap{cap, pass.at(values)});
    });
    writer.copy(values, plan.keptResult(tensor, "logits"));
}

void softCapInputGrad(StepWriter& writer, int tensor)
{
    const NodePlan& plan = writer.plan;
    const Place from = plan.gradient(tensor), to = plan.gradient(plan.operand(tensor, 0));
    if (from != to)
        writer.inputGrad([from, to](const StepContext& pass) {
            pass.on().copy(std::span<const float>(pass.at(from)), pass.at(to));
        });
    writer.inputGrad([cap = float(plan.node(tensor).attribute("cap")), grad = to,
                      capped = plan.keptResult(tensor, "logits")](const StepContext& pass) {
        pass.on().run(kernels::SoftCapGrad{cap, pass.at(capped), pass.at(grad)});
    });
}

struct LossPlaces {
    int rows, classes;
    float scale;
    Place probabilities, targets;
};

LossPlaces lossOf(const StepWriter& writer, int tensor)
{
    const NodePlan& plan = writer.plan;
    const int logits = plan.operand(tensor, 0);
    return {plan.rows(logits), int(plan.width(logits)), writer.settings.lossScale,
            plan.own(tensor, "probabilities", plan.elements(logits)), plan.read(plan.operand(tensor, 1))};
}

void crossEntropy(StepWriter& writer, int tensor)
{
    const LossPlaces of = lossOf(writer, tensor);
    if (!writer.plan.isAlone())
        writer.forward([of](const StepContext& pass) { pass.on().copy(pass.targets, pass.integers(of.targets)); });
    writer.copy(writer.plan.value(writer.plan.operand(tensor, 0)), of.probabilities);
    writer.forward([of](const StepContext& pass) {
        pass.on().run(kernels::CrossEntropyForward{of.rows, of.classes, pass.at(of.probabilities), pass.targets,
                                                   of.scale, pass.loss});
    });
}

void crossEntropyInputGrad(StepWriter& writer, int tensor)
{
    writer.inputGrad([of = lossOf(writer, tensor),
                      grad = writer.plan.gradient(writer.plan.operand(tensor, 0))](const StepContext& pass) {
        pass.on().run(kernels::CrossEntropyInputGrad{of.rows, of.classes, pass.at(of.probabilities),
                                                     pass.integers(of.targets), of.scale, pass.at(grad)});
    });
    if (!writer.plan.isAlone())
        return;
    // The weight of this loss is a value in the device's memory.
    writer.inputGrad([weight = writer.plan.gradient(tensor),
                      grad = writer.plan.gradient(writer.plan.operand(tensor, 0))](const StepContext& pass) {
        const std::span<float> scaled = pass.at(grad);
        pass.on().run(kernels::TensorCall{TensorOperation::ScaleBy,
                                          0,
                                          {std::int64_t(scaled.size())},
                                          {scaled.data(), pass.at(weight).data()},
                                          scaled.data(),
                                          nullptr,
                                          nullptr});
    });
}

constexpr OperationSteps endTable[] = {
    {"embedding", embedding, nullptr, embeddingWeightGrad},
    {"feature_bag", featureBag, nullptr, featureBagWeightGrad},
    {"positions", positions, nullptr, positionsWeightGrad},
    {"scale", scale, scaleInputGrad},
    {"segments", segments, nullptr, segmentsWeightGrad},
    {"class_token", classToken, classTokenInputGrad, classTokenWeightGrad},
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
