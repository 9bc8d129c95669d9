// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/timeline/shownlayouts.h"

#include <algorithm>
#include <cmath>

namespace pipewright {
namespace {

Nanoseconds firstStart(const Timeline& timeline)
{
    Nanoseconds first = notRun;
    for (const Nanoseconds start : timeline.start)
        if (start != notRun && (first == notRun || start < first))
            first = start;
    return std::max<Nanoseconds>(0, first);
}

Nanoseconds lastEnd(const Timeline& timeline)
{
    return timeline.end.empty() ? 0 : *std::max_element(timeline.end.begin(), timeline.end.end());
}

} // namespace

void ShownLayouts::setPresent(std::shared_ptr<const TimelineLayout> layout)
{
    m_preview.reset();
    m_retimed.reset();
    if (layout == m_present)
        return;
    m_before = std::move(m_present);
    m_present = std::move(layout);
}

void ShownLayouts::setMeasured(const Prediction& prediction, const Timeline& measured, int devices)
{
    m_measured.emplace(prediction.program, measured, devices);
}

void ShownLayouts::clearMeasured()
{
    m_measured.reset();
    m_outlines.reset();
}

void ShownLayouts::align(const Prediction& prediction, const Timeline& measured, int devices, bool stretched)
{
    Timeline aligned;
    aligned.start = prediction.timeline.start;
    aligned.end = prediction.timeline.end;
    const Nanoseconds from = firstStart(aligned), to = firstStart(measured);
    const double length = double(lastEnd(aligned) - from);
    const double factor = stretched && length > 0 ? double(lastEnd(measured) - to) / length : 1;
    for (auto* times : {&aligned.start, &aligned.end})
        for (Nanoseconds& time : *times)
            if (time != notRun)
                time = to + static_cast<Nanoseconds>(std::llround(double(time - from) * factor));
    m_outlines.emplace(prediction.program, aligned, devices);
}

void ShownLayouts::previewRetimed(const Prediction& prediction, int device, std::span<const std::uint32_t> positions,
                                  TaskId changed)
{
    if (!m_retimed)
        m_retimed = std::make_shared<TimelineLayout>(*m_present);
    m_preview = m_retimed->retime(*m_present, prediction, device, positions, changed) ? m_retimed : nullptr;
}

} // namespace pipewright
