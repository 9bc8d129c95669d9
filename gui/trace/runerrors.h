// SPDX-License-Identifier: GPL-3.0-or-later
// Prediction against the overlaid run: the step, a verdict, the main numbers. Its tables (causes, blocks by error,
// notes) are a widget of their own, which the window places where there is room for them.
#pragma once

#include "gui/document/document.h"

#include <QWidget>

#include <functional>
#include <utility>

class QComboBox;
class QLabel;
class QTabWidget;

namespace pipewright {

class CauseTable;
class ErrorTable;
class FactList;
struct Fact;
class NoteList;

class RunErrors : public QWidget {
    Q_OBJECT

public:
    explicit RunErrors(Document& document, QWidget* parent = nullptr);
    ErrorTable* table() const { return m_table; }
    CauseTable* causes() const { return m_causes; }
    QTabWidget* tabs() const { return m_tabs; } ///< the tables; hidden without a run
    NoteList* notes() const { return m_notes; }
    QComboBox* stepPicker() const { return m_step; }
    const FactList& facts() const { return *m_facts; }
    QString verdict() const;
    /// The run in which the design's costs were measured. The facts then show how much the machine has changed since.
    void setFirstRun(const QString& path);
    /// The range of a new note: the measured range of the timeline, else the visible one.
    void setStretch(std::function<std::pair<Nanoseconds, Nanoseconds>()> stretch) { m_stretch = std::move(stretch); }

Q_SIGNALS:
    void blocksChosen(const std::vector<pipewright::Block>& blocks);
    void stretchChosen(qint64 start, qint64 end);
    void reportRequested();
    void queryRequested();
    void failed(const QString& why);

private:
    void build();
    void refresh();
    void fillSteps();
    void chooseStep(int index);
    void chooseFirstRun();
    std::vector<Fact> factsOfFirstRun(const Comparison& comparison) const;

    Document& m_document;
    QLabel* m_heading;
    QComboBox* m_step;
    QLabel* m_verdict;
    FactList* m_facts;
    QTabWidget* m_tabs;
    CauseTable* m_causes;
    ErrorTable* m_table;
    NoteList* m_notes;
    QString m_firstRun; ///< empty: none was named
    QString m_notesOf;  ///< the trace whose notes are shown
    std::function<std::pair<Nanoseconds, Nanoseconds>()> m_stretch;
};

} // namespace pipewright
