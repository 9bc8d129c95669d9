// SPDX-License-Identifier: GPL-3.0-or-later
// The memory in which a device without bf16 arithmetic passes through a stage that is stored in bf16: layer by layer,
// in fp32 copies of the layer's parameters and tensors and of the values between layers. The layers share it.
#pragma once

#include "core/base/recompute.h"
#include "core/workload/workload.h"

#include <span>

namespace pipewright {

/// Bytes of the fp32 copies of one layer.
struct WidenedLayer {
    Bytes parameters = 0, untilInputGrad = 0, untilWeightGrad = 0, fromInputGrad = 0;
    Bytes workspace = 0; ///< of its input gradient, fp32 anyhow
};
WidenedLayer widenedLayer(const Layer& layer);

/// What the passes of a stage work in, whether it is widened or not.
struct PassWorkspace {
    Bytes forward = 0, inputGrad = 0, weightGrad = 0, backward = 0, recompute = 0;
};
PassWorkspace passWorkspace(const ModelShape& shape, std::span<const Layer> layersOfStage, Recompute recompute);

/// Of the values between layers.
Bytes widenedStream(const ModelShape& shape);

} // namespace pipewright
