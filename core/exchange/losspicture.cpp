// SPDX-License-Identifier: GPL-3.0-or-later
// Mean and range over the seeds of each curve, smoothed and drawn as SVG paths. O(points).
#include "core/exchange/losspicture.h"

#include "core/exchange/svgwriter.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace pipewright {

namespace {

constexpr double width = 960, height = 520;
constexpr Rectangle plot{64, 52, 640, 408};
constexpr std::string_view dashes[] = {"", "7 3", "2 3", "9 3 2 3"};

/// One design's curve: mean, smallest and largest over its seeds.
struct Shown {
    std::vector<double> mean, low, high;
};

Shown overSeeds(const LossSeries& curve, int window)
{
    Shown shown;
    std::size_t length = 0;
    std::vector<std::vector<double>> smooth;
    for (const auto& seed : curve.seeds) {
        smooth.push_back(movingAverage(seed, window));
        length = std::max(length, seed.size());
    }
    for (std::size_t i = 0; i < length; ++i) {
        double sum = 0, low = INFINITY, high = -INFINITY;
        int count = 0;
        for (const auto& values : smooth)
            if (i < values.size() && std::isfinite(values[i])) {
                sum += values[i];
                low = std::min(low, values[i]);
                high = std::max(high, values[i]);
                ++count;
            }
        shown.mean.push_back(count > 0 ? sum / count : NAN);
        shown.low.push_back(count > 0 ? low : NAN);
        shown.high.push_back(count > 0 ? high : NAN);
    }
    return shown;
}

/// A step of 1, 2 or 5 times a power of ten that cuts the range into about five.
double tickOf(double range)
{
    const double rough = range / 5, power = std::pow(10, std::floor(std::log10(rough)));
    for (const double factor : {1.0, 2.0, 5.0})
        if (rough <= factor * power)
            return factor * power;
    return 10 * power;
}

class LossDrawing {
public:
    LossDrawing(const std::string& title, const std::vector<LossSeries>& curves, const PictureTheme& theme, int window,
                std::string_view quantity)
        : m_theme(theme), m_quantity(quantity), m_svg(width, height, title)
    {
        std::size_t longest = 0;
        for (const LossSeries& curve : curves)
            for (const auto& seed : curve.seeds)
                longest = std::max(longest, seed.size());
        m_window = window > 0 ? window : std::max(1, static_cast<int>(longest / 30));
        m_updates = std::max<double>(1, static_cast<double>(longest) - 1);
        for (const LossSeries& curve : curves)
            m_shown.push_back(overSeeds(curve, m_window));
        findRange();
        m_svg.fill({0, 0, width, height}, theme.background);
        m_svg.text(plot.x, 26, title, {.size = 15, .colour = theme.text, .bold = true});
        drawAxes();
        for (const bool references : {false, true}) // the references on top
            for (std::size_t i = 0; i < curves.size(); ++i)
                if (curves[i].reference == references)
                    drawCurve(curves[i], i);
        drawLegend(curves);
    }

    std::string finish() { return std::move(m_svg).finish(); }

private:
    void findRange()
    {
        double low = INFINITY, high = -INFINITY;
        for (const Shown& shown : m_shown)
            for (std::size_t i = 0; i < shown.mean.size(); ++i)
                if (std::isfinite(shown.mean[i])) {
                    low = std::min(low, shown.low[i]);
                    high = std::max(high, shown.high[i]);
                }
        // Diverging losses are cut off at twice the initial one, so that the others stay readable. Shares do not
        // diverge.
        for (const Shown& shown : m_shown)
            if (m_quantity == "loss" && !shown.mean.empty() && std::isfinite(shown.mean.front())) {
                high = std::min(high, 2 * shown.mean.front());
                break;
            }
        if (!(low < high)) {
            low = std::isfinite(low) ? low - 1 : 0;
            high = low + 2;
        }
        const double tick = tickOf(high - low);
        m_low = std::floor(low / tick) * tick;
        m_high = std::ceil(high / tick) * tick;
        m_tick = tick;
    }

    double xOf(double update) const { return plot.x + plot.width * update / m_updates; }
    double yOf(double loss) const
    {
        return plot.bottom() - plot.height * (std::clamp(loss, m_low, m_high) - m_low) / (m_high - m_low);
    }

    std::string_view colourOf(const LossSeries& curve, std::size_t index) const
    {
        return curve.reference ? m_theme.text : m_theme.blocks[index % opCount];
    }

    void drawAxes()
    {
        m_svg.fill(plot, m_theme.panel);
        const int ticks = static_cast<int>(std::lround((m_high - m_low) / m_tick));
        for (int i = 0; i <= ticks; ++i) {
            const double value = m_low + i * m_tick, y = yOf(value);
            m_svg.line(plot.x, y, plot.right(), y, m_theme.hairline);
            m_svg.text(plot.x - 8, y + 4, fmt::format("{:.4g}", value),
                       {.colour = m_theme.dim, .mono = true, .anchor = Anchor::End});
        }
        const double step = std::max(1.0, tickOf(m_updates));
        for (double update = 0; update <= m_updates; update += step)
            m_svg.text(xOf(update), plot.bottom() + 18, fmt::format("{:.4g}", update),
                       {.colour = m_theme.dim, .mono = true, .anchor = Anchor::Middle});
        m_svg.text(plot.x, 44, m_quantity + (m_window > 1 ? fmt::format(", mean of {} updates", m_window) : ""),
                   {.colour = m_theme.dim});
        m_svg.text(plot.right(), plot.bottom() + 36, "updates", {.colour = m_theme.dim, .anchor = Anchor::End});
    }

    void drawCurve(const LossSeries& curve, std::size_t index)
    {
        const Shown& shown = m_shown[index];
        if (curve.seeds.size() > 1) {
            std::string band;
            for (std::size_t i = 0; i < shown.mean.size(); ++i)
                if (std::isfinite(shown.mean[i]))
                    append(band, static_cast<double>(i), shown.high[i]);
            for (std::size_t i = shown.mean.size(); i-- > 0;)
                if (std::isfinite(shown.mean[i]))
                    append(band, static_cast<double>(i), shown.low[i]);
            m_svg.filledPath(band, colourOf(curve, index), 0.12);
        }
        // Dashes distinguish designs beyond the number of colours.
        const std::string_view dash = curve.reference ? "" : dashes[index / opCount % std::size(dashes)];
        const double strokeWidth = curve.reference ? 2.5 : 1.5;
        std::string line;
        for (std::size_t i = 0; i < shown.mean.size(); ++i)
            if (std::isfinite(shown.mean[i]))
                append(line, static_cast<double>(i), shown.mean[i]);
        m_svg.strokedPath(line, colourOf(curve, index), strokeWidth, 1, dash);
    }

    void append(std::string& path, double update, double loss) const
    {
        path += path.empty() ? 'M' : 'L';
        appendNumber(path, xOf(update));
        path += ' ';
        appendNumber(path, yOf(loss));
    }

    void drawLegend(const std::vector<LossSeries>& curves)
    {
        std::vector<std::size_t> order(curves.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        const auto end = [&](std::size_t i) {
            return m_shown[i].mean.empty() || !std::isfinite(m_shown[i].mean.back()) ? INFINITY
                                                                                     : m_shown[i].mean.back();
        };
        std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return end(a) > end(b); });
        double y = plot.y + 12;
        for (const std::size_t i : order) {
            const std::string_view dash = curves[i].reference ? "" : dashes[i / opCount % std::size(dashes)];
            m_svg.line(plot.right() + 16, y - 4, plot.right() + 40, y - 4, colourOf(curves[i], i),
                       curves[i].reference ? 2.5 : 1.5, dash);
            m_svg.text(plot.right() + 48, y,
                       fmt::format("{}  {}", std::isfinite(end(i)) ? fmt::format("{:.3f}", end(i)) : "diverged",
                                   curves[i].name),
                       {.colour = m_theme.text, .bold = curves[i].reference});
            y += 20;
        }
    }

    const PictureTheme& m_theme;
    std::string m_quantity;
    SvgWriter m_svg;
    std::vector<Shown> m_shown;
    int m_window = 1;
    double m_updates = 1, m_low = 0, m_high = 1, m_tick = 1;
};

} // namespace

std::vector<double> movingAverage(const std::vector<double>& values, int window)
{
    std::vector<double> smooth(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
        const std::size_t first =
            i + 1 > static_cast<std::size_t>(window) ? i + 1 - static_cast<std::size_t>(window) : 0;
        double sum = 0;
        for (std::size_t j = first; j <= i; ++j)
            sum += values[j];
        smooth[i] = sum / static_cast<double>(i + 1 - first);
    }
    return smooth;
}

std::string lossPicture(const std::string& title, const std::vector<LossSeries>& curves, const PictureTheme& theme,
                        int window, std::string_view quantity)
{
    return LossDrawing(title, curves, theme, window, quantity).finish();
}

} // namespace pipewright
