// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/timeline/shownschedule.h"

#include <algorithm>
#include <cmath>

namespace pipewright {
namespace {

Nanoseconds lastEnd(const Timeline& timeline)
{
    return timeline.end.empty() ? 0 : *std::max_element(timeline.end.begin(), timeline.end.end());
}

} // namespace

const TimelineLayout& ShownSchedule::layout() const
{
    if (m_preview)
        return *m_preview;
    return showsMeasured() ? *m_measured : present();
}

Side ShownSchedule::side() const
{
    return m_measured && !m_isPlanning ? m_document.side() : Side::Predicted;
}

Nanoseconds ShownSchedule::total() const
{
    // A preview may be longer; growing the range during a drag would move the lanes under the cursor, so
    // it does not count.
    const Side side = m_measured ? m_document.side() : Side::Predicted;
    if (side == Side::Predicted)
        return present().makespan();
    const Nanoseconds measured = m_measured->makespan();
    return side == Side::Measured ? measured : std::max(m_outlines->makespan(), measured);
}

std::optional<LaneBlock> ShownSchedule::find(const Block& block, int* device) const
{
    const TimelineLayout& from = layout();
    const std::optional<TimelineLayout::Place> place = from.find(block);
    if (!place)
        return std::nullopt;
    if (device)
        *device = place->device;
    return from.lanes()[place->device].blocks()[place->index];
}

const Timeline& ShownSchedule::transferTimes() const
{
    static const Timeline nothing;
    if (showsMeasured()) // what was not recorded stands as the records around it allow
        return m_document.overlay()->explanation.completed;
    const Prediction* prediction = m_document.prediction();
    return prediction ? prediction->timeline : nothing;
}

void ShownSchedule::reload()
{
    m_preview.reset();
    m_retimed.reset();
    if (m_document.layout() == m_present)
        return;
    m_before = std::move(m_present);
    m_present = m_document.layout();
}

void ShownSchedule::reloadOverlay()
{
    m_measured.reset();
    m_outlines.reset();
    const Document::Overlay* trace = m_document.overlay();
    if (trace && m_document.prediction()) {
        m_measured.emplace(m_document.prediction()->program, trace->measured, m_document.design().schedule.devices());
        align();
    }
}

void ShownSchedule::stretchOutlines(bool on)
{
    m_isStretched = on;
    align();
}

void ShownSchedule::align()
{
    const Document::Overlay* trace = m_document.overlay();
    const Prediction* prediction = m_document.prediction();
    if (!trace || !prediction || !m_measured)
        return;
    Timeline aligned;
    aligned.start = prediction->timeline.start;
    aligned.end = prediction->timeline.end;
    const Nanoseconds from = firstStart(aligned), to = firstStart(trace->measured);
    const double length = double(lastEnd(aligned) - from);
    const double factor = m_isStretched && length > 0 ? double(lastEnd(trace->measured) - to) / length : 1;
    for (auto* times : {&aligned.start, &aligned.end})
        for (Nanoseconds& time : *times)
            if (time != notRun)
                time = to + static_cast<Nanoseconds>(std::llround(double(time - from) * factor));
    m_outlines.emplace(prediction->program, aligned, m_document.design().schedule.devices());
}

void ShownSchedule::previewRetimed(const Prediction& prediction, int device, std::span<const std::uint32_t> positions,
                                   TaskId changed)
{
    if (!m_retimed)
        m_retimed = std::make_shared<TimelineLayout>(*m_present);
    m_preview = m_retimed->retime(*m_present, prediction, device, positions, changed) ? m_retimed : nullptr;
}

} // namespace pipewright
