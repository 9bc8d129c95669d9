// SPDX-License-Identifier: GPL-3.0-or-later
// Hill climbing over cuts and placements with random restarts: a neighbour moves one layer to another stage or swaps
// two devices. A candidate's value is the best of six list schedules; a lower bound rejects most before a schedule is
// made. Small instances are enumerated. O(blocks) per candidate, O(stages²) neighbours per step.
#include "core/search/partition.h"

#include "core/search/listscheduling.h"
#include "core/sharding/sharedstage.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>

namespace pipewright {

namespace {

using Clock = std::chrono::steady_clock;

constexpr Nanoseconds impossible = SearchModel::noCapacity;
constexpr int trialsInFull = 4;

/// A placement with at most this many cuts is enumerated. In a design of at most this many blocks every cut that no
/// bound rules out is then searched in full.
constexpr std::int64_t mostCutsToTry = 64;
constexpr std::size_t mostBlocksToTry = 300;

struct Cut {
    PlacementShape shape = PlacementShape::Given;
    std::vector<int> layers, devices; ///< per stage
    Nanoseconds value = impossible;   ///< of the best rule
    Nanoseconds bound = impossible;   ///< lower bound of every schedule
    double unevenness = 0;            ///< of the devices' work; breaks ties between equal values
    bool before(const Cut& other) const
    {
        return std::pair(value, unevenness) < std::pair(other.value, other.unevenness);
    }
};

class CutSearch {
public:
    CutSearch(const Design& design, const PartitionOptions& options)
        : m_design(design), m_options(options), m_random(options.search.seed)
    {
        const int count = design.schedule.devices();
        for (int d = 1; d < count; ++d)
            m_devicesDiffer = m_devicesDiffer || !(design.cluster.devices[d] == design.cluster.devices[0]);
        m_devicesDiffer = m_devicesDiffer || !design.costs.allLinksAlike();
    }

    /// The cuts to search in full, best first: the best few, or all possible cuts of a small design.
    std::vector<Cut> run()
    {
        std::vector<PlacementShape> shapes;
        for (const PlacementShape shape : m_options.shapes) {
            if (shape == PlacementShape::Free)
                shapes.insert(shapes.end(), {PlacementShape::Given, PlacementShape::Linear, PlacementShape::Looped,
                                             PlacementShape::V, PlacementShape::Wave});
            else
                shapes.push_back(shape);
        }
        m_free = std::count(m_options.shapes.begin(), m_options.shapes.end(), PlacementShape::Free) > 0;
        std::vector<Cut> best;
        for (std::size_t i = 0; i < shapes.size(); ++i) {
            // The rest of the third, divided evenly.
            const auto left = m_began + m_options.search.timeLimit / 3 - Clock::now();
            m_until = Clock::now() + left / static_cast<std::ptrdiff_t>(shapes.size() - i);
            std::vector<Cut> cuts = starts(shapes[i]), all = everyCut(shapes[i]);
            m_everyCut = m_everyCut && !all.empty() && !m_free;
            if (all.empty())
                for (Cut& start : cuts)
                    climb(start);
            for (Cut& cut : all)
                if (over())
                    m_everyCut = false;
                else
                    evaluate(cut, impossible);
            cuts.insert(cuts.end(), all.begin(), all.end());
            if (m_free && !all.empty())
                climb(*std::min_element(cuts.begin(), cuts.end(),
                                        [](const Cut& a, const Cut& b) { return a.before(b); }));
            for (Cut& cut : cuts)
                if (cut.bound < impossible)
                    best.push_back(std::move(cut));
        }
        std::stable_sort(best.begin(), best.end(), [](const Cut& a, const Cut& b) { return a.before(b); });
        const auto same = [](const Cut& a, const Cut& b) { return a.layers == b.layers && a.devices == b.devices; };
        best.erase(std::unique(best.begin(), best.end(), same), best.end());
        // The design's own comes first: the result is never worse.
        const auto others =
            std::stable_partition(best.begin(), best.end(), [this](const Cut& c) { return isGiven(c); });
        if (!m_everyCut) {
            best.erase(std::remove_if(others, best.end(), [](const Cut& cut) { return cut.value == impossible; }),
                       best.end());
            best.resize(std::min<std::size_t>(best.size(), trialsInFull));
        }
        return best;
    }

    /// Iterated local search from a local optimum until `until`: a few random changes, then climb(). Returns the best
    /// cut found; its value is `impossible` when there is none.
    Cut kicked(const Cut& from, Clock::time_point until)
    {
        m_until = until;
        Cut start = from, best;
        evaluate(start, impossible);
        const auto below = [&](std::size_t count) { return static_cast<std::size_t>(m_random() % count); };
        const std::size_t stages = start.devices.size();
        while (stages > 1 && !over()) {
            Cut next = start;
            for (std::size_t kicks = 2 + below(3); kicks > 0; --kicks) {
                const std::size_t a = below(stages), b = below(stages);
                if (m_free && below(2) == 0)
                    std::swap(next.devices[a], next.devices[b]);
                else if (m_options.moveLayers && next.layers[a] > 1)
                    --next.layers[a], ++next.layers[b];
            }
            if (next.devices != start.devices)
                next.shape = PlacementShape::Free;
            evaluate(next, impossible);
            climb(next);
            if (next.before(start))
                best = start = std::move(next);
        }
        return best;
    }

    const Diagnostics& whyNone() const { return m_whyNone; }
    bool othersLeft() const { return !m_everyCut && (m_free || m_options.moveLayers); }
    sharding::SharedStages& sharedStages() { return m_sharedStages; }
    /// Is it the cut and the placement of the design itself?
    bool isGiven(const Cut& cut) const
    {
        return cut.layers == m_design.layersPerStage && cut.devices == m_design.schedule.deviceOfStage;
    }

private:
    bool over()
    {
        if (const auto now = Clock::now(); m_options.search.progress && now >= m_told + std::chrono::milliseconds(25)) {
            m_told = now;
            m_options.search.progress(
                {std::chrono::duration<double>(now - m_began).count(), m_best < impossible ? m_best : 0, 0});
        }
        return m_options.search.stop.stop_requested()
               || (m_options.search.timeLimit.count() > 0 && Clock::now() >= m_until);
    }

    std::vector<int> devicesOf(PlacementShape shape) const
    {
        return shape == PlacementShape::Given ? m_design.schedule.deviceOfStage
                                              : placementOf(shape, m_design.schedule.devices());
    }

    /// Every cut into the placement's stages, times every order of unequal devices; empty when they are too many.
    std::vector<Cut> everyCut(PlacementShape shape) const
    {
        const std::vector<int> devices = devicesOf(shape);
        const auto layers = static_cast<std::int64_t>(m_design.workload->layers.size()),
                   stages = static_cast<std::int64_t>(devices.size());
        std::vector<Cut> cuts;
        if (!m_options.moveLayers || layers < stages)
            return cuts;
        std::vector<int> names(m_design.schedule.devices());
        std::iota(names.begin(), names.end(), 0);
        std::int64_t count = 1;
        for (std::int64_t i = 1; i < stages && count <= mostCutsToTry; ++i)
            count = count * (layers - i) / i; // choose `stages` - 1 of the `layers` - 1 gaps
        for (std::size_t d = 2; m_devicesDiffer && d <= names.size() && count <= mostCutsToTry; ++d)
            count *= static_cast<std::int64_t>(d);
        if (count > mostCutsToTry)
            return cuts;
        Cut cut{shape, std::vector<int>(devices.size(), 1), devices};
        const auto give = [&](const auto& self, std::size_t stage, int left) -> void {
            if (stage + 1 == cut.layers.size()) {
                cut.layers[stage] = 1 + left;
                cuts.push_back(cut);
                return;
            }
            for (int more = 0; more <= left; ++more) {
                cut.layers[stage] = 1 + more;
                self(self, stage + 1, left - more);
            }
        };
        do {
            for (std::size_t s = 0; s < devices.size(); ++s)
                cut.devices[s] = names[devices[s]];
            give(give, 0, static_cast<int>(layers - stages));
        } while (m_devicesDiffer && std::next_permutation(names.begin(), names.end()));
        return cuts;
    }

    std::vector<Cut> starts(PlacementShape shape)
    {
        std::vector<Cut> starts;
        Cut cut{shape, {}, devicesOf(shape)};
        if (cut.devices == m_design.schedule.deviceOfStage)
            starts.emplace_back(cut).layers = m_design.layersPerStage;
        try {
            if (shape != PlacementShape::Given)
                starts.emplace_back(cut).layers =
                    evenPartition(*m_design.workload, static_cast<int>(cut.devices.size()));
            if (m_options.moveLayers)
                starts.emplace_back(cut).layers = byRate(cut.devices);
        } catch (const Error& error) {
            m_whyNone = error.diagnostics(); // fewer layers than stages
        }
        for (Cut& start : starts)
            evaluate(start, impossible);
        return starts;
    }

    /// Layers per stage so that every device has work in proportion to its rate.
    std::vector<int> byRate(const std::vector<int>& devices) const
    {
        const std::vector<Layer>& layers = m_design.workload->layers;
        const auto stages = devices.size();
        std::vector<double> share(stages);
        for (std::size_t s = 0; s < stages; ++s) {
            const DeviceSpec& device = m_design.cluster.devices[devices[s]];
            share[s] = std::max(1e-9, device.peakOf(productsOf(m_design)) * device.efficiency)
                       / static_cast<double>(std::count(devices.begin(), devices.end(), devices[s]));
        }
        const double shares = std::accumulate(share.begin(), share.end(), 0.0);
        double work = 0;
        for (const Layer& layer : layers)
            work += layer.work();
        std::vector<int> counts(stages, 0);
        double done = 0, until = share[0] / shares * work;
        std::size_t stage = 0;
        for (std::size_t l = 0; l < layers.size(); ++l) {
            const double own = layers[l].work();
            const bool mustMove = counts[stage] > 0 && stages - stage - 1 >= layers.size() - l;
            if (stage + 1 < stages && counts[stage] > 0 && (mustMove || done + own / 2 > until)) {
                ++stage;
                until += share[stage] / shares * work;
            }
            ++counts[stage];
            done += own;
        }
        if (counts.back() == 0)
            throw Error("partition",
                        fmt::format("the model has {} layers, fewer than {} stages", layers.size(), stages),
                        "use fewer stages");
        return counts;
    }

    /// Computes the cut's value, unless its bound is above `limit`.
    void evaluate(Cut& cut, Nanoseconds limit)
    {
        cut.value = cut.bound = impossible;
        Design design;
        try {
            design = withPlacement(m_design, cut.devices, cut.layers, &m_sharedStages);
        } catch (const Error& error) { // a group of devices that cannot hold its stage
            m_whyNone = error.diagnostics();
            return;
        }
        const SearchModel model(design, m_options.search.limit);
        std::vector<double> work(model.devices, 0);
        for (const SearchTask& task : model.tasks)
            work[task.device] += 1e-9 * static_cast<double>(task.duration);
        cut.unevenness = std::inner_product(work.begin(), work.end(), work.begin(), 0.0);
        for (std::size_t d = 0; d < work.size(); ++d)
            if (model.stagesOfDevice[d].empty())
                return; // a device would be idle
        const Nanoseconds bound = lowerBounds(model, m_options.search.objective).front().value;
        if (bound > limit)
            return;
        if (Diagnostics why = whyImpossible(model, m_options.search.limit); hasErrors(why)) {
            m_whyNone = std::move(why);
            return;
        }
        cut.bound = bound;
        m_everyCut = m_everyCut && model.tasks.size() <= mostBlocksToTry;
        PolicyRunner rules(model);
        LaneTimes times(model);
        for (const double share : {1.0, 0.5, 2.0})
            for (const bool fill : {false, true}) {
                Policy policy = rules.initial(share, 0);
                policy.fillFirst = fill;
                if (const auto lanes = rules.run(policy); lanes && times.run(*lanes))
                    cut.value = std::min(cut.value, times.value(*lanes, m_options.search.objective));
            }
    }

    /// Takes improving changes until there is none.
    void climb(Cut& cut)
    {
        const auto take = [&](Cut next) {
            evaluate(next, cut.value);
            const bool better = next.before(cut);
            if (better)
                cut = std::move(next);
            m_best = std::min(m_best, cut.value);
            return better;
        };
        const auto stages = cut.devices.size();
        std::vector<std::pair<std::size_t, std::size_t>> pairs;
        for (std::size_t a = 0; a < stages; ++a)
            for (std::size_t b = 0; b < stages; ++b)
                if (a != b)
                    pairs.emplace_back(a, b);
        for (bool changed = true; changed && !over();) {
            changed = false;
            std::shuffle(pairs.begin(), pairs.end(), m_random);
            for (const auto& [a, b] : pairs) {
                if (over())
                    return;
                if (m_options.moveLayers && cut.layers[a] > 1) {
                    Cut next = cut;
                    --next.layers[a];
                    ++next.layers[b];
                    changed = take(std::move(next)) || changed;
                }
                if (a > b || cut.devices[a] == cut.devices[b])
                    continue;
                if (m_devicesDiffer) {
                    Cut next = cut;
                    for (int& device : next.devices)
                        device = device == cut.devices[a]   ? cut.devices[b]
                                 : device == cut.devices[b] ? cut.devices[a]
                                                            : device;
                    changed = take(std::move(next)) || changed;
                }
                if (m_free) {
                    Cut next = cut;
                    next.shape = PlacementShape::Free;
                    std::swap(next.devices[a], next.devices[b]);
                    changed = take(std::move(next)) || changed;
                }
            }
        }
    }

    const Design& m_design;
    const PartitionOptions& m_options;
    const Clock::time_point m_began = Clock::now();
    Clock::time_point m_until, m_told = m_began;
    Nanoseconds m_best = impossible; ///< for the progress only
    std::mt19937_64 m_random;
    bool m_devicesDiffer = false, m_free = false;
    bool m_everyCut = true; ///< small design: every cut is searched in full
    Diagnostics m_whyNone;
    sharding::SharedStages m_sharedStages;
};

void refuse(const Design& design, const PartitionOptions& options)
{
    if (!options.search.locked.empty())
        throw Error("--lock", "blocks of stages that are cut anew cannot be kept in order",
                    "search the order alone, or lock nothing");
    if (!design.schedule.pins.empty())
        throw Error("schedule.pins", "pins hold blocks of stages that are cut anew",
                    "remove the pins, or search the order alone");
    if (std::ssize(design.cluster.devices) < design.schedule.devices())
        throw Error("cluster", "it describes fewer devices than the schedule has", "name a device or a cluster");
    const SearchModel searchable(design, options.search.limit); // throws for kinds that cannot be searched
    withPlacement(design, design.schedule.deviceOfStage, design.layersPerStage);
}

} // namespace

PartitionResult searchPartition(const Design& design, const PartitionOptions& options)
{
    refuse(design, options);
    const auto began = Clock::now();
    CutSearch cuts(design, options);
    std::vector<Cut> best = cuts.run();
    if (best.empty()) {
        if (hasErrors(cuts.whyNone()))
            throw Error(cuts.whyNone());
        throw Error("search", "no cut of the layers was found that fits", "allow more memory or time");
    }
    PartitionResult found;
    std::exception_ptr failure;
    const auto search = [&](Cut& cut, std::chrono::milliseconds time, const Schedule* hint) {
        SearchOptions own = options.search;
        own.timeLimit = options.search.timeLimit.count() > 0 ? std::max(time, std::chrono::milliseconds(1))
                                                             : options.search.timeLimit;
        if (hint != nullptr)
            own.hints.push_back(*hint);
        if (options.search.progress)
            own.progress = [&](SearchProgress now) {
                now.seconds = std::chrono::duration<double>(Clock::now() - began).count();
                options.search.progress(now);
            };
        const bool given = cuts.isGiven(cut);
        Design candidate = given ? design : withPlacement(design, cut.devices, cut.layers, &cuts.sharedStages());
        if (!given)
            own.given = "one after the other";
        try {
            SearchResult result = pipewright::search(candidate, own);
            found.trials.push_back({cut.shape, cut.layers, cut.devices, result.value, result.bound.value});
            cut.value = result.value;
            if (found.trials.size() == 1 || result.value < found.result.value) {
                candidate.schedule = result.schedule;
                candidate.buildingBlock.reset();
                found.design = std::move(candidate);
                found.result = std::move(result);
            }
        } catch (const Error&) {
            failure = std::current_exception(); // buffers that only the prediction counts may not fit
            cut.value = impossible;
        }
    };
    // Half of the rest compares the best cuts, half goes to the best of them.
    const auto left = [&] {
        return std::chrono::duration_cast<std::chrono::milliseconds>(began + options.search.timeLimit - Clock::now());
    };
    const auto half = left() / 2, each = half / static_cast<int>(best.size());
    const auto over = [&] {
        return options.search.stop.stop_requested() || (options.search.timeLimit.count() > 0 && left() < half);
    };
    for (Cut& cut : best)
        if (found.trials.empty() || (cut.bound < found.result.value && !over()))
            search(cut, each, nullptr);
        else
            cut.value = impossible;
    if (found.trials.empty())
        std::rethrow_exception(failure);
    std::stable_sort(best.begin(), best.end(), [](const Cut& a, const Cut& b) { return a.value < b.value; });
    const bool cancelled = options.search.stop.stop_requested();
    found.result.cancelled = cancelled;
    if (options.search.timeLimit.count() == 0 || cancelled)
        return found;
    if (!found.result.proved) {
        const Schedule hint = found.result.schedule;
        search(best.front(), left(), &hint);
    }
    // This cut's order is proved optimal, so the remaining time goes to other cuts.
    const auto least = options.search.timeLimit / 20;
    while (found.result.proved && cuts.othersLeft() && best.front().devices.size() > 1 && options.search.rounds == 0
           && left() > least && !options.search.stop.stop_requested()) {
        Cut next = cuts.kicked(best.front(), Clock::now() + left() / 2);
        if (next.bound >= found.result.value)
            continue;
        search(next, left() / 2, nullptr);
        if (next.value <= found.result.value)
            best.front() = std::move(next);
    }
    found.result.cancelled = options.search.stop.stop_requested();
    return found;
}

} // namespace pipewright
