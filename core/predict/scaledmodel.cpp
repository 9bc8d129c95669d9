// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/predict/scaledmodel.h"

#include "core/base/diagnostic.h"
#include "core/design/redesign.h"
#include "core/predict/predict.h"

#include <fmt/format.h>

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
    const Prediction before = predict(full), after = predict(scaled.design);
    scaled.report = {std::move(shape.fields), before.metrics.makespan, after.metrics.makespan, peaksOf(before),
                     peaksOf(after)};
    return scaled;
}

} // namespace pipewright
