// SPDX-License-Identifier: GPL-3.0-or-later
// What a layer holds: the tensors that one pass keeps for a later one, parameters, and the workspace of a pass. All are
// derived from the model graph (layersofgraph.h), and the executor allocates exactly these.
#pragma once

#include "core/base/units.h"
#include "core/model/modelshape.h"

#include <cstdint>
#include <string>

namespace pipewright {

/// When a tensor that F writes (or, for FromInputGrad, that I writes) is released.
enum class Lifetime { UntilInputGrad, UntilWeightGrad, FromInputGrad };

struct SavedTensor {
    std::string name; ///< "attention.probabilities": a part of the layer, and what it keeps
    std::int64_t elements = 0;
    int bytesPerElement = 2;
    Lifetime lifetime = Lifetime::UntilInputGrad;
    bool ofAttentionCore = false;   ///< scores, softmax and their dropout: what selective recomputation makes again
    bool readByLaterPieces = false; ///< keys and values, where sequences come in pieces
    int bytesOf32 =
        0; ///< of 32 elements with their scales, where products read a narrower type; 0: bytesPerElement each
    Bytes bytes() const { return bytesOf32 > 0 ? (elements * bytesOf32 + 31) / 32 : elements * bytesPerElement; }
    bool operator==(const SavedTensor&) const = default;
};

/// One of a layer's parameters, under its name within the layer: "qkv.weight".
struct LayerParameter {
    enum class Start {
        Zero,
        One,
        Normal,
        Residual, ///< its product is added to the values between layers: normal, narrower the more layers the model has
    };
    std::string name;
    std::int64_t rows = 1; ///< outputs of a weight; 1 for biases and norms
    std::int64_t columns = 0;
    Start start = Start::Zero;
    std::int64_t count() const { return rows * columns; }
    bool operator==(const LayerParameter&) const = default;
};

/// Memory that a layer needs only while it forms its input gradient; no other pass needs any.
struct WorkspaceTensor {
    std::string name;          ///< "d.scores"
    std::int64_t elements = 0; ///< fp32
    bool ofSums = false;       ///< fp32 also where a device computes with bf16
    Bytes bytes() const { return elements * bytesOf(DataType::Fp32); }
    bool operator==(const WorkspaceTensor&) const = default;
};

} // namespace pipewright
