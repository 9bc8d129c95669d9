// SPDX-License-Identifier: GPL-3.0-or-later
// The context menus of a timeline: for a block, a transfer, a lane, idle time, and the ruler with its range and marks.
// A right click opens the menu of the item under the cursor; the menu key opens the menu of the item that was chosen
// last.
#pragma once

#include "gui/timeline/timelinemap.h"

#include <QCoreApplication>

#include <initializer_list>

class QContextMenuEvent;
class QMenu;

namespace pipewright {

class TimelineView;
struct TimelineParts;

class TimelineMenus {
    Q_DECLARE_TR_FUNCTIONS(TimelineView)

public:
    TimelineMenus(TimelineView& view, TimelineParts& parts) : m_view(view), d(parts) {}

    enum class Chosen { Block, Transfer, Lane, Idle, Ruler };
    void setChosen(Chosen chosen) { m_chosen = chosen; } ///< the kind of item chosen last, by mouse or key
    void showAt(QContextMenuEvent& event);
    void showOfChosen();

private:
    bool isDragging() const;
    void showOfBlock(QPoint position);
    void showOfTransfer(int device, QPoint position);
    void showOfLane(int lane, QPoint position);
    void showOfIdle(const IdleTime& idle, QPoint position);
    void showOfRuler(Nanoseconds time, QPoint position);
    QMenu* menuOf(std::initializer_list<const char*> names) const; ///< actions by their names; "": a line
    void popUp(QMenu& menu, QPoint position) const;

    TimelineView& m_view;
    TimelineParts& d;
    Chosen m_chosen = Chosen::Block;
};

} // namespace pipewright
