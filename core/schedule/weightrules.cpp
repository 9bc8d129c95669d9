// SPDX-License-Identifier: GPL-3.0-or-later
// One class per published rule; the paper stands above each. PipeOptim's and Cyclic Data Parallelism's have files of
// their own, pipeoptimrule.cpp and cdprule.cpp. O(1) per question.
#include "core/schedule/weightrules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace pipewright {

int specTrainForwardSteps(int stages, int stage)
{
    return stage / 2 + stages - stage - 1;
}
int specTrainBackwardSteps(int stage)
{
    return stage / 2;
}

double xpipeForwardSteps(int stages, int stage, int batchSize)
{
    return (stages + batchSize - stage / 2.0 - 2) / batchSize;
}

double xpipeBackwardSteps(int stage, int batchSize)
{
    return (batchSize + stage / 2 - 1.0) / batchSize;
}

int rounded(double steps, StepRounding rounding)
{
    const double below = std::floor(steps), rest = steps - below;
    const int down = static_cast<int>(below), up = rest > 0 ? down + 1 : down;
    switch (rounding) {
    case StepRounding::Floor: return down;
    case StepRounding::Ceiling: return up;
    case StepRounding::HalfUp: return rest >= 0.5 ? up : down;
    case StepRounding::HalfDown: return rest > 0.5 ? up : down;
    case StepRounding::HalfEven: break;
    }
    return rest > 0.5 || (rest == 0.5 && down % 2 != 0) ? up : down;
}

namespace {

class Synchronous final : public VersionRule {
    WeightAnswer forward(const WeightQuestion& block) const override { return {block.batch}; }
    WeightAnswer backward(const WeightQuestion& block) const override { return {block.batch}; }
    bool namesVersions() const override { return true; }
};

class Vanilla final : public VersionRule {
    WeightAnswer forward(const WeightQuestion& block) const override { return {block.latest}; }
    WeightAnswer backward(const WeightQuestion& block) const override { return {block.latest}; }
};

/// Harlap et al., arXiv 1806.03377.
class Stashing final : public VersionRule {
public:
    explicit Stashing(bool verticalSync) : m_verticalSync(verticalSync) {}
    WeightAnswer forward(const WeightQuestion& block) const override
    {
        return {m_verticalSync ? block.latestAtInjection : block.latest};
    }
    WeightAnswer backward(const WeightQuestion& block) const override { return {block.atForward}; }

private:
    bool m_verticalSync;
};

/// Narayanan et al., arXiv 2006.09503.
class TwoBuffers final : public VersionRule {
    WeightAnswer forward(const WeightQuestion& block) const override { return {block.latestAtBatchInjection}; }
    WeightAnswer backward(const WeightQuestion& block) const override { return {block.atForward}; }
    std::optional<Diagnostic> refuses(int stages, int batchSize) const override
    {
        if (batchSize >= stages)
            return std::nullopt;
        return Diagnostic{Severity::Error, "schedule.weights",
                          fmt::format("{} microbatches per update on {} stages: more than two versions would be in use",
                                      batchSize, stages),
                          "accumulate at least as many microbatches per update as there are stages"};
    }
};

/// Chen et al., arXiv 1809.02839, and the authors' code.
class SpecTrain final : public VersionRule {
public:
    explicit SpecTrain(int version) : m_reuses(version == 2) {}
    WeightAnswer forward(const WeightQuestion& block) const override
    {
        return {block.latest, specTrainForwardSteps(block.stages, block.stage)};
    }
    WeightAnswer backward(const WeightQuestion& block) const override
    {
        if (m_reuses)
            return {block.atForward, specTrainForwardSteps(block.stages, block.stage), PredictionOf::Forward};
        return {block.latest, specTrainBackwardSteps(block.stage)};
    }

private:
    bool m_reuses;
};

/// Guan et al., arXiv 1911.04610. Within a batch the backwards stand between two updates and see one version.
class XPipe final : public VersionRule {
public:
    explicit XPipe(StepRounding rounding) : m_rounding(rounding) {}
    WeightAnswer forward(const WeightQuestion& block) const override
    {
        return {block.latestAtFirstForward,
                rounded(xpipeForwardSteps(block.stages, block.stage, block.batchSize), m_rounding),
                PredictionOf::FirstOfBatch};
    }
    WeightAnswer backward(const WeightQuestion& block) const override
    {
        return {block.batch, rounded(xpipeBackwardSteps(block.stage, block.batchSize), m_rounding),
                PredictionOf::FirstOfBatch};
    }
    std::optional<Diagnostic> refuses(int, int batchSize) const override
    {
        if (batchSize > 1)
            return std::nullopt;
        return Diagnostic{Severity::Error, "schedule.weights",
                          "XPipe shares a prediction among the microbatches of a mini-batch, and there is one",
                          "accumulate 2 or more microbatches per update (--accumulate), or use pipeoptim"};
    }

private:
    StepRounding m_rounding;
};

} // namespace

std::unique_ptr<const VersionRule> makeRule(const WeightPolicy& policy)
{
    switch (policy.rule) {
    case WeightRule::Synchronous: return std::make_unique<Synchronous>();
    case WeightRule::Vanilla: return std::make_unique<Vanilla>();
    case WeightRule::PipeDream: return std::make_unique<Stashing>(policy.verticalSync);
    case WeightRule::TwoBuffers: return std::make_unique<TwoBuffers>();
    case WeightRule::SpecTrain: return std::make_unique<SpecTrain>(policy.specTrain);
    case WeightRule::XPipe: return std::make_unique<XPipe>(policy.rounding);
    case WeightRule::PipeOptim: return pipeOptimRule(policy.steps);
    case WeightRule::CdpV1: return cdpRule(false);
    case WeightRule::CdpV2: return cdpRule(true);
    }
    return nullptr;
}

} // namespace pipewright
