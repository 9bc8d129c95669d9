// SPDX-License-Identifier: GPL-3.0-or-later
// Large-neighbourhood search: a window around a critical task is freed and re-ordered by branch and bound over active
// schedules (Giffler and Thompson, 1960). Heads and tails summarise the schedule before and after the window, so a node
// costs O(window). At most judgedOfWindow complete orders per window are timed as a whole, O(tasks) each.
#include "core/search/windowsearch.h"

#include <algorithm>
#include <limits>

namespace pipewright {

namespace {

constexpr int nodesOfWindow = 600;
constexpr int judgedOfWindow = 6;
constexpr std::size_t mostPieces = 240;
constexpr Nanoseconds nothing = std::numeric_limits<Nanoseconds>::min() / 4;

} // namespace

WindowSearch::WindowSearch(const SearchModel& model, SearchObjective objective)
    : m_model(model), m_objective(objective), m_times(model),
      m_mostJudged(static_cast<int>(std::clamp<std::size_t>(static_cast<std::size_t>(tasksBetweenStops)
                                                                / std::max<std::size_t>(1, model.tasks.size()),
                                                            1, judgedOfWindow))),
      m_start(model.tasks.size()), m_after(model.tasks.size()), m_pieceOf(model.tasks.size(), -1)
{
}

double WindowSearch::cost(const Lanes& lanes, Nanoseconds& value)
{
    Nanoseconds sum = 0;
    value = m_times.value(lanes, m_objective, &sum);
    return static_cast<double>(value) + 0.2 * static_cast<double>(sum) / static_cast<double>(m_model.devices);
}

/// Start times, and for each task the longest time from its end to the end of the schedule (its tail).
void WindowSearch::lookAt(const Lanes& lanes)
{
    m_times.run(lanes);
    m_start = m_times.starts();
    m_cost = cost(lanes, m_value);
    std::fill(m_after.begin(), m_after.end(), nothing);
    Nanoseconds begin = SearchModel::noCapacity;
    for (const std::vector<std::int32_t>& lane : lanes)
        if (!lane.empty())
            begin = std::min(begin, m_start[lane.front()]);
    for (std::size_t d = 0; d < lanes.size(); ++d)
        if (!lanes[d].empty())
            m_after[lanes[d].back()] =
                (m_objective == SearchObjective::Span ? -m_start[lanes[d].front()] : m_model.updates[d] - begin)
                - m_model.lead(m_objective, static_cast<int>(d));
    std::vector<std::int32_t> before(m_model.tasks.size(), -1); // on the device
    for (const std::vector<std::int32_t>& lane : lanes)
        for (std::size_t i = 1; i < lane.size(); ++i)
            before[lane[i]] = lane[i - 1];
    m_critical.clear();
    const std::vector<std::int32_t>& sequence = m_times.sequence();
    for (std::size_t i = sequence.size(); i-- > 0;) {
        const std::int32_t id = sequence[i];
        const SearchTask& task = m_model.tasks[id];
        const Nanoseconds whole = task.duration + m_after[id];
        const auto lengthen = [&](std::int32_t input, Nanoseconds delay) {
            if (input >= 0)
                m_after[input] = std::max(m_after[input], delay + whole);
        };
        lengthen(before[id], 0);
        lengthen(task.input, task.delay);
        lengthen(task.local, 0);
        for (const ExtraInput& extra : m_model.extrasOf(id))
            lengthen(extra.input, extra.delay);
        if (m_start[id] + whole >= m_value)
            m_critical.push_back(id);
    }
}

/// The parts of the lanes that start within [from, to), and the state before them.
void WindowSearch::cut(const Lanes& lanes, Nanoseconds from, Nanoseconds to)
{
    for (const Piece& piece : m_pieces)
        m_pieceOf[piece.task] = -1;
    m_pieces.clear();
    m_parts.clear();
    m_orders.clear();
    for (std::size_t d = 0; d < lanes.size(); ++d) {
        const std::vector<std::int32_t>& lane = lanes[d];
        const auto startsBefore = [&](std::int32_t id, Nanoseconds time) { return m_start[id] < time; };
        LanePart part;
        part.device = d;
        part.from =
            static_cast<std::size_t>(std::lower_bound(lane.begin(), lane.end(), from, startsBefore) - lane.begin());
        part.to = static_cast<std::size_t>(std::lower_bound(lane.begin(), lane.end(), to, startsBefore) - lane.begin());
        if (part.to - part.from < 1)
            continue;
        for (std::size_t i = 0; i < part.from; ++i) {
            const SearchTask& task = m_model.tasks[lane[i]];
            part.live += task.taken - task.freed;
        }
        if (part.from > 0) {
            const std::size_t last = lane[part.from - 1];
            part.free = m_start[last] + m_model.tasks[last].duration;
        }
        for (std::size_t i = part.from; i < part.to; ++i) {
            m_pieceOf[lane[i]] = static_cast<std::int32_t>(m_pieces.size());
            Piece& piece = m_pieces.emplace_back();
            piece.task = lane[i];
            piece.lane = static_cast<int>(m_parts.size());
            piece.was = m_start[lane[i]];
        }
        m_parts.push_back(part);
        m_orders.emplace_back();
    }
}

/// Dependencies, heads and tails of the pieces. Pieces that are not `free` keep their order.
void WindowSearch::link(const Lanes& lanes, const std::vector<std::uint8_t>& free)
{
    const auto pieceOf = [&](std::int32_t task) { return task < 0 ? -1 : m_pieceOf[task]; };
    const auto follow = [&](int earlier, std::size_t later, Nanoseconds delay) {
        m_pieces[earlier].followers.emplace_back(static_cast<int>(later), delay);
        ++m_pieces[later].waitsFor;
    };
    for (std::size_t p = 0; p < m_pieces.size(); ++p) {
        Piece& piece = m_pieces[p];
        const SearchTask& task = m_model.tasks[piece.task];
        piece.head = task.earliest;
        const auto need = [&](std::int32_t input, Nanoseconds delay) {
            if (input < 0)
                return;
            if (const int own = pieceOf(input); own >= 0)
                follow(own, p, delay);
            else
                m_pieces[p].head = std::max(m_pieces[p].head, m_start[input] + m_model.tasks[input].duration + delay);
        };
        need(task.input, task.delay);
        need(task.local, 0);
        need(task.lockedAfter, 0);
        for (const ExtraInput& extra : m_model.extrasOf(piece.task))
            need(extra.input, extra.delay);
    }
    for (LanePart& part : m_parts) {
        const std::vector<std::int32_t>& lane = lanes[part.device];
        // The lane's first task after the window does not depend on which piece is last in the window.
        part.leastAfter = part.to < lane.size() ? m_model.tasks[lane[part.to]].duration + m_after[lane[part.to]]
                                                : m_after[lane.back()];
        part.left = 0;
        int frozen = -1;
        for (std::size_t i = part.from; i < part.to; ++i) {
            const int p = pieceOf(lane[i]);
            part.left += m_model.tasks[lane[i]].duration;
            if (free[p] != 0)
                continue;
            if (frozen >= 0)
                follow(frozen, static_cast<std::size_t>(p), 0);
            frozen = p;
        }
    }
    // By descending start, so that followers' tails are known first. After the window only consumers of data count
    // here; the lane's own continuation is in leastAfter.
    std::vector<std::size_t> byStart(m_pieces.size());
    for (std::size_t p = 0; p < byStart.size(); ++p)
        byStart[p] = p;
    std::stable_sort(byStart.begin(), byStart.end(),
                     [&](std::size_t a, std::size_t b) { return m_pieces[a].was > m_pieces[b].was; });
    for (const std::size_t p : byStart) {
        Piece& piece = m_pieces[p];
        const auto duration = m_model.tasks[piece.task].duration;
        Nanoseconds after = m_parts[piece.lane].leastAfter;
        for (const auto& [later, delay] : piece.followers)
            after = std::max(after, delay + m_pieces[later].tail);
        const std::int32_t next = m_model.consumerOf(piece.task);
        if (next >= 0 && pieceOf(next) < 0)
            after = std::max(after, m_model.tasks[next].delay + m_model.tasks[next].duration + m_after[next]);
        piece.tail = duration + after;
    }
}

bool WindowSearch::openWindow(const Lanes& lanes, std::mt19937_64& random)
{
    const auto below = [&](std::size_t count) { return static_cast<std::size_t>(random() % count); };
    if (m_critical.empty())
        return false;
    const std::size_t kind = below(4);
    const std::size_t wanted = kind < 2 ? 16 + below(50) : 60 + below(140);
    const Nanoseconds whole = *std::max_element(m_start.begin(), m_start.end()) + 1;
    const auto length =
        std::max<Nanoseconds>(1, whole * static_cast<Nanoseconds>(std::min(wanted, m_model.tasks.size()))
                                     / static_cast<Nanoseconds>(m_model.tasks.size()));
    const Nanoseconds middle = m_start[m_critical[below(m_critical.size())]];
    const Nanoseconds from = middle - static_cast<Nanoseconds>(below(static_cast<std::size_t>(length)));
    cut(lanes, from, from + length);
    if (m_pieces.size() < 3 || m_pieces.size() > mostPieces)
        return false;
    std::vector<std::uint8_t> free(m_pieces.size(), kind < 2);
    if (kind == 2) { // some microbatches
        for (int count = 1 + static_cast<int>(below(3)); count > 0; --count) {
            const int microbatch = m_model.tasks[m_pieces[below(m_pieces.size())].task].microbatch;
            for (std::size_t p = 0; p < free.size(); ++p)
                free[p] |= m_model.tasks[m_pieces[p].task].microbatch == microbatch;
        }
    } else if (kind == 3) { // one device, or two neighbours
        const int lane = m_pieces[below(m_pieces.size())].lane, more = static_cast<int>(below(2));
        for (std::size_t p = 0; p < free.size(); ++p)
            free[p] = m_pieces[p].lane >= lane && m_pieces[p].lane <= lane + more;
    }
    link(lanes, free);
    const double noise = static_cast<double>(length) * static_cast<double>(below(4)) / 4;
    m_target = 0;
    for (Piece& piece : m_pieces) {
        m_target = std::max(m_target, piece.was + piece.tail);
        piece.rank = static_cast<double>(piece.tail) + noise * static_cast<double>(below(1'000)) / 1'000;
    }
    return true;
}

/// Times the schedule with the window's current order and keeps it if it is the best so far.
void WindowSearch::judge(Lanes& lanes)
{
    ++m_judged;
    for (std::size_t k = 0; k < m_parts.size(); ++k)
        std::copy(m_orders[k].begin(), m_orders[k].end(),
                  lanes[m_parts[k].device].begin() + static_cast<std::ptrdiff_t>(m_parts[k].from));
    if (!m_times.run(lanes))
        return;
    Nanoseconds value = 0;
    const double now = cost(lanes, value);
    if (now > m_cost || (now == m_cost && !m_best.empty()))
        return;
    m_cost = now;
    m_best = lanes;
    m_target = std::min(m_target, value - 1); // the next one must be shorter
}

void WindowSearch::branch(std::size_t placed, Lanes& lanes)
{
    if (placed == m_pieces.size()) {
        judge(lanes);
        return;
    }
    if (--m_nodes < 0 || m_judged >= m_mostJudged)
        return;
    ++m_work;
    const auto startOf = [&](std::size_t p) { return std::max(m_ready[p], m_parts[m_pieces[p].lane].free); };
    const auto taskOf = [&](std::size_t p) -> const SearchTask& { return m_model.tasks[m_pieces[p].task]; };
    const auto fits = [&](std::size_t p) {
        const LanePart& part = m_parts[m_pieces[p].lane];
        return part.live + taskOf(p).taken + taskOf(p).passing <= m_model.capacity[part.device];
    };
    // Giffler and Thompson: branch on the device of the piece that can end first, over all pieces that can start there
    // before that end.
    Nanoseconds end = SearchModel::noCapacity;
    int lane = -1;
    for (std::size_t p = 0; p < m_pieces.size(); ++p)
        if (m_placed[p] == 0 && m_pending[p] == 0 && startOf(p) + taskOf(p).duration < end && fits(p)) {
            end = startOf(p) + taskOf(p).duration;
            lane = m_pieces[p].lane;
        }
    if (lane < 0)
        return; // no piece fits into memory
    std::vector<std::size_t> choices;
    for (std::size_t p = 0; p < m_pieces.size(); ++p)
        if (m_placed[p] == 0 && m_pending[p] == 0 && m_pieces[p].lane == lane
            && (startOf(p) < end || taskOf(p).duration == 0) && fits(p))
            choices.push_back(p);
    std::sort(choices.begin(), choices.end(), [&](std::size_t a, std::size_t b) {
        return m_pieces[a].rank != m_pieces[b].rank ? m_pieces[a].rank > m_pieces[b].rank : a < b;
    });
    LanePart& part = m_parts[lane];
    std::vector<Nanoseconds> readyBefore;
    for (const std::size_t p : choices) {
        const Piece& piece = m_pieces[p];
        const SearchTask& task = taskOf(p);
        const Nanoseconds start = startOf(p), freeBefore = part.free;
        if (start + piece.tail > m_target || start + part.left + part.leastAfter > m_target)
            continue;
        m_placed[p] = 1;
        part.free = start + task.duration;
        part.left -= task.duration;
        part.live += task.taken - task.freed;
        m_orders[lane].push_back(piece.task);
        readyBefore.clear();
        for (const auto& [later, delay] : piece.followers) {
            readyBefore.push_back(m_ready[later]);
            m_ready[later] = std::max(m_ready[later], part.free + delay);
            --m_pending[later];
        }
        branch(placed + 1, lanes);
        for (std::size_t i = piece.followers.size(); i-- > 0;) {
            const std::size_t f = piece.followers[i].first;
            m_ready[f] = readyBefore[i];
            ++m_pending[f];
        }
        m_orders[lane].pop_back();
        part.live -= task.taken - task.freed;
        part.left += task.duration;
        part.free = freeBefore;
        m_placed[p] = 0;
        if (m_nodes < 0 || m_judged >= m_mostJudged)
            return;
    }
}

Nanoseconds WindowSearch::improve(Lanes& lanes, std::int64_t nodes, std::mt19937_64& random,
                                  const std::function<bool()>& stop)
{
    lookAt(lanes);
    Lanes best = lanes;
    Nanoseconds bestValue = m_value;
    double bestCost = m_cost;
    Lanes work = lanes;
    while (nodes > 0 && !stop()) {
        nodes -= 20;
        if (!openWindow(lanes, random))
            continue;
        m_pending.clear();
        m_ready.clear();
        for (const Piece& piece : m_pieces) {
            m_pending.push_back(piece.waitsFor);
            m_ready.push_back(piece.head);
        }
        m_placed.assign(m_pieces.size(), 0);
        m_nodes = nodesOfWindow;
        m_judged = 0;
        m_best.clear();
        branch(0, work);
        nodes -= nodesOfWindow - std::max<std::int64_t>(m_nodes, 0)
                 + m_judged * static_cast<std::int64_t>(m_model.tasks.size()) / 50;
        for (const LanePart& part : m_parts)
            std::copy(lanes[part.device].begin() + static_cast<std::ptrdiff_t>(part.from),
                      lanes[part.device].begin() + static_cast<std::ptrdiff_t>(part.to),
                      work[part.device].begin() + static_cast<std::ptrdiff_t>(part.from));
        if (m_best.empty())
            continue;
        lanes = work = m_best;
        lookAt(lanes);
        if (m_cost < bestCost) {
            best = lanes;
            bestValue = m_value;
            bestCost = m_cost;
        }
    }
    lanes = std::move(best);
    return bestValue;
}

} // namespace pipewright
