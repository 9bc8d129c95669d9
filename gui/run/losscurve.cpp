// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/run/losscurve.h"

#include "gui/widgets/theme.h"

#include <QPainter>
#include <QPolygonF>

#include <algorithm>
#include <cmath>

namespace pipewright {

LossCurve::LossCurve(QWidget* parent) : QWidget(parent)
{
    setAccessibleName(tr("Loss per step"));
    setMinimumHeight(72);
}

void LossCurve::clear()
{
    m_losses.clear();
    update();
}

void LossCurve::append(double loss)
{
    if (!std::isfinite(loss))
        return;
    m_losses.push_back(loss);
    update();
}

void LossCurve::paintEvent(QPaintEvent*)
{
    const Theme& theme = Theme::of(*this);
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    const QRectF frame = QRectF(rect()).adjusted(0.5, 0.5, -0.5, -0.5);
    painter.setPen(theme.hairline);
    painter.setBrush(theme.lane);
    painter.drawRoundedRect(frame, Theme::blockRadius, Theme::blockRadius);
    if (m_losses.size() < 2)
        return;
    const auto [low, high] = std::minmax_element(m_losses.begin(), m_losses.end());
    const double span = std::max(1e-12, *high - *low);
    const QRectF plot = frame.adjusted(8, 8, -8, -8);
    const auto most = static_cast<std::size_t>(std::max(2.0, plot.width() * 2));
    const std::size_t stride = std::max<std::size_t>(1, m_losses.size() / most);
    QPolygonF line;
    for (std::size_t i = 0; i < m_losses.size(); i += stride)
        line << QPointF(plot.left() + plot.width() * double(i) / double(m_losses.size() - 1),
                        plot.bottom() - plot.height() * (m_losses[i] - *low) / span);
    painter.setPen(QPen(theme.accent, 1.5));
    painter.setBrush(Qt::NoBrush);
    painter.drawPolyline(line);
}

} // namespace pipewright

#include "moc_losscurve.cpp"
