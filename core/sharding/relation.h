// SPDX-License-Identifier: GPL-3.0-or-later
// How the devices of a stage may hold one tensor of the single-device model. A property is a tensor with a relation;
// the instructions of a synthesised program are triples of properties before, an action, and properties after (arXiv
// 2401.05965). The relations are dual between the passes: the gradient of a value that is whole on every device is a
// sum over devices, and the reverse; the gradient of a piece is a piece.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

namespace pipewright::sharding {

enum class RelationKind : std::uint8_t {
    Identity, ///< every device holds the whole tensor
    Gather,   ///< device d holds piece d along `dim`; the pieces put together are the tensor
    Reduce,   ///< the element-wise sum over devices is the tensor
};

struct Relation {
    RelationKind kind = RelationKind::Identity;
    int dim = 0;     ///< of Gather
    int segment = 0; ///< of Gather: whose ratios cut it
    auto operator<=>(const Relation&) const = default;
};

inline constexpr Relation identityRelation{RelationKind::Identity, 0, 0};
inline constexpr Relation reduceRelation{RelationKind::Reduce, 0, 0};
inline constexpr Relation gatherRelation(int dim, int segment = 0)
{
    return {RelationKind::Gather, dim, segment};
}

/// "Identity", "Gather(1)", "Reduce"; another segment than the first is named: "Gather(1)@2".
std::string toString(Relation relation);

/// Share of every device, per segment; each row sums to 1.
using Ratios = std::vector<std::vector<double>>;

} // namespace pipewright::sharding
