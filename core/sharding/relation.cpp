// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/sharding/relation.h"

#include <fmt/format.h>

namespace pipewright::sharding {

std::string toString(Relation relation)
{
    switch (relation.kind) {
    case RelationKind::Identity: return "Identity";
    case RelationKind::Reduce: return "Reduce";
    case RelationKind::Gather: break;
    }
    return relation.segment == 0 ? fmt::format("Gather({})", relation.dim)
                                 : fmt::format("Gather({})@{}", relation.dim, relation.segment);
}

} // namespace pipewright::sharding
