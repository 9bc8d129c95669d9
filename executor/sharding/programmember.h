// SPDX-License-Identifier: GPL-3.0-or-later
// One device of a program that runs on its own: a member without a pipeline around it (groupmember.h), with its leaves
// and the sums of its parameters' gradients in its own memory, and with what the check of properties wants to see.
//
// Emulated speed is a clock of the device's own: every part moves it on by what it costs there, a collective sets it to
// that of the last device to arrive, and the thread sleeps until then. What one sleep takes too long the next takes
// less, so that a busy machine does not add up; only where the real maths is slower than the emulated device, a step
// takes longer than it should.
#pragma once

#include "executor/sharding/groupmember.h"
#include "executor/sharding/shardingrun.h"

namespace pipewright::sharding {

class ProgramMember {
public:
    using Clock = MemberCollectives::Clock;

    /// All must outlive this.
    ProgramMember(int member, MemberDevice& device, const Theory& theory, const SharedStage& stage,
                  const LeafValues& leaves, MemberCollectives& collectives, const ShardingRunOptions& options);

    void startClock(Clock::time_point now); ///< all devices are about to start
    void step();                            ///< forward and backward
    void finish();                          ///< until the step has ended, or would have

    /// Brings to the host what is asked for below: of the last step the loss and the parameters' gradients, and in
    /// checking mode everything.
    void fetch(const Property& loss);
    const HostTensor& value(const Property& property) const { return m_values.at(property); }
    /// In checking mode: what came back to a property; null for inputs, to which nothing does.
    const HostTensor* gradient(const Property& property) const;
    /// Of parameters, as they are stored; and of what came from the stage before.
    const std::map<Property, HostTensor>& parameterGradients() const { return m_parameterGradients; }

private:
    void run(Op op, const PartSeconds& seconds);
    void pass(double seconds);

    int m_member;
    MemberDevice& m_device;
    MemberCollectives& m_collectives;
    bool m_emulate, m_check;
    GroupMember m_work;
    PartSeconds m_forward, m_backward;
    Tensor m_parameters, m_gradients;
    std::map<Property, HostTensor> m_values, m_seen, m_parameterGradients;
};

} // namespace pipewright::sharding
