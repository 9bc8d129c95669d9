// SPDX-License-Identifier: GPL-3.0-or-later
// Operations that consist of small tensor operations, and the entry type of the tables of operations' maths.
#pragma once

#include "executor/sharding/nodemaths.h"

#include <span>
#include <string_view>

namespace pipewright::sharding {

struct NodeMaths {
    std::string_view operation;
    Tensor (*forward)(MemberDevice&, const Node&, const Operands&, const LocalPart&);
    std::vector<Tensor> (*backward)(MemberDevice&, const Node&, const Operands&, const Tensor& result,
                                    const Tensor& grad, const LocalPart&);
    std::size_t mostOperands = 0;
    /// The attributes that it heeds, or that change nothing of it, separated by blanks. A node with another, or with
    /// more operands, is refused.
    std::string_view attributes = {};
    bool knows(std::string_view attribute) const;
};

std::span<const NodeMaths> plainMaths();

} // namespace pipewright::sharding
