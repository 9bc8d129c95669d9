// SPDX-License-Identifier: GPL-3.0-or-later
// What the field of the bar finds: commands, families, devices and stages by their names, blocks by their beginning.
// And for a click on idle time the block that ended it with the chain that explains it, on the side that the lanes
// show.
#include "gui/designer/mainwindow.h"

#include "core/families/family.h"
#include "gui/designer/familylist.h"
#include "gui/designer/footline.h"
#include "gui/designer/topbar.h"
#include "gui/designer/windowactions.h"
#include "gui/document/timelinelayout.h"
#include "gui/inspector/blockexplanation.h"
#include "gui/inspector/inspector.h"
#include "gui/timeline/timelineview.h"

#include <QAction>
#include <QPointer>

#include <algorithm>
#include <tuple>

namespace pipewright {

std::vector<FindField::Entry> MainWindow::foundEntries()
{
    std::vector<FindField::Entry> entries;
    for (const ShortcutList::Group& group : m_actions->groups())
        for (QAction* action : group.actions) {
            QString name = action->text();
            name.remove(QLatin1Char('&'));
            if (!name.isEmpty() && action->isVisible())
                entries.push_back({name, group.name, action->shortcut().toString(QKeySequence::NativeText),
                                   [kept = QPointer(action)] {
                                       if (kept)
                                           kept->trigger();
                                   },
                                   action->isEnabled()});
        }
    for (std::size_t i = 0; i < pipewright::families().size(); ++i) {
        const std::string_view title = pipewright::families()[i].title;
        const auto& known = m_families->estimates()[i];
        entries.push_back({QString::fromUtf8(title),
                           tr("family"),
                           {},
                           [this, i] { m_families->switchTo(i); },
                           !known || known->possible});
    }
    const Schedule& schedule = m_document.design().schedule;
    const auto goTo = [this](const Block& block) {
        m_document.select(block);
        m_timeline->ensureVisible(block);
    };
    for (int device = 0; device < schedule.devices(); ++device)
        if (const auto& lane = schedule.order[device]; !lane.empty())
            entries.push_back(
                {deviceLabel(m_document.design(), device), tr("device"), {}, [goTo, first = lane.front()] {
                     goTo(first);
                 }});
    for (int stage = 0; stage < schedule.stages(); ++stage) {
        const Block first{Op::F, stage, 0, 0};
        entries.push_back({tr("Stage %1").arg(stage), tr("first forward"), {}, [goTo, first] { goTo(first); }});
    }
    return entries;
}

void MainWindow::findBlock(const QString& text, int direction)
{
    const QString begin = text.trimmed().toUpper();
    if (begin.isEmpty())
        return;
    struct Hit {
        Nanoseconds start;
        int device;
        Block block;
    };
    std::vector<Hit> hits;
    const std::optional<Block> exact = parseBlock(begin.toStdString());
    const std::vector<Lane>& lanes = m_timeline->layout().lanes();
    for (std::size_t device = 0; device < lanes.size(); ++device)
        for (const LaneBlock& block : lanes[device].blocks())
            if (exact ? block.block == *exact : blockText(block.block).startsWith(begin))
                hits.push_back({block.start, static_cast<int>(device), block.block});
    std::sort(hits.begin(), hits.end(),
              [](const Hit& a, const Hit& b) { return std::tie(a.start, a.device) < std::tie(b.start, b.device); });
    if (hits.empty()) {
        // A block in the tray has no place in a lane, but it can be selected.
        const std::vector<Block>& tray = m_document.unplaced();
        if (exact && std::find(tray.begin(), tray.end(), *exact) != tray.end())
            m_document.select(exact);
        else
            m_foot->setHint(tr("No block is called that. One is written like F0.3: operation, stage, microbatch"));
        return;
    }
    const auto count = static_cast<int>(hits.size());
    const auto now =
        std::find_if(hits.begin(), hits.end(), [this](const Hit& hit) { return m_document.selection() == hit.block; });
    int index = direction > 0 ? 0 : count - 1;
    if (now != hits.end())
        index = (static_cast<int>(now - hits.begin()) + direction + count) % count;
    const Block found = hits[index].block;
    m_document.select(found);
    m_timeline->ensureVisible(found);
    if (count == 1) {
        m_topBar->findField()->clear();
        m_timeline->setFocus();
        return;
    }
    m_foot->setHint(tr("%1, %2 of %3: Enter for the next, Shift+Enter for the one before")
                        .arg(QString::fromStdString(toString(found)))
                        .arg(index + 1)
                        .arg(count));
}

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
    showAnswer(OfBlock);
}

} // namespace pipewright
