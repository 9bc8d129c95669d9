// SPDX-License-Identifier: GPL-3.0-or-later
// A device's operations for values that are stored in bf16: what an operation hands on is rounded to what bf16 can
// hold, what it sums up is not. Weights' gradients, losses, probabilities of classes and of experts, and attention's
// kept numbers are sums of their own and stay fp32, as do logits. It knows which values of a pass lie in memory twice,
// as the fp32 numbers that are computed with and as they are stored, and stores them on the way. A device that computes
// with bf16 itself has storedoperations.h.
#pragma once

#include "kernels/operations.h"

#include <vector>

namespace pipewright {

/// Values of one tensor, or part of one.
struct HeldTwice {
    std::span<float> wide;
    std::uint16_t* stored;
    bool isStored; ///< the two are equal
    bool mayStore; ///< false: what a pass makes of its fp32 copy is for itself
};

class RoundingOperations final : public kernels::Operations {
public:
    explicit RoundingOperations(const kernels::Operations& exact) : m_exact(exact) {}
    bool keepsProbabilities() const override { return m_exact.keepsProbabilities(); }

    /// These, and no others from now on; `wide` are stored in fp32 and not rounded.
    void hold(std::vector<HeldTwice> values, std::vector<std::span<const float>> wide)
    {
        m_held = std::move(values);
        m_wide = std::move(wide);
    }
    /// Where these values are stored; what has not been stored yet is. Null: nowhere, or not one behind the other.
    std::uint16_t* stored(std::span<const float> values) const;

protected:
    void issue(kernels::Operation operation, const void* call, std::size_t bytes,
               kernels::StoredOperands stored) const override;

private:
    class Results;
    /// The entry that begins where these values do, and holds nothing else; null: they are not within one.
    HeldTwice* cut(std::span<const float> values) const;
    void rounded(std::span<float> values) const;
    void written(std::span<const float> values) const; ///< with what bf16 can hold

    const kernels::Operations& m_exact;
    mutable std::vector<HeldTwice> m_held; ///< of one pass, which one thread does
    std::vector<std::span<const float>> m_wide;
};

} // namespace pipewright
