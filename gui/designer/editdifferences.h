// SPDX-License-Identifier: GPL-3.0-or-later
// Effect of the last edit, or of the drop during a drag, on makespan, bubble, peak memory and transfers. Numbers are
// kept per index of the undo stack, so undo and redo show the differences of each edit.
#pragma once

#include "core/predict/peakchange.h"
#include "gui/document/document.h"
#include "gui/widgets/factlist.h"

#include <QWidget>

#include <optional>

class QLabel;

namespace pipewright {

class EditDifferences : public QWidget {
    Q_OBJECT

public:
    explicit EditDifferences(Document& document, QWidget* parent = nullptr);

    /// A drag in progress, and its prediction, or null when there is none.
    void setPreview(bool dragging, const Prediction* preview);
    const FactList& facts() const { return *m_facts; }
    /// The same as numbers, new minus old: makespans relative to the old one, the bubble as a difference of shares.
    /// Nullopt without an edit, or when blocks are unplaced before or after it, as the numbers are then not comparable.
    struct Changes {
        double makespan = 0, bubble = 0;
        double members = 0; ///< makespan of the groups' members; 0 while not known
        Bytes peak = 0;     ///< of the fullest device; 0 while not known
    };
    const std::optional<Changes>& changes() const { return m_changes; }

Q_SIGNALS:
    void changed();

private:
    struct Numbers {
        Nanoseconds makespan = 0;
        std::optional<Nanoseconds> members; ///< makespan of the groups' members; none: no groups, or not known yet
        double bubble = 0;
        std::vector<Bytes> peaks; ///< per device; empty: not known yet
        std::int64_t transfers = 0;
        bool complete = true; ///< every block has its place
    };
    Numbers numbersOf(const Prediction& prediction) const; ///< of the current blocks in any order
    Fact peakFact(const PeakChange& change, Bytes ofFullest, const QString& source, Tone tone) const;
    void remember();
    void takeMemory();
    void refresh();

    Document& m_document;
    std::vector<std::optional<Numbers>> m_history; ///< per index of the undo stack
    std::size_t m_lastIndex = 0;
    std::optional<Changes> m_changes;
    bool m_dragging = false;
    const Prediction* m_preview = nullptr;
    QLabel* m_heading;
    QLabel* m_name;
    FactList* m_facts;
};

} // namespace pipewright
