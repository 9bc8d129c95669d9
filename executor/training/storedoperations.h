// SPDX-License-Identifier: GPL-3.0-or-later
// A device's operations on bf16 values where they lie. Layers address tensors of floats; here they get addresses
// without memory behind them, a float each, and every operand of a call is then looked up: its values lie as two or
// four bytes each in a buffer of the stage. So a device that computes with bf16 needs no fp32 copies, and a layer is
// written once. An operation rounds its results where it stores them. O(tensors of a layer) per operand, on the host.
#pragma once

#include "kernels/operations.h"

#include <cstddef>
#include <vector>

namespace pipewright {

class StoredOperations final : public kernels::Operations {
public:
    explicit StoredOperations(const kernels::Operations& device) : m_device(device) {}
    bool keepsProbabilities() const override { return m_device.keepsProbabilities(); }
    bool computesWithStored() const override { return true; }

    /// Forgets all tensors, whose addresses others may get.
    void clear();
    /// Addresses for so many values, right behind the last ones, which lie there in `width` bytes each.
    std::span<float> place(std::int64_t elements, std::byte* stored, int width);
    /// All addresses since the one that was the next before: several tensors, one behind the other.
    std::span<std::byte> since(const std::byte* first) const;
    std::byte* next() const { return m_next; }

protected:
    void issue(kernels::Operation operation, const void* call, std::size_t bytes,
               kernels::StoredOperands stored) const override;

private:
    struct Tensor {
        const std::byte* address;
        std::size_t bytes; ///< of addresses
        std::byte* stored;
        int width;
    };
    struct Found {
        void* at;
        bool isBf16;
    };
    /// The memory of what has this address; itself where it is none of a tensor.
    Found find(const void* address, std::size_t bytes) const;
    template<class Element>
    bool replace(std::span<Element>& operand) const;
    template<class Call>
    void runKnown(Call call) const;
    void runKnown(const kernels::Copy& call) const;
    void runKnown(kernels::TensorCall call) const;

    const kernels::Operations& m_device;
    std::vector<Tensor> m_tensors; ///< by address
    std::byte* m_next = firstAddress();
    static std::byte* firstAddress();
};

} // namespace pipewright
