// SPDX-License-Identifier: GPL-3.0-or-later
// A click on idle time: finds the block that ended it and the chain that explains it, on the side that the lanes show.
#include "gui/designer/mainwindow.h"
#include "gui/inspector/blockexplanation.h"
#include "gui/inspector/inspector.h"
#include "gui/timeline/timelineview.h"

namespace pipewright {

void MainWindow::showGap(int device, qint64 start, qint64 end)
{
    // Idle time is explained by the block that ends it; after a device's last block, by the block that ends the step.
    const Prediction* prediction = m_document.prediction();
    if (!prediction)
        return;
    std::optional<Block> ends, before;
    // The times of the side that the lanes show.
    const Timeline& shown =
        m_document.showsMeasured() ? m_document.overlay()->explanation.completed : prediction->timeline;
    for (TaskId t = 0; t < prediction->program.tasks.size(); ++t) {
        const Task& task = prediction->program.tasks[t];
        if ((task.kind != TaskKind::Compute && !isUpdate(task.kind)) || task.device != device)
            continue;
        if (shown.start[t] == end)
            ends = task.block();
        if (shown.end[t] == start)
            before = task.block();
    }
    TimelineView::Reason reason{device, start, end, {}, {}};
    if (ends) {
        m_document.select(ends);
        reason.waiting = ends;
        for (const WaitLink& link : waitingChain(prediction->program, shown, *ends))
            reason.chain.push_back(link.block);
    } else {
        if (before)
            m_document.select(before);
        m_inspector->explainTail(device, start, end);
        if (const std::optional<Block> last = lastBlock(prediction->program, shown)) {
            reason.chain.push_back(*last);
            for (const WaitLink& link : waitingChain(prediction->program, shown, *last, 3))
                reason.chain.push_back(link.block);
        }
    }
    m_timeline->showReason(std::move(reason));
}

} // namespace pipewright
