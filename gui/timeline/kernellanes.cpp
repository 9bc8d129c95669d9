// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/timeline/kernellanes.h"

#include "core/design/groupstages.h"
#include "gui/widgets/words.h"

#include <QCoreApplication>
#include <QPainter>

#include <algorithm>
#include <cmath>
#include <utility>

namespace pipewright {
namespace {

constexpr double leastForName = 44; // pixels
constexpr double footHeight = 3;

QString kernelWords(const char* text)
{
    return QCoreApplication::translate("TimelineView", text);
}

} // namespace

const Document::Overlay::Kernels* KernelLanes::kernels() const
{
    const Document::Overlay* trace = m_document.overlay();
    return trace ? trace->kernels.get() : nullptr;
}

std::vector<KernelLanes::Rect> KernelLanes::rects(int device, const QRectF& area, const TimeAxis& axis) const
{
    std::vector<Rect> rects;
    const Document::Overlay::Kernels* all = this->kernels();
    if (!all || area.isNull() || device < 0 || device >= std::ssize(all->of))
        return rects;
    const QRectF place = area.adjusted(0, 3, 0, -2 - footHeight);
    const std::vector<TaskId>& tasks = all->of[device];
    const auto startOf = [all](TaskId task) { return all->blocks[task].kernels.front().start; };
    auto task = std::upper_bound(tasks.begin(), tasks.end(), axis.start,
                                 [&](double time, TaskId t) { return time < static_cast<double>(startOf(t)); });
    if (task != tasks.begin())
        --task; // it may reach into the window
    for (; task != tasks.end() && static_cast<double>(startOf(*task)) < axis.end(); ++task) {
        const std::vector<BlockKernels::Kernel>& kernels = all->blocks[*task].kernels;
        const auto from = [&](double time) { // the first kernel that starts then or later
            return static_cast<std::size_t>(
                std::lower_bound(kernels.begin(), kernels.end(), time,
                                 [](const auto& k, double t) { return static_cast<double>(k.start) < t; })
                - kernels.begin());
        };
        std::size_t i = from(axis.start);
        i -= i > 0 ? 1 : 0;
        // One rectangle per pixel at most, whatever the number of kernels.
        while (i < kernels.size() && static_cast<double>(kernels[i].start) < axis.end()) {
            const auto begin = static_cast<double>(kernels[i].start);
            const std::size_t next = std::max(i + 1, from(begin + axis.nsPerPixel));
            const double left = axis.xOf(begin);
            const double right = axis.xOf(static_cast<double>(next > i + 1 ? kernels[next - 1].end : kernels[i].end));
            if (right > axis.left)
                rects.push_back(
                    {QRectF(left, place.top(), std::max(1.0, right - left), place.height()), *task, i, next - i});
            i = next;
        }
    }
    return rects;
}

void KernelLanes::paint(QPainter& painter, int device, const QRectF& area, const TimeAxis& axis, const Theme& theme,
                        bool shown) const
{
    if (area.isNull())
        return;
    painter.save();
    painter.setPen(theme.hairline);
    painter.drawLine(QPointF(0, area.top()), QPointF(area.right(), area.top()));
    const std::vector<Rect> rects = shown ? this->rects(device, area, axis) : std::vector<Rect>();
    const Document::Overlay::Kernels* all = this->kernels();
    painter.setFont(Theme::words(TextSize::Small));
    painter.setPen(theme.dim);
    painter.drawText(QRectF(14, area.top(), axis.left - 18, area.height()), Qt::AlignVCenter | Qt::AlignLeft,
                     !all                                                       ? kernelWords("no kernels recorded")
                     : device >= std::ssize(all->of) || all->of[device].empty() ? kernelWords("no kernels")
                     : all->kind() == WorkKind::Kernels                         ? kernelWords("kernels")
                     : all->kind() == WorkKind::Operators                       ? kernelWords("operators")
                     : hasGroups(m_document.design())                           ? kernelWords("members")
                                                                                : kernelWords("parts"));
    painter.setClipRect(QRectF(axis.left, area.top(), axis.width, area.height()), Qt::IntersectClip);
    painter.setFont(Theme::numbers(TextSize::Small));
    const QFontMetricsF metrics(painter.font());
    const Prediction* prediction = m_document.prediction();
    TaskId last = none;
    for (const Rect& kernel : rects) {
        const BlockKernels& block = all->blocks[kernel.task];
        const bool separate = kernel.rect.width() > 3;
        painter.fillRect(separate ? kernel.rect.adjusted(0, 0, -1, 0) : kernel.rect,
                         theme.fill(prediction->program.tasks[kernel.task].op));
        if (kernel.count == 1 && kernel.rect.width() >= leastForName) {
            painter.setPen(theme.ink);
            const QRectF text = kernel.rect.adjusted(4, 0, -4, 0);
            const QString name = QString::fromStdString(shortKernelName(all->names[block.kernels[kernel.index].name]));
            painter.drawText(text, Qt::AlignVCenter | Qt::AlignLeft,
                             metrics.elidedText(name, Qt::ElideRight, text.width()));
        }
        if (kernel.task == std::exchange(last, kernel.task))
            continue;
        for (const BlockKernels::Gap& gap : block.gaps) { // once per block
            const double from = axis.xOf(static_cast<double>(gap.start));
            const double to = axis.xOf(static_cast<double>(gap.start + gap.launching));
            if (gap.launching > 0 && to - from >= 0.5 && to > axis.left && from < axis.right())
                painter.fillRect(QRectF(from, area.bottom() - footHeight, to - from, footHeight), theme.bad);
        }
    }
    painter.restore();
}

QString KernelLanes::text(const Rect& kernel) const
{
    const BlockKernels& block = kernels()->blocks[kernel.task];
    const QString of = QString::fromStdString(m_document.prediction()->program.label(kernel.task));
    if (kernel.count > 1)
        return (kernels()->kind() == WorkKind::Operators ? kernelWords("%1 operators of %2")
                                                         : kernelWords("%1 kernels of %2"))
            .arg(kernel.count)
            .arg(of);
    const BlockKernels::Kernel& one = block.kernels[kernel.index];
    return kernelWords("%1 of %2: %3, %4")
        .arg(QString::fromStdString(kernels()->names[one.name]), of, durationText(one.end - one.start),
             QString::fromStdString(KernelGroups::standard().names()[one.group]));
}

} // namespace pipewright
