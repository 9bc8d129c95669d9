// SPDX-License-Identifier: GPL-3.0-or-later
// Starts one background search after a short delay and drops results of older generations. Painting cards is O(cards).
#include "gui/inspector/suggestionlist.h"

#include "core/families/family.h"
#include "gui/document/timelinelayout.h"
#include "gui/widgets/labels.h"
#include "gui/widgets/themechange.h"
#include "gui/widgets/words.h"

#include <QApplication>
#include <QFrame>
#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>
#include <QVBoxLayout>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>
#include <vector>

namespace pipewright {

namespace {

// Avoids a search per block while a key is held down.
constexpr int delayMilliseconds = 80;
// Smaller gains are not worth a switch of family.
constexpr double leastFamilyGain = 0.001;
// An edit that does less for the step and for the peak, and does not shorten the wait, is not worth a card.
constexpr double leastStepGain = 0.0005; // which would be written as 0.0 %
constexpr double leastPeakGain = 0.005;

/// "+1 ×", "−0.5 ×".
QString signedMultiple(double value)
{
    const double rounded = std::round(std::fabs(value) * 10) / 10;
    return (value < 0 ? QStringLiteral("\u2212") : QStringLiteral("+")) + QString::number(rounded, 'g', 6)
           + QStringLiteral("\u00a0×");
}

/// For a design whose groups run member by member: the change of the highest peak of a member with each edit. Removes
/// edits with which the members would hang.
void takeMembersPeaks(const Design& design, MemberPredictor& members, std::vector<Suggestion>& found)
{
    if (found.empty() || !runsMemberByMember(design))
        return;
    const auto peakOf = [&members](const Design& of) {
        const Prediction prediction = members.predictPlaced(of, MemberPredictor::Patience::Any);
        const int fullest = fullestDevice(prediction.metrics);
        return prediction.memoryOfMembers && fullest >= 0 ? std::optional(prediction.metrics.devices[fullest].peakBytes)
                                                          : std::nullopt;
    };
    const std::optional<Bytes> before = peakOf(design);
    if (!before) // then no prices are shown
        return;
    std::erase_if(found, [&](Suggestion& suggestion) {
        Design edited = design;
        edited.schedule = suggestion.schedule;
        const std::optional<Bytes> after = peakOf(edited);
        suggestion.peakBytes = after.value_or(*before) - *before;
        return !after;
    });
}

/// Idle time of the device directly before a block; nothing where it is not predicted.
std::optional<Nanoseconds> waitBefore(const Design& design, const Block& block)
{
    try {
        const Prediction prediction = predictPlaced(design);
        const TimelineLayout layout(prediction.program, prediction.timeline, design.schedule.devices());
        const auto place = layout.find(block);
        if (!place)
            return std::nullopt;
        const std::vector<LaneBlock>& blocks = layout.lanes()[place->device].blocks();
        return blocks[place->index].start - (place->index > 0 ? blocks[place->index - 1].end : 0);
    } catch (const Error&) {
        return std::nullopt; // its blocks cannot run
    }
}

QString bytesText(Bytes bytes, Bytes largest)
{
    const QString text = signedSize(bytes, largest);
    // In the unit of the largest, GiB for example, a few KiB are shown as 0.
    const bool nothing = std::none_of(text.cbegin(), text.cend(),
                                      [](QChar c) { return c >= QLatin1Char('1') && c <= QLatin1Char('9'); });
    return SuggestionList::tr("peak %1").arg(nothing ? QStringLiteral("±0") : text);
}

QString activationsText(double activations)
{
    return SuggestionList::tr("peak %1").arg(std::fabs(activations) < 0.05 ? QStringLiteral("±0")
                                                                           : signedMultiple(activations));
}

QString stepText(double share)
{
    return SuggestionList::tr("step %1").arg(share == 0 ? QStringLiteral("±0") : signedPercent(share));
}

double share(Nanoseconds difference, Nanoseconds of)
{
    return of > 0 ? static_cast<double>(difference) / static_cast<double>(of) : 0;
}

} // namespace

QString suggestionText(const Design& design, const Suggestion& suggestion)
{
    if (suggestion.moves.empty()) {
        std::vector<int> held; // stages that are freed in the design
        for (int stage = 0; stage < design.schedule.stages(); ++stage)
            if (design.schedule.zero.reshard.of(stage) && !suggestion.schedule.zero.reshard.of(stage))
                held.push_back(stage);
        return held.size() == 1 ? SuggestionList::tr("Hold the gathered parameters of stage %1").arg(held.front())
                                : SuggestionList::tr("Hold the gathered parameters of all stages");
    }
    const BlockMove& first = suggestion.moves.front();
    const QString text =
        SuggestionList::tr("Move %1 %2 %3 on %4")
            .arg(blockText(first.block), first.before ? SuggestionList::tr("before") : SuggestionList::tr("behind"),
                 blockText(first.neighbour), deviceLabel(design, first.device));
    const auto more = static_cast<int>(suggestion.moves.size()) - 1;
    if (more == 0)
        return text;
    return text
           + (more == 1 ? SuggestionList::tr(" and 1 more move") : SuggestionList::tr(" and %1 more moves").arg(more));
}

SuggestionList::SuggestionList(Document& document, QWidget* parent)
    : QWidget(parent), m_document(document), m_layout(new QVBoxLayout(this)),
      m_nothing(makeCaption({}, TextSize::Small, this))
{
    onThemeChange(this, [this] { rebuild(); });
    setAccessibleName(tr("Suggested edits"));
    m_layout->setContentsMargins(0, 0, 0, 0);
    m_layout->setSpacing(6);
    m_nothing->setWordWrap(true);
    m_layout->addWidget(m_nothing);
    m_delay.setSingleShot(true);
    m_delay.setInterval(delayMilliseconds);
    connect(&m_delay, &QTimer::timeout, this, &SuggestionList::search);
    connect(&m_document, &Document::selectionChanged, this, &SuggestionList::restart);
    connect(&m_document, &Document::designChanged, this, &SuggestionList::restart);
    connect(&m_document, &Document::memoryChanged, this, &SuggestionList::rebuild);
    restart();
}

void SuggestionList::setEstimates(const std::vector<std::optional<FamilyEstimate>>& estimates)
{
    m_estimates = estimates;
    rebuild();
}

void SuggestionList::restart()
{
    m_work.drop();
    m_suggestions.clear();
    m_searching = m_document.prediction() && m_document.selection();
    if (m_searching)
        m_delay.start();
    else
        m_delay.stop();
    rebuild();
}

void SuggestionList::search()
{
    if (!m_document.selection())
        return;
    m_work.start(
        [design = m_document.design(), block = *m_document.selection(),
         members = m_document.memberPredictor()](const auto& outdated) {
            std::vector<Suggestion> found = suggestEdits(design, block, {}, outdated);
            takeMembersPeaks(design, *members, found);
            return withWaits(std::move(found), design, block);
        },
        [this](std::vector<Found> found) { show(std::move(found)); });
}

/// Those first that shorten the wait which the panel explains.
std::vector<SuggestionList::Found> SuggestionList::withWaits(std::vector<Suggestion> edits, const Design& design,
                                                             const Block& block)
{
    std::vector<Found> found;
    const std::optional<Nanoseconds> before = edits.empty() ? std::nullopt : waitBefore(design, block);
    for (Suggestion& each : edits) {
        Design edited = design;
        edited.schedule = each.schedule;
        const std::optional<Nanoseconds> after = before ? waitBefore(edited, block) : std::nullopt;
        found.push_back({std::move(each), after ? *after - *before : 0});
    }
    std::stable_partition(found.begin(), found.end(), [](const Found& each) { return each.wait < 0; });
    return found;
}

void SuggestionList::show(std::vector<Found> suggestions)
{
    m_searching = false;
    m_suggestions = std::move(suggestions);
    rebuild();
    Q_EMIT searched();
}

void SuggestionList::rebuild()
{
    makeCards();
    showCards();
    m_nothing->setVisible(m_document.selection() && m_document.prediction() && m_cards.empty());
    m_nothing->setText(m_searching ? tr("Looking for edits that help …")
                                   : tr("No move nearby shortens the step or lowers its memory peak."));
}

/// The shortest of the other families that fit the device memory; null if it gains too little or blocks are unplaced.
const FamilyEstimate* SuggestionList::betterFamily(Nanoseconds makespan) const
{
    const Design& design = m_document.design();
    const FamilyEstimate* best = nullptr;
    for (const std::optional<FamilyEstimate>& estimate : m_estimates) {
        if (!estimate || !estimate->possible || families()[estimate->family].name == design.schedule.family)
            continue;
        const auto& devices = design.cluster.devices;
        const bool fits = devices.empty() || devices.front().memory <= 0
                          || (estimate->peakBytes && *estimate->peakBytes <= devices.front().memory);
        if (fits && (!best || estimate->makespan < best->makespan))
            best = &*estimate;
    }
    const bool complete = m_document.unplaced().empty();
    return complete && best && share(best->makespan - makespan, makespan) <= -leastFamilyGain ? best : nullptr;
}

void SuggestionList::makeCards()
{
    m_cards.clear();
    const Prediction* prediction = m_document.prediction();
    if (!prediction || !m_document.selection())
        return;
    const Nanoseconds makespan = prediction->metrics.makespan;
    Bytes bytes = 0;
    double activations = 0;
    for (const DeviceMetrics& device : prediction->metrics.devices) {
        bytes = std::max(bytes, device.peakBytes);
        activations = std::max(activations, device.peakActivations);
    }
    const auto isWorthIt = [&](const Found& found) {
        const Suggestion& edit = found.edit;
        const double saved = bytes > 0         ? share(-edit.peakBytes, bytes)
                             : activations > 0 ? -edit.peakActivations / activations
                                               : 0;
        return found.wait < 0 || share(edit.makespan, makespan) <= -leastStepGain || saved >= leastPeakGain;
    };
    std::vector<std::pair<double, Bytes>> peaks; // activations and bytes of each card
    for (const Found& found : m_suggestions) {
        if (!isWorthIt(found))
            continue;
        Card card;
        card.text = suggestionText(m_document.design(), found.edit);
        card.gain = stepText(share(found.edit.makespan, makespan));
        if (found.wait < 0)
            card.wait = tr("this wait %1").arg(signedDuration(found.wait));
        peaks.emplace_back(found.edit.peakActivations, found.edit.peakBytes);
        card.edit = found.edit;
        m_cards.push_back(std::move(card));
    }
    if (const FamilyEstimate* best = betterFamily(makespan)) {
        const std::string_view title = families()[best->family].title;
        Card card;
        card.text = tr("Switch to %1").arg(QString::fromUtf8(title));
        card.gain = stepText(share(best->makespan - makespan, makespan));
        peaks.emplace_back(best->activations - activations, best->peakBytes.value_or(bytes) - bytes);
        card.family = best->family;
        m_cards.push_back(std::move(card));
    }
    // In bytes where the design knows sizes, else in microbatches; one unit for all cards.
    const bool sized = bytes > 0, unknown = m_document.pendingMemory().has_value();
    Bytes largest = 0;
    for (const auto& [ofActivations, ofBytes] : peaks)
        largest = std::max(largest, std::abs(ofBytes));
    for (std::size_t i = 0; i < m_cards.size(); ++i) {
        m_cards[i].price = sized ? bytesText(peaks[i].second, largest) : activationsText(peaks[i].first);
        m_cards[i].exactPrice = sized ? signedSize(peaks[i].second) : signedMultiple(peaks[i].first);
        if (sized && unknown)
            m_cards[i].price = m_cards[i].exactPrice = QStringLiteral("–");
    }
}

void SuggestionList::showCards()
{
    // The keyboard focus stays in the list while its cards change; without cards the list itself has it.
    const QWidget* const focused = QApplication::focusWidget();
    const auto at = std::find(m_buttons.begin(), m_buttons.end(), focused);
    if (at != m_buttons.end())
        m_focused = at - m_buttons.begin();
    const bool keepsFocus = at != m_buttons.end() || focused == this;
    if (keepsFocus)
        setFocus(Qt::OtherFocusReason);
    // Deleted later, as the pressed button may be among them.
    for (QWidget* frame : m_frames) {
        frame->hide();
        frame->deleteLater();
    }
    m_frames.clear();
    m_buttons.clear();
    for (std::size_t i = 0; i < m_cards.size(); ++i)
        addFrame(i);
    if (keepsFocus && !m_buttons.empty())
        m_buttons[std::min(m_focused, m_buttons.size() - 1)]->setFocus(Qt::OtherFocusReason);
}

void SuggestionList::addFrame(std::size_t i)
{
    const Card& card = m_cards[i];
    auto* frame = new QFrame(this);
    frame->setObjectName(QStringLiteral("suggestion"));
    const Theme& theme = Theme::of(*this);
    frame->setStyleSheet(QStringLiteral("QFrame#suggestion { background: %1; border: none; border-radius: %2px; }")
                             .arg(theme.control.name())
                             .arg(Theme::controlRadius));
    auto* text = new Paragraph(card.text, frame);
    text->setWordWrap(true);
    auto* gain = new QLabel(card.gain, frame);
    gain->setFont(Theme::numbers(TextSize::Small));
    setTone(gain, card.gain.contains(QChar(0x2212)) ? Tone::Good : Tone::Dim); // a minus sign
    auto* price = new QLabel(card.price, frame);
    price->setFont(Theme::numbers(TextSize::Small));
    setTone(price, card.price.contains(QChar(0x2212)) ? Tone::Good : Tone::Dim);
    gain->setToolTip(tr("Predicted change of the makespan"));
    price->setToolTip(tr("Predicted change of the highest memory peak, in microbatches on one device or in bytes: %1")
                          .arg(card.exactPrice));
    auto* button = new QPushButton(tr("Try"), frame);
    button->setFlat(true);
    button->setCursor(Qt::PointingHandCursor);
    button->setStyleSheet(QStringLiteral("QPushButton { color: %1; background: transparent; border: 1px solid "
                                         "transparent; border-radius: %2px; padding: 2px 6px; font-weight: 600; }"
                                         "QPushButton:hover, QPushButton:focus { border-color: %1; }")
                              .arg(theme.accent.name())
                              .arg(Theme::controlRadius));
    button->setToolTip(tr("Make this edit; undo takes it back"));
    button->setAccessibleName(tr("Try: %1").arg(card.text));
    button->setAccessibleDescription(QStringList{card.wait, card.gain, card.price}.join(QLatin1Char(' ')).trimmed());
    connect(button, &QPushButton::clicked, this, [this, i] { take(i); });

    auto* numbers = new QHBoxLayout;
    numbers->setSpacing(7);
    numbers->addWidget(gain);
    numbers->addWidget(price);
    numbers->addStretch(1);
    numbers->addWidget(button);
    auto* words = new QVBoxLayout(frame); // the sentence has the card's whole width, also in a narrow panel
    words->setContentsMargins(10, 7, 4, 5);
    words->setSpacing(1);
    words->addWidget(text);
    if (!card.wait.isEmpty()) {
        auto* wait = new QLabel(card.wait, frame);
        wait->setFont(Theme::numbers(TextSize::Small));
        setTone(wait, Tone::Good);
        wait->setToolTip(tr("Predicted change of the idle time before the selected block"));
        words->addWidget(wait);
    }
    words->addLayout(numbers);
    m_layout->addWidget(frame);
    frame->show();
    m_frames.push_back(frame);
    m_buttons.push_back(button);
}

void SuggestionList::take(std::size_t card)
{
    if (card >= m_cards.size())
        return;
    const Card chosen = m_cards[card]; // a copy: the edit rebuilds the cards
    if (chosen.family) {
        Q_EMIT familyChosen(*chosen.family);
        return;
    }
    Design design = m_document.design();
    design.schedule = chosen.edit->schedule;
    m_document.replaceDesign(std::move(design), chosen.text);
}

} // namespace pipewright

#include "moc_suggestionlist.cpp"
