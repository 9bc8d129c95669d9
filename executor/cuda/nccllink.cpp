// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/cuda/nccllink.h"

#include "core/base/diagnostic.h"

#include <set>
#include <utility>

namespace pipewright {

NcclOwner::NcclOwner() : m_thread([this] { work(); }) {}

NcclOwner::~NcclOwner()
{
    {
        const std::lock_guard lock(m_mutex);
        m_quit = true;
    }
    m_changed.notify_all();
    m_thread.join();
}

void NcclOwner::makeRoom(std::size_t jobs)
{
    const std::lock_guard lock(m_mutex);
    m_jobs.resize(m_jobs.size() + jobs);
}

void NcclOwner::push(const Job& job)
{
    if (m_count == m_jobs.size())
        throw Error("link", "more transfers than were announced");
    m_jobs[(m_first + m_count++) % m_jobs.size()] = job;
}

void NcclOwner::post(NcclOwner& first, NcclOwner& second, NcclWork& work, std::size_t index)
{
    {
        const std::scoped_lock lock(first.m_mutex, second.m_mutex);
        first.push({&work, index, true});
        second.push({&work, index, false});
    }
    first.m_changed.notify_all();
    second.m_changed.notify_all();
}

void NcclOwner::post(std::span<NcclOwner* const> owners, std::span<NcclWork* const> works)
{
    // Locks in a fixed order, since groups may have GPUs in common.
    const std::set<NcclOwner*> ordered(owners.begin(), owners.end());
    {
        std::vector<std::unique_lock<std::mutex>> locks;
        for (NcclOwner* owner : ordered)
            locks.emplace_back(owner->m_mutex);
        for (std::size_t i = 0; i < owners.size(); ++i)
            owners[i]->push({works[i], 0, true});
    }
    for (NcclOwner* owner : ordered)
        owner->m_changed.notify_all();
}

void NcclOwner::post(NcclWork& work, std::size_t index, bool first)
{
    {
        const std::lock_guard lock(m_mutex);
        push({&work, index, first});
    }
    m_changed.notify_all();
}

void NcclOwner::drain()
{
    std::unique_lock lock(m_mutex);
    m_changed.wait(lock, [this] { return m_count == 0 && !m_working; });
}

void NcclOwner::work()
{
    for (std::unique_lock lock(m_mutex);;) {
        m_changed.wait(lock, [this] { return m_quit || m_count > 0; });
        if (m_count == 0)
            return;
        const Job job = m_jobs[m_first];
        m_first = (m_first + 1) % m_jobs.size();
        --m_count;
        m_working = true;
        lock.unlock();
        job.work->issue(job.index, job.first);
        lock.lock();
        m_working = false;
        m_changed.notify_all();
    }
}

NcclLink::NcclLink(const CudaGpu& from, const CudaGpu& to, NcclOwner& fromOwner, NcclOwner& toOwner,
                   const LinkOptions& options, Nanoseconds deadline)
    : CudaLink(from, to, {.postings = options.postings, .mayBeSlowed = true}, nullptr, nullptr), // for a second stream
      m_fromOwner(fromOwner), m_toOwner(toOwner)
{
    if (from.table->ncclConnect(from.index, to.index, deadline, &m_sender, &m_receiver) != 0)
        throw Error("GPU " + std::to_string(from.index),
                    "cannot be connected with GPU " + std::to_string(to.index) + " by NCCL: " + from.table->lastError(),
                    "use --link copy");
    fromOwner.makeRoom(options.postings);
    toOwner.makeRoom(options.postings);
}

NcclLink::~NcclLink()
{
    m_fromOwner.drain();
    m_toOwner.drain();
    m_from.table->ncclClose(m_sender);
    m_to.table->ncclClose(m_receiver);
}

void NcclLink::move(std::size_t index)
{
    throwIfFailed(); // of an earlier transfer
    noteCopy(index, m_to);
    NcclOwner::post(m_fromOwner, m_toOwner, *this, index);
}

void NcclLink::issue(std::size_t index, bool sends)
{
    try {
        Side side;
        {
            const std::lock_guard lock(m_mutex);
            side = (sends ? m_sends : m_receives)[index];
        }
        const std::lock_guard lock(m_state);
        if (m_aborted)
            return;
        const PipewrightCudaTable& table = *m_from.table;
        const CudaBlockLabel label(sends ? m_from : m_to, {side.posting.task, "transfer"});
        // NCCL's kernel keeps multiprocessors until that of the other side runs too, so both wait for both sides.
        m_from.check(table.streamWaits(sends ? m_stream : m_arrival, m_events[index].receiverReady),
                     "wait for an event");
        if (sends)
            begin(index);
        else
            m_from.check(table.streamWaits(m_arrival, m_events[index].senderReady), "wait for an event");
        m_from.check(table.ncclGroup(1), "begin a group of NCCL");
        for (const Region& region : side.posting.regions)
            if (region.bytes > 0) {
                if (sends)
                    m_from.check(table.ncclSend(m_sender, region.data, region.bytes, m_stream), "send through NCCL");
                else
                    m_to.check(table.ncclReceive(m_receiver, region.data, region.bytes, m_arrival),
                               "receive through NCCL");
            }
        m_from.check(table.ncclGroup(0), "end a group of NCCL");
        sends ? depart(index) : arrive(index);
    } catch (...) {
        fail(std::current_exception());
    }
}

void NcclLink::fail(std::exception_ptr why)
{
    const std::lock_guard lock(m_state);
    if (!m_failure)
        m_failure = std::move(why);
}

void NcclLink::throwIfFailed()
{
    const std::lock_guard lock(m_state);
    if (m_failure)
        std::rethrow_exception(std::exchange(m_failure, nullptr));
}

void NcclLink::finished(std::vector<Copied>& to)
{
    throwIfFailed();
    CudaLink::finished(to);
}

void NcclLink::reset()
{
    m_fromOwner.drain();
    m_toOwner.drain();
    throwIfFailed();
    CudaLink::reset();
}

void NcclLink::abort()
{
    if (m_aborted.exchange(true))
        return;
    m_from.table->ncclAbort(m_sender);
    m_to.table->ncclAbort(m_receiver);
}

void NcclLink::awaitCalls()
{
    const std::lock_guard lock(m_state);
}

} // namespace pipewright
