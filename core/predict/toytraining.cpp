// SPDX-License-Identifier: GPL-3.0-or-later
// Executes a Program's tasks in global order on scalars: forward multiplies by the weight version that the task
// reads, backward applies the chain rule, an update applies the optimizer. O(tasks).
#include "core/predict/toytraining.h"

#include <algorithm>
#include <cmath>

namespace pipewright {

namespace {

/// One weight with its optimizer, and every version of both that there ever was.
template<typename Real>
class ToyStage {
public:
    ToyStage(Optimizer rule, const ToyOptimizer& optimizer, Real start)
        : m_rule(rule), m_settings(optimizer), m_weights{start}, m_directions{0}
    {
    }

    Real weight(int version, int steps) const
    {
        const auto v = static_cast<std::size_t>(version);
        return steps == 0 ? m_weights[v] : m_weights[v] - rate() * static_cast<Real>(steps) * m_directions[v];
    }

    void update(Real gradient)
    {
        const Real direction = step(gradient);
        Real weight = m_weights.back();
        if (m_rule == Optimizer::AdamW)
            weight *= 1 - rate() * static_cast<Real>(m_settings.weightDecay);
        m_weights.push_back(weight - rate() * direction);
        m_directions.push_back(direction);
    }

    const std::vector<Real>& weights() const { return m_weights; }

private:
    Real rate() const { return static_cast<Real>(m_settings.learningRate); }

    Real step(Real g)
    {
        const auto real = [](double value) { return static_cast<Real>(value); };
        switch (m_rule) {
        case Optimizer::SgdMomentum:
            return m_first = real(m_settings.momentum) * m_first + (1 - real(m_settings.dampening)) * g;
        case Optimizer::RmsProp:
            m_second = real(m_settings.smoothing) * m_second + (1 - real(m_settings.smoothing)) * g * g;
            return g / (std::sqrt(m_second) + real(m_settings.epsilon));
        case Optimizer::Adam:
        case Optimizer::AdamW: return adamStep(g);
        }
        return 0;
    }

    Real adamStep(Real g)
    {
        const auto real = [](double value) { return static_cast<Real>(value); };
        const Real beta1 = real(m_settings.beta1), beta2 = real(m_settings.beta2);
        m_first = beta1 * m_first + (1 - beta1) * g;
        m_second = beta2 * m_second + (1 - beta2) * g * g;
        m_power1 *= m_settings.beta1;
        m_power2 *= m_settings.beta2;
        return m_first / real(1 - m_power1) / (std::sqrt(m_second / real(1 - m_power2)) + real(m_settings.epsilon));
    }

    Optimizer m_rule;
    ToyOptimizer m_settings;
    Real m_first = 0, m_second = 0;
    double m_power1 = 1, m_power2 = 1;
    std::vector<Real> m_weights, m_directions; ///< per version
};

template<typename Real>
class Trainer {
public:
    Trainer(const Program& program, Optimizer rule, const ToyOptimizer& optimizer, const ToyModel& model)
        : m_program(program), m_model(model), m_microbatches(static_cast<std::size_t>(program.microbatches)),
          m_gradient(static_cast<std::size_t>(program.stages()))
    {
        for (int stage = 0; stage < program.stages(); ++stage)
            m_stages.emplace_back(rule, optimizer, static_cast<Real>(model.start));
        for (auto* table : {&m_value, &m_saved, &m_slope})
            table->assign(m_stages.size() * m_microbatches, 0);
        m_run.losses.assign(m_microbatches, 0);
    }

    ToyRun<Real> run()
    {
        for (TaskId t = 0; t < m_program.tasks.size(); ++t) {
            const Task& task = m_program.tasks[t];
            const WeightUse use =
                m_program.versioned() ? m_program.weights[t] : WeightUse{0, 0, 0, m_program.microbatches};
            const auto stage = static_cast<std::size_t>(task.stage);
            if (task.kind == TaskKind::Update) {
                m_stages[stage].update(gradientOf(stage, use.update) / static_cast<Real>(use.batchSize));
            } else if (task.kind == TaskKind::Compute) {
                compute(task, use.update, m_stages[stage].weight(use.version, use.steps));
            }
        }
        for (const ToyStage<Real>& stage : m_stages)
            m_run.weights.push_back(stage.weights());
        return std::move(m_run);
    }

private:
    std::size_t cell(std::size_t stage, int microbatch) const
    {
        return stage * m_microbatches + static_cast<std::size_t>(microbatch);
    }

    /// Workers on devices of their own may be a batch ahead, so sums are kept per update.
    Real& gradientOf(std::size_t stage, int update)
    {
        std::vector<Real>& sums = m_gradient[stage];
        if (sums.size() <= static_cast<std::size_t>(update))
            sums.resize(static_cast<std::size_t>(update) + 1, 0);
        return sums[update];
    }

    void compute(const Task& task, int update, Real weight)
    {
        const auto stage = static_cast<std::size_t>(task.stage);
        const std::size_t here = cell(stage, task.microbatch());
        if (makesActivation(task.op))
            forward(task, weight, stage, here);
        if (makesInputGrad(task.op))
            m_slope[here] = outputSlope(task, stage) * weight; // of the stage's input
        if (makesWeightGrad(task.op))
            gradientOf(stage, update) +=
                m_model.kind == ToyModel::Kind::Chain ? outputSlope(task, stage) * m_saved[here] : m_saved[here];
    }

    void forward(const Task& task, Real weight, std::size_t stage, std::size_t here)
    {
        Real& loss = m_run.losses[task.microbatch()];
        switch (m_model.kind) {
        case ToyModel::Kind::Chain: {
            const auto number = static_cast<std::size_t>(task.microbatch()) % m_model.inputs.size();
            m_saved[here] =
                stage == 0 ? static_cast<Real>(m_model.inputs[number]) : m_value[cell(stage - 1, task.microbatch())];
            m_value[here] = weight * m_saved[here];
            if (const Real off = m_value[here] - static_cast<Real>(m_model.target); stage + 1 == m_stages.size())
                loss = off * off / 2;
            break;
        }
        case ToyModel::Kind::Quadratic:
            m_saved[here] = weight;
            loss += weight * weight / 2;
            break;
        case ToyModel::Kind::Slope:
            m_saved[here] = 1;
            loss += weight;
            break;
        }
    }

    Real outputSlope(const Task& task, std::size_t stage) const
    {
        if (m_model.kind != ToyModel::Kind::Chain)
            return 0;
        return stage + 1 == m_stages.size()
                   ? m_value[cell(stage, task.microbatch())] - static_cast<Real>(m_model.target)
                   : m_slope[cell(stage + 1, task.microbatch())];
    }

    const Program& m_program;
    const ToyModel& m_model;
    std::size_t m_microbatches;
    std::vector<ToyStage<Real>> m_stages;
    std::vector<std::vector<Real>> m_gradient;   ///< per stage and update
    std::vector<Real> m_value, m_saved, m_slope; ///< per stage and microbatch
    ToyRun<Real> m_run;
};

} // namespace

template<typename Real>
ToyRun<Real> trainToy(const Program& program, Optimizer rule, const ToyOptimizer& optimizer, const ToyModel& model)
{
    return Trainer<Real>(program, rule, optimizer, model).run();
}

template ToyRun<float> trainToy(const Program&, Optimizer, const ToyOptimizer&, const ToyModel&);
template ToyRun<double> trainToy(const Program&, Optimizer, const ToyOptimizer&, const ToyModel&);

} // namespace pipewright
