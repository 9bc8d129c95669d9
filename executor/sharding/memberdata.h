// SPDX-License-Identifier: GPL-3.0-or-later
// The input data of a member for every microbatch, cut to its pieces, and the member's shares of the losses, in memory
// that its device reads: the host's where the device can use that, otherwise the device's own, beside the Program's
// buffers. Data is copied there before a step and losses are copied back after it, so no block waits for either.
#pragma once

#include "executor/sharding/groupmember.h"

#include <memory>
#include <vector>

namespace pipewright::sharding {

class MemberData {
public:
    /// All must outlive this.
    MemberData(const GroupMember& work, const SharedStage& stage, const CopyEdges& edges, MemberDevice& device,
               int microbatches);
    /// Device memory that this takes where the host cannot address the device's memory.
    static Bytes bytes(const Theory& theory, const SharedStage& stage, const CopyEdges& edges, int member,
                       int microbatches);

    /// Between steps: writes the data of the next step and clears the losses. `whole`: a leaf's value for a microbatch.
    void write(const std::function<const HostTensor&(const Node& leaf, int microbatch)>& whole);
    std::span<const float> piece(const Property& stored, int microbatch) const;
    std::span<float> loss(int microbatch); ///< empty in a stage without the loss
    std::vector<float> losses() const;     ///< of each microbatch, after a step

private:
    const GroupMember& m_work;
    const SharedStage& m_stage;
    MemberDevice& m_device;
    int m_microbatches;
    bool m_hasLoss;
    std::vector<float> m_onHost;
    std::unique_ptr<Allocation> m_onDevice;
    std::map<Property, std::span<float>> m_pieces; ///< of all microbatches, one behind the other
    std::span<float> m_losses;
};

} // namespace pipewright::sharding
