// SPDX-License-Identifier: GPL-3.0-or-later
// Painting of BuildingBlockGrid: ruler, interval bracket, passes of three repetitions and lifespans. O(passes).
#include "gui/buildingblock/buildingblockcells.h"
#include "gui/buildingblock/buildingblockgrid.h"
#include "gui/timeline/timelinepainter.h"
#include "gui/widgets/labels.h"

#include "core/buildingblock/lifespan.h"

#include <QPainter>

#include <cmath>

namespace pipewright {

namespace {

/// Units between two labels of the ruler.
int labelStep(double unitWidth)
{
    for (const int step : {1, 2, 5, 10, 20, 50, 100})
        if (step * unitWidth >= 24)
            return step;
    return 200;
}

} // namespace

void BuildingBlockGrid::paintEvent(QPaintEvent*)
{
    QPainter painter(this);
    paintLanes(painter);
    if (m_shown.passes.empty())
        return;
    paintLifespans(painter);
    paintPasses(painter);
    paintConflicts(painter);
}

void BuildingBlockGrid::paintLanes(QPainter& painter) const
{
    const Theme& theme = Theme::of(*this);
    const double right = xOf(units());
    const double bottom = yOf(m_shown.devices());
    painter.setFont(Theme::words(TextSize::Small));
    for (int device = 0; device < m_shown.devices(); ++device) {
        painter.fillRect(QRectF(headerWidth, yOf(device), right - headerWidth, laneHeight() - 2), theme.lane);
        painter.setPen(theme.text);
        const QRectF header(0, yOf(device), headerWidth - 8, laneHeight() - 2);
        painter.drawText(header.adjusted(0, 0, 0, -laneHeight() / 2 + 2), Qt::AlignLeft | Qt::AlignBottom,
                         m_devices.value(device));
        painter.setPen(theme.dim);
        painter.drawText(
            header.adjusted(0, laneHeight() / 2, 0, 0), Qt::AlignLeft | Qt::AlignTop,
            painter.fontMetrics().elidedText(stagesOf(device), Qt::ElideRight, static_cast<int>(header.width())));
    }
    const int step = labelStep(unitWidth());
    for (int unit = 0; unit <= units(); ++unit) {
        const bool repeats = m_shown.interval > 0 && unit % m_shown.interval == 0;
        painter.fillRect(QRectF(xOf(unit), rulerHeight, 1, bottom - rulerHeight - 2), theme.hairline);
        if (repeats) {
            painter.setPen(QPen(theme.accent, 1, Qt::DashLine));
            painter.drawLine(QPointF(xOf(unit) + 0.5, rulerHeight - 6), QPointF(xOf(unit) + 0.5, bottom - 2));
        }
        if (unit % step == 0 && unit < units()) {
            painter.setPen(theme.dim);
            painter.drawText(QRectF(xOf(unit) - 20, 0, 40, 14), Qt::AlignHCenter | Qt::AlignVCenter,
                             QString::number(unit));
        }
    }
    // The interval as a bracket over the first repetition.
    painter.fillRect(QRectF(xOf(0), rulerHeight - 6, m_shown.interval * unitWidth(), 3), theme.accent);
}

QString BuildingBlockGrid::stagesOf(int device) const
{
    QStringList stages;
    for (int stage = 0; stage < m_shown.stages(); ++stage)
        if (m_shown.deviceOfStage[stage] == device)
            stages << QString::number(stage);
    return (stages.size() == 1 ? tr("stage %1") : tr("stages %1")).arg(stages.join(QStringLiteral(", ")));
}

void BuildingBlockGrid::paintLifespans(QPainter& painter) const
{
    // Below the passes of a device: the lifespan of each of its stages.
    const Theme& theme = Theme::of(*this);
    std::vector<int> row(m_shown.devices(), 0);
    const int chosen = m_selected >= 0 ? m_shown.passes[m_selected].stage : -1;
    for (int stage = 0; stage < m_shown.stages(); ++stage) {
        const int device = m_shown.deviceOfStage[stage];
        int begin = 0;
        for (const BuildingBlock::Pass& pass : m_shown.passes)
            if (pass.stage == stage && pass.op == Op::F)
                begin = pass.start;
        const double y = yOf(device) + laneHeight() - 9 + 3.0 * (row[device]++ % 2);
        const QRectF line(xOf(begin), y, std::max(0, lifespan(m_shown, stage)) * unitWidth() - 1, 2);
        painter.fillRect(line, stage == chosen ? theme.accent : theme.dim);
    }
}

void BuildingBlockGrid::paintPasses(QPainter& painter) const
{
    const TimelinePainter blocks(Theme::of(*this), devicePixelRatioF());
    const auto paint = [&](int index, int repetition) {
        const QRectF rect = rectOfPass(index).translated(repetition * m_shown.interval * unitWidth(), 0);
        paintPass(painter, blocks, Theme::of(*this), rect, m_shown, m_shown.passes[index], repetition, repetition != 0);
    };
    painter.save();
    painter.setClipRect(QRectF(headerWidth, rulerHeight, xOf(units()) - headerWidth, height()));
    const int repetitions = m_shown.interval > 0 ? std::min(200, units() / m_shown.interval + 1) : 0;
    for (int repetition = -repetitions; repetition <= repetitions; ++repetition)
        for (int pass = 0; repetition != 0 && pass < static_cast<int>(m_shown.passes.size()); ++pass) {
            const int start = m_shown.passes[pass].start + repetition * m_shown.interval;
            if (start > -3 && start < units())
                paint(pass, repetition);
        }
    for (int pass = 0; pass < static_cast<int>(m_shown.passes.size()); ++pass)
        paint(pass, 0);
    if (m_selected >= 0)
        blocks.selection(painter, rectOfPass(m_selected),
                         hasFocus() ? Theme::of(*this).accent : Theme::of(*this).selection);
    painter.restore();
}

void BuildingBlockGrid::paintConflicts(QPainter& painter) const
{
    const Theme& theme = Theme::of(*this);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setBrush(Qt::NoBrush);
    painter.setPen(QPen(theme.bad, 2));
    for (const PassConflict& conflict : m_conflicts) {
        const QRectF pass = rectOfPass(conflict.pass), other = rectOfPass(conflict.other);
        for (const QRectF& rect : {pass, other})
            painter.drawRoundedRect(rect.adjusted(-1, -1, 1, 1), Theme::blockRadius, Theme::blockRadius);
        if (conflict.kind == PassConflict::Kind::Early)
            painter.drawLine(QPointF(other.right(), other.center().y()), QPointF(pass.left(), pass.center().y()));
    }
    painter.setRenderHint(QPainter::Antialiasing, false);
}

} // namespace pipewright
