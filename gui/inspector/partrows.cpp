// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/inspector/partrows.h"

#include "gui/document/document.h"
#include "gui/inspector/blockchip.h"
#include "gui/widgets/theme.h"
#include "gui/widgets/words.h"

#include <QApplication>
#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>

#include <algorithm>

namespace pipewright {

namespace {

constexpr int captionHeight = 16, rowHeight = 30, gapOfRows = 6;

int rowTop(PartStream stream)
{
    return static_cast<int>(stream) * (captionHeight + rowHeight + gapOfRows) + captionHeight;
}

} // namespace

PartRows::PartRows(QWidget* parent) : QWidget(parent)
{
    setFocusPolicy(Qt::StrongFocus);
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
    setMouseTracking(true);
    setAccessibleName(tr("Parts of the pair on two streams"));
}

QSize PartRows::sizeHint() const
{
    return {240, rowTop(PartStream::Communication) + rowHeight + 2};
}

void PartRows::showPair(const Overlap& pair, PairTimes::Plan plan)
{
    if (pair != m_pair)
        m_chosen.reset();
    m_pair = pair;
    m_plan = std::move(plan);
    m_order.reset();
    m_pressed = false;
    if (m_chosen && m_chosen->index >= m_plan.parts[m_chosen->block].size())
        m_chosen.reset();
    layOut();
    m_plannedStarts = m_starts;
    describeChosen();
}

void PartRows::layOut()
{
    m_starts = {};
    m_length = lengthOf(m_plan.parts[0], m_plan.parts[1], m_order ? *m_order : m_plan.order, &m_starts);
    update();
}

void PartRows::choose(const Part& part)
{
    m_chosen = part;
    update();
    describeChosen();
    Q_EMIT changed();
}

void PartRows::describeChosen()
{
    setAccessibleDescription(m_chosen ? describe(*m_chosen) : tr("No part is chosen"));
}

QString PartRows::describe(const Part& part) const
{
    const BlockPart& what = partOf(part);
    const Nanoseconds start = m_starts[part.block][part.index];
    Nanoseconds ready = 0; // when the part's input from its own block is ready
    for (std::size_t before = part.index; before-- > 0;)
        if (const BlockPart& other = m_plan.parts[part.block][before]; other.awaited) {
            ready = m_starts[part.block][before] + other.time;
            break;
        }
    const QString text =
        tr("%1 of %2: from %3, takes %4")
            .arg(QString::fromStdString(what.name), blockText(part.block == 0 ? m_pair.first : m_pair.second),
                 durationText(start), durationText(what.time));
    const QString wait =
        start > ready ? tr("; its stream lets it wait %1").arg(durationText(start - ready)) : QString();
    return text + wait + (what.awaited ? QString() : tr("; nothing waits for it"));
}

QRect PartRows::rectOf(const Part& part) const
{
    if (m_length <= 0 || part.index >= m_starts[part.block].size())
        return {};
    const double perTime = static_cast<double>(width() - 1) / static_cast<double>(m_length);
    const auto x = [perTime](Nanoseconds time) { return static_cast<int>(static_cast<double>(time) * perTime + 0.5); };
    const Nanoseconds start = m_starts[part.block][part.index];
    const BlockPart& what = partOf(part);
    return {x(start), rowTop(what.stream), std::max(2, x(start + what.time) - x(start) - 1), rowHeight};
}

std::vector<PartRows::Part> PartRows::byStart() const
{
    std::vector<Part> parts;
    std::array<std::size_t, 2> next{};
    for (const bool second : m_order ? *m_order : m_plan.order)
        parts.push_back({second ? std::size_t{1} : 0, next[second]++});
    std::stable_sort(parts.begin(), parts.end(), [this](const Part& a, const Part& b) {
        return m_starts[a.block][a.index] < m_starts[b.block][b.index];
    });
    return parts;
}

std::optional<PartRows::Part> PartRows::partAt(const QPointF& place) const
{
    for (const Part& part : byStart())
        if (rectOf(part).adjusted(0, 0, 1, 0).contains(place.toPoint()))
            return part;
    return std::nullopt;
}

std::size_t PartRows::behindAt(const Part& part, double x) const
{
    const std::vector<BlockPart>& others = m_plan.parts[1 - part.block];
    const double time =
        x / std::max(1, width() - 1) * static_cast<double>(lengthOf(m_plan.parts[0], m_plan.parts[1], m_plan.order));
    std::optional<std::size_t> firstOnRow, behind;
    for (std::size_t i = 0; i < others.size(); ++i) {
        if (others[i].stream != partOf(part).stream)
            continue;
        if (!firstOnRow)
            firstOnRow = i;
        if (static_cast<double>(m_plannedStarts[1 - part.block][i] + others[i].time / 2) < time)
            behind = i + 1;
    }
    return behind ? *behind : firstOnRow.value_or(0);
}

/// The number of the other block's parts before this part after one step along the row; nullopt at the row's end.
std::optional<std::size_t> PartRows::neighbour(const Part& part, int direction) const
{
    std::size_t behind = 0, own = 0; // now
    for (const bool second : m_plan.order) {
        if (second == (part.block == 1) && own++ == part.index)
            break;
        behind += second != (part.block == 1);
    }
    const std::vector<BlockPart>& others = m_plan.parts[1 - part.block];
    const auto onRow = [&](std::size_t i) { return others[i].stream == partOf(part).stream; };
    if (direction > 0) {
        for (std::size_t i = behind; i < others.size(); ++i)
            if (onRow(i))
                return i + 1;
    } else {
        for (std::size_t i = behind; i-- > 0;)
            if (onRow(i))
                return i;
    }
    return std::nullopt;
}

bool PartRows::event(QEvent* event)
{
    if (event->type() == QEvent::ToolTip) {
        auto* help = static_cast<QHelpEvent*>(event);
        if (const std::optional<Part> part = partAt(help->pos()))
            QToolTip::showText(help->globalPos(), describe(*part), this);
        else
            QToolTip::hideText();
        return true;
    }
    if (event->type() == QEvent::ShortcutOverride) { // these keys act here, not as the timeline's shortcuts
        const auto* key = static_cast<QKeyEvent*>(event);
        if (key->key() == Qt::Key_Left || key->key() == Qt::Key_Right || (key->key() == Qt::Key_Escape && m_order)) {
            event->accept();
            return true;
        }
    }
    return QWidget::event(event);
}

void PartRows::paintEvent(QPaintEvent*)
{
    const Theme& theme = Theme::of(*this);
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setFont(Theme::words(TextSize::Small));
    for (const PartStream stream : {PartStream::Compute, PartStream::Communication}) {
        const int top = rowTop(stream);
        painter.setPen(theme.dim);
        painter.drawText(QRect(0, top - captionHeight, width(), captionHeight), Qt::AlignLeft | Qt::AlignVCenter,
                         stream == PartStream::Compute ? tr("compute") : tr("communication"));
        painter.setPen(Qt::NoPen);
        painter.setBrush(theme.lane);
        painter.drawRect(0, top, width(), rowHeight);
    }
    for (const Part& part : byStart()) {
        const QRectF rect = QRectF(rectOf(part)).adjusted(0, 1, 0, -1);
        const BlockPart& what = partOf(part);
        paintBlockFill(painter, rect, (part.block == 0 ? m_pair.first : m_pair.second).op, *this);
        constexpr int margin = 3, worthAName = 24, worthALetter = 8;
        const QString name = QString::fromStdString(what.name);
        painter.setPen(theme.ink);
        if (rect.width() > worthAName)
            painter.drawText(
                rect.adjusted(margin, 0, -margin, 0), Qt::AlignCenter,
                painter.fontMetrics().elidedText(name, Qt::ElideRight, static_cast<int>(rect.width()) - 2 * margin));
        else if (rect.width() > worthALetter)
            painter.drawText(rect, Qt::AlignCenter, name.left(1));
        if (m_chosen == part) {
            painter.setBrush(Qt::NoBrush);
            painter.setPen(QPen(theme.selection, hasFocus() ? 2.0 : 1.0));
            painter.drawRoundedRect(rect, Theme::blockRadius, Theme::blockRadius);
        }
    }
}

void PartRows::mousePressEvent(QMouseEvent* event)
{
    const std::optional<Part> part = partAt(event->position());
    if (event->button() != Qt::LeftButton || !part)
        return QWidget::mousePressEvent(event);
    m_pressed = true;
    m_pressedAt = event->position();
    choose(*part);
}

void PartRows::mouseMoveEvent(QMouseEvent* event)
{
    if (!m_pressed || !m_chosen) {
        setCursor(partAt(event->position()) ? Qt::OpenHandCursor : Qt::ArrowCursor);
        return;
    }
    if (!m_order && (event->position() - m_pressedAt).manhattanLength() < QApplication::startDragDistance())
        return;
    setCursor(Qt::ClosedHandCursor);
    m_order = withPartMoved(m_plan.order, m_chosen->block, m_chosen->index, behindAt(*m_chosen, event->position().x()));
    layOut();
    Q_EMIT changed();
}

void PartRows::mouseReleaseEvent(QMouseEvent*)
{
    m_pressed = false;
    const std::optional<PartSequence> wanted = m_order;
    stopDragging();
    if (wanted && *wanted != m_plan.order)
        Q_EMIT ordered(*wanted);
}

void PartRows::stopDragging()
{
    if (!m_order)
        return;
    m_order.reset();
    setCursor(Qt::ArrowCursor);
    layOut();
    Q_EMIT changed();
}

void PartRows::keyPressEvent(QKeyEvent* event)
{
    const int direction = event->key() == Qt::Key_Left ? -1 : event->key() == Qt::Key_Right ? 1 : 0;
    if (event->key() == Qt::Key_Escape && m_order) {
        m_pressed = false;
        return stopDragging();
    }
    if (direction == 0 || m_order)
        return QWidget::keyPressEvent(event);
    if (event->modifiers() & Qt::AltModifier) {
        if (const auto behind = m_chosen ? neighbour(*m_chosen, direction) : std::nullopt)
            Q_EMIT ordered(withPartMoved(m_plan.order, m_chosen->block, m_chosen->index, *behind));
        return;
    }
    const std::vector<Part> parts = byStart();
    if (parts.empty())
        return;
    const auto now = m_chosen ? std::find(parts.begin(), parts.end(), *m_chosen) : parts.end();
    if (now == parts.end())
        choose(direction > 0 ? parts.front() : parts.back());
    else if (direction > 0 ? now + 1 != parts.end() : now != parts.begin())
        choose(*(now + direction));
}

} // namespace pipewright

#include "moc_partrows.cpp"
