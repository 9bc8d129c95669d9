// SPDX-License-Identifier: GPL-3.0-or-later
// Hanayo (arXiv 2308.15762): the stages run in w waves, down the devices and back up, 2w chunks on each.
// Every device takes what is ready when it is free: backwards before forwards, and of the forwards the one
// that is furthest along. No device keeps more activations than 1F1B's p microbatches: a forward waits when it
// would take the room that the oldest microbatch still needs, which therefore always gets through. A forward
// counts one unit and a backward two. O(blocks x log(blocks)).
#include "core/schedule/families/orders.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <queue>
#include <set>
#include <tuple>
#include <utility>

namespace pipewright {

namespace {

/// Passes of a microbatch in the order of their data: 0 … S-1 forward, S … 2S-1 backward from the last stage.
struct Step {
    int time, device, microbatch, leg;
    bool operator>(const Step& other) const
    {
        return std::tie(time, device, microbatch, leg) > std::tie(other.time, other.device, other.microbatch, other.leg);
    }
};

class WaveRun {
public:
    WaveRun(int devices, int microbatches, int waves)
        : m_devices(devices), m_microbatches(microbatches), m_stages(2 * devices * waves),
          m_inFlight((3 * devices + 1) / 2),
          m_finished(static_cast<std::size_t>(microbatches), false), m_live(static_cast<std::size_t>(devices), 0),
          m_forwards(static_cast<std::size_t>(microbatches) * static_cast<std::size_t>(devices), 0),
          m_ready(static_cast<std::size_t>(devices)), m_busy(static_cast<std::size_t>(devices), false)
    {
        schedule.order.resize(static_cast<std::size_t>(devices));
        for (int s = 0; s < m_stages; ++s)
            schedule.deviceOfStage.push_back(deviceOf(s));
    }

    void run()
    {
        for (; m_admitted < std::min(m_inFlight, m_microbatches); ++m_admitted)
            arrive(m_admitted, 0);
        begin(0, 0);
        while (!m_running.empty()) {
            const int now = m_running.top().time;
            std::vector<int> wake;
            for (; !m_running.empty() && m_running.top().time == now; m_running.pop()) {
                const Step done = m_running.top();
                m_busy[static_cast<std::size_t>(done.device)] = false;
                wake.push_back(done.device);
                if (done.leg + 1 < 2 * m_stages) {
                    arrive(done.microbatch, done.leg + 1);
                    wake.push_back(deviceOf(stageOf(done.leg + 1)));
                }
                if (done.leg >= m_stages)
                    --m_live[static_cast<std::size_t>(done.device)];
                if (done.leg + 1 == 2 * m_stages)
                    nextOldest(done.microbatch, wake);
            }
            for (const int device : wake)
                begin(device, now);
        }
    }

    Schedule schedule;

private:
    int stageOf(int leg) const { return leg < m_stages ? leg : 2 * m_stages - 1 - leg; }
    int deviceOf(int stage) const
    {
        const int inWave = stage % (2 * m_devices);
        return inWave < m_devices ? inWave : 2 * m_devices - 1 - inWave;
    }

    void arrive(int microbatch, int leg)
    {
        m_ready[static_cast<std::size_t>(deviceOf(stageOf(leg)))].insert({leg < m_stages ? 1 : 0, -leg, microbatch});
    }

    void begin(int device, int now)
    {
        const auto d = static_cast<std::size_t>(device);
        if (m_busy[d] || m_ready[d].empty())
            return;
        auto chosen = m_ready[d].begin();
        while (chosen != m_ready[d].end() && std::get<0>(*chosen) == 1 && !fits(d, std::get<2>(*chosen)))
            chosen = nextLeg(d, chosen);
        if (chosen == m_ready[d].end())
            return;
        const auto [isForward, minusLeg, microbatch] = *chosen;
        m_ready[d].erase(chosen);
        m_busy[d] = true;
        if (isForward) {
            ++m_live[d];
            ++m_forwards[static_cast<std::size_t>(microbatch) * static_cast<std::size_t>(m_devices) + d];
        }
        m_running.push({now + (isForward ? 1 : 2), device, microbatch, -minusLeg});
        schedule.order[d].push_back({isForward ? Op::F : Op::B, stageOf(-minusLeg), microbatch});
    }

    using Ready = std::set<std::tuple<int, int, int>>; ///< (is forward, -leg, microbatch), the most urgent first

    /// Any microbatch but the oldest leaves the room that the oldest has yet to fill on this device.
    bool fits(std::size_t device, int microbatch) const
    {
        const int chunks = m_stages / m_devices;
        if (microbatch == m_oldest)
            return true;
        const int ahead = m_forwards[static_cast<std::size_t>(m_oldest) * static_cast<std::size_t>(m_devices) + device];
        return m_live[device] + chunks - ahead < chunks * m_devices;
    }

    /// All younger microbatches wait alike: go on to the oldest, if it is among the forwards.
    Ready::iterator nextLeg(std::size_t device, Ready::iterator from)
    {
        while (from != m_ready[device].end() && std::get<2>(*from) != m_oldest)
            ++from;
        return from;
    }

    void nextOldest(int finished, std::vector<int>& wake)
    {
        if (m_admitted < m_microbatches)
            arrive(m_admitted++, 0);
        m_finished[static_cast<std::size_t>(finished)] = true;
        while (m_oldest + 1 < m_microbatches && m_finished[static_cast<std::size_t>(m_oldest)])
            ++m_oldest;
        for (int device = 0; device < m_devices; ++device)
            wake.push_back(device);
    }

    int m_devices, m_microbatches, m_stages;
    int m_inFlight; ///< microbatches on their way at most; half as many again as 1F1B's p fill the waves well
    int m_admitted = 0;
    int m_oldest = 0; ///< microbatch on its way
    std::vector<bool> m_finished;
    std::vector<int> m_live;     ///< activations per device
    std::vector<int> m_forwards; ///< [microbatch][device] done
    std::vector<Ready> m_ready;
    std::vector<bool> m_busy;
    std::priority_queue<Step, std::vector<Step>, std::greater<>> m_running;
};

Diagnostics checkWaves(const FamilyParameters& p)
{
    if (p.chunks.value_or(2) % 2 == 0)
        return {};
    return {{Severity::Error, "--chunks", fmt::format("{} chunks", *p.chunks), "a wave puts two on each device: use an even number"}};
}

Schedule makeWaves(const FamilyParameters& p)
{
    WaveRun waves(p.devices, p.microbatches, p.chunks.value_or(2) / 2);
    waves.run();
    return std::move(waves.schedule);
}

} // namespace

Family hanayo()
{
    return {"hanayo", "Hanayo", "Stages in waves down the devices and back; more waves shrink the bubble without copies of the weights.",
            2, true, BackwardStyle::Full, checkWaves, makeWaves};
}

} // namespace pipewright
