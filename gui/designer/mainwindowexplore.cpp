// SPDX-License-Identifier: GPL-3.0-or-later
// The other windows. Each is created on first use, keeps its state while hidden and its geometry between sessions, and
// changes the document only through its undo stack.
#include "gui/buildingblock/buildingblockeditor.h"
#include "gui/compare/comparewindow.h"
#include "gui/compare/noisefields.h"
#include "gui/designer/commandpalette.h"
#include "gui/designer/history.h"
#include "gui/designer/mainwindow.h"
#include "gui/designer/windowactions.h"
#include "gui/experiment/experimentwindow.h"
#include "gui/model/modelwindow.h"
#include "gui/model/thismachine.h"
#include "gui/search/searchwindow.h"
#include "gui/search/tradeoffwindow.h"
#include "gui/sharding/shardingwindow.h"
#include "gui/timeline/timelineview.h"

#include <QAction>
#include <QEvent>
#include <QSplitter>

namespace pipewright {

namespace {

const QString openKey = QStringLiteral("session/windows");

/// The borders that can be dragged in a window, in the order they were made.
QString splitterKey(const QString& window, qsizetype number)
{
    return QStringLiteral("splitters/%1/%2").arg(window).arg(number);
}

void bringUp(QWidget& window)
{
    window.show();
    window.raise();
    window.activateWindow();
}

} // namespace

void MainWindow::rememberFrame(QWidget* window, const QString& key)
{
    window->setObjectName(key);
    window->restoreGeometry(m_settings->value(QStringLiteral("windows/") + key).toByteArray());
    const QList<QSplitter*> splitters = window->findChildren<QSplitter*>();
    for (qsizetype i = 0; i < splitters.size(); ++i)
        splitters[i]->restoreState(m_settings->value(splitterKey(key, i)).toByteArray());
    window->installEventFilter(this);
}

void MainWindow::rememberWindow(QWidget* window, const QString& key)
{
    rememberFrame(window, key);
    // The actions that open the other windows work in each of them.
    window->addActions({m_actions->buildingBlock, m_actions->compare, m_actions->tradeOffs, m_actions->experiment,
                        m_actions->sharding, m_actions->search, m_actions->model, m_actions->history,
                        m_actions->palette, m_actions->theme});
    if (window != m_buildingBlockEditor) // it has its own undo stack
        window->addActions({m_actions->undo, m_actions->redo});
}

bool MainWindow::eventFilter(QObject* watched, QEvent* event)
{
    if (event->type() == QEvent::Hide) {
        m_settings->setValue(QStringLiteral("windows/") + watched->objectName(),
                             static_cast<QWidget*>(watched)->saveGeometry());
        const QList<QSplitter*> splitters = watched->findChildren<QSplitter*>();
        for (qsizetype i = 0; i < splitters.size(); ++i)
            m_settings->setValue(splitterKey(watched->objectName(), i), splitters[i]->saveState());
    }
    return QWidget::eventFilter(watched, event);
}

void MainWindow::rememberOpenWindows()
{
    QStringList open;
    for (QWidget* window : std::initializer_list<QWidget*>{m_buildingBlockEditor, m_compare, m_tradeOffs, m_experiment,
                                                           m_sharding, m_search, m_model, m_history})
        if (window && window->isVisible()) {
            open << window->objectName();
            window->hide();
        }
    m_settings->setValue(openKey, open);
}

void MainWindow::restoreWindows()
{
    const QStringList open = m_settings->value(openKey).toStringList();
    const std::pair<const char*, QAction*> actions[] = {
        {"block", m_actions->buildingBlock},   {"compare", m_actions->compare},   {"tradeoffs", m_actions->tradeOffs},
        {"experiment", m_actions->experiment}, {"sharding", m_actions->sharding}, {"search", m_actions->search},
        {"model", m_actions->model},           {"history", m_actions->history}};
    for (const auto& [key, action] : actions)
        if (open.contains(QLatin1String(key)))
            action->trigger();
}

void MainWindow::editBlock()
{
    if (!m_buildingBlockEditor) {
        m_buildingBlockEditor = new BuildingBlockEditor(m_document, this);
        rememberWindow(m_buildingBlockEditor, QStringLiteral("block"));
    }
    bringUp(*m_buildingBlockEditor);
}

void MainWindow::compare()
{
    if (!m_compare) {
        m_compare = new CompareWindow(m_document, this);
        m_compare->setOpened(m_opened);
        rememberWindow(m_compare, QStringLiteral("compare"));
        if (m_tradeOffs) // one noise in both
            m_compare->noise().follow(m_tradeOffs->noise());
    }
    bringUp(*m_compare);
}

void MainWindow::showTradeOffs()
{
    if (!m_tradeOffs) {
        m_tradeOffs = new TradeOffWindow(m_document, this);
        rememberWindow(m_tradeOffs, QStringLiteral("tradeoffs"));
        if (m_compare)
            m_tradeOffs->noise().follow(m_compare->noise());
    }
    bringUp(*m_tradeOffs);
}

void MainWindow::showExperiment()
{
    if (!m_experiment) {
        m_experiment = new ExperimentWindow(m_document, this);
        rememberWindow(m_experiment, QStringLiteral("experiment"));
    }
    bringUp(*m_experiment);
}

void MainWindow::showSharding()
{
    if (!m_sharding) {
        m_sharding = new ShardingWindow(m_document, this);
        rememberWindow(m_sharding, QStringLiteral("sharding"));
    }
    bringUp(*m_sharding);
}

void MainWindow::showSearch()
{
    if (!m_search) {
        m_search = new SearchWindow(
            m_document, [this] { return m_timeline->selectedBlocks(); }, this);
        rememberWindow(m_search, QStringLiteral("search"));
    }
    bringUp(*m_search);
}

void MainWindow::improveSelection()
{
    showSearch();
    m_search->setScope(SearchWindow::Scope::Selected);
    m_search->start();
}

void MainWindow::showModel()
{
    if (!m_model) {
        m_model = new ModelWindow(m_document, this);
        m_model->machine().setProgram(m_options.program);
        rememberWindow(m_model, QStringLiteral("model"));
    }
    bringUp(*m_model);
}

void MainWindow::showHistory()
{
    if (!m_history) {
        m_history = new HistoryWindow(m_document.undoStack(), this);
        rememberWindow(m_history, QStringLiteral("history"));
    }
    bringUp(*m_history);
}

void MainWindow::showPalette()
{
    auto* palette = new CommandPalette(m_actions->groups(), this);
    palette->setAttribute(Qt::WA_DeleteOnClose);
    palette->move(mapToGlobal(QPoint((width() - palette->width()) / 2, 64)));
    palette->show();
    palette->activateWindow();
}

} // namespace pipewright
