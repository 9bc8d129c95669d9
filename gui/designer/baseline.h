// SPDX-License-Identifier: GPL-3.0-or-later
// What the window's numbers are compared with: the state before the last edit, the saved design, a schedule that was
// pinned, or the overlaid run. Numbers are kept per index of the undo stack, so undo and redo show the differences of
// each edit. Only numbers of the same model on the same cluster are compared.
#pragma once

#include "gui/document/document.h"

#include <QObject>

#include <optional>
#include <vector>

namespace pipewright {

/// What a step reaches, as predicted.
struct StepNumbers {
    Nanoseconds makespan = 0;
    std::optional<Nanoseconds> members;          ///< makespan of the groups' members; none: no groups, or not known yet
    double bubble = 0;                           ///< rate of the makespan
    std::vector<Bytes> peaks;                    ///< per device; empty: not known yet
    std::vector<Nanoseconds> idle;               ///< per device
    double tokensPerSecond = 0, utilization = 0; ///< 0: not known
    bool complete = true;                        ///< every block has its place
    int workload = 0;                            ///< states with the same number have the same model and cluster

    Bytes highestPeak() const; ///< of the fullest device; 0 while not known
};

class Baseline : public QObject {
    Q_OBJECT

public:
    enum class Against { LastEdit, Saved, Pinned, Run };
    explicit Baseline(Document& document, QObject* parent = nullptr);

    /// The chosen one. Without it, or before one was chosen, the run where its numbers are shown, else the last edit.
    Against against() const;
    void setAgainst(Against against);
    bool has(Against against) const;
    QString name(Against against) const; ///< "last edit", "saved", "ZB-H1 (pinned)", "the run"
    void pin();                          ///< the present numbers, by the schedule's name; compares with them

    /// A drag in progress, and its prediction, or null when there is none. It is compared with the present state.
    void setPreview(bool dragging, const Prediction* preview);
    bool isDragging() const { return m_dragging; }
    bool isPreviewing() const { return m_preview != nullptr; }

    /// Two states; nullopt: there are none, or one of them cannot run.
    struct Pair {
        StepNumbers before, after;
        /// Every block has its place in both, and model and cluster are the same.
        bool comparable() const;
    };
    std::optional<Pair> lastEdit() const; ///< or of the drag

    /// New minus old; nullopt where there is nothing to compare with. `makespan` and `throughput` as shares of the old,
    /// bubble and MFU as differences of shares. Against the run: measured minus predicted.
    struct Changes {
        double makespan = 0, bubble = 0, throughput = 0, utilization = 0;
        double members = 0; ///< makespan of the groups' members; 0 while not known
        Bytes peak = 0;     ///< of the fullest device; 0 while not known
    };
    std::optional<Changes> changes() const; ///< against the chosen one, or of the drag

Q_SIGNALS:
    void changed();

private:
    StepNumbers numbersOf(const Prediction& prediction, const Design& design) const;
    std::optional<StepNumbers> present() const;
    std::optional<Changes> ofRun() const;
    int workloadOf(const Design& design) const;
    void remember();
    void takeMemory();

    Document& m_document;
    std::vector<std::optional<StepNumbers>> m_history; ///< per index of the undo stack
    std::size_t m_lastIndex = 0;
    std::optional<StepNumbers> m_saved, m_pinned;
    QString m_pinnedName;
    mutable std::vector<std::shared_ptr<const Design>> m_workloads; ///< one design of each model and cluster
    std::optional<Against> m_chosen;
    bool m_dragging = false;
    const Prediction* m_preview = nullptr;
};

} // namespace pipewright
