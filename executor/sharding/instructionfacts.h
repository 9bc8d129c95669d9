// SPDX-License-Identifier: GPL-3.0-or-later
// What the steps of a member ask about an instruction, forwards and backwards.
#pragma once

#include "core/sharding/shardingprogram.h"
#include "executor/sharding/nodemaths.h"

#include <algorithm>
#include <vector>

namespace pipewright::sharding {

/// Whether the program chose to move pieces of exact sizes at this site.
inline bool movesExactPieces(const ShardingInstruction& instruction, bool forwards)
{
    return std::any_of(instruction.charges.begin(), instruction.charges.end(), [forwards](const Charge& charge) {
        return charge.communicates && (charge.pass == Pass::Forward) == forwards
               && (charge.collective == Collective::GroupedBroadcast || charge.collective == Collective::GroupedReduce);
    });
}

inline bool countsOnce(const ShardingInstruction& instruction, std::size_t operand)
{
    return sharingRules()[static_cast<std::size_t>(instruction.rule)].operands[operand].need == Need::Once;
}

inline Operands pointersTo(const std::vector<Tensor>& tensors)
{
    Operands pointers;
    for (const Tensor& tensor : tensors)
        pointers.push_back(&tensor);
    return pointers;
}

} // namespace pipewright::sharding
