// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/design/passparts.h"

#include <cmath>

namespace pipewright {

namespace {

Nanoseconds nanoseconds(double seconds)
{
    return static_cast<Nanoseconds>(std::llround(seconds * 1e9));
}

PassParts inNanoseconds(const sharding::PartSeconds& seconds)
{
    PassParts parts;
    for (const std::vector<double>& part : seconds.parts) {
        std::vector<Nanoseconds>& times = parts.parts.emplace_back();
        for (const double member : part)
            times.push_back(nanoseconds(member));
    }
    for (const double collective : seconds.collectives)
        parts.collectives.push_back(nanoseconds(collective));
    parts.kinds = seconds.kinds;
    return parts;
}

/// Joins two passes: the last part of the first and the first part of the second become one.
PassParts behind(const PassParts& first, const PassParts& second)
{
    PassParts both = first;
    for (std::size_t m = 0; m < both.parts.back().size(); ++m)
        both.parts.back()[m] += second.parts.front()[m];
    both.parts.insert(both.parts.end(), second.parts.begin() + 1, second.parts.end());
    both.collectives.insert(both.collectives.end(), second.collectives.begin(), second.collectives.end());
    both.kinds.insert(both.kinds.end(), second.kinds.begin(), second.kinds.end());
    return both;
}

} // namespace

std::array<PassParts, opCount> plannedPasses(const sharding::SharedStage& stage)
{
    const sharding::MemberPasses passes = memberPasses(stage.plan.program, stage.graph);
    const auto times = [&stage](const sharding::MemberPass& pass) {
        return inNanoseconds(partSeconds(pass, stage.plan.program, stage.machine, stage.plan.ratios));
    };
    std::array<PassParts, opCount> planned;
    planned[indexOf(Op::F)] = planned[indexOf(Op::R)] = times(passes.forward);
    planned[indexOf(Op::I)] = times(passes.inputGrad);
    planned[indexOf(Op::W)] = times(passes.weightGrad);
    planned[indexOf(Op::B)] = behind(planned[indexOf(Op::I)], planned[indexOf(Op::W)]);
    return planned;
}

} // namespace pipewright
