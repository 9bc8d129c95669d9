// SPDX-License-Identifier: GPL-3.0-or-later
// A recorded step over the prediction: measured blocks are filled, predicted ones are outlines on top of them. Both
// count from their first block, as the numbers of the comparison do.
#include "gui/timeline/timelineviewprivate.h"

#include <QPainter>

#include <algorithm>
#include <cmath>

namespace pipewright {
namespace {

// A block is late when it took longer than predicted by more than it varies from step to step, and by more
// than anybody cares about.
bool isLate(Nanoseconds measured, Nanoseconds expected, Nanoseconds spread)
{
    return measured - expected > std::max(spread, expected * 3 / 100);
}

constexpr double fullHeat = 0.5; ///< an error from which on nothing gets hotter
constexpr double deepestHeat = 0.7;

} // namespace

void TimelineView::Private::reloadOverlay()
{
    const Document::Overlay* trace = document.overlay();
    const Prediction* prediction = document.prediction();
    const bool whole = showsWhole();
    layouts.clearMeasured();
    if (trace && prediction) {
        layouts.setMeasured(*prediction, trace->measured, document.design().schedule.devices());
        alignOutlines();
    }
    refreshHeaders();
    if (whole) // a recording is often longer
        view.showAll();
    else
        setAxis(view.m_axis, true);
    updateScrollBars();
    updateOverlay();
    view.viewport()->update();
}

void TimelineView::Private::alignOutlines()
{
    const Document::Overlay* trace = document.overlay();
    const Prediction* prediction = document.prediction();
    if (trace && prediction && layouts.measured())
        layouts.align(*prediction, trace->measured, document.design().schedule.devices(), stretchOutlines);
}

void TimelineView::Private::paintMeasured(QPainter& painter, int device, const Lane& blocks,
                                          const LaneGeometry& geometry, const QRectF& area)
{
    const auto index = static_cast<std::size_t>(device);
    if (showHeat)
        veilByError(painter, blocks, area);
    if (const TimelineLayout* const outlines = layouts.outlines();
        showHeat && outlines && index < outlines->lanes().size()) // else they came with the blocks
        lanePainter->outlines(painter, laneGeometry(outlines->lanes()[index], view.m_axis, area,
                                                    std::max(shown().makespan(), Nanoseconds{0}), scale()));
    const Prediction& prediction = *document.prediction();
    const std::vector<Nanoseconds>& spread = document.overlay()->spread;
    lanePainter->feet(painter, blocks, geometry, [&](const LaneBlock& block) {
        const Nanoseconds expected = prediction.timeline.end[block.task] - prediction.timeline.start[block.task];
        const Nanoseconds noise = block.task < spread.size() ? spread[block.task] : 0;
        return isLate(block.end - block.start, expected, noise);
    });
}

void TimelineView::Private::veilByError(QPainter& painter, const Lane& lane, const QRectF& area)
{
    const Timeline& predicted = document.prediction()->timeline;
    const Theme& theme = Theme::of(view);
    const TimeAxis& axis = view.m_axis;
    const std::vector<LaneBlock>& blocks = lane.blocks();
    std::size_t i = lane.firstEndingAfter(axis.start);
    // At most one block per pixel column: where several share one, the first stands for them.
    while (i < blocks.size() && static_cast<double>(blocks[i].start) < axis.end()) {
        const LaneBlock& block = blocks[i];
        const std::size_t next =
            std::max(i + 1, lane.firstStartingFrom(static_cast<double>(block.start) + axis.nsPerPixel, i + 1));
        if (block.task != none && predicted.start[block.task] != notRun) {
            const double expected = double(predicted.end[block.task] - predicted.start[block.task]);
            const double took = double(block.runsUntil() - block.runsFrom());
            const double error = took > 0 ? (took - expected) / took : 0; // relative to the measured, as everywhere
            QColor veil = error > 0 ? theme.bad : theme.good;
            veil.setAlphaF(static_cast<float>(deepestHeat * std::min(1.0, std::fabs(error) / fullHeat)));
            const auto [first, last] =
                columns(axis, static_cast<double>(block.start), static_cast<double>(block.end), scale());
            const QRectF rect(first / scale(), area.top(), (last - first) / scale(), area.height());
            QColor ground = theme.lane; // the colours of operations give way; their letters can still be read
            ground.setAlphaF(0.7f);
            painter.fillRect(rect, ground);
            painter.fillRect(rect, veil);
        }
        i = next;
    }
}

} // namespace pipewright
