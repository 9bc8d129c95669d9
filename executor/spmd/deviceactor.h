// SPDX-License-Identifier: GPL-3.0-or-later
// One device of a running program: the tensors it holds under each relation, their gradients, and how it does
// each instruction and its mirror image.
#pragma once

#include "executor/spmd/exchange.h"
#include "executor/spmd/nodemaths.h"
#include "executor/spmd/spmdrun.h"

#include <chrono>

namespace pipewright::spmd {

class DeviceActor {
public:
    DeviceActor(int device, const Theory& theory, const LeafValues& leaves, Exchange& exchange, bool emulateSpeed);

    void begin(); ///< forgets the step before
    void forward(const Instruction& instruction);
    void backwardStart(const Property& loss);
    void backward(const Instruction& instruction);

    const HostTensor& value(const Property& property) const { return m_values.at(property); }
    /// Of parameters, as they are stored.
    const std::map<Property, HostTensor>& parameterGradients() const { return m_parameterGradients; }

private:
    using Clock = std::chrono::steady_clock;

    std::int64_t firstOf(const Property& property) const;
    std::int64_t lengthOf(const Property& property) const;
    Shape shapeOf(const Property& property) const;
    Operands operandsOf(const Instruction& instruction) const;
    LocalPart partOf(const Instruction& instruction) const;
    HostTensor takeGradient(const Property& property);
    void addGradient(const Property& property, HostTensor gradient);
    bool differentiable(int tensor) const;
    void storeParameterGradient(const Instruction& load);
    void backwardWithFactors(const Instruction& instruction, const HostTensor& grad);
    void waitForComputing(const Instruction& instruction, bool forwards, Clock::time_point from) const;
    void waitForMoving(const Instruction& instruction, bool forwards, Clock::time_point arrived) const;
    Clock::time_point meet();

    int m_device;
    const Theory& m_theory;
    const TensorGraph& m_graph;
    const LeafValues& m_leaves;
    Exchange& m_exchange;
    bool m_emulate;
    std::map<Property, HostTensor> m_values, m_gradients, m_parameterGradients;
};

} // namespace pipewright::spmd
