// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/designer/legend.h"

#include "core/predict/predict.h"
#include "gui/timeline/blocksprites.h"
#include "gui/timeline/idlebars.h"
#include "gui/timeline/timelineview.h"
#include "gui/widgets/labels.h"
#include "gui/widgets/themechange.h"

#include <QHelpEvent>
#include <QPainter>
#include <QToolButton>
#include <QToolTip>

#include <algorithm>

namespace pipewright {

namespace {

constexpr int legendHeight = 26, secondRow = 20;
constexpr int legendLeft = 18; // as the lanes' names
constexpr int signWidth = 18, signHeight = 16, signToText = 6, entryGap = 14, narrowGap = 9;
constexpr int closeWidth = 22;

QString tipOf(Op op)
{
    switch (op) {
    case Op::F: return Legend::tr("F: the forward pass of one microbatch through one stage");
    case Op::I: return Legend::tr("I: the half of the backward pass that the stage before waits for");
    case Op::W: return Legend::tr("W: the half of the backward pass that only the update waits for");
    case Op::B: return Legend::tr("B: both halves of the backward pass in one block");
    case Op::U: return Legend::tr("U: the optimizer changes the stage's weights");
    case Op::R:
        return Legend::tr(
            "R: activations that F did not keep are made again for the backward pass, in a block of their own or at "
            "the front of it");
    }
    return {};
}

} // namespace

Legend::Legend(const TimelineView& timeline, QWidget* parent)
    : QWidget(parent), m_timeline(timeline), m_close(new QToolButton(this))
{
    onThemeChange(this, [this] {
        addCauses(); // their colours belong to the previous theme
        arrange();
    });
    setAccessibleName(tr("Legend"));
    setFixedHeight(legendHeight);
    m_close->setText(QStringLiteral("×"));
    m_close->setAccessibleName(tr("Hide the legend"));
    m_close->setToolTip(tr("Hide the legend; the View menu shows it again"));
    m_close->setProperty("quiet", true);
    m_close->setFocusPolicy(Qt::TabFocus);
    connect(m_close, &QToolButton::clicked, this, &Legend::closed);
}

QSize Legend::sizeHint() const
{
    return {400, legendHeight};
}

void Legend::showDesign(const Design& design, const Prediction* prediction, bool overlaid)
{
    std::array<bool, opCount> present{};
    for (const std::vector<Block>& lane : design.schedule.order)
        for (const Block& block : lane)
            present[indexOf(block.op)] = true;
    // The front of a backward that makes activations again looks like an R block.
    if (std::any_of(design.schedule.recompute.begin(), design.schedule.recompute.end(),
                    [](Recompute recompute) { return recompute.insideBackward(); }))
        present[indexOf(Op::R)] = true;
    if (prediction)
        present[indexOf(Op::U)] = present[indexOf(Op::U)]
                                  || std::any_of(prediction->program.tasks.begin(), prediction->program.tasks.end(),
                                                 [](const Task& task) { return isUpdate(task.kind); });
    m_entries.clear();
    // Ordered by how early a user meets them; the entries at the end may not fit.
    const auto addOperation = [&](Op op) {
        if (!present[indexOf(op)])
            return;
        const QString name = QString::fromUtf8(describe(op));
        m_entries.push_back({Sign::Operation, name, tipOf(op), op});
        m_entries.back().brief = QString(name).replace(QLatin1String("gradient"), tr("grad."));
    };
    for (const Op op : allOps)
        if (op != Op::U)
            addOperation(op);
    m_entries.push_back({Sign::Idle, tr("idle"), {}});
    m_entries.push_back({Sign::Transfer, tr("transfer"), tr("A value on its way to another device")});
    if (prediction)
        addGradientSums(*prediction);
    if (overlaid) {
        m_entries.push_back(
            {Sign::Predicted, tr("predicted"),
             tr("The dashed outline is where the prediction has the block; the filled one was measured")});
        m_entries.push_back(
            {Sign::Late, tr("late"), tr("A red foot: slower than predicted by more than it varies from step to step")});
    }
    addOperation(Op::U);
    addCauses();
    arrange();
}

void Legend::addGradientSums(const Prediction& prediction)
{
    const std::vector<Task>& tasks = prediction.program.tasks;
    for (std::size_t t = 0; t < tasks.size(); ++t)
        if (isReduction(tasks[t].kind) && prediction.timeline.end[t] > prediction.timeline.start[t]) {
            m_entries.push_back({Sign::Sum, tr("gradient sum"),
                                 tr("Two devices exchange a stage's gradients and add them up; they stand where the "
                                    "step has time for them, and follow from the design")});
            return;
        }
}

void Legend::addCauses()
{
    std::erase_if(m_entries, [](const Entry& entry) { return entry.sign == Sign::Cause; });
    std::vector<Entry> causes;
    QStringList names;
    for (const IdleBars::Cause& cause : m_timeline.idle().causes(Theme::of(*this))) {
        if (std::all_of(cause.shares.begin(), cause.shares.end(), [](double share) { return share == 0; }))
            continue;
        names << cause.name;
        causes.push_back({Sign::Cause,
                          cause.name,
                          tr("A cause of idle time, as in the bars beside the lanes"),
                          Op::F,
                          cause.color,
                          {},
                          {},
                          cause.texture});
    }
    const QString why = names.isEmpty() ? QString() : tr("Causes: %1. ").arg(names.join(QStringLiteral(", ")));
    for (Entry& entry : m_entries)
        if (entry.sign == Sign::Idle)
            entry.tip = tr("The device computes nothing. %1Click it to see which block it waits for").arg(why);
    m_entries.insert(m_entries.end(), causes.begin(), causes.end());
}

QStringList Legend::texts() const
{
    QStringList texts;
    for (const Entry& entry : m_entries)
        if (!entry.place.isNull())
            texts << entry.text;
    return texts;
}

bool Legend::place(bool briefly, int rows)
{
    const QFontMetrics metrics(Theme::words(TextSize::Small));
    const int right = width() - closeWidth - 12, gap = briefly ? narrowGap : entryGap;
    int x = legendLeft, row = 0, causes = 0;
    bool full = false, all = true;
    m_briefly = briefly;
    for (Entry& entry : m_entries) {
        const QString& words = briefly && !entry.brief.isEmpty() ? entry.brief : entry.text;
        const int wide = signWidth + signToText + metrics.horizontalAdvance(words);
        if (x + wide > right && row + 1 < rows) {
            ++row;
            x = legendLeft;
        }
        full = full || x + wide > right;
        entry.place = full ? QRect() : QRect(x, row * secondRow + (legendHeight - signHeight) / 2, wide, signHeight);
        x += wide + gap;
        causes += entry.sign == Sign::Cause && full;
        all = all && (entry.sign == Sign::Cause || !full);
    }
    if (causes > 0) // all of them or none
        for (Entry& entry : m_entries)
            if (entry.sign == Sign::Cause)
                entry.place = {};
    return all;
}

void Legend::arrange()
{
    const bool inOneRow = place(false, 1) || place(true, 1);
    if (!inOneRow)
        place(false, 2);
    setFixedHeight(inOneRow ? legendHeight : legendHeight + secondRow);
    m_close->setGeometry(width() - closeWidth - 6, (legendHeight - 20) / 2, closeWidth, 20);
    update();
}

void Legend::paintSign(QPainter& painter, const Entry& entry) const
{
    const Theme& theme = Theme::of(*this);
    const QRect sign(entry.place.topLeft(), QSize(signWidth, signHeight));
    switch (entry.sign) {
    case Sign::Operation: {
        BlockSprites sprites(theme, devicePixelRatioF());
        painter.drawPixmap(sign.topLeft(), sprites.block(entry.op, 0, sign.size() * devicePixelRatioF()));
        painter.setPen(theme.ink);
        painter.setFont(Theme::words(TextSize::Small, QFont::Bold));
        painter.drawText(sign, Qt::AlignCenter, QString(QLatin1Char(letter(entry.op))));
        return;
    }
    case Sign::Transfer:
        painter.setPen(theme.text);
        painter.setFont(Theme::words(TextSize::Normal));
        painter.drawText(sign, Qt::AlignCenter, QStringLiteral("→"));
        return;
    case Sign::Sum:
        painter.setPen(QPen(theme.dim, 1));
        painter.setBrush(theme.control);
        painter.drawRect(QRectF(sign).adjusted(0.5, 0.5, -0.5, -0.5));
        painter.setPen(theme.text);
        painter.setFont(Theme::words(TextSize::Small, QFont::Bold));
        painter.drawText(sign, Qt::AlignCenter, QStringLiteral("Σ"));
        return;
    case Sign::Idle: painter.drawTiledPixmap(sign, BlockSprites(theme, devicePixelRatioF()).idleTexture()); return;
    case Sign::Cause:
        painter.setPen(Qt::NoPen);
        painter.setBrush(entry.color);
        painter.drawRoundedRect(QRectF(sign).adjusted(3, 2, -3, -2), 2, 2);
        if (entry.texture != Qt::SolidPattern) {
            painter.setBrush(QBrush(theme.texture, entry.texture));
            painter.drawRoundedRect(QRectF(sign).adjusted(3, 2, -3, -2), 2, 2);
        }
        return;
    case Sign::Predicted:
        painter.setPen(QPen(theme.dim, 1, Qt::DashLine));
        painter.setBrush(Qt::NoBrush);
        painter.drawRoundedRect(QRectF(sign).adjusted(0.5, 0.5, -0.5, -0.5), Theme::blockRadius, Theme::blockRadius);
        return;
    case Sign::Late:
        painter.setPen(Qt::NoPen);
        painter.setBrush(theme.control);
        painter.drawRoundedRect(QRectF(sign), Theme::blockRadius, Theme::blockRadius);
        painter.fillRect(QRect(sign.left(), sign.bottom() - 2, sign.width(), 3), theme.bad);
        return;
    }
}

void Legend::paintEvent(QPaintEvent*)
{
    const Theme& theme = Theme::of(*this);
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    for (const Entry& entry : m_entries) {
        if (entry.place.isNull())
            continue;
        paintSign(painter, entry);
        painter.setPen(theme.dim);
        painter.setFont(Theme::words(TextSize::Small));
        painter.drawText(entry.place.adjusted(signWidth + signToText, 0, 2, 0), Qt::AlignLeft | Qt::AlignVCenter,
                         m_briefly && !entry.brief.isEmpty() ? entry.brief : entry.text);
    }
}

bool Legend::event(QEvent* event)
{
    if (event->type() == QEvent::ToolTip) {
        const auto* help = static_cast<QHelpEvent*>(event);
        const auto under = std::find_if(m_entries.begin(), m_entries.end(),
                                        [&](const Entry& entry) { return entry.place.contains(help->pos()); });
        if (under == m_entries.end())
            QToolTip::hideText();
        else
            QToolTip::showText(help->globalPos(), under->tip, this, under->place);
        return true;
    }
    return QWidget::event(event);
}

void Legend::resizeEvent(QResizeEvent* event)
{
    QWidget::resizeEvent(event);
    arrange();
}

} // namespace pipewright

#include "moc_legend.cpp"
