// SPDX-License-Identifier: GPL-3.0-or-later
// The five numbers that judge a schedule, below the bar: step, bubble, peak of the limit, throughput, MFU. Each has its
// unit, its definition and source as tooltip, and one difference, against the baseline that is chosen at the right;
// there too is the switch Predicted | Measured | Both.
#pragma once

#include "gui/designer/baseline.h"
#include "gui/widgets/labels.h"

#include <QWidget>

#include <array>

class QToolButton;

namespace pipewright {

class VerdictStrip : public QWidget {
    Q_OBJECT

public:
    enum Verdict { Step, Bubble, Peak, Throughput, Mfu };
    static constexpr int verdictCount = 5;

    VerdictStrip(Baseline& baseline, QWidget* sides, QWidget* parent);

    /// `complete`: every block is placed. Otherwise rates of a step are not shown. With an overlay the numbers are
    /// those of `side`, or pairs. `pending` is shown in place of a predicted peak that is not known.
    void showDesign(const Design& design, const Prediction* prediction, bool complete = true,
                    const Document::Overlay* overlay = nullptr, Side side = Side::Predicted,
                    const std::optional<PendingMemory>& pending = {});
    QString value(Verdict verdict) const { return m_cells[verdict].full; }
    QString change(Verdict verdict) const { return m_cells[verdict].changeText; } ///< empty where there is none
    QString caption(Verdict verdict) const;
    QString tip(Verdict verdict) const;

protected:
    void resizeEvent(QResizeEvent* event) override;

private:
    struct Cell {
        QWidget* slot = nullptr;
        QLabel *name = nullptr, *value = nullptr, *change = nullptr;
        QString full, changeText;
        Tone tone = Tone::Plain, changeTone = Tone::Plain;
    };
    void makeAgainst();
    void set(Verdict verdict, const QString& value, const QString& source, Tone tone = Tone::Plain);
    void showChange(Verdict verdict, const QString& text, double difference, bool lessIsGood);
    void refreshChanges();
    void fit(); ///< fonts and what of the texts has room: slots keep their widths
    void showPeak(const Design& design, const Metrics& metrics, const Document::Overlay* overlay, Side side,
                  const QString& source, const std::optional<PendingMemory>& pending);

    Baseline& m_baseline;
    std::array<Cell, verdictCount> m_cells;
    QToolButton* m_against;
    Side m_side = Side::Predicted;
    Bytes m_peak = 0; ///< the largest shown; 0: none
};

} // namespace pipewright
