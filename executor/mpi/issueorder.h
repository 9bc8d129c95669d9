// SPDX-License-Identifier: GPL-3.0-or-later
// Decides when processes may issue their sides of NCCL operations: once both processes, or all members of a group, have
// offered the operation, and in one order for all processes. NCCL kernels that start in different orders on different
// GPUs may wait for each other for ever, also round a ring of GPUs. So process 0 matches all offers, and its answers
// arrive everywhere in the order in which it sends them. Until then nothing waits on a GPU, and the host can explain
// what is stuck.
#pragma once

#include "executor/mpi/rankhub.h"

#include <map>
#include <utility>

namespace pipewright {

/// What two processes do together: the n-th transfer of a link, or a sum.
struct Offer {
    std::uint32_t channel = 0, index = 0;
    TaskId task = none;
    std::int64_t shape = 0; ///< hash of the sizes; both sides must have the same
    bool second = false;    ///< the side of the channel's second process: the receiver's
};

class IssueOrder final : private LinkEnd {
public:
    explicit IssueOrder(RankHub& hub);
    ~IssueOrder() override;
    IssueOrder(const IssueOrder&) = delete;
    IssueOrder& operator=(const IssueOrder&) = delete;

    /// Channel of a link or sum of two processes; the numbers are the same in every process.
    std::uint32_t linkChannel(int from, int to) const;
    std::uint32_t sumChannel(int first, int second) const;
    /// Number of the message in which a process describes its GPU; no channel has it.
    std::uint32_t gpuNumber(int process) const
    {
        return 2 * m_processes * m_processes + 1 + static_cast<std::uint32_t>(process);
    }

    /// Channel of the group whose first member is this process.
    std::uint32_t groupChannel(int first) const
    {
        return gpuNumber(static_cast<int>(m_processes)) + static_cast<std::uint32_t>(first);
    }
    /// Number of the message with which a process reports to the first of its group; no channel has it.
    std::uint32_t arrivalNumber(int process) const
    {
        return groupChannel(static_cast<int>(m_processes)) + static_cast<std::uint32_t>(process);
    }

    /// When both sides have offered, both ends of the channel get LinkReady with the index as `sequence`, or
    /// LinkMismatch with the two tasks in `task` and `a` when task or shape differ. From any thread.
    void offer(const Offer& own);
    /// When all members have offered this turn, the ends of all of them get LinkReady. Members are consecutive from
    /// `first`.
    void offerOfGroup(std::uint32_t channel, std::uint32_t turn, int first, int members);

private:
    std::vector<Region> place(const Message&) override { return {}; }
    void received(const Message& message) override;
    void receivedOfGroup(const Message& message);

    RankHub& m_hub;
    const std::uint32_t m_processes;
    /// Offers whose other side is still missing. Used by the hub's thread of process 0 only.
    std::map<std::pair<std::uint32_t, std::uint32_t>, Message> m_open;
    std::map<std::pair<std::uint32_t, std::uint32_t>, int> m_come; ///< likewise: members of a group so far
};

} // namespace pipewright
