// SPDX-License-Identifier: GPL-3.0-or-later
// The key numbers at the bottom of the window, each with its unit, and its definition and source as tooltip; at the
// right the evaluation's size and time.
#pragma once

#include "gui/designer/editdifferences.h"
#include "gui/document/document.h"
#include "gui/widgets/labels.h"

#include <QWidget>

class QHBoxLayout;

namespace pipewright {

class NumberBar : public QWidget {
    Q_OBJECT

public:
    explicit NumberBar(QWidget* parent = nullptr);

    /// `complete`: every block is placed. Otherwise rates of a step are not shown. With an overlay the numbers are
    /// those of `side`, or pairs. `pending` is shown in place of a predicted peak that is not known.
    void showDesign(const Design& design, const Prediction* prediction, double evaluationMilliseconds,
                    bool complete = true, const Document::Overlay* overlay = nullptr, Side side = Side::Predicted,
                    const std::optional<PendingMemory>& pending = {});
    /// The changes of makespan, members, bubble and peak by the last edit or the current drag; nullopt: none.
    void setChanges(const std::optional<EditDifferences::Changes>& changes);
    /// Result of the last run's gradient check; empty text hides the badge.
    void setGradients(const QString& text, bool good, const QString& source);
    /// A warning in red; stays until the text is empty.
    void setWarning(const QString& name, const QString& text, const QString& source);
    /// One line about the item under the cursor, in place of the evaluation time; empty: none.
    void setHint(const QString& text);
    QString hint() const { return m_hint; }
    QString value(const QString& name) const;
    QSize minimumSizeHint() const override { return {320, height()}; } ///< hides numbers at the right
    QString change(const QString& name) const;                         ///< "+2.1 %"; empty where there is none

protected:
    void resizeEvent(QResizeEvent* event) override;

private:
    struct Item {
        QString key;
        QWidget* pair;
        QLabel* name;
        QLabel* value;
        QLabel* change;
        Tone tone = Tone::Plain, changeTone = Tone::Plain;
        bool empty = false; ///< there is none to show
    };
    Item& item(const QString& name);
    void set(const QString& name, const QString& value, const QString& source, Tone tone = Tone::Plain);
    void showChange(const QString& name, const QString& text, double difference);
    void showRight();
    int foldNumbers(QString* hidden); ///< hides those that do not fit, from the right; returns the free space
    void showPeak(const Design& design, const Metrics& metrics, const Document::Overlay* overlay, Side side,
                  const QString& source, const std::optional<PendingMemory>& pending);

    QHBoxLayout* m_layout;
    std::vector<Item> m_items;
    QLabel* m_right;
    QString m_evaluated, m_hint;
};

} // namespace pipewright
