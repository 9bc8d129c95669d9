// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/predict/designcheck.h"

#include "core/predict/predict.h"
#include "core/program/deadlock.h"
#include "core/schedule/validate.h"

#include <fmt/format.h>

namespace pipewright {

namespace {

void append(Diagnostics& to, Diagnostics from)
{
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
}

std::vector<MemoryPeak> crossedLimits(const Design& design, const Prediction& prediction)
{
    std::vector<MemoryPeak> crossed;
    const std::size_t devices = std::min(prediction.program.devices.size(), design.cluster.devices.size());
    for (std::size_t device = 0; device < devices; ++device) {
        const DeviceSpec& spec = design.cluster.devices[device];
        if (spec.memory <= 0 || prediction.program.devices[device].peakBytes <= spec.memory)
            continue;
        MemoryPeak& peak =
            crossed.emplace_back(memoryPeak(prediction.program, prediction.timeline, static_cast<int>(device)));
        peak.deviceName = spec.name;
        peak.limit = spec.memory;
    }
    return crossed;
}

Diagnostic explain(const MemoryPeak& peak)
{
    return {Severity::Error, fmt::format("device {}", peak.device),
            fmt::format("needs {} at {}{}, {} more than the {} of {}: {}", formatSize(peak.peak),
                        formatDuration(peak.time), peak.during.empty() ? "" : " (" + peak.during + ")",
                        formatSize(peak.peak - peak.limit), formatSize(peak.limit),
                        peak.deviceName.empty() ? "the device" : peak.deviceName, describeParts(peak)),
            remedy(peak)};
}

} // namespace

Diagnostics checkDesign(const Design& design, std::vector<MemoryPeak>* crossed)
{
    Diagnostics diagnostics = validate(design.schedule, design.dataflow.skips);
    if (hasErrors(diagnostics))
        return diagnostics;
    try {
        const Prediction prediction = predict(design);
        append(diagnostics, checkDeadlock(prediction.program, Communication::Overlapped));
        if (!hasErrors(diagnostics))
            for (Diagnostic blocking : checkDeadlock(prediction.program, Communication::Blocking)) {
                blocking.severity = Severity::Warning;
                blocking.what = "with blocking communication: " + blocking.what;
                diagnostics.push_back(std::move(blocking));
            }
        std::vector<MemoryPeak> peaks = crossedLimits(design, prediction);
        for (const MemoryPeak& peak : peaks)
            diagnostics.push_back(explain(peak));
        if (crossed != nullptr)
            *crossed = std::move(peaks);
    } catch (const Error& error) {
        append(diagnostics, error.diagnostics());
    }
    return diagnostics;
}

} // namespace pipewright
