// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/trace/causetable.h"

#include "gui/widgets/copying.h"
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
    setHeaderLabels({tr("cause"), tr("alone")});
    headerItem()->setTextAlignment(1, Qt::AlignRight | Qt::AlignVCenter);
    headerItem()->setToolTip(1, tr("What the measured step would gain with this one alone put right; causes hide each "
                                   "other, so they do not add up"));
    setRootIsDecorated(false);
    setUniformRowHeights(true);
    setFrameShape(QFrame::NoFrame);
    header()->setStretchLastSection(false);
    header()->setSectionResizeMode(0, QHeaderView::Stretch);
    header()->setSectionResizeMode(1, QHeaderView::ResizeToContents);
    header()->setFont(Theme::words(TextSize::Small));
    makeCopyable(*this);
    connect(this, &QTreeWidget::currentItemChanged, this, [this](QTreeWidgetItem* item) {
        if (const std::vector<Block> blocks = item ? blocksOf(indexOfTopLevelItem(item)) : std::vector<Block>();
            !blocks.empty())
            Q_EMIT chosen(blocks);
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
    const Explanation& explanation = m_document.overlay()->explanation;
    const auto valueOf = [](Nanoseconds value) { return value == 0 ? QStringLiteral("0 ns") : signedDuration(value); };
    const auto finish = [](QTreeWidgetItem* row, const QString& value) {
        row->setText(1, value);
        row->setTextAlignment(1, Qt::AlignRight | Qt::AlignVCenter);
        row->setFont(1, Theme::numbers(TextSize::Small));
        row->setSizeHint(0, QSize(0, 22));
    };
    for (const pipewright::Cause& cause : explanation.causes) {
        auto* row = new QTreeWidgetItem(this);
        row->setText(0, QString::fromStdString(shortText(cause, [&](int device) {
                         return deviceLabel(m_document.design(), device).toStdString();
                     })));
        finish(row, valueOf(cause.contribution));
        row->setToolTip(0, tr("%1. %2 tasks, together %3 beyond the prediction")
                               .arg(row->text(0))
                               .arg(cause.tasks.size())
                               .arg(valueOf(cause.excess)));
    }
    const Nanoseconds rest = explanation.unexplained();
    if (explanation.causes.empty() && rest == 0)
        return;
    auto* unexplained = new QTreeWidgetItem(this, {tr("unexplained")});
    finish(unexplained, valueOf(rest));
    unexplained->setToolTip(0, tr("What no record shows: what differs from the prediction with every cause put right"));
    auto* row = new QTreeWidgetItem(this, {tr("all together")});
    finish(row, valueOf(explanation.measured - explanation.predicted));
    for (const int column : {0, 1}) {
        QFont font = column == 0 ? Theme::words(TextSize::Normal, QFont::DemiBold)
                                 : Theme::numbers(TextSize::Small, QFont::DemiBold);
        row->setFont(column, font);
    }
    row->setToolTip(0, tr("The difference of the step: measured less predicted. The causes put right at once give %1%2")
                           .arg(valueOf(explanation.measured - explanation.allRight),
                                rest == 0 ? QString() : tr(", the rest is unexplained")));
}

std::vector<Block> CauseTable::blocksOf(int row) const
{
    std::vector<Block> blocks;
    const Document::Overlay* overlay = m_document.overlay();
    if (!overlay || !m_document.prediction() || row < 0 || row >= std::ssize(overlay->explanation.causes))
        return blocks;
    const Program& program = m_document.prediction()->program;
    std::vector<TaskId> tasks;
    for (TaskId task : overlay->explanation.causes[row].tasks) {
        while (task != none && moves(program.tasks[task].kind))
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
