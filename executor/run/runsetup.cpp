// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/run/runsetup.h"

#include "core/design/stagecosts.h"
#include "core/model/transformer.h"
#include "core/program/compile.h"
#include "executor/host/hostbackend.h"
#include "executor/run/backendcheck.h"
#include "executor/run/trainabledesign.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace pipewright {

std::unique_ptr<TrainingData> loadData(const RunOptions& options, const ModelShape& shape, int microbatches,
                                       Diagnostics& notes)
{
    auto data = loadTrainingData(options.data, shape, options.seed, microbatches);
    if (options.data.empty())
        notes.push_back({Severity::Note, "data", "trained on " + data->source(),
                         shape.architecture == Architecture::Vision ? "" : "give --data FILE or FOLDER"});
    if (shape.architecture == Architecture::Encoder && shape.tiedHead)
        notes.push_back({Severity::Note, "model.architecture",
                         fmt::format("asked for {} masked tokens of every sequence; its halves are the two segments",
                                     shape.maskedTokens()),
                         ""});
    else if (shape.architecture == Architecture::Encoder)
        notes.push_back({Severity::Note, "model.architecture",
                         fmt::format("the pooler has no task of its own: its {} outputs are taken as scores of the "
                                     "token that follows the sequence, counted round; a sequence's halves are the two "
                                     "segments",
                                     shape.hidden),
                         "write \"tied_head\": true in the model to train on masked tokens"});
    return data;
}

namespace {

/// One thing that the devices of a run do differently from what the model says.
struct DeviceFit {
    Workload workload; ///< changed to what the devices do
    std::string where, what, hint;
};

/// The next such difference; none when the devices do what the workload says.
std::optional<DeviceFit> fitOf(const Workload& workload, const Capabilities& devices)
{
    const ModelShape& shape = workload.shape;
    const AttentionMemory wanted = devices.flashAttention ? AttentionMemory::Streamed : attentionOnHost(shape);
    const bool streamed = wanted == AttentionMemory::Streamed;
    if (shape.attention != wanted && shape.architecture != Architecture::Classifier)
        return DeviceFit{withAttention(workload, wanted), "model.attention",
                         fmt::format("these devices keep {}", streamed ? "one number per query and head of attention"
                                                                       : "attention's probabilities"),
                         fmt::format("write \"attention\": \"{}\"", streamed ? "streamed" : "stored")};
    if (shape.dataType == DataType::Bf16 && shape.widened == devices.bf16Arithmetic)
        return devices.bf16Arithmetic
                   ? DeviceFit{withWidened(workload, false), "model.widened",
                               "these devices compute with bf16 as it is stored, without fp32 copies",
                               "write \"widened\": false"}
                   : DeviceFit{withWidened(workload, true), "model.widened",
                               "these devices compute what is stored in bf16 layer by layer in fp32 copies",
                               "write \"widened\": true"};
    return std::nullopt;
}

void replan(DeviceFit fit, Design& design, Program& program, Diagnostics& notes)
{
    const std::vector<Bytes> before = peaksOf(program);
    design.workload = std::move(fit.workload);
    applyBytes(*design.workload, design.layersPerStage, design.schedule.memoryChoices(), design.costs);
    program = compile(design.schedule, design.costs, design.dataflow);
    const std::vector<Bytes> after = peaksOf(program);
    for (std::size_t d = 0; d < after.size(); ++d)
        if (after[d] != before[d]) {
            notes.push_back({Severity::Note, fit.where,
                             fmt::format("{}: device {} needs {} instead of {}", fit.what, d, exactSize(after[d]),
                                         exactSize(before[d])),
                             fit.hint + " in the model for a prediction of this"});
            return;
        }
}

} // namespace

void fitToDevices(Design& design, Program& program, Backend& backend, Diagnostics& notes)
{
    Capabilities devices = backend.device(0).capabilities();
    for (int d = 1; d < backend.devices(); ++d) {
        const Capabilities own = backend.device(d).capabilities();
        devices.bf16Arithmetic = devices.bf16Arithmetic && own.bf16Arithmetic;
        devices.flashAttention = devices.flashAttention && own.flashAttention;
    }
    while (std::optional<DeviceFit> fit = fitOf(*design.workload, devices))
        replan(std::move(*fit), design, program, notes);
}

double gradientBoundOf(const RunOptions& options, const ModelShape& shape)
{
    return shape.dataType == DataType::Bf16 ? std::max(options.gradientBound, bf16GradientBound)
                                            : options.gradientBound;
}

bool trainsOrThrow(const Design& design, const RunOptions& options, Diagnostics& notes)
{
    if (options.clock == RunOptions::Clock::Virtual && options.maths == RunOptions::Maths::Training)
        throw Error("clock", "the virtual clock has no maths to train with", "use timed maths or the real clock");
    if (options.clock == RunOptions::Clock::Virtual && options.maths == RunOptions::Maths::Synthetic)
        throw Error("clock", "synthetic blocks burn real time", "use timed maths or the real clock");
    if (options.scale != SyntheticScale{} && options.maths != RunOptions::Maths::Synthetic
        && options.maths != RunOptions::Maths::Timed)
        throw Error("scale", "only blocks that take the design's times can be scaled",
                    "use timed or synthetic maths, or leave the scales out");
    const BackendCheck check = checkForBackend(design, meansOf(options));
    if (hasErrors(check.found))
        throw Error(check.found);
    notes.insert(notes.end(), check.found.begin(), check.found.end());
    return check.trains;
}

Design scaledDesign(const Design& design, const RunOptions& options)
{
    Design result = design;
    if (options.scale != SyntheticScale{}) {
        result.costs = scaledCosts(design.costs, options.scale);
        result.dataflow = scaledDataflow(design.dataflow, options.scale);
    }
    return result;
}

std::unique_ptr<Backend> backendFor(const RunOptions& options, int devices)
{
    if (options.createBackend)
        return options.createBackend(devices);
    const Bytes memory = options.runtime.deviceMemory;
    return memory > 0 ? createHostBackend(devices, memory) : createHostBackend(devices);
}

std::vector<Bytes> peaksOf(const Program& program)
{
    std::vector<Bytes> peaks;
    for (const Program::Device& device : program.devices)
        peaks.push_back(device.peakBytes);
    return peaks;
}

void requireParameters(const RunOptions& options, bool trains)
{
    for (const auto& [option, value] : {std::pair{"--dump", &options.dump},
                                        {"--weights", &options.weights},
                                        {"--save-weights", &options.saveWeights}})
        if (!value->empty() && !trains)
            throw Error(option, "the blocks are timed, and there are no parameters",
                        "run a design that trains (`check --for` says why one does not)");
}

} // namespace pipewright
