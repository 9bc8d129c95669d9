// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/cuda/ncclgroup.h"

#include "core/base/diagnostic.h"
#include "core/base/formattedtext.h"
#include "executor/runtime/steadyclock.h"

#include <atomic>
#include <chrono>
#include <fmt/format.h>
#include <mutex>
#include <thread>
#include <utility>

namespace pipewright {

namespace {

std::int64_t count(std::span<const float> values)
{
    return static_cast<std::int64_t>(values.size());
}

void* handleOf(Stream& stream)
{
    return static_cast<CudaStream&>(stream).handle();
}

/// Collects the next NCCL call of each member of a group in this process; when all have asked, the owners make the
/// calls.
class NcclTurns {
public:
    explicit NcclTurns(std::vector<NcclOwner*> owners) : m_owners(std::move(owners)), m_turns(m_owners.size())
    {
        for (std::size_t rank = 0; rank < m_turns.size(); ++rank) {
            m_turns[rank].all = this;
            m_works.push_back(&m_turns[rank]);
            m_owners[rank]->makeRoom(1);
        }
    }

    void take(int rank, const std::function<void()>& calls)
    {
        std::unique_lock lock(m_mutex);
        Turn& own = m_turns[static_cast<std::size_t>(rank)];
        if (m_aborted)
            return;
        own.calls = &calls;
        own.state = Turn::State::Waits;
        if (++m_come == m_turns.size()) {
            m_come = 0;
            for (Turn& turn : m_turns)
                turn.state = Turn::State::Posted;
            NcclOwner::post(m_owners, m_works);
        }
        m_changed.wait(
            lock, [&] { return own.state == Turn::State::Made || (m_aborted && own.state == Turn::State::Waits); });
        own.calls = nullptr;
        if (own.failure)
            std::rethrow_exception(std::exchange(own.failure, nullptr));
    }
    void abort()
    {
        {
            const std::lock_guard lock(m_mutex);
            m_aborted = true;
        }
        m_changed.notify_all();
    }

private:
    struct Turn final : NcclWork {
        enum class State { Waits, Posted, Made };
        void issue(std::size_t, bool) override { all->make(*this); }
        NcclTurns* all = nullptr;
        const std::function<void()>* calls = nullptr;
        State state = State::Made;
        std::exception_ptr failure;
    };
    void make(Turn& turn)
    {
        std::exception_ptr failure;
        try {
            (*turn.calls)();
        } catch (...) {
            failure = std::current_exception();
        }
        const std::lock_guard lock(m_mutex); // held to the end: the waiting thread may be the last to own this object
        turn.failure = std::move(failure);
        turn.state = Turn::State::Made;
        m_changed.notify_all();
    }

    const std::vector<NcclOwner*> m_owners;
    std::vector<NcclWork*> m_works;
    std::mutex m_mutex; ///< guards what follows; only the owner uses `calls` of a posted turn
    std::condition_variable m_changed;
    std::vector<Turn> m_turns;
    std::size_t m_come = 0;
    bool m_aborted = false;
};

class LocalTurn final : public NcclTurn {
public:
    LocalTurn(std::shared_ptr<NcclTurns> turns, int rank) : m_turns(std::move(turns)), m_rank(rank) {}
    void take(const std::function<void()>& calls) override { m_turns->take(m_rank, calls); }
    void abort() override { m_turns->abort(); }

private:
    const std::shared_ptr<NcclTurns> m_turns;
    const int m_rank;
};

/// The owner calls NCCL behind a mutex. An abort from another thread does not take it, as it may have to end the call
/// that holds it; what calls use is freed behind it. A group of calls counts as one call.
class NcclMember final : public Communicator {
public:
    NcclMember(const CudaGpu& gpu, void* member, std::unique_ptr<NcclTurn> turn)
        : m_gpu(gpu), m_table(*gpu.table), m_member(member), m_turn(std::move(turn))
    {
    }
    ~NcclMember() override
    {
        if (!m_turn->canClose())
            m_table.ncclAbort(m_member);
        m_table.ncclClose(m_member);
    }
    NcclMember(const NcclMember&) = delete;
    NcclMember& operator=(const NcclMember&) = delete;

    void allReduce(Stream& stream, std::span<const float> from, std::span<float> to) override
    {
        call("add up with the others", stream, [=, this, on = handleOf(stream)] {
            return m_table.ncclAllReduce(m_member, from.data(), to.data(), count(from), on);
        });
    }
    void allGather(Stream& stream, std::span<const float> mine, std::span<float> all) override
    {
        call("gather from the others", stream, [=, this, on = handleOf(stream)] {
            return m_table.ncclAllGather(m_member, mine.data(), all.data(), count(mine), on);
        });
    }
    void reduceScatter(Stream& stream, std::span<const float> all, std::span<float> mine) override
    {
        call("add up a piece with the others", stream, [=, this, on = handleOf(stream)] {
            return m_table.ncclReduceScatter(m_member, all.data(), mine.data(), count(mine), on);
        });
    }
    void broadcast(Stream& stream, std::span<float> data, int root) override
    {
        call("hand a piece to the others", stream, [=, this, on = handleOf(stream)] {
            return m_table.ncclBroadcast(m_member, data.data(), count(data), root, on);
        });
    }
    void reduce(Stream& stream, std::span<const float> from, std::span<float> to, int root) override
    {
        call("add up a piece for another", stream, [=, this, on = handleOf(stream)] {
            return m_table.ncclReduce(m_member, from.data(), to.data(), count(from), root, on);
        });
    }
    void send(Stream& stream, std::span<const float> data, int to) override
    {
        call("send through NCCL", stream, [=, this, on = handleOf(stream)] {
            return m_table.ncclSendTo(m_member, to, data.data(), static_cast<std::int64_t>(data.size_bytes()), on);
        });
    }
    void receive(Stream& stream, std::span<float> data, int from) override
    {
        call("receive through NCCL", stream, [=, this, on = handleOf(stream)] {
            return m_table.ncclReceiveFrom(m_member, from, data.data(), static_cast<std::int64_t>(data.size_bytes()),
                                           on);
        });
    }
    void beginGroup() override { m_grouped = true; }
    void endGroup() override
    {
        m_grouped = false;
        const std::vector<Call> calls = std::exchange(m_calls, {});
        m_turn->take([&] { make(calls); });
    }
    void inTurn(const std::function<void()>& give) override
    {
        m_turn->take([&] {
            const std::lock_guard lock(m_mutex);
            if (!m_aborted) // captured calls would use memory that an abort has freed
                give();
        });
    }
    void abort() override
    {
        m_turn->abort();
        m_aborted = true;
        m_table.ncclAbort(m_member);
    }
    void awaitCalls() override { const std::lock_guard lock(m_mutex); }

private:
    struct Call {
        const char* what;
        CudaBlock block; ///< of which it is a part
        std::function<int()> make;
    };

    void call(const char* what, const Stream& stream, std::function<int()> make)
    {
        m_calls.push_back({what, static_cast<const CudaStream&>(stream).block(), std::move(make)});
        if (!m_grouped)
            endGroup();
    }
    /// Called by the owner.
    void make(const std::vector<Call>& calls)
    {
        const std::lock_guard lock(m_mutex);
        const CudaBlockLabel label(m_gpu, calls.empty() ? CudaBlock() : calls.front().block);
        const bool several = calls.size() > 1;
        if (several)
            m_gpu.check(m_table.ncclGroup(1), "begin a group of NCCL");
        for (const Call& call : calls) {
            if (call.make() == 0)
                continue;
            const std::string why = m_table.lastError();
            if (several) // the error path must end the group
                m_table.ncclGroup(0);
            throw Error("GPU " + std::to_string(m_gpu.index), std::string("cannot ") + call.what + ": " + why);
        }
        if (several)
            m_gpu.check(m_table.ncclGroup(0), "end a group of NCCL");
    }

    CudaGpu m_gpu;
    const PipewrightCudaTable& m_table;
    void* const m_member;
    const std::unique_ptr<NcclTurn> m_turn;
    std::mutex m_mutex; ///< held while NCCL is called
    std::atomic<bool> m_aborted{false};
    std::vector<Call> m_calls; ///< of the group since beginGroup()
    bool m_grouped = false;
};

} // namespace

std::unique_ptr<Communicator> createNcclMember(const CudaGpu& gpu, void* member, std::unique_ptr<NcclTurn> turn)
{
    return std::make_unique<NcclMember>(gpu, member, std::move(turn));
}

void giveUpTogether(const PipewrightCudaTable& table, std::span<Abortable* const> all)
{
    table.ncclGroup(1);
    for (Abortable* each : all)
        each->abort();
    for (Abortable* each : all)
        each->awaitCalls();
    table.ncclGroup(0);
}

std::string whyNotJoined(const PipewrightCudaTable& table, std::span<void* const> members, Nanoseconds deadline,
                         const std::string& late, const std::function<std::string()>& failureReason)
{
    const Nanoseconds start = steadyNow();
    for (std::size_t come = 0; come < members.size();) {
        std::int32_t joined = 0;
        if (table.ncclJoined(members[come], &joined) != 0)
            return table.lastError();
        if (joined) {
            ++come;
            continue;
        }
        if (std::string why = failureReason ? failureReason() : std::string(); !why.empty())
            return why;
        if (steadyNow() - start > deadline)
            return fmt::format("{} within {}", late, formatDuration(deadline));
        std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
    return {};
}

std::vector<void*> joinGroup(std::span<const CudaGpu> gpus, NcclUse use, int multiprocessors, Nanoseconds deadline)
{
    const CudaGpu& first = gpus.front();
    const PipewrightCudaTable& table = *first.table;
    const int ranks = static_cast<int>(gpus.size());
    std::uint8_t name[PIPEWRIGHT_NCCL_NAME];
    first.check(table.ncclName(name), "name a group of NCCL");
    std::vector<void*> members;
    std::string why;
    for (int rank = 0; rank < ranks && why.empty(); ++rank) {
        void* member = nullptr;
        const CudaGpu& gpu = gpus[rank];
        if (table.ncclJoin(gpu.index, name, rank, ranks, multiprocessors, &member) != 0)
            why = table.lastError();
        else
            members.push_back(member);
    }
    if (why.empty()) {
        std::vector<int> all;
        for (const CudaGpu& gpu : gpus)
            all.push_back(gpu.index);
        why =
            whyNotJoined(table, members, deadline, fmt::format("not all of the GPUs {} have come", joined(all, ", ")));
    }
    if (why.empty() && table.ncclWarmUp(members.data(), ranks, use == NcclUse::AllCollectives, deadline) != 0)
        why = table.lastError();
    if (why.empty())
        return members;
    for (void* member : members) {
        table.ncclAbort(member);
        table.ncclClose(member);
    }
    throw Error("GPU " + std::to_string(first.index), "cannot be connected by NCCL: " + why, "use --link copy");
}

std::vector<std::unique_ptr<Communicator>> joinNccl(std::span<const CudaGpu> gpus,
                                                    const std::vector<NcclOwner*>& owners, Nanoseconds deadline)
{
    const auto turns = std::make_shared<NcclTurns>(owners);
    std::vector<std::unique_ptr<Communicator>> members;
    for (void* member : joinGroup(gpus, NcclUse::AllCollectives, 0, deadline)) {
        const std::size_t rank = members.size();
        members.push_back(
            createNcclMember(gpus[rank], member, std::make_unique<LocalTurn>(turns, static_cast<int>(rank))));
    }
    return members;
}

} // namespace pipewright
