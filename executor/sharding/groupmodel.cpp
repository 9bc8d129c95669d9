// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/sharding/groupmodel.h"

#include "core/base/diagnostic.h"
#include "core/model/modelgraph.h"
#include "core/model/transformer.h"

#include <charconv>
#include <utility>

namespace pipewright::sharding {

DesignModel::DesignModel(const Design& design, const TrainingData& data, std::uint64_t seed, TrainedWork::Start start,
                         int batch)
    : m_design(design), m_data(data), m_seed(seed), m_start(std::move(start)),
      m_batch(batch > 0 ? batch : design.schedule.microbatches)
{
    if (Diagnostics why = whyGroupsDoNotTrain(design.workload->shape); !why.empty())
        throw Error(std::move(why));
    int first = 0;
    for (const int count : design.layersPerStage) {
        m_firstLayer.push_back(rangeOf(*design.workload, first, count).first
                               - stageRange(*design.workload, first, count).first);
        first += count;
    }
}

std::string DesignModel::nameOf(std::size_t copy, const Node& node) const
{
    const std::string& name = node.name;
    if (hasTiedHead(m_design.workload->shape) && name == headName)
        return embeddingName;
    int layer = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), layer);
    const int first = m_firstLayer[copy % m_firstLayer.size()];
    return error == std::errc() ? std::to_string(layer + first) + std::string(end) : name;
}

void DesignModel::beginStep(int step)
{
    m_step = sampleStep(m_data, m_design.workload->shape, step, m_design.schedule.microbatches);
}

const HostTensor& DesignModel::data(const Node& leaf, int microbatch) const
{
    return (leaf.name == inputName ? m_step.inputs : m_step.targets)[static_cast<std::size_t>(microbatch)];
}

StageValues DesignModel::byStage(const WholeTensors& tensors) const
{
    StageValues values;
    int first = 0;
    for (const int layers : m_design.layersPerStage) {
        const ParameterLayout layout(*m_design.workload, first, first + layers);
        values.push_back(inLayout(tensors, m_design.workload->shape, layout));
        first += layers;
    }
    return values;
}

float DesignModel::lossWeight() const
{
    return sharding::lossWeight(m_design.workload->shape, m_batch);
}

double DesignModel::lossOfStep(double sum) const
{
    return sum * static_cast<double>(lossWeight()) * (double(m_batch) / m_design.schedule.microbatches);
}

} // namespace pipewright::sharding
