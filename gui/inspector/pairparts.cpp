// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/inspector/pairparts.h"

#include "gui/inspector/partrows.h"
#include "gui/widgets/labels.h"
#include "gui/widgets/layouts.h"
#include "gui/widgets/words.h"

#include <QPushButton>

#include <algorithm>

namespace pipewright {

PairParts::PairParts(Document& document, QWidget* parent)
    : QWidget(parent), m_document(document), m_heading(makeHeading({}, this)), m_text(new Paragraph(this)),
      m_part(new Paragraph(this)), m_rows(new PartRows(this)), m_forget(new QPushButton(tr("Shortest order"), this))
{
    for (QLabel* label : {m_text, m_part})
        label->setWordWrap(true);
    m_part->setFont(Theme::words(TextSize::Small));
    setTone(m_part, Tone::Dim);
    m_forget->setToolTip(tr("Forgets the stated order of this pair's parts: the shortest is then found again"));
    auto* layout = makeLayout<QVBoxLayout>(this, {0, 0, 0, 0}, 6);
    layout->addWidget(m_heading);
    layout->addWidget(m_text);
    layout->addWidget(m_rows);
    layout->addWidget(m_part);
    layout->addWidget(m_forget, 0, Qt::AlignLeft);
    connect(m_rows, &PartRows::changed, this, &PairParts::showLength);
    connect(m_rows, &PartRows::ordered, this, &PairParts::state);
    connect(m_forget, &QPushButton::clicked, this, [this] { state({}); });
    connect(&document, &Document::selectionChanged, this, &PairParts::refresh);
    connect(&document, &Document::designChanged, this, &PairParts::refresh);
    refresh();
}

QString PairParts::lengthText() const
{
    return m_text->text();
}

void PairParts::state(const PartSequence& order)
{
    if (m_pair)
        m_document.apply(OrderParts{*m_pair, order});
}

void PairParts::refresh()
{
    const Schedule& schedule = m_document.design().schedule;
    const std::optional<Block> selected = m_document.selection();
    const auto pair = std::find_if(schedule.overlaps.begin(), schedule.overlaps.end(), [&](const Overlap& each) {
        return selected && (each.first == *selected || each.second == *selected);
    });
    m_pair = pair == schedule.overlaps.end() || !m_document.prediction() ? std::nullopt : std::optional(*pair);
    setVisible(m_pair.has_value());
    if (!m_pair)
        return;
    const Costs& costs = m_document.design().costs;
    const auto timeOf = [&costs](const Block& block) {
        return costs.duration(block.op, block.stage, block.microbatch);
    };
    const PartSequence* stated = statedPartOrder(schedule, *m_pair);
    PairTimes times(costs);
    PairTimes::Plan plan = times.plan(m_pair->first, m_pair->second, stated);
    m_apart = timeOf(m_pair->first) + timeOf(m_pair->second);
    m_length = plan.length;
    m_shortest = plan.shortest;
    m_least = plan.least;
    m_stated = stated != nullptr;
    m_computed = plan.isComputed();
    m_heading->setText(tr("%1 and %2 together · predicted").arg(blockText(m_pair->first), blockText(m_pair->second)));
    if (m_computed)
        m_rows->showPair(*m_pair, std::move(plan));
    for (QWidget* part : {static_cast<QWidget*>(m_rows), static_cast<QWidget*>(m_part)})
        part->setVisible(m_computed);
    m_forget->setVisible(m_stated);
    showLength();
}

void PairParts::showLength()
{
    if (!m_computed) {
        m_text->setText(tr("%1, assumed: %2 times the %3 of one behind the other. With parts in the costs it is "
                           "computed.")
                            .arg(durationText(m_length))
                            .arg(m_document.design().costs.overlapFactor)
                            .arg(durationText(m_apart)));
        return;
    }
    const Nanoseconds length = m_rows->length();
    QString text =
        tr("%1, computed from their parts; %2 one behind the other.").arg(durationText(length), durationText(m_apart));
    if (m_rows->isDragging() && length != m_length)
        text += tr(" When dropped: %1 %2.")
                    .arg(durationText(std::abs(length - m_length)), length < m_length ? tr("shorter") : tr("longer"));
    else if (m_stated)
        text += m_length > m_shortest ? tr(" In a stated order; the shortest takes %1.").arg(durationText(m_shortest))
                                      : tr(" In a stated order, as short as any.");
    else if (m_length > m_least)
        text += tr(" The shortest order that was found; none takes less than %1.").arg(durationText(m_least));
    else
        text += tr(" No order is shorter.");
    m_text->setText(text);
    const auto chosen = m_rows->chosen();
    m_part->setText(chosen
                        ? m_rows->describe(*chosen)
                        : tr("Drag a part before or behind parts of the other block, or choose it and press Alt with "
                             "an arrow key."));
}

} // namespace pipewright

#include "moc_pairparts.cpp"
