// SPDX-License-Identifier: GPL-3.0-or-later
// O(tokens · experts) on the host beside the routing itself.
#include "executor/training/expertchoices.h"

#include "core/base/diagnostic.h"

#include <fmt/format.h>

#include <algorithm>

namespace pipewright {

std::int64_t choicesOf(std::span<const Layer> layers)
{
    std::int64_t count = 0;
    for (const Layer& layer : layers)
        for (const SavedTensor& tensor : layer.saved)
            if (tensor.name == "experts.choice")
                count += tensor.elements;
    return count;
}

void FollowingChoices::issue(kernels::Operation operation, const void* call, std::size_t, kernels::StoredOperands) const
{
    kernels::visit(operation, call, [this](const auto& known, const char*) {
        if constexpr (std::is_same_v<std::decay_t<decltype(known)>, kernels::RouteTokens>)
            route(known);
        else
            kernels::hostOperations().run(known);
    });
}

void FollowingChoices::route(const kernels::RouteTokens& call) const
{
    if (m_left.size() < call.choice.size())
        throw Error(m_where, "the run kept fewer choices of experts than its forward made",
                    "this is a fault of the program: please report it with the design");
    const std::span<const std::int32_t> kept = m_left.first(call.choice.size());
    m_left = m_left.subspan(kept.size());
    const std::vector<float> logits(call.logitsToProbabilities.begin(), call.logitsToProbabilities.end());
    kernels::hostOperations().run(call);
    const auto each = std::size_t(call.router.perToken), experts = std::size_t(call.router.experts);
    std::int64_t otherwise = 0;
    for (std::size_t token = 0; token * each < kept.size(); ++token) {
        ++m_check.tokens;
        const auto theirs = kept.subspan(token * each, each);
        const std::span<const std::int32_t> own = call.choice.subspan(token * each, each);
        if (std::is_permutation(own.begin(), own.end(), theirs.begin()))
            continue;
        ++otherwise;
        const std::span<const float> p = call.logitsToProbabilities.subspan(token * experts, experts);
        const float most = *std::max_element(p.begin(), p.end());
        if (!kernels::couldChoose(call.router, call.correction, p, theirs, float(m_tolerance) * most)
            && ++m_check.unexplained == 1)
            m_check.first = fmt::format("{}, token {}", m_where, token);
    }
    m_check.otherwise += otherwise;
    if (otherwise == 0)
        return;
    std::copy(logits.begin(), logits.end(), call.logitsToProbabilities.begin());
    kernels::RouteTokens followed = call;
    followed.given = kept;
    kernels::hostOperations().run(followed);
}

FollowingChoices FollowedRun::of(int stage, int microbatch, int microbatches)
{
    return {choices[std::size_t(stage) * std::size_t(microbatches) + std::size_t(microbatch)], tolerance,
            fmt::format("stage {}, microbatch {}", stage, microbatch), check};
}

} // namespace pipewright
