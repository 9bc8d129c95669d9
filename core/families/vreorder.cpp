// SPDX-License-Identifier: GPL-3.0-or-later
// The reordering steps of arXiv 2405.15362, section 4, on lanes of one byte per pass: warm-up, cool-down, idle cells,
// then W. Filling an idle cell costs O(legs + distance of the moved forward); the other steps are O(passes).
#include "core/base/indexed.h"
#include "core/families/vlanes.h"

#include <algorithm>

namespace pipewright {

namespace {

bool isWeightGrad(std::uint8_t pass)
{
    return pass == weightFirst || pass == weightBack;
}

} // namespace

VReorder::VReorder(int devices, int microbatches, int limit)
    : m_devices(devices), m_microbatches(microbatches), m_limit(limit), m_unit(unitTimes(devices))
{
}

std::optional<VLanes> VReorder::run(VLanes lanes, int stampedPeak)
{
    reorderWarmUp(lanes, stampedPeak);
    if (lanes.peak() > stampedPeak)
        return {};
    int peak = stampedPeak;
    if (m_microbatches < lanes.microbatches) {
        leaveSurplusOut(lanes, stampedPeak);
        peak = lanes.peak();
    }
    if (peak > m_limit || !reorderCoolDown(lanes))
        return {};
    std::optional<Cells> cells = cellsOf(lanes);
    if (!cells)
        return {};
    fillHoles(*cells, lanes.peak());
    toLanes(*cells, lanes);
    dealWeightGrads(lanes);
    if (lanes.peak() > peak)
        return {};
    return lanes;
}

/// Up to the first gradient of the upward leg: forwards first, as many as memory holds, so that the first gradients are
/// consecutive; then gradient, W and forward in turn.
void VReorder::reorderWarmUp(VLanes& lanes, int peak) const
{
    for (int d = 0; d < m_devices; ++d) {
        VLanes::Lane& lane = lanes.lanes[d];
        const auto split = std::find(lane.begin(), lane.end(), gradientBack);
        std::array<int, vPasses> left{};
        for (auto pass = lane.begin(); pass != split; ++pass)
            ++left[*pass];
        int back = std::min({d + 1, peak / 2, lanes.microbatches});
        int first = std::min(peak - back, lanes.microbatches);
        VLanes::Lane begin;
        begin.reserve(split - lane.begin());
        const auto put = [&](std::uint8_t pass) {
            if (left[pass] > 0) {
                --left[pass];
                begin.push_back(pass);
            }
        };
        const auto putFirst = [&] {
            if (first-- > 0)
                put(forwardFirst);
        };
        for (int i = 0; i < 2 * (m_devices - 1 - d); ++i)
            putFirst();
        for (int i = 0; i <= d; ++i) {
            putFirst();
            if (back-- > 0)
                put(forwardBack);
        }
        while (std::ssize(begin) < split - lane.begin()) {
            const std::size_t before = begin.size();
            put(gradientFirst);
            put(weightFirst);
            put(left[forwardBack] > 0 ? forwardBack : forwardFirst);
            if (begin.size() == before)
                break; // W of the upward leg: its gradient comes later
        }
        std::copy(begin.begin(), begin.end(), lane.begin());
    }
}

/// Drops the microbatches added for construction. With spare memory the first weight gradients are postponed in favour
/// of passes that others wait for.
void VReorder::leaveSurplusOut(VLanes& lanes, int peak) const
{
    for (VLanes::Lane& lane : lanes.lanes) {
        std::array<int, vPasses> count{};
        std::erase_if(lane, [&](std::uint8_t pass) { return count[pass]++ >= m_microbatches; });
    }
    lanes.microbatches = m_microbatches;
    if (m_microbatches > m_devices || 2 * m_microbatches > m_limit)
        return;
    const int most = std::min(2 * m_devices, peak);
    for (int d = 0; d < m_devices; ++d) {
        VLanes::Lane& lane = lanes.lanes[d];
        VLanes::Lane late;
        int spare = most - lanes.peak(d);
        std::erase_if(lane, [&](std::uint8_t pass) {
            if (spare <= 0 || !isWeightGrad(pass))
                return false;
            --spare;
            late.push_back(pass);
            return true;
        });
        lane.insert(lane.end(), late.begin(), late.end());
    }
}

/// After device 0's last forward: the last gradients on two tight diagonals, up and down the V, and W in the
/// cells between.
bool VReorder::reorderCoolDown(VLanes& lanes)
{
    const int peak = lanes.peak();
    if (peak > 2 * m_devices)
        return false;
    std::optional<Cells> made = cellsOf(lanes);
    if (!made)
        return false;
    Cells& cells = *made;
    const int mostBack = std::min((peak + 1) / 2, m_microbatches);
    const int mostFirst = std::min(peak - mostBack, m_microbatches);
    const auto lastForward = std::find(cells[0].rbegin(), cells[0].rend(), forwardBack);
    const int pivot = static_cast<int>(cells[0].rend() - lastForward) - 1;
    for (int d = 0; d < m_devices; ++d) {
        VLanes::Lane& lane = cells[d];
        std::array<int, vPasses> out{};
        for (std::size_t t = lane.size(); t-- > 0;) {
            const std::uint8_t pass = lane[t];
            if ((pass == gradientFirst && out[pass] < std::min(d + 1, mostFirst))
                || (pass == gradientBack && out[pass] < mostBack)) {
                ++out[pass];
                lane[t] = vIdle;
            }
        }
        for (std::size_t t = lane.size(); t-- > 0;) {
            if (out[weightFirst] >= out[gradientFirst] && out[weightBack] >= out[gradientBack]
                && out[weightFirst] + out[weightBack] >= peak)
                break;
            if (isWeightGrad(lane[t])) {
                ++out[lane[t]];
                lane[t] = vIdle;
            }
        }
        const auto place = [&](int time, std::uint8_t pass) {
            if (time < 0)
                return false;
            if (time >= std::ssize(lane))
                lane.resize(time + 1, vIdle);
            std::uint8_t& cell = lane[time];
            if (cell != vIdle)
                return false;
            cell = pass;
            return true;
        };
        for (int k = 0; k < out[gradientBack]; ++k)
            if (!place(pivot - d + 2 * m_devices - 2 * k, gradientBack))
                return false;
        for (int k = 0; k < out[gradientFirst]; ++k)
            if (!place(pivot + 1 + d - 2 * k, gradientFirst))
                return false;

        const auto lastWeight = std::find_if(lane.rbegin(), lane.rend(), isWeightGrad);
        const std::size_t free = lane.rend() - lastWeight; // first cell after the last W
        int owedFirst = 0, owedBack = 0;
        for (std::size_t t = 0; t < lane.size(); ++t) {
            const std::uint8_t pass = lane[t];
            owedFirst += pass == gradientFirst ? 1 : pass == weightFirst ? -1 : 0;
            owedBack += pass == gradientBack ? 1 : pass == weightBack ? -1 : 0;
            if (pass != vIdle || t < free)
                continue;
            if (owedFirst > 0) {
                lane[t] = weightFirst;
                --owedFirst;
            } else if (owedBack > 0) {
                lane[t] = weightBack;
                --owedBack;
            }
        }
        lane.insert(lane.end(), static_cast<std::size_t>(std::max(0, owedFirst)), weightFirst);
        lane.insert(lane.end(), static_cast<std::size_t>(std::max(0, owedBack)), weightBack);
    }
    toLanes(cells, lanes);
    return true;
}

std::optional<VReorder::Cells> VReorder::cellsOf(const VLanes& lanes)
{
    if (!m_clock.run(lanes, m_unit, 0, &m_start))
        return {};
    int width = 0;
    for (const std::vector<int>& starts : m_start)
        width = std::max(width, starts.empty() ? 0 : starts.back() + 1);
    Cells cells(lanes.lanes.size(), VLanes::Lane(static_cast<std::size_t>(width), vIdle));
    for (std::size_t d = 0; d < cells.size(); ++d)
        for (std::size_t i = 0; i < lanes.lanes[d].size(); ++i)
            cells[d][m_start[d][i]] = lanes.lanes[d][i];
    return cells;
}

void VReorder::toLanes(const Cells& cells, VLanes& lanes) const
{
    for (std::size_t d = 0; d < cells.size(); ++d) {
        lanes.lanes[d].clear();
        std::copy_if(cells[d].begin(), cells[d].end(), std::back_inserter(lanes.lanes[d]),
                     [](std::uint8_t pass) { return pass != vIdle; });
    }
}

/// From left to right, an idle cell takes the first later pass of any leg that may run there.
void VReorder::fillHoles(Cells& cells, int peak) const
{
    const int last = m_devices - 1;
    const std::size_t width = cells.front().size();
    std::vector<std::array<int, vPasses>> count(cells.size(), std::array<int, vPasses>{});
    std::array<IndexedTable<DeviceIndex, MicrobatchIndex, int>, gradientBack + 1> at; // cell of each leg
    at.fill({m_devices, m_microbatches});
    std::vector<int> alive(cells.size(), 0);

    const auto mayRun = [&](std::uint8_t pass, int device, int hole) {
        const int m = count[device][pass];
        if (isWeightGrad(pass))
            return count[device][pass - 2] > m;
        const bool down = pass == forwardFirst || pass == gradientFirst;
        const int source = down ? device - 1 : device < last ? device + 1 : -1;
        if (source >= 0)
            return count[source][pass] > m && at[pass](source, m) < hole;
        return pass == forwardFirst || count[device][pass - 1] > m;
    };
    const auto settle = [&](std::uint8_t pass, std::size_t d, std::size_t cell) {
        const int m = count[d][pass]++;
        if (pass <= gradientBack)
            at[pass](d, m) = static_cast<int>(cell);
        alive[d] += pass <= forwardBack ? 1 : isWeightGrad(pass) ? -1 : 0;
    };

    // Position of each leg's next pass: only these can move, as a leg keeps its order. For every cell, the next cell of
    // its leg.
    std::vector<std::array<std::size_t, vPasses>> next(cells.size());
    std::vector<std::vector<std::uint32_t>> following(cells.size(), std::vector<std::uint32_t>(width));
    for (std::size_t d = 0; d < cells.size(); ++d) {
        next[d].fill(width);
        for (std::size_t t = width; t-- > 0;)
            if (const std::uint8_t pass = cells[d][t]; pass != vIdle) {
                following[d][t] = static_cast<std::uint32_t>(next[d][pass]);
                next[d][pass] = t;
            }
    }
    // True when moving a forward would exceed the peak between the idle cell and the pass.
    const auto exceeds = [&](std::size_t d, std::size_t hole, std::size_t from) {
        int now = alive[d] + 1;
        for (std::size_t k = hole + 1; now <= peak && k < from; ++k)
            now += cells[d][k] <= forwardBack ? 1 : isWeightGrad(cells[d][k]) ? -1 : 0;
        return now > peak;
    };

    for (std::size_t hole = 0; hole < width; ++hole)
        for (std::size_t d = 0; d < cells.size(); ++d) {
            VLanes::Lane& lane = cells[d];
            std::uint8_t pass = lane[hole];
            if (pass == vIdle) {
                for (std::uint8_t other = 0; other < vPasses; ++other)
                    if (next[d][other] < width && (pass == vIdle || next[d][other] < next[d][pass])
                        && mayRun(other, static_cast<int>(d), static_cast<int>(hole))
                        && !(other <= forwardBack && exceeds(d, hole, next[d][other])))
                        pass = other;
                if (pass == vIdle)
                    continue;
                std::swap(lane[hole], lane[next[d][pass]]);
            }
            next[d][pass] = following[d][next[d][pass]];
            settle(pass, d, hole);
        }
}

/// Gives each W to the oldest gradient that waits for one.
void VReorder::dealWeightGrads(VLanes& lanes) const
{
    for (VLanes::Lane& lane : lanes.lanes) {
        VLanes::Lane owed;
        owed.reserve(lane.size());
        std::size_t next = 0;
        for (std::uint8_t& pass : lane) {
            if (pass == gradientFirst || pass == gradientBack)
                owed.push_back(pass == gradientFirst ? weightFirst : weightBack);
            else if (isWeightGrad(pass) && next < owed.size())
                pass = owed[next++];
        }
    }
}

} // namespace pipewright
