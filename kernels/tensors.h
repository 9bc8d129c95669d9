// SPDX-License-Identifier: GPL-3.0-or-later
// The small operations of shared stages, on pieces of tensors: copying blocks, elementwise maths, norms, tables and
// mixtures of experts. Each is written once, item by item, in tensoritems.h; the host computes the items one after the
// other, a GPU one per thread. On a GPU several threads share a long sum, in a fixed order of their own.
#pragma once

#include <cstdint>

namespace pipewright::kernels {

#define PIPEWRIGHT_TENSOR_OPERATIONS(use)                                                                              \
    use(CopyBlocks) use(Scale) use(Add) use(Multiply) use(Relu) use(ReluGrad) use(FillFrom) use(ScaleBy)               \
        use(WholeNumbers) use(AddRepeated) use(SumRepeated) use(SumParts) use(RowLogSum) use(RowDot) use(Softmax)      \
            use(SoftmaxGrad) use(LogSoftmax) use(LogSoftmaxGrad) use(LookUp) use(LookUpGrad) use(FeatureBag)           \
                use(FeatureBagGrad) use(Sigmoid) use(Route) use(RouteGrad) use(Visits) use(Dispatch) use(DispatchGrad) \
                    use(Combine) use(CombineSlotsGrad) use(CombineWeightsGrad)

enum class TensorOperation : std::int32_t {
#define PIPEWRIGHT_NAME(name) name,
    PIPEWRIGHT_TENSOR_OPERATIONS(PIPEWRIGHT_NAME)
#undef PIPEWRIGHT_NAME
};

#define PIPEWRIGHT_ONE(name) +1
inline constexpr std::int32_t tensorOperationCount = PIPEWRIGHT_TENSOR_OPERATIONS(PIPEWRIGHT_ONE);
#undef PIPEWRIGHT_ONE

/// Inputs, outputs and sizes; tensoritems.h defines what each operation computes.
struct TensorCall {
    TensorOperation operation;
    float number;         ///< of Scale, Route and RouteGrad
    std::int64_t size[6]; ///< what each means: tensoritems.h
    const float* in[5];   ///< null: not used
    float* out;
    float* scratch;      ///< of Route: zeros, one per group and expert
    std::int32_t* whole; ///< output of WholeNumbers instead of `out`; input of FeatureBag (the features) and of Route
                         ///< (the choices)
};

} // namespace pipewright::kernels
