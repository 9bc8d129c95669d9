// SPDX-License-Identifier: GPL-3.0-or-later
// Checks that the devices hold in a step what the program's properties say, forwards and backwards.
#pragma once

#include "executor/sharding/groupmember.h"
#include "executor/sharding/shardingrun.h"

#include <map>
#include <vector>

namespace pipewright::sharding {

/// A member's values and gradients, copied to the host.
class MemberRecord final : public MemberObserver {
public:
    void value(MemberDevice& member, const Property& property, const Tensor& value) override;
    void gradient(MemberDevice& member, const Property& property, const Tensor& gradient) override;

    const std::map<Property, HostTensor>& values() const { return m_values; }
    const std::map<Property, HostTensor>& seenGradients() const { return m_seen; } ///< before any sum over members
    const std::map<Property, HostTensor>& lastGradients() const { return m_last; } ///< as they are stored

private:
    std::map<Property, HostTensor> m_values, m_seen, m_last;
};

/// Verifies every instruction of a step against options.check and adds counts, errors and failures to `run`.
void checkProperties(const TensorGraph& graph, const ShardingProgram& program, const std::vector<MemberRecord>& members,
                     const ShardingRunOptions& options, ShardingRun& run);

} // namespace pipewright::sharding
