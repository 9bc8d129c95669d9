// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/cuda/ncclgroup.h"

#include "core/base/diagnostic.h"

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

class NcclMember final : public Communicator {
public:
    NcclMember(const CudaGpu& gpu, void* member) : m_gpu(gpu), m_table(*gpu.table), m_member(member) {}
    ~NcclMember() override { m_table.ncclClose(m_member); }
    NcclMember(const NcclMember&) = delete;
    NcclMember& operator=(const NcclMember&) = delete;

    void allReduce(Stream& stream, std::span<const float> from, std::span<float> to) override
    {
        m_gpu.check(m_table.ncclAllReduce(m_member, from.data(), to.data(), count(from), handleOf(stream)),
                    "add up with the others");
    }
    void allGather(Stream& stream, std::span<const float> mine, std::span<float> all) override
    {
        m_gpu.check(m_table.ncclAllGather(m_member, mine.data(), all.data(), count(mine), handleOf(stream)),
                    "gather from the others");
    }
    void reduceScatter(Stream& stream, std::span<const float> all, std::span<float> mine) override
    {
        m_gpu.check(m_table.ncclReduceScatter(m_member, all.data(), mine.data(), count(mine), handleOf(stream)),
                    "add up a piece with the others");
    }
    void broadcast(Stream& stream, std::span<float> data, int root) override
    {
        m_gpu.check(m_table.ncclBroadcast(m_member, data.data(), count(data), root, handleOf(stream)),
                    "hand a piece to the others");
    }
    void reduce(Stream& stream, std::span<const float> from, std::span<float> to, int root) override
    {
        m_gpu.check(m_table.ncclReduce(m_member, from.data(), to.data(), count(from), root, handleOf(stream)),
                    "add up a piece for another");
    }
    void send(Stream& stream, std::span<const float> data, int to) override
    {
        m_gpu.check(m_table.ncclSendTo(m_member, to, data.data(), static_cast<std::int64_t>(data.size_bytes()),
                                       handleOf(stream)),
                    "send through NCCL");
    }
    void receive(Stream& stream, std::span<float> data, int from) override
    {
        m_gpu.check(m_table.ncclReceiveFrom(m_member, from, data.data(), static_cast<std::int64_t>(data.size_bytes()),
                                            handleOf(stream)),
                    "receive through NCCL");
    }
    void beginGroup() override { m_gpu.check(m_table.ncclGroup(1), "begin a group of NCCL"); }
    void endGroup() override { m_gpu.check(m_table.ncclGroup(0), "end a group of NCCL"); }
    void abort() override { m_table.ncclAbort(m_member); }

private:
    CudaGpu m_gpu;
    const PipewrightCudaTable& m_table;
    void* const m_member;
};

} // namespace

std::vector<std::unique_ptr<Communicator>> joinNccl(std::span<const CudaGpu> gpus)
{
    std::vector<std::unique_ptr<Communicator>> members;
    std::vector<void*> handles;
    const CudaGpu& first = gpus.front();
    std::uint8_t name[PIPEWRIGHT_NCCL_NAME];
    first.check(first.table->ncclName(name), "name a group of NCCL");
    first.check(first.table->ncclGroup(1), "begin a group of NCCL");
    const int ranks = static_cast<int>(gpus.size());
    for (int rank = 0; rank < ranks; ++rank) {
        const CudaGpu& gpu = gpus[static_cast<std::size_t>(rank)];
        void* member = nullptr;
        gpu.check(gpu.table->ncclJoin(gpu.index, name, rank, ranks, 0, &member), "join the others through NCCL");
        members.push_back(std::make_unique<NcclMember>(gpu, member));
        handles.push_back(member);
    }
    first.check(first.table->ncclGroup(0), "be connected by NCCL");
    first.check(first.table->ncclWarmUp(handles.data(), ranks), "be connected by NCCL");
    return members;
}

} // namespace pipewright
