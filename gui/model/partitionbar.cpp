// SPDX-License-Identifier: GPL-3.0-or-later
// Prefix sums of the layers' work give the edges; a dragged border snaps to the nearest one. O(layers).
#include "gui/model/partitionbar.h"

#include "core/design/redesign.h"
#include "gui/widgets/theme.h"
#include "gui/widgets/words.h"

#include <QHelpEvent>
#include <QKeyEvent>
#include <QLocale>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace pipewright {

namespace {

constexpr double reach = 7;
constexpr double leastShare = 0.006; ///< of the width, so that layers without work stay visible

/// The short name of the embedding or head; empty for other layers.
QString endName(LayerKind kind)
{
    switch (kind) {
    case LayerKind::Embedding: return PartitionBar::tr("emb");
    case LayerKind::Head: return PartitionBar::tr("head");
    case LayerKind::Transformer:
    case LayerKind::Mlp:
    case LayerKind::Other: break;
    }
    return {};
}

} // namespace

PartitionBar::PartitionBar(QWidget* parent) : QWidget(parent)
{
    setFocusPolicy(Qt::StrongFocus);
    setMouseTracking(true);
    setAccessibleName(tr("Layers cut into stages"));
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Preferred);
    setMaximumHeight(mostBar + labelHeight);
}

void PartitionBar::setDesign(const Design& design)
{
    m_layers.clear();
    if (design.workload && !design.layersPerStage.empty())
        m_layers = design.workload->layers;
    m_partition = m_shown = m_layers.empty() ? std::vector<int>() : design.layersPerStage;
    m_dragging = false;
    m_border = std::clamp(m_border, 0, std::max(0, static_cast<int>(m_partition.size()) - 2));
    layOut();
}

void PartitionBar::setMeasure(Measure measure)
{
    m_measure = measure;
    layOut();
}

double PartitionBar::weightOf(std::size_t layer) const
{
    const Layer& l = m_layers[layer];
    return m_measure == Measure::Parameters ? double(l.parameters) : l.work();
}

void PartitionBar::layOut()
{
    double sum = 0;
    for (std::size_t i = 0; i < m_layers.size(); ++i)
        sum += weightOf(i);
    m_edges.assign(1, 0);
    double used = 0;
    std::vector<double> widths;
    for (std::size_t i = 0; i < m_layers.size(); ++i) {
        widths.push_back(std::max(leastShare, sum > 0 ? weightOf(i) / sum : 1));
        used += widths.back();
    }
    for (const double width : widths)
        m_edges.push_back(m_edges.back() + width / used);
    update();
}

double PartitionBar::shareOfStage(int stage) const
{
    double sum = 0, own = 0;
    std::size_t layer = 0;
    for (int s = 0; s < static_cast<int>(m_shown.size()); ++s)
        for (int i = 0; i < m_shown[s]; ++i, ++layer) {
            sum += weightOf(layer);
            own += s == stage ? weightOf(layer) : 0;
        }
    return sum > 0 ? own / sum : 0;
}

double PartitionBar::xOfLayer(std::size_t layer) const
{
    return m_edges[layer] * (width() - 1);
}

double PartitionBar::xOfBorder(int border) const
{
    return xOfLayer(std::accumulate(m_shown.begin(), m_shown.begin() + border + 1, 0));
}

int PartitionBar::borderAt(double x) const
{
    int best = -1;
    double nearest = reach;
    for (int border = 0; border + 1 < static_cast<int>(m_shown.size()); ++border)
        if (const double distance = std::abs(xOfBorder(border) - x); distance < nearest) {
            nearest = distance;
            best = border;
        }
    return best;
}

/// "emb, layers 0–7", numbered as in the lanes: the ends of the model are no layers there.
QString PartitionBar::layersText(std::size_t first, std::size_t end) const
{
    const auto blocksBefore = [this](std::size_t layer) {
        return std::count_if(m_layers.begin(), m_layers.begin() + static_cast<std::ptrdiff_t>(layer),
                             [](const Layer& each) { return isBlock(each.kind); });
    };
    const auto from = blocksBefore(first), until = blocksBefore(end);
    if (std::any_of(m_layers.begin() + static_cast<std::ptrdiff_t>(first),
                    m_layers.begin() + static_cast<std::ptrdiff_t>(end),
                    [](const Layer& each) { return each.kind == LayerKind::Other; }))
        return tr("%1 layers").arg(end - first); // of a table, which names each
    QStringList parts;
    for (std::size_t layer = first; layer < end; ++layer) {
        if (!isBlock(m_layers[layer].kind))
            parts << endName(m_layers[layer].kind);
        else if (blocksBefore(layer) == from)
            parts << (until - from == 1 ? tr("layer %1").arg(from) : tr("layers %1–%2").arg(from).arg(until - 1));
    }
    return parts.join(tr(", "));
}

void PartitionBar::moveBorder(int border, int layers)
{
    if (border < 0 || border + 1 >= static_cast<int>(m_partition.size()))
        return;
    m_border = border;
    m_shown = withBorderMoved(m_partition, border, layers);
    update();
    if (m_shown != m_partition)
        Q_EMIT moved(m_shown);
}

void PartitionBar::mousePressEvent(QMouseEvent* event)
{
    const int border = borderAt(event->position().x());
    if (event->button() != Qt::LeftButton || border < 0)
        return;
    m_border = border;
    m_dragging = true;
    update();
}

void PartitionBar::mouseMoveEvent(QMouseEvent* event)
{
    if (!m_dragging) {
        setCursor(borderAt(event->position().x()) >= 0 ? Qt::SplitHCursor : Qt::ArrowCursor);
        return;
    }
    // The border snaps to the nearest edge between layers.
    std::size_t edge = 0;
    for (std::size_t i = 0; i < m_edges.size(); ++i)
        if (std::abs(xOfLayer(i) - event->position().x()) < std::abs(xOfLayer(edge) - event->position().x()))
            edge = i;
    const int before = std::accumulate(m_partition.begin(), m_partition.begin() + m_border + 1, 0);
    std::vector<int> wanted = withBorderMoved(m_partition, m_border, static_cast<int>(edge) - before);
    if (wanted == m_shown)
        return;
    m_shown = std::move(wanted);
    update();
    Q_EMIT previewed(m_shown);
}

void PartitionBar::mouseReleaseEvent(QMouseEvent* event)
{
    if (event->button() != Qt::LeftButton || !m_dragging)
        return;
    m_dragging = false;
    if (m_shown != m_partition)
        Q_EMIT moved(m_shown);
}

void PartitionBar::keyPressEvent(QKeyEvent* event)
{
    const bool moves = event->modifiers() & Qt::AltModifier;
    const int direction = event->key() == Qt::Key_Left ? -1 : event->key() == Qt::Key_Right ? 1 : 0;
    if (direction != 0 && moves) {
        moveBorder(m_border, direction);
    } else if (direction != 0) {
        m_border = std::clamp(m_border + direction, 0, std::max(0, static_cast<int>(m_shown.size()) - 2));
        update();
    } else if (event->key() == Qt::Key_Escape && m_dragging) {
        m_dragging = false;
        m_shown = m_partition;
        update();
        Q_EMIT cancelled();
    } else {
        QWidget::keyPressEvent(event);
    }
}

bool PartitionBar::event(QEvent* event)
{
    if (event->type() != QEvent::ToolTip)
        return QWidget::event(event);
    const auto* help = static_cast<QHelpEvent*>(event);
    for (std::size_t i = 0; i < m_layers.size(); ++i) {
        if (help->pos().x() < xOfLayer(i) || help->pos().x() >= xOfLayer(i + 1) || help->pos().y() > barHeight())
            continue;
        const Layer& layer = m_layers[i];
        double typical = 0; // a transformer layer's work, for comparison with the ends
        for (std::size_t other = 0; other < m_layers.size(); ++other)
            if (isBlock(m_layers[other].kind))
                typical = std::max(typical, weightOf(other));
        QString text = tr("%1: %2\u00a0GFLOP per microbatch, %3\u00a0M parameters")
                           .arg(QString::fromStdString(layer.name))
                           .arg((layer.forwardFlops + layer.inputGradFlops + layer.weightGradFlops) / 1e9, 0, 'f', 1)
                           .arg(double(layer.parameters) / 1e6, 0, 'f', 1);
        if (!isBlock(layer.kind) && typical > 0)
            text += tr("\nas heavy as %1 repeated layers").arg(weightOf(i) / typical, 0, 'f', 2);
        QToolTip::showText(help->globalPos(), text, this);
        return true;
    }
    QToolTip::hideText();
    return true;
}

void PartitionBar::paintEvent(QPaintEvent*)
{
    const Theme& theme = Theme::of(*this);
    QPainter painter(this);
    if (m_layers.empty()) {
        painter.setPen(theme.dim);
        painter.setFont(Theme::words());
        painter.drawText(rect(), Qt::AlignLeft | Qt::AlignVCenter,
                         tr("These costs were given by hand: there is no model to cut."));
        return;
    }
    std::size_t layer = 0;
    for (int stage = 0; stage < static_cast<int>(m_shown.size()); ++stage) {
        const double left = xOfLayer(layer);
        for (int i = 0; i < m_shown[stage]; ++i, ++layer) {
            const QString end = endName(m_layers[layer].kind);
            const QRectF cell(xOfLayer(layer) + 0.5, 6, std::max(1.0, xOfLayer(layer + 1) - xOfLayer(layer) - 1),
                              barHeight() - 12);
            painter.fillRect(cell, theme.fill(end.isEmpty() ? Op::F : Op::U, stage));
            if (!end.isEmpty() && cell.width() > 34) {
                painter.setPen(theme.ink);
                painter.setFont(Theme::words(TextSize::Small));
                painter.drawText(cell, Qt::AlignCenter, end);
            }
        }
        const QRectF label(left + 2, barHeight(), xOfLayer(layer) - left - 4, labelHeight / 2.0);
        painter.setPen(theme.text);
        painter.setFont(Theme::words(TextSize::Small, QFont::DemiBold));
        painter.drawText(
            label, Qt::AlignHCenter | Qt::AlignVCenter,
            painter.fontMetrics().elidedText(label.width() > 60 ? tr("stage %1").arg(stage) : QString::number(stage),
                                             Qt::ElideRight, int(label.width())));
        painter.setPen(theme.dim);
        painter.setFont(Theme::numbers(TextSize::Small));
        const QString share = percentText(shareOfStage(stage));
        const QString both = layersText(layer - m_shown[stage], layer) + QStringLiteral(" · ") + share;
        const QString fitting = painter.fontMetrics().horizontalAdvance(both) <= label.width() ? both : share;
        painter.drawText(label.translated(0, labelHeight / 2.0 - 4), Qt::AlignHCenter | Qt::AlignVCenter,
                         painter.fontMetrics().elidedText(fitting, Qt::ElideRight, int(label.width()) + 4));
    }
    painter.setRenderHint(QPainter::Antialiasing);
    for (int border = 0; border + 1 < static_cast<int>(m_shown.size()); ++border) {
        const bool chosen = border == m_border && (hasFocus() || m_dragging);
        const double x = xOfBorder(border);
        painter.setPen(Qt::NoPen);
        painter.setBrush(chosen ? theme.accent : theme.selection);
        painter.drawRoundedRect(QRectF(x - 1.5, 0, 3, barHeight()), 1.5, 1.5);
        painter.drawRoundedRect(QRectF(x - 4, barHeight() / 2.0 - 8, 8, 16), 3, 3);
    }
}

} // namespace pipewright

#include "moc_partitionbar.cpp"
