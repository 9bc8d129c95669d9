// SPDX-License-Identifier: GPL-3.0-or-later
// The length of overlapped pairs. When one of the two blocks has parts (StageCosts::parts), the length is computed for
// the order that the schedule states, else for the shortest order. When neither has parts, it is assumed to be
// Costs::overlapFactor times the sum of their times. Pairs with the same operations, stages and microbatch scales are
// computed once. O(log kinds of pairs) per pair, and partorder.h for each kind.
#pragma once

#include "core/base/diagnostic.h"
#include "core/design/costs.h"
#include "core/program/partorder.h"
#include "core/program/program.h"
#include "core/schedule/schedule.h"

#include <map>
#include <tuple>

namespace pipewright {

class PairTimes {
public:
    /// Keeps a reference to `costs`.
    explicit PairTimes(const Costs& costs);

    struct Plan {
        std::array<std::vector<BlockPart>, 2> parts; ///< of the two blocks, one at least each; empty: no parts
        PartSequence order;
        Nanoseconds length = 0;
        Nanoseconds shortest = 0; ///< of the shortest order found: less than `length` where another is stated
        Nanoseconds least = 0;    ///< no order is shorter: less than `shortest` where that is not proven
        bool isComputed() const { return !parts[0].empty(); }
    };
    /// `stated`: null for the shortest order.
    Plan plan(const Block& first, const Block& second, const PartSequence* stated = nullptr);
    Plan plan(const Program& program, const Program::Overlap& pair);
    Nanoseconds length(const Block& first, const Block& second, const PartSequence* stated = nullptr);
    Nanoseconds length(const Program& program, const Program::Overlap& pair);
    /// With the planned order but these block times, for simulated noise.
    Nanoseconds length(const Program& program, const Program::Overlap& pair, Nanoseconds first, Nanoseconds second);

    bool isComputed(const Block& first, const Block& second) const;
    const ShortestParts& shortest(const Block& first, const Block& second); ///< only when isComputed()

private:
    std::vector<BlockPart> partsOf(const Block& block, Nanoseconds time) const;
    Nanoseconds assumed(Nanoseconds first, Nanoseconds second) const;
    Nanoseconds timeOf(const Block& block) const { return m_costs.duration(block.op, block.stage, block.microbatch); }

    const Costs& m_costs;
    bool m_hasParts;
    std::size_t m_effort; ///< for each kind, so that many kinds of long lists do not take long
    using Kind = std::tuple<Op, std::int32_t, Nanoseconds, Op, std::int32_t, Nanoseconds>;
    std::map<Kind, ShortestParts> m_shortest;
};

/// Checks parts (their sum must be their block's time, and their operation must have a time), and stated orders (the
/// pair must exist and have as many parts).
Diagnostics checkParts(const Schedule& schedule, const Costs& costs);

/// "160 overlapped pairs: length computed from their parts", and what is assumed or not proven; empty without pairs.
std::string pairLengthsText(const Schedule& schedule, const Costs& costs);

} // namespace pipewright
