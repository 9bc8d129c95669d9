// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/run/gradientcheck.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace pipewright {

static_assert(passCount == 4, "which passes sum gradients is said here");

AccumulationOrder accumulationOrder(const Program& program)
{
    AccumulationOrder order;
    order.inputGrad.resize(static_cast<std::size_t>(program.stages()) * static_cast<std::size_t>(program.replicas()));
    order.weightGrad.resize(order.inputGrad.size());
    for (const Program::Device& device : program.devices) {
        for (const Instruction& instruction : device.instructions) {
            if (instruction.kind != InstructionKind::Compute)
                continue;
            const Task& task = program.tasks[instruction.task];
            const auto share = static_cast<std::size_t>(task.replica * program.stages() + task.stage);
            if (makesInputGrad(task.op))
                order.inputGrad[share].push_back(task.microbatch);
            if (makesWeightGrad(task.op))
                order.weightGrad[share].push_back(task.microbatch);
        }
    }
    return order;
}

GradientCheck compareGradients(const TrainingWork& work, const SequentialTrainer& reference)
{
    GradientCheck check{.bitEqual = true};
    for (int share = 0; share < work.stages() * work.replicas(); ++share) {
        const int stage = share % work.stages();
        const std::span<const float> ours = work.gradients(stage, share / work.stages());
        const std::span<const float> theirs = reference.gradients(stage);
        if (ours.size() != theirs.size())
            return {false, std::numeric_limits<double>::infinity()};
        if (std::memcmp(ours.data(), theirs.data(), ours.size_bytes()) == 0)
            continue;
        check.bitEqual = false;
        for (std::size_t i = 0; i < ours.size(); ++i) {
            const double difference = std::abs(double(ours[i]) - double(theirs[i]));
            const double scale = std::max(std::abs(double(theirs[i])), double(std::numeric_limits<float>::min()));
            // A NaN on one side only is as wrong as it can be.
            const double error = std::isnan(difference) ? std::numeric_limits<double>::infinity() : difference / scale;
            check.maxRelativeError = std::max(check.maxRelativeError, error);
        }
    }
    return check;
}

} // namespace pipewright
