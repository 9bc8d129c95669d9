// SPDX-License-Identifier: GPL-3.0-or-later
// A device's operations for values that are stored in bf16. Results that go to other operations are rounded to bf16
// values; accumulated sums are not: weights' gradients, losses, probabilities of classes and of experts, and
// attention's kept numbers stay fp32, as do logits. It knows which values of a pass exist twice in memory, as the fp32
// copy that is computed with and as the stored bf16, and stores them on the way. Devices that compute with bf16
// themselves use storedoperations.h instead.
#pragma once

#include "kernels/operations.h"

#include <vector>

namespace pipewright {

/// Values of one tensor, or part of one.
struct HeldTwice {
    std::span<float> wide;
    std::uint16_t* stored;
    bool isStored; ///< the two are equal
    bool mayStore; ///< false: results in the fp32 copy are for this pass alone and are not stored
};

class RoundingOperations final : public kernels::Operations {
public:
    explicit RoundingOperations(const kernels::Operations& exact) : m_exact(exact) {}
    bool keepsProbabilities() const override { return m_exact.keepsProbabilities(); }

    /// Replaces the list of held values; `wide` are stored in fp32 and not rounded.
    void hold(std::vector<HeldTwice> values, std::vector<std::span<const float>> wide)
    {
        m_held = std::move(values);
        m_wide = std::move(wide);
    }
    /// Where these values are stored, after storing what has not been stored yet. Null: nowhere, or not contiguous.
    std::uint16_t* stored(std::span<const float> values) const;

protected:
    void issue(kernels::Operation operation, const void* call, std::size_t bytes,
               kernels::StoredOperands stored) const override;

private:
    class Results;
    /// Splits an entry so that one covers exactly these values, and returns it; null: they are not within one entry.
    HeldTwice* cut(std::span<const float> values) const;
    void rounded(std::span<float> values) const;
    void written(std::span<const float> values) const; ///< by values that bf16 can represent

    const kernels::Operations& m_exact;
    mutable std::vector<HeldTwice> m_held; ///< of one pass, which runs on one thread
    std::vector<std::span<const float>> m_wide;
};

} // namespace pipewright
