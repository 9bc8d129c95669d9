// SPDX-License-Identifier: GPL-3.0-or-later
// The start, data and result of a training run, for comparison in another framework (`run --dump`): parameters before
// the first step, before the last and after it; the last step's gradients, unless weights are updated within the step;
// its predicted probabilities where the head is in the host's memory; all batches and losses; and in the metadata the
// model, its optimizer and which weights every block read. tests/torch/check_dump.py reads it.
#pragma once

#include "core/design/design.h"
#include "core/program/program.h"
#include "executor/run/safetensors.h"
#include "executor/training/trainedwork.h"
#include "executor/training/trainingdata.h"

#include <string>
#include <vector>

namespace pipewright {

class RunDump {
public:
    /// `steps`: of the run. Keeps references to all.
    RunDump(const Design& design, const Program& program, const OptimizerSettings& optimizer, const TrainingData& data,
            int steps);

    /// `when`: "first", "last" (before the last step), "after".
    void addParameters(const std::string& when, const StageValues& parameters);
    void addGradients(const StageValues& gradients); ///< of the last step, after all reductions
    /// Of the last step, per microbatch, for the classes of every row. Adds nothing where none were kept.
    void addProbabilities(std::span<const std::vector<float>> kept);
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
