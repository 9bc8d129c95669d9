// SPDX-License-Identifier: GPL-3.0-or-later
// The parts of the window and their places.
#include "gui/plan/plandetails.h"
#include "gui/plan/planexport.h"
#include "gui/plan/planfields.h"
#include "gui/plan/plantable.h"
#include "gui/plan/planwindow.h"
#include "gui/search/tradeoffplot.h"
#include "gui/widgets/closingrow.h"
#include "gui/widgets/labels.h"
#include "gui/widgets/layouts.h"

#include <QApplication>
#include <QClipboard>
#include <QMenu>
#include <QProgressBar>
#include <QPushButton>
#include <QScrollArea>
#include <QShortcut>
#include <QSplitter>

namespace pipewright {

namespace {

constexpr int progressSteps = 1000;

/// A panel's part that scrolls up and down, and is as wide as what it holds.
QScrollArea* makeScroll(QWidget* body, QWidget* parent)
{
    auto* scroll = new QScrollArea(parent);
    scroll->setWidget(body);
    scroll->setWidgetResizable(true);
    scroll->setFrameShape(QFrame::NoFrame);
    scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    scroll->setFocusPolicy(Qt::NoFocus);
    makePanel(scroll->viewport());
    return scroll;
}

} // namespace

void PlanWindow::build()
{
    auto* middle = new QHBoxLayout;
    middle->setSpacing(20);
    middle->addWidget(buildLeft());
    middle->addWidget(makeHairline(Qt::Vertical, this));
    middle->addWidget(buildRight(), 1);
    m_open->setAutoDefault(false);
    m_open->setToolTip(tr("The chosen plan becomes the document's design; one undo brings the present one back"));
    m_refine->setAutoDefault(false);
    m_refine->setToolTip(
        tr("Goes on with the chosen plan past the space of the list: layers per stage, order of blocks, "
           "recomputation by stage, offload. Refined is never called complete"));
    m_export->setAutoDefault(false);
    m_export->setMenu(m_exports);
    m_export->setToolTip(tr("The chosen plan as another tool's configuration"));
    fillExports();
    auto* copies = new QMenu(this);
    copies->addAction(tr("The list as text"), this, [this] { QApplication::clipboard()->setText(m_table->asText()); });
    copies->addAction(tr("The list as CSV"), this, [this] { QApplication::clipboard()->setText(m_table->asCsv()); });
    m_copy->setAutoDefault(false);
    m_copy->setMenu(copies);
    auto* copy = new QShortcut(QKeySequence::Copy, m_table, nullptr, nullptr, Qt::WidgetShortcut);
    connect(copy, &QShortcut::activated, this, [this] { QApplication::clipboard()->setText(m_table->asText()); });
    m_costs->setAccessibleName(tr("Where the numbers come from"));
    m_costs->setWordWrap(true);
    QHBoxLayout* bottom = makeClosingRow(*this, m_open);
    bottom->insertWidget(0, m_costs, 1);
    bottom->insertWidget(1, m_copy);
    bottom->insertWidget(2, m_export);
    bottom->insertWidget(3, m_refine);
    auto* layout = makeLayout<QVBoxLayout>(this, {24, 18, 24, 18}, 14);
    layout->addLayout(middle, 1);
    layout->addLayout(bottom);
}

QWidget* PlanWindow::buildLeft()
{
    m_button->setDefault(true);
    m_button->setProperty("primary", true);
    auto* left = new QWidget(this);
    auto* layout = makeLayout<QVBoxLayout>(left, {0, 0, 0, 0}, 12);
    QScrollArea* scroll = makeScroll(m_fields, left);
    scroll->setFixedWidth(m_fields->sizeHint().width() + 14);
    layout->addWidget(scroll, 1);
    layout->addWidget(m_button);
    return left;
}

QWidget* PlanWindow::buildRight()
{
    m_state->setWordWrap(true);
    m_state->setTextInteractionFlags(Qt::TextSelectableByMouse);
    m_state->setAccessibleName(tr("State of the search"));
    m_progress->setAccessibleName(tr("Progress"));
    m_progress->setTextVisible(false);
    m_progress->setFixedHeight(6);
    m_progress->setRange(0, progressSteps);
    m_progress->hide();
    m_plot->setMinimumSize(300, 190);
    m_plot->setToolTip(tr("Every listed plan; on the line those that no other beats in both. A click chooses one, the "
                          "wheel zooms, dragging the ground moves, Home shows all"));
    auto* below = new QSplitter(Qt::Horizontal, this);
    m_detailsScroll = makeScroll(m_details, below);
    m_detailsScroll->setMinimumWidth(m_details->minimumSizeHint().width() + 12); // with the scroll bar
    below->addWidget(m_plot);
    below->addWidget(m_detailsScroll);
    below->setStretchFactor(0, 3);
    below->setStretchFactor(1, 2);
    below->setChildrenCollapsible(false);
    auto* rows = new QSplitter(Qt::Vertical, this);
    rows->addWidget(m_table);
    rows->addWidget(below);
    rows->setStretchFactor(0, 1);
    rows->setStretchFactor(1, 1);
    rows->setChildrenCollapsible(false);
    rows->setSizes({1000, 1000}); // halves
    auto* right = new QWidget(this);
    auto* layout = makeLayout<QVBoxLayout>(right, {0, 0, 0, 0}, 10);
    layout->addWidget(m_state);
    layout->addWidget(m_progress);
    layout->addWidget(rows, 1);
    return right;
}

void PlanWindow::fillExports()
{
    bool first = true;
    for (const ExportFormat* format : planFormats()) {
        if (!first && format->name == "pytorch-csv")
            m_exports->addSeparator();
        first = false;
        QAction* action = m_exports->addAction(QString::fromUtf8(format->title) + QStringLiteral("…"), this,
                                               [this, name = format->name] { askForExport(name); });
        action->setToolTip(QString::fromUtf8(format->description));
    }
    m_exports->setToolTipsVisible(true);
}

} // namespace pipewright
