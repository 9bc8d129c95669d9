// SPDX-License-Identifier: GPL-3.0-or-later
// Two fields of a lane for what dragging its label and the line below it does: its row, and its height or that of all
// lanes. The lane is the one whose label was pressed last, else the selected block's. Both belong to the view, not the
// design, so they are no undo steps.
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
