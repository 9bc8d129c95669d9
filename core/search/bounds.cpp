// SPDX-License-Identifier: GPL-3.0-or-later
// Lower bounds from extremes per stage (least durations, delays and bytes): work, memory, way, area and rounds per
// device, and the longest path. O(devices² + tasks).
#include "core/search/bounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

namespace pipewright {

namespace {

/// Extremes over the microbatches of a stage: least times and bytes, longest times.
struct StageExtremes {
    Nanoseconds leastF = 0, leastR = 0, leastB = 0, leastW = 0; ///< B: the input gradient, or a full backward
    Nanoseconds mostF = 0, mostR = 0, mostB = 0, mostW = 0;
    Nanoseconds downDelay = 0, upDelay = 0; ///< least, of the value that arrives for F and for B
    Bytes live = 0, owed = 0;               ///< least bytes from F to B, and from B to W
    Bytes again = 0;                        ///< least bytes on top of `live` from R to B
    Bytes atForward = 0, atBackward = 0;    ///< least bytes on top of `live` while F, or B, runs
};

/// Work that needs `bytes` of memory at a time.
struct Item {
    Nanoseconds time;
    Bytes bytes;
};

struct OfDevice {
    int first = 0, last = 0; ///< its lowest and highest stage
    Nanoseconds work = 0, warm = 0, cool = 0;
    Nanoseconds toLastBackward = 0; ///< from the device's first block to the end of its last B
    bool apart = false;             ///< warm-up and cool-down cannot coincide
    // For the text:
    bool memoryHolds = false;          ///< memory keeps it from working more
    std::optional<long long> forwards; ///< the most that memory holds before the first gradient, where that is known
};

class Bounds {
public:
    Bounds(const SearchModel& model, SearchObjective objective, Patience& patience)
        : m_model(model), m_objective(objective)
    {
        collectStages(patience);
        collectWork(patience);
        for (int d = 0; d < model.devices; ++d)
            m_devices.push_back(model.stagesOfDevice[d].empty() ? OfDevice{} : lookAt(d));
    }

    std::vector<SearchBound> all()
    {
        for (int d = 0; d < m_model.devices; ++d)
            if (!m_model.stagesOfDevice[d].empty())
                ofDevice(d);
        std::vector<SearchBound> bounds;
        for (const char* name : {"work", "memory", "way", "area", "rounds", "path"}) {
            const SearchBound* best = nullptr;
            for (const SearchBound& b : m_found)
                if (b.name == name && (best == nullptr || b.value > best->value))
                    best = &b;
            if (best != nullptr)
                bounds.push_back(*best);
        }
        // Among equal bounds the simplest reason comes first.
        std::stable_sort(bounds.begin(), bounds.end(), [](const auto& a, const auto& b) { return a.value > b.value; });
        if (bounds.empty())
            bounds.push_back({0, 0, "work", "there is nothing to do"});
        return bounds;
    }

private:
    const StageExtremes& stage(int s) const { return m_stages[s]; }
    const OfDevice& device(int d) const { return m_devices[d]; }

    void collectStages(Patience& patience)
    {
        m_stages.resize(m_model.stages);
        for (int s = 0; s < m_model.stages; ++s)
            for (int m = 0; m < m_model.microbatches; ++m) {
                patience.spend(1);
                const auto task = [&](std::int32_t id) -> const SearchTask& { return m_model.tasks[id]; };
                const SearchTask &f = task(m_model.forward(s, m)), &b = task(m_model.backward(s, m));
                const auto lengthOf = [&](std::int32_t id) { return id < 0 ? 0 : task(id).duration; };
                const Nanoseconds w = lengthOf(m_model.weightGrad(s, m)), r = lengthOf(m_model.recompute(s, m));
                const SearchModel::Kept kept = m_model.kept(s, m);
                StageExtremes& x = m_stages[s];
                const auto least = [m](auto& all, auto one) { all = m == 0 ? one : std::min(all, one); };
                const auto most = [](auto& all, auto one) { all = std::max(all, one); };
                least(x.leastF, f.duration), least(x.leastB, b.duration), least(x.leastW, w), least(x.leastR, r);
                most(x.mostF, f.duration), most(x.mostB, b.duration), most(x.mostW, w), most(x.mostR, r);
                least(x.downDelay, f.delay), least(x.upDelay, b.delay);
                least(x.live, kept.untilBackward());
                least(x.again, kept.beforeBackward - kept.untilBackward());
                least(x.owed, std::max<Bytes>(0, kept.afterBackward));
                least(x.atForward, f.passing), least(x.atBackward, b.taken + b.passing);
            }
    }

    /// One pass for all devices, since a pass over millions of tasks takes a good part of a second.
    void collectWork(Patience& patience)
    {
        m_work.resize(m_model.devices, 0);
        m_weightGrads = m_work;
        for (const SearchTask& task : m_model.tasks) {
            patience.spend(1);
            m_work[task.device] += task.duration;
            if (task.op == Op::W)
                m_weightGrads[task.device] += task.duration;
        }
    }

    /// From the start of F in stage `from` to the start of F in stage `to`, later or the same.
    Nanoseconds down(int from, int to) const
    {
        Nanoseconds time = 0;
        for (int s = from; s < to; ++s)
            time += stage(s).leastF + stage(s + 1).downDelay;
        return time;
    }
    /// From the end of B in stage `from` to the end of B in stage `to`, earlier or the same.
    Nanoseconds up(int from, int to) const
    {
        Nanoseconds time = 0;
        for (int s = from; s > to; --s)
            time += stage(s - 1).upDelay + stage(s - 1).leastB;
        return time;
    }
    int bottom() const { return m_model.stages - 1; }
    /// From the end of F in stage s to the start of B there. What the stage makes again it makes meanwhile.
    Nanoseconds away(int s) const
    {
        if (s == bottom())
            return stage(s).leastR;
        const Nanoseconds there = down(s, bottom()) - stage(s).leastF + stage(bottom()).leastF,
                          back = stage(bottom()).leastB + up(bottom(), s) - stage(s).leastB;
        return std::max(stage(s).leastR, there + stage(bottom()).leastR + back);
    }

    /// Fractional knapsack: the most time of items within `capacity` bytes, at most `each` copies of every one.
    static Nanoseconds mostWork(std::vector<Item> items, Bytes capacity, int each)
    {
        if (capacity < 0)
            return 0;
        // Items of zero time have no ratio to sort by.
        std::erase_if(items, [](const Item& item) { return item.time <= 0; });
        Bytes grain = 0;
        for (const Item& item : items)
            grain = std::gcd(grain, item.bytes);
        if (grain > 0)
            capacity -= capacity % grain;
        std::sort(items.begin(), items.end(), [](const Item& a, const Item& b) {
            return static_cast<long double>(a.time) * static_cast<long double>(b.bytes)
                   > static_cast<long double>(b.time) * static_cast<long double>(a.bytes);
        });
        Nanoseconds time = 0;
        for (const Item& item : items) {
            const Bytes wanted = item.bytes * each;
            if (wanted <= capacity) {
                capacity -= wanted;
                time += item.time * each;
                continue;
            }
            const long double share = static_cast<long double>(item.time) * static_cast<long double>(capacity)
                                      / static_cast<long double>(item.bytes);
            // Exact where whole items fit, else rounded up, so that this stays an upper limit.
            return time
                   + (capacity % item.bytes == 0 ? item.time * (capacity / item.bytes)
                                                 : static_cast<Nanoseconds>(share) + 1);
        }
        return time;
    }

    OfDevice lookAt(int d)
    {
        const std::vector<int>& stages = m_model.stagesOfDevice[d];
        const Bytes capacity = m_model.capacity[d];
        const int count = m_model.microbatches;
        OfDevice x;
        x.first = stages.front();
        x.last = stages.back();
        std::vector<Item> forwards, backwards, owed;
        Bytes least = 0, atForward = std::numeric_limits<Bytes>::max(), smallest = atForward;
        bool again = false;
        for (const int s : stages) {
            const StageExtremes& e = stage(s);
            forwards.push_back({e.mostF, e.live});
            forwards.push_back({e.mostR, e.again}); // what was forwarded may be made again at once
            backwards.push_back({e.mostR + e.mostB + e.mostW, e.live});
            backwards.push_back({e.mostW, e.owed});
            owed.push_back({e.mostW, e.owed});
            atForward = std::min(atForward, e.atForward);
            smallest = std::min(smallest, e.live);
            least += e.live * count;
            again = again || e.again > 0;
        }
        x.work = m_work[d];
        const StageExtremes &top = stage(x.first), &low = stage(x.last);
        x.apart = least > capacity;
        // All are held when the first backward runs; forwards are also held when the last of them runs, but what is
        // made again may be made after it.
        const Bytes capacityForForwards = capacity - (again ? low.atBackward : std::max(atForward, low.atBackward));
        const Nanoseconds untilGradient = low.leastF + down(x.first, x.last) + away(x.last);
        const Nanoseconds fits = mostWork(forwards, capacityForForwards, count);
        x.warm = std::max<Nanoseconds>(0, untilGradient - fits);
        if (smallest > 0 && capacityForForwards / smallest < static_cast<long long>(stages.size()) * count)
            x.forwards = std::max<long long>(0, capacityForForwards / smallest);
        const Nanoseconds lastAway = away(x.last) + low.leastB + up(x.last, x.first);
        const Nanoseconds workable = mostWork(backwards, capacity, count);
        x.cool = std::max<Nanoseconds>(0, lastAway + top.leastW - workable);
        x.memoryHolds = x.apart || fits < mostWork(forwards, SearchModel::noCapacity, count);
        const Nanoseconds putOff = std::min(
            top.mostW + mostWork(owed, capacity - top.live - top.again - top.atBackward, count), m_weightGrads[d]);
        const Nanoseconds end = std::max(-putOff, lastAway - workable);
        x.toLastBackward = x.apart ? x.warm + x.work + end : x.work + std::max(x.warm - putOff, end);
        return x;
    }

    void ofDevice(int d)
    {
        const OfDevice& x = device(d);
        const bool whole = m_objective == SearchObjective::Makespan;
        const Nanoseconds arrival = whole ? down(0, x.first) : 0, before = arrival - m_model.lead(m_objective, d);
        const Nanoseconds after = whole ? m_model.updates[d] : 0;
        const std::string work =
            formatDuration(x.work) + (m_model.hostGaps ? " of work and gaps of the host" : " of work");
        const auto note = [&](Nanoseconds value, const char* name, std::string why) {
            m_found.push_back({before + value + after, d, name, std::move(why)});
        };
        note(x.work, "work",
             arrival > 0 ? fmt::format("device {} has {} and its first input arrives after {}", d, work,
                                       formatDuration(arrival))
                         : fmt::format("device {} has {}", d, work));
        if (const Nanoseconds idle = x.apart ? x.warm + x.cool : std::max(x.warm, x.cool); idle > 0)
            note(x.work + idle, "memory", fmt::format("{}, beside {}", whyIdle(x, d), work));
        const Nanoseconds path = down(x.first, x.last) + low(x) + up(x.last, x.first) + stage(x.first).leastW;
        note(path, "path", fmt::format("one microbatch comes back to device {} after {}", d, formatDuration(path)));
        ofArea(d, before + after);
        ofRounds(d, before + after);
        for (int via = 0; via < m_model.devices; ++via)
            if (!m_model.stagesOfDevice[via].empty() && device(via).first >= x.first)
                ofWay(d, via, before + after);
    }

    /// When the device idles and why: a limit that holds, or having too little to do.
    static std::string whyIdle(const OfDevice& x, int d)
    {
        std::string idle;
        if (x.warm > 0 && (x.apart || x.warm >= x.cool))
            idle = formatDuration(x.warm) + " before its first gradient";
        if (x.cool > 0 && (x.apart || x.cool >= x.warm))
            idle += (idle.empty() ? "" : " and ") + formatDuration(x.cool) + " behind its last forward";
        if (!x.memoryHolds)
            return fmt::format("device {} has too little to do while its gradients are on the way: it idles for {}", d,
                               idle);
        return fmt::format("memory holds {} on device {}, so it idles for {}",
                           x.forwards ? fmt::format("at most {} forwards", *x.forwards) : "not every forward", d, idle);
    }

    Nanoseconds low(const OfDevice& x) const { return stage(x.last).leastF + away(x.last) + stage(x.last).leastB; }

    void ofWay(int d, int via, Nanoseconds outside)
    {
        const OfDevice &x = device(d), &y = device(via);
        const Nanoseconds there = down(x.first, y.first), back = up(y.first, x.first) + stage(x.first).leastW;
        if (const Nanoseconds value = outside + there + y.toLastBackward + back; value > bestOf("way"))
            m_found.push_back(
                {value, d, "way",
                 fmt::format(
                     "device {} needs {} from its first block to its last gradient at least; the way there from "
                     "device {} takes {} and the way back, with the last weight gradient, {}",
                     via, formatDuration(y.toLastBackward), d, formatDuration(there), formatDuration(back))});
    }

    /// Area: the sum of activation bytes × lifetime (F to W) is at most memory × time.
    void ofArea(int d, Nanoseconds outside)
    {
        Bytes capacity = m_model.capacity[d];
        if (capacity <= 0 || capacity == SearchModel::noCapacity)
            return;
        long double area = 0;
        Bytes grain = 0;
        for (const int s : m_model.stagesOfDevice[d]) {
            const StageExtremes& e = stage(s);
            area += static_cast<long double>(m_model.microbatches)
                    * (static_cast<long double>(e.live) * static_cast<long double>(e.leastF + away(s) + e.leastB)
                       + static_cast<long double>(e.again) * static_cast<long double>(e.leastR + e.leastB)
                       + static_cast<long double>(e.owed) * static_cast<long double>(e.leastW));
            grain = std::gcd(std::gcd(std::gcd(grain, e.live), e.again), e.owed);
        }
        if (grain > 0)
            capacity -= capacity % grain;
        if (area <= 0 || capacity <= 0)
            return;
        const auto span = static_cast<Nanoseconds>(area / static_cast<long double>(capacity) * (1 - 1e-15L));
        m_found.push_back(
            {outside + span, d, "area",
             fmt::format(
                 "the activations of device {} are live for so long that its memory is taken for {} even without "
                 "a gap",
                 d, formatDuration(span))});
    }

    /// Rounds: if memory holds n microbatches, F number n + 1 starts after the first release, n + 2 after the second,
    /// …; so every n microbatches take one round trip, and their forwards run one after another.
    void ofRounds(int d, Nanoseconds outside)
    {
        const std::vector<int>& stages = m_model.stagesOfDevice[d];
        const StageExtremes& e = stage(stages.front());
        const Bytes capacity = m_model.capacity[d], least = e.owed > 0 ? std::min(e.live, e.owed) : e.live;
        if (capacity == SearchModel::noCapacity || least <= 0 || capacity < e.live)
            return;
        const Bytes live = 1 + (capacity - e.live) / least;
        if (live >= m_model.microbatches)
            return;
        const Nanoseconds behind = e.owed > 0 ? 0 : e.leastW; // a W that holds no memory may run after the round
        const Nanoseconds round = e.leastF + away(stages.front()) + e.leastB + e.leastW - behind;
        const Nanoseconds last =
            (m_model.microbatches - 1) / live * round + (m_model.microbatches - 1) % live * e.leastF;
        m_found.push_back(
            {outside + last + round + behind, d, "rounds",
             fmt::format("memory holds {} microbatches of stage {} at once, and each is kept for {} at least: its {} "
                         "microbatches take {}",
                         live, stages.front(), formatDuration(round), m_model.microbatches,
                         formatDuration(last + round + behind))});
    }

    Nanoseconds bestOf(const std::string& name) const
    {
        Nanoseconds best = -1;
        for (const SearchBound& b : m_found)
            if (b.name == name)
                best = std::max(best, b.value);
        return best;
    }

    const SearchModel& m_model;
    SearchObjective m_objective;
    std::vector<StageExtremes> m_stages;
    std::vector<Nanoseconds> m_work, m_weightGrads; ///< per device
    std::vector<OfDevice> m_devices;
    std::vector<SearchBound> m_found;
};

} // namespace

std::vector<SearchBound> lowerBounds(const SearchModel& model, SearchObjective objective, Patience patience)
{
    return Bounds(model, objective, patience).all();
}

} // namespace pipewright
