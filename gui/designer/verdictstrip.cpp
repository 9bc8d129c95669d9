// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/designer/verdictstrip.h"

#include "core/predict/bubblerates.h"
#include "core/predict/throughput.h"
#include "gui/widgets/layouts.h"
#include "gui/widgets/themechange.h"
#include "gui/widgets/words.h"

#include <QAction>
#include <QMenu>
#include <QTimer>
#include <QToolButton>

#include <algorithm>
#include <cmath>

namespace pipewright {

namespace {

constexpr int stripHeight = 64;
constexpr int rightWidth = 292; ///< of baseline and switch, as wide as the panel below
constexpr int wideSlot = 190;   ///< from which on values are large

/// A line for each definition: its value and what it counts.
template<class Sided>
QString bubbleTip(const Sided& sided)
{
    QString tip;
    for (const BubbleRate& rate : bubbleRates)
        tip += QStringLiteral("%1 %2 = %3\n")
                   .arg(QString::fromUtf8(rate.name),
                        sided([&rate](const Metrics& m) { return percentText(m.*rate.value); }),
                        QString::fromStdString(describe(rate)));
    return tip;
}

} // namespace

VerdictStrip::VerdictStrip(Baseline& baseline, QWidget* sides, QWidget* parent)
    : QWidget(parent), m_baseline(baseline), m_against(new QToolButton(this))
{
    onThemeChange(this, [this] {
        // Deferred, as the labels get the new style sheet after this widget.
        QTimer::singleShot(0, this, [this] {
            for (const Cell& cell : m_cells) {
                setTone(cell.value, cell.tone);
                setTone(cell.change, cell.changeTone);
            }
        });
    });
    makePanel(this);
    setFixedHeight(stripHeight);
    setAccessibleName(tr("What this schedule reaches"));
    auto* layout = makeLayout<QHBoxLayout>(this, {16, 0, 12, 0}, 12);
    const struct {
        QString name;
        int width; ///< relative: a peak of a limit is the longest text
    } slots[] = {{tr("Step"), 9}, {tr("Bubble"), 9}, {tr("Peak"), 13}, {tr("Throughput"), 12}, {tr("MFU"), 8}};
    for (int i = 0; i < verdictCount; ++i) {
        Cell& cell = m_cells[i];
        cell.slot = new QWidget(this);
        cell.slot->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred); // no text moves the others
        auto* column = makeLayout<QVBoxLayout>(cell.slot, {0, 9, 0, 9}, 2);
        cell.name = makeHeading(slots[i].name, cell.slot);
        cell.value = makeNumber(QStringLiteral("–"), TextSize::Verdict, cell.slot);
        cell.change = makeNumber({}, TextSize::Normal, cell.slot);
        auto* row = makeLayout<QHBoxLayout>(nullptr, {0, 0, 0, 0}, 8);
        row->addWidget(cell.value, 0, Qt::AlignBottom);
        row->addWidget(cell.change, 0, Qt::AlignBottom);
        row->addStretch(1);
        column->addWidget(cell.name);
        column->addLayout(row);
        layout->addWidget(cell.slot, slots[i].width);
    }
    auto* right = new QWidget(this);
    right->setFixedWidth(rightWidth);
    auto* column = makeLayout<QVBoxLayout>(right, {0, 4, 0, 4}, 3);
    auto* row = makeLayout<QHBoxLayout>(nullptr, {0, 0, 0, 0}, 8);
    row->addWidget(makeCaption(tr("against"), TextSize::Small, right));
    makeAgainst();
    row->addWidget(m_against, 1);
    column->addLayout(row);
    column->addWidget(sides);
    layout->addWidget(right);
    connect(&m_baseline, &Baseline::changed, this, &VerdictStrip::refreshChanges);
    refreshChanges();
}

void VerdictStrip::makeAgainst()
{
    m_against->setPopupMode(QToolButton::InstantPopup);
    m_against->setToolTip(tr("What the differences beside the numbers are against"));
    m_against->setAccessibleName(tr("Differences against"));
    m_against->setFixedHeight(26);
    m_against->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Fixed);
    m_against->setFocusPolicy(Qt::TabFocus);
    auto* menu = new QMenu(m_against);
    m_against->setMenu(menu);
    connect(menu, &QMenu::aboutToShow, this, [this, menu] {
        menu->clear();
        for (const auto against : {Baseline::Against::LastEdit, Baseline::Against::Saved, Baseline::Against::Pinned,
                                   Baseline::Against::Run}) {
            QAction* action = menu->addAction(m_baseline.name(against));
            action->setCheckable(true);
            action->setChecked(against == m_baseline.against());
            action->setEnabled(m_baseline.has(against));
            connect(action, &QAction::triggered, this, [this, against] { m_baseline.setAgainst(against); });
        }
        menu->addSeparator();
        menu->addAction(tr("Pin this schedule"), this, [this] { m_baseline.pin(); });
    });
}

void VerdictStrip::set(Verdict verdict, const QString& value, const QString& source, Tone tone)
{
    Cell& cell = m_cells[verdict];
    cell.full = value;
    cell.name->setToolTip(source);
    cell.value->setToolTip(source);
    cell.value->setAccessibleName(QStringLiteral("%1: %2").arg(cell.name->text(), value));
    cell.tone = tone;
    setTone(cell.value, tone);
}

void VerdictStrip::showChange(Verdict verdict, const QString& text, double difference, bool lessIsGood)
{
    Cell& cell = m_cells[verdict];
    cell.changeText = difference == 0 ? QString() : text;
    cell.change->setToolTip(m_baseline.isDragging() ? tr("If dropped here, against the present state")
                                                    : tr("Against: %1").arg(m_baseline.name(m_baseline.against())));
    cell.changeTone = (difference < 0) == lessIsGood ? Tone::Good : Tone::Bad;
    setTone(cell.change, cell.changeTone);
}

void VerdictStrip::refreshChanges()
{
    const Baseline::Changes none, changes = m_baseline.changes().value_or(none);
    const auto worthSaying = [](double share) {
        return std::abs(share) < 0.0005 ? 0 : share;
    }; // smaller values are written as 0.0
    showChange(Step, signedPercent(changes.makespan), worthSaying(changes.makespan), true);
    showChange(Bubble, signedPoints(changes.bubble), worthSaying(changes.bubble), true);
    showChange(Peak, signedSizeAmong(changes.peak, std::max(m_peak, std::abs(changes.peak))),
               static_cast<double>(changes.peak), true);
    showChange(Throughput, signedPercent(changes.throughput), worthSaying(changes.throughput), false);
    showChange(Mfu, signedPoints(changes.utilization), worthSaying(changes.utilization), false);
    m_against->setText(
        m_against->fontMetrics().elidedText(
            m_baseline.isDragging() ? tr("present state") : m_baseline.name(m_baseline.against()), Qt::ElideRight, 190)
        + QStringLiteral(" ▾"));
    fit();
}

QString VerdictStrip::caption(Verdict verdict) const
{
    return m_cells[verdict].name->text();
}

QString VerdictStrip::tip(Verdict verdict) const
{
    return m_cells[verdict].value->toolTip();
}

void VerdictStrip::showDesign(const Design& design, const Prediction* prediction, bool complete,
                              const Document::Overlay* overlay, Side side, const std::optional<PendingMemory>& pending)
{
    const QString source = tr("Source of the predicted costs: %1").arg(QString::fromStdString(design.costs.source));
    m_side = side = overlay ? side : Side::Predicted;
    const QString dash = QStringLiteral("–");
    m_cells[Peak].name->setText(tr("Peak"));
    m_peak = 0;
    if (!prediction) {
        for (const Verdict verdict : {Step, Bubble, Peak, Throughput, Mfu})
            set(verdict, dash, tr("No prediction: the placed blocks cannot run"));
        fit();
        return;
    }
    const Metrics& metrics = prediction->metrics;
    const Metrics* const recorded = overlay ? &overlay->metrics : nullptr;
    // The text of one side or of both; `write` formats the metrics of one side.
    const auto sided = [&](const auto& write) {
        return sidedText(side, write(metrics), recorded ? write(*recorded) : QString());
    };
    const Nanoseconds measured = overlay ? overlay->comparison.measuredMakespan : 0;
    const QString makespan = sidedDurations(side, metrics.makespan, overlay ? std::optional(measured) : std::nullopt);
    const QString which =
        overlay ? tr("%1; %2.").arg(sideName(side), comparedText(measured, metrics.makespan)) : tr("predicted.");
    set(Step, complete ? makespan : tr("%1 so far").arg(makespan),
        tr("Makespan: first start to last end of one step, %1\n%2").arg(which, source));
    const QString unfinished = tr("Known once every block has a place");
    set(Bubble, complete ? sided([](const Metrics& m) { return percentText(m.rateMakespan); }) : dash,
        complete ? bubbleTip(sided) + tr("All %1.\n%2").arg(sideName(side), source) : unfinished);
    showPeak(design, metrics, overlay, side, source, pending);
    // With unplaced blocks a token rate is meaningless.
    const auto tokens = [&](Nanoseconds length) {
        const double rate = complete ? tokensPerSecond(design, length) : 0;
        return rate > 0 ? rateText(rate) : QString();
    };
    const bool hasRate = !tokens(metrics.makespan).isEmpty();
    set(Throughput,
        hasRate ? tr("%1 tok/s").arg(sidedText(side, tokens(metrics.makespan), overlay ? tokens(measured) : QString()))
                : dash,
        hasRate
            ? tr("Tokens of all microbatches of one step divided by the makespan, %1.\n%2").arg(sideName(side), source)
        : complete ? tr("The design has no model, so a step has no number of tokens")
                   : unfinished);
    const auto utilization = [&](Nanoseconds length) { return complete ? modelFlopsUtilization(design, length) : 0; };
    const double shares[] = {side != Side::Measured ? utilization(metrics.makespan) : 0,
                             side != Side::Predicted ? utilization(measured) : 0};
    // More than the peak is a share of other devices' peak, and no utilization.
    const bool beyond = shares[0] > 1 || shares[1] > 1;
    const bool known = shares[0] > 0 || shares[1] > 0;
    set(Mfu,
        known && !beyond ? sidedText(side, percentText(shares[0]), overlay ? percentText(shares[1]) : QString()) : dash,
        beyond ? tr("Not shown: it would be more than 100 %, since the run, or where the costs were measured, had "
                    "faster devices than the design.\n%1")
                     .arg(source)
        : known
            ? tr("Model FLOPs utilization: the model's own arithmetic of one step, recomputation left out, as a share "
                 "of what the devices\ncould do at their peak rate in the makespan, %1.\n%2")
                  .arg(sideName(side), source)
        : complete ? tr("The design has no model, or a device without a peak rate")
                   : unfinished);
    refreshChanges(); // the peak's is in its unit
}

void VerdictStrip::showPeak(const Design& design, const Metrics& metrics, const Document::Overlay* overlay, Side side,
                            const QString& source, const std::optional<PendingMemory>& pending)
{
    // The device with the highest peak, on the side that the lanes show filled.
    int device = pending ? -1 : fullestDevice(metrics);
    std::optional<Bytes> measured;
    if (overlay && side != Side::Predicted)
        for (std::size_t d = 0; d < overlay->comparison.devices.size(); ++d)
            if (const std::optional<Bytes> peak = overlay->comparison.devices[d].measuredPeak; peak > measured) {
                measured = peak;
                device = static_cast<int>(d);
            }
    if (pending && !measured) {
        set(Peak, pending->words, pending->why);
        return;
    }
    if (device < 0 || device >= std::ssize(metrics.devices)) {
        set(Peak, QStringLiteral("–"), tr("The design has no sizes in bytes"));
        return;
    }
    m_cells[Peak].name->setText(tr("Peak · %1").arg(deviceLabel(design, device)));
    // With a recording, the peaks of groups come from the comparison, which has them from the members.
    const Bytes predicted = overlay && side != Side::Predicted && device < std::ssize(overlay->comparison.devices)
                                ? overlay->comparison.devices[device].predictedPeak
                                : metrics.devices[device].peakBytes;
    const Bytes limit = device < std::ssize(design.cluster.devices) ? design.cluster.devices[device].memory : 0;
    const Bytes shown = side == Side::Predicted ? predicted : measured.value_or(0);
    const bool known = side == Side::Predicted || measured;
    m_peak = side == Side::Both ? std::max(shown, predicted) : shown;
    const QString peak = pending && side == Side::Both              ? pairText(pending->words, sizeText(shown))
                         : limit > 0 && side != Side::Both && known ? ofWhole(shown, limit)
                                                                    : sidedSizes(side, predicted, measured);
    set(Peak, peak,
        tr("Highest memory of any device, %1: weights, optimizer state, activations and buffers.\n%2 of activations in "
           "units of one "
           "microbatch on one device, predicted.\n%3%4")
            .arg(sideName(side), multipleText(metrics.devices[device].peakActivations), source,
                 limit > 0 ? tr("\nThe device has %1").arg(sizeText(limit)) : QString()),
        limit > 0 && shown > limit ? Tone::Bad : Tone::Plain);
}

void VerdictStrip::fit()
{
    // One size for all, so that none looks more important than the others: the largest in which every value has room.
    // Of a pair, the measured value would be the one that is cut.
    const bool large = m_cells[Peak].slot->width() >= wideSlot && m_side != Side::Both;
    QFont font;
    for (const TextSize size : {TextSize::Verdict, TextSize::Title, TextSize::Normal, TextSize::Small}) {
        font = Theme::numbers(size);
        const QFontMetrics metrics(font);
        if ((size != TextSize::Verdict || large) && std::all_of(m_cells.begin(), m_cells.end(), [&](const Cell& cell) {
                return metrics.horizontalAdvance(cell.full) <= cell.slot->width();
            }))
            break;
    }
    for (Cell& cell : m_cells) {
        cell.value->setFont(font);
        const QFontMetrics metrics(font);
        const int room = cell.slot->width();
        const int value = metrics.horizontalAdvance(cell.full);
        cell.value->setText(metrics.elidedText(cell.full, Qt::ElideRight, std::max(room, 40)));
        // What is not shown has no difference either.
        const QString changeText = cell.full == QStringLiteral("–") ? QString() : cell.changeText;
        const int change = QFontMetrics(cell.change->font()).horizontalAdvance(changeText);
        const bool fits = !changeText.isEmpty() && value + 8 + change <= room;
        cell.change->setText(fits ? changeText : QString());
        cell.change->setVisible(fits);
        cell.change->setAccessibleName(
            changeText.isEmpty() ? QString() : QStringLiteral("%1: %2").arg(cell.name->text(), changeText));
    }
}

void VerdictStrip::resizeEvent(QResizeEvent* event)
{
    QWidget::resizeEvent(event);
    fit();
}

} // namespace pipewright

#include "moc_verdictstrip.cpp"
