// SPDX-License-Identifier: GPL-3.0-or-later
// A candidate is predicted outside the lock, O(blocks), and compared under it.
#include "core/search/incumbent.h"

#include "core/predict/predict.h"
#include "core/program/compile.h"

namespace pipewright {

namespace {

/// A prediction cannot be stopped. From this many blocks on predictOutline() is used: it makes no lists and needs a
/// fraction of the time for a repeating order.
constexpr std::size_t manyTasks = 500'000;

Metrics metricsOf(const Design& design, std::size_t tasks)
{
    if (tasks >= manyTasks)
        return predictOutline(design).metrics;
    return predict(design).metrics;
}

} // namespace

Incumbent::Incumbent(const Design& design, const SearchModel& model, const SearchOptions& options, Nanoseconds bound,
                     Clock::time_point began)
    : m_design(design), m_model(model), m_options(options), m_began(began), m_bound(bound)
{
}

Offered Incumbent::offer(const Lanes& lanes, Nanoseconds promised, const char* source, ByDevice<Bytes>& capacity)
{
    // The model is a relaxation: the prediction is never better than the promised value.
    if (promised >= m_best.load())
        return Offered::NotShorter;
    if (!lanesAllowed(m_model, lanes))
        return Offered::Refused;
    Design design = m_design;
    design.buildingBlock.reset();
    design.schedule = m_model.scheduleOf(lanes, m_design.schedule);
    Metrics metrics;
    try {
        metrics = metricsOf(design, m_model.tasks.size());
    } catch (const Deadlock&) {
        return Offered::Refused; // through a stated order of transfers, which the model leaves out
    }
    bool fits = true;
    for (const DeviceIndex d : capacity.indices())
        if (m_model.exactBytes && m_model.capacity[d] != SearchModel::noCapacity
            && metrics.devices[d].peakBytes > m_model.limitOfDevice[d]) {
            capacity[d] = std::min(capacity[d], lanePeak(m_model, lanes[d]))
                          - (metrics.devices[d].peakBytes - m_model.limitOfDevice[d]);
            fits = false;
        }
    if (!fits)
        return Offered::Refused;
    const Nanoseconds value = m_options.objective == SearchObjective::Span ? metrics.span : metrics.makespan;
    const std::lock_guard lock(m_mutex);
    if (value >= m_best.load())
        return value == promised ? Offered::NotShorter : Offered::Longer;
    if (m_options.noise && !m_history.empty())
        m_earlier.push_back(std::move(m_lanes));
    m_lanes = lanes;
    m_best = value;
    m_history.push_back({seconds(), value, source});
    return value == promised ? Offered::Taken : Offered::Longer;
}

void Incumbent::offerGiven()
{
    // It is predicted without timing it in the model: with millions of blocks no tables are built for it.
    ByDevice<Bytes> capacity = m_model.capacity;
    if (const auto lanes = m_model.lanesOf(m_design.schedule))
        offer(*lanes, 0, m_options.given.c_str(), capacity);
}

void Incumbent::proveBound(Nanoseconds bound, std::string why)
{
    const std::lock_guard lock(m_mutex);
    if (bound > m_bound.load()) {
        m_bound = bound;
        m_exhausted = std::move(why);
    }
}

Lanes Incumbent::lanes() const
{
    const std::lock_guard lock(m_mutex);
    return m_lanes;
}

std::vector<Lanes> Incumbent::takeLanes()
{
    std::vector<Lanes> all = std::move(m_earlier);
    all.push_back(std::move(m_lanes));
    return all;
}

double Incumbent::seconds() const
{
    return std::chrono::duration<double>(Clock::now() - m_began).count();
}

std::vector<SearchPoint> Incumbent::history() const
{
    const std::lock_guard lock(m_mutex);
    return m_history;
}

std::string Incumbent::exhausted() const
{
    const std::lock_guard lock(m_mutex);
    return m_exhausted;
}

} // namespace pipewright
