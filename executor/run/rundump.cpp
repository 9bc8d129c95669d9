// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/run/rundump.h"

#include "core/base/textfile.h"
#include "core/presets/modeljson.h"

#include <nlohmann/json.hpp>

namespace pipewright {

RunDump::RunDump(const Design& design, const Program& program, const OptimizerSettings& optimizer,
                 const TrainingWork& work, const TrainingData& data, int steps)
    : m_design(design), m_program(program), m_optimizer(optimizer), m_work(work), m_data(data), m_steps(steps)
{
}

void RunDump::addTensors(const std::string& prefix, bool gradients)
{
    int first = 0;
    for (int stage = 0; stage < m_work.stages(); ++stage) {
        const int layers = m_design.layersPerStage[static_cast<std::size_t>(stage)];
        const ParameterLayout layout(*m_design.workload, first, first + layers);
        first += layers;
        const std::span<const float> values = gradients ? m_work.gradients(stage) : m_work.parameters(stage);
        for (const Parameter& parameter : layout.parameters()) {
            std::vector<std::int64_t> shape{parameter.rows, parameter.columns};
            if (parameter.rows == 1)
                shape.erase(shape.begin());
            m_file.add(prefix + parameter.name, shape, parameter.in(values));
        }
    }
}

void RunDump::addParameters(const std::string& when)
{
    addTensors("parameters." + when + "/", false);
}

void RunDump::addGradients()
{
    addTensors("gradients/", true);
}

void RunDump::addBatches()
{
    const ModelShape& shape = m_design.workload->shape;
    const auto inputs = static_cast<std::size_t>(shape.inputs()), targets = static_cast<std::size_t>(shape.targets());
    const auto microbatches = static_cast<std::size_t>(m_program.microbatches);
    std::vector<std::int32_t> allInputs(static_cast<std::size_t>(m_steps) * microbatches * inputs),
        allTargets(static_cast<std::size_t>(m_steps) * microbatches * targets);
    for (std::size_t at = 0; at < static_cast<std::size_t>(m_steps) * microbatches; ++at)
        m_data.sample(static_cast<std::int64_t>(at / microbatches), static_cast<int>(at % microbatches),
                      std::span(allInputs).subspan(at * inputs, inputs),
                      std::span(allTargets).subspan(at * targets, targets));
    const std::vector<std::int64_t> outer{m_steps, m_program.microbatches};
    const auto shaped = [&](std::size_t of) {
        return std::vector<std::int64_t>{outer[0], outer[1], static_cast<std::int64_t>(of)};
    };
    m_file.add("inputs", shaped(inputs), allInputs);
    m_file.add("targets", shaped(targets), allTargets);
}

void RunDump::describe()
{
    const Workload& workload = *m_design.workload;
    m_file.setMetadata("format", "pipewright run 1");
    m_file.setMetadata("design", m_design.name);
    m_file.setMetadata("family", m_design.schedule.family);
    m_file.setMetadata("model", shapeToJson(workload.shape).dump());
    m_file.setMetadata("layers_per_stage", nlohmann::json(m_design.layersPerStage).dump());
    nlohmann::json skips = nlohmann::json::array();
    for (const SkipConnection& skip : m_design.dataflow.skips)
        skips.push_back({skip.fromStage, skip.toStage});
    m_file.setMetadata("skips", skips.dump());
    m_file.setMetadata("optimizer", nlohmann::json{{"name", nameOf(m_optimizer.kind)},
                                                   {"adamw_learning_rate", m_optimizer.adamW.learningRate},
                                                   {"beta1", m_optimizer.adamW.beta1},
                                                   {"beta2", m_optimizer.adamW.beta2},
                                                   {"epsilon", m_optimizer.adamW.epsilon},
                                                   {"weight_decay", m_optimizer.adamW.weightDecay},
                                                   {"sgd_learning_rate", m_optimizer.sgd.learningRate},
                                                   {"momentum", m_optimizer.sgd.momentum}}
                                        .dump());
    nlohmann::json blocks = nlohmann::json::array(); // in an order in which they can run
    for (TaskId t = 0; t < m_program.tasks.size(); ++t) {
        const Task& task = m_program.tasks[t];
        if (task.kind != TaskKind::Compute && !(m_program.versioned() && task.kind == TaskKind::Update))
            continue;
        nlohmann::json block{
            {"op", std::string(1, letter(task.op))}, {"stage", task.stage}, {"microbatch", task.microbatch}};
        if (m_program.versioned()) {
            const WeightUse& use = m_program.weights[t];
            block["version"] = use.version;
            block["steps"] = use.steps;
            block["update"] = use.update;
            block["batch"] = use.batchSize;
        }
        blocks.push_back(std::move(block));
    }
    m_file.setMetadata("blocks", blocks.dump());
}

void RunDump::write(const std::string& path, bool overwrite)
{
    addBatches();
    m_file.add("losses", {static_cast<std::int64_t>(m_losses.size())}, std::span<const float>(m_losses));
    describe();
    writeFileAtomically(path, m_file.bytes(), overwrite);
}

} // namespace pipewright
