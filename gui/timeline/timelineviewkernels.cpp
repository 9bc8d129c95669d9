// SPDX-License-Identifier: GPL-3.0-or-later
// The kernels of measured blocks: a sub-lane below a device's blocks with what its GPU ran for them, where CUPTI
// recorded. Kernels that are wide enough carry their name, those that share a pixel are one rectangle, and a red foot
// says how long a gap lasted because the host had not launched what comes next.
#include "gui/timeline/timelineviewprivate.h"

#include "gui/widgets/words.h"

#include <QAction>
#include <QPainter>

#include <algorithm>
#include <cmath>

namespace pipewright {
namespace {

constexpr double leastForName = 44; // pixels
constexpr double footHeight = 3;

} // namespace

const Document::Overlay::Kernels* TimelineView::Private::kernels() const
{
    const Document::Overlay* trace = document.overlay();
    return trace ? trace->kernels.get() : nullptr;
}

QRectF TimelineView::Private::kernelArea(int device) const
{
    const int height = strip.kernelHeight(device);
    if (height == 0)
        return {};
    const QRect lane = laneRect(device);
    return QRectF(lane.left(), lane.bottom() - strip.subHeight(device), lane.width(), height - 2);
}

int TimelineView::Private::kernelLaneAt(QPoint position) const
{
    const int lane = laneAt(position.y());
    return lane >= 0 && kernelArea(lane).contains(position) ? lane : -1;
}

std::vector<TimelineView::Private::KernelRect> TimelineView::Private::kernelRects(int device) const
{
    std::vector<KernelRect> rects;
    const Document::Overlay::Kernels* all = kernels();
    const QRectF area = kernelArea(device);
    if (!all || area.isNull() || !showsMeasured() || static_cast<std::size_t>(device) >= all->of.size())
        return rects;
    const TimeAxis& axis = view.m_axis;
    const QRectF place = area.adjusted(0, 3, 0, -2 - footHeight);
    const std::vector<TaskId>& tasks = all->of[static_cast<std::size_t>(device)];
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

void TimelineView::Private::paintKernels(QPainter& painter, int device)
{
    const QRectF area = kernelArea(device);
    if (area.isNull())
        return;
    const Theme& theme = Theme::of(view);
    const TimeAxis& axis = view.m_axis;
    painter.save();
    painter.setPen(theme.hairline);
    painter.drawLine(QPointF(0, area.top()), QPointF(area.right(), area.top()));
    const std::vector<KernelRect> rects = kernelRects(device);
    const Document::Overlay::Kernels* all = kernels();
    painter.setFont(Theme::words(TextSize::Small));
    painter.setPen(theme.dim);
    const auto index = static_cast<std::size_t>(device);
    painter.drawText(QRectF(14, area.top(), plotLeft() - 18, area.height()), Qt::AlignVCenter | Qt::AlignLeft,
                     !all                                                ? TimelineView::tr("no kernels recorded")
                     : index >= all->of.size() || all->of[index].empty() ? TimelineView::tr("no kernels")
                                                                         : TimelineView::tr("kernels"));
    painter.setClipRect(QRectF(axis.left, area.top(), axis.width, area.height()), Qt::IntersectClip);
    painter.setFont(Theme::numbers(TextSize::Small));
    const QFontMetricsF metrics(painter.font());
    const Prediction* prediction = document.prediction();
    TaskId last = none;
    for (const KernelRect& kernel : rects) {
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

QString TimelineView::Private::kernelTextAt(QPoint position) const
{
    const int device = kernelLaneAt(position);
    if (device < 0 || position.x() < plotLeft())
        return {};
    for (const KernelRect& kernel : kernelRects(device)) {
        if (!kernel.rect.adjusted(-0.5, -4, 0.5, 6).contains(position))
            continue;
        const BlockKernels& block = kernels()->blocks[kernel.task];
        const QString of = QString::fromStdString(document.prediction()->program.label(kernel.task));
        if (kernel.count > 1)
            return TimelineView::tr("%1 kernels of %2").arg(kernel.count).arg(of);
        const BlockKernels::Kernel& one = block.kernels[kernel.index];
        return TimelineView::tr("%1 of %2: %3, %4")
            .arg(QString::fromStdString(kernels()->names[one.name]), of, durationText(one.end - one.start),
                 QString::fromStdString(KernelGroups::standard().names()[one.group]));
    }
    return {};
}

void TimelineView::Private::showKernels(int device, bool shown)
{
    if (shown && !kernels())
        Q_EMIT view.editRefused(
            TimelineView::tr("No kernels to show: they are recorded by runs on GPUs, and shown of a step that ran"));
    strip.setKernels(device, shown);
    lanesChanged();
}

void TimelineView::Private::addKernelActions()
{
    addAction("laneKernels", TimelineView::tr("Show the lane's kernels"),
              TimelineView::tr("Below its measured blocks, what the GPU ran for them"), Qt::Key_K, [this] {
                  const int lane = laneForKeys();
                  if (lane >= 0)
                      showKernels(lane, !strip.showsKernels(lane));
              });
    addAction("allKernels", TimelineView::tr("Show the kernels of all lanes"),
              TimelineView::tr("Or hide them all, when they are shown"), Qt::SHIFT | Qt::Key_K, [this] {
                  bool all = true;
                  for (int lane = 0; lane < strip.lanes(); ++lane)
                      all = all && strip.showsKernels(lane);
                  for (int lane = 0; lane < strip.lanes(); ++lane)
                      showKernels(lane, !all);
              });
}

std::vector<std::pair<QRectF, QString>> TimelineView::visibleKernels(int device) const
{
    std::vector<std::pair<QRectF, QString>> result;
    for (const Private::KernelRect& kernel : d->kernelRects(device))
        result.emplace_back(kernel.rect, d->kernelTextAt(kernel.rect.center().toPoint()));
    return result;
}

} // namespace pipewright
