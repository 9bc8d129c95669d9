// SPDX-License-Identifier: GPL-3.0-or-later
// Reads the allocator's counter as a step function of time: its values before and behind the layer's passes, found by
// binary search, and its peaks within them. O(samples of the passes + log samples).
#include "traces/analysis/layermemory.h"

#include "core/base/median.h"
#include "traces/store/memorycounter.h"

#include <algorithm>
#include <cmath>

namespace pipewright {

namespace {

/// A step function of time.
class Allocated {
public:
    explicit Allocated(const TraceCounter& counter) : m_counter(counter) {}

    std::size_t firstFrom(Nanoseconds time) const
    {
        return static_cast<std::size_t>(std::lower_bound(m_counter.time.begin(), m_counter.time.end(), time)
                                        - m_counter.time.begin());
    }
    /// The value just before a moment. Before the first report it is taken to be the first value.
    double before(Nanoseconds time) const
    {
        const std::size_t next = firstFrom(time);
        return next > 0 ? m_counter.value[next - 1] : m_counter.value.empty() ? 0 : m_counter.value.front();
    }
    double highest(Nanoseconds from, Nanoseconds to) const
    {
        double most = before(from);
        for (std::size_t i = firstFrom(from); i < m_counter.time.size() && m_counter.time[i] < to; ++i)
            most = std::max(most, m_counter.value[i]);
        return most;
    }
    /// The largest single allocation.
    double largest(Nanoseconds from, Nanoseconds to) const
    {
        double most = 0;
        for (std::size_t i = std::max<std::size_t>(1, firstFrom(from));
             i < m_counter.time.size() && m_counter.time[i] < to; ++i)
            most = std::max(most, m_counter.value[i] - m_counter.value[i - 1]);
        return most;
    }

private:
    const TraceCounter& m_counter;
};

Bytes bytesOf(double value)
{
    return static_cast<Bytes>(std::llround(std::max(0.0, value)));
}

/// The last outermost operator that allocates is taken to make the layer's output.
Bytes outputOf(const Allocated& allocated, const std::vector<LayerSlices::Slice>& operators,
               const LayerStretch& forward)
{
    auto at = std::lower_bound(operators.begin(), operators.end(), forward.start,
                               [](const LayerSlices::Slice& slice, Nanoseconds t) { return slice.start < t; });
    Nanoseconds until = forward.start;
    Bytes output = 0;
    for (; at != operators.end() && at->start < forward.end; ++at) {
        if (at->lane != forward.lane || at->start < until)
            continue;
        until = at->end;
        if (const Bytes made = bytesOf(allocated.largest(at->start, at->end)); made > 0)
            output = made;
    }
    return output;
}

} // namespace

const TraceCounter* allocatedBytes(const StoredActivities& trace, int rank, int device)
{
    const auto found = std::find_if(trace.counters.begin(), trace.counters.end(), [&](const TraceCounter& counter) {
        return counter.rank == rank && counter.device == device && counter.name == allocatedByPytorch
               && !counter.time.empty();
    });
    return found != trace.counters.end() ? &*found : nullptr;
}

void fillFromMemory(const TraceCounter& counter, const std::vector<LayerSlices::Slice>& operators,
                    const std::vector<LayerStretch>& stretches, std::size_t runs, std::vector<KnownLayer>& table,
                    LayerProfile& profile)
{
    const Allocated allocated(counter);
    const auto between = [&](const LayerStretch& s) { return allocated.before(s.end) - allocated.before(s.start); };
    struct Layer {
        std::vector<Bytes> saved, output, peak;
        std::vector<double> left;
    };
    std::vector<Layer> layers(table.size());
    for (Layer& layer : layers)
        layer.left.resize(runs);
    for (const LayerStretch& stretch : stretches) {
        Layer& layer = layers[stretch.layer];
        layer.left[stretch.run] += between(stretch);
        if (stretch.pass != LayerPass::Forward)
            continue;
        layer.saved.push_back(bytesOf(between(stretch)));
        layer.output.push_back(outputOf(allocated, operators, stretch));
        layer.peak.push_back(bytesOf(allocated.highest(stretch.start, stretch.end) - allocated.before(stretch.start)));
    }
    Bytes handedOn = 0;
    for (std::size_t i = 0; i < table.size(); ++i) {
        table[i].saved = table[i].savedForWeightGrad = medianOf(layers[i].saved);
        table[i].parameters = bytesOf(*std::max_element(layers[i].left.begin(), layers[i].left.end()));
        const Bytes made = medianOf(layers[i].output);
        table[i].output = handedOn = made > 0 ? made : handedOn; // 0: a view of its input
        profile.layers[i].peak = medianOf(layers[i].peak);
    }
    for (const char* column : {"saved_for_weight_grad", "parameters", "output"})
        profile.estimated.emplace_back(column);
    profile.notes.push_back(
        "parameters are counted by the gradients that were left, and outputs by the last allocation of "
        "a layer; all that is saved is taken to stay until the weight gradient");
}

} // namespace pipewright
