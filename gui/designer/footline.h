// SPDX-License-Identifier: GPL-3.0-or-later
// The line at the bottom of the window: what else a step does (members of groups, bytes moved, equal gradients), and at
// the right what is under the cursor, or the evaluation's size and time.
#pragma once

#include "gui/document/document.h"
#include "gui/widgets/labels.h"

#include <QWidget>

class QHBoxLayout;

namespace pipewright {

class FootLine : public QWidget {
    Q_OBJECT

public:
    explicit FootLine(QWidget* parent = nullptr);

    /// `side`: Predicted without an overlay. `pending`: the makespan of the members is not known yet.
    void showDesign(const Design& design, const Prediction* prediction, double evaluationMilliseconds,
                    bool overlaid = false, Side side = Side::Predicted,
                    const std::optional<PendingMemory>& pending = {});
    /// The change of the members' makespan, relative, against the baseline; 0: none.
    void setMembersChange(double share);
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
    void showRight();
    int foldNumbers(QString* hidden); ///< hides those that do not fit, from the right; returns the free space

    QHBoxLayout* m_layout;
    std::vector<Item> m_items;
    QLabel* m_right;
    QString m_evaluated, m_hint;
};

} // namespace pipewright
