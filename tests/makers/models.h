// SPDX-License-Identifier: GPL-3.0-or-later
// Models for tests: GPTs small enough to train in a moment. They have every kind of layer, and different orders of
// addition give different bits, as in large models.
#pragma once

#include "core/design/stagecosts.h"
#include "core/model/transformer.h"
#include "makers/designs.h"

namespace pipewright::test {

/// With the usual proportions: heads share the hidden size, the MLP is four times as wide.
inline ModelShape gptShape(int layers, std::int64_t hidden, int heads, std::int64_t vocabulary, std::int64_t sequence,
                           std::int64_t microbatchSize = 4)
{
    ModelShape shape;
    shape.name = "small";
    shape.layers = layers;
    shape.hidden = hidden;
    shape.heads = shape.keyValueHeads = heads;
    shape.headSize = hidden / heads;
    shape.ffn = 4 * hidden;
    shape.vocabulary = vocabulary;
    shape.sequence = sequence;
    shape.microbatchSize = microbatchSize;
    return shape;
}

inline Workload workloadOf(const ModelShape& shape)
{
    return makeWorkload(shape, Optimizer::AdamW, "test");
}

/// No two of its dimensions are alike.
inline ModelShape smallShape(int layers = 2)
{
    ModelShape shape = gptShape(layers, 12, 3, 128, 9, 2);
    shape.ffn = 20;
    return shape;
}

/// What today's decoders have, small: rotary positions, grouped heads wider than the model, a gated MLP, no biases.
inline ModelShape llamaShape(int layers = 2)
{
    ModelShape shape = gptShape(layers, 12, 4, 128, 9, 2);
    shape.name = "small llama";
    shape.keyValueHeads = 2;
    shape.headSize = 6;
    shape.ffn = 20;
    shape.gatedMlp = true;
    shape.activation = Activation::Silu;
    shape.bias = shape.queryKeyValueBias = shape.learnedPositions = shape.tiedHead = false;
    shape.rotary = {.base = 100, .scaling = Rotary::Scaling::Llama3, .factor = 8, .low = 1, .high = 4, .original = 64};
    shape.normEpsilon = 1e-6;
    shape.attention = AttentionMemory::Streamed;
    return shape;
}

/// BERT small: norms behind the sums, attention that looks ahead too. With a tied head, masked tokens.
inline ModelShape encoderShape(int layers = 2, bool masked = true)
{
    ModelShape shape = gptShape(layers, 12, 3, 128, 9, 2);
    shape.name = "small encoder";
    shape.architecture = Architecture::Encoder;
    shape.ffn = 20;
    shape.activation = Activation::Gelu;
    shape.tiedHead = masked;
    shape.normEpsilon = 1e-3; // large enough to be seen
    shape.attention = AttentionMemory::Streamed;
    return shape;
}

/// ViT small: pictures of four patches.
inline ModelShape visionShape(int layers = 2)
{
    ModelShape shape = gptShape(layers, 12, 3, 7, 5, 3);
    shape.name = "small vision";
    shape.architecture = Architecture::Vision;
    shape.ffn = 20;
    shape.activation = Activation::Gelu;
    shape.tiedHead = false;
    shape.patchElements = 6;
    shape.attention = AttentionMemory::Streamed;
    return shape;
}

/// A family's design, its model cut into the family's stages; costs without times. And one with a GPT of eight layers.
inline Design tinyDesign(std::string_view family, int devices, int microbatches, ModelShape shape)
{
    Design design = evenDesign({}, possibleSchedule(family, devices, microbatches));
    design.name = "tiny";
    shape.sequencePieces = design.schedule.sequencePieces;
    design.workload = workloadOf(shape);
    design.layersPerStage = evenPartition(*design.workload, design.schedule.stages());
    return design;
}

inline Design tinyGpt(std::string_view family, int devices, int microbatches)
{
    ModelShape shape = gptShape(8, 16, 2, 256, 8, 2);
    shape.ffn = 32;
    shape.tiedHead = !findFamily(family)->updates;
    return tinyDesign(family, devices, microbatches, shape);
}

} // namespace pipewright::test
