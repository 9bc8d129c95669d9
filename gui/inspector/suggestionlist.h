// SPDX-License-Identifier: GPL-3.0-or-later
// Suggested edits for the selected block: one card per edit with the predicted gain and a button that applies it as one
// undo step. The search runs in a background thread and restarts when the design or selection changes. A switch to a
// schedule family that shortens the step is offered last, from the family list's estimates.
#pragma once

#include "core/predict/suggestions.h"
#include "gui/document/document.h"
#include "gui/document/familyestimates.h"
#include "gui/widgets/latestwork.h"

#include <QTimer>
#include <QWidget>

class QLabel;
class QPushButton;
class QVBoxLayout;

namespace pipewright {

class SuggestionList : public QWidget {
    Q_OBJECT

public:
    explicit SuggestionList(Document& document, QWidget* parent = nullptr);

    struct Card {
        QString text;        ///< "Move W1.0 behind F1.1 on GPU 1"
        QString gain, price; ///< "step −2.1 %", "peak +5.30 GiB"; "±0" for no change. All cards use one unit
        QString exactPrice;  ///< "+5.3 GiB", in its own unit
        QString wait;        ///< "this wait −52 ms"; empty where it stays, or gets longer
        std::optional<Suggestion> edit;
        std::optional<std::size_t> family; ///< index into families() for a switch of family
    };
    const std::vector<Card>& cards() const { return m_cards; }
    QList<QPushButton*> tryButtons() const { return m_buttons; } ///< one per card
    bool isSearching() const { return m_searching; }

    /// Estimates of all families for the present design, by index into families(); absent ones are ignored.
    void setEstimates(const std::vector<std::optional<FamilyEstimate>>& estimates);
    void take(std::size_t card); ///< applies a card's edit

Q_SIGNALS:
    void familyChosen(std::size_t family);
    void searched(); ///< the result for the latest change is shown

private:
    void restart();
    void search();
    struct Found {
        Suggestion edit;
        Nanoseconds wait = 0; ///< change of the idle time before the selected block
    };
    static std::vector<Found> withWaits(std::vector<Suggestion> edits, const Design& design, const Block& block);
    void show(std::vector<Found> suggestions);
    void rebuild();
    const FamilyEstimate* betterFamily(Nanoseconds makespan) const;
    void makeCards();
    void showCards();
    void addFrame(std::size_t card);

    Document& m_document;
    std::vector<std::optional<FamilyEstimate>> m_estimates;
    std::vector<Found> m_suggestions;
    std::vector<Card> m_cards;
    QVBoxLayout* m_layout;
    QLabel* m_nothing;
    QList<QWidget*> m_frames;
    QList<QPushButton*> m_buttons;
    qsizetype m_focused = 0; ///< index of the button that had the focus last
    QTimer m_delay;
    bool m_searching = false;
    LatestWork m_work;
};

/// "Move F1.3 before I1.0 on GPU 1", with "and 2 more moves" when there are.
QString suggestionText(const Design& design, const Suggestion& suggestion);

} // namespace pipewright
