// SPDX-License-Identifier: GPL-3.0-or-later
// Beside the list: the chosen plan with its memory by kind and why it stands where it does, what the pins cost, and the
// question why a value of a dimension is not among the best, with its answer.
#pragma once

#include "core/plan/plan.h"

#include <QWidget>

#include <memory>

class QComboBox;
class QLabel;
class QPushButton;

namespace pipewright {

class FactList;

class PlanDetails : public QWidget {
    Q_OBJECT

public:
    explicit PlanDetails(QWidget* parent = nullptr);

    void setPlan(const std::shared_ptr<const PlanResult>& result, int plan); ///< -1: none is chosen
    void setFound(const PlanFound* plan);  ///< of a search under way; null: none is chosen
    void setRefined(const QString& text);  ///< the chosen plan past its space; empty: it was not refined
    void setPinCosts(const QString& text); ///< empty: nothing is pinned
    void setChange(const QString& text);   ///< against the list before; empty: none
    void setAnswer(const QString& text, bool bad = false);
    void setAskable(bool askable); ///< once a search has ended

    QString why() const;
    QString refinement() const;
    QString pinCosts() const;
    QString change() const;
    QString answer() const;
    QComboBox* dimension() const { return m_dimension; }
    QComboBox* value() const { return m_value; }
    QPushButton* askButton() const { return m_ask; }

Q_SIGNALS:
    void asked(const QString& pin); ///< "tensor=16"

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;

private:
    void takeDimension();
    void askIt();

    QLabel* m_heading;
    QLabel* m_name;
    QLabel* m_why;
    FactList* m_facts;
    QLabel* m_refined;
    QLabel* m_pinCosts;
    QLabel* m_change;
    QComboBox* m_dimension;
    QComboBox* m_value;
    QPushButton* m_ask;
    QLabel* m_answer;
};

/// Where the best `with` a pinned dimension stands beside the best of all, or why there is none; as `plan --why` says
/// it.
QString answerText(const QString& pin, const PlanResult& with, const PlanResult& all);
/// What the pins of `all` cost beside the best `without` them.
QString pinCostText(const QString& pins, const PlanResult& all, const PlanResult& without);
/// "tensor 8, data 8, 16 × 1, 1F1B, ZeRO 1".
QString planText(const PlanSetting& setting, const Family& family, int chunks);

QString wholeText(std::int64_t count); ///< "1,024"

} // namespace pipewright
