// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/memory/memorypanel.h"

#include "gui/widgets/words.h"

#include <QMouseEvent>
#include <QPainter>
#include <QToolButton>

#include <algorithm>
#include <cmath>

namespace pipewright {

namespace {

constexpr int headerHeight = 24;
constexpr int bottom = 6;
constexpr int captionLeft = 18;
constexpr int gapOfRows = 4;
constexpr int lowestRow = 22; // a name and a peak fit
constexpr int tickDistance = 24;
constexpr int kindHeight = 15, leastKinds = 96; // pixels: a kind's line, and the least width that says what it is
constexpr float bandOpacity = 0.42f, swatchOpacity = 0.75f;

/// 1, 2 or 5 times a power of ten of the unit in which `most` is written: round numbers of KiB, MiB, GiB.
Bytes niceStep(double least, double most)
{
    double unit = 1;
    while (unit * 1024 <= most)
        unit *= 1024;
    for (double decade = unit > 1 ? 0.001 : 1; decade < 1024; decade *= 10)
        for (const double mantissa : {1.0, 2.0, 5.0})
            if (mantissa * decade * unit >= least)
                return std::llround(mantissa * decade * unit);
    return std::llround(unit * 1024);
}

} // namespace

MemoryPanel::MemoryPanel(QWidget* parent) : QWidget(parent), m_mode(new QToolButton(this))
{
    setAccessibleName(tr("Memory over time"));
    setMouseTracking(true);
    m_mode->setFocusPolicy(Qt::TabFocus);
    m_mode->setAutoRaise(true);
    m_mode->setProperty("low", true); // low enough to fit above the plots
    connect(m_mode, &QToolButton::clicked, this, [this] { setAll(!m_all); });
    refreshButton();
}

void MemoryPanel::showDesign(const MemoryContent& content)
{
    if (content.device != m_given)
        m_chosen.reset(); // another device is selected
    m_given = content.device;
    m_device = m_chosen.value_or(content.device);
    m_recorded = content.overlay != nullptr;
    m_side = content.overlay ? content.side : Side::Predicted;
    m_comparesDrag = content.comparesDrag();
    const std::size_t before = m_devices.size();
    const bool allBefore = m_shownAll;
    m_nothing = content.prediction ? QString() : tr("No prediction: the placed blocks cannot run");
    m_fitted = content.prediction && fits(content.prediction->program.devices.size());
    const bool all = m_shownAll = m_all && m_fitted && content.samples() <= mostMemorySamples;
    // With one device shown large, the other curves are not needed; they would be copied at every move of a drag.
    m_devices = memoryOfDevices(content, [&](int device) { return all || device == m_device; });
    const bool anything = std::any_of(m_devices.begin(), m_devices.end(), [](const MemoryOfDevice& device) {
        return !device.filled.empty() || !device.outlined.empty();
    });
    if (m_nothing.isEmpty() && content.pending && m_side == Side::Predicted)
        m_nothing = content.pending->why;
    if (m_nothing.isEmpty() && !anything && m_side == Side::Measured)
        m_nothing = tr("The run recorded no memory");
    if (before != m_devices.size() || allBefore != m_shownAll)
        refreshButton();
    update();
}

void MemoryPanel::setKinds(const std::optional<DeviceMemory>& memory)
{
    if (memory == m_memory)
        return;
    m_memory = memory;
    setAccessibleDescription(kindTexts().join(QStringLiteral(", ")));
    update();
}

std::vector<MemoryKind> MemoryPanel::shownKinds() const
{
    if (!m_memory || showsAll())
        return {};
    std::vector<MemoryKind> kinds = memoryKinds(Theme::of(*this), std::span(&*m_memory, 1));
    std::erase_if(kinds, [this](const MemoryKind& kind) { return (*m_memory).*kind.bytes == 0; });
    return kinds;
}

QStringList MemoryPanel::kindTexts() const
{
    QStringList texts;
    for (const MemoryKind& kind : shownKinds())
        texts.prepend(QStringLiteral("%1 %2").arg(kind.name, sizeAmong((*m_memory).*kind.bytes, m_memory->peak)));
    return texts;
}

void MemoryPanel::setAxis(const TimeAxis& axis)
{
    if (axis == m_axis)
        return;
    m_axis = axis;
    update();
}

void MemoryPanel::setReadings(const TimeReadings& readings)
{
    if (readings == m_readings)
        return;
    m_readings = readings;
    update();
}

void MemoryPanel::setAll(bool all)
{
    m_all = all;
    refreshButton();
    update();
    Q_EMIT modeChanged();
}

void MemoryPanel::refreshButton()
{
    // Names what is shown: one device where all are wanted but do not fit.
    const bool all = m_all && (m_shownAll || m_devices.empty());
    m_mode->setText(all ? tr("all devices ▾") : tr("one device ▾"));
    m_mode->setAccessibleName(all ? tr("Memory of all devices") : tr("Memory of one device"));
    m_mode->setToolTip(m_all && !all
                           ? tr("Every device gets its own row where this panel is higher")
                           : tr("Every device in its own row, or one large; a double-click on a row does the same"));
    m_mode->setFont(Theme::words(TextSize::Small));
    m_mode->adjustSize();
    m_mode->move(width() - m_mode->width() - 12, 0);
    m_mode->setVisible(m_devices.size() > 1);
}

QRectF MemoryPanel::plotArea() const
{
    return QRectF(m_axis.left, headerHeight, std::min(m_axis.width, std::max(0, width() - m_axis.left)),
                  std::max(0, height() - headerHeight - bottom));
}

bool MemoryPanel::fits(std::size_t rows) const
{
    return rows > 1 && (plotArea().height() + gapOfRows) / static_cast<double>(rows) - gapOfRows >= lowestRow;
}

bool MemoryPanel::showsAll() const
{
    return m_all && m_shownAll;
}

std::vector<int> MemoryPanel::shownDevices() const
{
    std::vector<int> devices;
    for (int d = 0; d < static_cast<int>(m_devices.size()); ++d)
        if (showsAll() || d == m_device)
            devices.push_back(d);
    return devices;
}

QRectF MemoryPanel::plotOf(int device) const
{
    const std::vector<int> shown = shownDevices();
    const auto at = std::find(shown.begin(), shown.end(), device);
    if (at == shown.end())
        return {};
    const QRectF area = plotArea();
    const double rows = static_cast<double>(shown.size()), row = static_cast<double>(at - shown.begin());
    const double height = std::floor((area.height() - (rows - 1) * gapOfRows) / rows);
    return QRectF(area.left(), area.top() + row * (height + gapOfRows), area.width(), height);
}

double MemoryPanel::top() const
{
    std::vector<const MemoryOfDevice*> shown;
    for (const int device : shownDevices())
        shown.push_back(&m_devices[device]);
    return topOfPlots(shown);
}

double MemoryPanel::yOf(double bytes) const
{
    return MemoryCurve(m_axis, plotOf(m_device), top()).yOf(bytes);
}

std::vector<Bytes> MemoryPanel::axisTicks() const
{
    const std::vector<int> shown = shownDevices();
    if (shown.empty())
        return {};
    const double height = plotOf(shown.front()).height(), most = top();
    const Bytes step = niceStep(std::max(1.0, most * tickDistance / std::max(1.0, height)), most);
    std::vector<Bytes> ticks;
    for (Bytes value = 0; static_cast<double>(value) <= most; value += step)
        ticks.push_back(value);
    return ticks;
}

int MemoryPanel::deviceAt(QPointF position) const
{
    for (const int device : shownDevices())
        if (plotOf(device).contains(position))
            return device;
    return -1;
}

QString MemoryPanel::valueAt(QPointF position) const
{
    const int index = deviceAt(position);
    if (index < 0)
        return {};
    const MemoryOfDevice& device = m_devices[index];
    if (m_side == Side::Predicted && device.filled.empty())
        return {};                                                     // the memory of the members is not known
    const double time = m_axis.timeAt(std::floor(position.x()) + 0.5); // the middle of the pixel, as in the lanes
    const auto bytes = [time](const StepCurve& curve) {
        return curve.empty() ? std::nullopt : std::optional(curve.valueAt(time));
    };
    const std::optional<Bytes> filled = bytes(device.filled), outlined = bytes(device.outlined);
    const QString at = durationText(std::max<Nanoseconds>(0, std::llround(time)));
    if (m_comparesDrag && m_side == Side::Predicted)
        return tr("%1 at %2: %3 if dropped here, now %4")
            .arg(device.name, at, filled ? sizeBeside(*filled, outlined.value_or(*filled)) : QString(),
                 outlined ? sizeBeside(*outlined, filled.value_or(*outlined)) : QString());
    const QString value = sidedSizes(m_side, m_side == Side::Both ? outlined : filled, filled);
    return tr("%1 at %2: %3, %4").arg(device.name, at, value, sideName(m_side));
}

QString MemoryPanel::peakText(int index, bool both) const
{
    const MemoryOfDevice& device = m_devices[index];
    const auto bytes = [](const StepCurve& curve) {
        return curve.empty() ? std::nullopt : std::optional(curve.peak().bytes);
    };
    if (m_side == Side::Both && both)
        return sidedSizes(m_side, bytes(device.outlined), bytes(device.filled));
    return device.filled.empty() ? QString() : sizeText(device.filled.peak().bytes);
}

void MemoryPanel::paintEvent(QPaintEvent*)
{
    QPainter painter(this);
    const Theme& theme = Theme::of(*this);
    m_rectangles = 0;
    paintTicks(painter, m_readings, m_axis, QRectF(m_axis.left, 0, m_axis.width, height()), theme);
    const double most = top();
    for (const int device : shownDevices())
        m_rectangles +=
            MemoryCurve(m_axis, plotOf(device), most).paint(painter, m_devices[device], theme, devicePixelRatioF());
    for (const int device : shownDevices()) {
        paintBands(painter, m_devices[device], plotOf(device));
        paintRow(painter, device, plotOf(device));
    }
    if (!m_nothing.isEmpty()) {
        painter.setFont(Theme::words(TextSize::Small));
        painter.setPen(theme.dim);
        painter.drawText(plotArea(), Qt::AlignCenter, m_nothing);
    }
    paintHeader(painter);
    paintReadings(painter, m_readings, m_axis, QRectF(m_axis.left, 0, m_axis.width, height()), theme);
    if (m_cursor && !valueAt(*m_cursor).isEmpty())
        painter.fillRect(QRectF(std::floor(m_cursor->x()), plotArea().top(), 1, plotArea().height()), theme.dim);
}

QString MemoryPanel::peakWords(int index) const
{
    return tr("peak %1").arg(peakText(index, true));
}

QRectF MemoryPanel::peakPlace(int index) const
{
    const QRectF area = plotOf(index);
    const QFontMetricsF metrics(Theme::numbers(TextSize::Small));
    QRectF box(area.left() + 5, area.top() + 2, metrics.horizontalAdvance(peakWords(index)) + 8, 14);
    // Beside the limit's line, the text could be read as the limit's label.
    const Bytes limit = m_devices[index].limit;
    const double line = MemoryCurve(m_axis, area, top()).yOf(static_cast<double>(limit));
    if (limit > 0 && box.top() < line + 2 && box.bottom() > line - 2 && line + 3 + box.height() <= area.bottom())
        box.moveTop(line + 3);
    return box;
}

void MemoryPanel::paintRow(QPainter& painter, int index, const QRectF& area) const
{
    const Theme& theme = Theme::of(*this);
    const MemoryOfDevice& device = m_devices[index];
    const MemoryCurve plot(m_axis, area, top());
    painter.setPen(theme.hairline);
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(area.adjusted(0, 0, -1, -1));
    const bool rows = showsAll();
    painter.setFont(Theme::words(TextSize::Small));
    if (rows) {
        painter.setPen(index == m_device ? theme.text : theme.dim);
        painter.drawText(QRectF(captionLeft, area.top(), m_axis.left - captionLeft, 15),
                         Qt::AlignLeft | Qt::AlignVCenter, device.name);
    }
    // The scale, as far as its numbers leave room for the name.
    painter.setFont(Theme::numbers(TextSize::Small));
    painter.setPen(theme.dim);
    const QFontMetricsF metrics(painter.font());
    const std::vector<Bytes> ticks = axisTicks();
    for (const Bytes tick : ticks) {
        const double y = plot.yOf(static_cast<double>(tick));
        if (rows && tick != ticks.back())
            continue;
        if (tick == 0)
            continue;
        painter.fillRect(QRectF(area.left() - 4, std::round(y), 4, 1), theme.dim);
        painter.drawText(QRectF(captionLeft, std::clamp(y - 7, area.top() - 2, area.bottom() - 13),
                                m_axis.left - captionLeft - 7, 14),
                         Qt::AlignRight | Qt::AlignVCenter, sizeAmong(tick, static_cast<Bytes>(top())));
    }
    const bool over = device.limit > 0 && device.filled.peak().bytes > device.limit;
    if (rows && !device.filled.empty()) {
        // On a background of its own, because curves pass behind it.
        const QRectF box = peakPlace(index);
        QColor ground = theme.background;
        ground.setAlphaF(0.75f);
        painter.fillRect(box, ground);
        painter.setPen(over ? theme.bad : theme.text);
        painter.drawText(box, Qt::AlignCenter, peakWords(index));
    }
    if (!rows && paintKinds(painter, area))
        return;
    if (!rows && device.persistent > 0 && !device.filled.empty()) {
        const double y = plot.yOf(static_cast<double>(device.persistent));
        const QRectF ground(area.left() + 10, y, area.width() - 20, area.bottom() - y);
        painter.setFont(Theme::words(TextSize::Small));
        painter.setPen(theme.isDark ? theme.text : theme.dim);
        if (ground.height() > 16)
            painter.drawText(
                ground, Qt::AlignLeft | Qt::AlignVCenter,
                (m_side == Side::Predicted ? tr("weights + optimizer %1") : tr("weights + optimizer %1, predicted"))
                    .arg(sizeText(device.persistent)));
    }
}

/// What the device holds all the time, in bands of its kinds; what comes and goes is the curve above them.
void MemoryPanel::paintBands(QPainter& painter, const MemoryOfDevice& device, const QRectF& area) const
{
    const MemoryCurve plot(m_axis, area, top());
    // Older versions of weights, and gradients that are still to be shared out, come and go: then it is one band.
    if (device.filled.empty() || !m_memory
        || m_memory->weights + m_memory->gradients + m_memory->optimizer + m_memory->framework != device.persistent)
        return;
    const double start = std::clamp(m_axis.xOf(0), area.left(), area.right()); // of the step
    Bytes below = 0;
    for (const MemoryKind& kind : shownKinds()) {
        const Bytes above = below + (*m_memory).*kind.bytes;
        if (above > device.persistent)
            return;
        const double upper = std::round(plot.yOf(double(above))), lower = std::round(plot.yOf(double(below)));
        QColor color = kind.color;
        color.setAlphaF(bandOpacity);
        painter.fillRect(QRectF(start, upper, area.right() - start, lower - upper), color);
        below = above;
    }
}

/// The kinds at the right of the plot, where the lanes have their idle time; as many as there is room for, the rest as
/// one sum. False where there is no room for any, or nothing to say.
bool MemoryPanel::paintKinds(QPainter& painter, const QRectF& area) const
{
    const Theme& theme = Theme::of(*this);
    const QRectF room(area.right() + 14, area.top(), width() - area.right() - 22, area.height());
    std::vector<MemoryKind> kinds = shownKinds();
    std::reverse(kinds.begin(), kinds.end());
    const auto rows = static_cast<std::size_t>(room.height() / kindHeight);
    if (room.width() < leastKinds || rows < 1 || kinds.empty())
        return false;
    const bool all = kinds.size() < rows; // below their heading
    const std::size_t named = all ? kinds.size() : rows > 2 ? rows - 2 : 0;
    std::stable_sort(
        kinds.begin(), all ? kinds.begin() : kinds.end(),
        [this](const MemoryKind& a, const MemoryKind& b) { return (*m_memory).*a.bytes > (*m_memory).*b.bytes; });
    double y = room.top();
    const auto line = [&](const QString& name, const QString& value, const QColor* color) {
        const QRectF row(room.left(), y, room.width(), kindHeight);
        if (color) {
            QColor swatch = *color;
            swatch.setAlphaF(swatchOpacity);
            painter.fillRect(QRectF(row.left(), row.top() + 4, 7, 7), swatch);
        }
        painter.setPen(theme.dim);
        painter.setFont(Theme::words(TextSize::Small));
        const double number = QFontMetricsF(Theme::numbers(TextSize::Small)).horizontalAdvance(value);
        painter.drawText(
            row.adjusted(color ? 12 : 0, 0, -number - 4, 0), Qt::AlignLeft | Qt::AlignVCenter,
            painter.fontMetrics().elidedText(name, Qt::ElideRight, int(row.width() - number - (color ? 16 : 4))));
        painter.setPen(theme.text);
        painter.setFont(Theme::numbers(TextSize::Small));
        painter.drawText(row, Qt::AlignRight | Qt::AlignVCenter, value);
        y += kindHeight;
    };
    // In one unit, which the heading says, so that the names have room.
    const Bytes largest = m_memory->peak;
    const auto number = [largest](Bytes bytes) { return sizeText(bytes, largest).section(QChar(0x00A0), 0, 0); };
    if (rows > 1)
        line(m_side == Side::Predicted ? tr("at the peak") : tr("predicted peak"),
             sizeText(largest, largest).section(QChar(0x00A0), 1), nullptr);
    Bytes rest = 0;
    for (std::size_t i = 0; i < kinds.size(); ++i) {
        const Bytes bytes = (*m_memory).*kinds[i].bytes;
        if (i < named)
            line(kinds[i].name, number(bytes), &kinds[i].color);
        else
            rest += bytes;
    }
    if (rest > 0)
        line(named > 0 ? tr("others") : tr("in all"), rows > 1 ? number(rest) : sizeText(rest, largest), nullptr);
    return true;
}

void MemoryPanel::paintHeader(QPainter& painter) const
{
    const Theme& theme = Theme::of(*this);
    QStringList words;
    if (const std::vector<int> shown = shownDevices(); shown.size() == 1) {
        const MemoryOfDevice& device = m_devices[shown.front()];
        words << device.name;
        if (!device.filled.empty())
            words << tr("peak %1 at %2").arg(peakText(shown.front(), true), durationText(device.filled.peak().time));
    }
    if (const QString value = m_cursor ? valueAt(*m_cursor) : QString(); !value.isEmpty())
        words = QStringList{value};
    else if (m_recorded)
        words << sideName(m_side);
    Bytes limit = 0, peak = 0;
    for (const MemoryOfDevice& device : m_devices) {
        limit = std::max(limit, device.limit);
        peak = std::max({peak, device.filled.empty() ? 0 : device.filled.peak().bytes,
                         device.outlined.empty() ? 0 : device.outlined.peak().bytes});
    }
    if (limit > 0)
        words << tr("limit %1").arg(peak > 0 ? sizeBeside(limit, peak) : sizeText(limit));
    painter.setFont(Theme::words(TextSize::Small));
    painter.setPen(m_cursor ? theme.text : theme.dim);
    painter.drawText(QRectF(m_axis.left, 4, std::max(0, m_mode->x() - m_axis.left - 8), 16),
                     Qt::AlignLeft | Qt::AlignVCenter, words.join(QStringLiteral("  ·  ")));
}

void MemoryPanel::resizeEvent(QResizeEvent* event)
{
    QWidget::resizeEvent(event);
    refreshButton();
    if (m_all && fits(m_devices.size()) != m_fitted) {
        m_fitted = !m_fitted;
        Q_EMIT modeChanged();
    }
}

void MemoryPanel::mouseMoveEvent(QMouseEvent* event)
{
    const QPointF position = event->position();
    m_cursor = position;
    const QString value = valueAt(position);
    Q_EMIT pointedAt(value.isEmpty() ? std::nullopt : std::optional(m_axis.timeAt(std::floor(position.x()) + 0.5)));
    Q_EMIT hovered(value);
    update();
}

void MemoryPanel::mouseDoubleClickEvent(QMouseEvent* event)
{
    const int device = deviceAt(event->position());
    if (device >= 0 && showsAll())
        m_chosen = m_device = device;
    setAll(!m_all);
}

void MemoryPanel::leaveEvent(QEvent* event)
{
    QWidget::leaveEvent(event);
    m_cursor.reset();
    Q_EMIT pointedAt(std::nullopt);
    Q_EMIT hovered({});
    update();
}

} // namespace pipewright

#include "moc_memorypanel.cpp"
