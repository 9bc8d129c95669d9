// SPDX-License-Identifier: GPL-3.0-or-later
// What the mouse and the keys do in the sub-lanes of kernels.
#include "gui/timeline/timelineviewprivate.h"

#include <QAction>

namespace pipewright {

std::vector<KernelLanes::Rect> TimelineView::Private::kernelRects(int device) const
{
    if (!showsMeasured())
        return {};
    return kernelLanes.rects(device, places.kernels(device), view.m_axis);
}

QString TimelineView::Private::kernelTextAt(QPoint position) const
{
    const int device = places.kernelsAt(position);
    if (device < 0 || position.x() < plotLeft())
        return {};
    for (const KernelLanes::Rect& kernel : kernelRects(device))
        if (kernel.rect.adjusted(-0.5, -4, 0.5, 6).contains(position))
            return kernelLanes.text(kernel);
    return {};
}

void TimelineView::Private::showKernels(int device, bool shown)
{
    if (shown && !kernelLanes.kernels())
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
    for (const KernelLanes::Rect& kernel : d->kernelRects(device))
        result.emplace_back(kernel.rect, d->kernelLanes.text(kernel));
    return result;
}

} // namespace pipewright
