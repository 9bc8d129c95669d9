// SPDX-License-Identifier: GPL-3.0-or-later
// The small operations of shared stages, on pieces of tensors: copying blocks, elementwise maths, norms, tables and
// mixtures of experts. Each is written once, item by item, in tensoritems.h; the host does the items one after the
// other and a GPU one per thread, with every sum in the same order.
#pragma once

#include "kernels/tensorcall.h"

#include <cstdint>

namespace pipewright::kernels {

#define PIPEWRIGHT_TENSOR_OPERATIONS(use)                                                                              \
    use(CopyBlocks) use(Scale) use(Add) use(Multiply) use(Relu) use(ReluGrad) use(Silu) use(SiluGrad) use(FillFrom)    \
        use(ScaleBy) use(WholeNumbers) use(AddRepeated) use(SumRepeated) use(SumParts) use(RowLogSum) use(RowDot)      \
            use(Softmax) use(SoftmaxGrad) use(LogSoftmax) use(LogSoftmaxGrad) use(InverseRms) use(RmsNorm)             \
                use(RmsNormInputGrad) use(RmsNormWeightGrad) use(LookUp) use(LookUpGrad) use(FeatureBag)               \
                    use(FeatureBagGrad) use(RepeatHeads) use(FoldHeads) use(Route) use(RouteGrad) use(Dispatch)        \
                        use(DispatchGrad) use(Combine) use(CombineSlotsGrad) use(CombineWeightsGrad)

enum class TensorOperation : std::int32_t {
#define PIPEWRIGHT_NAME(name) name,
    PIPEWRIGHT_TENSOR_OPERATIONS(PIPEWRIGHT_NAME)
#undef PIPEWRIGHT_NAME
};

using TensorCall = PipewrightTensorCall;

/// On the host, at once. An operation that is not known does nothing and gives false.
bool tensor(const TensorCall& call);

} // namespace pipewright::kernels
