// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/panels/chart.h"

#include <QAreaSeries>
#include <QBarSet>
#include <QChart>
#include <QChartView>
#include <QGraphicsLayout>
#include <QHorizontalStackedBarSeries>
#include <QLineSeries>
#include <QPainter>
#include <QValueAxis>

#include <algorithm>

namespace pipewright {

namespace {

class Foreground : public QWidget {
public:
    explicit Foreground(QWidget* parent)
        : QWidget(parent)
    {
        setAttribute(Qt::WA_TransparentForMouseEvents);
    }
    std::function<void(QPainter&)> paint;

protected:
    void paintEvent(QPaintEvent*) override
    {
        QPainter painter(this);
        if (paint)
            paint(painter);
    }
};

} // namespace

std::vector<QPointF> thinSteps(const std::vector<MemorySample>& samples, double from, double to, int pixels)
{
    std::vector<QPointF> points;
    if (samples.empty() || to <= from || pixels <= 0)
        return points;
    const auto later = [](double time, const MemorySample& sample) { return time < static_cast<double>(sample.time); };
    auto next = std::upper_bound(samples.begin(), samples.end(), from, later);
    // Live from a sample's time on; before the first sample its own level holds, as persistent buffers exist.
    Bytes level = next == samples.begin() ? samples.front().bytes : std::prev(next)->bytes;
    points.reserve(static_cast<std::size_t>(pixels) * 2 + 2);
    const double width = (to - from) / pixels;
    for (int pixel = 0; pixel < pixels; ++pixel) {
        const double end = from + width * (pixel + 1);
        Bytes low = level, high = level, last = level;
        for (; next != samples.end() && static_cast<double>(next->time) < end; ++next) {
            last = next->bytes;
            low = std::min(low, last);
            high = std::max(high, last);
        }
        const double x = from + width * pixel;
        if (low == level && high == level) {
            // Nothing happens in this pixel: a run of level pixels is drawn by its two ends.
            if (points.size() >= 2 && points.back().y() == static_cast<double>(level)
                && points[points.size() - 2].y() == static_cast<double>(level))
                points.back().setX(x);
            else
                points.emplace_back(x, static_cast<double>(level));
            continue;
        }
        // The extreme that is not the level left behind comes first, so that the curve ends where it goes on.
        const Bytes extreme = last == high ? low : high;
        points.emplace_back(x, static_cast<double>(extreme));
        points.emplace_back(x, static_cast<double>(last));
        level = last;
    }
    points.emplace_back(to, static_cast<double>(level));
    return points;
}

Chart::Chart(QWidget* parent)
    : QWidget(parent)
    , m_view(new QChartView(this))
    , m_chart(m_view->chart())
    , m_x(new QValueAxis(m_chart))
    , m_y(new QValueAxis(m_chart))
    , m_foreground(new Foreground(this))
{
    m_view->setFrameShape(QFrame::NoFrame);
    m_view->setFocusPolicy(Qt::NoFocus);
    m_view->viewport()->setFocusPolicy(Qt::NoFocus);
    m_view->setAttribute(Qt::WA_TransparentForMouseEvents);
    m_view->setBackgroundBrush(Qt::NoBrush);
    m_view->setStyleSheet(QStringLiteral("background: transparent"));
    m_view->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    m_view->setVerticalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    m_chart->setBackgroundVisible(false);
    m_chart->setPlotAreaBackgroundVisible(false);
    m_chart->setMargins({0, 0, 0, 0});
    m_chart->layout()->setContentsMargins(0, 0, 0, 0);
    m_chart->legend()->hide();
    m_chart->addAxis(m_x, Qt::AlignBottom);
    m_chart->addAxis(m_y, Qt::AlignLeft);
    m_x->setVisible(false);
    m_y->setVisible(false);
}

void Chart::setPlotMargins(int left, int top, int right, int bottom)
{
    const QMargins margins(left, top, right, bottom);
    if (margins == m_margins)
        return;
    m_margins = margins;
    placePlot();
}

QRectF Chart::plotArea() const
{
    return QRectF(rect()).marginsRemoved(QMarginsF(m_margins));
}

void Chart::setRange(double fromX, double toX, double fromY, double toY)
{
    m_x->setRange(fromX, std::max(toX, fromX + 1e-9));
    m_y->setRange(fromY, std::max(toY, fromY + 1e-9));
}

void Chart::clear()
{
    m_chart->removeAllSeries();
    m_points = 0;
}

void Chart::addArea(const std::vector<QPointF>& lower, const std::vector<QPointF>& upper, const QColor& fill)
{
    auto* area = new QAreaSeries(m_chart);
    // The area does not own its edges; as children of the area they go with it.
    auto* top = new QLineSeries(area);
    auto* bottom = new QLineSeries(area);
    top->replace(QList<QPointF>(upper.begin(), upper.end()));
    bottom->replace(QList<QPointF>(lower.begin(), lower.end()));
    area->setUpperSeries(top);
    area->setLowerSeries(bottom);
    area->setPen(Qt::NoPen);
    area->setBrush(fill);
    m_chart->addSeries(area);
    area->attachAxis(m_x);
    area->attachAxis(m_y);
    m_points += static_cast<int>(lower.size() + upper.size());
}

void Chart::addLine(const std::vector<QPointF>& points, const QColor& color, double width, bool dashed)
{
    auto* line = new QLineSeries(m_chart);
    line->replace(QList<QPointF>(points.begin(), points.end()));
    QPen pen(color, width);
    pen.setJoinStyle(Qt::MiterJoin);
    pen.setCapStyle(Qt::FlatCap);
    if (dashed)
        pen.setDashPattern({4, 3});
    line->setPen(pen);
    m_chart->addSeries(line);
    line->attachAxis(m_x);
    line->attachAxis(m_y);
    m_points += static_cast<int>(points.size());
}

void Chart::setStackedBars(const std::vector<BarPart>& parts, int rows, double barShare)
{
    clear();
    auto* bars = new QHorizontalStackedBarSeries(m_chart);
    bars->setBarWidth(barShare);
    for (const BarPart& part : parts) {
        auto* set = new QBarSet(part.name, bars);
        set->setBrush(part.color);
        set->setPen(Qt::NoPen);
        // Qt Charts counts rows from the bottom.
        for (int row = rows - 1; row >= 0; --row)
            set->append(part.values[static_cast<std::size_t>(row)]);
        bars->append(set);
    }
    m_chart->addSeries(bars);
    bars->attachAxis(m_x);
    bars->attachAxis(m_y);
    m_points = rows * static_cast<int>(parts.size());
}

void Chart::setForeground(std::function<void(QPainter&)> paint)
{
    static_cast<Foreground*>(m_foreground)->paint = std::move(paint);
    m_foreground->update();
}

double Chart::xOf(double value) const
{
    const QRectF area = plotArea();
    return area.left() + (value - m_x->min()) / (m_x->max() - m_x->min()) * area.width();
}

double Chart::yOf(double value) const
{
    const QRectF area = plotArea();
    return area.bottom() - (value - m_y->min()) / (m_y->max() - m_y->min()) * area.height();
}

void Chart::resizeEvent(QResizeEvent* event)
{
    QWidget::resizeEvent(event);
    placePlot();
}

void Chart::placePlot()
{
    m_view->setGeometry(rect());
    m_foreground->setGeometry(rect());
    if (const QRectF area = plotArea(); area.width() > 1 && area.height() > 1)
        m_chart->setPlotArea(area);
}

} // namespace pipewright
