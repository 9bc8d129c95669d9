// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/run/rundump.h"

#include "core/base/textfile.h"
#include "core/json/jsontext.h"
#include "core/presets/modeljson.h"

#include <nlohmann/json.hpp>

namespace pipewright {

RunDump::RunDump(const Design& design, const Program& program, const OptimizerSettings& optimizer,
                 const TrainingData& data, int steps)
    : m_design(design), m_program(program), m_optimizer(optimizer), m_data(data), m_steps(steps)
{
}

void RunDump::addTensors(const std::string& prefix, const StageValues& values)
{
    int first = 0;
    for (std::size_t stage = 0; stage < values.size(); ++stage) {
        const int last = first + m_design.layersPerStage[stage];
        const ParameterLayout layout(*m_design.workload, first, last);
        for (const Parameter& parameter : layout.parameters()) {
            std::vector<std::int64_t> shape{parameter.rows, parameter.columns};
            if (parameter.rows == 1)
                shape.erase(shape.begin());
            m_file.add(prefix + parameter.name, shape, parameter.in(std::span(values[stage])));
        }
        first = last;
    }
}

void RunDump::addParameters(const std::string& when, const StageValues& parameters)
{
    addTensors("parameters." + when + "/", parameters);
}

void RunDump::addGradients(const StageValues& gradients)
{
    addTensors("gradients/", gradients);
}

void RunDump::addProbabilities(std::span<const std::vector<float>> kept)
{
    std::vector<float> all;
    for (const std::vector<float>& each : kept)
        all.insert(all.end(), each.begin(), each.end());
    if (all.empty())
        return;
    const std::int64_t microbatches = m_program.microbatches;
    const std::int64_t targets = m_design.workload->shape.targets();
    m_file.add("probabilities", {microbatches, targets, static_cast<std::int64_t>(all.size()) / microbatches / targets},
               std::span<const float>(all));
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
    m_file.setMetadata("model", jsonText(shapeToJson(workload.shape)));
    m_file.setMetadata("layers_per_stage", jsonText(nlohmann::json(m_design.layersPerStage)));
    nlohmann::json skips = nlohmann::json::array();
    for (const SkipConnection& skip : m_design.dataflow.skips)
        skips.push_back({skip.fromStage, skip.toStage});
    m_file.setMetadata("skips", jsonText(skips));
    m_file.setMetadata("optimizer", jsonText(nlohmann::json{{"name", nameOf(m_optimizer.kind)},
                                                            {"adamw_learning_rate", m_optimizer.adamW.learningRate},
                                                            {"beta1", m_optimizer.adamW.beta1},
                                                            {"beta2", m_optimizer.adamW.beta2},
                                                            {"epsilon", m_optimizer.adamW.epsilon},
                                                            {"weight_decay", m_optimizer.adamW.weightDecay},
                                                            {"sgd_learning_rate", m_optimizer.sgd.learningRate},
                                                            {"momentum", m_optimizer.sgd.momentum}}));
    nlohmann::json blocks = nlohmann::json::array(); // in an order in which they can run
    for (TaskId t = 0; t < m_program.tasks.size(); ++t) {
        const Task& task = m_program.tasks[t];
        if (task.kind != TaskKind::Compute && !(m_program.versioned() && task.kind == TaskKind::Update))
            continue;
        nlohmann::json block{
            {"op", std::string(1, letter(task.op))}, {"stage", task.stage}, {"microbatch", task.microbatch()}};
        if (m_program.versioned()) {
            const WeightUse& use = m_program.weights[t];
            block["version"] = use.version;
            block["steps"] = use.steps;
            block["update"] = use.update;
            block["batch"] = use.batchSize;
        }
        blocks.push_back(std::move(block));
    }
    m_file.setMetadata("blocks", jsonText(blocks));
}

void RunDump::write(const std::string& path, bool overwrite)
{
    addBatches();
    m_file.add("losses", {static_cast<std::int64_t>(m_losses.size())}, std::span<const float>(m_losses));
    describe();
    writeFileAtomically(path, m_file.bytes(), overwrite);
}

} // namespace pipewright
