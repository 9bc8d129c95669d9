// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/schedule/weightpolicy.h"

#include <fmt/format.h>

namespace pipewright {

namespace {

template<typename Enum>
std::optional<Enum> named(std::string_view name)
{
    for (int i = 0; !nameOf(static_cast<Enum>(i)).empty(); ++i)
        if (nameOf(static_cast<Enum>(i)) == name)
            return static_cast<Enum>(i);
    return std::nullopt;
}

struct RuleNames {
    std::string_view name, title;
};

constexpr RuleNames namesOf(WeightRule rule)
{
    switch (rule) {
    case WeightRule::Synchronous: return {"synchronous", "synchronous"};
    case WeightRule::Vanilla: return {"vanilla", "asynchronous without stash"};
    case WeightRule::PipeDream: return {"pipedream", "PipeDream"};
    case WeightRule::TwoBuffers: return {"pipedream-2bw", "PipeDream-2BW"};
    case WeightRule::SpecTrain: return {"spectrain", "SpecTrain"};
    case WeightRule::XPipe: return {"xpipe", "XPipe"};
    case WeightRule::PipeOptim: return {"pipeoptim", "PipeOptim"};
    case WeightRule::CdpV1: return {"cdp-v1", "CDP-v1"};
    case WeightRule::CdpV2: return {"cdp-v2", "CDP-v2"};
    }
    return {};
}
static_assert(!namesOf(static_cast<WeightRule>(weightRuleCount - 1)).name.empty()
                  && namesOf(static_cast<WeightRule>(weightRuleCount)).name.empty(),
              "weightRuleCount is the number of rules");

/// SpecTrain needs one moment for its prediction.
bool keepsOneMoment(Optimizer optimizer)
{
    switch (optimizer) {
    case Optimizer::SgdMomentum: return true;
    case Optimizer::Adam:
    case Optimizer::AdamW:
    case Optimizer::RmsProp: return false;
    }
    return false;
}

/// XPipe needs Adam's moments for its prediction.
bool keepsAdamsMoments(Optimizer optimizer)
{
    switch (optimizer) {
    case Optimizer::Adam:
    case Optimizer::AdamW: return true;
    case Optimizer::SgdMomentum:
    case Optimizer::RmsProp: return false;
    }
    return false;
}

} // namespace

std::string_view nameOf(WeightRule rule)
{
    return namesOf(rule).name;
}
std::string_view titleOf(WeightRule rule)
{
    return namesOf(rule).title;
}

std::string_view nameOf(PredictionSteps steps)
{
    switch (steps) {
    case PredictionSteps::Paper: return "paper";
    case PredictionSteps::Exact: return "exact";
    case PredictionSteps::Code: return "code";
    }
    return {};
}

std::string_view nameOf(StepRounding rounding)
{
    switch (rounding) {
    case StepRounding::HalfEven: return "half-even";
    case StepRounding::HalfUp: return "half-up";
    case StepRounding::HalfDown: return "half-down";
    case StepRounding::Floor: return "floor";
    case StepRounding::Ceiling: return "ceiling";
    }
    return {};
}

std::optional<PredictionSteps> predictionStepsNamed(std::string_view name)
{
    return named<PredictionSteps>(name);
}
std::optional<StepRounding> stepRoundingNamed(std::string_view name)
{
    return named<StepRounding>(name);
}

Optimizer usualOptimizer(WeightRule rule)
{
    switch (rule) {
    case WeightRule::XPipe: return Optimizer::Adam;
    case WeightRule::Synchronous:
    case WeightRule::Vanilla:
    case WeightRule::PipeDream:
    case WeightRule::TwoBuffers:
    case WeightRule::SpecTrain:
    case WeightRule::PipeOptim:
    case WeightRule::CdpV1:
    case WeightRule::CdpV2: return Optimizer::SgdMomentum;
    }
    return Optimizer::SgdMomentum;
}

Diagnostics checkPolicy(const WeightPolicy& policy)
{
    Diagnostics diagnostics;
    const auto fault = [&](std::string_view setting, std::string what, std::string hint) {
        diagnostics.push_back(
            {Severity::Error, fmt::format("schedule.weights.{}", setting), std::move(what), std::move(hint)});
    };
    const auto belongsTo = [&](bool usual, WeightRule rule, std::string_view setting, std::string_view what) {
        if (!usual && policy.rule != rule)
            fault(setting, fmt::format("{} has no {}", titleOf(policy.rule), what),
                  fmt::format("it belongs to {}: leave it out, or use that", titleOf(rule)));
    };
    if (policy.rule == WeightRule::SpecTrain && !keepsOneMoment(policy.optimizer))
        fault("optimizer",
              fmt::format(
                  "SpecTrain predicts from the smoothed gradient of SGD with momentum; {} keeps none that it could use",
                  nameOf(policy.optimizer)),
              "use sgd, or pipeoptim, which follows the optimizer");
    if (policy.rule == WeightRule::XPipe && !keepsAdamsMoments(policy.optimizer))
        fault("optimizer",
              fmt::format("XPipe predicts along Adam's moments; {} has not both", nameOf(policy.optimizer)),
              "use adam or adamw, or pipeoptim, which follows the optimizer");
    if (policy.specTrain != 1 && policy.specTrain != 2)
        fault("spectrain", fmt::format("version {}", policy.specTrain),
              "1: predict for the forward and for the backward; 2: the backward reuses the forward's prediction");
    belongsTo(!policy.verticalSync, WeightRule::PipeDream, "vertical_sync", "vertical sync");
    belongsTo(policy.steps == PredictionSteps::Paper, WeightRule::PipeOptim, "prediction_steps",
              "choice of prediction steps");
    belongsTo(policy.rounding == StepRounding::HalfEven, WeightRule::XPipe, "rounding", "fractions to round");
    belongsTo(policy.specTrain == 1, WeightRule::SpecTrain, "spectrain", "version");
    return diagnostics;
}

} // namespace pipewright
