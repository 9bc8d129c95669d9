// SPDX-License-Identifier: GPL-3.0-or-later
// Operations that need no kernel of their own, as plain loops; and the form of a table of operations' maths.
#pragma once

#include "executor/spmd/nodemaths.h"

#include <span>
#include <string_view>

namespace pipewright::spmd {

struct NodeMaths {
    std::string_view operation;
    HostTensor (*forward)(const Node&, const Operands&, const LocalPart&);
    std::vector<HostTensor> (*backward)(const Node&, const Operands&, const HostTensor& result, const HostTensor& grad,
                                        const LocalPart&);
};

std::span<const NodeMaths> plainMaths();

} // namespace pipewright::spmd
