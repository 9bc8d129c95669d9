// SPDX-License-Identifier: GPL-3.0-or-later
// The main window's actions with their shortcuts, and its menus. The list of shortcuts and the command palette are made
// from these and from the actions that views register. Other windows (trace, building block, model) define their own
// keys, which are not listed.
#pragma once

#include "gui/designer/otherwindows.h"
#include "gui/designer/shortcuts.h"

#include <QObject>

#include <vector>

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

    QAction *newSchedule, *profile, *open, *recordedRun, *save, *saveAs, *picture, *print, *quit;
    QAction *undo, *redo, *place, *completeRest, *emptyTimeline, *takeSuggestion, *find;
    std::vector<QAction*> windows; ///< of otherWindows(), in its order
    QAction *run, *openOverlay, *clearOverlay, *calibrate, *costsFrom, *traceLanes;
    QAction *palette, *diagnostics, *theme, *shortcuts, *hints;
    /// The parts of the window; checked while visible.
    QAction *familiesPanel, *inspectorPanel, *dockPanel, *overview, *legend;

    QMenu *recentMenu, *fileMenu, *viewMenu;
    QMenu* scheduleMenu; ///< editing: the families are beside it in the window
    QMenu* exploreMenu;  ///< alternatives to the current schedule and their results
    QMenu* overlayMenu;
    QMenu* allMenu; ///< all of the above, for the menu button

    /// Lists a view's own actions in the View menu and in the shortcut list.
    void addView(const QString& name, QWidget* view);
    QList<QAction*> panels() const { return {familiesPanel, inspectorPanel, dockPanel, overview, legend}; }
    void addSide(QAction* action); ///< of the switch Predicted | Measured | Both
    QList<ShortcutList::Group> groups() const;

private:
    void makeFileActions();
    void makeEditActions(QUndoStack* stack);
    QList<QAction*> windowsIn(OtherWindow::Menu menu) const;
    void makeRunActions();
    void makeViewActions();
    void makeMenus();
    QAction* make(const QString& text, const QList<QKeySequence>& keys, const QString& tip);

    QWidget* m_window;
    QList<ShortcutList::Group> m_views;
    QList<QAction*> m_sides;
};

} // namespace pipewright
