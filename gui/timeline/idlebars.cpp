// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/timeline/idlebars.h"

#include "gui/widgets/words.h"

#include <QCoreApplication>
#include <QPainter>

#include <algorithm>
#include <array>
#include <cmath>

namespace pipewright {
namespace {

constexpr double usualScale = 0.5;
constexpr double barHeight = 14, textHeight = 15, leastForText = 32;

QString idleWords(const char* text)
{
    return QCoreApplication::translate("TimelineView", text);
}

constexpr std::size_t mostCauses = 7;

/// The parts of a device's predicted idle time, in the order of the causes.
std::array<Nanoseconds, mostCauses> partsOf(const IdleCauses& idle)
{
    return {idle.warmUp + idle.coolDown,
            idle.waitGradient,
            idle.waitActivation,
            idle.transfer,
            idle.copies,
            idle.host,
            idle.other};
}

std::array<Nanoseconds, mostCauses> partsOf(const DeviceExplanation& device)
{
    return {device.warmUp + device.coolDown,   device.lateData, device.transfer, device.hostGap, device.memoryWait,
            device.pinned + device.notRecorded};
}

double idleShare(Nanoseconds part, Nanoseconds whole)
{
    return static_cast<double>(part) / std::max<double>(1, static_cast<double>(whole));
}

} // namespace

void IdleBars::show(const Design& design, const Prediction* prediction, const Document::Overlay* overlay, Side side)
{
    m_side = overlay ? side : Side::Predicted;
    m_predicted.clear();
    m_measured.clear();
    m_parts.assign(mostCauses, {});
    m_scale = usualScale;
    if (!prediction)
        return;
    const Metrics& metrics = prediction->metrics;
    for (int d = 0; d < std::min<int>(design.schedule.devices(), static_cast<int>(metrics.devices.size())); ++d)
        m_predicted.push_back(idleShare(metrics.devices[d].idle, metrics.makespan));
    const auto add = [this](const std::array<Nanoseconds, mostCauses>& parts, Nanoseconds whole) {
        double all = 0;
        for (std::size_t i = 0; i < mostCauses; ++i) {
            m_parts[i].push_back(idleShare(parts[i], whole));
            all += m_parts[i].back();
        }
        return all;
    };
    if (m_side == Side::Predicted)
        for (const IdleCauses& idle : metrics.idleCauses)
            (void)add(partsOf(idle), metrics.makespan);
    else
        for (const DeviceExplanation& device : overlay->explanation.devices)
            m_measured.push_back(add(partsOf(device), overlay->explanation.measured));
    for (const std::vector<double>& shares : {m_predicted, m_measured})
        for (const double share : shares)
            if (share > usualScale)
                m_scale = 1;
}

QString IdleBars::percentLabel(int device) const
{
    if (device >= std::ssize(m_predicted))
        return {};
    return sidedText(m_side, percentText(m_predicted[device]),
                     device < std::ssize(m_measured) ? percentText(m_measured[device]) : QString());
}

std::vector<IdleBars::Cause> IdleBars::causes(const Theme& theme) const
{
    const auto tone = [&theme](float alpha) {
        QColor color = theme.dim;
        color.setAlphaF(alpha);
        return color;
    };
    // A prediction knows which input a block waited for; a recording only knows when the input arrived.
    std::vector<Cause> causes;
    if (m_side == Side::Predicted)
        causes = {{idleWords("warm-up and cool-down"), idleWords("warm-up"), tone(0.35f), Qt::SolidPattern, {}},
                  {idleWords("waits for gradient"), idleWords("gradients"), tone(0.9f), Qt::SolidPattern, {}},
                  {idleWords("waits for activation"), idleWords("activations"), tone(0.6f), Qt::BDiagPattern, {}},
                  {idleWords("transfer"), idleWords("transfers"), tone(0.9f), Qt::HorPattern, {}},
                  {idleWords("gathers and sums"), idleWords("gathers"), tone(0.6f), Qt::VerPattern, {}},
                  {idleWords("host"), idleWords("host"), tone(0.9f), Qt::Dense6Pattern, {}},
                  {idleWords("pins and reductions"), idleWords("pins"), tone(0.6f), Qt::DiagCrossPattern, {}}};
    else
        causes = {{idleWords("warm-up and cool-down"), idleWords("warm-up"), tone(0.35f), Qt::SolidPattern, {}},
                  {idleWords("late data"), idleWords("late data"), tone(0.9f), Qt::SolidPattern, {}},
                  {idleWords("transfer"), idleWords("transfers"), tone(0.9f), Qt::HorPattern, {}},
                  {idleWords("host"), idleWords("host"), tone(0.9f), Qt::Dense6Pattern, {}},
                  {idleWords("waits for memory"), idleWords("memory"), tone(0.6f), Qt::DiagCrossPattern, {}},
                  {idleWords("pinned or not recorded"), idleWords("pinned"), tone(0.35f), Qt::CrossPattern, {}}};
    for (std::size_t i = 0; i < causes.size() && i < m_parts.size(); ++i)
        causes[i].shares = m_parts[i];
    return causes;
}

QString IdleBars::mainCause(int device) const
{
    if (m_side == Side::Both)
        return {};
    const std::vector<Cause> all = causes(Theme::light());
    const auto shareIn = [device](const Cause& cause) {
        return device < std::ssize(cause.shares) ? cause.shares[device] : 0;
    };
    const auto most = std::max_element(all.begin(), all.end(),
                                       [&](const Cause& a, const Cause& b) { return shareIn(a) < shareIn(b); });
    return most != all.end() && shareIn(*most) > 0 ? most->brief : QString();
}

void IdleBars::paint(QPainter& painter, int device, const QRectF& area, const Theme& theme, double scale) const
{
    if (device >= std::ssize(m_predicted) || area.isEmpty())
        return;
    const auto whole = [scale](double value) { return std::round(value * scale) / scale; };
    const bool words = area.height() >= leastForText;
    const double height = words ? barHeight : std::max(2.0, std::min(barHeight, area.height() - 2));
    const double top = whole(words ? area.center().y() - barHeight - 1 : area.center().y() - height / 2);
    const double beside = words ? 0 : 46; // a percentage in one line with its bar
    const double room = std::max(8.0, area.width() - beside);
    // The running sum is rounded, not each part, to avoid gaps.
    double share = 0;
    for (const Cause& cause : causes(theme)) {
        if (device >= std::ssize(cause.shares))
            continue;
        const double from = whole(xOf(share, area.left(), room));
        share += cause.shares[device];
        const double to = whole(xOf(share, area.left(), room));
        if (to <= from)
            continue;
        const QRectF part(from, top, to - from, height);
        painter.fillRect(part, cause.color);
        if (cause.texture != Qt::SolidPattern && height >= 6)
            painter.fillRect(part, QBrush(theme.texture, cause.texture));
    }
    if (m_side == Side::Both) { // the predicted idle time, outlined around the measured
        QPen pen(theme.text, 1);
        pen.setDashPattern({3, 2});
        painter.setPen(pen);
        painter.setBrush(Qt::NoBrush);
        const double wide = whole(xOf(m_predicted[device], 0, room));
        painter.drawRect(QRectF(area.left() + 0.5, top - 1.5, std::max(0.0, wide - 1), height + 2));
    }
    if (!words && area.height() < 13)
        return;
    painter.setFont(Theme::numbers(TextSize::Small));
    painter.setPen(words ? theme.text : theme.dim);
    QString percent = percentLabel(device);
    if (m_side == Side::Both && device < std::ssize(m_measured)
        && painter.fontMetrics().horizontalAdvance(percent) > (words ? area.width() + 8 : beside))
        percent = QStringLiteral("→ %1").arg(percentText(m_measured[device])); // the prediction is outlined above
    const QRectF line = words ? QRectF(area.left(), top + height + 3, area.width() + 8, textHeight)
                              : QRectF(area.right() - beside + 4, area.center().y() - 8, beside, 16);
    painter.drawText(line, Qt::AlignLeft | Qt::AlignVCenter, percent);
    const double used = painter.fontMetrics().horizontalAdvance(percent) + 7;
    painter.setFont(Theme::words(TextSize::Small));
    painter.setPen(theme.dim);
    if (const QString cause = mainCause(device);
        words && used + painter.fontMetrics().horizontalAdvance(cause) <= line.width())
        painter.drawText(line.adjusted(used, 0, 0, 0), Qt::AlignLeft | Qt::AlignVCenter, cause);
}

} // namespace pipewright
