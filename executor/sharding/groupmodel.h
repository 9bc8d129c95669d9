// SPDX-License-Identifier: GPL-3.0-or-later
// The model that members of groups train, by names of tensors: its initial parameters, and the data of every step.
#pragma once

#include "core/design/groupstages.h"
#include "executor/sharding/groupreference.h"
#include "executor/stage/kernelsettings.h"

#include <string>
#include <vector>

namespace pipewright::sharding {

class GroupModel {
public:
    virtual ~GroupModel() = default;
    /// Name of a parameter, or of another node, in a copy of a stage.
    virtual std::string nameOf(std::size_t copy, const Node& node) const = 0;
    virtual WholeTensors parameters() const = 0; ///< initial values
    virtual void beginStep(int step) = 0;
    virtual const HostTensor& data(const Node& leaf, int microbatch) const = 0; ///< of the current step
    virtual float lossWeight() const = 0; ///< weight of a microbatch's summed loss in what an update minimises
    virtual double lossOfStep(double sum) const { return sum * static_cast<double>(lossWeight()); }
    virtual double balanceOver() const { return 1; }   ///< LayerSettings
    virtual float correctionRate() const { return 0; } ///< by which a step moves a correction of the experts' choice
    /// These tensors, all of the model, in the layouts of its stages; empty: they have none.
    virtual StageValues byStage(const WholeTensors&) const { return {}; }
    virtual bool learns() const { return true; } ///< false: parameters stay as they are
};

/// The model of a design, trained on text or chunks of files.
class DesignModel final : public GroupModel {
public:
    /// Design and data must outlive this. `start`: initial parameters in place of random ones. `batch`: microbatches of
    /// an update; 0: all of a step. Throws Error with whyGroupsDoNotTrain().
    DesignModel(const Design& design, const TrainingData& data, std::uint64_t seed, TrainedWork::Start start = {},
                int batch = 0);

    std::string nameOf(std::size_t copy, const Node& node) const override;
    WholeTensors parameters() const override { return initialParameters(*m_design.workload, m_seed, m_start); }
    void beginStep(int step) override;
    const HostTensor& data(const Node& leaf, int microbatch) const override;
    float lossWeight() const override;
    double lossOfStep(double sum) const override;
    double balanceOver() const override { return pipewright::balanceOver(m_design.workload->shape, m_batch); }
    StageValues byStage(const WholeTensors& tensors) const override;
    float correctionRate() const override { return static_cast<float>(m_design.workload->shape.routerBiasRate); }

private:
    const Design& m_design;
    const TrainingData& m_data;
    std::uint64_t m_seed;
    TrainedWork::Start m_start;
    int m_batch;
    std::vector<int> m_firstLayer; ///< per stage: to be added to the layer numbers of its plan
    StepData m_step;
};

} // namespace pipewright::sharding
