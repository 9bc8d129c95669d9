// SPDX-License-Identifier: GPL-3.0-or-later
// The dock of the main window: panels of other rooms become its pages.
#include "core/predict/stagememory.h"
#include "gui/designer/comparepage.h"
#include "gui/designer/mainwindow.h"
#include "gui/designer/windowactions.h"
#include "gui/dock/dock.h"
#include "gui/dock/steprows.h"
#include "gui/inspector/kernellist.h"
#include "gui/memory/memorypanel.h"
#include "gui/timeline/timelineview.h"
#include "gui/trace/runerrors.h"

#include <QAction>

namespace pipewright {

void MainWindow::buildDock()
{
    auto* transfers = new StepTable(m_document, tr("Transfers of the step"), transferRows, m_dock);
    auto* microbatches = new StepTable(m_document, tr("Microbatches of the step"), microbatchRows, m_dock);
    for (StepTable* table : {transfers, microbatches})
        connect(table, &StepTable::blocksChosen, this, &MainWindow::chooseBlocks);
    const QString noRun =
        tr("No run is laid over. Run this schedule, or lay a recorded run over it: Overlay in the menu.");
    m_dock->addPage(QStringLiteral("memory"), tr("Memory"), m_memory);
    m_dock->addPage(QStringLiteral("compare"), tr("Compare"), new ComparePage(*m_others, m_dock));
    m_dock->addPage(QStringLiteral("run"), tr("Run"), makePageWith(m_runErrors->tabs(), noRun, m_dock));
    m_dock->addPage(QStringLiteral("kernels"), tr("Kernels"),
                    makePageWith(new KernelList(m_document, m_dock),
                                 tr("Select a block of a recorded run that holds kernels or operators, on Measured or "
                                    "Both: its kernels are listed here, longest first."),
                                 m_dock));
    m_dock->addPage(QStringLiteral("transfers"), tr("Transfers"), makeTablePage(transfers, m_dock));
    m_dock->addPage(QStringLiteral("microbatches"), tr("Microbatches"), makeTablePage(microbatches, m_dock));
    m_dock->restorePage();
}

void MainWindow::chooseBlocks(const std::vector<Block>& blocks)
{
    if (blocks.empty())
        return;
    m_timeline->selectBlocks(blocks);
    m_timeline->ensureVisible(blocks.front());
}

void MainWindow::showKinds()
{
    // A drag's preview has no lists of instructions; groups have the memory of their members.
    const Prediction* const prediction = m_document.prediction();
    const int device = m_memory->device();
    if (!prediction || m_timeline->isPreviewing() || m_memory->showsAll() || m_document.pendingMemory()
        || prediction->memoryOfMembers || device >= std::ssize(prediction->program.devices)
        || prediction->program.devices[static_cast<std::size_t>(device)].instructions.empty()
        || prediction->metrics.devices[static_cast<std::size_t>(device)].peakBytes == 0) {
        m_kindsOf = {};
        m_memory->setKinds(std::nullopt);
        return;
    }
    if (std::exchange(m_kindsOf, std::pair(prediction, device)) != std::pair(prediction, device))
        m_memory->setKinds(deviceMemory(m_document.design(), *prediction, device));
}

} // namespace pipewright
