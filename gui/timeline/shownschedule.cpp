// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/timeline/shownschedule.h"

#include <algorithm>

namespace pipewright {

const TimelineLayout& ShownSchedule::layout() const
{
    if (m_layouts.preview())
        return *m_layouts.preview();
    return showsMeasured() ? *m_layouts.measured() : present();
}

Side ShownSchedule::side() const
{
    return m_layouts.measured() && !m_isPlanning ? m_document.side() : Side::Predicted;
}

Nanoseconds ShownSchedule::total() const
{
    // A preview may be longer; growing the range during a drag would move the lanes under the cursor, so
    // it does not count.
    const Side side = m_layouts.measured() ? m_document.side() : Side::Predicted;
    if (side == Side::Predicted)
        return present().makespan();
    const Nanoseconds measured = m_layouts.measured()->makespan();
    return side == Side::Measured ? measured : std::max(m_layouts.outlines()->makespan(), measured);
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
    m_layouts.setPresent(m_document.layout());
}

void ShownSchedule::reloadOverlay()
{
    m_layouts.clearMeasured();
    const Document::Overlay* trace = m_document.overlay();
    if (trace && m_document.prediction()) {
        m_layouts.setMeasured(*m_document.prediction(), trace->measured, m_document.design().schedule.devices());
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
    if (trace && prediction && m_layouts.measured())
        m_layouts.align(*prediction, trace->measured, m_document.design().schedule.devices(), m_isStretched);
}

} // namespace pipewright
