// SPDX-License-Identifier: GPL-3.0-or-later
// A device's operations for values that are stored in bf16: what an operation hands on is rounded to what bf16 can
// hold, what it sums up is not. Weights' gradients, losses, probabilities of classes and of experts, and attention's
// kept numbers are sums of their own and stay fp32.
#pragma once

#include "kernels/operations.h"

namespace pipewright {

class RoundingOperations final : public kernels::Operations {
public:
    explicit RoundingOperations(const kernels::Operations& exact) : m_exact(exact) {}
    std::size_t attentionSaved(const kernels::AttentionShape& shape) const override
    {
        return m_exact.attentionSaved(shape);
    }

protected:
    void issue(kernels::Operation operation, const void* call, std::size_t bytes) const override;

private:
    const kernels::Operations& m_exact;
};

} // namespace pipewright
