// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/designer/footline.h"

#include "core/predict/designcheck.h"
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

} // namespace

FootLine::FootLine(QWidget* parent)
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
    setFixedHeight(28);
    setAccessibleName(tr("More about this schedule"));
    m_layout->setContentsMargins(16, 0, 16, 0);
    m_layout->setSpacing(0);
    m_layout->addStretch(1);
    m_right->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
    m_right->setMinimumWidth(leastRight);
    m_layout->addWidget(m_right);
}

FootLine::Item& FootLine::item(const QString& name)
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

void FootLine::set(const QString& name, const QString& value, const QString& source, Tone tone)
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

void FootLine::setMembersChange(double share)
{
    Item& shown = item(tr("members"));
    const bool worthSaying = std::abs(share) >= 0.0005; // smaller values are written as 0.0
    shown.change->setVisible(worthSaying);
    shown.change->setText(worthSaying ? signedPercent(share) : QString());
    shown.change->setAccessibleName(shown.key + QStringLiteral(": ") + shown.change->text());
    shown.changeTone = share < 0 ? Tone::Good : Tone::Bad; // less is better
    setTone(shown.change, shown.changeTone);
    showRight();
}

QString FootLine::change(const QString& name) const
{
    for (const Item& item : m_items)
        if (item.key == name)
            return item.change->text();
    return {};
}

void FootLine::showDesign(const Design& design, const Prediction* prediction, double evaluationMilliseconds,
                          bool overlaid, Side side, const std::optional<PendingMemory>& pending)
{
    const QString source = tr("Source of the predicted costs: %1").arg(QString::fromStdString(design.costs.source));
    const QString blocks = QLocale(QLocale::English).toString(qlonglong(design.schedule.blocks()));
    if (!prediction) {
        for (const QString& name : {tr("members"), tr("moved")})
            set(name, {}, {});
        m_evaluated = tr("%1 blocks · not evaluated").arg(blocks);
        showRight();
        return;
    }
    set(tr("members"),
        side != Side::Predicted       ? QString() // only the prediction has it
        : prediction->memoryOfMembers ? durationText(prediction->membersMakespan)
        : pending                     ? pending->words
                                      : QString(),
        tr("Makespan of what the members of the groups run, predicted. They wait for each other at\n"
           "collectives only, so it is never longer than that of the groups' blocks, which are as long as\n"
           "their slowest member's parts.\n%1")
            .arg(source));
    const Bytes moved = prediction->transferred;
    QString waits;
    for (const std::string& sentence : {busSentence(prediction->program), streamSentence(prediction->program)})
        if (!sentence.empty())
            waits += QString::fromStdString(sentence) + QLatin1Char('\n');
    set(tr("moved"), moved > 0 ? sizeText(moved) : QString(),
        tr("Bytes of all %1 transfers between devices in one step.\n%2%3")
            .arg(prediction->transfers)
            .arg(waits, source));
    const auto took = static_cast<Nanoseconds>(std::llround(evaluationMilliseconds * 1e6));
    m_evaluated = tr("%1 · %2 blocks · evaluated in %3")
                      .arg(overlaid ? sideName(side) : tr("all predicted"), blocks, durationText(took));
    showRight();
}

void FootLine::setGradients(const QString& text, bool good, const QString& source)
{
    set(tr("gradients"), text, source, good ? Tone::Good : Tone::Bad);
}

void FootLine::setWarning(const QString& name, const QString& text, const QString& source)
{
    set(name, text, source, Tone::Bad);
}

void FootLine::resizeEvent(QResizeEvent* event)
{
    QWidget::resizeEvent(event);
    showRight();
}

void FootLine::setHint(const QString& text)
{
    m_hint = text;
    showRight();
}

void FootLine::showRight()
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

int FootLine::foldNumbers(QString* hidden)
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

QString FootLine::value(const QString& name) const
{
    for (const Item& item : m_items) {
        if (item.key == name)
            return item.value->text();
    }
    return {};
}

} // namespace pipewright

#include "moc_footline.cpp"
