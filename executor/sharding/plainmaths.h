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
};

std::span<const NodeMaths> plainMaths();

} // namespace pipewright::sharding
