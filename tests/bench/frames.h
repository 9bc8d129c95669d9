// SPDX-License-Identifier: GPL-3.0-or-later
// Times of frames: p50, p99 and max are wall-clock milliseconds, cpu50 and cpu99 processor milliseconds of the window's
// thread. For benchmarks with UseManualTime().
#pragma once

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <vector>

/// Takes the time of each frame and hands the percentiles to Google Benchmark.
class Frames {
public:
    explicit Frames(benchmark::State& state) : m_state(state) {}
    ~Frames()
    {
        m_state.counters["p50"] = percentile(m_wall, 0.50);
        m_state.counters["p99"] = percentile(m_wall, 0.99);
        m_state.counters["max"] = percentile(m_wall, 1);
        m_state.counters["cpu50"] = percentile(m_cpu, 0.50);
        m_state.counters["cpu99"] = percentile(m_cpu, 0.99);
    }
    double last() const { return m_wall.back(); }
    template<typename Frame>
    void take(Frame frame)
    {
        const auto start = std::chrono::steady_clock::now();
        const double cpu = threadTime();
        frame();
        m_cpu.push_back((threadTime() - cpu) * 1e3);
        const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
        m_wall.push_back(taken.count() * 1e3);
        m_state.SetIterationTime(taken.count());
    }

private:
    static double threadTime()
    {
        timespec now{};
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
        return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
    }
    static double percentile(std::vector<double> values, double share)
    {
        std::sort(values.begin(), values.end());
        const auto index = static_cast<std::size_t>(std::ceil(share * static_cast<double>(values.size())));
        return values.empty() ? 0 : values[std::clamp<std::size_t>(index, 1, values.size()) - 1];
    }
    benchmark::State& m_state;
    std::vector<double> m_wall, m_cpu;
};
