// SPDX-License-Identifier: GPL-3.0-or-later
// Each member offers its n-th turn to process 0, which releases it when all have offered. Two messages per member and
// turn.
#include "executor/mpi/rankgroup.h"

#include "core/base/diagnostic.h"
#include "core/base/formattedtext.h"
#include "executor/cuda/ncclgroup.h"

#include <array>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <utility>
#include <vector>

namespace pipewright {

namespace {

class RankTurn final : public NcclTurn, private LinkEnd, private NcclWork {
public:
    RankTurn(const RankGpu& own, std::uint32_t channel, int first, int members)
        : m_own(own), m_channel(channel), m_first(first), m_members(members)
    {
        own.owner.makeRoom(1);
        own.hub.setLink(channel, this);
    }
    ~RankTurn() override
    {
        m_own.hub.setLink(m_channel, nullptr);
        m_own.owner.drain();
    }
    RankTurn(const RankTurn&) = delete;
    RankTurn& operator=(const RankTurn&) = delete;

    void take(const std::function<void()>& calls) override
    {
        std::uint32_t turn = 0;
        {
            const std::lock_guard lock(m_mutex);
            if (m_aborted)
                return;
            m_calls = &calls;
            turn = m_next++;
        }
        m_own.order.offerOfGroup(m_channel, turn, m_first, m_members);
        std::unique_lock lock(m_mutex);
        m_changed.wait(lock, [&] { return m_made > turn || (m_aborted && !m_posted); });
        m_calls = nullptr;
        if (m_failure)
            std::rethrow_exception(std::exchange(m_failure, nullptr));
    }
    void abort() override
    {
        {
            const std::lock_guard lock(m_mutex);
            m_aborted = true;
        }
        m_changed.notify_all();
    }
    bool canClose() const override { return m_own.hub.failureReason().empty(); }

private:
    std::vector<Region> place(const Message&) override { return {}; }
    /// On the hub's thread: all members have offered this turn.
    void received(const Message& message) override
    {
        const std::lock_guard lock(m_mutex);
        if (m_aborted || message.sequence != m_made || !m_calls)
            return;
        m_posted = true;
        m_own.owner.post(*this, message.sequence, true);
    }
    /// On the owner's thread. The calls stay valid while the turn is posted.
    void issue(std::size_t, bool) override
    {
        std::exception_ptr failure;
        try {
            (*m_calls)();
        } catch (...) {
            failure = std::current_exception();
        }
        const std::lock_guard lock(m_mutex); // to the end: the waiter may then destroy this object
        m_failure = std::move(failure);
        m_posted = false;
        ++m_made;
        m_changed.notify_all();
    }

    const RankGpu m_own;
    const std::uint32_t m_channel;
    const int m_first, m_members;
    std::mutex m_mutex; ///< guards the members below, except that only the owner uses the calls of a posted turn
    std::condition_variable m_changed;
    const std::function<void()>* m_calls = nullptr;
    std::uint32_t m_next = 0, m_made = 0; ///< turns
    bool m_posted = false, m_aborted = false;
    std::exception_ptr m_failure;
};

using Name = std::array<std::uint8_t, PIPEWRIGHT_NCCL_NAME>;

/// The first member names the group. No process waits in NCCL before all members are known to be there.
Name agreedName(const RankGpu& own, std::span<const int> members, std::uint32_t channel)
{
    RankHub& hub = own.hub;
    Name name{};
    if (hub.self() != members.front()) {
        hub.sendSetup(members.front(), own.order.arrivalNumber(hub.self()), {});
        const UnfilledVector<std::byte> told = hub.awaitSetup(channel);
        if (told.size() != name.size())
            throw Error("ranks", "the processes are of different builds", "start the same program everywhere");
        std::memcpy(name.data(), told.data(), name.size());
        return name;
    }
    own.gpu.check(own.gpu.table->ncclName(name.data()), "name a group of NCCL");
    for (const int member : members.subspan(1))
        hub.awaitSetup(own.order.arrivalNumber(member));
    for (const int member : members.subspan(1))
        hub.sendSetup(member, channel, std::as_bytes(std::span(name)));
    return name;
}

} // namespace

std::unique_ptr<Communicator> createRankGroup(const RankGpu& own, std::span<const int> members)
{
    const PipewrightCudaTable& table = *own.gpu.table;
    const int first = members.front(), count = static_cast<int>(members.size());
    const std::uint32_t channel = own.order.groupChannel(first);
    const Name name = agreedName(own, members, channel);
    void* member = nullptr;
    std::string why;
    if (table.ncclJoin(own.gpu.index, name.data(), own.hub.self() - first, count, 0, &member) != 0)
        why = table.lastError();
    else
        why = whyNotJoined(table, {&member, 1}, own.deadline,
                           fmt::format("not all of devices {} have come to NCCL", joined(members, ", ")),
                           [&own] { return own.hub.failureReason(); });
    if (why.empty() && table.ncclWarmUp(&member, 1, 1, own.deadline) != 0)
        why = table.lastError();
    if (why.empty())
        return createNcclMember(own.gpu, member, std::make_unique<RankTurn>(own, channel, first, count));
    if (member) {
        table.ncclAbort(member);
        table.ncclClose(member);
    }
    throw Error("device " + std::to_string(own.hub.self()),
                fmt::format("its GPU {} cannot be connected with those of devices {} by NCCL: {}", own.gpu.index,
                            joined(members, ", "), why),
                "NCCL_DEBUG=INFO makes NCCL say more; NCCL_SOCKET_IFNAME names the network to meet on");
}

} // namespace pipewright
