// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/predict/scaledmodel.h"

#include "core/base/diagnostic.h"
#include "core/base/units.h"
#include "core/design/redesign.h"
#include "core/families/family.h"
#include "core/predict/predict.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace pipewright {

namespace {

std::vector<Bytes> peaksOf(const Prediction& prediction)
{
    std::vector<Bytes> peaks;
    for (const DeviceMetrics& device : prediction.metrics.devices)
        peaks.push_back(device.peakBytes);
    return peaks;
}

/// The compute time of a stage for a microbatch, independent of how its backward is split.
double workOf(const Design& design, int stage)
{
    const StageCosts& costs = design.costs.stages[static_cast<std::size_t>(stage)];
    return static_cast<double>(costs.forward + costs.inputGrad + costs.weightGrad);
}

/// Scales every pin by the ratio of its stage's times; those of cyclic workers by the ratio of all stages', since each
/// waits while the one before it works on the mean stage (families/workers.cpp). They keep their offset relative to
/// their work, instead of sleeping for most of a small model's step.
void scalePins(const Design& full, Design& scaled, std::vector<ScaledField>& fields)
{
    if (full.schedule.pins.empty())
        return;
    const Family* family = findFamily(full.schedule.family);
    const bool ofAllStages = family != nullptr && family->cyclic;
    const auto workBefore = [&](const Design& design, const Pin& pin) {
        double work = 0;
        for (int stage = 0; stage < design.schedule.stages(); ++stage)
            if (ofAllStages || stage == pin.block.stage)
                work += workOf(design, stage);
        return work;
    };
    Nanoseconds before = 0, after = 0;
    for (Pin& pin : scaled.schedule.pins) {
        before = std::max(before, pin.earliestStart);
        if (const double work = workBefore(full, pin); work > 0)
            pin.earliestStart = std::llround(static_cast<double>(pin.earliestStart) * workBefore(scaled, pin) / work);
        after = std::max(after, pin.earliestStart);
    }
    fields.push_back({"latest earliest_start", formatDuration(before), formatDuration(after)});
}

} // namespace

Nanoseconds ScaleReport::fullStep(Nanoseconds measured) const
{
    if (scaledMakespan == 0)
        return measured;
    return std::llround(static_cast<double>(measured) * static_cast<double>(fullMakespan)
                        / static_cast<double>(scaledMakespan));
}

std::string ScaleReport::text() const
{
    std::string text;
    for (const ScaledField& field : fields)
        text += fmt::format("{}{} {} to {}", text.empty() ? "" : ", ", field.key, field.before, field.after);
    return text.empty() ? "nothing" : text;
}

ScaledDesign scaledDesign(const Design& full, const std::string& scale)
{
    if (!full.workload)
        throw Error("--scale", "the design has costs but no model", "make the design from a model");
    ScaledShape shape = scaledShape(full.workload->shape, scale);
    ScaledDesign scaled{withModel(full, shape.shape), {}};
    scalePins(full, scaled.design, shape.fields);
    const Prediction before = predict(full), after = predict(scaled.design);
    scaled.report = {std::move(shape.fields), before.metrics.makespan, after.metrics.makespan, peaksOf(before)};
    return scaled;
}

} // namespace pipewright
