// SPDX-License-Identifier: GPL-3.0-or-later
// Everything the window can do, as actions with their shortcuts, and the menus that list them. The
// shortcut list is generated from here, so a shortcut that works is a shortcut that is shown.
#pragma once

#include "gui/dialogs/shortcuts.h"

#include <QObject>

class QAction;
class QKeySequence;
class QMenu;
class QUndoStack;
class QWidget;

namespace pipewright {

class WindowActions : public QObject {
    Q_OBJECT

public:
    WindowActions(QUndoStack* stack, QWidget* window);

    QAction* newSchedule;
    QAction* open;
    QAction* save;
    QAction* saveAs;
    QAction* exportPicture;
    QAction* quit;
    QAction* undo;
    QAction* redo;
    QAction* place;
    QAction* completeRest;
    QAction* emptyTimeline;
    QAction* takeSuggestion;
    QAction* find;
    QAction* buildingBlock;
    QAction* compare;
    QAction* tradeOffs;
    QAction* experiment;
    QAction* sharing;
    QAction* search;
    QAction* improveSelection;
    QAction* model;
    QAction* history;
    QAction* palette;
    QAction* print;
    QAction* run;
    QAction* openOverlay;
    QAction* clearOverlay;
    QAction* calibrate;
    QAction* diagnostics;
    QAction* theme;
    QAction* shortcuts;

    QMenu* recentMenu;
    QMenu* fileMenu;
    QMenu* scheduleMenu; ///< editing: the families are beside it in the window
    QMenu* exploreMenu;  ///< other schedules than the present one, and what they would give
    QMenu* overlayMenu;
    QMenu* viewMenu;
    QMenu* allMenu; ///< all of the above, for the menu button

    /// Lists a view's own actions in the View menu and in the shortcut list.
    void addView(const QString& name, QWidget* view);
    QList<ShortcutList::Group> groups() const;

private:
    QAction* make(const QString& text, const QList<QKeySequence>& keys, const QString& tip);

    QWidget* m_window;
    QList<ShortcutList::Group> m_views;
};

} // namespace pipewright
