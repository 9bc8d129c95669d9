// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/timeline/memberlanes.h"

#include "core/sharding/machine.h"
#include "gui/widgets/words.h"

#include <QCoreApplication>
#include <QPainter>

#include <algorithm>
#include <cmath>

namespace pipewright {
namespace {

constexpr double leastForPart = 40; // pixels

QString memberWords(const char* text)
{
    return QCoreApplication::translate("TimelineView", text);
}

QString collectiveText(Collective kind)
{
    return QString::fromStdString(std::string(sharding::nameOf(kind))).replace(QLatin1Char('_'), QLatin1Char('-'));
}

} // namespace

int MemberLanes::membersOf(int device) const
{
    const std::vector<DeviceSpec>& devices = m_document.design().cluster.devices;
    if (device < 0 || device >= std::ssize(devices))
        return 0;
    const auto& group = devices[device].group;
    return group ? static_cast<int>(group->devices.size()) : 0;
}

const MemberForecast::Members* MemberLanes::members(int device) const
{
    const MemberForecast::Members* members = m_forecast.members();
    // After an edit the groups may have changed while the forecast is still that of the previous design.
    return members && device >= 0 && device < std::ssize(members->ofDevice)
                   && static_cast<int>(members->ofDevice[device].size()) == membersOf(device)
               ? members
               : nullptr;
}

QRectF MemberLanes::row(int device, const QRectF& area, int member) const
{
    const double height = area.height() / std::max(1, membersOf(device));
    return {area.left(), area.top() + member * height, area.width(), height};
}

int MemberLanes::rowAt(int device, const QRectF& area, double y) const
{
    const int count = membersOf(device);
    if (count == 0 || y < area.top() || y >= area.bottom())
        return -1;
    return std::min(count - 1, static_cast<int>((y - area.top()) / (area.height() / count)));
}

std::vector<MemberLanes::Rect> MemberLanes::rects(int device, const QRectF& area, const TimeAxis& axis) const
{
    std::vector<Rect> rects;
    const MemberForecast::Members* known = members(device);
    if (!known || area.isNull())
        return rects;
    const std::vector<MemberForecast::Member>& group = known->ofDevice[device];
    for (int m = 0; m < static_cast<int>(group.size()); ++m) {
        const std::vector<MemberForecast::Part>& parts = group[m].parts;
        const QRectF place = row(device, area, m).adjusted(0, 2, 0, -2);
        const auto from = [&](double time) { // the first part that starts then or later
            return static_cast<std::size_t>(
                std::lower_bound(parts.begin(), parts.end(), time,
                                 [](const auto& part, double t) { return static_cast<double>(part.start) < t; })
                - parts.begin());
        };
        std::size_t i = from(axis.start);
        i -= i > 0 ? 1 : 0;
        while (i < parts.size() && static_cast<double>(parts[i].start - parts[i].waited) < axis.end()) {
            const auto begin = static_cast<double>(parts[i].start);
            std::size_t next = std::max(i + 1, from(begin + axis.nsPerPixel));
            // The last part that begins in the pixel may be wide enough for its own rectangle.
            if (next > i + 1 && static_cast<double>(parts[next - 1].end - parts[next - 1].start) > axis.nsPerPixel)
                --next;
            const double left = axis.xOf(begin), right = axis.xOf(static_cast<double>(parts[next - 1].end));
            if (right > axis.left) {
                Rect& rect = rects.emplace_back();
                rect.rect = {left, place.top(), std::max(1.0, right - left), place.height()};
                if (next == i + 1 && parts[i].waited > 0) {
                    const double since = axis.xOf(static_cast<double>(parts[i].start - parts[i].waited));
                    rect.wait = {since, place.top(), left - since, place.height()};
                }
                rect.member = m;
                rect.index = i;
                rect.count = next - i;
            }
            i = next;
        }
    }
    return rects;
}

const MemberForecast::Part* MemberLanes::part(int device, const Rect& rect) const
{
    const MemberForecast::Members* known = members(device);
    return known && rect.count == 1 ? &known->ofDevice[device][rect.member].parts[rect.index] : nullptr;
}

std::vector<Transfer> MemberLanes::sentBetween(int device, double from, double to) const
{
    std::vector<Transfer> sent;
    if (const MemberForecast::Members* known = members(device))
        for (const MemberForecast::Send& send : known->sends[device])
            if (const auto start = static_cast<double>(send.start); start >= from && start <= to)
                sent.push_back(send.transfer);
    return sent;
}

std::optional<Transfer> MemberLanes::collectiveBeside(int device, const Transfer& sent, bool before) const
{
    const MemberForecast::Members* known = members(device);
    if (!known)
        return std::nullopt;
    const auto& sends = known->sends[device];
    const auto send = std::find_if(sends.begin(), sends.end(), [&](const auto& each) { return each.transfer == sent; });
    std::optional<Transfer> beside;
    if (send == sends.end())
        return beside;
    for (const MemberForecast::Part& part : known->ofDevice[device].front().parts) {
        if (!part.collective)
            continue;
        const bool isBefore = part.start < send->start;
        if (isBefore == before)
            beside = Transfer{part.block, 0, part.index};
        if (!isBefore)
            break;
    }
    return beside;
}

QString MemberLanes::text(int device, const Rect& rect) const
{
    const MemberForecast::Members* known = members(device);
    if (!known)
        return {};
    const MemberForecast::Member& member = known->ofDevice[device][rect.member];
    const QString of = memberWords("member %1").arg(rect.member);
    if (rect.count > 1)
        return memberWords("%1 parts and collectives on %2, predicted: zoom in to tell them apart")
            .arg(rect.count)
            .arg(of);
    const MemberForecast::Part& part = member.parts[rect.index];
    const QString time = durationText(part.end - part.start), block = blockText(part.block);
    if (!part.collective)
        return memberWords("Part %1 of %2 of %3 on %4: %5, predicted")
            .arg(part.index + 1)
            .arg(part.count)
            .arg(block, of, time);
    const QString waited =
        part.waited > 0
            ? memberWords(", after %1 of waiting for member %2").arg(durationText(part.waited)).arg(part.slowest)
            : QString();
    return memberWords("%1 (%2, of %3), on %4: %5%6, predicted")
        .arg(collectiveText(part.kind), QString::fromStdString(textOf({part.block, 0, part.index})))
        .arg(part.count)
        .arg(of, time, waited);
}

QString MemberLanes::rowText(int device, int member) const
{
    const MemberForecast::Members* known = members(device);
    if (!known || member < 0)
        return m_forecast.why();
    const MemberForecast::Member& one = known->ofDevice[device][member];
    QString shares;
    for (const MemberForecast::Share& share : one.shares)
        shares += memberWords("%1 of stage %2, ").arg(percentText(share.share)).arg(share.stage);
    return memberWords("Member %1 (%2): %3%4 at most; computes %5, exchanges %6, waits %7 for other members, predicted")
        .arg(member)
        .arg(one.name, shares, sizeText(one.peakBytes), durationText(one.busy), durationText(one.exchanging),
             durationText(one.waiting));
}

const Document::Overlay::Kernels* MemberLanes::recorded(int device) const
{
    const Document::Overlay* overlay = m_document.overlay();
    const Document::Overlay::Kernels* all = overlay ? overlay->kernels.get() : nullptr;
    return all && all->kind() == WorkKind::Parts && members(device) && device < std::ssize(all->of) ? all : nullptr;
}

QString MemberLanes::measuredText(int device, int member, double time) const
{
    const Document::Overlay::Kernels* all = recorded(device);
    if (!all || member < 0)
        return {};
    const int number = members(device)->first[device] + member;
    for (const TaskId task : all->of[device])
        for (const BlockKernels::Kernel& part : all->blocks[task].kernels)
            if (part.gpu == number && static_cast<double>(part.start) <= time && time < static_cast<double>(part.end))
                return memberWords("%1 of %2 on member %3: %4, measured")
                    .arg(QString::fromStdString(all->names[part.name]).replace(QLatin1Char('_'), QLatin1Char('-')),
                         QString::fromStdString(m_document.prediction()->program.label(task)))
                    .arg(member)
                    .arg(durationText(part.end - part.start));
    return {};
}

void MemberLanes::paintMeasured(QPainter& painter, int device, const QRectF& area, const TimeAxis& axis,
                                const Theme& theme) const
{
    const Document::Overlay::Kernels* all = recorded(device);
    if (!all)
        return;
    const Prediction* prediction = m_document.prediction();
    const int first = members(device)->first[device];
    std::vector<double> painted(membersOf(device), -1e18); // up to this pixel
    for (const TaskId task : all->of[device])
        for (const BlockKernels::Kernel& part : all->blocks[task].kernels) {
            const int member = part.gpu - first;
            if (member < 0 || member >= membersOf(device) || static_cast<double>(part.end) < axis.start
                || static_cast<double>(part.start) > axis.end())
                continue;
            const double left = axis.xOf(static_cast<double>(part.start)),
                         right = std::max(left + 1, axis.xOf(static_cast<double>(part.end)));
            if (right <= painted[member])
                continue;
            painted[member] = std::max(right, left + 1);
            const bool collective = !all->names[part.name].starts_with("part ");
            const QRectF whole = row(device, area, member).adjusted(0, 2, 0, -2);
            const QRectF rect(left, whole.top(), right - left, whole.height());
            painter.fillRect(collective ? rect.adjusted(0, rect.height() / 3, 0, -rect.height() / 3) : rect,
                             collective ? theme.accent : theme.fill(prediction->program.tasks[task].op));
        }
}

void MemberLanes::paint(QPainter& painter, int device, const QRectF& area, const TimeAxis& axis, const Theme& theme,
                        bool measured, bool predicted) const
{
    if (area.isNull())
        return;
    painter.save();
    painter.setPen(theme.hairline);
    painter.drawLine(QPointF(0, area.top()), QPointF(area.right(), area.top()));
    painter.setFont(Theme::words(TextSize::Small));
    const MemberForecast::Members* known = members(device);
    if (!known) {
        painter.setPen(theme.dim);
        painter.drawText(area.adjusted(axis.left + 8, 0, 0, 0), Qt::AlignVCenter | Qt::AlignLeft, m_forecast.why());
        painter.restore();
        return;
    }
    const std::vector<MemberForecast::Member>& group = known->ofDevice[device];
    Bytes largest = 0;
    for (const MemberForecast::Member& member : group)
        largest = std::max(largest, member.peakBytes);
    for (int m = 0; m < static_cast<int>(group.size()); ++m) {
        const MemberForecast::Member& member = group[m];
        const QRectF label = row(device, area, m);
        painter.setPen(theme.text);
        painter.setFont(Theme::words(TextSize::Small));
        const int percent =
            member.shares.empty() ? 0 : static_cast<int>(std::lround(member.shares.front().share * 100));
        painter.drawText(QRectF(14, label.top(), axis.left - 18, label.height()), Qt::AlignVCenter | Qt::AlignLeft,
                         QStringLiteral("%1 · %2\u00a0%").arg(m).arg(percent));
        painter.setPen(theme.dim);
        painter.drawText(QRectF(14, label.top(), axis.left - 20, label.height()), Qt::AlignVCenter | Qt::AlignRight,
                         sizeAmong(member.peakBytes, largest));
    }
    painter.setClipRect(QRectF(axis.left, area.top(), axis.width, area.height()), Qt::IntersectClip);
    if (measured)
        paintMeasured(painter, device, area, axis, theme);
    if (!predicted) {
        painter.restore();
        return;
    }
    painter.setFont(Theme::numbers(TextSize::Small));
    const QFontMetricsF metrics(painter.font());
    for (const Rect& rect : rects(device, area, axis)) {
        const MemberForecast::Part& part = group[rect.member].parts[rect.index];
        const QRectF body =
            part.collective ? rect.rect.adjusted(0, rect.rect.height() / 3, 0, -rect.rect.height() / 3) : rect.rect;
        if (measured) { // what was predicted is the outline of what was measured
            if (rect.rect.width() > 3) {
                painter.setPen(QPen(theme.dim, 1, Qt::DashLine));
                painter.setBrush(Qt::NoBrush);
                painter.drawRect(body.adjusted(0.5, 0.5, -0.5, -0.5));
            }
            continue;
        }
        if (!rect.wait.isNull() && rect.wait.width() >= 1)
            painter.fillRect(rect.wait, QBrush(theme.idle, Qt::BDiagPattern));
        const bool separate = rect.rect.width() > 3;
        painter.fillRect(separate ? body.adjusted(0, 0, -1, 0) : body,
                         part.collective ? theme.accent : theme.fill(part.block.op));
        if (rect.count == 1 && !part.collective && rect.rect.width() >= leastForPart) {
            painter.setPen(theme.ink);
            const QString name =
                part.count == 1
                    ? blockText(part.block)
                    : QStringLiteral("%1 %2/%3").arg(blockText(part.block)).arg(part.index + 1).arg(part.count);
            const QRectF text = rect.rect.adjusted(4, 0, -4, 0);
            painter.drawText(text, Qt::AlignVCenter | Qt::AlignLeft,
                             metrics.elidedText(name, Qt::ElideRight, text.width()));
        }
    }
    painter.restore();
}

} // namespace pipewright
