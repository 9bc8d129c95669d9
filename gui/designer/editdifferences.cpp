// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/designer/editdifferences.h"

#include "gui/widgets/layouts.h"
#include "gui/widgets/words.h"

#include <QLabel>

#include <cstdlib>

namespace pipewright {

namespace {

Tone lessIsGood(double difference)
{
    return difference < 0 ? Tone::Good : difference > 0 ? Tone::Bad : Tone::Dim;
}

} // namespace

EditDifferences::EditDifferences(Document& document, const Baseline& baseline, QWidget* parent)
    : QWidget(parent), m_document(document), m_baseline(baseline), m_heading(makeHeading(tr("Last edit"), this)),
      m_name(makeCaption({}, TextSize::Small, this)), m_facts(new FactList(this))
{
    setAccessibleName(tr("Differences made by the last edit"));
    m_name->setWordWrap(true);
    auto* layout = makeLayout<QVBoxLayout>(this, {0, 0, 0, 0}, 10);
    layout->addWidget(m_heading);
    layout->addWidget(m_name);
    layout->addWidget(m_facts);
    connect(&m_baseline, &Baseline::changed, this, &EditDifferences::refresh);
    refresh();
}

/// Of the device whose peak changes most; the fullest one's change is said beside it.
Fact EditDifferences::peakFact(const PeakChange& change, Bytes ofFullest, const QString& source, Tone tone) const
{
    if (change.device < 0)
        return {tr("peak memory"), signedSize(0), source, tone};
    return {tr("peak memory"),
            tr("%1 on %2").arg(signedSize(change.difference), deviceLabel(m_document.design(), change.device)),
            source
                + tr(": the device whose peak changes most. The fullest device's peak: %1").arg(signedSize(ofFullest)),
            tone};
}

Fact EditDifferences::unknownPeak(const Baseline::Pair& pair) const
{
    const PendingMemory pending = m_baseline.isPreviewing() && pair.after.peaks.empty()
                                      ? pendingUntilDrop()
                                      : m_document.pendingMemory().value_or(PendingMemory{
                                          QStringLiteral("–"), tr("It was not worked out yet when the edit was made")});
    return {tr("peak memory"), pending.words, pending.why, Tone::Dim};
}

void EditDifferences::showNothing()
{
    if (m_baseline.isDragging()) {
        // Rows keep their positions, since legal and illegal places alternate during a drag.
        const QString dash = QStringLiteral("–"), source = tr("Nothing would change, or it cannot be dropped here");
        std::vector<Fact> facts;
        for (const QString& name : {tr("makespan"), tr("members"), tr("bubble"), tr("peak memory"), tr("transfers")})
            if (name != tr("members") || (m_document.prediction() && m_document.prediction()->memoryOfMembers))
                facts.push_back({name, dash, source, Tone::Dim});
        m_facts->setFacts(facts);
        m_name->setText(tr("if dropped here"));
    } else {
        m_facts->setFacts({});
        m_name->setText(m_document.undoStack()->index() > 0
                            ? tr("No numbers: the schedule cannot run before or after it.")
                            : tr("Drag a block, or Alt+←/→ on the selected one, to see what it changes."));
    }
    m_name->show();
}

void EditDifferences::refresh()
{
    const std::optional<Baseline::Pair> pair = m_baseline.lastEdit();
    if (!pair)
        return showNothing();
    const StepNumbers &before = pair->before, &after = pair->after;
    const bool preview = m_baseline.isPreviewing();
    m_name->setText(preview ? tr("if dropped here") : m_document.undoStack()->undoText());
    m_name->setVisible(!m_name->text().isEmpty());
    const QString source = preview ? tr("Predicted, if dropped now, against the present state")
                                   : tr("Predicted, against the state before the edit");
    const auto shareOf = [](Nanoseconds old, Nanoseconds now) { return old > 0 ? double(now - old) / double(old) : 0; };
    // With different blocks the amount of work differs, so numbers are not comparable.
    const bool comparable = pair->comparable();
    const auto tone = [comparable](double difference) { return comparable ? lessIsGood(difference) : Tone::Dim; };
    const double makespan = shareOf(before.makespan, after.makespan);
    std::vector<Fact> facts{{tr("makespan"), signedPercent(makespan), source, tone(makespan)}};
    if (before.members && after.members) {
        const double members = shareOf(*before.members, *after.members);
        facts.push_back({tr("members"), signedPercent(members),
                         source + tr(": the makespan of what the members of the groups run"), tone(members)});
    }
    const double bubble = after.bubble - before.bubble;
    facts.push_back({tr("bubble"), signedPoints(bubble), source, tone(bubble)});
    if (before.peaks.empty() || after.peaks.empty()) {
        facts.push_back(unknownPeak(*pair));
    } else {
        const PeakChange most = peakChange(before.peaks, after.peaks);
        facts.push_back(
            peakFact(most, after.highestPeak() - before.highestPeak(), source, tone(double(most.difference))));
    }
    const std::int64_t transfers = after.transfers - before.transfers;
    facts.push_back({tr("transfers"),
                     transfers == 0
                         ? tr("unchanged")
                         : QStringLiteral("%1%2").arg(transfers > 0 ? "+" : "\u2212").arg(std::abs(transfers)),
                     source, tone(double(transfers))});
    m_facts->setFacts(facts);
}

} // namespace pipewright

#include "moc_editdifferences.cpp"
