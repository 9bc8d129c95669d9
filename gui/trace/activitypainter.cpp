// SPDX-License-Identifier: GPL-3.0-or-later
// Fills one row of pixels per track from findVisible() and repeats it; text on slices wide enough. O(pixels) per track.
#include "gui/trace/activitypainter.h"

#include "core/exchange/pytorchaction.h"
#include "gui/widgets/words.h"

#include <QFontMetricsF>
#include <QLocale>
#include <QPainter>
#include <QPainterPath>

#include <algorithm>
#include <cmath>

namespace pipewright {

namespace {

constexpr double leastForText = 40; // pixels

constexpr std::string_view actionPrefix = "PP:";

std::string withoutPrefix(const std::string& name)
{
    return name.rfind(actionPrefix, 0) == 0 ? name.substr(actionPrefix.size()) : name;
}

/// The block of a range's name: "PP:0F3" in PyTorch's notation, "F0.3" in Pipewright's.
std::optional<Block> blockOf(std::string_view name)
{
    if (name.rfind(actionPrefix, 0) == 0) {
        std::vector<PytorchAction> actions;
        if (!parsePytorchCell(name.substr(actionPrefix.size()), PytorchLetters::Current, actions) && !actions.empty()
            && actions.front().isCompute())
            return actions.front().block();
        return std::nullopt;
    }
    return parseBlock(name);
}

/// "max 28,450", "max 71.3 GiB".
QString highestText(const std::string& name, double value)
{
    const QString counted = QString::fromStdString(name);
    if (counted.contains(QLatin1String("byte"), Qt::CaseInsensitive) && std::fabs(value) < 1e18)
        return QObject::tr("max %1").arg(sizeText(static_cast<Bytes>(value)));
    const bool whole = value == std::floor(value) || std::fabs(value) >= 1000;
    return QObject::tr("max %1").arg(std::fabs(value) < 1e12
                                         ? QLocale(QLocale::English).toString(value, 'f', whole ? 0 : 2)
                                         : QLocale(QLocale::English).toString(value, 'g', 4));
}

QRgb pale(QRgb colour, const QColor& ground)
{
    const auto mix = [](int a, int b) { return (a + 3 * b) / 4; };
    return qRgb(mix(qRed(colour), ground.red()), mix(qGreen(colour), ground.green()),
                mix(qBlue(colour), ground.blue()));
}

} // namespace

ActivityPainter::ActivityPainter(const Theme& theme, const StoredActivities& trace, double scale)
    : m_theme(theme), m_trace(trace), m_scale(scale), m_font(Theme::numbers(TextSize::Small)),
      m_letter(QFontMetricsF(m_font).horizontalAdvance(QLatin1Char('m'))),
      m_capitals(QFontMetricsF(m_font).capHeight()), m_names(trace.strings.size()), m_colours(trace.strings.size())
{
}

const QString& ActivityPainter::name(std::uint32_t id) const
{
    static const QString nothing;
    if (id >= m_names.size())
        return nothing;
    QString& name = m_names[id];
    if (name.isNull())
        name = QString::fromStdString(blockOf(m_trace.strings[id]) ? withoutPrefix(m_trace.strings[id])
                                                                   : std::string(withoutScope(m_trace.strings[id])))
                   .simplified();
    return name;
}

QRgb ActivityPainter::colour(ActivityKind kind, std::uint32_t name) const
{
    switch (kind) {
    case ActivityKind::Memcpy:
    case ActivityKind::Memset: return m_theme.fill(Op::U).rgb();
    case ActivityKind::Synchronization:
    case ActivityKind::Overhead: return m_theme.waiting.rgb();
    case ActivityKind::Kernel:
    case ActivityKind::GpuRange:
    case ActivityKind::Runtime:
    case ActivityKind::Range:
    case ActivityKind::Operator:
    case ActivityKind::Python:
    case ActivityKind::Mark:
    case ActivityKind::Other: break; // coloured by name
    }
    if (name >= m_colours.size())
        return m_theme.fill(Op::F).rgb();
    QRgb& colour = m_colours[name];
    if (colour == 0) {
        const std::string& text = m_trace.strings[name];
        if (const auto block = blockOf(text)) {
            colour = m_theme.fill(block->op).rgb();
        } else {
            // By prefix, so that variants of a kernel have the same colour.
            constexpr Op looks[] = {Op::F, Op::I, Op::W, Op::B, Op::R};
            const std::size_t hash =
                std::hash<std::string_view>{}(std::string_view(text).substr(0, text.find_first_of("<(")));
            colour = m_theme.fill(looks[hash % std::size(looks)], static_cast<int>(hash / 8 % 2)).rgb();
        }
    }
    return colour;
}

std::size_t ActivityPainter::track(QPainter& painter, const TimeAxis& axis, const QRect& area, const Track& track,
                                   std::span<const QRgb> ground, const std::vector<bool>& dimOthers) const
{
    m_visible.clear();
    m_texts.clear();
    const auto from = static_cast<Nanoseconds>(std::floor(axis.start));
    const auto to = static_cast<Nanoseconds>(std::ceil(axis.end())) + 1;
    const int width = static_cast<int>(ground.size());
    const int height = std::max(1, static_cast<int>(area.height() * m_scale));
    findVisible(track, from, to, width, m_visible);
    if (m_visible.empty() || ground.empty())
        return 0;
    // All pixel rows of a track are equal: one row is computed and repeated. A rectangle per slice, or blending with
    // the background, would cost ten times as much.
    if (m_strip.width() != width || m_strip.height() != height)
        m_strip = QImage(width, height, QImage::Format_RGB32);
    auto* line = reinterpret_cast<QRgb*>(m_strip.scanLine(0));
    std::copy(ground.begin(), ground.end(), line);
    const int origin = static_cast<int>(std::floor(axis.left * m_scale + 0.5));
    for (const VisibleSlice& visible : m_visible) {
        const auto [first, last] = columns(axis, double(visible.start), double(visible.end), m_scale);
        const int left = std::max(0, first - origin), right = std::min(width, last - origin);
        if (right <= left)
            continue;
        const std::uint32_t id = track.name[visible.slice];
        QRgb fill = colour(track.kind[visible.slice], id);
        if (!dimOthers.empty() && (id >= dimOthers.size() || !dimOthers[id]))
            fill = pale(fill, m_theme.lane);
        // One pixel of background between neighbours that are wide enough.
        std::fill(line + left, line + (right - left > 3 ? right - 1 : right), fill);
        if (visible.count == 1 && (right - left) / m_scale >= leastForText)
            m_texts.push_back({left / m_scale, (right - left) / m_scale, id});
    }
    for (int row = 1; row < height; ++row)
        std::copy_n(line, width, reinterpret_cast<QRgb*>(m_strip.scanLine(row)));
    m_strip.setDevicePixelRatio(m_scale);
    painter.drawImage(QPointF(area.left(), area.top()), m_strip);
    painter.setFont(m_font);
    painter.setPen(m_theme.ink);
    const double baseline = std::round(area.top() + (area.height() + m_capitals) / 2);
    for (const Text& text : m_texts) {
        const auto fits = static_cast<qsizetype>((text.width - 8) / m_letter);
        const QString& whole = name(text.name);
        painter.drawText(QPointF(area.left() + text.left + 4, baseline),
                         whole.size() <= fits ? whole : whole.left(fits - 1) + QChar(0x2026));
    }
    return m_visible.size();
}

void ActivityPainter::counter(QPainter& painter, const TimeAxis& axis, const QRect& area,
                              const TraceCounter& counter) const
{
    if (counter.time.empty())
        return;
    const double most = *std::max_element(counter.value.begin(), counter.value.end());
    const double least = std::min(0.0, *std::min_element(counter.value.begin(), counter.value.end()));
    const double span = most > least ? most - least : 1;
    const auto y = [&](double value) { return area.bottom() - (area.height() - 14) * (value - least) / span; };
    // The maximum per pixel, so that no peak is lost.
    QPainterPath path;
    const auto from = static_cast<Nanoseconds>(axis.start);
    std::size_t i = std::upper_bound(counter.time.begin(), counter.time.end(), from) - counter.time.begin();
    double value = i > 0 ? counter.value[i - 1] : least;
    path.moveTo(area.left(), area.bottom());
    for (int pixel = 0; pixel < axis.width; ++pixel) {
        const double end = axis.timeAt(axis.left + pixel + 1);
        double highest = value;
        for (; i < counter.time.size() && double(counter.time[i]) < end; ++i) {
            value = counter.value[i];
            highest = std::max(highest, value);
        }
        path.lineTo(axis.left + pixel, y(highest));
        path.lineTo(axis.left + pixel + 1, y(highest));
    }
    path.lineTo(axis.right(), area.bottom());
    painter.fillPath(path, m_theme.chartFill);
    painter.setPen(m_theme.dim);
    painter.setFont(m_font);
    painter.drawText(area.adjusted(6, 0, -6, 0), Qt::AlignRight | Qt::AlignTop, highestText(counter.name, most));
}

} // namespace pipewright
