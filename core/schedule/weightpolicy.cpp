// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/schedule/weightpolicy.h"

#include <fmt/format.h>

#include <array>

namespace pipewright {

namespace {

constexpr std::array<std::string_view, weightRuleCount> ruleNames = {
    "synchronous", "vanilla", "pipedream", "pipedream-2bw", "spectrain", "xpipe", "pipeoptim", "cdp-v1", "cdp-v2"};
constexpr std::array<std::string_view, weightRuleCount> ruleTitles = {
    "synchronous", "asynchronous without stash", "PipeDream", "PipeDream-2BW", "SpecTrain", "XPipe", "PipeOptim",
    "CDP-v1", "CDP-v2"};
constexpr std::array<std::string_view, updateRuleCount> updateNames = {"sgd", "adam", "adamw", "rmsprop"};
constexpr std::array<std::string_view, 3> stepsNames = {"paper", "exact", "code"};
constexpr std::array<std::string_view, 5> roundingNames = {"half-even", "half-up", "half-down", "floor", "ceiling"};

template<typename Enum, std::size_t count>
std::optional<Enum> named(const std::array<std::string_view, count>& names, std::string_view name)
{
    for (std::size_t i = 0; i < count; ++i)
        if (names[i] == name)
            return static_cast<Enum>(i);
    return std::nullopt;
}

} // namespace

std::string_view nameOf(WeightRule rule) { return ruleNames[static_cast<std::size_t>(rule)]; }
std::string_view titleOf(WeightRule rule) { return ruleTitles[static_cast<std::size_t>(rule)]; }
std::string_view nameOf(UpdateRule rule) { return updateNames[static_cast<std::size_t>(rule)]; }
std::string_view nameOf(PredictionSteps steps) { return stepsNames[static_cast<std::size_t>(steps)]; }
std::string_view nameOf(StepRounding rounding) { return roundingNames[static_cast<std::size_t>(rounding)]; }

std::optional<WeightRule> weightRuleNamed(std::string_view name) { return named<WeightRule>(ruleNames, name); }
std::optional<UpdateRule> updateRuleNamed(std::string_view name) { return named<UpdateRule>(updateNames, name); }
std::optional<PredictionSteps> predictionStepsNamed(std::string_view name) { return named<PredictionSteps>(stepsNames, name); }
std::optional<StepRounding> stepRoundingNamed(std::string_view name) { return named<StepRounding>(roundingNames, name); }

Diagnostics checkPolicy(const WeightPolicy& policy)
{
    Diagnostics diagnostics;
    const auto fault = [&](std::string_view setting, std::string what, std::string hint) {
        diagnostics.push_back({Severity::Error, fmt::format("schedule.weights.{}", setting), std::move(what), std::move(hint)});
    };
    const auto belongsTo = [&](bool usual, WeightRule rule, std::string_view setting, std::string_view what) {
        if (!usual && policy.rule != rule)
            fault(setting, fmt::format("{} has no {}", titleOf(policy.rule), what),
                  fmt::format("it belongs to {}: leave it out, or use that", titleOf(rule)));
    };
    if (policy.rule == WeightRule::SpecTrain && policy.optimizer != UpdateRule::SgdMomentum)
        fault("optimizer", fmt::format("SpecTrain predicts from the smoothed gradient of SGD with momentum; {} keeps none that it could use",
                                       nameOf(policy.optimizer)),
              "use sgd, or pipeoptim, which follows the optimizer");
    if (policy.rule == WeightRule::XPipe && policy.optimizer != UpdateRule::Adam && policy.optimizer != UpdateRule::AdamW)
        fault("optimizer", fmt::format("XPipe predicts along Adam's moments; {} has not both", nameOf(policy.optimizer)),
              "use adam or adamw, or pipeoptim, which follows the optimizer");
    if (policy.specTrain != 1 && policy.specTrain != 2)
        fault("spectrain", fmt::format("version {}", policy.specTrain),
              "1: predict for the forward and for the backward; 2: the backward reuses the forward's prediction");
    belongsTo(!policy.verticalSync, WeightRule::PipeDream, "vertical_sync", "vertical sync");
    belongsTo(policy.steps == PredictionSteps::Paper, WeightRule::PipeOptim, "prediction_steps", "choice of prediction steps");
    belongsTo(policy.rounding == StepRounding::HalfEven, WeightRule::XPipe, "rounding", "fractions to round");
    belongsTo(policy.specTrain == 1, WeightRule::SpecTrain, "spectrain", "version");
    return diagnostics;
}

} // namespace pipewright
