// SPDX-License-Identifier: GPL-3.0-or-later
// A step function, such as memory over time, sampled per pixel column: its minimum, maximum and last value. Extremes of
// runs of samples are precomputed, so a window costs O(pixels). Building is O(samples).
#pragma once

#include "core/program/program.h"

#include <vector>

namespace pipewright {

class StepCurve {
public:
    StepCurve() = default;
    /// `samples`: by time; each holds until the next one.
    explicit StepCurve(std::vector<MemorySample> samples);

    bool empty() const { return m_samples.empty(); }
    const std::vector<MemorySample>& samples() const { return m_samples; }
    /// The highest value and when it is first reached; zero of an empty curve.
    const MemorySample& peak() const { return m_peak; }
    /// Its last sample at or before the time, or the first sample. Not of an empty curve. O(log samples).
    Bytes valueAt(double time) const;

    /// Neighbouring columns in which the value stays the same are merged into one Column.
    struct Column {
        int x = 0, width = 1;
        Bytes low = 0, high = 0, last = 0;
        bool operator==(const Column&) const = default;
    };
    /// [from, to] divided into `columns` columns; empty for an empty curve or window. The value before `from` is
    /// carried in. Before the first sample its own value holds, because persistent buffers exist from the start.
    /// O(columns x log samples of a column).
    std::vector<Column> columns(double from, double to, int columns) const;

private:
    struct Extremes {
        Bytes low, high;
    };
    Extremes extremes(std::size_t begin, std::size_t end, Extremes of) const;

    std::vector<MemorySample> m_samples;
    std::vector<Extremes> m_runs; ///< of `run` samples each
    MemorySample m_peak;
};

} // namespace pipewright
