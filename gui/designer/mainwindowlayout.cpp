// SPDX-License-Identifier: GPL-3.0-or-later
// The window's layout: three columns, with the lanes and one device's memory in large in the middle one. Borders can
// be dragged, and each part has an action that hides it. Sizes follow the window until a border is dragged; dragged
// borders and hidden parts are restored in later sessions.
#include "gui/designer/mainwindow.h"

#include "gui/buildingblock/buildingblockpreview.h"
#include "gui/designer/baseline.h"
#include "gui/designer/designmenus.h"
#include "gui/designer/designruns.h"
#include "gui/designer/editdifferences.h"
#include "gui/designer/familylist.h"
#include "gui/designer/findfield.h"
#include "gui/designer/firsthints.h"
#include "gui/designer/footline.h"
#include "gui/designer/legend.h"
#include "gui/designer/otherwindows.h"
#include "gui/designer/sideswitch.h"
#include "gui/designer/topbar.h"
#include "gui/designer/verdictstrip.h"
#include "gui/designer/windowactions.h"
#include "gui/dock/dock.h"
#include "gui/inspector/inspector.h"
#include "gui/inspector/suggestionlist.h"
#include "gui/inspector/tray.h"
#include "gui/memory/memorypanel.h"
#include "gui/model/modelwindow.h"
#include "gui/run/runstrip.h"
#include "gui/timeline/minimap.h"
#include "gui/timeline/timelineview.h"
#include "gui/trace/runerrors.h"
#include "gui/widgets/labels.h"
#include "gui/widgets/layouts.h"

#include <QAction>
#include <QPushButton>
#include <QScreen>
#include <QScrollArea>
#include <QScrollBar>
#include <QSplitter>
#include <QTabWidget>
#include <QToolButton>
#include <QTreeWidget>

#include <algorithm>

namespace pipewright {

namespace {

constexpr int narrowestLeft = 200, usualLeft = 256, widestLeft = 320;
constexpr int narrowestRight = 277, usualRight = 316, widestRight = 420;
constexpr int leastCentre = 340;
constexpr int leastDock = 128, tallestDock = 340; // unless the lanes leave more
constexpr int leastTimeline = 110;

const QString hiddenKey = QStringLiteral("panels/hidden");
const QString columnsKey = QStringLiteral("splitters/columns");
const QString rowsKey = QStringLiteral("splitters/rows");

QVBoxLayout* columnOf(QWidget* column)
{
    makePanel(column);
    auto* layout = makeLayout<QVBoxLayout>(column, {16, 16, 12, 12}, 20);
    return layout;
}

} // namespace

void MainWindow::build()
{
    m_findings = new Findings(m_document, this);
    m_topBar = new TopBar(m_document, *m_findings, *m_actions, m_runs->controller(),
                          new FindField([this] { return foundEntries(); }, this), this);
    m_runStrip = new RunStrip(m_runs->controller(), this);
    m_side = new SideSwitch(m_document, *m_settings, this);
    for (const Side side : allSides)
        m_actions->addSide(m_side->action(side));
    m_baseline = new Baseline(m_document, this);
    m_verdicts = new VerdictStrip(*m_baseline, m_side, this);
    m_foot = new FootLine(this);
    m_columns = new QSplitter(Qt::Horizontal, this);
    m_columns->setHandleWidth(5);
    m_columns->addWidget(m_left = buildLeft());
    m_columns->addWidget(buildCentre());
    m_columns->addWidget(m_right = buildRight());
    m_columns->setStretchFactor(1, 1);
    m_columns->setCollapsible(1, false);
    auto* layout = makeLayout<QVBoxLayout>(this, {0, 0, 0, 0}, 0);
    layout->addWidget(m_topBar);
    layout->addWidget(makeHairline(Qt::Horizontal, this));
    layout->addWidget(m_verdicts);
    layout->addWidget(makeHairline(Qt::Horizontal, this));
    layout->addWidget(m_runStrip);
    layout->addWidget(m_columns, 1);
    layout->addWidget(makeHairline(Qt::Horizontal, this));
    layout->addWidget(m_foot);
    m_menus = new DesignMenus(m_document, *m_families, this);
    for (const auto part : {Breadcrumb::Model, Breadcrumb::Cluster, Breadcrumb::Family})
        m_topBar->breadcrumb().button(part)->setMenu(m_menus->menu(part));
    m_others = new OtherWindows({m_document, *m_timeline, m_options.program, this}, *m_actions, *m_settings, *m_frames);
    buildDock();
    addPanels();
}

QWidget* MainWindow::buildLeft()
{
    auto* column = new QWidget(this);
    QVBoxLayout* layout = columnOf(column);
    column->setMinimumWidth(narrowestLeft);
    m_tray = new Tray(m_document, column);
    m_families = new FamilyList(m_document, column);
    m_families->setMinimumHeight(90);
    layout->addWidget(m_tray);
    m_blockPreview = new BuildingBlockPreview(m_document, column);
    layout->addWidget(m_families, 1);
    layout->addWidget(m_blockPreview);
    return column;
}

QWidget* MainWindow::buildCentre()
{
    auto* column = new QWidget(this);
    column->setMinimumWidth(leastCentre);
    auto* lanes = new QWidget(column);
    m_timeline = new TimelineView(m_document, lanes);
    m_timeline->setMinimumHeight(leastTimeline);
    m_legend = new Legend(*m_timeline, lanes);
    m_minimap = new Minimap(*m_timeline, lanes);
    auto* lanesLayout = makeLayout<QVBoxLayout>(lanes, {0, 0, 0, 0}, 0);
    lanesLayout->addWidget(m_legend);
    lanesLayout->addWidget(m_minimap);
    lanesLayout->addWidget(m_timeline, 1);
    m_dock = new Dock(*m_settings, column);
    m_dock->setMinimumHeight(leastDock);
    m_memory = new MemoryPanel(m_dock);
    m_memory->setAll(false); // the lanes have the memory of all
    m_rows = new QSplitter(Qt::Vertical, column);
    m_rows->setHandleWidth(5);
    m_hints = new FirstHints(*m_timeline, *m_actions->recordedRun, *m_settings, column);
    m_rows->addWidget(lanes);
    m_rows->addWidget(m_dock);
    m_rows->setCollapsible(0, false);
    auto* layout = makeLayout<QVBoxLayout>(column, {0, 0, 0, 0}, 0);
    layout->addWidget(m_rows, 1);
    layout->addWidget(m_hints);
    m_actions->addView(tr("Timeline"), m_timeline);
    m_actions->addView(tr("Overview"), m_minimap);
    setTabOrder(m_minimap, m_timeline); // in visual order
    return column;
}

QWidget* MainWindow::buildRight()
{
    m_right = m_answers = new QTabWidget(this);
    m_answers->setMinimumWidth(narrowestRight);
    m_answers->setDocumentMode(true);
    m_answers->setAccessibleName(tr("The selected block, and the run"));
    makePanel(m_answers);
    const auto addPage = [this](const QString& name, const QString& objectName) {
        auto* column = new QWidget(this);
        auto* layout = columnOf(column);
        column->setMinimumWidth(0);
        auto* scroll = new QScrollArea(m_answers);
        scroll->setObjectName(objectName);
        scroll->setFrameShape(QFrame::NoFrame);
        scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
        scroll->setWidgetResizable(true);
        scroll->setFocusPolicy(Qt::NoFocus);
        scroll->setWidget(column);
        makePanel(scroll->viewport());
        m_answers->addTab(scroll, name);
        return layout;
    };
    QVBoxLayout* block = addPage(tr("Block"), QStringLiteral("inspectorScroll"));
    QWidget* column = block->parentWidget();
    m_inspector = new Inspector(*m_timeline, column);
    m_differences = new EditDifferences(m_document, *m_baseline, column);
    m_suggestions = new SuggestionList(m_document, column);
    m_inspector->addBelowWhy(m_suggestions);
    m_inspector->addBelowWhy(makeHairline(Qt::Horizontal, column));
    m_inspector->addBelowWhy(m_differences);
    m_inspector->addBelowWhy(makeHairline(Qt::Horizontal, column));
    block->addWidget(m_inspector);
    block->addStretch(0);
    QVBoxLayout* run = addPage(tr("Run"), QStringLiteral("runScroll"));
    auto* none =
        makeCaption(tr("No run is laid over. Run this schedule, or lay a recorded run over it: Overlay in the menu."),
                    TextSize::Normal, run->parentWidget());
    none->setWordWrap(true);
    connect(&m_document, &Document::overlayChanged, none, [this, none] { none->setVisible(!m_document.overlay()); });
    run->addWidget(none);
    m_runErrors = new RunErrors(m_document, run->parentWidget());
    run->addWidget(m_runErrors);
    run->addStretch(0);
    return m_answers;
}

void MainWindow::showAnswer(Answer answer)
{
    m_answers->setCurrentIndex(answer);
    auto* scroll = qobject_cast<QScrollArea*>(m_answers->currentWidget());
    scroll->verticalScrollBar()->setValue(0); // the answer is at the top
}

void MainWindow::addPanels()
{
    const std::pair<QAction*, QWidget*> panels[] = {{m_actions->familiesPanel, m_left},
                                                    {m_actions->inspectorPanel, m_right},
                                                    {m_actions->dockPanel, m_dock},
                                                    {m_actions->overview, m_minimap},
                                                    {m_actions->legend, m_legend}};
    const QStringList hidden = m_settings->value(hiddenKey).toStringList();
    for (const auto& [action, panel] : panels) {
        action->setChecked(!hidden.contains(action->objectName()));
        panel->setVisible(action->isChecked());
        connect(action, &QAction::toggled, panel, [this, shown = panel](bool on) {
            shown->setVisible(on);
            arrangeColumns();
            arrangeRows();
            QStringList left;
            for (const QAction* each : m_actions->panels())
                if (!each->isChecked())
                    left << each->objectName();
            m_settings->setValue(hiddenKey, left);
        });
    }
    connect(m_legend, &Legend::closed, m_actions->legend, [this] { m_actions->legend->setChecked(false); });
    connect(m_actions->hints, &QAction::triggered, m_hints, &FirstHints::startOver);
    connect(m_columns, &QSplitter::splitterMoved, this, [this] { m_columnsAreOwn = true; });
    connect(m_rows, &QSplitter::splitterMoved, this, [this] { m_rowsAreOwn = true; });
}

void MainWindow::restoreLayout()
{
    if (!restoreGeometry(m_settings->value(QStringLiteral("geometry")).toByteArray())) {
        const QSize room = screen()->availableSize() - QSize(0, 40); // with its frame; Run is at the right edge
        resize(QSize(1480, 900).expandedTo(room * 9 / 10).boundedTo(room));
    }
    m_columnsAreOwn = m_columns->restoreState(m_settings->value(columnsKey).toByteArray());
    m_rowsAreOwn = m_rows->restoreState(m_settings->value(rowsKey).toByteArray());
}

void MainWindow::rememberLayout()
{
    m_settings->setValue(QStringLiteral("geometry"), saveGeometry());
    if (m_columnsAreOwn)
        m_settings->setValue(columnsKey, m_columns->saveState());
    if (m_rowsAreOwn)
        m_settings->setValue(rowsKey, m_rows->saveState());
}

void MainWindow::arrangeColumns()
{
    if (m_columnsAreOwn)
        return;
    // Wider on large screens, so that fewer words are elided; narrower on small ones, so that the lanes have room.
    const QMargins margins = m_left->layout()->contentsMargins();
    const bool narrow = width() < 1200;
    const int names = m_families->widthOfNames(narrow) + margins.left() + margins.right();
    const int least = std::max(names, narrow ? narrowestLeft : usualLeft);
    const int left = std::clamp(width() * 18 / 100, least, std::max(least, widestLeft));
    const int right = std::clamp(width() * 20 / 100, width() < 1200 ? narrowestRight : usualRight, widestRight);
    m_columns->setSizes({left, std::max(leastCentre, m_columns->width() - left - right - 10), right});
}

void MainWindow::arrangeRows()
{
    const int beside =
        (m_legend->isHidden() ? 0 : m_legend->height()) + (m_minimap->isHidden() ? 0 : m_minimap->height());
    // Set on the box of minimap, legend and lanes: on the lanes alone, the unused height would appear between them.
    const int greatest = m_timeline->greatestHeight() + beside;
    m_timeline->parentWidget()->setMaximumHeight(greatest);
    if (m_rowsAreOwn)
        return;
    // The lanes hold their devices' memory, so they come first; the dock gets what they leave, and no less than can be
    // read.
    const int all =
        m_rows->parentWidget()->height() - m_rows->handleWidth() - (m_hints->isHidden() ? 0 : m_hints->height());
    const int dock = m_dock->isHidden() ? 0 : std::clamp(all / 4, leastDock, tallestDock);
    const int lanes = std::min(greatest, std::max(leastTimeline + beside, all - dock));
    m_rows->setSizes({lanes, std::max(dock, all - lanes)});
}

void MainWindow::resizeEvent(QResizeEvent* event)
{
    QWidget::resizeEvent(event);
    arrangeColumns();
    arrangeRows();
}

void MainWindow::showEvent(QShowEvent* event)
{
    QWidget::showEvent(event);
    arrangeColumns();
    arrangeRows();
    m_timeline->showAll();
    m_timeline->setFocus();
}

void MainWindow::openPart(Breadcrumb::Part part)
{
    switch (part) {
    case Breadcrumb::Model:
    case Breadcrumb::Cluster:
        m_others->open<ModelWindow>().tabs()->setCurrentIndex(part == Breadcrumb::Model ? ModelWindow::Model
                                                                                        : ModelWindow::Devices);
        return;
    case Breadcrumb::Family:
        m_actions->familiesPanel->setChecked(true);
        m_families->list()->setFocus(Qt::ShortcutFocusReason);
        return;
    }
}

} // namespace pipewright
