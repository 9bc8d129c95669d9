// SPDX-License-Identifier: GPL-3.0-or-later
// NCCL's all-reduce of two ranks (ncclAllReduce, in place). Issued by the owner of each GPU once both sides are posted;
// events mark its start and its end.
#include "executor/cuda/ncclsum.h"

#include "core/base/diagnostic.h"
#include "executor/cuda/cudaclock.h"
#include "executor/cuda/ncclgroup.h"

#include <algorithm>
#include <utility>

namespace pipewright {

namespace {

constexpr int multiprocessors = 4; // that a sum takes from concurrent maths

} // namespace

NcclSum::NcclSum(std::array<int, 2> devices, std::array<CudaGpu, 2> gpus, std::array<NcclOwner*, 2> owners,
                 std::size_t sums, Nanoseconds deadline)
    : m_devices(devices), m_gpus(gpus), m_owners(owners), m_sums(sums)
{
    const PipewrightCudaTable& table = *gpus[0].table;
    const std::vector<void*> members = joinGroup(gpus, NcclUse::AllReduce, multiprocessors, deadline);
    std::copy(members.begin(), members.end(), m_members.begin());
    for (std::size_t i = 0; i < 2; ++i) {
        gpus[i].check(table.createStream(gpus[i].index, gpus[i].slice, &m_streams[i]), "create a stream");
        for (auto& sides : m_sums)
            for (void** event : {&sides[i].ready, &sides[i].started})
                gpus[i].check(table.createEvent(gpus[i].index, event), "create an event");
        owners[i]->makeRoom(sums);
    }
    m_inFlight.reserve(sums);
}

NcclSum::~NcclSum()
{
    for (std::size_t i = 0; i < 2; ++i)
        m_owners[i]->drain();
    for (std::size_t i = 0; i < 2; ++i) {
        const PipewrightCudaTable& table = *m_gpus[i].table;
        table.ncclClose(m_members[i]);
        for (const auto& sides : m_sums)
            for (void* event : {sides[i].ready, sides[i].started})
                table.destroyEvent(event);
        table.destroyStream(m_streams[i]);
    }
}

void NcclSum::post(std::size_t index, int device, Stream& stream, const Posting& posting)
{
    throwIfFailed(); // of an earlier sum
    const std::size_t own = device == m_devices[0] ? 0 : 1;
    const std::lock_guard lock(m_mutex);
    Side &side = m_sums.at(index)[own], &other = m_sums[index][1 - own];
    m_gpus[own].check(m_gpus[own].table->recordEvent(side.ready, static_cast<CudaStream&>(stream).handle()),
                      "record an event");
    side.posting = posting;
    side.values = posting.regions.front();
    side.posted = true;
    if (!other.posted)
        return;
    if (side.values.bytes != other.values.bytes || side.posting.task != other.posting.task)
        throw Error("device " + std::to_string(device), "is to add up what the other device does not have",
                    "compile the schedule again");
    if (posting.timed)
        m_inFlight.push_back(index);
    NcclOwner::post(*m_owners[0], *m_owners[1], *this, index);
}

void NcclSum::issue(std::size_t index, bool first)
{
    const std::size_t own = first ? 0 : 1;
    const CudaGpu& gpu = m_gpus[own];
    const PipewrightCudaTable& table = *gpu.table;
    try {
        Side side;
        {
            const std::lock_guard lock(m_mutex);
            side = m_sums[index][own];
        }
        const std::lock_guard lock(m_state);
        if (m_aborted)
            return;
        gpu.check(table.streamWaits(m_streams[own], side.ready), "wait for an event");
        if (side.posting.timed)
            gpu.check(table.recordEvent(side.started, m_streams[own]), "record an event");
        auto* values = reinterpret_cast<float*>(side.values.data);
        gpu.check(table.ncclAllReduce(m_members[own], values, values,
                                      side.values.bytes / static_cast<Bytes>(sizeof(float)), m_streams[own]),
                  "add up with another GPU through NCCL");
        cudaEvent(side.posting.done).post(m_streams[own]);
    } catch (...) {
        const std::lock_guard lock(m_state);
        if (!m_failure)
            m_failure = std::current_exception();
    }
}

void NcclSum::throwIfFailed()
{
    const std::lock_guard lock(m_state);
    if (m_failure)
        std::rethrow_exception(std::exchange(m_failure, nullptr));
}

/// Reports sums from when the first device's values were complete, by the events of its GPU.
void NcclSum::finished(std::vector<Copied>& to)
{
    throwIfFailed();
    const std::lock_guard lock(m_mutex);
    std::erase_if(m_inFlight, [&](std::size_t index) {
        const Side& side = m_sums[index][0];
        CudaEvent& done = cudaEvent(side.posting.done);
        if (!done.complete())
            return false;
        to.push_back(
            {side.posting.task, m_gpus[0].clock->timeOf(side.started), m_gpus[0].clock->timeOf(done.handle())});
        return true;
    });
}

void NcclSum::reset()
{
    for (NcclOwner* owner : m_owners)
        owner->drain();
    throwIfFailed();
    const std::lock_guard lock(m_mutex);
    for (auto& sides : m_sums)
        for (Side& side : sides)
            side.posted = false;
    m_inFlight.clear();
}

void NcclSum::abort()
{
    if (m_aborted.exchange(true))
        return;
    for (std::size_t i = 0; i < 2; ++i)
        m_gpus[i].table->ncclAbort(m_members[i]);
}

void NcclSum::awaitCalls()
{
    const std::lock_guard lock(m_state);
}

} // namespace pipewright
