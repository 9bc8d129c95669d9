// SPDX-License-Identifier: GPL-3.0-or-later
// 1F1B without a flush, with U blocks inserted after every `accumulate` backwards. O(blocks).
#include "core/families/asynchronous.h"

#include "core/schedule/weightrules.h"

#include <fmt/format.h>

namespace pipewright {

WeightPolicy policyOf(const FamilyParameters& p, WeightRule rule)
{
    WeightPolicy policy = p.weights;
    policy.rule = rule;
    policy.optimizer = p.optimizer.value_or(usualOptimizer(rule));
    return policy;
}

Schedule makeAsynchronous(const FamilyParameters& p, WeightRule rule, int accumulate)
{
    Schedule schedule;
    schedule.weightPolicy = policyOf(p, rule);
    schedule.deviceOfStage = linearPlacement(p.devices);
    for (int device = 0; device < p.devices; ++device) {
        std::vector<Block>& lane = schedule.order.emplace_back();
        for (const Block& block : alternate(device, p.microbatches, p.devices - device)) {
            lane.push_back(block);
            if (block.op == Op::B && (block.microbatch + 1) % accumulate == 0)
                lane.push_back({Op::U, device, block.microbatch});
        }
    }
    return schedule;
}

Diagnostics checkAsynchronous(const FamilyParameters& p, WeightRule rule, int accumulate)
{
    const WeightPolicy policy = policyOf(p, rule);
    Diagnostics diagnostics = checkPolicy(policy);
    if (accumulate < 1)
        diagnostics.push_back(
            {Severity::Error, "--accumulate", fmt::format("{} microbatches per update", accumulate), "use 1 or more"});
    else if (p.microbatches % accumulate != 0)
        diagnostics.push_back({Severity::Error, "--microbatches",
                               fmt::format("{} microbatches in updates of {}", p.microbatches, accumulate),
                               "every update takes as many: use a multiple"});
    if (hasErrors(diagnostics))
        return diagnostics;
    if (const auto refusal = makeRule(policy)->refuses(p.devices, accumulate))
        diagnostics.push_back(*refusal);
    return diagnostics;
}

Family asynchronous()
{
    return {.name = "async-1f1b",
            .title = "asynchronous 1F1B",
            .description = "1F1B that updates after every backward, whatever weights the forward read.",
            .backward = BackwardStyle::Full,
            .check =
                [](const FamilyParameters& p) {
                    return checkAsynchronous(p, WeightRule::Vanilla, p.accumulate.value_or(1));
                },
            .make =
                [](const FamilyParameters& p) {
                    return makeAsynchronous(p, WeightRule::Vanilla, p.accumulate.value_or(1));
                },
            .accumulates = true,
            .updates = true};
}

} // namespace pipewright
