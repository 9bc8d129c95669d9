// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/inspector/lanefields.h"

#include "gui/timeline/lanestrip.h"
#include "gui/timeline/timelineview.h"
#include "gui/widgets/fields.h"
#include "gui/widgets/labels.h"
#include "gui/widgets/layouts.h"

#include <QCheckBox>

namespace pipewright {

LaneFields::LaneFields(TimelineView& timeline, QWidget* parent)
    : QWidget(parent), m_timeline(timeline), m_caption(makeCaption({}, TextSize::Normal, this)),
      m_row(new NumberField(tr("Row of the lane"),
                            tr("From the top, 1 is first; pinned lanes stay above the others; as by "
                               "dragging the lane's label"),
                            this)),
      m_height(new NumberField(tr("Height of the lane"),
                               tr("Pixels, with its shown transfers, as by dragging the line below the lane's label"),
                               this)),
      m_all(new QCheckBox(tr("all"), this))
{
    m_row->setPrefix(tr("row "));
    m_row->setFixedWidth(66);
    m_height->setFixedWidth(70);
    m_height->setSuffix(tr(" px"));
    m_height->setSpecialValueText(tr("folded"));
    m_height->setSingleStep(10); // the same step as by keyboard
    m_all->setAccessibleName(tr("Height of all lanes"));
    m_all->setToolTip(tr("The height is given to every lane, as in a drag with Shift"));
    m_caption->setBuddy(m_row);
    auto* layout = makeLayout<QHBoxLayout>(this, {0, 0, 0, 0}, 8);
    layout->addWidget(m_caption, 1);
    layout->addWidget(m_row);
    layout->addWidget(m_height);
    layout->addWidget(m_all);

    connect(m_row, &QSpinBox::valueChanged, this,
            [this](int row) { m_timeline.setLaneRow(m_timeline.chosenLane(), row - 1); });
    connect(m_height, &QSpinBox::valueChanged, this, &LaneFields::applyHeight);
    // The view, connected earlier, handles selection and design changes first.
    connect(&m_timeline, &TimelineView::lanesChanged, this, &LaneFields::refresh);
    connect(&m_timeline.document(), &Document::selectionChanged, this, &LaneFields::refresh);
    connect(&m_timeline.document(), &Document::designChanged, this, &LaneFields::refresh);
    refresh();
}

void LaneFields::refresh()
{
    const int lane = m_timeline.chosenLane();
    setVisible(lane >= 0);
    if (lane < 0)
        return;
    const LaneStrip& lanes = m_timeline.lanes();
    const QSignalBlocker quietRow(m_row), quietHeight(m_height);
    m_caption->setText(tr("lane %1").arg(deviceLabel(m_timeline.document().design(), lane)));
    m_row->setRange(1, lanes.lanes());
    m_row->setValue(lanes.rowOf(lane) + 1);
    m_height->setRange(LaneStrip::foldedHeight, LaneStrip::greatestHeight + lanes.transferHeight(lane));
    m_height->setValue(lanes.height(lane));
}

void LaneFields::applyHeight(int height)
{
    const int lane = m_timeline.chosenLane();
    if (!m_all->isChecked())
        m_timeline.setLaneHeight(lane, height);
    else if (height <= LaneStrip::foldedHeight)
        m_timeline.setHeightOfLanes(height);
    else
        m_timeline.setHeightOfLanes(height - m_timeline.lanes().transferHeight(lane));
}

} // namespace pipewright

#include "moc_lanefields.cpp"
