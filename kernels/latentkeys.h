// SPDX-License-Identifier: GPL-3.0-or-later
// The keys of multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1): every head has a part of its
// own, made from the latent, followed by a rotary part that all heads share.
#pragma once

#include <span>

namespace pipewright::kernels {

struct LatentKeys {
    int heads, ownSize, sharedSize; ///< of a head; the part that all share
};

/// keys[tokens][heads][ownSize + sharedSize] from own[tokens][heads][ownSize] and shared[tokens][sharedSize].
struct JoinKeys {
    LatentKeys shape;
    std::span<const float> own, shared;
    std::span<float> keys;
};

/// The gradients of both parts from the keys' gradient; the shared part's is the sum over heads, in their order.
struct SplitKeysGrad {
    LatentKeys shape;
    std::span<const float> keysGrad;
    std::span<float> ownGrad, sharedGrad;
};

} // namespace pipewright::kernels
