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
            if (tensor.name == "router.choice")
                count += tensor.elements;
    return count;
}

void FollowingChoices::issue(kernels::Operation operation, const void* call, std::size_t, kernels::StoredOperands) const
{
    kernels::visit(operation, call, [this](const auto& known, const char*) {
        using Call = std::decay_t<decltype(known)>;
        if constexpr (std::is_same_v<Call, kernels::RouteTokens>)
            route(known);
        else
            kernels::hostOperations().run(known);
    });
}

std::vector<std::int32_t> FollowingChoices::judged(const kernels::Router& router, std::span<const float> correction,
                                                   std::span<const float> probabilities,
                                                   std::span<const std::int32_t> chosen) const
{
    if (m_left.size() < chosen.size())
        throw Error(m_where, "the run kept fewer choices of experts than its forward made",
                    "this is a fault of the program: please report it with the design");
    std::vector<std::int32_t> followed(m_left.begin(), m_left.begin() + std::ptrdiff_t(chosen.size()));
    m_left = m_left.subspan(chosen.size());
    const auto each = std::size_t(router.perToken), experts = std::size_t(router.experts);
    std::int64_t otherwise = 0;
    for (std::size_t token = 0; token * each < chosen.size(); ++token) {
        ++m_check.tokens;
        const std::span<std::int32_t> theirs = std::span(followed).subspan(token * each, each);
        const std::span<const std::int32_t> own = chosen.subspan(token * each, each);
        if (std::is_permutation(own.begin(), own.end(), theirs.begin()))
            continue;
        ++otherwise;
        const std::span<const float> p = probabilities.subspan(token * experts, experts);
        const float most = *std::max_element(p.begin(), p.end());
        if (!kernels::couldChoose(router, correction, p, theirs, float(m_tolerance) * most)
            && ++m_check.unexplained == 1)
            m_check.first = fmt::format("{}, token {}", m_where, token);
        // An expert number out of range must not be used as an index into memory.
        if (std::any_of(theirs.begin(), theirs.end(),
                        [&router](std::int32_t expert) { return expert < 0 || expert >= router.experts; }))
            std::copy(own.begin(), own.end(), theirs.begin());
    }
    m_check.otherwise += otherwise;
    return otherwise > 0 ? followed : std::vector<std::int32_t>();
}

void FollowingChoices::route(const kernels::RouteTokens& call) const
{
    const std::vector<float> logits(call.logitsToProbabilities.begin(), call.logitsToProbabilities.end());
    kernels::hostOperations().run(call);
    const std::vector<std::int32_t> given =
        judged(call.router, call.correction, call.logitsToProbabilities, chosenBy(call));
    if (given.empty())
        return;
    std::copy(logits.begin(), logits.end(), call.logitsToProbabilities.begin());
    kernels::RouteTokens followed = call;
    followed.given = given;
    kernels::hostOperations().run(followed);
}

FollowingChoices FollowedRun::of(int stage, int microbatch, int microbatches)
{
    return {choices[std::size_t(stage) * std::size_t(microbatches) + std::size_t(microbatch)], tolerance,
            fmt::format("stage {}, microbatch {}", stage, microbatch), check};
}

} // namespace pipewright
