// SPDX-License-Identifier: GPL-3.0-or-later
// A synthesised program: the forward instructions that all devices run together, each a triple of preconditions, action
// and postconditions. The backward pass mirrors it. Costs are functions of the ratios, so a program can be costed again
// for other ratios.
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
    int tensor = 0; ///< the tensor that is computed, loaded or communicated
    int rule = -1;  ///< index into sharingRules(), of a computation; otherwise -1 and `action` says what
    Action action = Action::Load;
    std::vector<Property> before; ///< of a computation: one per operand
    std::vector<Need> kinds;      ///< how a computation treats each operand
    Property after;
    bool unreduced = false; ///< a Load without gradient reduction: the consumer makes the gradient whole
    std::vector<Charge> charges;
    double heldWhole = 0,
           heldSplit = 0; ///< bytes kept until the backward pass: on every device; divided by the ratios

    bool computes() const { return rule >= 0; }
};

/// Computes a node by one of its triples in the theory; `before` is in the order of the node's operands.
ShardingInstruction computation(const Theory& theory, int node, const Triple& triple, std::vector<Property> before);

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

/// Bytes per device: the state of its stored parameters, and all tensors kept for the backward pass.
std::vector<double> memoryOf(const ShardingProgram& program, const Ratios& ratios);
/// Devices with less memory than `bytes`, with a relative tolerance of a billionth.
std::vector<int> devicesOverfull(const std::vector<double>& bytes, const Machine& machine);

/// "y = linear(x, W)", "y: all_gather(1), grouped", "W: load".
std::string actionText(const ShardingInstruction& instruction, const TensorGraph& graph);
/// "x Identity, W Gather(0)"
std::string propertyText(const std::vector<Property>& properties, const TensorGraph& graph);

} // namespace pipewright::sharding
