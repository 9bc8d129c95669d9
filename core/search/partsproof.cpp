// SPDX-License-Identifier: GPL-3.0-or-later
// A lower bound that is additive over parts: with m_each = n microbatches per part, n + 1 symmetric microbatches bound
// the distance between stage 0's forwards k and k + n, and the last m_last microbatches bound the rest. The bound is
// parts × each + last; constraint programming computes both times.
#include "core/search/partsproof.h"

#include "core/search/periodic.h"
#include "core/search/symmetricpredecessors.h"

#include <fmt/format.h>

#include <algorithm>

namespace pipewright {

namespace {

/// A proof that is not finished after this many slices would take too long.
constexpr int mostSlices = 400;

/// The last block of stage 0 that a microbatch has.
std::int32_t lastOf(const SearchModel& model, int microbatch)
{
    const std::int32_t weight = model.weightGrad(0, microbatch);
    return weight >= 0 ? weight : model.backward(0, microbatch);
}

} // namespace

ProofByParts::ProofByParts(const Design& design, const SearchModel& model, const SearchOptions& options,
                           Incumbent& incumbent, int most)
    : m_design(design), m_model(model), m_options(options), m_incumbent(incumbent), m_most(most)
{
    if (m_most == 0)
        m_most =
            static_cast<int>(mostTasksToConstrain * static_cast<std::size_t>(model.microbatches) / model.tasks.size());
}

bool ProofByParts::begin()
{
    const int count = m_model.microbatches;
    if (m_most < 2 || m_most >= count || symmetricPredecessors(m_model).empty())
        return false;
    m_parts = (count - m_most + m_most - 2) / (m_most - 1);
    m_each = (count - m_most + m_parts - 1) / m_parts;
    m_last = count - m_parts * m_each;
    if (m_last < 1)
        return false;
    // The parts of the best schedule give the upper bounds of both times.
    const Lanes lanes = m_incumbent.lanes();
    LaneTimes times(m_model);
    if (!times.run(lanes))
        return false;
    std::vector<Nanoseconds> begins, ends;
    for (int m = 0; m < count; ++m) {
        const std::size_t last = lastOf(m_model, m);
        begins.push_back(times.starts()[m_model.forward(0, m)]);
        ends.push_back(times.starts()[last] + m_model.tasks[last].duration);
    }
    std::sort(begins.begin(), begins.end());
    std::sort(ends.begin(), ends.end());
    const auto at = [](const std::vector<Nanoseconds>& all, int m) { return all[m]; };
    Nanoseconds each = at(begins, m_each) - at(begins, 0), last = at(ends, m_last - 1) - at(begins, 0);
    for (int m = 0; m + m_each < count; ++m)
        each = std::min(each, at(begins, m + m_each) - at(begins, m));
    for (int m = 0; m + m_last <= count; ++m)
        last = std::min(last, at(ends, m + m_last - 1) - at(begins, m));
    m_eachModel = std::make_unique<SearchModel>(withMicrobatches(m_design, m_each + 1), m_options.limit);
    m_lastModel = std::make_unique<SearchModel>(withMicrobatches(m_design, m_last), m_options.limit);
    m_eachSearch = makeLeastTimeSearch(*m_eachModel, m_eachModel->forward(0, m_each), false, each);
    m_lastSearch = makeLeastTimeSearch(*m_lastModel, lastOf(*m_lastModel, m_last - 1), true, last);
    return m_eachSearch && m_lastSearch;
}

bool ProofByParts::resume(const std::function<bool()>& stop)
{
    if (m_incumbent.best() == Incumbent::noValue)
        return true;
    if (m_parts == 0 && !begin())
        return false;
    if (++m_slices > mostSlices)
        return false;
    bool open = false;
    for (LeastTimeSearch* part : {m_eachSearch.get(), m_lastSearch.get()})
        if (part->least() == 0 && !stop())
            open = part->resume(stop) || open;
    if (open || m_eachSearch->least() == 0 || m_lastSearch->least() == 0)
        return !stop();
    const int device = m_model.deviceOfStage[0];
    const Nanoseconds after = m_options.objective == SearchObjective::Makespan ? m_model.updates[device] : 0;
    m_incumbent.proveBound(
        m_parts * m_eachSearch->least() + m_lastSearch->least() + after - m_model.lead(m_options.objective, device),
        fmt::format("constraint programming found that a forward of stage 0 and the one {} microbatches "
                    "later are at least {} apart, which counts {}, and that the last {} need at least {}",
                    m_each, formatDuration(m_eachSearch->least()),
                    m_parts == 1 ? "once" : fmt::format("{} times", m_parts), m_last,
                    formatDuration(m_lastSearch->least())));
    return false;
}

} // namespace pipewright
