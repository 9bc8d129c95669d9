// SPDX-License-Identifier: GPL-3.0-or-later
// What the passes of a stage work in beside its buffers. An fp32 stage, and a bf16 one on a device that computes with
// bf16, need only what no buffer holds. A device without bf16 arithmetic passes through a bf16 stage layer by layer in
// fp32 copies of the layer's parameters and tensors and of the values between layers ("widened"). Layers run one after
// another and share it. O(tensors).
#pragma once

#include "core/base/recompute.h"
#include "core/workload/workload.h"

#include <span>

namespace pipewright {

struct PassWorkspace {
    Bytes forward = 0, inputGrad = 0, weightGrad = 0, backward = 0, recompute = 0;
};
PassWorkspace passWorkspace(const ModelShape& shape, std::span<const Layer> layersOfStage, Recompute recompute);

/// Of a bf16 stage that is not widened: what a tensor takes of the workspace, so that each begins where 16 bytes can be
/// read at once.
constexpr Bytes alignedForPass(Bytes bytes)
{
    return (bytes + 15) / 16 * 16;
}

} // namespace pipewright
