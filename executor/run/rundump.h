// SPDX-License-Identifier: GPL-3.0-or-later
// What a training run began with, did and ended with, for comparison in another framework (`run --dump`): parameters
// before the first and after the last step and before it, the last step's gradients, all batches and losses, and in the
// metadata the model, its optimizer and which weights every block read. tests/torch/check_dump.py reads it.
#pragma once

#include "core/design/design.h"
#include "core/program/program.h"
#include "executor/run/safetensors.h"
#include "executor/training/trainingwork.h"

#include <string>
#include <vector>

namespace pipewright {

class RunDump {
public:
    /// `steps`: of the run. Keeps references to all.
    RunDump(const Design& design, const Program& program, const OptimizerSettings& optimizer, const TrainingWork& work,
            const TrainingData& data, int steps);

    void addParameters(const std::string& when); ///< "first", "last" (before the last step), "after"
    void addGradients();                         ///< of the last step, after all reductions
    void addLoss(double loss) { m_losses.push_back(static_cast<float>(loss)); }

    /// With the batches of all steps. Throws Error.
    void write(const std::string& path, bool overwrite);

private:
    void addTensors(const std::string& prefix, bool gradients);
    void addBatches();
    void describe();

    const Design& m_design;
    const Program& m_program;
    const OptimizerSettings& m_optimizer;
    const TrainingWork& m_work;
    const TrainingData& m_data;
    int m_steps;
    std::vector<float> m_losses;
    Safetensors m_file;
};

} // namespace pipewright
