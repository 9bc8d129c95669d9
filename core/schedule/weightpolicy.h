// SPDX-License-Identifier: GPL-3.0-or-later
// Which weights a block reads when a schedule updates a stage more than once (U blocks in its order): the name of a
// published rule and its settings, as saved in a design. A plain value; weightrules.h implements it.
#pragma once

#include "core/base/diagnostic.h"
#include "core/base/optimizer.h"

#include <cstdint>
#include <optional>
#include <string_view>

namespace pipewright {

enum class WeightRule : std::uint8_t {
    Synchronous, ///< every update of the stage before this microbatch's: theta_t
    Vanilla,     ///< the newest weights, in forward and backward alike
    PipeDream,   ///< weight stashing: the backward reads what its forward read
    TwoBuffers,  ///< PipeDream-2BW: the newest version when its batch was injected
    SpecTrain,   ///< weights predicted for the forward and, in version 1, anew for the backward
    XPipe,       ///< a prediction shared by the microbatches of a mini-batch
    PipeOptim,   ///< predicted weights in the forward, the newest in the backward
    CdpV1,       ///< Cyclic Data Parallelism: theta_{t-1}
    CdpV2,       ///< theta_t where worker + stage >= N - 1, otherwise theta_{t-1}
};
inline constexpr int weightRuleCount = 9;

/// How far PipeOptim predicts, in updates, on stage k of D.
enum class PredictionSteps : std::uint8_t {
    Paper, ///< D - k - 1
    Exact, ///< as many updates as there will really be: fewer while the pipeline fills
    Code,  ///< D - k, as in the authors' released code
};

/// How XPipe's fractional steps are rounded.
enum class StepRounding : std::uint8_t { HalfEven, HalfUp, HalfDown, Floor, Ceiling };

struct WeightPolicy {
    WeightRule rule = WeightRule::Synchronous;
    Optimizer optimizer = Optimizer::SgdMomentum; ///< that predictions follow; with U blocks also the one that trains
    bool verticalSync = false;                    ///< PipeDream: every stage reads the version that stage 0 read
    PredictionSteps steps = PredictionSteps::Paper;
    StepRounding rounding = StepRounding::HalfEven;
    int specTrain = 1; ///< 1: predict in forward and backward; 2: the backward reuses the forward's prediction
    bool operator==(const WeightPolicy&) const = default;
};

std::string_view nameOf(WeightRule rule);       ///< "pipedream-2bw", as in design files
std::string_view titleOf(WeightRule rule);      ///< "PipeDream-2BW"
std::string_view nameOf(PredictionSteps steps); ///< "paper", "exact", "code"
std::string_view nameOf(StepRounding rounding); ///< "half-even", …
/// The inverses; nothing for an unknown name. (A number that is no enumerator has the empty name.)
std::optional<PredictionSteps> predictionStepsNamed(std::string_view name);
std::optional<StepRounding> stepRoundingNamed(std::string_view name);

Optimizer usualOptimizer(WeightRule rule); ///< where none is asked for

/// Errors for settings that the rule or optimizer cannot follow or does not have, each with the reason.
Diagnostics checkPolicy(const WeightPolicy& policy);

} // namespace pipewright
