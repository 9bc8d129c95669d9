// SPDX-License-Identifier: GPL-3.0-or-later
// A column of facts: a dim name at the left, a number with its unit at the right, and the number's source as tooltip. A
// long value goes to the line below. Rows are reused between refreshes, to avoid flicker.
#pragma once

#include "gui/widgets/labels.h"

#include <QWidget>

#include <vector>

class QGridLayout;

namespace pipewright {

struct Fact {
    QString name;
    QString value;
    QString source; ///< tooltip: preset, formula, measured
    Tone tone = Tone::Plain;
    bool operator==(const Fact&) const = default;
};

class FactList : public QWidget {
    Q_OBJECT

public:
    explicit FactList(QWidget* parent = nullptr);
    void setFacts(const std::vector<Fact>& facts);
    /// The value shown for a name; empty when there is no such row.
    QString value(const QString& name) const;

private:
    struct Row {
        QLabel* name;
        QLabel* value;
        bool ownLine; ///< the value is below its name
    };
    QGridLayout* m_layout;
    std::vector<Row> m_rows;
    std::vector<Fact> m_facts;
};

} // namespace pipewright
