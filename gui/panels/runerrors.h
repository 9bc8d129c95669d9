// SPDX-License-Identifier: GPL-3.0-or-later
// Prediction against the recorded run that is laid over it: the summary in four lines and, below, the
// blocks that made the difference.
#pragma once

#include "gui/document.h"

#include <QWidget>

class QLabel;

namespace pipewright {

class ErrorTable;
class FactList;

class RunErrors : public QWidget {
    Q_OBJECT

public:
    explicit RunErrors(Document& document, QWidget* parent = nullptr);
    ErrorTable* table() const { return m_table; }
    const FactList& facts() const { return *m_facts; }

private:
    void refresh();

    Document& m_document;
    QLabel* m_heading;
    FactList* m_facts;
    ErrorTable* m_table;
};

} // namespace pipewright
