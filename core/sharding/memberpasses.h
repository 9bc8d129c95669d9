// SPDX-License-Identifier: GPL-3.0-or-later
// The steps of a group's members for a stage's program, pass by pass: the forward instructions in their order, and the
// input and weight gradients as their mirror images (arXiv 2401.05965: relations are dual between the passes). Some
// steps are collectives of all members; the steps between two collectives form a part that each member runs on its own.
// The predictor takes times from this list, the compiler takes parts, and the executor runs it.
#pragma once

#include "core/sharding/shardingprogram.h"

#include <vector>

namespace pipewright::sharding {

enum class MemberStepKind : std::uint8_t {
    Load,      ///< forward: a parameter, the data, or the received activation, as it is stored
    Compute,   ///< forward: a node
    Slice,     ///< forward: a piece of what is whole
    Exchange,  ///< forward, collective: another relation of a tensor
    SumVisits, ///< collective: the copies of tokens that visit each expert, of the members that share the tokens of a
               ///< router with a load-balancing term
    InputGrad, ///< of a node's operands that are no parameters; the result's gradient is kept for WeightGrad
    SliceGrad, ///< a piece's gradient in its place
    ExchangeGrad,   ///< collective: the dual of Exchange
    ReceivedSum,    ///< collective: sums the gradient for the stage before, when every member received the whole
                    ///< activation
    WeightGrad,     ///< of a node's parameters
    GatherFactors,  ///< collective: the rows of a node's input and of its result's gradient, of all members
    FactorGrad,     ///< a node's whole weight gradient from those
    ParameterSum,   ///< collective: the gradient of a parameter that every member has whole
    StoreParameter, ///< a parameter's gradient of this microbatch is added to its sum
};

/// Whether all members do it together. A group of one has no collectives.
constexpr bool isCollective(MemberStepKind kind)
{
    switch (kind) {
    case MemberStepKind::Exchange:
    case MemberStepKind::SumVisits:
    case MemberStepKind::ExchangeGrad:
    case MemberStepKind::ReceivedSum:
    case MemberStepKind::GatherFactors:
    case MemberStepKind::ParameterSum: return true;
    case MemberStepKind::Load:
    case MemberStepKind::Compute:
    case MemberStepKind::Slice:
    case MemberStepKind::InputGrad:
    case MemberStepKind::SliceGrad:
    case MemberStepKind::WeightGrad:
    case MemberStepKind::FactorGrad:
    case MemberStepKind::StoreParameter: return false;
    }
    return false;
}

struct MemberStep {
    MemberStepKind kind = MemberStepKind::Load;
    int instruction = 0; ///< of the program
    bool operator==(const MemberStep&) const = default;
};

using MemberPass = std::vector<MemberStep>;

struct MemberPasses {
    MemberPass forward, inputGrad, weightGrad;
};

/// O(instructions).
MemberPasses memberPasses(const ShardingProgram& program, const TensorGraph& graph);

/// The collectives that divide a pass: collective i is step `result[i]` and follows part i; one more part follows the
/// last collective. `members` 1: one part.
std::vector<std::size_t> collectivesOf(const MemberPass& pass, int members);

/// Seconds of a pass at the ratios: of part i on each member, and of each collective. The sum over collectives and over
/// the slowest member of every charge is the pass's share of costOf().
struct PartSeconds {
    std::vector<std::vector<double>> parts;
    std::vector<double> collectives;
    std::vector<Collective> kinds; ///< of the collectives
};
PartSeconds partSeconds(const MemberPass& pass, const ShardingProgram& program, const Machine& machine,
                        const Ratios& ratios);

} // namespace pipewright::sharding
