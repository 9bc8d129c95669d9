// SPDX-License-Identifier: GPL-3.0-or-later
// The numbers at the bottom of the window: what people compare schedules by, each with its unit, its
// definition and its source as tooltip, and at the right how much was evaluated how fast.
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

    /// `complete`: every block has its place. Until then there is no step whose rates could be told.
    void showDesign(const Design& design, const Prediction* prediction, double evaluationMilliseconds,
                    bool complete = true);
    /// Beside makespan, bubble and peak, how the last edit or the one under the cursor changes them; nullopt: nothing.
    void setChanges(const std::optional<EditDifferences::Changes>& changes);
    /// Result of the last run's gradient check; empty text hides the badge.
    void setGradients(const QString& text, bool good, const QString& source);
    /// What must not be overlooked, in red; stays until the text is empty.
    void setWarning(const QString& name, const QString& text, const QString& source);
    /// One line about what is under the cursor, in place of the evaluation time while it is not empty.
    void setHint(const QString& text);
    QString value(const QString& name) const;
    QString change(const QString& name) const; ///< "+2.1 %"; empty where there is none

protected:
    void changeEvent(QEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;

private:
    struct Item {
        QString key;
        QWidget* pair;
        QLabel* name;
        QLabel* value;
        QLabel* change;
        Tone tone = Tone::Plain, changeTone = Tone::Plain;
    };
    Item& item(const QString& name);
    void set(const QString& name, const QString& value, const QString& source, Tone tone = Tone::Plain);
    void showChange(const QString& name, const QString& text, double difference);
    void showRight();

    QHBoxLayout* m_layout;
    std::vector<Item> m_items;
    QLabel* m_right;
    QString m_evaluated, m_hint;
};

} // namespace pipewright
