// SPDX-License-Identifier: GPL-3.0-or-later
// The maths of pretended GPUs: the host's own, when the stream comes to it.
#pragma once

#include "executor/cuda/pretendedstreams.h"
#include "kernels/operations.h"

#include <algorithm>
#include <vector>

namespace pretended {

inline const pipewright::kernels::Operations& host()
{
    return pipewright::kernels::hostOperations();
}

/// What a stream keeps of a call until it comes to it: the call. Of an attention also where the earlier pieces lie,
/// since the caller's list may end with the call.
template<typename Call>
struct Kept {
    Call call;
    void run() const { host().run(call); }
};

struct KeptPieces {
    explicit KeptPieces(const pipewright::kernels::EarlierPieces& pieces)
        : saved(pieces.saved.begin(), pieces.saved.end()), key(pieces.key), value(pieces.value)
    {
    }
    pipewright::kernels::EarlierPieces pieces() const { return {saved, key, value}; }

    std::vector<const float*> saved;
    std::size_t key, value;
};

// As on a GPU, `saved` and `scratch` have one number per query and head: the probabilities are made anew.
template<>
struct Kept<pipewright::kernels::AttentionForward> {
    explicit Kept(const pipewright::kernels::AttentionForward& call) : call(call), earlier(call.earlier) {}
    void run() const
    {
        std::vector<float> probabilities(call.shape.scores());
        auto mine = call;
        mine.saved = probabilities;
        mine.earlier = earlier.pieces();
        host().run(mine);
        std::fill(call.saved.begin(), call.saved.end(), 1.0f);
    }

    pipewright::kernels::AttentionForward call;
    KeptPieces earlier;
};

template<>
struct Kept<pipewright::kernels::AttentionInputGrad> {
    explicit Kept(const pipewright::kernels::AttentionInputGrad& call) : call(call), earlier(call.earlier) {}
    void run() const
    {
        std::vector<float> probabilities(call.shape.scores()), scores(call.shape.scores()), again(call.output.size());
        host().run(pipewright::kernels::AttentionForward{call.shape, call.query, call.key, call.value, probabilities,
                                                         again, earlier.pieces()});
        // What the forward pass left must still be there.
        if (!std::all_of(call.saved.begin(), call.saved.end(), [](float x) { return x == 1; }))
            probabilities.assign(probabilities.size(), 0.0f);
        auto mine = call;
        mine.saved = probabilities;
        mine.scratch = scores;
        mine.earlier = earlier.pieces();
        host().run(mine);
        std::fill(call.scratch.begin(), call.scratch.end(), 0.0f);
    }

    pipewright::kernels::AttentionInputGrad call;
    KeptPieces earlier;
};

inline void addMaths(PipewrightCudaTable& t)
{
    t.createMaths = [](std::int32_t, void* on, const char*, std::int32_t, void* workspace, void** maths) {
        for (const std::size_t at : {std::size_t{0}, n(PIPEWRIGHT_MATHS_WORKSPACE - 1)}) // it is all there
            static_cast<char*>(workspace)[at] = 0x7f;
        return *maths = on, 0;
    };
    t.destroyMaths = [](void*) { return 0; };
    t.compute = [](void* m, std::int32_t operation, const void* call, std::int64_t bytes) {
        bool isKnown = false;
        pipewright::kernels::visit(static_cast<pipewright::kernels::Operation>(operation), call,
                                   [&]<typename Call>(const Call& known, const char* name) {
                                       isKnown = sizeof known == n(bytes);
                                       pushKernel(stream(m), name, [kept = Kept<Call>{known}] { kept.run(); });
                                   });
        return isKnown ? 0 : 1;
    };
}

} // namespace pretended
