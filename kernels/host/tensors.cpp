// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/tensors.h"

#include "kernels/tensoritems.h"

namespace pipewright::kernels {

namespace {

template<TensorOperation operation>
void runAll(const TensorCall& call)
{
    const TensorItems items = TensorItem<operation>::count(call);
    for (std::int64_t o = 0; o < items.outer && items.inner > 0; ++o)
        TensorItem<operation>::run(call, o, 0, items.inner);
}

} // namespace

bool tensor(const TensorCall& call)
{
    switch (static_cast<TensorOperation>(call.operation)) {
#define PIPEWRIGHT_CASE(name)                                                                                          \
    case TensorOperation::name: runAll<TensorOperation::name>(call); return true;
        PIPEWRIGHT_TENSOR_OPERATIONS(PIPEWRIGHT_CASE)
#undef PIPEWRIGHT_CASE
    }
    return false;
}

} // namespace pipewright::kernels
