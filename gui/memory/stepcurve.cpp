// SPDX-License-Identifier: GPL-3.0-or-later
// Extremes per run of samples are precomputed; a column combines whole runs and scans the two partial ones. O(columns ×
// log samples of a column).
#include "gui/memory/stepcurve.h"

#include <algorithm>

namespace pipewright {

namespace {

constexpr std::size_t run = 64;

/// The first sample from `begin` on at or after `time`, by exponential search, as it is usually near.
std::size_t firstFrom(const std::vector<MemorySample>& samples, std::size_t begin, double time)
{
    std::size_t step = 1, low = begin, high = begin;
    while (high < samples.size() && static_cast<double>(samples[high].time) < time) {
        low = high + 1;
        high += step;
        step *= 2;
    }
    high = std::min(high, samples.size());
    const auto at = [&samples](std::size_t i) { return samples.begin() + static_cast<std::ptrdiff_t>(i); };
    return static_cast<std::size_t>(
        std::partition_point(at(low), at(high),
                             [time](const MemorySample& s) { return static_cast<double>(s.time) < time; })
        - samples.begin());
}

} // namespace

StepCurve::StepCurve(std::vector<MemorySample> samples) : m_samples(std::move(samples))
{
    if (m_samples.empty())
        return;
    m_peak = m_samples.front();
    m_runs.reserve(m_samples.size() / run + 1);
    for (std::size_t i = 0; i < m_samples.size(); ++i) {
        const Bytes bytes = m_samples[i].bytes;
        if (i % run == 0)
            m_runs.push_back({bytes, bytes});
        m_runs.back().low = std::min(m_runs.back().low, bytes);
        m_runs.back().high = std::max(m_runs.back().high, bytes);
        if (bytes > m_peak.bytes)
            m_peak = m_samples[i];
    }
}

StepCurve::Extremes StepCurve::extremes(std::size_t begin, std::size_t end, Extremes of) const
{
    const auto take = [&of](Bytes low, Bytes high) {
        of.low = std::min(of.low, low);
        of.high = std::max(of.high, high);
    };
    while (begin < end) {
        if (begin % run == 0 && begin + run <= end) {
            take(m_runs[begin / run].low, m_runs[begin / run].high);
            begin += run;
        } else {
            take(m_samples[begin].bytes, m_samples[begin].bytes);
            ++begin;
        }
    }
    return of;
}

Bytes StepCurve::valueAt(double time) const
{
    const auto next =
        std::upper_bound(m_samples.begin(), m_samples.end(), time,
                         [](double t, const MemorySample& sample) { return t < static_cast<double>(sample.time); });
    return next == m_samples.begin() ? m_samples.front().bytes : std::prev(next)->bytes;
}

std::vector<StepCurve::Column> StepCurve::columns(double from, double to, int columns) const
{
    std::vector<Column> result;
    if (m_samples.empty() || !(to > from) || columns <= 0)
        return result;
    std::size_t next = firstFrom(m_samples, 0, from);
    Bytes level = m_samples[next == 0 ? 0 : next - 1].bytes;
    const double width = (to - from) / columns;
    for (int x = 0; x < columns; ++x) {
        const std::size_t end = firstFrom(m_samples, next, from + width * (x + 1));
        Column column{x, 1, level, level, level};
        if (end > next) {
            const Extremes seen = extremes(next, end, {level, level});
            column = {x, 1, seen.low, seen.high, m_samples[end - 1].bytes};
            level = column.last;
            next = end;
        }
        const bool flat = column.low == column.high;
        if (flat && !result.empty() && result.back().low == column.low && result.back().high == column.high)
            ++result.back().width;
        else
            result.push_back(column);
    }
    return result;
}

} // namespace pipewright
