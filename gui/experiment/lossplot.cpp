// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/experiment/lossplot.h"

#include "gui/widgets/theme.h"

#include <QPainter>
#include <QPainterPath>

#include <algorithm>
#include <cmath>

namespace pipewright {

namespace {

constexpr QMargins lossMargins(56, 26, 190, 34);
constexpr double labelHeight = 17;

std::vector<double> meanOverSeeds(const LossSeries& curve, int window)
{
    std::size_t length = 0;
    std::vector<std::vector<double>> smooth;
    for (const auto& seed : curve.seeds) {
        smooth.push_back(movingAverage(seed, window));
        length = std::max(length, seed.size());
    }
    std::vector<double> mean(length, NAN);
    for (std::size_t i = 0; i < length; ++i) {
        double sum = 0;
        int count = 0;
        for (const auto& values : smooth)
            if (i < values.size()) {
                sum += values[i];
                ++count;
            }
        mean[i] = sum / count;
    }
    return mean;
}

double roundStep(double range)
{
    const double rough = range / 4, decade = std::pow(10.0, std::floor(std::log10(std::max(rough, 1e-12))));
    for (const double mantissa : {1.0, 2.0, 5.0})
        if (mantissa * decade >= rough)
            return mantissa * decade;
    return 10 * decade;
}

/// Curves that are equal over their common length share one line: of `all` curves each paints every `all`-th dash.
struct Share {
    int own = 0, all = 1;
};

bool areAlike(const std::vector<double>& one, const std::vector<double>& other)
{
    const std::size_t length = std::min(one.size(), other.size());
    return length > 0 && std::equal(one.begin(), one.begin() + static_cast<std::ptrdiff_t>(length), other.begin());
}

std::vector<Share> sharesOf(const std::vector<std::vector<double>>& means)
{
    std::vector<Share> shares(means.size());
    for (std::size_t i = 0; i < means.size(); ++i)
        for (std::size_t other = 0; other < means.size(); ++other)
            if (other != i && areAlike(means[i], means[other])) {
                ++shares[i].all;
                shares[i].own += other < i;
            }
    return shares;
}

QPen penOf(const Theme& theme, const LossSeries& curve, std::size_t index, bool current, Share share = {})
{
    static const QVector<qreal> dashes[] = {{}, {5, 3}, {1.5, 3}};
    const double width = curve.reference || current ? 2.5 : 1.5;
    QPen pen(curve.reference ? theme.text : theme.fills[index % theme.fills.size()], width);
    if (share.all > 1 && !curve.reference) { // the reference is drawn below and shows in its own dashes
        const double dash = 10 / width;
        pen.setDashPattern({dash, dash * (share.all - 1)});
        pen.setDashOffset(dash * share.own);
        pen.setCapStyle(Qt::FlatCap);
        return pen;
    }
    const auto& dash = dashes[curve.reference ? 0 : index / theme.fills.size() % std::size(dashes)];
    if (!dash.isEmpty())
        pen.setDashPattern(dash);
    return pen;
}

} // namespace

LossPlot::LossPlot(QWidget* parent) : QWidget(parent)
{
    setAccessibleName(tr("Loss against updates"));
    setMinimumSize(420, 220);
}

void LossPlot::begin(int updates)
{
    m_curves.clear();
    m_updates = std::max(2, updates);
    update();
}

void LossPlot::append(std::size_t curve, const std::string& name, bool reference, std::uint64_t seed, double loss)
{
    if (m_curves.size() <= curve)
        m_curves.resize(curve + 1);
    LossSeries& own = m_curves[curve];
    own.name = name;
    own.reference = reference;
    if (own.seeds.size() < seed)
        own.seeds.resize(seed);
    own.seeds[seed - 1].push_back(loss);
    update();
}

void LossPlot::setCurrent(int curve)
{
    m_current = curve;
    update();
}

void LossPlot::paintEvent(QPaintEvent*)
{
    const Theme& theme = Theme::of(*this);
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    const QRectF plot = QRectF(rect()).marginsRemoved(lossMargins);
    painter.fillRect(plot, theme.lane);
    const int window = std::max(1, m_updates / 30);

    std::vector<std::vector<double>> means;
    double low = INFINITY, high = -INFINITY, start = NAN;
    for (const LossSeries& curve : m_curves) {
        means.push_back(meanOverSeeds(curve, window));
        for (const double value : means.back())
            if (std::isfinite(value)) {
                low = std::min(low, value);
                high = std::max(high, value);
                if (std::isnan(start))
                    start = value;
            }
    }
    painter.setFont(Theme::words(TextSize::Small));
    painter.setPen(theme.dim);
    painter.drawText(QPointF(plot.left(), plot.top() - 10),
                     window > 1 ? tr("loss, mean of %1 updates").arg(window) : tr("loss"));
    painter.drawText(QRectF(plot.right() - 120, plot.bottom() + 16, 120, 16), Qt::AlignRight, tr("updates"));
    if (!(low < high)) {
        painter.drawText(plot, Qt::AlignCenter, tr("Start, and the curves grow here."));
        return;
    }
    high = std::min(high, 2 * start); // diverging curves are cut off, so that the others stay readable
    const double step = roundStep(high - low);
    low = std::floor(low / step) * step;
    high = std::ceil(high / step) * step;
    const auto x = [&](double at) { return plot.left() + plot.width() * at / (m_updates - 1); };
    const auto y = [&](double loss) {
        return plot.bottom() - plot.height() * (std::clamp(loss, low, high) - low) / (high - low);
    };
    painter.setFont(Theme::numbers(TextSize::Small));
    for (double value = low; value <= high + step / 2; value += step) {
        painter.setPen(theme.hairline);
        painter.drawLine(QPointF(plot.left(), y(value)), QPointF(plot.right(), y(value)));
        painter.setPen(theme.dim);
        painter.drawText(QRectF(0, y(value) - 8, plot.left() - 8, 16), Qt::AlignRight | Qt::AlignVCenter,
                         QString::number(value, 'g', 4));
    }
    const double xStep = std::max(1.0, roundStep(m_updates));
    for (double at = 0; at < m_updates; at += xStep)
        painter.drawText(QRectF(x(at) - 30, plot.bottom() + 2, 60, 16), Qt::AlignCenter, QString::number(at));

    struct Label {
        double y;
        std::size_t curve;
    };
    std::vector<Label> labels;
    const std::vector<Share> shares = sharesOf(means);
    for (std::size_t i = 0; i < m_curves.size(); ++i) {
        const std::vector<double>& mean = means[i];
        if (mean.empty())
            continue;
        const std::size_t stride =
            std::max<std::size_t>(1, mean.size() / static_cast<std::size_t>(std::max(2.0, 2 * plot.width())));
        QPainterPath path;
        double end = NAN;
        for (std::size_t at = 0; at < mean.size(); at += stride)
            if (std::isfinite(mean[at])) {
                const QPointF point(x(double(at)), y(mean[at]));
                path.elementCount() == 0 ? path.moveTo(point) : path.lineTo(point);
                end = mean[at];
            }
        painter.setPen(penOf(theme, m_curves[i], i, static_cast<int>(i) == m_current, shares[i]));
        painter.setBrush(Qt::NoBrush);
        painter.drawPath(path);
        labels.push_back({std::isfinite(end) ? y(end) : plot.top(), i});
    }
    // Labels at the ends, separated where curves end close together.
    std::sort(labels.begin(), labels.end(), [](const Label& a, const Label& b) { return a.y < b.y; });
    double below = plot.top() - labelHeight;
    for (Label& label : labels)
        below = label.y = std::max(label.y, below + labelHeight);
    double above = std::max(plot.bottom(), plot.top() + labelHeight * double(labels.size()));
    for (auto label = labels.rbegin(); label != labels.rend(); ++label)
        above = (label->y = std::min(label->y, above)) - labelHeight;
    for (const Label& label : labels) {
        const LossSeries& curve = m_curves[label.curve];
        const bool current = static_cast<int>(label.curve) == m_current;
        painter.setPen(penOf(theme, curve, label.curve, current));
        painter.drawLine(QPointF(plot.right() + 8, label.y), QPointF(plot.right() + 30, label.y));
        painter.setPen(theme.text);
        painter.setFont(Theme::words(TextSize::Small, curve.reference || current ? QFont::DemiBold : QFont::Normal));
        painter.drawText(QRectF(plot.right() + 36, label.y - 9, lossMargins.right() - 40, 18),
                         Qt::AlignLeft | Qt::AlignVCenter,
                         painter.fontMetrics().elidedText(QString::fromStdString(curve.name), Qt::ElideRight,
                                                          lossMargins.right() - 44));
    }
}

} // namespace pipewright

#include "moc_lossplot.cpp"
