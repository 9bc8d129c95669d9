// SPDX-License-Identifier: GPL-3.0-or-later
// Finds the period of a schedule: takes the block in the middle of the first device's order, tries the distances to
// earlier blocks of its stage and operation as the period, and accepts the first under which all devices repeat
// themselves; then extends the repeating part in both directions. O(blocks), at most 4 comparisons per block.
#include "core/schedule/steadystate.h"

#include "core/base/takeout.h"

#include <algorithm>
#include <cstdint>

namespace pipewright {

namespace {

constexpr std::int64_t worthwhile = 1 << 15; ///< blocks

/// Which blocks are the first of an overlapped pair.
class OverlapMarks {
public:
    explicit OverlapMarks(const Schedule& schedule) : m_schedule(schedule)
    {
        if (schedule.overlaps.empty())
            return;
        m_marks.resize(std::size_t{passCount} * static_cast<std::size_t>(schedule.stages())
                       * static_cast<std::size_t>(schedule.microbatches));
        for (std::size_t i = 0; i < schedule.overlaps.size(); ++i)
            if (const Block& first = schedule.overlaps[i].first; isKnown(first))
                m_marks[indexOf(first)] = static_cast<std::uint32_t>(i + 1);
    }

    bool any() const { return !m_marks.empty(); }
    bool operator()(const Block& block) const { return any() && isKnown(block) && m_marks[indexOf(block)] != 0; }

    /// Are the two blocks of every pair adjacent on a device?
    bool allStandTogether() const
    {
        if (!any())
            return true;
        std::size_t together = 0;
        for (const auto& order : m_schedule.order)
            for (std::size_t i = 0; i + 1 < order.size(); ++i)
                if (isKnown(order[i]))
                    if (const std::uint32_t mark = m_marks[indexOf(order[i])]; mark != 0)
                        together += m_schedule.overlaps[mark - 1].second == order[i + 1];
        return together == m_schedule.overlaps.size();
    }

private:
    bool isKnown(const Block& b) const
    {
        return isPass(b.op) && b.stage >= 0 && b.stage < m_schedule.stages() && b.microbatch >= 0
               && b.microbatch < m_schedule.microbatches;
    }
    std::size_t indexOf(const Block& b) const
    {
        return (pipewright::indexOf(b.op) * static_cast<std::size_t>(m_schedule.stages())
                + static_cast<std::size_t>(b.stage))
                   * static_cast<std::size_t>(m_schedule.microbatches)
               + static_cast<std::size_t>(b.microbatch);
    }

    const Schedule& m_schedule;
    std::vector<std::uint32_t> m_marks; ///< [pass][stage][microbatch]: the number of the pair that it begins, from 1
};

bool mayRepeat(const Schedule& s)
{
    const std::int64_t blocks = s.blocks();
    PipelineShape repeats = s;
    takeOut(repeats.microbatches, repeats.deviceOfStage, repeats.weightPolicy, repeats.recompute, repeats.offload,
            repeats.zero); // with replicas, which are refused
    repeats.sequencePieces = PipelineShape{}.sequencePieces;
    return blocks >= worthwhile && blocks <= maxBlocks && s.microbatches >= 1 && s.microbatches <= maxMicrobatches
           && std::int64_t{s.stages()} * s.microbatches <= maxBlocks && repeats == PipelineShape{} && s.pins.empty()
           && s.partOrders.empty() && s.transferOrder.empty() && s.gathers.empty()
           && std::none_of(s.order.begin(), s.order.end(), [](const auto& order) { return order.empty(); });
}

/// Finds the steady state of a schedule for which mayRepeat() holds.
class Finder {
public:
    explicit Finder(const Schedule& schedule) : m_schedule(schedule), m_overlapped(schedule) {}

    std::optional<SteadyState> find()
    {
        if (!m_overlapped.allStandTogether() || !findPeriod())
            return std::nullopt;
        findParts();
        return m_steady;
    }

private:
    using Order = std::vector<Block>;

    static std::int64_t microbatchesBetween(const Block& earlier, const Block& later)
    {
        return std::int64_t{later.microbatch} - earlier.microbatch;
    }

    /// Is block i the block `period` positions before it, shifted by one repetition's microbatches?
    bool repeats(const Order& order, std::size_t i, std::size_t period) const
    {
        const Block &later = order[i], &earlier = order[i - period];
        return microbatchesBetween(earlier, later) == m_steady.microbatches && later.stage == earlier.stage
               && later.op == earlier.op && isPass(later.op) && later.replica == earlier.replica
               && (!m_overlapped.any() || m_overlapped(later) == m_overlapped(earlier));
    }

    /// The smallest period, in microbatches, under which all orders repeat around their middles. Candidates are the
    /// distances between the middle block of the first order and earlier blocks of its operation and stage.
    bool findPeriod()
    {
        constexpr std::size_t fewest = 8; // repetitions
        const Order& first = m_schedule.order.front();
        const Block& middle = first[first.size() / 2];
        const auto most = 4 * m_schedule.blocks(); // a limit for orders that almost repeat
        for (std::size_t period = 1; period <= first.size() / fewest && m_looked < most; ++period) {
            const Block& earlier = first[first.size() / 2 - period];
            const std::int64_t between = microbatchesBetween(earlier, middle);
            if (earlier.op != middle.op || earlier.stage != middle.stage || between < 1
                || between > m_schedule.microbatches)
                continue;
            m_steady.microbatches = static_cast<int>(between);
            if (allRepeatAmid())
                return true;
        }
        return false;
    }

    bool allRepeatAmid()
    {
        m_steady.parts.clear();
        for (const Order& order : m_schedule.order) {
            const std::size_t middle = order.size() / 2, period = periodAmid(order);
            if (period == 0 || middle + period > order.size())
                return false;
            for (std::size_t i = middle; i < middle + period; ++i, ++m_looked)
                if (!repeats(order, i, period))
                    return false;
            m_steady.parts.push_back({middle, middle, period});
        }
        return true;
    }

    /// The distance from the middle block to its counterpart one repetition earlier; 0: there is none nearby.
    std::size_t periodAmid(const Order& order)
    {
        const std::size_t middle = order.size() / 2;
        const std::size_t ofAMicrobatch =
            order.size() / static_cast<std::size_t>(m_schedule.microbatches) + 1; // upper bound
        const std::size_t farthest = std::min(ofAMicrobatch * static_cast<std::size_t>(m_steady.microbatches), middle);
        for (std::size_t period = 1; period <= farthest; ++period, ++m_looked)
            if (repeats(order, middle, period))
                return period;
        return 0;
    }

    /// Extends every part from the middle in both directions while the order repeats.
    void findParts()
    {
        m_steady.repetitions = m_schedule.microbatches;
        for (std::size_t d = 0; d < m_steady.parts.size(); ++d) {
            const Order& order = m_schedule.order[d];
            SteadyState::Part& part = m_steady.parts[d];
            while (part.begin > part.period && repeats(order, part.begin - 1, part.period))
                --part.begin;
            part.begin -= part.period;
            while (part.end < order.size() && repeats(order, part.end, part.period))
                ++part.end;
            m_steady.repetitions =
                std::min(m_steady.repetitions, static_cast<int>((part.end - part.begin) / part.period));
            m_steady.inFlight = std::max(m_steady.inFlight, inFlight(order, part));
        }
    }

    /// The spread of microbatches within one period, in repetitions, rounded up.
    int inFlight(const Order& order, const SteadyState::Part& part) const
    {
        const auto first = order.begin() + static_cast<std::ptrdiff_t>(part.begin);
        const auto [oldest, newest] =
            std::minmax_element(first, first + static_cast<std::ptrdiff_t>(part.period),
                                [](const Block& a, const Block& b) { return a.microbatch < b.microbatch; });
        return (newest->microbatch - oldest->microbatch) / m_steady.microbatches + 1;
    }

    const Schedule& m_schedule;
    OverlapMarks m_overlapped;
    SteadyState m_steady;
    std::int64_t m_looked = 0; ///< blocks compared so far
};

} // namespace

std::optional<SteadyState> findSteadyState(const Schedule& schedule)
{
    if (!mayRepeat(schedule))
        return std::nullopt;
    return Finder(schedule).find();
}

SteadyState takenTogether(SteadyState steady, int repetitions)
{
    for (SteadyState::Part& part : steady.parts)
        part.period *= static_cast<std::size_t>(repetitions);
    steady.microbatches *= repetitions;
    steady.repetitions /= repetitions;
    steady.inFlight = (steady.inFlight + repetitions - 1) / repetitions;
    return steady;
}

ShortenedSchedule shorten(const Schedule& schedule, const SteadyState& steady, int repetitions)
{
    ShortenedSchedule shortened;
    shortened.steady = steady;
    shortened.steady.repetitions = std::clamp(repetitions, 1, steady.repetitions);
    shortened.leftOut = steady.repetitions - shortened.steady.repetitions;
    const int fewer = shortened.leftOut * steady.microbatches;
    Schedule& result = shortened.schedule;
    result.shape() = schedule;
    result.microbatches -= fewer;
    result.family = schedule.family;
    result.backward = schedule.backward;
    result.firstStageMaySplit = schedule.firstStageMaySplit;
    const OverlapMarks overlapped(schedule);
    for (std::size_t d = 0; d < schedule.order.size(); ++d) {
        const std::vector<Block>& whole = schedule.order[d];
        SteadyState::Part& part = shortened.steady.parts[d];
        const std::size_t leftOut = part.period * static_cast<std::size_t>(shortened.leftOut);
        part.end -= leftOut;
        std::vector<Block>& order = result.order.emplace_back();
        order.reserve(whole.size() - leftOut);
        order.assign(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(part.end));
        for (std::size_t i = part.end + leftOut; i < whole.size(); ++i) {
            order.push_back(whole[i]);
            order.back().microbatch -= fewer;
        }
        for (std::size_t i = 0; overlapped.any() && i + 1 < order.size(); ++i)
            if (overlapped(whole[i < part.end ? i : i + leftOut]))
                result.overlaps.push_back({order[i], order[i + 1]});
    }
    std::sort(result.overlaps.begin(), result.overlaps.end());
    return shortened;
}

} // namespace pipewright
