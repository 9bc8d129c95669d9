// SPDX-License-Identifier: GPL-3.0-or-later
// The adaptive V search (arXiv 2405.15362, section 3 and appendix A): building blocks in a V with every collision-free
// pair of distances between neighbouring devices, each unrolled and timed with the given times. The heuristic of zb-v
// competes within the same limit. A live chunk counts until its W. The best for k chunks and equal times has a bubble
// of max(0, 6p - 1 - 3k) passes.
#include "core/families/orders.h"
#include "core/families/vlanes.h"
#include "core/families/zbvheuristic.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace pipewright {

namespace {

constexpr int interval = 6;

/// One microbatch: when each pass starts on each device.
using Stamp = std::vector<std::array<int, vPasses>>;

/// Cells modulo 6 of a device's passes.
using Cells = std::array<int, vPasses>;

int modulo(int value)
{
    return ((value % interval) + interval) % interval;
}

/// Gives each of the two W the first free cell from its gradient's cell on.
void placeWeights(Cells& cells)
{
    unsigned taken = 0;
    for (int pass = forwardFirst; pass <= gradientBack; ++pass)
        taken |= 1u << cells[pass];
    for (const VPass weight : {weightFirst, weightBack}) {
        int cell = cells[weight - 2];
        while (taken & (1u << cell))
            cell = modulo(cell + 1);
        taken |= 1u << cell;
        cells[weight] = cell;
    }
}

/// From one device to the next the legs down the V move later by the distance, the legs up the V earlier by one cell.
/// Up to device `turn` the first distance applies, then the second. False on a collision.
bool fillCells(std::vector<Cells>& cells, int firstDistance, int secondDistance, int turn)
{
    for (std::size_t d = 1; d < cells.size(); ++d) {
        const int distance = static_cast<int>(d) <= turn ? firstDistance : secondDistance;
        unsigned taken = 0;
        for (int pass = forwardFirst; pass <= gradientBack; ++pass) {
            const bool down = pass == forwardFirst || pass == gradientFirst;
            const int cell = modulo(cells[d - 1][pass] + (down ? distance : -1));
            if (taken & (1u << cell))
                return false;
            taken |= 1u << cell;
            cells[d][pass] = cell;
        }
        placeWeights(cells[d]);
    }
    return true;
}

/// The earliest block with these cells: every pass starts at the first time of its cell at which its data is ready.
Stamp stampOf(const std::vector<Cells>& cells)
{
    const int devices = static_cast<int>(cells.size());
    Stamp stamp(cells.size());
    int now = 0;
    const auto next = [&](int from, int cell) { return from + modulo(cell - from); };
    for (int pass = forwardFirst; pass <= gradientBack; ++pass)
        for (int i = 0; i < devices; ++i) {
            const bool down = pass == forwardFirst || pass == gradientFirst;
            const std::size_t d = down ? i : devices - 1 - i;
            now = next(now, cells[d][pass]);
            stamp[d][pass] = now++;
            if (pass >= gradientFirst)
                stamp[d][pass + 2] = next(now, cells[d][pass + 2]);
        }
    return stamp;
}

/// Chunk activations alive at once when the stamp repeats for ever.
int steadyPeak(const Stamp& stamp)
{
    int most = 0;
    for (const auto& at : stamp)
        for (int cell = 0; cell < interval; ++cell) {
            // Microbatches started by time t and not finished, t large and congruent to the cell.
            const int t = interval * 100'000 + cell;
            const auto stamped = [&](VPass pass) { return (t - at[pass]) / interval; };
            most = std::max(most,
                            stamped(forwardFirst) + stamped(forwardBack) - stamped(weightBack) - stamped(weightFirst));
        }
    return most;
}

VLanes repeat(const Stamp& stamp, int microbatches)
{
    VLanes lanes{static_cast<int>(stamp.size()), microbatches, {}};
    std::vector<std::uint8_t> cells;
    for (const auto& at : stamp) {
        const int begin = *std::min_element(at.begin(), at.end());
        const int end = *std::max_element(at.begin(), at.end()) + interval * (microbatches - 1) + 1;
        cells.assign(end - begin, vIdle);
        for (std::uint8_t pass = 0; pass < vPasses; ++pass)
            for (int m = 0; m < microbatches; ++m)
                cells[at[pass] - begin + interval * m] = pass;
        VLanes::Lane& lane = lanes.lanes.emplace_back();
        lane.reserve(vPasses * microbatches);
        std::copy_if(cells.begin(), cells.end(), std::back_inserter(lane),
                     [](std::uint8_t pass) { return pass != vIdle; });
    }
    return lanes;
}

/// FNV-1a hash of the distances between passes, which determine the order on every device.
std::uint64_t fingerprint(const Stamp& stamp)
{
    std::uint64_t hash = 0xcbf2'9ce4'8422'2325;
    for (const auto& at : stamp)
        for (std::size_t pass = 1; pass < vPasses; ++pass)
            hash = (hash ^ static_cast<std::uint64_t>(at[pass] - at[0])) * 0x100'0000'01b3;
    return hash;
}

/// The parameters of one candidate: the first device's cells and the two distances.
struct Form {
    int firstDistance, secondDistance, turn;
    int back, gradient, last; ///< cells of the second forward and of the two gradients; the first forward has 0
};

class Search {
public:
    /// At most `limit` live chunks per device. The heuristic keeps within `counted`, and every order within `held`.
    Search(const FamilyParameters& p, int limit, const SearchMemory& counted, const SearchMemory& held)
        : m_devices(p.devices), m_microbatches(p.microbatches), m_limit(limit), m_counted(counted), m_held(held),
          m_transfer(p.transfer), m_stageTimes(passTimes(p, 2)), m_stop(p.stop),
          m_reorder(p.devices, p.microbatches, m_limit)
    {
        m_times = unitTimes(p.devices);
        m_cells.resize(p.devices);
        for (int d = 0; d < p.devices; ++d) {
            const StageTimes& own = m_stageTimes[d];
            const StageTimes& back = m_stageTimes[m_stageTimes.size() - 1 - d];
            m_times[forwardFirst][d] = own.forward;
            m_times[forwardBack][d] = back.forward;
            m_times[gradientFirst][d] = back.inputGrad;
            m_times[gradientBack][d] = own.inputGrad;
            m_times[weightFirst][d] = back.weightGrad;
            m_times[weightBack][d] = own.weightGrad;
            m_ideal = std::max(m_ideal, m_microbatches
                                            * (own.forward + own.inputGrad + own.weightGrad + back.forward
                                               + back.inputGrad + back.weightGrad));
        }
        const StageTimes& first = m_stageTimes.front();
        if (first.forward == first.inputGrad && first.forward == first.weightGrad && m_transfer == 0
            && m_microbatches >= 2 * m_devices
            && std::all_of(m_stageTimes.begin(), m_stageTimes.end(), [&](const StageTimes& t) { return t == first; }))
            m_equalPass = first.forward;
    }

    std::vector<std::vector<Block>> run()
    {
        if (m_equalPass == 0)
            tryHeuristic();
        // The span changes little from one turn to the next. On many devices every step-th is tried, and then
        // those around the best; with equal passes the bound on the bubble makes trying all of them cheap.
        const int step = m_equalPass == 0 && m_devices > 8 ? std::max(2, m_devices / 6) : 1;
        std::vector<std::pair<Nanoseconds, Form>> tried;
        forEachForm(step, [&](const Form& form) {
            if (const std::optional<Nanoseconds> span = tryForm(form); span && step > 1)
                tried.emplace_back(*span, form);
            return !meetsBound() && !stopped();
        });
        const std::size_t refined = std::min<std::size_t>(tried.size(), 24);
        std::partial_sort(tried.begin(), tried.begin() + static_cast<std::ptrdiff_t>(refined), tried.end(),
                          [](const auto& x, const auto& y) { return x.first < y.first; });
        for (std::size_t i = 0; i < refined && !stopped(); ++i) {
            Form form = tried[i].second;
            const int middle = form.turn;
            for (form.turn = std::max(1, middle - step + 1); form.turn < std::min(m_devices, middle + step);
                 ++form.turn)
                tryForm(form);
        }
        if (m_equalPass > 0 && !meetsBound() && !stopped())
            tryHeuristic(); // last, since with equal passes the forms nearly always meet the bound
        return std::move(m_best);
    }

private:
    bool fits(const std::vector<std::vector<Block>>& order) const { return m_held.isEven() || m_held.fits(order); }
    bool stopped() const { return m_stop && m_stop(); }
    bool meetsBound() const { return m_span && *m_span <= m_ideal + leastBubble(m_limit); }

    /// Calls visit(form) for every form until it returns false.
    template<typename Visit>
    void forEachForm(int step, Visit visit) const
    {
        for (int first = 5; first >= 1; --first)
            for (int second = first; second >= 1; --second)
                for (int turn = 1; turn == 1 || (turn < m_devices && first != second); turn += step)
                    for (int back = 1; back < interval; ++back)
                        for (int gradient = 1; gradient < interval; ++gradient)
                            for (int last = 1; last < interval; ++last)
                                if (back != gradient && back != last && gradient != last
                                    && !visit(Form{first, second, turn, back, gradient, last}))
                                    return;
    }

    /// The span of the candidate's schedule; nothing when it exceeds the limit or a bound rules it out.
    std::optional<Nanoseconds> tryForm(const Form& form)
    {
        m_cells.front() = {0, form.back, form.gradient, form.last, 0, 0};
        placeWeights(m_cells.front());
        if (!fillCells(m_cells, form.firstDistance, form.secondDistance, form.turn))
            return {};
        return tryStamp(stampOf(m_cells));
    }

    /// Lower bound on the bubble of schedules of equal passes with `peak` live chunks (appendix E; for a peak of 2p - 1
    /// the search's own figure); 0 where passes differ.
    Nanoseconds leastBubble(int peak) const
    {
        const int p = m_devices;
        return m_equalPass * std::max(0, peak == 2 * p - 1 ? 3 : 6 * p - 1 - 3 * peak);
    }

    void keep(Nanoseconds span, int peak, std::vector<std::vector<Block>> order)
    {
        m_span = span;
        m_peak = peak;
        m_best = std::move(order);
    }

    void tryHeuristic()
    {
        std::optional<VOrder> made =
            zeroBubbleVHeuristic(m_devices, m_microbatches, m_stageTimes, m_transfer, m_counted);
        if (made && fits(made->order) && (!m_span || m_ideal + made->bubble < *m_span))
            keep(m_ideal + made->bubble, m_limit, std::move(made->order));
    }

    std::optional<Nanoseconds> tryStamp(const Stamp& stamp)
    {
        const int peak = steadyPeak(stamp);
        const int constructedFor = constructed(m_devices, m_microbatches);
        if (peak > 2 * m_devices || (constructedFor == m_microbatches && peak > m_limit)
            || (m_span && m_equalPass > 0 && m_ideal + leastBubble(peak) >= *m_span)
            || !m_seen.insert(fingerprint(stamp)).second)
            return {};
        const std::optional<VLanes> lanes = m_reorder.run(repeat(stamp, constructedFor), peak);
        if (!lanes)
            return {};
        const std::optional<Nanoseconds> span = m_clock.run(*lanes, m_times, m_transfer);
        const int reached = lanes->peak();
        if (!span || reached > m_limit)
            return {};
        if (!m_span || *span < *m_span || (*span == *m_span && reached < m_peak)) {
            std::vector<std::vector<Block>> order = lanes->blocks();
            if (!fits(order))
                return {};
            keep(*span, reached, std::move(order));
        }
        return span;
    }

    int m_devices, m_microbatches, m_limit;
    const SearchMemory &m_counted, &m_held;
    Nanoseconds m_transfer;
    std::vector<StageTimes> m_stageTimes;
    std::function<bool()> m_stop;
    VReorder m_reorder;
    VClock m_clock;
    VTimes m_times;
    std::vector<Cells> m_cells; ///< of the current candidate
    Nanoseconds m_ideal = 0;
    Nanoseconds m_equalPass = 0; ///< the pass time when all are equal and the bound on the bubble holds
    std::unordered_set<std::uint64_t> m_seen;
    std::optional<Nanoseconds> m_span;
    int m_peak = 0;
    std::vector<std::vector<Block>> m_best;
};

Diagnostics checkAdaptive(const FamilyParameters& p)
{
    return checkSearchInputs(p, 2, 1);
}

Schedule makeAdaptive(const FamilyParameters& p)
{
    const SearchMemory held(p, 2);
    FamilyParameters atMost = p;
    atMost.memoryLimit = std::min(1.0, p.memoryLimit.value_or(1.0)); // no V needs more
    const SearchMemory counted = p.memoryBudget.empty() ? countedInChunks(atMost) : held;
    int most = 0;
    for (int d = 0; d < p.devices; ++d)
        most = std::max(most, std::min(2 * p.devices, counted.forwardsThatFit(d)));
    Schedule schedule;
    schedule.deviceOfStage = searchPlacement(p.devices, 2);
    schedule.firstStageMaySplit = true;
    // Where stages differ, what fits on one device may not fit on another.
    for (int limit = most; schedule.order.empty() && limit > 0 && (limit == most || !held.isEven()); --limit)
        schedule.order = Search(p, limit, counted, held).run();
    if (schedule.order.empty() && p.memoryBudget.empty()) // as zb-v
        schedule.order = Search(p, most, counted, counted).run();
    if (schedule.order.empty())
        throw Error("--memory-limit", fmt::format("no building block fits into {} chunk activations", most),
                    fmt::format("a V of {} devices needs up to {}", p.devices, 2 * ((p.devices + 4) / 3)));
    return schedule;
}

} // namespace

Family adaptiveV()
{
    return {.name = "v-auto",
            .title = "Adaptive V",
            .description = "Searches the building blocks in a V for the least bubble under a memory limit.",
            .defaultChunks = 2,
            .backward = BackwardStyle::Split,
            .check = checkAdaptive,
            .make = makeAdaptive,
            .search = FamilySearch::Tried};
}

} // namespace pipewright
