// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/document/recording.h"

#include <algorithm>
#include <utility>

namespace pipewright {

namespace {

std::shared_ptr<const Overlay::Kernels> kernelsOf(const TraceReader& trace, const Program& program, int step)
{
    if (!trace.holdsGpuWork())
        return nullptr;
    GpuWork work = trace.gpuWork(program, step);
    const Timeline measured = trace.timeline(program, step);
    auto kernels = std::make_shared<Overlay::Kernels>();
    kernels->blocks = blockKernels(program, work, measured, KernelGroups::standard());
    kernels->totals = totalsOf(program, kernels->blocks, work, measured);
    if (kernels->ofGpus())
        kernels->gaps = gpuGaps(program, work, measured);
    kernels->names = std::move(work.names);
    kernels->of.resize(program.devices.size());
    for (TaskId task = 0; task < kernels->blocks.size(); ++task)
        if (!kernels->blocks[task].kernels.empty())
            kernels->of[program.tasks[task].device].push_back(task);
    for (std::vector<TaskId>& tasks : kernels->of)
        std::sort(tasks.begin(), tasks.end(), [&](TaskId a, TaskId b) {
            return kernels->blocks[a].kernels.front().start < kernels->blocks[b].kernels.front().start;
        });
    return kernels;
}

} // namespace

Recording::Recording(const QString& path, int step)
    : m_path(path), m_trace(path.toStdString()), m_steps(m_trace.steps()), m_medianStep(m_trace.medianStep()),
      m_step(step == medianStep ? m_medianStep : step), m_peaks(m_trace.peakBytes()), m_resultJson(m_trace.resultJson())
{
}

void Recording::read(const std::shared_ptr<const Prediction>& prediction)
{
    const Program& program = prediction->program;
    if (m_of && m_of->program == program)
        return;
    StepVariation variation = stepVariation(m_trace, program);
    const bool typical = m_step == typicalStep;
    Timeline measured = typical ? std::move(variation.typical) : m_trace.timeline(program, m_step);
    m_kernels = typical ? nullptr : kernelsOf(m_trace, program, m_step);
    m_variation = std::move(variation); // only now: an undone edit finds what was read before it
    m_measured = std::move(measured);
    m_of = prediction;
}

std::shared_ptr<Overlay> Recording::over(const Design& design, const std::shared_ptr<const Prediction>& prediction)
{
    read(prediction);
    const Program& program = prediction->program;
    auto overlay = std::make_shared<Overlay>();
    overlay->path = m_path;
    overlay->steps = m_steps;
    overlay->lengths = stepLengths(m_steps);
    overlay->medianStep = m_medianStep;
    overlay->step = m_step;
    overlay->measured = m_measured;
    overlay->comparison = compare(program, prediction->timeline, m_measured, m_peaks);
    overlay->explanation = explain(program, design.costs, prediction->timeline, m_measured,
                                   coreWaitIn(m_steps, m_step == typicalStep ? -1 : m_step));
    overlay->metrics = measure(program, overlay->explanation.completed);
    overlay->spread = m_variation.spread;
    overlay->resultJson = m_resultJson;
    overlay->kernels = m_kernels;
    return overlay;
}

} // namespace pipewright
