// SPDX-License-Identifier: GPL-3.0-or-later
// The start, data and result of a training run, for comparison in another framework (`run --dump`): parameters before
// the first step, before the last and after it; the last step's gradients, unless weights are updated within the step;
// its predicted probabilities where the head is in the host's memory; all batches and losses; and in the metadata the
// model, its optimizer and which weights every block read. tests/torch/check_dump.py reads it.
#pragma once

#include "core/design/design.h"
#include "core/program/program.h"
#include "executor/run/safetensors.h"
#include "executor/sharding/wholetensors.h"
#include "executor/training/trainingwork.h"

#include <string>
#include <vector>

namespace pipewright {

/// Parameters, or gradients, of every stage in its layout.
using StageValues = std::vector<std::vector<float>>;
StageValues stageValues(const TrainingWork& work, bool gradients);
StageValues stageValues(const Design& design,
                        const sharding::WholeTensors& tensors); ///< of groups, whose parts were assembled

class RunDump {
public:
    /// `steps`: of the run. Keeps references to all.
    RunDump(const Design& design, const Program& program, const OptimizerSettings& optimizer, const TrainingData& data,
            int steps);

    /// `when`: "first", "last" (before the last step), "after".
    void addParameters(const std::string& when, const StageValues& parameters);
    void addGradients(const StageValues& gradients); ///< of the last step, after all reductions
    /// Of the last step, for the classes of every row. Adds nothing where the head is split, recomputed or not on the
    /// host.
    void addProbabilities(const TrainingWork* work);
    void addLoss(double loss) { m_losses.push_back(static_cast<float>(loss)); }

    /// With the batches of all steps. Throws Error.
    void write(const std::string& path, bool overwrite);

private:
    void addTensors(const std::string& prefix, const StageValues& values);
    void addBatches();
    void describe();

    const Design& m_design;
    const Program& m_program;
    const OptimizerSettings& m_optimizer;
    const TrainingData& m_data;
    int m_steps;
    std::vector<float> m_losses;
    Safetensors m_file;
};

} // namespace pipewright
