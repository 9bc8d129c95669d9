// SPDX-License-Identifier: GPL-3.0-or-later
// Maps each pass to its cells modulo T and counts occupants. O(passes × duration).
#include "gui/buildingblock/buildingblockcells.h"

#include "core/buildingblock/lifespan.h"
#include "gui/timeline/timelinepainter.h"
#include "gui/widgets/labels.h"

#include <QPainter>

#include <algorithm>
#include <cmath>

namespace pipewright {

namespace {

constexpr int nameWidth = 64;
constexpr int leastRow = 22, mostRow = 80;
constexpr int labelledRow = 34, mostLabelled = 6; // with the microbatch; too high for more devices than this
constexpr int boundWidth = 190;
constexpr double pale = 0.28;

int leastRowOf(std::size_t devices)
{
    return devices <= mostLabelled ? labelledRow : leastRow;
}

/// A stage's index among the stages of its device; every second one is paler, as on the lanes.
int chunkOf(const BuildingBlock& block, int stage)
{
    int chunk = 0;
    for (int before = 0; before < stage; ++before)
        chunk += block.deviceOfStage[before] == block.deviceOfStage[stage];
    return chunk;
}

} // namespace

PassLabel labelOfPass(const BuildingBlock& block, const BuildingBlock::Pass& pass, int repetition)
{
    const int device = block.deviceOfStage[pass.stage];
    const bool several = std::count(block.deviceOfStage.begin(), block.deviceOfStage.end(), device) > 1;
    PassLabel label{QString(QLatin1Char(letter(pass.op))), QStringLiteral("m")};
    if (several)
        label.letter += QString::number(pass.stage);
    if (repetition != 0)
        label.microbatch +=
            (repetition > 0 ? QStringLiteral("+") : QStringLiteral("\u2212")) + QString::number(std::abs(repetition));
    return label;
}

void paintPass(QPainter& painter, const TimelinePainter& blocks, const Theme& theme, const QRectF& rect,
               const BuildingBlock& block, const BuildingBlock::Pass& pass, int repetition, bool isPale)
{
    painter.setOpacity(isPale ? pale : 1);
    blocks.block(painter, rect, {pass.op, pass.stage, 0, 0}, chunkOf(block, pass.stage), BlockLabel::None);
    painter.setOpacity(1);
    painter.setPen(isPale ? theme.dim : theme.ink);
    const PassLabel label = labelOfPass(block, pass, repetition);
    const QFont letters = Theme::words(TextSize::Normal, QFont::Bold), numbers = Theme::words(TextSize::Small);
    const auto fits = [&rect](const QFont& font, const QString& text) {
        return QFontMetrics(font).horizontalAdvance(text) <= rect.width() - 4;
    };
    constexpr double line = 14;
    const bool two = rect.height() >= 2 * line && fits(letters, label.letter) && fits(numbers, label.microbatch);
    const QRectF above(rect.left(), rect.center().y() - line, rect.width(), line);
    painter.setFont(letters);
    if (fits(letters, label.letter))
        painter.drawText(two ? above : rect, Qt::AlignCenter, label.letter);
    painter.setFont(numbers);
    if (two)
        painter.drawText(above.translated(0, line), Qt::AlignCenter, label.microbatch);
}

BuildingBlockCells::BuildingBlockCells(QWidget* parent) : QWidget(parent)
{
    setSizePolicy(QSizePolicy::Preferred, QSizePolicy::Expanding);
    setAccessibleName(tr("One interval of every device"));
    setToolTip(
        tr("One interval of the steady state: cell by cell, which pass a device runs, and of which microbatch.\n"
           "Beside it the most activations it holds: per stage the lifespan divided by the interval, rounded up."));
}

void BuildingBlockCells::setBlock(const BuildingBlock& block, const QStringList& devices)
{
    m_devices = devices;
    m_block = block;
    m_cells = cellsModuloInterval(block);
    m_bound = liveBound(block);
    m_met.assign(m_cells.size(), std::vector<bool>(block.interval, false));
    for (const PassConflict& conflict : conflictsOf(block)) {
        if (conflict.kind != PassConflict::Kind::Meets)
            continue;
        const BuildingBlock::Pass& pass = block.passes[conflict.pass];
        const BuildingBlock::Pass& other = block.passes[conflict.other];
        auto& met = m_met[block.deviceOfStage[pass.stage]];
        for (int a = pass.start; a < pass.end(); ++a)
            for (int b = other.start; b < other.end(); ++b)
                if ((a - b) % block.interval == 0)
                    met[a % block.interval] = true;
    }
    setMaximumHeight(std::max(1, static_cast<int>(m_cells.size())) * mostRow);
    updateGeometry();
    update();
}

int BuildingBlockCells::rowHeight() const
{
    return std::clamp(height() / std::max(1, static_cast<int>(m_cells.size())), leastRowOf(m_cells.size()), mostRow);
}

QString BuildingBlockCells::boundText(int device) const
{
    QStringList terms;
    for (int stage = 0; stage < m_block.stages(); ++stage)
        if (m_block.deviceOfStage[stage] == device)
            terms << QStringLiteral("⌈%1/%2⌉").arg(lifespan(m_block, stage)).arg(m_block.interval);
    const int bound = m_bound[device];
    if (terms.size() > 4)
        return tr("%n stages", nullptr, static_cast<int>(terms.size())) + QStringLiteral(" = %1").arg(bound);
    return terms.join(QStringLiteral(" + ")) + QStringLiteral(" = %1").arg(bound);
}

double BuildingBlockCells::cellWidth() const
{
    return std::clamp(double(width() - nameWidth - boundWidth) / std::max(1, m_block.interval), 2.0, rowHeight() * 1.2);
}

QSize BuildingBlockCells::sizeHint() const
{
    return {nameWidth + boundWidth + std::clamp(m_block.interval, 1, 12) * 34,
            std::max(1, static_cast<int>(m_cells.size())) * leastRowOf(m_cells.size())};
}

void BuildingBlockCells::paintEvent(QPaintEvent*)
{
    const Theme& theme = Theme::of(*this);
    QPainter painter(this);
    const TimelinePainter blocks(theme, devicePixelRatioF());
    const int rowHeight = this->rowHeight();
    const int most = m_bound.empty() ? 0 : *std::max_element(m_bound.begin(), m_bound.end());
    for (int device = 0; device < static_cast<int>(m_cells.size()); ++device) {
        const double y = device * rowHeight;
        painter.setFont(Theme::words(TextSize::Small));
        painter.setPen(theme.text);
        painter.drawText(QRectF(0, y, nameWidth, rowHeight), Qt::AlignLeft | Qt::AlignVCenter, m_devices.value(device));
        for (int cell = 0; cell < m_block.interval; ++cell) {
            const QRectF rect(nameWidth + cell * cellWidth(), y + 2, cellWidth() - 1, rowHeight - 4);
            const int index = m_cells[device][cell];
            if (index < 0) {
                painter.fillRect(rect, theme.lane);
                painter.fillRect(rect, QBrush(theme.idle, Qt::BDiagPattern));
            } else {
                const BuildingBlock::Pass& pass = m_block.passes[index];
                int unit = pass.start; // the pass's unit in this cell; its block began unit / interval intervals ago
                while (unit < pass.end() - 1 && unit % m_block.interval != cell)
                    ++unit;
                paintPass(painter, blocks, theme, rect, m_block, pass, -(unit / m_block.interval));
            }
            if (m_met[device][cell]) {
                painter.setPen(QPen(theme.bad, 2));
                painter.setBrush(Qt::NoBrush);
                painter.drawRect(rect.adjusted(1, 1, -1, -1));
            }
        }
        painter.setFont(Theme::numbers(TextSize::Small));
        painter.setPen(m_bound[device] == most ? theme.text : theme.dim);
        painter.drawText(QRectF(nameWidth + m_block.interval * cellWidth() + 12, y, boundWidth, rowHeight),
                         Qt::AlignLeft | Qt::AlignVCenter, boundText(device));
    }
}

void paintBuildingBlock(QPainter& painter, const QRectF& area, const BuildingBlock& block, const QWidget& widget)
{
    int end = 1;
    for (const BuildingBlock::Pass& pass : block.passes)
        end = std::max(end, pass.end());
    const Theme& theme = Theme::of(widget);
    const double unit = area.width() / end, lane = area.height() / std::max(1, block.devices());
    painter.save();
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(Qt::NoPen);
    for (const BuildingBlock::Pass& pass : block.passes) {
        const int device = block.deviceOfStage[pass.stage];
        const QRectF rect(area.left() + pass.start * unit, area.top() + device * lane + 1,
                          std::max(2.0, pass.length * unit - 0.5), std::max(2.0, lane - 2));
        painter.setBrush(theme.fill(pass.op));
        painter.drawRoundedRect(rect, 1.5, 1.5);
    }
    painter.restore();
}

} // namespace pipewright

#include "moc_buildingblockcells.cpp"
