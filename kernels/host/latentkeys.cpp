// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/calls.h"

#include <algorithm>
#include <cassert>

namespace pipewright::kernels {

void run(const JoinKeys& call)
{
    const auto own = std::size_t(call.shape.ownSize), shared = std::size_t(call.shape.sharedSize),
               heads = std::size_t(call.shape.heads), tokens = call.shared.size() / shared;
    assert(call.own.size() == tokens * heads * own && call.keys.size() == tokens * heads * (own + shared));
    float* key = call.keys.data();
    for (std::size_t token = 0; token < tokens; ++token)
        for (std::size_t head = 0; head < heads; ++head) {
            key = std::copy_n(&call.own[(token * heads + head) * own], own, key);
            key = std::copy_n(&call.shared[token * shared], shared, key);
        }
}

void run(const SplitKeysGrad& call)
{
    const auto own = std::size_t(call.shape.ownSize), shared = std::size_t(call.shape.sharedSize),
               heads = std::size_t(call.shape.heads), tokens = call.sharedGrad.size() / shared;
    assert(call.ownGrad.size() == tokens * heads * own && call.keysGrad.size() == tokens * heads * (own + shared));
    std::fill(call.sharedGrad.begin(), call.sharedGrad.end(), 0.0f);
    const float* key = call.keysGrad.data();
    for (std::size_t token = 0; token < tokens; ++token)
        for (std::size_t head = 0; head < heads; ++head, key += own + shared) {
            std::copy_n(key, own, &call.ownGrad[(token * heads + head) * own]);
            for (std::size_t i = 0; i < shared; ++i)
                call.sharedGrad[token * shared + i] += key[own + i];
        }
}

} // namespace pipewright::kernels
