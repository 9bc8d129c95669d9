// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/operations.h"

#include <cassert>

namespace pipewright::kernels {

namespace {

class HostOperations final : public Operations {
public:
    bool keepsProbabilities() const override { return true; }

protected:
    void issue(Operation operation, const void* call, std::size_t,
               [[maybe_unused]] StoredOperands stored) const override
    {
        assert(stored == 0); // it computes with fp32 only
        visit(operation, call, [](const auto& known, const char*) { kernels::run(known); });
    }
};

} // namespace

const Operations& hostOperations()
{
    static const HostOperations operations;
    return operations;
}

std::unique_ptr<Operations> createHostOperations()
{
    return std::make_unique<HostOperations>();
}

} // namespace pipewright::kernels
