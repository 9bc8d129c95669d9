// SPDX-License-Identifier: GPL-3.0-or-later
// Two fields of one lane, the numeric twins of dragging its label and the line below it: its row from the top
// and its height, or that of all lanes. It is the lane that keys act on: the one whose label was pressed last, or else
// the selected block's. How lanes stand belongs to the view and not to the design, so nothing of it is an undo step.
#pragma once

#include <QWidget>

class QCheckBox;
class QLabel;

namespace pipewright {

class NumberField;
class TimelineView;

class LaneFields : public QWidget {
    Q_OBJECT

public:
    explicit LaneFields(TimelineView& timeline, QWidget* parent = nullptr);

private:
    void refresh();
    void applyHeight(int height);

    TimelineView& m_timeline;
    QLabel* m_caption;
    NumberField* m_row;
    NumberField* m_height;
    QCheckBox* m_all;
};

} // namespace pipewright
