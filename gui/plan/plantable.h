// SPDX-License-Identifier: GPL-3.0-or-later
// The ranked list: a row per plan with its step, throughput, peak memory as a small bar stacked by kind, and what it
// is. While the search runs, rows have what is known of a plan as soon as it is predicted. The list is copied as text
// or as CSV.
#pragma once

#include "core/plan/plan.h"
#include "gui/widgets/valuetable.h"

#include <memory>
#include <vector>

namespace pipewright {

class PlanTable : public ValueTable {
    Q_OBJECT

public:
    explicit PlanTable(QWidget* parent = nullptr);

    enum Column {
        Rank,
        Step,
        OverBest,
        Median,
        P95,
        Tokens,
        Mfu,
        Peak,
        Degrees,
        Microbatches,
        Schedule,
        Memory,
        columns
    };

    /// The search's list. `noisy`: its steps were sampled under noise too.
    void setResult(std::shared_ptr<const PlanResult> result, bool noisy);
    /// Of a search under way: shortest step first, `onFrontier` for each.
    void setFound(const std::vector<PlanFound>& plans, const std::vector<bool>& onFrontier, bool noisy);
    int currentPlan() const { return currentRow(); } ///< -1: none
    void setCurrentPlan(int plan);

    QString asText() const; ///< columns separated by tabs, as spreadsheets take it
    QString asCsv() const;  ///< plain numbers: nanoseconds, bytes, shares; memory by kind
    /// Of the first device that is fullest; null while the search runs.
    const DeviceMemory* memoryOf(int plan) const;
    Bytes peakOf(int plan) const { return m_peaks[static_cast<std::size_t>(plan)]; }
    Bytes largestPeak() const { return m_largestPeak; }

Q_SIGNALS:
    void currentPlanChanged(int plan);
    void planActivated(int plan); ///< by Return or a double click

protected:
    void keyPressEvent(QKeyEvent* event) override;

private:
    void setNoisy(bool noisy);

    std::shared_ptr<const PlanResult> m_result; ///< null: of a search under way, or nothing
    std::vector<Bytes> m_peaks;                 ///< of the rows
    Bytes m_largestPeak = 0;
};

} // namespace pipewright
