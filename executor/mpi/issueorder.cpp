// SPDX-License-Identifier: GPL-3.0-or-later
// Process 0 matches offers by (channel, index): it keeps the first of two, and answers both sides when the second
// arrives. Its answers are the total order in which everyone issues. A transfer or sum takes two messages to process 0
// and two back, a turn of a group one each way per member.
#include "executor/mpi/issueorder.h"

namespace pipewright {

IssueOrder::IssueOrder(RankHub& hub) : m_hub(hub), m_processes(static_cast<std::uint32_t>(hub.count()))
{
    if (hub.self() == 0)
        hub.setLink(2 * m_processes * m_processes, this);
}

IssueOrder::~IssueOrder()
{
    if (m_hub.self() == 0)
        m_hub.setLink(2 * m_processes * m_processes, nullptr);
}

std::uint32_t IssueOrder::linkChannel(int from, int to) const
{
    return static_cast<std::uint32_t>(from) * m_processes + static_cast<std::uint32_t>(to);
}

std::uint32_t IssueOrder::sumChannel(int first, int second) const
{
    return m_processes * m_processes + linkChannel(first, second);
}

void IssueOrder::offer(const Offer& own)
{
    m_hub.send(0, {.kind = RankHub::LinkReady,
                   .link = 2 * m_processes * m_processes,
                   .sequence = own.index,
                   .task = own.task,
                   .a = own.shape,
                   .b = 2 * std::int64_t{own.channel} + own.second});
}

/// The first member and the number of members are sent in the field where a pair's offer has its shape.
void IssueOrder::offerOfGroup(std::uint32_t channel, std::uint32_t turn, int first, int members)
{
    m_hub.send(0, {.kind = RankHub::LinkReady,
                   .link = 2 * m_processes * m_processes,
                   .sequence = turn,
                   .a = std::int64_t{first} * m_processes + members - 1,
                   .b = 2 * std::int64_t{channel}});
}

void IssueOrder::receivedOfGroup(const Message& message)
{
    const auto channel = static_cast<std::uint32_t>(message.b / 2);
    const int first = static_cast<int>(message.a / m_processes),
              members = static_cast<int>(message.a % m_processes) + 1;
    const auto come = m_come.try_emplace({channel, message.sequence}, 0).first;
    if (++come->second < members)
        return;
    m_come.erase(come);
    for (int member = first; member < first + members; ++member)
        m_hub.send(member, {.kind = RankHub::LinkReady, .link = channel, .sequence = message.sequence});
}

void IssueOrder::received(const Message& message)
{
    if (message.b / 2 >= groupChannel(0))
        return receivedOfGroup(message);
    const auto channel = static_cast<std::uint32_t>(message.b / 2);
    const auto [found, isFirst] = m_open.try_emplace({channel, message.sequence}, message);
    if (isFirst)
        return;
    const Message other = found->second;
    m_open.erase(found);
    const Message &first = message.b % 2 == 0 ? message : other, &second = message.b % 2 == 0 ? other : message;
    Message answer{.kind = RankHub::LinkReady, .link = channel, .sequence = message.sequence, .task = message.task};
    if (first.task != second.task || first.a != second.a)
        answer = {.kind = RankHub::LinkMismatch, .link = channel, .task = first.task, .a = std::int64_t{second.task}};
    const std::uint32_t pair = channel % (m_processes * m_processes);
    m_hub.send(static_cast<int>(pair / m_processes), answer);
    m_hub.send(static_cast<int>(pair % m_processes), answer);
}

} // namespace pipewright
