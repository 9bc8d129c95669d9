// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/inspector/tray.h"

#include "core/schedule/edits.h"
#include "gui/inspector/blockchip.h"
#include "gui/widgets/labels.h"
#include "gui/widgets/layouts.h"

#include <QAction>
#include <QPushButton>

namespace pipewright {

Tray::Tray(Document& document, QWidget* parent)
    : QWidget(parent), m_document(document), m_count(makeCaption({}, TextSize::Small, this)),
      m_hint(makeCaption({}, TextSize::Small, this)), m_chipArea(new QWidget(this)),
      m_complete(new QPushButton(tr("Complete the rest"), this))
{
    setAccessibleName(tr("Tray of unplaced blocks"));
    m_hint->setWordWrap(true);
    m_count->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
    m_complete->setToolTip(tr("Places every unplaced block in the style of the placed ones: as the family that they "
                              "begin, or with as many microbatches "
                              "in flight as they have (Ctrl+P)"));

    auto* chips = makeLayout<QGridLayout>(m_chipArea, {0, 0, 0, 0}, 8);
    chips->setColumnStretch(columns, 1);
    auto* completeAll = new QAction(m_complete->text(), this);
    connect(completeAll, &QAction::triggered, m_complete, &QPushButton::click);
    for (int i = 0; i < shownChips; ++i) {
        auto* chip = new BlockChip({}, m_chipArea);
        chip->setDraggable(true);
        chips->addWidget(chip, i / columns, i % columns);
        connect(chip, &BlockChip::activated, this, &Tray::place);
        connect(chip, &BlockChip::chosen, this, [this](const Block& block) { m_document.select(block); });
        auto* placeIt = new QAction(tr("Place it at the first legal position"), chip);
        connect(placeIt, &QAction::triggered, this, [this, chip] { place(chip->block()); });
        chip->addActions({placeIt, completeAll});
        chip->setContextMenuPolicy(Qt::ActionsContextMenu);
        m_chips.push_back(chip);
    }

    auto* header = new QHBoxLayout;
    header->addWidget(makeHeading(tr("Tray"), this));
    header->addWidget(m_count);
    auto* layout = makeLayout<QVBoxLayout>(this, {0, 0, 0, 0}, 10);
    layout->addLayout(header);
    layout->addWidget(m_chipArea);
    layout->addWidget(m_hint);
    layout->addWidget(m_complete);

    connect(m_complete, &QPushButton::clicked, this, [this] {
        if (const Diagnostics faults = placeAll(); hasErrors(faults))
            Q_EMIT refused(faults);
    });
    connect(&m_document, &Document::designChanged, this, &Tray::refresh);
    refresh();
}

void Tray::refresh()
{
    m_unplaced = m_document.unplaced();
    const int count = static_cast<int>(m_unplaced.size());
    m_count->setText(count == 0 ? tr("all placed") : tr("%1 unplaced").arg(count));
    m_chipArea->setVisible(count > 0);
    m_complete->setVisible(count > 0);
    for (int i = 0; i < shownChips; ++i) {
        BlockChip* chip = m_chips[i];
        chip->setVisible(i < count);
        if (i < count)
            chip->setBlock(m_unplaced[i]);
    }
    if (count == 0)
        m_hint->setText(tr("Every block has its place. Delete takes the selected one out."));
    else if (count > shownChips)
        m_hint->setText(
            tr("and %1 more. Drag into a lane, or press N to place the next legal one.").arg(count - shownChips));
    else
        m_hint->setText(tr("Drag into a lane, or press N to place the next legal one."));
}

void Tray::place(Block block)
{
    Diagnostics faults;
    const int index = firstLegalIndex(m_document.design().schedule, block, &faults);
    if (index >= 0)
        faults = m_document.apply(PlaceBlock{block, index});
    if (hasErrors(faults) || index < 0)
        Q_EMIT refused(faults);
    else
        m_document.select(block);
}

Diagnostics Tray::placeNext()
{
    Diagnostics firstFault;
    for (const Block& block : std::vector<Block>(m_unplaced)) {
        Diagnostics faults;
        const int index = firstLegalIndex(m_document.design().schedule, block, &faults);
        if (index >= 0)
            faults = m_document.apply(PlaceBlock{block, index});
        if (index >= 0 && !hasErrors(faults)) {
            m_document.select(block);
            return {};
        }
        if (firstFault.empty())
            firstFault = faults;
    }
    return firstFault;
}

Diagnostics Tray::placeAll()
{
    return m_document.apply(CompleteSchedule{});
}

} // namespace pipewright

#include "moc_tray.cpp"
