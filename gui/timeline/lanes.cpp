// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/timeline/lanes.h"

#include "gui/document/document.h"
#include "gui/timeline/shownschedule.h"
#include "gui/timeline/timelineview.h"
#include "gui/timeline/transferlanes.h"

#include <algorithm>

namespace pipewright {

Lanes::Lanes(const QAbstractScrollArea& view, const Document& document, const ShownSchedule& shown)
    : m_document(document), m_shown(shown), m_places(m_strip, view, TimelineView::plotLeft())
{
}

void Lanes::arrange()
{
    m_strip.setLanes(m_shown.lanes());
    m_strip.setCopyRows(TransferLanes::rowsBeside(m_document.design()));
    m_strip.setCommonHeight(m_places.pitch());
    if (m_pressed >= m_shown.lanes())
        m_pressed = -1;
}

void Lanes::change(const std::function<void(LaneStrip& strip)>& change)
{
    change(m_strip);
    Q_EMIT changed();
}

void Lanes::setHeight(int device, int height)
{
    if (device < 0 || device >= m_strip.lanes())
        return;
    change([&](LaneStrip& strip) {
        if (height <= LaneStrip::foldedHeight)
            strip.setFolded(device, true);
        else
            strip.setHeight(device, height);
    });
}

void Lanes::setHeightOfAll(int height)
{
    change([&](LaneStrip& strip) {
        if (height > LaneStrip::foldedHeight)
            return strip.setHeightOfAll(height);
        for (int device = 0; device < strip.lanes(); ++device)
            strip.setFolded(device, true);
    });
}

int Lanes::chosen() const
{
    if (m_pressed >= 0)
        return m_pressed;
    int device = -1;
    if (m_document.selection())
        (void)m_shown.find(*m_document.selection(), &device);
    return device;
}

int Lanes::forKeys() const
{
    const int lane = chosen();
    return lane >= 0 || m_strip.lanes() == 0 ? lane : m_strip.deviceAt(0);
}

void Lanes::choose(int device)
{
    m_pressed = device;
    Q_EMIT choiceChanged();
}

int Lanes::neighbour(int rows) const
{
    if (m_strip.lanes() == 0)
        return -1;
    const int now = chosen();
    return m_strip.deviceAt(now < 0 ? 0 : std::clamp(m_strip.rowOf(now) + rows, 0, m_strip.lanes() - 1));
}

} // namespace pipewright

#include "moc_lanes.cpp"
