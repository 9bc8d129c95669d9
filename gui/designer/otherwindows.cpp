// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/designer/otherwindows.h"

#include "gui/buildingblock/buildingblockeditor.h"
#include "gui/compare/comparewindow.h"
#include "gui/compare/noisefields.h"
#include "gui/designer/history.h"
#include "gui/designer/windowactions.h"
#include "gui/designer/windowframes.h"
#include "gui/experiment/experimentwindow.h"
#include "gui/model/modelwindow.h"
#include "gui/model/thismachine.h"
#include "gui/plan/planwindow.h"
#include "gui/search/searchwindow.h"
#include "gui/search/tradeoffwindow.h"
#include "gui/sharding/shardingwindow.h"
#include "gui/timeline/timelineview.h"

#include <QAction>
#include <QLayout>
#include <QSettings>

#include <algorithm>

namespace pipewright {

namespace {

const QString openKey = QStringLiteral("session/windows");

using Surroundings = OtherWindow::Surroundings;

/// A window that needs the document only.
template<typename Window>
QWidget* make(const Surroundings& around)
{
    return new Window(around.document, around.parent);
}

QWidget* makeModel(const Surroundings& around)
{
    auto* window = new ModelWindow(around.document, around.parent);
    window->machine().setProgram(around.program);
    return window;
}

QWidget* makeSearch(const Surroundings& around)
{
    return new SearchWindow(
        around.document, [&timeline = around.timeline] { return timeline.selectedBlocks(); }, around.parent);
}

QWidget* makeCompare(const Surroundings& around)
{
    auto* window = new CompareWindow(around.document, around.parent);
    window->setOpened(around.opened);
    if (auto* tradeOffs = around.parent->findChild<TradeOffWindow*>()) // one noise in both
        window->noise().follow(tradeOffs->noise());
    return window;
}

QWidget* makeTradeOffs(const Surroundings& around)
{
    auto* window = new TradeOffWindow(around.document, around.parent);
    if (auto* compare = around.parent->findChild<CompareWindow*>())
        window->noise().follow(compare->noise());
    return window;
}

QWidget* makeHistory(const Surroundings& around)
{
    return new HistoryWindow(around.document.undoStack(), around.parent);
}

void improveSelected(QWidget& window)
{
    auto& search = static_cast<SearchWindow&>(window);
    search.setScope(SearchWindow::Scope::Selected);
    search.start();
}

} // namespace

const std::vector<OtherWindow>& otherWindows()
{
    using Menu = OtherWindow::Menu;
    using Undo = OtherWindow::Undo;
    const auto tr = [](const char* text) { return WindowActions::tr(text); };
    const auto key = [](Qt::Key key) { return QKeySequence(Qt::CTRL | key); };
    const auto shifted = [](Qt::Key key) { return QKeySequence(Qt::CTRL | Qt::SHIFT | key); };
    static const std::vector<OtherWindow> rows{
        {&ModelWindow::staticMetaObject, "model", tr("Model and cluster…"), key(Qt::Key_M),
         tr("Layers, their cut into stages, devices and links"), makeModel},
        {&PlanWindow::staticMetaObject, "plan", tr("Plan…"), shifted(Qt::Key_N),
         tr("The best ways to train a model on so many GPUs: degrees, schedule, memory"), make<PlanWindow>},
        {&SearchWindow::staticMetaObject, "search", tr("Search for a better order…"), shifted(Qt::Key_F),
         tr("The best order within a memory limit, with a bound on what is possible"), makeSearch},
        {&SearchWindow::staticMetaObject, "search", tr("Improve the selected blocks…"), shifted(Qt::Key_I),
         tr("Search again for the order of these alone; all others keep theirs"), makeSearch, Menu::Explore,
         Undo::Shared, improveSelected},
        {&BuildingBlockEditor::staticMetaObject, "block", tr("Building block…"), key(Qt::Key_B),
         tr("Draw the passes of one microbatch and unroll them into a schedule"), make<BuildingBlockEditor>,
         Menu::Explore, Undo::Own},
        {&CompareWindow::staticMetaObject, "compare", tr("Compare…"), shifted(Qt::Key_C),
         tr("Lay schedules side by side on one time axis"), makeCompare},
        {&TradeOffWindow::staticMetaObject, "tradeoffs", tr("Memory against bubble…"), shifted(Qt::Key_T),
         tr("Every family and memory limit as a point; what nothing else beats"), makeTradeOffs},
        {&ExperimentWindow::staticMetaObject, "experiment", tr("Train and compare policies…"), shifted(Qt::Key_W),
         tr("Weight policies on the same data: loss curves, staleness, copies, and the learning rate they bear"),
         make<ExperimentWindow>},
        {&ShardingWindow::staticMetaObject, "sharding", tr("Shard a stage over devices…"), shifted(Qt::Key_D),
         tr("Mixed devices hold one stage together: which tensors are cut, by which shares, and why"),
         make<ShardingWindow>},
        {&HistoryWindow::staticMetaObject, "history", tr("History…"), key(Qt::Key_H),
         tr("Every edit; a click goes back to the state before or after it"), makeHistory, Menu::Schedule},
    };
    return rows;
}

OtherWindows::OtherWindows(const Surroundings& surroundings, const WindowActions& actions, QSettings& settings,
                           WindowFrames& frames)
    : QObject(surroundings.parent), m_surroundings(surroundings), m_actions(actions), m_settings(settings),
      m_frames(frames)
{
    for (std::size_t i = 0; i < otherWindows().size(); ++i)
        connect(actions.windows[i], &QAction::triggered, this, [this, i] { open(otherWindows()[i]); });
    Document& document = surroundings.document;
    connect(&document, &Document::pathChanged, this, [this, &document] {
        if (document.undoStack()->count() == 0)
            m_surroundings.opened = document.design();
        if (auto* compare = find<CompareWindow>())
            compare->setOpened(m_surroundings.opened);
    });
}

QWidget* OtherWindows::find(const QMetaObject& type) const
{
    const auto found = m_windows.find(&type);
    return found == m_windows.end() ? nullptr : found->second;
}

namespace {

const OtherWindow& rowOf(const QMetaObject& type)
{
    return *std::find_if(otherWindows().begin(), otherWindows().end(),
                         [&type](const OtherWindow& row) { return row.type == &type; });
}

constexpr const char* frameProperty = "frame"; ///< of a window that was put into another, as it was

} // namespace

QWidget& OtherWindows::open(const QMetaObject& type)
{
    return open(rowOf(type));
}

QWidget& OtherWindows::putInto(const QMetaObject& type, QWidget& place)
{
    QWidget& window = made(rowOf(type));
    if (window.parentWidget() != &place && !window.isVisible()) {
        window.setProperty(frameProperty, window.saveGeometry());
        window.setParent(&place, Qt::Widget);
        place.layout()->addWidget(&window);
        window.show();
    }
    return window;
}

QWidget& OtherWindows::open(const OtherWindow& row)
{
    QWidget& window = made(row);
    if (!window.isWindow()) {
        window.setParent(m_surroundings.parent, Qt::Dialog | Qt::WindowMinMaxButtonsHint | Qt::WindowCloseButtonHint);
        window.restoreGeometry(window.property(frameProperty).toByteArray());
    }
    bringUp(window);
    if (row.then)
        row.then(window);
    return window;
}

QWidget& OtherWindows::made(const OtherWindow& row)
{
    QWidget*& window = m_windows[row.type];
    if (!window) {
        window = row.make(m_surroundings);
        m_frames.remember(window, QLatin1String(row.key));
        // The actions that open the other windows work in each of them.
        for (std::size_t i = 0; i < otherWindows().size(); ++i)
            if (!otherWindows()[i].then)
                window->addAction(m_actions.windows[i]);
        window->addActions({m_actions.palette, m_actions.theme});
        if (row.undo == OtherWindow::Undo::Shared)
            window->addActions({m_actions.undo, m_actions.redo});
    }
    return *window;
}

void OtherWindows::restore()
{
    const QStringList open = m_settings.value(openKey).toStringList();
    for (const OtherWindow& row : otherWindows())
        if (!row.then && open.contains(QLatin1String(row.key)))
            this->open(row);
}

void OtherWindows::endSession()
{
    QStringList open;
    for (const auto& [type, window] : m_windows)
        if (window->isWindow() && window->isVisible()) {
            open << window->objectName();
            window->hide();
        }
    m_settings.setValue(openKey, open);
}

void bringUp(QWidget& window)
{
    window.show();
    window.raise();
    window.activateWindow();
}

} // namespace pipewright
