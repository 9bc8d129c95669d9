// SPDX-License-Identifier: GPL-3.0-or-later
// One device of a running program: the tensors it holds under each relation, their gradients, and how it does
// each instruction and its mirror image.
//
// Emulated speed is a clock of the device's own: every instruction moves it on by what it costs there, a collective
// sets it to that of the last device to arrive, and the thread sleeps until then. (The prediction has devices wait
// for each other at every instruction; here they do at collectives only, as real ones would.) What one sleep takes too
// long the next takes less, so that a busy machine does not add up; only where the real maths is slower than the
// emulated device, a step takes longer than it should.
#pragma once

#include "executor/sharding/membercollectives.h"
#include "executor/sharding/nodemaths.h"
#include "executor/sharding/shardingrun.h"

#include <chrono>

namespace pipewright::sharding {

class DeviceActor {
public:
    DeviceActor(int device, MemberDevice& member, const Theory& theory, const LeafValues& leaves,
                MemberCollectives& collectives, const ShardingRunOptions& options);

    using Clock = MemberCollectives::Clock;

    void begin();                           ///< forgets the step before
    void startClock(Clock::time_point now); ///< all devices are about to start
    void finish();                          ///< until the step has ended, or would have
    void forward(const ShardingInstruction& instruction);
    void backwardStart(const Property& loss);
    void backward(const ShardingInstruction& instruction);

    /// Brings to the host what is asked for below: of the last step the loss and the parameters' gradients, and in
    /// checking mode everything.
    void fetch(const Property& loss);
    const HostTensor& value(const Property& property) const { return m_fetched.values.at(property); }
    /// In checking mode: what came back to a property; null for inputs, to which nothing does.
    const HostTensor* gradient(const Property& property) const;
    /// Of parameters, as they are stored.
    const std::map<Property, HostTensor>& parameterGradients() const { return m_fetched.parameterGradients; }

private:
    Cut cutOf(const Property& property, bool pieceByPiece = false) const;
    std::int64_t firstOf(const Property& property) const;
    std::int64_t lengthOf(const Property& property) const;
    Shape shapeOf(const Property& property) const;
    Operands operandsOf(const ShardingInstruction& instruction) const;
    LocalPart partOf(const ShardingInstruction& instruction) const;
    Tensor takeGradient(const Property& property);
    void addGradient(const Property& property, Tensor gradient);
    bool differentiable(int tensor) const;
    void storeParameterGradient(const ShardingInstruction& load);
    void backwardWithFactors(const ShardingInstruction& instruction, const Tensor& grad);
    void passComputing(const ShardingInstruction& instruction, bool forwards);
    void passMoving(const ShardingInstruction& instruction, bool forwards);
    void pass(double seconds);

    const Tensor& leaf(const Property& property);

    int m_device;
    MemberDevice& m_member;
    const Theory& m_theory;
    const TensorGraph& m_graph;
    const LeafValues& m_leafValues;
    MemberCollectives& m_collectives;
    bool m_emulate, m_check;
    std::map<Property, Tensor> m_leaves; ///< what this device holds of them, from the first step on
    std::map<Property, Tensor> m_values, m_gradients, m_parameterGradients;
    std::map<Property, Tensor> m_seen; ///< gradients, for checking
    struct {
        std::map<Property, HostTensor> values, gradients, parameterGradients;
    } m_fetched;
};

} // namespace pipewright::sharding
