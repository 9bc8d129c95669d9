// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/panels/inspector.h"

#include "core/predict/criticalpath.h"
#include "core/program/transferorder.h"
#include "gui/panels/blockchip.h"
#include "gui/panels/explain.h"
#include "gui/panels/factlist.h"
#include "gui/panels/labels.h"
#include "gui/panels/lanefields.h"
#include "gui/panels/words.h"
#include "gui/timeline/timelineview.h"
#include "gui/timeline/warmup.h"

#include <QGridLayout>
#include <QLabel>
#include <QLineEdit>
#include <QSpinBox>

#include <algorithm>

namespace pipewright {

Inspector::Inspector(TimelineView& timeline, QWidget* parent)
    : QWidget(parent)
    , m_timeline(timeline)
    , m_document(timeline.document())
    , m_chip(new BlockChip({}, this))
    , m_title(new QLabel(this))
    , m_place(makeCaption({}, TextSize::Normal, this))
    , m_facts(new FactList(this))
    , m_fields(new QWidget(this))
    , m_position(new QSpinBox(m_fields))
    , m_positionOf(makeCaption({}, TextSize::Small, m_fields))
    , m_device(new QSpinBox(m_fields))
    , m_warmUp(new QSpinBox(m_fields))
    , m_pin(new QLineEdit(m_fields))
    , m_sendCaption(makeCaption(tr("sent as number"), TextSize::Normal, m_fields))
    , m_send(new QSpinBox(m_fields))
    , m_sendOf(makeCaption({}, TextSize::Small, m_fields))
    , m_fault(new QLabel(this))
    , m_whyHeading(makeHeading({}, this))
    , m_why(new QLabel(this))
{
    setAccessibleName(tr("Selected block"));
    m_title->setFont(Theme::words(TextSize::Large, QFont::DemiBold));
    m_title->setWordWrap(true);
    m_why->setWordWrap(true);
    m_why->setTextInteractionFlags(Qt::TextSelectableByMouse);
    m_why->setCursor(Qt::ArrowCursor);
    m_fault->setWordWrap(true);
    m_fault->setFont(Theme::words(TextSize::Small));

    for (QSpinBox* spin : {m_position, m_device, m_warmUp, m_send}) {
        spin->setFont(Theme::numbers(TextSize::Small));
        spin->setKeyboardTracking(false);
        spin->setButtonSymbols(QAbstractSpinBox::NoButtons);
        spin->setFixedWidth(92);
    }
    m_device->setAccessibleName(tr("Device of the stage"));
    m_device->setToolTip(tr("The whole stage goes to this device: the numeric twin of dragging a block to another lane"));
    m_warmUp->setAccessibleName(tr("Warm-up of the device"));
    m_warmUp->setToolTip(tr("Forwards before the device's first backward: the numeric twin of dragging the edge of its warm-up"));
    m_position->setAccessibleName(tr("Position in lane"));
    m_position->setToolTip(tr("Place in its device's order, 1 is first: the numeric twin of dragging; other selected blocks of the device go along"));
    m_pin->setFont(Theme::numbers(TextSize::Small));
    m_pin->setAccessibleName(tr("Earliest start"));
    m_pin->setPlaceholderText(tr("none"));
    m_pin->setToolTip(tr("The block will not start before this time, for example 12.5ms; empty removes the pin"));

    auto* chipRow = new QHBoxLayout;
    chipRow->setSpacing(14);
    auto* names = new QVBoxLayout;
    names->setSpacing(3);
    names->addWidget(m_title);
    names->addWidget(m_place);
    chipRow->addWidget(m_chip, 0, Qt::AlignTop);
    chipRow->addLayout(names, 1);

    auto* fields = new QGridLayout(m_fields);
    fields->setContentsMargins(0, 0, 0, 0);
    fields->setHorizontalSpacing(10);
    fields->setVerticalSpacing(6);
    auto* positionCaption = makeCaption(tr("position in lane"), TextSize::Normal, m_fields);
    positionCaption->setBuddy(m_position);
    auto* pinCaption = makeCaption(tr("earliest start"), TextSize::Normal, m_fields);
    pinCaption->setBuddy(m_pin);
    fields->addWidget(positionCaption, 0, 0);
    fields->addWidget(m_positionOf, 0, 1, Qt::AlignRight);
    fields->addWidget(m_position, 0, 2);
    auto* deviceCaption = makeCaption(tr("stage on device"), TextSize::Normal, m_fields);
    deviceCaption->setBuddy(m_device);
    auto* warmUpCaption = makeCaption(tr("its warm-up, forwards"), TextSize::Normal, m_fields);
    warmUpCaption->setBuddy(m_warmUp);
    fields->addWidget(deviceCaption, 1, 0);
    fields->addWidget(m_device, 1, 2);
    fields->addWidget(warmUpCaption, 2, 0, 1, 2);
    fields->addWidget(m_warmUp, 2, 2);
    fields->addWidget(pinCaption, 3, 0);
    fields->addWidget(m_pin, 3, 2);
    fields->setColumnStretch(1, 1);
    m_pin->setFixedWidth(92);
    m_send->setAccessibleName(tr("Place among the transfers of its device"));
    m_send->setToolTip(tr("Of all that its device sends and receives, 1 is issued first: the numeric twin of dragging in the transfer sub-lane (Y shows it)"));
    m_sendCaption->setBuddy(m_send);
    fields->addWidget(m_sendCaption, 4, 0);
    fields->addWidget(m_sendOf, 4, 1, Qt::AlignRight);
    fields->addWidget(m_send, 4, 2);

    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(12);
    layout->addWidget(makeHeading(tr("Block"), this));
    layout->addLayout(chipRow);
    layout->addWidget(m_facts);
    layout->addWidget(m_fields);
    layout->addWidget(new LaneFields(timeline, this));
    layout->addWidget(m_fault);
    layout->addSpacing(8);
    layout->addWidget(m_whyHeading);
    layout->addWidget(m_why);

    connect(m_position, &QSpinBox::valueChanged, this, &Inspector::applyPosition);
    connect(m_device, &QSpinBox::valueChanged, this, &Inspector::applyDevice);
    connect(m_warmUp, &QSpinBox::valueChanged, this, &Inspector::applyWarmUp);
    connect(m_pin, &QLineEdit::editingFinished, this, &Inspector::applyPin);
    connect(m_send, &QSpinBox::valueChanged, this, &Inspector::applySend);
    connect(&m_document, &Document::selectionChanged, this, &Inspector::refresh);
    connect(&m_document, &Document::designChanged, this, &Inspector::refresh);
    connect(&m_document, &Document::overlayChanged, this, &Inspector::refresh);
    refresh();
}

QString Inspector::why() const
{
    return m_why->text();
}

void Inspector::explainTail(int device, Nanoseconds start, Nanoseconds end)
{
    const Prediction* prediction = m_document.prediction();
    const std::optional<Block> last = prediction ? lastBlock(*prediction) : std::nullopt;
    if (!last)
        return;
    const Design& design = m_document.design();
    m_whyHeading->setText(tr("Why %1 is idle at the end").arg(deviceLabel(design, device)));
    QString text = tr("%1 until the step ends: %2 has nothing left to do while %3 on %4 is still to finish.")
                       .arg(durationText(end - start), deviceLabel(design, device), blockText(*last),
                            deviceLabel(design, pipewright::find(design.schedule, *last).device));
    QStringList links;
    for (const WaitLink& link : waitingChain(*prediction, *last, 3))
        links << tr("%1 on %2").arg(blockText(link.block), deviceLabel(design, link.device));
    if (!links.isEmpty())
        text += QLatin1Char(' ') + tr("Before that one come %1.").arg(links.join(QStringLiteral(", ")));
    m_why->setText(text);
}

void Inspector::showNothing()
{
    m_chip->hide();
    m_title->setText(tr("Nothing selected"));
    m_place->setText(tr("Click a block, or use , and . to step"));
    m_facts->setFacts({});
    m_fields->hide();
    m_whyHeading->setText(tr("Why is a device idle?"));
    m_why->setText(tr("Click a block or the hatched time before it: this panel says which block it waits for and along "
                      "which chain."));
}

void Inspector::refresh()
{
    m_fault->hide();
    m_block = m_document.selection();
    if (!m_block) {
        showNothing();
        return;
    }
    const Design& design = m_document.design();
    const Position position = pipewright::find(design.schedule, *m_block);
    m_chip->setBlock(*m_block);
    m_chip->show();
    m_title->setText(blockTitle(*m_block));
    const QString device = position.device >= 0 ? tr("on %1").arg(deviceLabel(design, position.device)) : tr("in the tray");
    m_place->setText(tr("stage %1 %2").arg(m_block->stage).arg(device));

    m_fields->setVisible(position.device >= 0);
    refreshSend();
    refreshPlace();
    m_pin->clear();
    for (const Pin& pin : design.schedule.pins)
        if (pin.block == *m_block)
            m_pin->setText(QString::fromStdString(exactDuration(pin.earliestStart)));

    std::optional<BlockAnswers> answers;
    if (m_document.prediction())
        answers = explain(design, *m_document.prediction(), *m_block);
    if (!answers) {
        m_facts->setFacts({{tr("source"), QString::fromStdString(design.costs.source), {}, Tone::Plain}});
        m_whyHeading->setText(tr("Not running"));
        m_why->setText(position.device >= 0 ? tr("The placed blocks wait for each other, so there are no times. See the conflicts.")
                                            : tr("It has no place yet. Drag it into its lane, or press N."));
        return;
    }

    const Prediction& prediction = *m_document.prediction();
    const QString source = tr("Predicted from costs: %1").arg(QString::fromStdString(design.costs.source));
    std::vector<Fact> facts{{tr("start"), durationText(answers->start), source, Tone::Plain},
                            {tr("duration"), durationText(answers->duration), source, Tone::Plain}};
    if (const Document::Overlay* overlay = m_document.overlay(); overlay && answers->task < overlay->measured.start.size()
        && overlay->measured.start[answers->task] != notRun) {
        const Nanoseconds measured = overlay->measured.end[answers->task] - overlay->measured.start[answers->task];
        const double error = answers->duration > 0 ? double(measured - answers->duration) / double(answers->duration) : 0;
        facts.push_back({tr("measured"), durationText(measured) + QStringLiteral("  ") + signedPercent(error),
                         tr("Duration in the median step of %1").arg(overlay->path), error > 0.05 ? Tone::Bad : Tone::Plain});
    }
    const Nanoseconds slackOfBlock = slack(prediction.program, prediction.timeline)[answers->task];
    facts.push_back({tr("slack"), slackOfBlock == 0 ? tr("0 critical") : durationText(slackOfBlock),
                     tr("How much later it could end without a later makespan"), Tone::Plain});
    facts.push_back({tr("frees"), sizeText(answers->freed), tr("Bytes released on its device right after it"), Tone::Plain});
    for (std::size_t i = 0; i < answers->feeds.size() && i < 2; ++i) {
        const Feed& feed = answers->feeds[i];
        facts.push_back({i == 0 ? tr("sends to") : tr("and to"),
                         QStringLiteral("%1, %2").arg(deviceLabel(design, feed.device), sizeText(feed.bytes)),
                         tr("Transfer inferred from the data it makes"), Tone::Plain});
    }
    facts.push_back({tr("source"), QString::fromStdString(design.costs.source), tr("Where the durations and sizes come from"), Tone::Dim});
    m_facts->setFacts(facts);

    const int runsOn = prediction.program.tasks[answers->task].device;
    m_whyHeading->setText(answers->idleBefore > 0 ? tr("Why %1 is idle before it").arg(deviceLabel(design, runsOn))
                                                  : tr("Why it starts then"));
    m_why->setText(answers->why);
}

void Inspector::refreshPlace()
{
    const Schedule& schedule = m_document.design().schedule;
    const Position position = pipewright::find(schedule, *m_block);
    if (position.device < 0)
        return;
    const std::vector<Block>& order = schedule.order[static_cast<std::size_t>(position.device)];
    const QSignalBlocker quietPosition(m_position), quietDevice(m_device), quietWarmUp(m_warmUp);
    m_position->setRange(1, static_cast<int>(order.size()));
    m_position->setValue(position.index + 1);
    m_positionOf->setText(tr("of %1").arg(order.size()));
    m_device->setRange(0, schedule.devices() - 1);
    m_device->setValue(position.device);
    m_warmUp->setRange(0, longestWarmUp(order));
    m_warmUp->setValue(warmUp(order));
}

void Inspector::applyDevice()
{
    const Position now = m_block ? pipewright::find(m_document.design().schedule, *m_block) : Position{};
    if (now.device < 0 || m_device->value() == now.device)
        return;
    const Diagnostics faults = m_document.moveStage(m_block->stage, m_device->value(), m_block->replica);
    if (hasErrors(faults))
        report(faults);
}

void Inspector::applyWarmUp()
{
    const Design& design = m_document.design();
    const Position now = m_block ? pipewright::find(design.schedule, *m_block) : Position{};
    if (now.device < 0)
        return;
    const std::vector<Block>& order = design.schedule.order[static_cast<std::size_t>(now.device)];
    if (m_warmUp->value() == warmUp(order))
        return;
    const Diagnostics faults =
        m_document.commit(m_document.tryReorder(now.device, withWarmUp(order, m_warmUp->value()),
                                                tr("Warm-up of %1 on %2").arg(m_warmUp->value()).arg(deviceLabel(design, now.device))));
    if (hasErrors(faults))
        report(faults);
}

void Inspector::applyPosition()
{
    if (!m_block)
        return;
    const Position now = pipewright::find(m_document.design().schedule, *m_block);
    const int wanted = m_position->value() - 1;
    if (now.device < 0 || wanted == now.index)
        return;
    if (m_timeline.selectedBlocks().size() > 1) { // the selected ones go along, as they do in a drag
        m_timeline.moveSelection(wanted - now.index);
        return refreshPlace();
    }
    // moveBlock() puts it before the block that is at the index now, and the block itself still counts.
    const Diagnostics faults = m_document.moveBlock(*m_block, wanted > now.index ? wanted + 1 : wanted);
    if (hasErrors(faults))
        report(faults);
}

namespace {

/// Where the first transfer that a block gives rise to stands in the list of the block's device; -1: nowhere.
int placeOfSend(const std::vector<IssuedTransfer>& list, const Block& block)
{
    const auto at = std::find_if(list.begin(), list.end(), [&](const IssuedTransfer& i) { return i.sends && i.transfer.producer == block; });
    return at == list.end() ? -1 : static_cast<int>(at - list.begin());
}

} // namespace

void Inspector::refreshSend()
{
    const Position position = m_block ? pipewright::find(m_document.design().schedule, *m_block) : Position{};
    std::vector<IssuedTransfer> list;
    if (m_document.prediction() && position.device >= 0)
        list = transfersOf(m_document.prediction()->program, position.device);
    const int place = m_block ? placeOfSend(list, *m_block) : -1;
    for (QWidget* part : {static_cast<QWidget*>(m_sendCaption), static_cast<QWidget*>(m_send), static_cast<QWidget*>(m_sendOf)})
        part->setVisible(place >= 0);
    if (place < 0)
        return;
    const QSignalBlocker quiet(m_send);
    m_send->setRange(1, static_cast<int>(list.size()));
    m_send->setValue(place + 1);
    m_sendOf->setText(tr("of %1").arg(list.size()));
}

void Inspector::applySend()
{
    const Position position = m_block ? pipewright::find(m_document.design().schedule, *m_block) : Position{};
    if (position.device < 0 || !m_document.prediction())
        return;
    const int from = placeOfSend(transfersOf(m_document.prediction()->program, position.device), *m_block);
    const int wanted = m_send->value() - 1;
    if (from < 0 || from == wanted)
        return;
    const Diagnostics faults = m_document.commit(m_document.tryMoveTransfer(position.device, from, wanted));
    if (hasErrors(faults)) {
        report(faults);
        refreshSend();
    }
}

void Inspector::applyPin()
{
    if (!m_block)
        return;
    Nanoseconds present = 0;
    for (const Pin& pin : m_document.design().schedule.pins) {
        if (pin.block == *m_block)
            present = pin.earliestStart;
    }
    try {
        const QString text = m_pin->text().trimmed();
        const Nanoseconds wanted = text.isEmpty() ? 0 : parseDuration(text.toStdString(), "earliest start");
        if (wanted == present)
            return;
        const Diagnostics faults = m_document.pin(*m_block, wanted);
        if (hasErrors(faults))
            report(faults);
    } catch (const Error& error) {
        report(error.diagnostics());
    }
}

void Inspector::report(const Diagnostics& diagnostics)
{
    refreshPlace();
    const Diagnostic& first = diagnostics.front();
    QString text = QString::fromStdString(first.what);
    if (!first.hint.empty())
        text += QStringLiteral(" (%1)").arg(QString::fromStdString(first.hint));
    m_fault->setText(text);
    setTone(m_fault, Tone::Bad);
    m_fault->show();
}

} // namespace pipewright
