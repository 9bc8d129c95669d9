// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/timeline/transferlanes.h"

#include "core/program/copycollectives.h"
#include "core/program/replicasums.h"
#include "core/schedule/statedgather.h"
#include "gui/timeline/lanestrip.h"
#include "gui/widgets/words.h"

#include <QCoreApplication>
#include <QPainter>

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>

namespace pipewright {
namespace {

constexpr double narrowestChip = 15; // an arrow fits
constexpr double namedChip = 34;     // "F12→3" in small letters does not, "→3" does; the name goes where it fits

constexpr std::size_t rows = 4;
constexpr std::size_t indexOf(TransferLanes::Row row)
{
    return static_cast<std::size_t>(row);
}
static_assert(indexOf(TransferLanes::Row::FromHost) + 1 == rows
              && std::tuple_size_v<decltype(TransferLanes::Chips::dense)> == rows);

QRectF chipRect(const QRectF& row, TransferLanes::Row kind, double x, double width)
{
    const double inset = kind == TransferLanes::Row::Transfers ? 2 : 1;
    return {x, row.top() + inset, width, row.height() - 2 * inset};
}

/// Some stage offloads.
bool hasHostCopies(const Design& design)
{
    const std::vector<bool>& ofStage = design.schedule.offload;
    return std::find(ofStage.begin(), ofStage.end(), true) != ofStage.end();
}

/// With update blocks there are none: then their row stays empty.
bool hasCollectives(const Design& design)
{
    return CopyCollectives::areIn(design.schedule, false, design.costs);
}

/// In PyTorch's words, as its pipeline schedules list such actions.
QString collectiveName(const Transfer& transfer)
{
    return (transfer.destination == Transfer::gathers ? QStringLiteral("%1UNSHARD") : QStringLiteral("%1REDUCE_GRAD"))
        .arg(transfer.producer.stage);
}

QString transferWords(const char* text)
{
    return QCoreApplication::translate("TimelineView", text);
}

} // namespace

const std::vector<IssuedTransfer>& TransferLanes::of(int device) const
{
    static const std::vector<IssuedTransfer> nothing;
    const Prediction* prediction = m_document.prediction();
    if (!prediction || device < 0 || device >= m_document.design().schedule.devices())
        return nothing;
    m_lists.resize(m_document.design().schedule.devices());
    std::optional<std::vector<IssuedTransfer>>& list = m_lists[device];
    if (!list) {
        list = transfersOf(prediction->program, device);
        const std::vector<IssuedTransfer> collectives = collectivesOf(prediction->program, device);
        list->insert(list->end(), collectives.begin(), collectives.end());
    }
    return *list;
}

int TransferLanes::rowsBeside(const Design& design)
{
    return int{hasCollectives(design)} + (hasHostCopies(design) ? 2 : 0);
}

TransferLanes::Row TransferLanes::rowOf(const Transfer& transfer)
{
    if (transfer.isWithCopies())
        return Row::Collectives;
    if (!transfer.isHostCopy())
        return Row::Transfers;
    return transfer.destination == Transfer::toHost ? Row::ToHost : Row::FromHost;
}

QRectF TransferLanes::rowRect(const QRectF& area, Row row) const
{
    const QRectF first = area.adjusted(0, 0, 0, -rowsBeside(m_document.design()) * LaneStrip::copyRow);
    if (row == Row::Transfers)
        return first;
    const int place = int{row != Row::Collectives && hasCollectives(m_document.design())} + int{row == Row::FromHost};
    return {area.left(), first.bottom() + place * LaneStrip::copyRow, area.width(), LaneStrip::copyRow};
}

TransferLanes::Row TransferLanes::rowAt(const QRectF& area, double y) const
{
    std::vector<Row> below; // the row of transfers, from above
    if (hasCollectives(m_document.design()))
        below.push_back(Row::Collectives);
    if (hasHostCopies(m_document.design()))
        below.insert(below.end(), {Row::ToHost, Row::FromHost});
    Row found = Row::Transfers;
    for (const Row row : below)
        found = y < rowRect(area, row).top() ? found : row;
    return found;
}

TransferLanes::Chips TransferLanes::chips(int device, const QRectF& area, const TimeAxis& axis,
                                          const Timeline& times) const
{
    Chips result;
    if (area.isNull())
        return result;
    const std::vector<IssuedTransfer>& list = of(device);
    std::array<int, rows> visible{};
    for (const IssuedTransfer& issued : list) {
        const double x = axis.xOf(static_cast<double>(times.start[issued.task]));
        visible[indexOf(rowOf(issued.transfer))] += x >= axis.left && x < axis.right();
    }
    for (std::size_t row = 0; row < rows; ++row)
        result.dense[row] = visible[row] * narrowestChip > axis.width * 0.9;
    std::array<double, rows> freeFrom;
    freeFrom.fill(-1e18);
    for (std::size_t i = 0; i < list.size(); ++i) {
        const Row row = rowOf(list[i].transfer);
        double& free = freeFrom[indexOf(row)];
        const double start = axis.xOf(static_cast<double>(times.start[list[i].task]));
        const double end = axis.xOf(static_cast<double>(times.end[list[i].task]));
        const bool dense = result.isDense(row);
        const double x = dense ? start : std::max(std::round(start), free);
        // A chip is one pixel narrower than its time, so that adjacent chips do not push each other away from their
        // times.
        const double width = dense ? std::max(1.0, end - start) : std::max(narrowestChip, std::round(end) - x - 1);
        free = x + width + 1;
        if (x + width >= axis.left && x < axis.right())
            result.shown.push_back({chipRect(rowRect(area, row), row, x, width), i});
    }
    return result;
}

std::optional<std::size_t> TransferLanes::Chips::at(QPointF position) const
{
    std::optional<std::size_t> found;
    double nearest = 2; // pixels beside a tick that still grip it
    for (const Chip& chip : shown) {
        if (position.y() < chip.rect.top() - 2 || position.y() > chip.rect.bottom() + 2)
            continue; // another row
        const double x = position.x(), away = std::max({0.0, chip.rect.left() - x, x - chip.rect.right()});
        if (away <= nearest - (found ? 0.5 : 0)) {
            found = chip.index;
            nearest = away;
        }
        if (away == 0)
            break;
    }
    return found;
}

QString TransferLanes::name(const Transfer& transfer) const
{
    if (transfer.isCollective())
        return QString::fromStdString(textOf(transfer)); // as it is stated in a file
    if (transfer.isGatherForReader())
        return QString::fromStdString(gatherName(transfer.producer)); // likewise
    if (transfer.isWithCopies())
        return collectiveName(transfer);
    if (transfer.isHostCopy())
        return (transfer.destination == Transfer::toHost ? transferWords("%1 to the host's memory")
                                                         : transferWords("%1 from the host's memory"))
            .arg(blockText(transfer.producer));
    return transferWords("%1 to %2")
        .arg(blockText(transfer.producer), deviceLabel(m_document.design(), transfer.destination));
}

QString TransferLanes::text(int device, std::size_t index, const Timeline& times) const
{
    const std::vector<IssuedTransfer>& list = of(device);
    const Prediction* prediction = m_document.prediction();
    if (!prediction || index >= list.size())
        return {};
    const IssuedTransfer& issued = list[index];
    if (issued.transfer.isWithCopies())
        return transferWords("%1, %2: %3, %4 to %5%6")
            .arg(deviceLabel(m_document.design(), device), name(issued.transfer),
                 QString::fromStdString(prediction->program.label(issued.task)), durationText(times.start[issued.task]),
                 durationText(times.end[issued.task]),
                 isStated(issued.transfer) ? transferWords(", its place is stated") : QString());
    const Bytes bytes = movedBytes(prediction->program, issued.task);
    return transferWords("%1 %2 as number %3 of %4: %5, %6 to %7%8")
        .arg(deviceLabel(m_document.design(), device),
             issued.sends ? transferWords("sends") : transferWords("receives"))
        .arg(index + 1) // collectives come behind the rest
        .arg(std::count_if(list.begin(), list.end(),
                           [](const IssuedTransfer& each) { return !each.transfer.isWithCopies(); }))
        .arg(name(issued.transfer), durationText(times.start[issued.task]), durationText(times.end[issued.task]),
             (bytes > 0 ? QStringLiteral(", ") + sizeText(bytes) : QString())
                 + (isStated(issued.transfer) ? transferWords(", its place is stated") : QString()));
}

bool TransferLanes::isStated(const Transfer& transfer) const
{
    const Schedule& schedule = m_document.design().schedule;
    if (transfer.isGatherForReader())
        return statedGather(schedule, transfer.producer) != nullptr;
    if (!m_stated) {
        m_stated.emplace();
        for (const TransferPrecedence& pair : schedule.transferOrder)
            m_stated->insert(m_stated->end(), {pair.first, pair.second});
        std::sort(m_stated->begin(), m_stated->end());
    }
    return std::binary_search(m_stated->begin(), m_stated->end(), transfer);
}

void TransferLanes::paint(QPainter& painter, int device, const QRectF& area, const TimeAxis& axis,
                          const Timeline& times, const Theme& theme, const std::optional<Transfer>& selected) const
{
    if (area.isNull())
        return;
    painter.save();
    painter.setPen(theme.hairline);
    painter.drawLine(QPointF(0, area.top()), QPointF(area.right(), area.top()));
    const Chips chips = this->chips(device, area, axis, times);
    const std::vector<IssuedTransfer>& list = of(device);
    painter.setFont(Theme::words(TextSize::Small));
    painter.setPen(theme.dim);
    const auto label = [&](Row row, const QString& text) {
        const QRectF place = rowRect(area, row);
        painter.drawText(QRectF(14, place.top(), axis.left - 18, place.height()), Qt::AlignVCenter | Qt::AlignLeft,
                         text);
    };
    const auto count = [&](Row row) {
        return std::count_if(list.begin(), list.end(),
                             [&](const IssuedTransfer& issued) { return rowOf(issued.transfer) == row; });
    };
    const auto transfers = count(Row::Transfers);
    label(Row::Transfers, transfers == 0                  ? transferWords("no transfers")
                          : chips.isDense(Row::Transfers) ? transferWords("zoom to reorder")
                                                          : transferWords("▾ %1 transfers").arg(transfers));
    if (hasCollectives(m_document.design()))
        label(Row::Collectives, transferWords("%1 with copies").arg(count(Row::Collectives)));
    if (hasHostCopies(m_document.design())) {
        label(Row::ToHost, transferWords("%1 to the host").arg(count(Row::ToHost)));
        label(Row::FromHost, transferWords("%1 back").arg(count(Row::FromHost)));
    }
    painter.setClipRect(QRectF(axis.left, area.top(), axis.width, area.height()), Qt::IntersectClip);
    painter.setFont(Theme::numbers(TextSize::Small));
    for (const Chips::Chip& chip : chips.shown) {
        const IssuedTransfer& issued = list[chip.index];
        const bool collective = issued.transfer.isWithCopies(); // coloured as in the bars of memory
        const QColor fill = collective ? theme.fill(issued.sends ? Op::W : Op::R)
                                       : theme.fill(issued.transfer.producer.op == Op::F ? Op::F : Op::I);
        const bool dense = chips.isDense(rowOf(issued.transfer));
        painter.setRenderHint(QPainter::Antialiasing, !dense);
        if (dense) {
            painter.fillRect(chip.rect, fill);
            continue;
        }
        // Received transfers are outlines and sent ones filled, so that they differ without colour too.
        painter.setPen(issued.sends ? Qt::NoPen : QPen(fill, 1));
        painter.setBrush(issued.sends ? QBrush(fill) : QBrush(Qt::NoBrush));
        painter.drawRoundedRect(chip.rect.adjusted(0.5, 0.5, -0.5, -0.5), 2, 2);
        painter.setPen(issued.sends ? theme.ink : theme.text);
        const QString name = collective ? collectiveName(issued.transfer) : blockText(issued.transfer.producer);
        const QString arrow = issued.sends ? QStringLiteral("→") : QStringLiteral("←");
        const int peer =
            issued.sends ? issued.transfer.destination : m_document.prediction()->program.tasks[issued.task].device;
        const QString other = issued.transfer.isHostCopy() ? transferWords("host") : QString::number(peer);
        const QString form = issued.sends ? QStringLiteral("%1→%2") : QStringLiteral("%1←%2");
        const QString full = collective ? name : form.arg(name).arg(other);
        const double width = painter.fontMetrics().horizontalAdvance(full);
        QString text = arrow;
        if (width + 4 <= chip.rect.width())
            text = full;
        else if (chip.rect.width() >= namedChip) // the row of a copy says already where it goes
            text = collective                     ? arrow + QString::number(issued.transfer.producer.stage)
                   : issued.transfer.isHostCopy() ? name
                                                  : arrow + other;
        painter.drawText(chip.rect, Qt::AlignCenter, text);
        if (isStated(issued.transfer))
            painter.fillRect(QRectF(chip.rect.left() + 1, chip.rect.bottom() - 2, chip.rect.width() - 2, 2),
                             theme.accent);
        if (selected == issued.transfer) {
            painter.setPen(QPen(theme.selection, 1.5));
            painter.setBrush(Qt::NoBrush);
            painter.drawRoundedRect(chip.rect.adjusted(0.75, 0.75, -0.75, -0.75), 2, 2);
        }
    }
    painter.restore();
}

} // namespace pipewright
