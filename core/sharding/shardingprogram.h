// SPDX-License-Identifier: GPL-3.0-or-later
// A synthesised program: the instructions that all devices run together, forward, each a triple of what must
// hold, what is done, and what holds after. The backward pass is its mirror image. Costs are kept as
// functions of the ratios, so that a program can be costed again for other ones.
#pragma once

#include "core/sharding/theory.h"

#include <string>
#include <vector>

namespace pipewright::sharding {

struct Property {
    int tensor = 0;
    Relation relation;
    auto operator<=>(const Property&) const = default;
};

struct ShardingInstruction {
    int tensor = 0; ///< that is computed, loaded or communicated
    int rule = -1;  ///< index into rules(), of a computation; otherwise -1 and `action` says what
    Action action = Action::Load;
    std::vector<Property> before; ///< of a computation: one per operand
    std::vector<Need> kinds;      ///< how a computation treats each operand
    Property after;
    bool unreduced = false; ///< a Load whose gradient is not reduced: its consumer makes it whole
    std::vector<Charge> charges;
    double heldWhole = 0,
           heldSplit = 0; ///< bytes kept until the backward pass: on every device; shared out by the ratios

    bool computes() const { return rule >= 0; }
};

struct ShardingProgram {
    std::vector<ShardingInstruction> instructions;
};

/// Seconds of one training step: the sum over instructions of the slowest device.
double costOf(const ShardingProgram& program, const Machine& machine, const Ratios& ratios);

struct CostParts {
    double compute = 0, communication = 0;             ///< seconds, both passes
    double forward = 0, inputGrad = 0, weightGrad = 0; ///< the same sum by pass
};
CostParts costParts(const ShardingProgram& program, const Machine& machine, const Ratios& ratios);

/// Bytes per device: state of the parameters that it stores, and every tensor it keeps for the backward pass.
std::vector<double> memoryOf(const ShardingProgram& program, const Ratios& ratios);
/// Devices of which the memory is smaller than that. Room for rounding errors of a billionth is left.
std::vector<int> devicesOverfull(const std::vector<double>& bytes, const Machine& machine);

/// "y = linear(x, W)", "y: all_gather(1), grouped", "W: load".
std::string actionText(const ShardingInstruction& instruction, const TensorGraph& graph);
/// "x Identity, W Gather(0)"
std::string propertyText(const std::vector<Property>& properties, const TensorGraph& graph);

} // namespace pipewright::sharding
