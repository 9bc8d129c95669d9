// SPDX-License-Identifier: GPL-3.0-or-later
// The two ends of a model: from what it reads to the values between layers, and from those to the loss.
#include "core/model/modelbuilder.h"

#include "core/model/transformer.h"

namespace pipewright {

int ModelBuilder::embedding()
{
    int x = isClassifier() ? featureEmbedding() : isVision() ? pictureEmbedding() : tokenEmbedding();
    if (m_shape.learnedPositions && !isClassifier())
        x = apply("positions", "positions",
                  {x, parameter("positions.table", {m_shape.sequence, m_shape.hidden}, "positions.weight")}, "table",
                  Width::Model);
    if (isEncoder())
        x = apply("segments", "segments", {x, parameter("segments.table", {2, m_shape.hidden}, "segments.weight")},
                  "table", Width::Model);
    if (isEncoder() || m_shape.embeddingNorm)
        x = norm("embedding_norm", "norm", x);
    return dropout("embedding_dropout", "embedding", x);
}

int ModelBuilder::tokenEmbedding()
{
    const int input = m_graph.addInput(inputName, rows());
    m_table = parameter(embeddingName, {m_shape.vocabulary, m_shape.hidden}, "table.weight");
    const int x = apply("embedding", "embedding", {input, m_table}, "table", Width::Model);
    if (m_shape.embeddingScale == 1)
        return x;
    return apply("scaled", "scale", {x}, {}, Width::Model, {{"factor", m_shape.embeddingScale}});
}

int ModelBuilder::featureEmbedding()
{
    const int input = m_graph.addInput(inputName, {m_shape.microbatchSize, m_shape.inputs() / m_shape.microbatchSize});
    m_table = parameter(embeddingName, {m_shape.features, m_shape.hidden}, "table.weight");
    return apply("embedding", "feature_bag", {input, m_table}, "table", Width::Model);
}

// One row of the position table belongs to the class token, which is a parameter, not a patch.
int ModelBuilder::pictureEmbedding()
{
    const int input =
        m_graph.addInput(inputName, {m_shape.microbatchSize, m_shape.sequence - 1, m_shape.patchElements});
    const int patches =
        linear({"patch_projection", "patches", m_shape.patchElements, m_shape.hidden, true, Width::Model}, input);
    return apply("class_token", "class_token",
                 {patches, parameter("class_token.value", {m_shape.hidden}, "classToken", Start::Zero)}, "patches",
                 Width::Model);
}

void ModelBuilder::head(int x)
{
    if (m_shape.head == Head::Own)
        ownHead(x);
    else
        taskHead(x);
}

void ModelBuilder::loss(int logits)
{
    Shape targets(m_graph.node(logits).shape.begin(), m_graph.node(logits).shape.end() - 1);
    const int input = m_graph.addInput(targetName, std::move(targets), m_segment);
    apply("loss", "cross_entropy", {logits, input}, "loss", Width::Own);
}

// One square matrix on the first token of every sequence, and tanh.
int ModelBuilder::pooler(int x)
{
    const int first = apply("first", "first_row", {x}, {}, Width::Model);
    return apply("tanh", "tanh", {linear({"pooler", "pooler", m_shape.hidden, m_shape.hidden, true}, first)}, "pooler",
                 Width::Own);
}

void ModelBuilder::ownHead(int x)
{
    if (isEncoder() && !m_shape.tiedHead) {
        loss(pooler(x));
        return;
    }
    if (isEncoder()) { // of masked tokens: a square matrix and its activation before the norm
        x = linear({"transform", "transform", m_shape.hidden, m_shape.hidden, true, Width::Model}, x);
        x = apply("transform." + std::string(activation()), activation(), {x}, "transform", Width::Model);
    }
    x = norm("norm", "norm", x);
    if (isVision()) // the class token alone
        x = apply("first", "first_row", {x}, {}, Width::Model);
    const bool shares = hasTiedHead(m_shape) && m_table >= 0; // else a separate copy
    const int matrix =
        shares ? m_table : m_graph.addParameter(headName, {m_shape.vocabulary, m_shape.hidden}, m_segment);
    if (!shares)
        m_graph.describeParameter(matrix, "projection.weight", Start::Normal);
    std::vector<int> operands{x, matrix};
    if (isVision() || isEncoder())
        operands.push_back(parameter("projection.bias", {m_shape.vocabulary}, "projection.bias", Start::Zero));
    int logits = apply("logits", "linear", std::move(operands), "projection", Width::Own);
    if (m_shape.logitsSoftCap > 0)
        logits = apply("capped", "soft_cap", {logits}, "loss", Width::Own, {{"cap", m_shape.logitsSoftCap}});
    loss(logits);
}

// The heads that models for tasks have, as the transformers library computes them: a decoder scores every token also
// where one label of a sequence counts; an encoder scores what its pooler made of the first token.
void ModelBuilder::taskHead(int x)
{
    const bool ofSequence = m_shape.head == Head::SequenceLabels;
    if (!isEncoder()) // an encoder's layers end with a norm
        x = norm("norm", "norm", x);
    if (m_shape.head == Head::None) {
        apply("loss", "sum", {x}, {}, Width::Own);
        return;
    }
    if (isEncoder() && ofSequence)
        x = pooler(x);
    if (m_shape.head == Head::Reward) {
        x = linear({"reward", "reward", m_shape.hidden, m_shape.hidden, true, Width::Model}, x);
        x = apply("reward.relu", "relu", {x}, "reward", Width::Model);
    }
    x = linear({"score", "score", m_shape.hidden, m_shape.labels, isEncoder() || !ofSequence}, x);
    if (!isEncoder() && (ofSequence || m_shape.head == Head::Reward))
        x = apply("last", "last_row", {x}, {}, Width::Own);
    loss(x);
}

} // namespace pipewright
