// SPDX-License-Identifier: GPL-3.0-or-later
// A device's operations on bf16 values where they are stored. Layers address tensors of floats. Here they get
// placeholder addresses without memory behind them, four bytes per value; every operand of a call is then translated to
// the stage's buffer, where its values take two or four bytes each. So a device that computes with bf16 needs no fp32
// copies, and a layer is written once. An operation rounds its results where it stores them. O(tensors of a layer) per
// operand, on the host.
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

    /// Forgets all tensors; their addresses are used again.
    void clear();
    /// Addresses for so many values, following the last ones; the values are in `stored`, `width` bytes each.
    std::span<float> place(std::int64_t elements, std::byte* stored, int width);
    /// All addresses since `first`, an earlier value of next(): several consecutive tensors.
    std::span<std::byte> since(const std::byte* first) const;
    std::byte* next() const { return m_next; }

protected:
    void issue(kernels::Operation operation, const void* call, std::size_t bytes,
               kernels::StoredOperands stored) const override;

private:
    struct Tensor {
        const std::byte* address;
        std::size_t bytes; ///< in placeholder addresses
        std::byte* stored;
        int width;
    };
    struct Found {
        void* at;
        bool isBf16;
    };
    /// The memory behind a placeholder address; any other address is returned unchanged.
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
