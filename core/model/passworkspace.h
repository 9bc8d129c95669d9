// SPDX-License-Identifier: GPL-3.0-or-later
// The workspace of a stage's passes, in addition to its buffers. An fp32 stage, and a bf16 one on a device that
// computes with bf16, need only what no buffer holds. A device without bf16 arithmetic passes through a bf16 stage
// layer by layer in fp32 copies of the layer's parameters and tensors and of the values between layers ("widened").
// Layers run one after another and share the workspace. O(tensors).
#pragma once

#include "core/base/recompute.h"
#include "core/model/workload.h"

#include <span>

namespace pipewright {

struct PassWorkspace {
    Bytes forward = 0, inputGrad = 0, weightGrad = 0, backward = 0, recompute = 0;
};
/// Of a stage whose backward does not recompute: for others, see passmemory.h.
PassWorkspace passWorkspace(const ModelShape& shape, std::span<const Layer> layersOfStage, Recompute recompute);

/// For a bf16 stage that is not widened: a tensor's bytes in the workspace, rounded up so that every tensor is aligned
/// to 16 bytes.
constexpr Bytes alignedForPass(Bytes bytes)
{
    return (bytes + 15) / 16 * 16;
}

} // namespace pipewright
