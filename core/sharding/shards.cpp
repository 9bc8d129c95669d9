// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/sharding/shards.h"

#include <cmath>
#include <numeric>

namespace pipewright::sharding {

std::vector<std::int64_t> shardLengths(std::int64_t length, std::span<const double> shares)
{
    if (length == 1)
        return std::vector<std::int64_t>(shares.size(), 1);
    std::vector<std::int64_t> lengths;
    for (const double share : shares)
        lengths.push_back(static_cast<std::int64_t>(std::floor(share * static_cast<double>(length) + 1e-9)));
    for (std::int64_t left = length - std::accumulate(lengths.begin(), lengths.end(), std::int64_t(0)); left > 0;
         --left) {
        std::size_t neediest = 0;
        double most = -1e300;
        for (std::size_t d = 0; d < lengths.size(); ++d) {
            const double deficit = shares[d] * static_cast<double>(length) - static_cast<double>(lengths[d]);
            if (deficit >= most - 1e-9) { // a tie goes to the last
                most = std::max(most, deficit);
                neediest = d;
            }
        }
        ++lengths[neediest];
    }
    return lengths;
}

std::vector<std::int64_t> shardLengths(const Theory& theory, int tensor, Relation relation)
{
    const std::int64_t length = theory.graph().node(tensor).shape[relation.dim];
    const std::int64_t parts = theory.parts(tensor, relation.dim);
    std::vector<std::int64_t> lengths = shardLengths(parts, theory.ratios()[relation.segment]);
    for (std::int64_t& one : lengths)
        one *= length / parts;
    return lengths;
}

std::vector<double> sharesOf(std::span<const std::int64_t> lengths)
{
    const auto sum = static_cast<double>(std::accumulate(lengths.begin(), lengths.end(), std::int64_t(0)));
    std::vector<double> shares;
    for (const std::int64_t length : lengths)
        shares.push_back(static_cast<double>(length) / sum);
    return shares;
}

} // namespace pipewright::sharding
