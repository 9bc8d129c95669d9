// SPDX-License-Identifier: GPL-3.0-or-later
// Hanayo (arXiv 2308.15762): the stages run in w waves, down the devices and back up, 2w chunks on each. A free device
// takes a ready pass: backwards before forwards, and among forwards the one of the latest stage. No device keeps more
// activations than 1F1B's p microbatches: a forward waits when it would take memory that the oldest microbatch still
// needs, so the oldest one can always run. A forward counts one unit and a backward two. O(blocks x log(microbatches in
// flight)).
#include "core/base/indexed.h"
#include "core/families/orders.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

namespace pipewright {

namespace {

/// Passes of a microbatch in the order of their data: 0 … S-1 forward, S … 2S-1 backward from the last stage.
struct Step {
    int device, microbatch, leg;
};

/// The microbatches that are ready for one leg; a heap, the oldest first.
struct ReadyLeg {
    int leg = 0;
    std::vector<int> microbatches{};

    void push(int microbatch)
    {
        microbatches.push_back(microbatch);
        std::push_heap(microbatches.begin(), microbatches.end(), std::greater<>());
    }
    int pop()
    {
        std::pop_heap(microbatches.begin(), microbatches.end(), std::greater<>());
        const int oldest = microbatches.back();
        microbatches.pop_back();
        return oldest;
    }
};

class WaveRun {
public:
    WaveRun(int devices, int microbatches, int waves)
        : m_devices(devices), m_microbatches(microbatches), m_stages(2 * devices * waves),
          m_inFlight((3 * devices + 1) / 2), m_finished(microbatches, false), m_live(devices),
          m_forwards(microbatches, devices), m_ready(devices), m_busy(devices, false)
    {
        schedule.order.resize(devices);
        for (int s = 0; s < m_stages; ++s)
            schedule.deviceOfStage.push_back(deviceOf(s));
        // Backwards first; within forwards and within backwards the later leg first.
        m_place.resize(2 * m_stages);
        for (const int kind : {1, 0})
            for (int leg = (kind + 1) * m_stages; leg-- > kind * m_stages;) {
                std::vector<ReadyLeg>& ready = m_ready[deviceOf(stageOf(leg))];
                m_place[leg] = ready.size();
                ready.push_back({leg});
            }
    }

    void run()
    {
        for (; m_admitted < std::min(m_inFlight, m_microbatches); ++m_admitted)
            arrive(m_admitted, 0);
        begin(0, 0);
        std::vector<int> wake;
        for (int now = 1; m_running > 0; ++now) {
            wake.clear();
            std::vector<Step>& done = m_endsAt[now % m_endsAt.size()];
            for (const Step& step : done) {
                m_busy[step.device] = false;
                wake.push_back(step.device);
                if (step.leg + 1 < 2 * m_stages) {
                    arrive(step.microbatch, step.leg + 1);
                    wake.push_back(deviceOf(stageOf(step.leg + 1)));
                }
                if (step.leg >= m_stages)
                    --m_live[step.device];
                if (step.leg + 1 == 2 * m_stages)
                    nextOldest(step.microbatch, wake);
            }
            m_running -= static_cast<int>(done.size());
            done.clear();
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

    void arrive(int microbatch, int leg) { m_ready[deviceOf(stageOf(leg))][m_place[leg]].push(microbatch); }

    void begin(DeviceIndex device, int now)
    {
        ReadyLeg* const ready = m_busy[device] ? nullptr : chooseLeg(device);
        if (ready == nullptr)
            return;
        const int microbatch = ready->pop();
        const bool isForward = ready->leg < m_stages;
        m_busy[device] = true;
        if (isForward) {
            ++m_live[device];
            ++m_forwards(microbatch, device);
        }
        m_endsAt[(now + (isForward ? 1 : 2)) % m_endsAt.size()].push_back({device, microbatch, ready->leg});
        ++m_running;
        schedule.order[device].push_back({isForward ? Op::F : Op::B, stageOf(ready->leg), microbatch});
    }

    /// The most urgent leg whose first microbatch may run. All microbatches but m_oldest have the same memory limit, so
    /// once a forward must wait only m_oldest can still run, which is the first of its leg.
    ReadyLeg* chooseLeg(DeviceIndex device)
    {
        bool oldestOnly = false;
        for (ReadyLeg& ready : m_ready[device]) {
            if (ready.microbatches.empty())
                continue;
            const int microbatch = ready.microbatches.front();
            if (ready.leg >= m_stages || microbatch == m_oldest || (!oldestOnly && fits(device, microbatch)))
                return &ready;
            oldestOnly = true;
        }
        return nullptr;
    }

    /// Whether a forward fits: every microbatch but m_oldest leaves free what m_oldest still needs on this device.
    bool fits(DeviceIndex device, int microbatch) const
    {
        const int chunks = m_stages / m_devices;
        if (microbatch == m_oldest)
            return true;
        return m_live[device] + chunks - m_forwards(m_oldest, device) < chunks * m_devices;
    }

    void nextOldest(int finished, std::vector<int>& wake)
    {
        if (m_admitted < m_microbatches)
            arrive(m_admitted++, 0);
        m_finished[finished] = true;
        while (m_oldest + 1 < m_microbatches && m_finished[m_oldest])
            ++m_oldest;
        for (int device = 0; device < m_devices; ++device)
            wake.push_back(device);
    }

    int m_devices, m_microbatches, m_stages;
    int m_inFlight; ///< largest number of microbatches in flight: 1.5 times 1F1B's p fills the waves well
    int m_admitted = 0;
    int m_oldest = 0; ///< microbatch in flight
    ByMicrobatch<bool> m_finished;
    ByDevice<int> m_live;                                       ///< activations
    IndexedTable<MicrobatchIndex, DeviceIndex, int> m_forwards; ///< done
    ByDevice<std::vector<ReadyLeg>> m_ready;                    ///< the most urgent leg first
    std::vector<std::size_t> m_place;                           ///< per leg: where in its device's list
    ByDevice<bool> m_busy;
    std::array<std::vector<Step>, 3> m_endsAt; ///< by time modulo 3: a pass takes two units at most
    int m_running = 0;
};

Diagnostics checkWaves(const FamilyParameters& p)
{
    if (p.chunks.value_or(2) % 2 == 0)
        return {};
    return {{Severity::Error, "--chunks", fmt::format("{} chunks", *p.chunks),
             "a wave puts two on each device: use an even number"}};
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
    return {
        .name = "hanayo",
        .title = "Hanayo",
        .description =
            "Stages in waves down the devices and back; more waves shrink the bubble without copies of the weights.",
        .defaultChunks = 2,
        .chunksSelectable = true,
        .backward = BackwardStyle::Full,
        .check = checkWaves,
        .make = makeWaves};
}

} // namespace pipewright
