// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/runtime/partedpairs.h"

#include <array>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace pipewright {

namespace {

class TwoStreams {
public:
    TwoStreams(const PairTimes::Plan& plan, const std::function<void(std::size_t, std::size_t)>& doPart)
        : m_doPart(doPart)
    {
        std::array<std::size_t, 2> next{};
        std::array<std::size_t, 2> awaited{noPart, noPart}; // the last awaited part of each block
        for (const bool second : plan.order) {
            const std::size_t block = second, part = next[block]++;
            const BlockPart& what = plan.parts[block][part];
            m_issued[static_cast<std::size_t>(what.stream)].push_back({block, part, awaited[block]});
            if (what.awaited)
                awaited[block] = part;
        }
        for (const std::size_t block : {std::size_t{0}, std::size_t{1}})
            m_done[block].resize(plan.parts[block].size());
    }

    void run()
    {
        std::thread other([this] { runStream(PartStream::Communication); });
        runStream(PartStream::Compute);
        other.join();
        if (m_failure)
            std::rethrow_exception(m_failure);
    }

private:
    static constexpr std::size_t noPart = static_cast<std::size_t>(-1);
    struct Issued {
        std::size_t block, part, after; ///< after: the part of the same block that must be done before
    };

    void runStream(PartStream stream)
    {
        for (const Issued& each : m_issued[static_cast<std::size_t>(stream)]) {
            std::unique_lock lock(m_mutex);
            m_changed.wait(lock, [&] { return each.after == noPart || m_done[each.block][each.after]; });
            const bool failed = m_failure != nullptr;
            lock.unlock();
            std::exception_ptr failure;
            try {
                if (!failed)
                    m_doPart(each.block, each.part);
            } catch (...) {
                failure = std::current_exception();
            }
            lock.lock();
            if (failure && !m_failure)
                m_failure = failure;
            m_done[each.block][each.part] = true;
            m_changed.notify_all();
        }
    }

    const std::function<void(std::size_t, std::size_t)>& m_doPart;
    std::array<std::vector<Issued>, partStreamCount> m_issued;
    std::array<std::vector<bool>, 2> m_done; ///< per block and part
    std::exception_ptr m_failure;            ///< the first; the remaining parts are then skipped
    std::mutex m_mutex;
    std::condition_variable m_changed;
};

} // namespace

std::map<TaskId, PairTimes::Plan> partedPairs(const Program& program, const Costs& costs)
{
    std::map<TaskId, PairTimes::Plan> pairs;
    PairTimes times(costs);
    for (const Program::Overlap& pair : program.overlaps) {
        PairTimes::Plan plan = times.plan(program, pair);
        if (plan.isComputed())
            pairs.emplace_hint(pairs.end(), pair.first, std::move(plan));
    }
    return pairs;
}

void runParts(const PairTimes::Plan& plan, const std::function<void(std::size_t, std::size_t)>& doPart)
{
    TwoStreams(plan, doPart).run();
}

} // namespace pipewright
