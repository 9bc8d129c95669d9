// SPDX-License-Identifier: GPL-3.0-or-later
#include "kernels/calls.h"

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

void run(const TensorCall& call)
{
    switch (call.operation) {
#define PIPEWRIGHT_CASE(name)                                                                                          \
    case TensorOperation::name: runAll<TensorOperation::name>(call); break;
        PIPEWRIGHT_TENSOR_OPERATIONS(PIPEWRIGHT_CASE)
#undef PIPEWRIGHT_CASE
    }
}

} // namespace pipewright::kernels
