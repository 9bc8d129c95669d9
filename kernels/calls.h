// SPDX-License-Identifier: GPL-3.0-or-later
// The list of all operations of a stage, as calls. A call is a plain struct with sizes and operands: the host runs it,
// and the table of the CUDA plugin passes it on unchanged. The headers included here hold the structs and say what each
// operation computes. A new operation is a struct there, a line of the list below, and its kernels: without them the
// host or the plugin does not link.
#pragma once

#include "kernels/activation.h"
#include "kernels/attention.h"
#include "kernels/bfloat16.h"
#include "kernels/crossentropy.h"
#include "kernels/elementwise.h"
#include "kernels/embedding.h"
#include "kernels/experts.h"
#include "kernels/featurebag.h"
#include "kernels/groupedattention.h"
#include "kernels/latentkeys.h"
#include "kernels/layernorm.h"
#include "kernels/matmul.h"
#include "kernels/optimizers.h"
#include "kernels/rmsnorm.h"
#include "kernels/rotary.h"
#include "kernels/softcap.h"
#include "kernels/tensors.h"

#include <cstdint>
#include <type_traits>

namespace pipewright::kernels {

#define PIPEWRIGHT_CALLS(use)                                                                                          \
    use(Copy) use(Fill) use(Add) use(LinearForward) use(LinearInputGrad) use(LinearWeightGrad) use(LayerNormForward)   \
        use(LayerNormInputGrad) use(LayerNormWeightGrad) use(EmbeddingForward) use(EmbeddingWeightGrad)                \
            use(FeatureBagForward) use(FeatureBagWeightGrad) use(CrossEntropyForward) use(CrossEntropyInputGrad)       \
                use(AttentionForward) use(AttentionInputGrad) use(SgdMomentumStep) use(AdamWStep) use(RmsPropStep)     \
                    use(PredictMomentum) use(PredictRmsProp) use(PredictAdam) use(RmsNormForward)                      \
                        use(RmsNormInputGrad) use(RmsNormWeightGrad) use(Rotate) use(GroupedAttentionForward)          \
                            use(GroupedAttentionInputGrad) use(ActivationForward) use(ActivationInputGrad)             \
                                use(GatedForward) use(GatedInputGrad) use(RouteTokens) use(RouteTokensGrad)            \
                                    use(CopyToExperts) use(SumOfExperts) use(ExpertsForward) use(ExpertsInputGrad)     \
                                        use(ExpertsWeightGrad) use(JoinKeys) use(SplitKeysGrad) use(FromBytes)         \
                                            use(Widen) use(Narrow) use(RoundToBf16) use(SoftCap) use(SoftCapGrad)      \
                                                use(CountCopies) use(BalanceStep) use(TensorCall)

enum class Operation : std::int32_t {
#define PIPEWRIGHT_NAME(name) name,
    PIPEWRIGHT_CALLS(PIPEWRIGHT_NAME)
#undef PIPEWRIGHT_NAME
};

/// The operation of a call's struct.
template<typename Call>
inline constexpr Operation operationOf = Call::isNoCallOfTheList;
#define PIPEWRIGHT_OPERATION(name)                                                                                     \
    template<>                                                                                                         \
    inline constexpr Operation operationOf<name> = Operation::name;                                                    \
    static_assert(std::is_standard_layout_v<name> && std::is_trivially_copyable_v<name>);
PIPEWRIGHT_CALLS(PIPEWRIGHT_OPERATION)
#undef PIPEWRIGHT_OPERATION

#define PIPEWRIGHT_CASE(name)                                                                                          \
    case Operation::name: use(*static_cast<const name*>(call), #name); return true;

/// Calls `use` with the call as its own type and with the operation's name. False: the operation is not in the list.
template<typename Use>
bool visit(Operation operation, const void* call, Use&& use)
{
    switch (operation) {
        PIPEWRIGHT_CALLS(PIPEWRIGHT_CASE)
    }
    return false;
}

#undef PIPEWRIGHT_CASE

// On the host, at once, on the calling thread.
#define PIPEWRIGHT_RUN(name) void run(const name& call);
PIPEWRIGHT_CALLS(PIPEWRIGHT_RUN)
#undef PIPEWRIGHT_RUN

} // namespace pipewright::kernels
