// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/designer/windowactions.h"

#include <QAction>
#include <QKeySequence>
#include <QMenu>
#include <QUndoStack>
#include <QWidget>

namespace pipewright {

WindowActions::WindowActions(QUndoStack* stack, QWidget* window) : QObject(window), m_window(window)
{
    makeFileActions();
    makeEditActions(stack);
    for (const OtherWindow& row : otherWindows())
        windows.push_back(make(row.text, {row.shortcut}, row.tip));
    makeRunActions();
    makeViewActions();
    makeMenus();
}

void WindowActions::makeFileActions()
{
    newSchedule = make(tr("New schedule…"), {QKeySequence::New},
                       tr("Model, devices and family, with the prediction while choosing"));
    profile = make(tr("Profile my module…"), {QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_M)},
                   tr("Measure the layers of your PyTorch module, which becomes the model of this design"));
    open = make(tr("Open…"), {QKeySequence::Open}, tr("A design, or a recording with the design inside it"));
    save = make(tr("Save"), {QKeySequence::Save}, tr("Write the design to its file"));
    saveAs =
        make(tr("Save as…"), {QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_S)}, tr("Write the design to another file"));
    picture = make(tr("Export picture…"), {QKeySequence(Qt::CTRL | Qt::Key_E)}, tr("The timeline as SVG, PNG or PDF"));
    print =
        make(tr("Print…"), {QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_E)}, tr("The timeline on paper, or as PDF"));
    quit = make(tr("Quit"), {QKeySequence(Qt::CTRL | Qt::Key_Q)}, tr("Close the designer"));
    recordedRun = make(tr("See a recorded run"), {},
                       tr("A small model's schedule with a real run of it laid over: what was measured beside what was "
                          "predicted"));
}

void WindowActions::makeEditActions(QUndoStack* stack)
{
    undo = stack->createUndoAction(this, tr("Undo"));
    undo->setShortcuts({QKeySequence(Qt::CTRL | Qt::Key_Z)});
    redo = stack->createRedoAction(this, tr("Redo"));
    redo->setShortcuts({QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_Z), QKeySequence(Qt::CTRL | Qt::Key_Y)});
    m_window->addActions({undo, redo});
    place = make(tr("Place the next unplaced block"), {QKeySequence(Qt::Key_N)},
                 tr("At the first position where it can run"));
    completeRest = make(tr("Complete the rest"), {QKeySequence(Qt::CTRL | Qt::Key_P)},
                        tr("Place every block of the tray in the style of the placed ones"));
    emptyTimeline = make(tr("Empty the timeline"), {QKeySequence(Qt::CTRL | Qt::Key_Delete)},
                         tr("Return every block to the tray, to build the schedule anew"));
    takeSuggestion = make(tr("Try the first suggestion"), {QKeySequence(Qt::Key_T)},
                          tr("Make the edit that the panel at the right suggests first"));
    find = make(tr("Find…"), {QKeySequence(Qt::Key_Slash)},
                tr("A block such as F0.3, a stage, a device, a family, a command"));
}

QList<QAction*> WindowActions::windowsIn(OtherWindow::Menu menu) const
{
    QList<QAction*> actions;
    for (std::size_t i = 0; i < windows.size(); ++i)
        if (otherWindows()[i].menu == menu)
            actions << windows[i];
    return actions;
}

void WindowActions::makeRunActions()
{
    run = make(tr("Run…"), {QKeySequence(Qt::CTRL | Qt::Key_R)}, tr("Run this schedule for real and record it"));
    openOverlay = make(tr("Overlay a recorded run…"), {QKeySequence(Qt::CTRL | Qt::Key_L)},
                       tr("Lay a trace over the prediction"));
    clearOverlay = make(tr("Remove the overlay"), {QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_L)},
                        tr("Show the prediction alone"));
    calibrate = make(tr("Take the measured costs"), {QKeySequence(Qt::CTRL | Qt::Key_K)},
                     tr("Calibrate: the overlaid run's durations become the design's costs"));
    costsFrom =
        make(tr("Take costs from…"), {},
             tr("This machine's costs: those of a recorded run of any schedule of the same model, or of another "
                "design, carried over to this one"));
    traceLanes = make(tr("Blocks and kernels of the run…"), {QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_K)},
                      tr("The overlaid run as lanes: blocks, below them what the GPUs ran, calls of the host, memory"));
}

void WindowActions::makeViewActions()
{
    const auto panel = [this](const QString& text, const QString& name, int number, const QString& tip) {
        QAction* action = make(text, {QKeySequence(Qt::ALT | static_cast<Qt::Key>(Qt::Key_0 + number))}, tip);
        action->setObjectName(name);
        action->setCheckable(true);
        action->setChecked(true);
        return action;
    };
    familiesPanel = panel(tr("Families"), QStringLiteral("families"), 1, tr("Tray and families, at the left"));
    inspectorPanel =
        panel(tr("Inspector"), QStringLiteral("inspector"), 2, tr("Why, and what would help, at the right"));
    dockPanel = panel(tr("Dock"), QStringLiteral("dock"), 3,
                      tr("Below the lanes: memory, compare, run, kernels, transfers, microbatches"));
    overview = panel(tr("Overview"), QStringLiteral("overview"), 4, tr("All of the schedule, above the lanes"));
    legend = panel(tr("Legend"), QStringLiteral("legend"), 5, tr("What the signs in the lanes mean"));
    hints = make(tr("Show the hints again"), {}, tr("Drag a block, click idle time, run: where that is done"));
    palette =
        make(tr("Find a command…"), {QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_P)}, tr("Every command by its name"));
    diagnostics = make(tr("Conflicts"), {QKeySequence(Qt::CTRL | Qt::Key_D)},
                       tr("What stands in the way of running this schedule"));
    theme = make(tr("Light or dark"), {QKeySequence(Qt::CTRL | Qt::Key_T)},
                 tr("Switch between the light and the dark look; the desktop's is followed"));
    shortcuts = make(tr("Shortcuts"), {QKeySequence(Qt::Key_Question), QKeySequence(QKeySequence::HelpContents)},
                     tr("Every shortcut"));
}

void WindowActions::makeMenus()
{
    fileMenu = new QMenu(tr("File"), m_window);
    recentMenu = new QMenu(tr("Open recent"), m_window);
    fileMenu->addActions({newSchedule, profile, open});
    fileMenu->addMenu(recentMenu);
    fileMenu->addAction(recordedRun);
    fileMenu->addSeparator();
    fileMenu->addActions({save, saveAs, picture, print});
    fileMenu->addSeparator();
    fileMenu->addAction(quit);
    scheduleMenu = new QMenu(tr("Schedule"), m_window);
    scheduleMenu->addActions(QList<QAction*>{undo, redo} + windowsIn(OtherWindow::Menu::Schedule));
    scheduleMenu->addSeparator();
    scheduleMenu->addActions({place, completeRest, emptyTimeline, takeSuggestion, find, diagnostics});
    scheduleMenu->addSeparator();
    scheduleMenu->addAction(run);
    exploreMenu = new QMenu(tr("Explore"), m_window);
    exploreMenu->addActions(windowsIn(OtherWindow::Menu::Explore));
    overlayMenu = new QMenu(tr("Overlay"), m_window);
    overlayMenu->addActions({openOverlay, clearOverlay, calibrate, costsFrom, traceLanes});
    viewMenu = new QMenu(tr("View"), m_window);
    viewMenu->addAction(palette);
    viewMenu->addAction(theme);
    viewMenu->addAction(shortcuts);
    viewMenu->addSeparator();
    viewMenu->addActions(panels());
    viewMenu->addAction(hints);
    viewMenu->addSeparator();
    allMenu = new QMenu(tr("Menu"), m_window);
    for (QMenu* menu : {fileMenu, scheduleMenu, exploreMenu, overlayMenu, viewMenu})
        allMenu->addMenu(menu);
    allMenu->addSeparator();
    allMenu->addAction(shortcuts);
}

QAction* WindowActions::make(const QString& text, const QList<QKeySequence>& keys, const QString& tip)
{
    auto* action = new QAction(text, this);
    action->setShortcuts(keys);
    action->setToolTip(
        keys.isEmpty() ? tip : QStringLiteral("%1 (%2)").arg(tip, keys.front().toString(QKeySequence::NativeText)));
    m_window->addAction(action);
    return action;
}

void WindowActions::addView(const QString& name, QWidget* view)
{
    m_views.push_back({name, view->actions()});
    QMenu* menu = viewMenu->addMenu(name);
    for (QAction* action : view->actions())
        menu->addAction(action);
}

void WindowActions::addSide(QAction* action)
{
    if (m_sides.isEmpty())
        overlayMenu->addSeparator();
    m_sides.push_back(action);
    overlayMenu->addAction(action);
    m_window->addAction(action);
}

QList<ShortcutList::Group> WindowActions::groups() const
{
    QList<ShortcutList::Group> groups{
        {tr("File"), {newSchedule, profile, open, recordedRun, save, saveAs, picture, print, quit}},
        {tr("Edit"), QList<QAction*>{undo, redo} + windowsIn(OtherWindow::Menu::Schedule)
                         + QList<QAction*>{place, completeRest, emptyTimeline, takeSuggestion, find}},
        {tr("Explore"), windowsIn(OtherWindow::Menu::Explore)},
        {tr("Run and compare"),
         QList<QAction*>{run, openOverlay, clearOverlay, calibrate, costsFrom, traceLanes} + m_sides},
        {tr("Window"), QList<QAction*>{palette, diagnostics, theme, shortcuts} + panels() + QList<QAction*>{hints}}};
    return groups + m_views;
}

} // namespace pipewright

#include "moc_windowactions.cpp"
