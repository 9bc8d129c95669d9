// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/cuda/ncclgroup.h"

#include "core/base/diagnostic.h"
#include "executor/runtime/clock.h"

#include <chrono>
#include <fmt/format.h>
#include <mutex>
#include <thread>

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

/// What its device's thread calls and an abort from another one exclude each other: an abort frees what calls use. A
/// group of calls is one call in this.
class NcclMember final : public Communicator {
public:
    NcclMember(const CudaGpu& gpu, void* member) : m_gpu(gpu), m_table(*gpu.table), m_member(member) {}
    ~NcclMember() override { m_table.ncclClose(m_member); }
    NcclMember(const NcclMember&) = delete;
    NcclMember& operator=(const NcclMember&) = delete;

    void allReduce(Stream& stream, std::span<const float> from, std::span<float> to) override
    {
        call("add up with the others",
             [&] { return m_table.ncclAllReduce(m_member, from.data(), to.data(), count(from), handleOf(stream)); });
    }
    void allGather(Stream& stream, std::span<const float> mine, std::span<float> all) override
    {
        call("gather from the others",
             [&] { return m_table.ncclAllGather(m_member, mine.data(), all.data(), count(mine), handleOf(stream)); });
    }
    void reduceScatter(Stream& stream, std::span<const float> all, std::span<float> mine) override
    {
        call("add up a piece with the others", [&] {
            return m_table.ncclReduceScatter(m_member, all.data(), mine.data(), count(mine), handleOf(stream));
        });
    }
    void broadcast(Stream& stream, std::span<float> data, int root) override
    {
        call("hand a piece to the others",
             [&] { return m_table.ncclBroadcast(m_member, data.data(), count(data), root, handleOf(stream)); });
    }
    void reduce(Stream& stream, std::span<const float> from, std::span<float> to, int root) override
    {
        call("add up a piece for another",
             [&] { return m_table.ncclReduce(m_member, from.data(), to.data(), count(from), root, handleOf(stream)); });
    }
    void send(Stream& stream, std::span<const float> data, int to) override
    {
        call("send through NCCL", [&] {
            return m_table.ncclSendTo(m_member, to, data.data(), static_cast<std::int64_t>(data.size_bytes()),
                                      handleOf(stream));
        });
    }
    void receive(Stream& stream, std::span<float> data, int from) override
    {
        call("receive through NCCL", [&] {
            return m_table.ncclReceiveFrom(m_member, from, data.data(), static_cast<std::int64_t>(data.size_bytes()),
                                           handleOf(stream));
        });
    }
    void beginGroup() override
    {
        std::unique_lock lock(m_mutex);
        m_gpu.check(m_table.ncclGroup(1), "begin a group of NCCL");
        m_group = std::move(lock);
    }
    void endGroup() override
    {
        const std::unique_lock lock = std::move(m_group);
        m_gpu.check(m_table.ncclGroup(0), "end a group of NCCL");
    }
    void abort() override
    {
        const std::lock_guard lock(m_mutex);
        m_table.ncclAbort(m_member);
    }

private:
    template<typename Call>
    void call(const char* what, Call call)
    {
        std::unique_lock<std::mutex> own;
        if (!m_group)
            own = std::unique_lock(m_mutex);
        const int code = call();
        if (code == 0)
            return;
        const std::string why = m_table.lastError();
        if (const std::unique_lock group = std::move(m_group)) // nobody will end it
            m_table.ncclGroup(0);
        throw Error("GPU " + std::to_string(m_gpu.index), std::string("cannot ") + what + ": " + why);
    }

    CudaGpu m_gpu;
    const PipewrightCudaTable& m_table;
    void* const m_member;
    std::mutex m_mutex;                   ///< held while NCCL is called
    std::unique_lock<std::mutex> m_group; ///< of the device's thread alone: it is between begin and end
};

} // namespace

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

std::vector<void*> joinGroup(std::span<const CudaGpu> gpus, int multiprocessors, Nanoseconds deadline)
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
        why = whyNotJoined(table, members, deadline,
                           fmt::format("not all of the GPUs {} have come", fmt::join(all, ", ")));
    }
    if (why.empty() && table.ncclWarmUp(members.data(), ranks, deadline) != 0)
        why = table.lastError();
    if (why.empty())
        return members;
    for (void* member : members) {
        table.ncclAbort(member);
        table.ncclClose(member);
    }
    throw Error("GPU " + std::to_string(first.index), "cannot be connected by NCCL: " + why, "use --link copy");
}

std::vector<std::unique_ptr<Communicator>> joinNccl(std::span<const CudaGpu> gpus, Nanoseconds deadline)
{
    std::vector<std::unique_ptr<Communicator>> members;
    for (void* member : joinGroup(gpus, 0, deadline))
        members.push_back(std::make_unique<NcclMember>(gpus[members.size()], member));
    return members;
}

} // namespace pipewright
