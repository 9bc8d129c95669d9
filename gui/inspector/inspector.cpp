// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/inspector/inspector.h"

#include "core/program/transferorder.h"
#include "core/schedule/edits.h"
#include "core/schedule/warmup.h"
#include "gui/document/namededits.h"
#include "gui/inspector/blockchip.h"
#include "gui/inspector/blockexplanation.h"
#include "gui/inspector/blockfacts.h"
#include "gui/inspector/lanefields.h"
#include "gui/inspector/pairparts.h"
#include "gui/inspector/rangefacts.h"
#include "gui/inspector/timefields.h"
#include "gui/timeline/dropplan.h"
#include "gui/timeline/refusalnote.h"
#include "gui/timeline/timelineview.h"
#include "gui/widgets/factlist.h"
#include "gui/widgets/fields.h"
#include "gui/widgets/labels.h"
#include "gui/widgets/layouts.h"
#include "gui/widgets/section.h"
#include "gui/widgets/words.h"

#include <QComboBox>
#include <QLabel>

#include <algorithm>

namespace pipewright {

Inspector::Inspector(TimelineView& timeline, QWidget* parent)
    : QWidget(parent), m_timeline(timeline), m_document(timeline.document()), m_chip(new BlockChip({}, this)),
      m_title(new Paragraph(this)), m_place(makeCaption({}, TextSize::Normal, this)), m_facts(new FactList(this)),
      m_fields(new QWidget(this)),
      m_position(new NumberField(tr("Position in lane"),
                                 tr("Position in its device's order, 1 is first, as by dragging; other "
                                    "selected blocks of the device go along"),
                                 m_fields)),
      m_positionOf(makeCaption({}, TextSize::Small, m_fields)), m_along(new QComboBox(m_fields)),
      m_device(new NumberField(tr("Device of the stage"),
                               tr("Moves the whole stage to this device, as by dragging a block to another lane"),
                               m_fields)),
      m_warmUpRow(new QWidget(this)),
      m_warmUp(new NumberField(
          tr("Warm-up of the device"),
          tr("Forwards before the device's first backward, as by dragging the edge of its warm-up"), m_warmUpRow)),
      m_pin(new TimeField(tr("Earliest start"),
                          tr("The block will not start before this time, for example 12.5ms; empty removes the pin"),
                          m_fields)),
      m_sendCaption(makeCaption({}, TextSize::Normal, m_fields)),
      m_send(new NumberField(tr("Place among the transfers of its device"),
                             tr("Of all that its device sends and receives, 1 is issued first, as by "
                                "dragging in the transfer sub-lane "
                                "(Y shows it); U goes to the block's next transfer. A gather of "
                                "parameters stands before a block of its device instead"),
                             m_fields)),
      m_sendOf(makeCaption({}, TextSize::Small, m_fields)), m_fault(new Paragraph(this)),
      m_remedy(new RemedyButton(m_document, this)), m_whyHeading(makeHeading({}, this)), m_why(new Paragraph(this))
{
    setAccessibleName(tr("Selected block"));
    m_title->setFont(Theme::words(TextSize::Large, QFont::DemiBold));
    m_title->setWordWrap(true);
    m_whyHeading->setWordWrap(true);
    m_why->setWordWrap(true);
    m_why->setTextInteractionFlags(Qt::TextSelectableByMouse);
    m_why->setCursor(Qt::ArrowCursor);
    m_fault->setWordWrap(true);
    m_fault->setFont(Theme::words(TextSize::Small));
    m_fault->setAccessibleName(tr("Why the edit was refused"));

    auto* chipRow = new QHBoxLayout;
    chipRow->setSpacing(14);
    auto* names = new QVBoxLayout;
    names->setSpacing(3);
    names->addWidget(m_title);
    names->addWidget(m_place);
    chipRow->addWidget(m_chip, 0, Qt::AlignTop);
    chipRow->addLayout(names, 1);

    auto* layout = makeLayout<QVBoxLayout>(this, {0, 0, 0, 0}, 12);
    layout->addLayout(chipRow);
    auto* reasons = new QVBoxLayout;
    reasons->setSpacing(6);
    reasons->addWidget(m_whyHeading);
    reasons->addWidget(m_why);
    layout->addLayout(reasons);
    m_belowWhy = new QVBoxLayout;
    m_belowWhy->setSpacing(12);
    layout->addLayout(m_belowWhy);
    layout->addWidget(new PairParts(m_document, this));
    layout->addWidget(new RangeFacts(timeline, this));
    m_factSection = new Section(tr("Facts"), m_facts, true, this);
    layout->addWidget(m_factSection);
    m_editSection = new Section(tr("Edit by numbers"), buildFields(), false, this);
    layout->addWidget(m_editSection);
    auto* view = new QWidget(this);
    auto* viewRows = makeLayout<QVBoxLayout>(view, {0, 0, 0, 0}, 12);
    viewRows->addWidget(buildLaneFields());
    viewRows->addWidget(new LaneFields(timeline, view));
    auto* times = new TimeFields(timeline, view);
    viewRows->addWidget(times);
    m_viewSection = new Section(tr("Lane and view by numbers"), view, false, this);
    layout->addWidget(m_viewSection);
    layout->addWidget(m_fault);
    layout->addWidget(m_remedy, 0, Qt::AlignLeft);

    // Unfold before the field gets the focus: a hidden field cannot take it.
    connect(&m_timeline, &TimelineView::rangeWantedByNumbers, times, [this, times] {
        m_viewSection->setOpen(true);
        times->editRange();
    });
    connect(m_position, &QSpinBox::valueChanged, this, &Inspector::applyPosition);
    connect(m_device, &QSpinBox::valueChanged, this, &Inspector::applyDevice);
    connect(m_warmUp, &QSpinBox::valueChanged, this, &Inspector::applyWarmUp);
    connect(m_pin, &TimeField::entered, this, &Inspector::applyPin);
    connect(m_pin, &TimeField::refused, this, &Inspector::report);
    connect(m_send, &QSpinBox::valueChanged, this, &Inspector::applySend);
    connect(times, &TimeFields::checked, this, &Inspector::report);
    connect(&m_timeline, &TimelineView::previewChanged, this, [this] {
        if (m_timeline.isPreviewing() != m_previewing || &m_timeline.previewDesign() != &m_document.design())
            refreshDevice(); // not at every move of the mouse: it looks the block up
        m_previewing = m_timeline.isPreviewing();
    });
    connect(&m_timeline, &TimelineView::transferSelected, this, &Inspector::refreshSend);
    // Edits that the timeline makes for these fields are refused by the timeline.
    connect(&m_timeline, &TimelineView::editRefused, this, [this](const QString& why) {
        if (!m_position->hasFocus())
            return;
        refreshPlace();
        m_fault->setText(why);
        setTone(m_fault, Tone::Bad);
        m_fault->show();
    });
    connect(&m_document, &Document::selectionChanged, this, &Inspector::refresh);
    connect(&m_timeline, &TimelineView::selectedBlocksChanged, this, &Inspector::refreshDevice);
    connect(&m_document, &Document::designChanged, this, &Inspector::refresh);
    connect(&m_document, &Document::overlayChanged, this, &Inspector::refresh);
    connect(&m_document, &Document::sideChanged, this, &Inspector::refresh);
    refresh();
}

QWidget* Inspector::buildFields()
{
    m_along->addItems({tr("alone"), tr("with its microbatch"), tr("in exchange")}); // as Along
    m_along->setAccessibleName(tr("How it moves"));
    m_along->setToolTip(tr("What the position above does: the block alone goes there; the rest of its microbatch goes "
                           "along, as in a drag with Ctrl; or it "
                           "changes places with the block that stands there, as in a drag with Shift"));
    m_pin->setPlaceholderText(tr("none"));
    auto* fields = makeLayout<QGridLayout>(m_fields, {0, 0, 0, 0});
    fields->setHorizontalSpacing(10);
    fields->setVerticalSpacing(6);
    fields->setColumnStretch(1, 1);
    QLabel* along = makeCaptionOf(m_along, tr("moves"));
    QLabel* device = makeCaptionOf(m_device, tr("stage on device"));
    QLabel* pin = makeCaptionOf(m_pin, tr("earliest start"));
    m_ofPlaced = {along, m_along, device, m_device, m_warmUpRow, pin, m_pin};
    fields->addWidget(makeCaptionOf(m_position, tr("position in lane")), 0, 0);
    fields->addWidget(m_positionOf, 0, 1, Qt::AlignRight);
    fields->addWidget(m_position, 0, 2);
    fields->addWidget(along, 1, 0);
    fields->addWidget(m_along, 1, 1, 1, 2, Qt::AlignRight);
    fields->addWidget(device, 2, 0);
    fields->addWidget(m_device, 2, 2);
    fields->addWidget(pin, 4, 0);
    fields->addWidget(m_pin, 4, 2);
    m_sendCaption->setBuddy(m_send);
    fields->addWidget(m_sendCaption, 5, 0);
    fields->addWidget(m_sendOf, 5, 1, Qt::AlignRight);
    fields->addWidget(m_send, 5, 2);
    return m_fields;
}

QWidget* Inspector::buildLaneFields()
{
    auto* row = makeLayout<QHBoxLayout>(m_warmUpRow, {0, 0, 0, 0});
    row->addWidget(makeCaptionOf(m_warmUp, tr("warm-up, forwards")), 1);
    row->addWidget(m_warmUp);
    return m_warmUpRow;
}

void Inspector::addBelowWhy(QWidget* panel)
{
    m_belowWhy->addWidget(panel);
}

QString Inspector::whyHeading() const
{
    return m_whyHeading->text();
}

QString Inspector::why() const
{
    return m_why->text();
}

void Inspector::showNothing()
{
    m_chip->hide();
    m_title->setText(tr("Nothing selected"));
    m_place->setText(tr("Click a block, or use , and . to step"));
    m_facts->setFacts({});
    m_factSection->hide();
    m_editSection->hide();
    m_warmUpRow->hide();
    m_whyHeading->setText(tr("Why is a device idle?"));
    m_why->setText(tr("Click a block or the hatched time before it: this panel says which block it waits for and along "
                      "which chain."));
}

void Inspector::refresh()
{
    m_fault->hide();
    m_remedy->withdraw();
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
    refreshDevice();

    m_factSection->show();
    m_editSection->setVisible(position.device >= 0 || isInTray());
    refreshSend();
    refreshPlace();
    refreshPin();

    std::optional<BlockAnswers> answers;
    if (m_document.prediction())
        answers = explainBlock(design, *m_document.prediction(), *m_block);
    m_factSection->setTitle(m_document.overlay() ? tr("Facts · %1").arg(sideName(m_document.side())) : tr("Facts"));
    if (!answers) {
        m_facts->setFacts({{tr("source"), QString::fromStdString(design.costs.source), {}, Tone::Plain}});
        m_whyHeading->setText(tr("Not running"));
        m_why->setText(position.device >= 0
                           ? tr("The placed blocks wait for each other, so there are no times. See the conflicts.")
                           : tr("It has no place yet. Drag it into its lane, give it a position, or press N."));
        return;
    }

    m_facts->setFacts(blockFacts(m_document, *answers));
    showWhy(*answers);
}

void Inspector::refreshDevice()
{
    if (!m_block)
        return;
    const Design& design = m_document.design();
    const Schedule &now = design.schedule, &then = m_timeline.previewDesign().schedule;
    const bool known = m_block->stage < now.stages() && m_block->replica < now.replicas();
    if (&now != &then && known && then.deviceOf(*m_block) != now.deviceOf(*m_block)) {
        m_place->setText(
            tr("stage %1 on %2 when dropped").arg(m_block->stage).arg(deviceLabel(design, then.deviceOf(*m_block))));
        return;
    }
    const Position position = pipewright::find(now, *m_block);
    const QString device =
        position.device >= 0 ? tr("on %1").arg(deviceLabel(design, position.device)) : tr("in the tray");
    QString place = tr("stage %1 %2").arg(m_block->stage).arg(device);
    if (const std::size_t selected = m_timeline.selectedBlocks().size(); selected > 1)
        place = tr("%1\nthe last chosen of %2 selected blocks").arg(place).arg(selected);
    m_place->setText(place);
}

bool Inspector::isInTray() const
{
    const std::vector<Block>& tray = m_document.unplaced();
    return m_block && std::find(tray.begin(), tray.end(), *m_block) != tray.end();
}

void Inspector::refreshPlace()
{
    if (!m_block)
        return;
    const Schedule& schedule = m_document.design().schedule;
    const Position position = pipewright::find(schedule, *m_block);
    const bool placed = position.device >= 0;
    for (QWidget* part : m_ofPlaced)
        part->setVisible(placed);
    if (!placed && !isInTray())
        return;
    const int home = placed ? position.device : schedule.deviceOf(*m_block);
    const std::vector<Block>& order = schedule.order[home];
    const int places = static_cast<int>(order.size()) + !placed;
    const QSignalBlocker quietPosition(m_position), quietDevice(m_device), quietWarmUp(m_warmUp);
    m_position->setSpecialValueText(placed ? QString() : tr("tray"));
    m_position->setRange(placed ? 1 : 0, places);
    m_position->setValue(placed ? position.index + 1 : 0);
    m_positionOf->setText(tr("of %1").arg(places));
    m_device->setRange(0, schedule.devices() - 1);
    m_device->setValue(home);
    m_warmUp->setRange(0, longestWarmUp(order));
    m_warmUp->setValue(warmUp(order));
}

void Inspector::applyDevice()
{
    const Position now = m_block ? pipewright::find(m_document.design().schedule, *m_block) : Position{};
    if (now.device < 0 || m_device->value() == now.device)
        return;
    applyOrReport(MoveStage{m_block->stage, m_device->value(), m_block->replica});
}

void Inspector::applyWarmUp()
{
    const Design& design = m_document.design();
    const Position now = m_block ? pipewright::find(design.schedule, *m_block) : Position{};
    if (now.device < 0)
        return;
    const std::vector<Block>& order = design.schedule.order[now.device];
    if (m_warmUp->value() == warmUp(order))
        return;
    applyOrReport(warmUpChange(design, now.device, m_warmUp->value()));
}

void Inspector::applyPosition()
{
    if (!m_block)
        return;
    const Schedule& schedule = m_document.design().schedule;
    const Position now = pipewright::find(schedule, *m_block);
    const int wanted = m_position->value() - 1;
    if (now.device < 0) {
        if (wanted >= 0)
            applyOrReport(PlaceBlock{*m_block, wanted});
    } else if (wanted == now.index) {
        return;
    } else if (m_timeline.selectedBlocks().size() > 1) { // all selected blocks move, as in a drag
        m_timeline.moveSelection(wanted - now.index);
        return refreshPlace();
    } else if (static_cast<Along>(m_along->currentIndex()) == Along::Microbatch) {
        m_timeline.rippleSelection(wanted - now.index);
        return refreshPlace();
    } else if (static_cast<Along>(m_along->currentIndex()) == Along::Exchange) {
        m_timeline.exchange(*m_block, Block(schedule.order[now.device][wanted]));
        return refreshPlace();
    } else {
        const std::uint32_t moved[] = {static_cast<std::uint32_t>(now.index)};
        applyOrReport(blocksMove(m_document.design(), now.device, moved, wanted - now.index));
    }
}

void Inspector::applyOrReport(const EditRequest& request)
{
    const Diagnostics faults = m_document.apply(request);
    if (!hasErrors(faults))
        return;
    report(faults);
    m_remedy->offer(request);
    if (!m_remedy->isHidden())
        m_fault->setText(explain(faults)); // without the hint, which the button offers
}

namespace {

int placeIn(const std::vector<IssuedTransfer>& list, const Transfer& transfer)
{
    const auto at =
        std::find_if(list.begin(), list.end(), [&](const IssuedTransfer& each) { return each.transfer == transfer; });
    return at == list.end() ? -1 : static_cast<int>(at - list.begin());
}

/// Before which place of its device's order a gather stands; -1: it is not there.
int placeOfGather(const Program& program, int device, const Transfer& gather)
{
    int place = 0;
    for (const Instruction& instruction : program.devices[static_cast<std::size_t>(device)].instructions)
        if (instruction.kind == InstructionKind::Compute)
            ++place;
        else if (instruction.kind == InstructionKind::Gather
                 && program.tasks[instruction.task].block() == gather.producer)
            return place;
    return -1;
}

} // namespace

void Inspector::refreshGather(int device, const Transfer& gather)
{
    const std::vector<Block>& order = m_document.design().schedule.order[static_cast<std::size_t>(device)];
    const int place = placeOfGather(m_document.prediction()->program, device, gather);
    const auto reader = std::find(order.begin(), order.end(), gather.producer);
    const bool isThere = place >= 0 && reader != order.end();
    showSend(isThere);
    if (!isThere)
        return;
    const QSignalBlocker quiet(m_send);
    m_sendCaption->setText(tr("gathered before block"));
    m_send->setRange(1, static_cast<int>(reader - order.begin()) + 1);
    m_send->setValue(place + 1);
    m_sendOf->setText(tr("of %1").arg(order.size()));
}

void Inspector::showSend(bool isThere)
{
    for (QWidget* part :
         {static_cast<QWidget*>(m_sendCaption), static_cast<QWidget*>(m_send), static_cast<QWidget*>(m_sendOf)})
        part->setVisible(isThere);
}

void Inspector::refreshSend()
{
    int device = -1;
    std::vector<IssuedTransfer> list;
    const std::optional<Transfer> transfer = m_timeline.selectedTransfer(&device);
    if (m_document.prediction() && transfer && transfer->isGatherForReader())
        return refreshGather(device, *transfer);
    if (m_document.prediction() && transfer)
        list = transfersOf(m_document.prediction()->program, device);
    const int place = transfer ? placeIn(list, *transfer) : -1;
    showSend(place >= 0);
    if (place < 0)
        return;
    const bool sends = list[place].sends;
    const QSignalBlocker quiet(m_send);
    m_sendCaption->setText(sends ? tr("sent as number")
                                 : tr("%1 receives it as").arg(deviceLabel(m_document.design(), device)));
    m_send->setRange(1, static_cast<int>(list.size()));
    m_send->setValue(place + 1);
    m_sendOf->setText(tr("of %1").arg(list.size()));
}

void Inspector::applySend()
{
    int device = -1;
    const std::optional<Transfer> transfer = m_timeline.selectedTransfer(&device);
    if (!transfer || !m_document.prediction())
        return;
    const Program& program = m_document.prediction()->program;
    const bool gathers = transfer->isGatherForReader();
    const int from =
        gathers ? placeOfGather(program, device, *transfer) : placeIn(transfersOf(program, device), *transfer);
    const int wanted = m_send->value() - 1;
    if (from < 0 || from == wanted)
        return;
    const Diagnostics faults = gathers ? m_document.apply(MoveGather{transfer->producer, std::nullopt, wanted - from})
                                       : m_document.apply(MoveTransfer{device, from, wanted});
    if (hasErrors(faults)) {
        report(faults);
        refreshSend();
    }
}

void Inspector::refreshPin()
{
    const std::vector<Pin>& pins = m_document.design().schedule.pins;
    const auto pin =
        std::find_if(pins.begin(), pins.end(), [this](const Pin& each) { return m_block && each.block == *m_block; });
    m_pin->setTime(pin == pins.end() ? std::nullopt : std::optional(pin->earliestStart));
}

void Inspector::applyPin(std::optional<Nanoseconds> wanted)
{
    if (!m_block)
        return;
    const Diagnostics faults = m_document.apply(PinBlock{*m_block, wanted.value_or(0)});
    refreshPin(); // the same time may have been typed in another form
    report(faults);
}

void Inspector::report(const Diagnostics& diagnostics)
{
    refreshPlace();
    m_remedy->withdraw();
    m_fault->setVisible(hasErrors(diagnostics));
    if (!hasErrors(diagnostics))
        return;
    QString hint;
    const QString what = explain(diagnostics, &hint);
    m_fault->setText(hint.isEmpty() ? what : QStringLiteral("%1 (%2)").arg(what, hint));
    setTone(m_fault, Tone::Bad);
}

} // namespace pipewright

#include "moc_inspector.cpp"
