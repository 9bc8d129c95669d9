// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/median.h"
#include "core/json/jsonvalue.h"
#include "core/presets/scaledshape.h"
#include "executor/run/memorycheck.h"
#include "executor/run/run.h"
#include "executor/runtime/runtime.h"

#include <cmath>

namespace pipewright {

void RunResult::takeMemory(const Program& program, const Runtime& runtime, Backend& from)
{
    peakBytes = runtime.peakBytes();
    arenaBytes = runtime.arenaBytes();
    memory = runtime.memory();
    for (int d = 0; d < devices; ++d)
        heldBytes.push_back(from.device(d).heldBytes());
    if (program.offload.empty())
        return;
    hostBytes = runtime.hostPeakBytes();
    for (const Program::Device& device : program.devices)
        predictedHostBytes.push_back(device.hostPeakBytes);
}

std::optional<double> RunResult::coreWaitShare() const
{
    Nanoseconds waited = 0, all = 0;
    for (std::size_t step = stepTimes.size() > 1 ? 1 : 0; step < coreWaits.size(); ++step) {
        if (coreWaits[step] < 0)
            return std::nullopt;
        waited += coreWaits[step];
        all += stepTimes[step];
    }
    return all > 0 ? std::optional(static_cast<double>(waited) / static_cast<double>(all)) : std::nullopt;
}

std::string RunResult::toJson() const
{
    JsonValue json;
    json["backend"] = backend;
    json["maths"] = maths;
    json["devices"] = devices;
    if (copies > 1)
        json["copies"] = copies;
    if (!groups.empty())
        json["group"] = groups;
    json["steps"] = stepTimes.size();
    json["step_ns"] = stepTimes;
    json["loss"] = JsonValue::array();
    for (const double loss : losses)
        json["loss"].push_back(std::isnan(loss) ? JsonValue() : JsonValue(loss));
    json["core_wait_ns"] = JsonValue::array();
    for (const Nanoseconds wait : coreWaits)
        json["core_wait_ns"].push_back(wait < 0 ? JsonValue() : JsonValue(wait));
    json["peak_bytes"] = peakBytes;
    json["predicted_peak_bytes"] = predictedPeakBytes;
    json["arena_bytes"] = arenaBytes;
    if (!hostBytes.empty()) {
        json["host_bytes"] = hostBytes;
        json["predicted_host_bytes"] = predictedHostBytes;
    }
    json["allocated_bytes"] = heldBytes;
    addHeldMemory(json, memory);
    for (const Diagnostic& note : notes)
        if (note.where == "attention") // who computed which
            json["attention"].push_back(note.what);
    json["dropped_records"] = droppedRecords;
    json["recorder_ns"] = recorder.time;
    json["recorder_records"] = recorder.records;
    if (recorder.stepWithout > 0) {
        json["step_with_recorder_ns"] = recorder.stepWith;
        json["step_without_recorder_ns"] = recorder.stepWithout;
    }
    const auto referenceOf = [](const GradientCheck& check) {
        if (!check.reference.empty())
            return check.reference;
        return std::string(check.lagged ? "sequential-lagged" : "sequential");
    };
    const GradientCheck check = gradients.value_or(GradientCheck{.skipped = "the run did not come to it"});
    if (!check.skipped.empty())
        json["gradient_check"] = {{"reference", referenceOf(check)}, {"skipped", check.skipped}};
    else
        json["gradient_check"] = {{"reference", referenceOf(check)},
                                  {"bit_equal", check.bitEqual},
                                  {"max_relative_error", check.maxRelativeError},
                                  {"within", check.within}};
    if (check.routing.tokens > 0)
        json["gradient_check"]["routing"] = {{"tokens", check.routing.tokens},
                                             {"otherwise", check.routing.otherwise},
                                             {"unexplained", check.routing.unexplained}};
    if (!clockOffsets.empty()) {
        json["clock_offset_ns"] = clockOffsets;
        json["clock_uncertainty_ns"] = clockUncertainties;
    }
    if (scale) {
        JsonValue& scaled = json["scale"];
        scaled["fields"] = JsonValue::array();
        for (const ScaledField& field : scale->fields)
            scaled["fields"].push_back({{"key", field.key}, {"before", field.before}, {"after", field.after}});
        scaled["predicted_step_ns"] = scale->scaledMakespan;
        scaled["predicted_full_step_ns"] = scale->fullMakespan;
        scaled["predicted_full_peak_bytes"] = scale->fullPeaks;
        if (!stepTimes.empty())
            scaled["extrapolated_full_step_ns"] = scale->fullStep(medianOf(stepTimes));
    }
    if (cancelled)
        json["cancelled"] = true;
    json["trace"] = trace.empty() ? JsonValue() : JsonValue(trace);
    if (!traceFault.empty())
        json["trace_fault"] = traceFault;
    return json.dump();
}

} // namespace pipewright
