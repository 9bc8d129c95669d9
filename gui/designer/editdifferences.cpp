// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/designer/editdifferences.h"

#include "gui/widgets/layouts.h"
#include "gui/widgets/words.h"

#include <QLabel>

#include <algorithm>

namespace pipewright {

namespace {

Fact unknownPeak(const PendingMemory& pending)
{
    return {EditDifferences::tr("peak memory"), pending.words, pending.why, Tone::Dim};
}

Tone lessIsGood(double difference)
{
    return difference < 0 ? Tone::Good : difference > 0 ? Tone::Bad : Tone::Dim;
}

} // namespace

EditDifferences::EditDifferences(Document& document, QWidget* parent)
    : QWidget(parent), m_document(document), m_heading(makeHeading(tr("This edit"), this)),
      m_name(makeCaption({}, TextSize::Small, this)), m_facts(new FactList(this))
{
    setAccessibleName(tr("Differences made by this edit"));
    m_name->setWordWrap(true);
    auto* layout = makeLayout<QVBoxLayout>(this, {0, 0, 0, 0}, 10);
    layout->addWidget(m_heading);
    layout->addWidget(m_name);
    layout->addWidget(m_facts);
    // Edits, undo and redo change the stack's index; replacing the whole design changes the path.
    connect(m_document.undoStack(), &QUndoStack::indexChanged, this, &EditDifferences::remember);
    connect(&m_document, &Document::pathChanged, this, [this] {
        if (m_document.undoStack()->count() == 0)
            remember();
    });
    connect(&m_document, &Document::memoryChanged, this, &EditDifferences::takeMemory);
    connect(&m_document, &Document::designChanged, this, [this] {
        m_dragging = false;
        m_preview = nullptr;
    });
    remember();
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

EditDifferences::Numbers EditDifferences::numbersOf(const Prediction& prediction) const
{
    const Metrics& metrics = prediction.metrics;
    return {metrics.makespan,
            prediction.memoryOfMembers ? std::optional(prediction.membersMakespan) : std::nullopt,
            metrics.rateMakespan,
            isMemoryPending(m_document.design(), prediction) ? std::vector<Bytes>() : devicePeaks(metrics),
            prediction.transfers,
            m_document.unplaced().empty()};
}

void EditDifferences::remember()
{
    QUndoStack* stack = m_document.undoStack();
    const std::size_t index = stack->index();
    // At its limit the stack drops its oldest command, and every state moves down by one.
    if (index == m_lastIndex && index > 0 && stack->index() == stack->undoLimit() && !m_history.empty())
        m_history.erase(m_history.begin());
    if (m_history.size() < index + 1 || stack->count() == stack->index())
        m_history.resize(index + 1); // a new edit discards what could be redone
    m_lastIndex = index;
    m_history[index].reset();
    if (const Prediction* prediction = m_document.prediction())
        m_history[index] = numbersOf(*prediction);
    refresh();
}

/// Stores a peak memory that became known after the edit.
void EditDifferences::takeMemory()
{
    const std::size_t index = m_document.undoStack()->index();
    if (m_document.prediction() && index < m_history.size())
        m_history[index] = numbersOf(*m_document.prediction());
    refresh();
}

void EditDifferences::setPreview(bool dragging, const Prediction* preview)
{
    m_dragging = dragging;
    m_preview = preview;
    refresh();
}

void EditDifferences::refresh()
{
    const int index = m_document.undoStack()->index();
    std::optional<Numbers> before, after;
    if (m_preview) {
        if (m_document.prediction())
            before = numbersOf(*m_document.prediction());
        after = numbersOf(*m_preview);
    } else if (index > 0 && index < std::ssize(m_history)) {
        before = m_history[index - 1];
        after = m_history[index];
    }
    m_changes.reset();
    if (m_dragging && !m_preview) {
        // Rows keep their positions, since legal and illegal places alternate during a drag.
        const QString dash = QStringLiteral("–"), source = tr("Nothing would change, or it cannot be dropped here");
        std::vector<Fact> facts;
        for (const QString& name : {tr("makespan"), tr("members"), tr("bubble"), tr("peak memory"), tr("transfers")})
            if (name != tr("members") || (m_document.prediction() && m_document.prediction()->memoryOfMembers))
                facts.push_back({name, dash, source, Tone::Dim});
        m_facts->setFacts(facts);
        m_name->setText(tr("if dropped here"));
        m_name->show();
        Q_EMIT changed();
        return;
    }
    if (!before || !after) {
        m_facts->setFacts({});
        m_name->setText(index > 0 ? tr("No numbers: the schedule cannot run before or after it.")
                                  : tr("Drag a block, or Alt+←/→ on the selected one, to see what it changes."));
        m_name->show();
        Q_EMIT changed();
        return;
    }
    const QString text = m_document.undoStack()->undoText();
    m_name->setText(m_preview ? tr("if dropped here") : text);
    m_name->setVisible(!m_name->text().isEmpty());
    const QString source = m_preview ? tr("Predicted, if dropped now, against the present state")
                                     : tr("Predicted, against the state before the edit");
    const auto shareOf = [](Nanoseconds old, Nanoseconds now) { return old > 0 ? double(now - old) / double(old) : 0; };
    const double makespan = shareOf(before->makespan, after->makespan);
    const bool areMembersKnown = before->members && after->members;
    const double members = areMembersKnown ? shareOf(*before->members, *after->members) : 0;
    const bool known = !before->peaks.empty() && !after->peaks.empty();
    const auto fullest = [](const Numbers& numbers) {
        return *std::max_element(numbers.peaks.begin(), numbers.peaks.end());
    };
    const Bytes peak = known ? fullest(*after) - fullest(*before) : 0;
    const std::int64_t transfers = after->transfers - before->transfers;
    const double bubble = after->bubble - before->bubble;
    // With different blocks the amount of work differs, so numbers are not comparable.
    const bool comparable = before->complete && after->complete;
    if (comparable)
        m_changes = Changes{makespan, bubble, members, peak};
    const auto tone = [comparable](double difference) { return comparable ? lessIsGood(difference) : Tone::Dim; };
    std::vector<Fact> facts{{tr("makespan"), signedPercent(makespan), source, tone(makespan)}};
    if (areMembersKnown)
        facts.push_back({tr("members"), signedPercent(members),
                         source + tr(": the makespan of what the members of the groups run"), tone(members)});
    facts.push_back({tr("bubble"), signedPoints(bubble), source, tone(bubble)});
    if (known) {
        const PeakChange most = peakChange(before->peaks, after->peaks);
        facts.push_back(peakFact(most, peak, source, tone(double(most.difference))));
    } else {
        facts.push_back(
            unknownPeak(m_preview && after->peaks.empty()
                            ? pendingUntilDrop()
                            : m_document.pendingMemory().value_or(PendingMemory{
                                QStringLiteral("–"), tr("It was not worked out yet when the edit was made")})));
    }
    facts.push_back({tr("transfers"),
                     transfers == 0
                         ? tr("unchanged")
                         : QStringLiteral("%1%2").arg(transfers > 0 ? "+" : "\u2212").arg(std::abs(transfers)),
                     source, tone(double(transfers))});
    m_facts->setFacts(facts);
    Q_EMIT changed();
}

} // namespace pipewright

#include "moc_editdifferences.cpp"
