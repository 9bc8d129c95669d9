// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/exchange/blockscsv.h"

#include "core/predict/bubbles.h"

#include <fmt/format.h>

namespace pipewright {

namespace {

std::string spanOf(const Timeline* timeline, TaskId t)
{
    return timeline && timeline->start[t] != notRun ? fmt::format("{},{}", timeline->start[t], timeline->end[t]) : ",";
}

void addMetrics(std::string& text, const char* name, const Program& program, const Timeline& timeline)
{
    const Metrics metrics = measure(program, timeline);
    for (std::size_t d = 0; d < metrics.devices.size(); ++d) {
        const DeviceMetrics& m = metrics.devices[d];
        const IdleCauses& c = metrics.idleCauses[d];
        text += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", name, d, metrics.makespan, m.busy,
                            m.idle, m.span, m.peakActivations, m.peakBytes, c.warmUp, c.waitActivation, c.waitGradient,
                            c.transfer, c.coolDown, c.other, c.host, c.copies);
    }
}

} // namespace

void blocksCsv(const Program& program, const Timeline& predicted, const Timeline* measured, const Pieces& to)
{
    PieceBuffer buffer(to);
    buffer.text = "block,device,op,stage,microbatch,replica,predicted_start_ns,predicted_end_ns,measured_start_ns,"
                  "measured_end_ns\n";
    for (TaskId t = 0; t < program.tasks.size(); ++t) {
        const Task& task = program.tasks[t];
        if (task.kind == TaskKind::Compute)
            buffer.text +=
                fmt::format("{},{},{},{},{},{},{},{}\n", program.label(t), task.device, letter(task.op), task.stage,
                            task.microbatch(), task.replica, spanOf(&predicted, t), spanOf(measured, t));
        buffer.handOn();
    }
    buffer.finish();
}

void metricsCsv(const Program& program, const Timeline& predicted, const Timeline* measured, const Pieces& to)
{
    std::string text =
        "timeline,device,makespan_ns,busy_ns,idle_ns,span_ns,peak_activations,peak_bytes,warm_up_ns,wait_activation_ns,"
        "wait_gradient_ns,transfer_ns,cool_down_ns,other_ns,host_ns,copies_ns\n";
    addMetrics(text, "predicted", program, predicted);
    if (measured)
        addMetrics(text, "measured", program, *measured);
    to(text);
}

} // namespace pipewright
