// SPDX-License-Identifier: GPL-3.0-or-later
// Editor of a building block: the passes of one microbatch, their interval, and the resulting collisions, lifespans and
// memory bound per device. The unrolled schedule is predicted in a background thread during editing. Edits have their
// own undo stack; "Unroll" puts the schedule into the document as one undo step.
#pragma once

#include "gui/document/document.h"
#include "gui/widgets/latestwork.h"

#include <QDialog>
#include <QUndoStack>

class QCheckBox;
class QComboBox;
class QLabel;
class QPushButton;
class QScrollArea;
class QSpinBox;

namespace pipewright {

class BuildingBlockCells;
class BuildingBlockGrid;
class FactList;

class BuildingBlockEditor : public QDialog {
    Q_OBJECT

public:
    explicit BuildingBlockEditor(Document& document, QWidget* parent = nullptr);

    const RepeatedBlock& block() const { return m_block; } ///< without a drag in progress
    /// One undoable step of the editor.
    void edit(RepeatedBlock after, const QString& what);
    void takeForm(const QString& family); ///< starts over from a published block
    bool isPredicting() const { return m_predicting; }

    BuildingBlockGrid& grid() { return *m_grid; }
    BuildingBlockCells& cells() { return *m_cells; }
    const FactList& facts() const { return *m_facts; }
    QPushButton* unrollButton() const { return m_unroll; }
    QString faults() const;

public Q_SLOTS:
    void unroll();

Q_SIGNALS:
    void predicted();

protected:
    void showEvent(QShowEvent* event) override;

private:
    struct Outcome {
        Metrics metrics;
        Diagnostics faults;
        bool good = false;
    };
    class Command;
    QWidget* buildFields();
    QWidget* buildAnswers();
    void connectFields();
    void takePresent(); ///< the current schedule's building block; clears the editor's undo stack
    void showBlock();   ///< fields and grid from m_block
    void showShown();   ///< results for the block that the grid shows
    void showPass();    ///< name and fields of the selected pass
    void predictShown();
    void showOutcome(const Outcome& outcome);
    void showFaults(const Diagnostics& diagnostics);
    RepeatedBlock shown() const;

    Document& m_document;
    RepeatedBlock m_block;
    QUndoStack m_edits;
    QComboBox* m_form;
    QSpinBox* m_interval;
    QSpinBox* m_microbatches;
    QComboBox* m_backward;
    QCheckBox* m_reorder;
    QLabel* m_passName;
    QSpinBox* m_start;
    QSpinBox* m_device; ///< of the selected pass's stage
    QScrollArea* m_scroll;
    BuildingBlockGrid* m_grid;
    BuildingBlockCells* m_cells;
    FactList* m_facts;
    QLabel* m_faults;
    QPushButton* m_unroll;
    bool m_predicting = false;
    LatestWork m_work;
};

} // namespace pipewright
