// SPDX-License-Identifier: GPL-3.0-or-later
// When processes may each issue their side of something that NCCL carries: when both, or all members of a group, have
// offered it, and in one order for all processes. Kernels of NCCL that start in different orders on different GPUs may
// wait for each other for ever, round a ring of GPUs too; so it is process 0 that matches the sides of everything, and
// what it says arrives in the order in which it says it. Until then nothing waits on a GPU, and what is stuck can be
// explained on the host.
#pragma once

#include "executor/mpi/rankhub.h"

#include <map>
#include <utility>

namespace pipewright {

/// What two processes do together: the n-th transfer of a link, or a sum.
struct Offer {
    std::uint32_t channel = 0, index = 0;
    TaskId task = none;
    std::int64_t shape = 0; ///< of the bytes; both sides must have the same
    bool second = false;    ///< the side of the channel's second process: the receiver's
};

class IssueOrder final : private LinkEnd {
public:
    explicit IssueOrder(RankHub& hub);
    ~IssueOrder() override;
    IssueOrder(const IssueOrder&) = delete;
    IssueOrder& operator=(const IssueOrder&) = delete;

    /// From two processes; all numbers are the same everywhere.
    std::uint32_t linkChannel(int from, int to) const;
    std::uint32_t sumChannel(int first, int second) const;
    /// Of what a process tells about its GPU; no channel has it.
    std::uint32_t gpuNumber(int process) const
    {
        return 2 * m_processes * m_processes + 1 + static_cast<std::uint32_t>(process);
    }

    /// Of what the members of a group do together, whose first is this process.
    std::uint32_t groupChannel(int first) const
    {
        return gpuNumber(static_cast<int>(m_processes)) + static_cast<std::uint32_t>(first);
    }
    /// Of what a process tells the first of its group; no channel has it.
    std::uint32_t arrivalNumber(int process) const
    {
        return groupChannel(static_cast<int>(m_processes)) + static_cast<std::uint32_t>(process);
    }

    /// Both processes' ends of the channel are then told LinkReady with the index as `sequence`, or LinkMismatch with
    /// the two tasks in `task` and `a` when task or shape differ. From any thread.
    void offer(const Offer& own);
    /// All members' ends are told LinkReady when all of them, from the first on, have offered this turn.
    void offerOfGroup(std::uint32_t channel, std::uint32_t turn, int first, int members);

private:
    std::vector<Region> place(const Message&) override { return {}; }
    void received(const Message& message) override;
    void receivedOfGroup(const Message& message);

    RankHub& m_hub;
    const std::uint32_t m_processes;
    /// The hub's thread only, on process 0: of which the other side has not been offered.
    std::map<std::pair<std::uint32_t, std::uint32_t>, Message> m_open;
    std::map<std::pair<std::uint32_t, std::uint32_t>, int> m_come; ///< likewise: members of groups
};

} // namespace pipewright
