// SPDX-License-Identifier: GPL-3.0-or-later
// The hub's messages that are not for links, and its knowledge of the other processes.
#include "executor/mpi/rankhub.h"

#include <utility>

namespace pipewright {

void RankHub::sendSetup(int to, std::uint32_t number, std::span<const std::byte> bytes)
{
    if (bytes.empty())
        return send(to, {.kind = Setup, .link = number});
    const auto copy = std::make_shared<std::vector<std::byte>>(bytes.begin(), bytes.end());
    send(to, {.kind = Setup, .link = number}, {{copy->data(), static_cast<Bytes>(copy->size())}}, [copy] {});
}

RankHub::LocalRank RankHub::localRank(int process) const
{
    const std::lock_guard lock(m_mutex);
    LocalRank local;
    for (int r = 0; r < count(); ++r)
        if (m_others[r].machine == m_others[process].machine) {
            local.rank += r < process;
            ++local.count;
        }
    return local;
}

bool RankHub::onOneMachine(int first, int second) const
{
    const std::lock_guard lock(m_mutex);
    return m_others[first].machine == m_others[second].machine;
}

void RankHub::post(std::uint32_t kind, std::uint32_t number, std::span<const std::byte> bytes)
{
    if (m_self == 0)
        return;
    const auto copy = std::make_shared<std::vector<std::byte>>(bytes.begin(), bytes.end());
    send(0, {.kind = Posted, .link = kind, .sequence = number}, {{copy->data(), static_cast<Bytes>(copy->size())}},
         [copy] {});
}

std::vector<PeerMessage> RankHub::takeMessages()
{
    const std::lock_guard lock(m_mutex);
    return std::exchange(m_peerMessages, {});
}

Nanoseconds RankHub::clockOffset(int process) const
{
    const std::lock_guard lock(m_mutex);
    return m_others[process].offset;
}

Nanoseconds RankHub::clockUncertainty(int process) const
{
    const std::lock_guard lock(m_mutex);
    return m_others[process].uncertainty;
}

} // namespace pipewright
