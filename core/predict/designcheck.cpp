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

/// The blocks whose activations are live on `device` when its memory is highest would be a long list; the
/// moment and the amount is what a person needs to know where to look.
void checkMemory(const Design& design, const Prediction& prediction, Diagnostics& diagnostics)
{
    for (std::size_t device = 0; device < prediction.program.devices.size(); ++device) {
        if (device >= design.cluster.devices.size())
            break;
        const DeviceSpec& spec = design.cluster.devices[device];
        const Program::Device& use = prediction.program.devices[device];
        if (spec.memory <= 0 || use.peakBytes <= spec.memory)
            continue;
        Nanoseconds when = 0;
        Bytes highest = 0;
        for (const MemorySample& sample : prediction.timeline.memory[device])
            if (sample.bytes > highest) {
                highest = sample.bytes;
                when = sample.time;
            }
        diagnostics.push_back(
            {Severity::Error, fmt::format("device {}", device),
             fmt::format("needs {} at {}, {} of them all the time, and {} has {}", formatSize(use.peakBytes),
                         formatDuration(when), formatSize(use.persistentBytes),
                         spec.name.empty() ? "the device" : spec.name, formatSize(spec.memory)),
             "keep fewer microbatches alive, use smaller ones, or spread the layers over more devices"});
    }
}

} // namespace

Diagnostics checkDesign(const Design& design)
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
        checkMemory(design, prediction, diagnostics);
    } catch (const Error& error) {
        append(diagnostics, error.diagnostics());
    }
    return diagnostics;
}

} // namespace pipewright
