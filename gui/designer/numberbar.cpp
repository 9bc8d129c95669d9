// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/designer/numberbar.h"

#include "core/base/beyondprediction.h"
#include "core/predict/bubblerates.h"
#include "core/predict/designcheck.h"
#include "core/predict/throughput.h"
#include "gui/widgets/layouts.h"
#include "gui/widgets/themechange.h"
#include "gui/widgets/words.h"

#include <QLabel>
#include <QLocale>
#include <QTimer>

#include <cmath>

namespace pipewright {

namespace {

constexpr int leastRight = 60; // of the words at the right

/// A line for each definition: its value and what it counts.
template<class Sided>
QString bubbleTip(const Sided& sided)
{
    QString tip;
    for (const BubbleRate& rate : bubbleRates)
        tip += QStringLiteral("%1 %2 = %3\n")
                   .arg(QString::fromUtf8(rate.name.data(), std::ssize(rate.name)),
                        sided([&rate](const Metrics& m) { return percentText(m.*rate.value); }),
                        QString::fromStdString(describe(rate)));
    return tip;
}

} // namespace

NumberBar::NumberBar(QWidget* parent)
    : QWidget(parent), m_layout(new QHBoxLayout(this)), m_right(makeCaption({}, TextSize::Small, this))
{
    onThemeChange(this, [this] {
        // Deferred, as the labels get the new style sheet after this widget.
        QTimer::singleShot(0, this, [this] {
            for (const Item& item : m_items) {
                setTone(item.value, item.tone);
                setTone(item.change, item.changeTone);
            }
        });
    });
    makePanel(this);
    setFixedHeight(34);
    setAccessibleName(tr("Numbers of this schedule"));
    m_layout->setContentsMargins(16, 0, 16, 0);
    m_layout->setSpacing(0);
    m_layout->addStretch(1);
    m_right->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
    m_right->setMinimumWidth(leastRight);
    m_layout->addWidget(m_right);
}

NumberBar::Item& NumberBar::item(const QString& name)
{
    for (Item& item : m_items) {
        if (item.key == name)
            return item;
    }
    auto* caption = makeCaption(name, TextSize::Small, this);
    auto* value = makeNumber({}, TextSize::Small, this);
    auto* pair = new QWidget(this);
    auto* row = makeLayout<QHBoxLayout>(pair, {0, 0, 20, 0}, 8);
    row->addWidget(caption);
    row->addWidget(value);
    m_layout->insertWidget(static_cast<int>(m_items.size()), pair);
    auto* change = makeNumber({}, TextSize::Small, this);
    change->hide();
    row->addWidget(change);
    m_items.push_back({name, pair, caption, value, change, Tone::Plain, Tone::Plain});
    return m_items.back();
}

void NumberBar::set(const QString& name, const QString& value, const QString& source, Tone tone)
{
    Item& shown = item(name);
    shown.empty = value.isEmpty();
    shown.pair->setVisible(!shown.empty);
    shown.value->setText(value);
    shown.name->setToolTip(source);
    shown.value->setToolTip(source);
    shown.value->setAccessibleName(name + QStringLiteral(": ") + value);
    shown.tone = tone;
    setTone(shown.value, tone);
}

void NumberBar::showChange(const QString& name, const QString& text, double difference)
{
    Item& shown = item(name);
    shown.change->setVisible(!text.isEmpty() && difference != 0);
    shown.change->setText(difference == 0 ? QString() : text);
    shown.change->setAccessibleName(name + QStringLiteral(": ") + text);
    shown.change->setToolTip(tr("Against the state before this edit"));
    shown.changeTone = difference < 0 ? Tone::Good : Tone::Bad; // less is better
    setTone(shown.change, shown.changeTone);
}

void NumberBar::setChanges(const std::optional<EditDifferences::Changes>& changes)
{
    const EditDifferences::Changes none, &shown = changes ? *changes : none;
    const auto worthSaying = [](double share) {
        return std::abs(share) < 0.0005 ? 0 : share;
    }; // smaller values are written as 0.0
    showChange(tr("makespan"), signedPercent(shown.makespan), worthSaying(shown.makespan));
    showChange(tr("members"), signedPercent(shown.members), worthSaying(shown.members));
    showChange(tr("bubble"), signedPoints(shown.bubble), worthSaying(shown.bubble));
    showChange(tr("peak"), signedSize(shown.peak), static_cast<double>(shown.peak));
    showRight();
}

QString NumberBar::change(const QString& name) const
{
    for (const Item& item : m_items)
        if (item.key == name)
            return item.change->text();
    return {};
}

void NumberBar::showDesign(const Design& design, const Prediction* prediction, double evaluationMilliseconds,
                           bool complete, const Document::Overlay* overlay, Side side,
                           const std::optional<PendingMemory>& pending)
{
    const QString source = tr("Source of the predicted costs: %1").arg(QString::fromStdString(design.costs.source));
    if (!overlay)
        side = Side::Predicted;
    if (!prediction) {
        for (const QString& name :
             {tr("makespan"), tr("members"), tr("bubble"), tr("peak"), tr("throughput"), tr("MFU"), tr("moved")})
            set(name, name == tr("members") ? QString() : QStringLiteral("–"),
                tr("No prediction: the placed blocks cannot run"));
        m_evaluated = tr("%1 blocks · not evaluated")
                          .arg(QLocale(QLocale::English).toString(qlonglong(design.schedule.blocks())));
        showRight();
        return;
    }
    const Metrics& metrics = prediction->metrics;
    const Metrics* const recorded = overlay ? &overlay->metrics : nullptr;
    // The text of one side or of both; `write` formats the metrics of one side.
    const auto sided = [&](const auto& write) {
        return sidedText(side, write(metrics), recorded ? write(*recorded) : QString());
    };
    const Nanoseconds measured = overlay ? overlay->comparison.measuredMakespan : 0;
    QString makespan = sidedText(side, durationText(metrics.makespan), overlay ? durationText(measured) : QString());
    if (side == Side::Both)
        makespan = tr("%1 (%2)").arg(makespan, signedPercent(beyondPrediction(static_cast<double>(measured),
                                                                              static_cast<double>(metrics.makespan))));
    const QString which =
        overlay ? tr("%1; %2.").arg(sideName(side), comparedText(measured, metrics.makespan)) : tr("predicted.");
    set(tr("makespan"), complete ? makespan : tr("%1 so far").arg(makespan),
        tr("First start to last end of one step, %1\n%2").arg(which, source));
    set(tr("members"),
        side != Side::Predicted       ? QString() // only the prediction has it
        : prediction->memoryOfMembers ? durationText(prediction->membersMakespan)
        : pending                     ? pending->words
                                      : QString(),
        tr("Makespan of what the members of the groups run, predicted. They wait for each other at\n"
           "collectives only, so it is never longer than that of the groups' blocks, which are as long as\n"
           "their slowest member's parts.\n%1")
            .arg(source));
    const QString unfinished = tr("Known once every block has a place");
    if (!complete)
        set(tr("bubble"), QStringLiteral("–"), unfinished);
    else
        set(tr("bubble"),
            side == Side::Both
                ? sided([](const Metrics& m) { return percentText(m.rateMakespan); })
                : sided([](const Metrics& m) {
                      return tr("%1 (span %2)").arg(percentText(m.rateMakespan), percentText(m.rateSpan));
                  }),
            bubbleTip(sided) + tr("All %1.\n%2").arg(sideName(side), source));
    showPeak(design, metrics, overlay, side, source, pending);
    // With unplaced blocks a token rate is meaningless.
    const auto tokens = [&](Nanoseconds length) {
        const double rate = complete ? tokensPerSecond(design, length) : 0;
        return rate > 0 ? rateText(rate) : QString();
    };
    set(tr("throughput"),
        tokens(metrics.makespan).isEmpty()
            ? QString()
            : tr("%1 tok/s").arg(sidedText(side, tokens(metrics.makespan), overlay ? tokens(measured) : QString())),
        tr("Tokens of all microbatches of one step divided by the makespan, %1.\n%2").arg(sideName(side), source));
    const auto utilization = [&](Nanoseconds length) {
        const double share = complete ? modelFlopsUtilization(design, length) : 0;
        return share > 0 ? percentText(share) : QString();
    };
    const bool beyondPeak = (side != Side::Measured && modelFlopsUtilization(design, metrics.makespan) > 1)
                            || (side != Side::Predicted && modelFlopsUtilization(design, measured) > 1);
    set(tr("MFU"),
        utilization(metrics.makespan).isEmpty()
            ? QString()
            : sidedText(side, utilization(metrics.makespan), overlay ? utilization(measured) : QString()),
        tr("Model FLOPs utilization: the model's own arithmetic of one step, recomputation left out, as a share of "
           "what the devices\n"
           "could do at their peak rate in the makespan, %1.\n%2%3")
            .arg(
                sideName(side),
                beyondPeak ? tr(
                    "More than 100 %: the run, or where the costs were measured, had faster devices than the design.\n")
                           : QString(),
                source));
    const Bytes moved = prediction->transferred;
    QString waits;
    for (const std::string& sentence : {busSentence(prediction->program), streamSentence(prediction->program)})
        if (!sentence.empty())
            waits += QString::fromStdString(sentence) + QLatin1Char('\n');
    set(tr("moved"), moved > 0 ? sizeText(moved) : QString(),
        tr("Bytes of all %1 transfers between devices in one step.\n%2%3")
            .arg(prediction->transfers)
            .arg(waits, source));
    m_evaluated = tr("%1 · %2 blocks · evaluated in %3\u00a0ms")
                      .arg(overlay ? sideName(side) : tr("all predicted"))
                      .arg(QLocale(QLocale::English).toString(qlonglong(design.schedule.blocks())))
                      .arg(evaluationMilliseconds, 0, 'f', 2);
    showRight();
}

void NumberBar::showPeak(const Design& design, const Metrics& metrics, const Document::Overlay* overlay, Side side,
                         const QString& source, const std::optional<PendingMemory>& pending)
{
    // The device with the highest peak, on the side that the charts show filled.
    int device = pending ? -1 : fullestDevice(metrics);
    std::optional<Bytes> measured;
    if (overlay && side != Side::Predicted)
        for (std::size_t d = 0; d < overlay->comparison.devices.size(); ++d)
            if (const std::optional<Bytes> peak = overlay->comparison.devices[d].measuredPeak; peak > measured) {
                measured = peak;
                device = static_cast<int>(d);
            }
    if (pending && !measured) {
        set(tr("peak"), pending->words, pending->why);
        return;
    }
    if (device < 0 || device >= std::ssize(metrics.devices))
        return;
    // With a recording, the peaks of groups come from the comparison, which has them from the members.
    const Bytes predicted = overlay && side != Side::Predicted && device < std::ssize(overlay->comparison.devices)
                                ? overlay->comparison.devices[device].predictedPeak
                                : metrics.devices[device].peakBytes;
    const Bytes limit = device < std::ssize(design.cluster.devices) ? design.cluster.devices[device].memory : 0;
    const Bytes shown = side == Side::Predicted ? predicted : measured.value_or(0);
    const QString predictedText = pending ? pending->words : sizeText(predicted);
    set(tr("peak"),
        QStringLiteral("%1 %2").arg(sidedText(side, predictedText, measured ? sizeText(*measured) : QString()),
                                    deviceLabel(design, device)),
        tr("Highest memory of any device, %1: weights, optimizer state, activations and buffers.\n%2 of activations in "
           "units of one "
           "microbatch on one device, predicted.\n%3")
            .arg(sideName(side), multipleText(metrics.devices[device].peakActivations), source),
        limit > 0 && shown > limit ? Tone::Bad : Tone::Plain);
}

void NumberBar::setGradients(const QString& text, bool good, const QString& source)
{
    set(tr("gradients"), text, source, good ? Tone::Good : Tone::Bad);
}

void NumberBar::setWarning(const QString& name, const QString& text, const QString& source)
{
    set(name, text, source, Tone::Bad);
}

void NumberBar::resizeEvent(QResizeEvent* event)
{
    QWidget::resizeEvent(event);
    showRight();
}

void NumberBar::setHint(const QString& text)
{
    m_hint = text;
    showRight();
}

void NumberBar::showRight()
{
    const QString& text = m_hint.isEmpty() ? m_evaluated : m_hint;
    // Shortened at the right, by whole parts if it has several: a QLabel would cut off the beginning.
    QString hidden;
    const int space = std::max(leastRight, foldNumbers(&hidden));
    QString shown = text;
    for (const QString separator = QStringLiteral(" · ");
         m_right->fontMetrics().horizontalAdvance(shown) > space && shown.contains(separator);)
        shown = shown.section(separator, 0, -2);
    m_right->setText(m_right->fontMetrics().elidedText(shown, Qt::ElideRight, space));
    m_right->setToolTip(m_right->text() == text && hidden.isEmpty() ? QString() : text + hidden);
}

int NumberBar::foldNumbers(QString* hidden)
{
    int space = width() - m_layout->contentsMargins().left() - m_layout->contentsMargins().right();
    bool full = false;
    for (Item& item : m_items) {
        if (item.empty)
            continue;
        item.pair->layout()->activate(); // its labels have new texts
        const int wanted = item.pair->sizeHint().width();
        full = full || space - wanted < leastRight;
        item.pair->setVisible(!full);
        if (full)
            *hidden += QStringLiteral("\n%1 %2").arg(item.key, item.value->text());
        else
            space -= wanted;
    }
    return space;
}

QString NumberBar::value(const QString& name) const
{
    for (const Item& item : m_items) {
        if (item.key == name)
            return item.value->text();
    }
    return {};
}

} // namespace pipewright

#include "moc_numberbar.cpp"
