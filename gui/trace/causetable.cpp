// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/trace/causetable.h"

#include "gui/widgets/theme.h"
#include "gui/widgets/words.h"
#include "traces/analysis/causetext.h"

#include <QHeaderView>
#include <QSignalBlocker>

#include <algorithm>

namespace pipewright {

CauseTable::CauseTable(Document& document, QWidget* parent) : QuietFocus(parent), m_document(document)
{
    setAccessibleName(tr("Causes of the difference between prediction and run"));
    setHeaderLabels({tr("cause"), tr("in the step")});
    headerItem()->setTextAlignment(1, Qt::AlignRight | Qt::AlignVCenter);
    headerItem()->setToolTip(1, tr("What the measured step would gain with this alone put right"));
    setRootIsDecorated(false);
    setUniformRowHeights(true);
    setFrameShape(QFrame::NoFrame);
    header()->setStretchLastSection(false);
    header()->setSectionResizeMode(0, QHeaderView::Stretch);
    header()->setSectionResizeMode(1, QHeaderView::ResizeToContents);
    header()->setFont(Theme::words(TextSize::Small));
    connect(this, &QTreeWidget::currentItemChanged, this, [this](QTreeWidgetItem* item) {
        if (item)
            Q_EMIT chosen(blocksOf(indexOfTopLevelItem(item)));
    });
    connect(&document, &Document::overlayChanged, this, &CauseTable::fill);
    connect(&document, &Document::designChanged, this, &CauseTable::fill);
    fill();
}

void CauseTable::fill()
{
    const QSignalBlocker quiet(this);
    clear();
    if (!m_document.overlay() || !m_document.prediction())
        return;
    for (const pipewright::Cause& cause : m_document.overlay()->explanation.causes) {
        auto* row = new QTreeWidgetItem(this);
        row->setText(0, QString::fromStdString(shortText(cause, [&](int device) {
                         return deviceLabel(m_document.design(), device).toStdString();
                     })));
        row->setText(1, cause.contribution == 0 ? QStringLiteral("0 ns") : signedDuration(cause.contribution));
        row->setTextAlignment(1, Qt::AlignRight | Qt::AlignVCenter);
        row->setFont(1, Theme::numbers(TextSize::Small));
        row->setSizeHint(0, QSize(0, 22));
        row->setToolTip(0, tr("%1. %2 tasks, together %3 beyond the prediction")
                               .arg(row->text(0))
                               .arg(cause.tasks.size())
                               .arg(cause.excess == 0 ? QStringLiteral("0 ns") : signedDuration(cause.excess)));
    }
}

std::vector<Block> CauseTable::blocksOf(int row) const
{
    std::vector<Block> blocks;
    const Document::Overlay* overlay = m_document.overlay();
    const auto index = static_cast<std::size_t>(row);
    if (!overlay || !m_document.prediction() || row < 0 || index >= overlay->explanation.causes.size())
        return blocks;
    const Program& program = m_document.prediction()->program;
    std::vector<TaskId> tasks;
    for (TaskId task : overlay->explanation.causes[index].tasks) {
        while (task != none && program.tasks[task].kind == TaskKind::Transfer)
            task = program.afterData[task];
        if (task != none && program.tasks[task].kind == TaskKind::Compute)
            tasks.push_back(task);
    }
    std::sort(tasks.begin(), tasks.end(), [&](TaskId a, TaskId b) {
        return std::pair(overlay->measured.start[a], a) < std::pair(overlay->measured.start[b], b);
    });
    tasks.erase(std::unique(tasks.begin(), tasks.end()), tasks.end());
    for (const TaskId task : tasks)
        blocks.push_back(program.tasks[task].block());
    return blocks;
}

} // namespace pipewright

#include "moc_causetable.cpp"
