// SPDX-License-Identifier: GPL-3.0-or-later
// A device's operations for values that are stored in bf16: what an operation hands on is rounded to what bf16 can
// hold, what it sums up is not. Weights' gradients, losses, probabilities of classes and of experts, and attention's
// kept numbers are sums of their own and stay fp32. It knows which values of a pass lie in memory twice, as the fp32
// numbers that are computed with and as they are stored: it stores them on the way, and products of a device with
// arithmetic for bf16 read them as they are stored.
#pragma once

#include "kernels/operations.h"

#include <vector>

namespace pipewright {

/// Values of one tensor, or part of one.
struct HeldTwice {
    std::span<float> wide;
    std::uint16_t* stored;
    bool isStored;           ///< the two are equal
    bool isWide = true;      ///< false: only `stored` is there yet
    bool mayStore = true;    ///< false: what a pass makes of its fp32 copy is for itself
    bool ofProducts = false; ///< nothing but products reads it: it is widened for one that needs it so
};

class RoundingOperations final : public kernels::Operations {
public:
    /// `rounds`: false where nothing is handed on, as by W.
    explicit RoundingOperations(const kernels::Operations& exact, bool rounds = true) : m_exact(exact), m_rounds(rounds)
    {
    }
    bool keepsProbabilities() const override { return m_exact.keepsProbabilities(); }
    bool multipliesBf16() const override { return m_exact.multipliesBf16(); }

    /// These, and no others from now on.
    void hold(std::vector<HeldTwice> values)
    {
        m_held = std::move(values);
        m_exactlyBf16.clear();
    }
    /// Where these values are stored; what has not been stored yet is. Null: nowhere, or not one behind the other.
    std::uint16_t* stored(std::span<const float> values) const;

protected:
    void issue(kernels::Operation operation, const void* call, std::size_t bytes) const override;

private:
    class Results;
    template<class Call>
    void runKnown(Call call) const;
    kernels::Bf16Factors factors(std::span<const float> left, std::span<const float> right) const;
    void widen(HeldTwice& held) const;
    void widenAll() const;
    /// The entry that begins where these values do, and holds nothing else; null: they are not within one.
    HeldTwice* cut(std::span<const float> values) const;
    void rounded(std::span<float> values) const;
    void written(std::span<const float> values) const; ///< with what bf16 can hold
    bool areExactlyBf16(std::span<const float> values) const;

    const kernels::Operations& m_exact;
    bool m_rounds;
    // Of one pass, which one thread does.
    mutable std::vector<HeldTwice> m_held;
    mutable std::vector<std::span<const float>> m_exactlyBf16; ///< written since, and held nowhere
};

} // namespace pipewright
