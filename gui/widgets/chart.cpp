// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/widgets/chart.h"

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
    explicit Foreground(QWidget* parent) : QWidget(parent) { setAttribute(Qt::WA_TransparentForMouseEvents); }
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

Chart::Chart(QWidget* parent)
    : QWidget(parent), m_view(new QChartView(this)), m_chart(m_view->chart()), m_x(new QValueAxis(m_chart)),
      m_y(new QValueAxis(m_chart)), m_foreground(new Foreground(this))
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
            set->append(part.values[row]);
        bars->append(set);
    }
    m_chart->addSeries(bars);
    bars->attachAxis(m_x);
    bars->attachAxis(m_y);
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

#include "moc_chart.cpp"
