// SPDX-License-Identifier: GPL-3.0-or-later
// What a member of a group reads of every microbatch, cut to its pieces, and what it has to add to the losses, in
// memory that its device reads: where the host reaches the device's it is the host's own, elsewhere the device's,
// beside the Program's buffers. Data goes there before a step, and losses come back behind it, so that no block waits
// for either.
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
    /// Of a device's memory, where the host does not reach it.
    static Bytes bytes(const Theory& theory, const SharedStage& stage, const CopyEdges& edges, int member,
                       int microbatches);

    /// Between steps: the data of the next step, and no losses. `whole`: a leaf's value, of a microbatch.
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
