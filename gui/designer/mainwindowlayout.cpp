// SPDX-License-Identifier: GPL-3.0-or-later
// The window's layout: three columns, with lanes, memory and bubbles one below the other in the middle one. Borders can
// be dragged, and each part has an action that hides it. Sizes follow the window until a border is dragged; dragged
// borders and hidden parts are restored in later sessions.
#include "gui/designer/mainwindow.h"

#include "gui/buildingblock/buildingblockpreview.h"
#include "gui/designer/bubblepanel.h"
#include "gui/designer/designruns.h"
#include "gui/designer/editdifferences.h"
#include "gui/designer/familylist.h"
#include "gui/designer/firsthints.h"
#include "gui/designer/legend.h"
#include "gui/designer/numberbar.h"
#include "gui/designer/otherwindows.h"
#include "gui/designer/sideswitch.h"
#include "gui/designer/topbar.h"
#include "gui/designer/windowactions.h"
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
#include <QSplitter>
#include <QTabWidget>
#include <QTreeWidget>

#include <algorithm>

namespace pipewright {

namespace {

constexpr int narrowestLeft = 200, usualLeft = 256, widestLeft = 320;
constexpr int narrowestRight = 277, usualRight = 316, widestRight = 420;
constexpr int aboveSide = 16, hintRoom = 26; // over the switch; the hint at Run reaches down there
constexpr int leastCentre = 340;
constexpr int leastMemory = 90, tallestMemory = 560;
constexpr int leastBubbles = 60;
constexpr int leastTimeline = 110;
constexpr int leastShareOfLanes = 60; // of their natural height, in per cent, for rows of memory below them

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
    m_topBar = new TopBar(m_document, *m_findings, *m_actions, m_runs->controller(), this);
    m_runStrip = new RunStrip(m_runs->controller(), this);
    m_side = new SideSwitch(m_document, *m_settings, this);
    for (const Side side : allSides)
        m_actions->addSide(m_side->action(side));
    m_numbers = new NumberBar(this);
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
    layout->addWidget(m_runStrip);
    layout->addWidget(m_columns, 1);
    layout->addWidget(makeHairline(Qt::Horizontal, this));
    layout->addWidget(m_numbers);
    m_others = new OtherWindows({m_document, *m_timeline, m_options.program, this}, *m_actions, *m_settings, *m_frames);
    m_hints = new FirstHints(*m_timeline, *m_topBar->runButton(), *m_settings, this);
    connect(m_hints, &FirstHints::runHintShown, this, &MainWindow::makeRoomForHint);
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
    m_bubbles = new BubblePanel(column);
    m_legend = new Legend(*m_bubbles, lanes);
    m_minimap = new Minimap(*m_timeline, lanes);
    auto* lanesLayout = makeLayout<QVBoxLayout>(lanes, {0, 0, 0, 0}, 0);
    lanesLayout->addWidget(m_legend);
    lanesLayout->addWidget(m_minimap);
    lanesLayout->addWidget(m_timeline, 1);
    m_memory = new MemoryPanel(column);
    m_memory->setMinimumHeight(leastMemory);
    m_memory->setMaximumHeight(tallestMemory);
    m_bubbles->setMinimumHeight(leastBubbles);
    m_rows = new QSplitter(Qt::Vertical, column);
    m_rows->setHandleWidth(5);
    m_rows->addWidget(lanes);
    m_rows->addWidget(m_memory);
    m_rows->addWidget(m_bubbles);
    m_rows->setCollapsible(0, false);
    auto* layout = makeLayout<QVBoxLayout>(column, {0, 0, 0, 0}, 0);
    layout->addWidget(m_rows, 1);
    layout->addStretch(0); // lanes and memory take the available space, as far as they can use it
    m_actions->addView(tr("Timeline"), m_timeline);
    m_actions->addView(tr("Overview"), m_minimap);
    setTabOrder(m_minimap, m_timeline); // in visual order
    return column;
}

QWidget* MainWindow::buildRight()
{
    // The switch applies to the whole window, so it does not scroll with the panel below it.
    auto* panel = new QWidget(this);
    makePanel(panel);
    panel->setMinimumWidth(narrowestRight);
    auto* panelLayout = makeLayout<QVBoxLayout>(panel, {0, 0, 0, 0}, 0);
    m_aboveSide = new QSpacerItem(0, aboveSide, QSizePolicy::Minimum, QSizePolicy::Fixed);
    panelLayout->addItem(m_aboveSide);
    auto* row = makeLayout<QHBoxLayout>(nullptr, {16, 0, 12, 0});
    row->addWidget(m_side);
    panelLayout->addLayout(row);

    auto* column = new QWidget(panel);
    QVBoxLayout* layout = columnOf(column);
    m_inspector = new Inspector(*m_timeline, column);
    m_differences = new EditDifferences(m_document, column);
    m_runErrors = new RunErrors(m_document, column);
    m_suggestions = new SuggestionList(m_document, column);
    m_inspector->addBelowWhy(m_suggestions);
    m_inspector->addBelowWhy(makeHairline(Qt::Horizontal, column));
    m_inspector->addBelowWhy(m_differences);
    m_inspector->addBelowWhy(makeHairline(Qt::Horizontal, column));
    layout->addWidget(m_inspector);
    layout->addWidget(makeHairline(Qt::Horizontal, column));
    layout->addWidget(m_runErrors, 1);
    layout->addStretch(0);

    m_inspectorScroll = new QScrollArea(panel);
    m_inspectorScroll->setObjectName(QStringLiteral("inspectorScroll"));
    m_inspectorScroll->setFrameShape(QFrame::NoFrame);
    m_inspectorScroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    m_inspectorScroll->setWidgetResizable(true);
    m_inspectorScroll->setFocusPolicy(Qt::NoFocus);
    column->setMinimumWidth(0);
    m_inspectorScroll->setWidget(column);
    makePanel(m_inspectorScroll->viewport());
    panelLayout->addWidget(m_inspectorScroll, 1);
    return panel;
}

void MainWindow::makeRoomForHint(bool there)
{
    m_aboveSide->changeSize(0, there ? aboveSide + hintRoom : aboveSide, QSizePolicy::Minimum, QSizePolicy::Fixed);
    m_right->layout()->invalidate();
}

void MainWindow::addPanels()
{
    const std::pair<QAction*, QWidget*> panels[] = {
        {m_actions->familiesPanel, m_left},   {m_actions->inspectorPanel, m_right}, {m_actions->memoryPanel, m_memory},
        {m_actions->bubblesPanel, m_bubbles}, {m_actions->overview, m_minimap},     {m_actions->legend, m_legend}};
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
    if (!restoreGeometry(m_settings->value(QStringLiteral("geometry")).toByteArray()))
        resize(QSize(1480, 900).boundedTo(screen()->availableSize()
                                          - QSize(0, 40))); // with its frame; Run is at the right edge
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
    // Bubbles first, as a part of the height; then lanes and memory 3 : 2, and more for lanes that would not fit.
    const int all = m_rows->parentWidget()->height() - 2 * m_rows->handleWidth();
    // The extra height of the overview with many devices is taken from the bubbles, whose bars may be thin, not from
    // the lanes.
    const int most = all / 4 - (m_minimap->isHidden() ? 0 : m_minimap->height() - Minimap::stripHeight);
    const int bubbles = m_bubbles->isHidden()
                            ? 0
                            : std::clamp(m_bubbles->sizeHint().height(), leastBubbles, std::max(leastBubbles, most));
    const int rest = all - bubbles;
    // The lanes give up some height when that makes room for the memory rows of all devices.
    const int rows = m_memory->compactHeight(m_timeline->laneCount());
    const bool roomForRows = rest - rows >= m_timeline->naturalHeight() * leastShareOfLanes / 100 + beside;
    const int memory = m_memory->isHidden() ? 0 : roomForRows ? std::max(leastMemory, rows) : leastMemory;
    const int wanted = std::max(rest * 3 / 5, std::min(m_timeline->naturalHeight() + beside, rest - memory));
    const int lanes =
        std::min(greatest, std::clamp(wanted, leastTimeline + beside, std::max(leastTimeline + beside, rest - memory)));
    m_rows->setSizes({lanes, rest - lanes, bubbles});
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
    m_hints->place();
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
