// SPDX-License-Identifier: GPL-3.0-or-later
// The operations of kernels/calls.h on some device, so that layers and optimizers are written once. The operands lie in
// the memory of that device. On a GPU a call is only issued: it is done when everything issued before it is done. One
// object is used by one thread at a time; that of the host by all.
#pragma once

#include "kernels/calls.h"

#include <memory>
#include <span>

namespace pipewright::kernels {

class Operations {
public:
    virtual ~Operations() = default;

    template<typename Call>
    void run(const Call& call) const
    {
        issue(operationOf<Call>, &call, sizeof call);
    }
    void copy(std::span<const float> from, std::span<float> to) const { run(copyOf(from, to)); }
    void copy(std::span<const std::int32_t> from, std::span<std::int32_t> to) const { run(copyOf(from, to)); }

    /// Elements of `saved` and `scratch` of an attention. `saved` is the device's own between the two passes: the host
    /// keeps probabilities there, a GPU one number per query and head.
    virtual std::size_t attentionSaved(const AttentionShape& shape) const = 0;

protected:
    /// `call` is the operation's struct, of `bytes` bytes, and is read before this returns.
    virtual void issue(Operation operation, const void* call, std::size_t bytes) const = 0;
};

const Operations& hostOperations();
std::unique_ptr<Operations> createHostOperations();

} // namespace pipewright::kernels
