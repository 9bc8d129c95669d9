// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/inspector/kernellist.h"

#include "gui/inspector/blockexplanation.h"
#include "gui/widgets/copying.h"
#include "gui/widgets/theme.h"
#include "gui/widgets/words.h"

#include <QHeaderView>

#include <algorithm>
#include <map>

namespace pipewright {

namespace {

constexpr int heightOfRow = 22, timeWidth = 84;

} // namespace

KernelList::KernelList(Document& document, QWidget* parent) : QuietFocus(parent), m_document(document)
{
    setAccessibleName(tr("Kernels of the selected block"));
    setHeaderLabels({tr("kernels"), tr("count"), tr("time")});
    for (const int column : {1, 2})
        headerItem()->setTextAlignment(column, Qt::AlignRight | Qt::AlignVCenter);
    setUniformRowHeights(true);
    setFrameShape(QFrame::NoFrame);
    setIndentation(14);
    header()->setStretchLastSection(false);
    header()->setSectionResizeMode(0, QHeaderView::Stretch);
    header()->setSectionResizeMode(1, QHeaderView::ResizeToContents);
    header()->setSectionResizeMode(2, QHeaderView::Fixed);
    header()->resizeSection(2, timeWidth);
    header()->setFont(Theme::words(TextSize::Small));
    makeCopyable(*this);
    connect(&document, &Document::selectionChanged, this, &KernelList::fill);
    connect(&document, &Document::overlayChanged, this, &KernelList::fill);
    connect(&document, &Document::sideChanged, this, &KernelList::fill);
    connect(&document, &Document::designChanged, this, &KernelList::fill);
    fill();
}

void KernelList::fill()
{
    clear();
    const Document::Overlay* overlay = m_document.overlay();
    const std::optional<Block> selected = m_document.selection();
    const TaskId task = m_document.showsMeasured() && overlay->kernels && selected && m_document.prediction()
                            ? taskOf(m_document.prediction()->program, *selected)
                            : none;
    const bool known = task != none && !overlay->kernels->blocks[task].kernels.empty();
    setVisible(known);
    if (!known)
        return;
    headerItem()->setText(0, overlay->kernels->kind() == WorkKind::Operators ? tr("operators") : tr("kernels"));
    const BlockKernels& block = overlay->kernels->blocks[task];
    const auto describe = [](QTreeWidgetItem* row, std::int64_t count, Nanoseconds time) {
        row->setText(1, QString::number(count));
        row->setText(2, durationText(time));
        for (const int column : {1, 2}) {
            row->setTextAlignment(column, Qt::AlignRight | Qt::AlignVCenter);
            row->setFont(column, Theme::numbers(TextSize::Small));
        }
        row->setSizeHint(0, QSize(0, heightOfRow));
    };
    for (const BlockKernels::Group& group : block.groups) {
        auto* heading =
            new QTreeWidgetItem(this, {QString::fromStdString(KernelGroups::standard().names()[group.group])});
        describe(heading, group.kernels, group.time);
        struct Sum {
            std::uint32_t name = 0;
            std::int64_t count = 0;
            Nanoseconds time = 0;
        };
        std::map<std::uint32_t, Sum> byName;
        for (const BlockKernels::Kernel& kernel : block.kernels)
            if (kernel.group == group.group) {
                Sum& sum = byName[kernel.name];
                sum.name = kernel.name;
                ++sum.count;
                sum.time += kernel.end - kernel.start;
            }
        std::vector<Sum> sums;
        for (const auto& each : byName)
            sums.push_back(each.second);
        std::stable_sort(sums.begin(), sums.end(), [](const Sum& a, const Sum& b) { return a.time > b.time; });
        for (const Sum& sum : sums) {
            const std::string& name = overlay->kernels->names[sum.name];
            auto* row = new QTreeWidgetItem(heading, {QString::fromStdString(shortKernelName(name))});
            row->setToolTip(0, QString::fromStdString(name));
            describe(row, sum.count, sum.time);
        }
    }
}

} // namespace pipewright

#include "moc_kernellist.cpp"
