// SPDX-License-Identifier: GPL-3.0-or-later
// The grid's behaviour; its painting is in buildingblockgridpaint.cpp.
#include "gui/buildingblock/buildingblockgrid.h"

#include "core/buildingblock/lifespan.h"
#include "gui/widgets/theme.h"

#include <QApplication>
#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QToolTip>

#include <algorithm>
#include <cmath>

namespace pipewright {

namespace {

constexpr double leastUnit = 14, mostUnit = 140;
constexpr double leastLane = 32, usualLane = 68, mostLane = 200;

} // namespace

BuildingBlockGrid::BuildingBlockGrid(QWidget* parent) : QWidget(parent)
{
    setFocusPolicy(Qt::StrongFocus);
    setMouseTracking(true);
    setAccessibleName(tr("Passes of one microbatch"));
}

void BuildingBlockGrid::setBlock(const BuildingBlock& block, const QStringList& devices)
{
    m_devices = devices;
    const bool sameShape = block.passes.size() == m_block.passes.size();
    m_block = block;
    m_drag.reset();
    if (!sameShape || m_selected < 0)
        m_selected = block.passes.empty() ? -1 : 0;
    show(block);
    updateGeometry();
    Q_EMIT selectionChanged();
}

void BuildingBlockGrid::show(BuildingBlock block)
{
    m_shown = std::move(block);
    m_conflicts = conflictsOf(m_shown);
    update();
}

void BuildingBlockGrid::selectPass(int pass)
{
    if (pass == m_selected || pass >= static_cast<int>(m_shown.passes.size()))
        return;
    m_selected = pass;
    update();
    Q_EMIT selectionChanged();
}

int BuildingBlockGrid::units() const
{
    int end = 0;
    for (const BuildingBlock::Pass& pass : m_block.passes)
        end = std::max(end, pass.end());
    return end + m_block.interval + 1; // space to drag to and one more repetition
}

double BuildingBlockGrid::unitWidth() const
{
    return std::clamp(double(width() - headerWidth - 8) / std::max(1, units()), leastUnit, mostUnit);
}

double BuildingBlockGrid::laneHeight() const
{
    return std::clamp(double(height() - rulerHeight) / std::max(1, m_shown.devices()), leastLane, mostLane);
}

double BuildingBlockGrid::xOf(double unit) const
{
    return headerWidth + unit * unitWidth();
}

double BuildingBlockGrid::yOf(int device) const
{
    return rulerHeight + device * laneHeight();
}

int BuildingBlockGrid::deviceOf(int pass) const
{
    return m_shown.deviceOfStage[m_shown.passes[pass].stage];
}

QSize BuildingBlockGrid::sizeHint() const
{
    return {static_cast<int>(headerWidth + units() * 24) + 8,
            static_cast<int>(rulerHeight + std::max(1, m_block.devices()) * usualLane)};
}

int BuildingBlockGrid::greatestHeight() const
{
    return static_cast<int>(rulerHeight + std::max(1, m_block.devices()) * mostLane);
}

QSize BuildingBlockGrid::minimumSizeHint() const
{
    return {static_cast<int>(headerWidth + units() * leastUnit) + 8,
            static_cast<int>(rulerHeight + std::max(1, m_block.devices()) * leastLane)};
}

QRectF BuildingBlockGrid::rectOfPass(int pass) const
{
    const BuildingBlock::Pass& p = m_shown.passes[pass];
    return QRectF(xOf(p.start), yOf(deviceOf(pass)) + 5, p.length * unitWidth() - 1, laneHeight() - 16);
}

int BuildingBlockGrid::passAt(QPointF position) const
{
    for (int pass = 0; pass < static_cast<int>(m_shown.passes.size()); ++pass)
        if (rectOfPass(pass).contains(position))
            return pass;
    return -1;
}

QString BuildingBlockGrid::nameOfPass(int pass) const
{
    const BuildingBlock::Pass& p = m_shown.passes[pass];
    return tr("%1%2.m at %3 on %4")
        .arg(QLatin1Char(letter(p.op)))
        .arg(p.stage)
        .arg(p.start)
        .arg(m_devices.value(deviceOf(pass)));
}

void BuildingBlockGrid::moveSelected(int units, int devices)
{
    if (m_selected < 0)
        return;
    try {
        const BuildingBlock::Pass& pass = m_block.passes[m_selected];
        BuildingBlock moved = withStart(m_block, m_selected, pass.start + units);
        if (devices != 0)
            moved = withStageOn(std::move(moved), pass.stage, deviceOf(m_selected) + devices);
        if (moved == m_block)
            return;
        show(std::move(moved));
        Q_EMIT edited(tr("Move %1").arg(nameOfPass(m_selected)));
    } catch (const Error& error) {
        Q_EMIT refused(QString::fromUtf8(error.what()));
    }
}

void BuildingBlockGrid::settleSelected()
{
    if (m_selected >= 0)
        moveSelected(firstFreeStart(m_block, m_selected) - m_block.passes[m_selected].start, 0);
}

void BuildingBlockGrid::stepSelection(int direction, bool acrossDevices)
{
    if (m_selected < 0)
        return;
    // Left and right: the neighbour in time. Up and down: the nearest in time on the next device.
    const auto startOf = [this](int pass) { return m_shown.passes[pass].start; };
    const int from = startOf(m_selected);
    int best = -1;
    for (int pass = 0; pass < static_cast<int>(m_shown.passes.size()); ++pass) {
        if (pass == m_selected || deviceOf(pass) != deviceOf(m_selected) + (acrossDevices ? direction : 0))
            continue;
        if (!acrossDevices && (startOf(pass) - from) * direction <= 0)
            continue;
        if (best < 0 || std::abs(startOf(pass) - from) < std::abs(startOf(best) - from))
            best = pass;
    }
    if (best >= 0)
        selectPass(best);
}

void BuildingBlockGrid::mousePressEvent(QMouseEvent* event)
{
    if (event->button() != Qt::LeftButton)
        return;
    const int pass = passAt(event->position());
    if (pass < 0)
        return;
    selectPass(pass);
    m_drag = Drag{event->position(), m_shown.passes[pass].start, deviceOf(pass), false};
}

void BuildingBlockGrid::mouseMoveEvent(QMouseEvent* event)
{
    if (!m_drag) {
        setCursor(passAt(event->position()) >= 0 ? Qt::OpenHandCursor : Qt::ArrowCursor);
        return;
    }
    if (!m_drag->moving && (event->position() - m_drag->from).manhattanLength() < QApplication::startDragDistance())
        return;
    m_drag->moving = true;
    setCursor(Qt::ClosedHandCursor);
    const int start =
        m_drag->start + static_cast<int>(std::lround((event->position().x() - m_drag->from.x()) / unitWidth()));
    const int device = static_cast<int>(std::floor((event->position().y() - rulerHeight) / laneHeight()));
    BuildingBlock moved = withStart(m_block, m_selected, start);
    try {
        moved = withStageOn(std::move(moved), m_block.passes[m_selected].stage,
                            std::clamp(device, 0, m_block.devices() - 1));
    } catch (const Error& error) {
        Q_EMIT refused(QString::fromUtf8(error.what())); // the pass still moves in time
        moved = withStart(m_block, m_selected, start);
    }
    if (moved == m_shown)
        return;
    show(std::move(moved));
    Q_EMIT previewed();
}

void BuildingBlockGrid::mouseReleaseEvent(QMouseEvent* event)
{
    if (event->button() != Qt::LeftButton || !m_drag)
        return;
    m_drag.reset();
    setCursor(Qt::OpenHandCursor);
    if (!(m_shown == m_block))
        Q_EMIT edited(tr("Move %1").arg(nameOfPass(m_selected)));
}

void BuildingBlockGrid::keyPressEvent(QKeyEvent* event)
{
    const bool moves = event->modifiers() & Qt::AltModifier;
    switch (event->key()) {
    case Qt::Key_Escape:
        if (!m_drag)
            break;
        m_drag.reset();
        show(m_block);
        Q_EMIT previewed();
        return;
    case Qt::Key_Left:
    case Qt::Key_Right: {
        const int direction = event->key() == Qt::Key_Left ? -1 : 1;
        moves ? moveSelected(direction, 0) : stepSelection(direction, false);
        return;
    }
    case Qt::Key_Up:
    case Qt::Key_Down: {
        const int direction = event->key() == Qt::Key_Up ? -1 : 1;
        moves ? moveSelected(0, direction) : stepSelection(direction, true);
        return;
    }
    case Qt::Key_Comma:
    case Qt::Key_Period: stepSelection(event->key() == Qt::Key_Comma ? -1 : 1, false); return;
    case Qt::Key_Return:
    case Qt::Key_Enter:
    case Qt::Key_Space: settleSelected(); return;
    default: break;
    }
    QWidget::keyPressEvent(event);
}

bool BuildingBlockGrid::event(QEvent* event)
{
    if (event->type() != QEvent::ToolTip)
        return QWidget::event(event);
    const auto* help = static_cast<QHelpEvent*>(event);
    const int pass = passAt(help->pos());
    if (pass < 0) {
        QToolTip::hideText();
        return true;
    }
    const BuildingBlock::Pass& p = m_shown.passes[pass];
    QString text = tr("%1: %2 of stage %3, again every %4 units\nLifespan of the stage: %5 units, from its forward to "
                      "the end of its last "
                      "backward part")
                       .arg(nameOfPass(pass), QString::fromUtf8(describe(p.op)))
                       .arg(p.stage)
                       .arg(m_shown.interval)
                       .arg(lifespan(m_shown, p.stage));
    for (const PassConflict& conflict : m_conflicts)
        if (conflict.pass == pass || conflict.other == pass)
            text += QLatin1Char('\n')
                    + (conflict.kind == PassConflict::Kind::Early ? tr("%1 starts before %2 has ended")
                                                                  : tr("%1 overlaps %2"))
                          .arg(nameOfPass(conflict.pass), nameOfPass(conflict.other));
    QToolTip::showText(help->globalPos(), text, this);
    return true;
}

} // namespace pipewright

#include "moc_buildingblockgrid.cpp"
