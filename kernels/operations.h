// SPDX-License-Identifier: GPL-3.0-or-later
// The operations of kernels/calls.h on one device, so that layers and optimizers are written once. The operands are in
// the memory of that device. On a GPU a call is only issued; calls run in the order in which they were issued. An
// object is used by one thread at a time; the host's may be used by all.
#pragma once

#include "kernels/calls.h"
#include "kernels/operands.h"

#include <memory>
#include <span>

namespace pipewright::kernels {

class Operations {
public:
    virtual ~Operations() = default;

    template<typename Call>
    void run(const Call& call) const
    {
        issue(operationOf<Call>, &call, sizeof call, 0);
    }
    /// For a device that computes with stored bf16: `stored` names the operands in bf16.
    template<typename Call>
    void runStored(const Call& call, StoredOperands stored) const
    {
        issue(operationOf<Call>, &call, sizeof call, stored);
    }
    void copy(std::span<const float> from, std::span<float> to) const { run(copyOf(from, to)); }
    void copy(std::span<const std::int32_t> from, std::span<std::int32_t> to) const { run(copyOf(from, to)); }

    /// Whether `saved` of attention.h holds probabilities, or one number per query and head.
    virtual bool keepsProbabilities() const = 0;
    /// Whether the device computes with values stored as bf16, without fp32 copies.
    virtual bool computesWithStored() const { return false; }

protected:
    /// `call` is the operation's struct, of `bytes` bytes, and is read before this returns.
    virtual void issue(Operation operation, const void* call, std::size_t bytes, StoredOperands stored) const = 0;
};

const Operations& hostOperations();
std::unique_ptr<Operations> createHostOperations();

} // namespace pipewright::kernels
