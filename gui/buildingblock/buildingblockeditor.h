// SPDX-License-Identifier: GPL-3.0-or-later
// Draws a building block: the passes of one microbatch, the interval at which they repeat, and what that means
// before anything is unrolled: collisions, lifespans, the memory bound of every device. The schedule that it
// unrolls to is predicted on a background thread while the block is edited. Edits have an undo stack of their
// own; "Unroll" puts the schedule into the document as one command of the document's.
#pragma once

#include "gui/document/document.h"

#include <QDialog>
#include <QThreadPool>
#include <QUndoStack>

#include <atomic>

class QCheckBox;
class QComboBox;
class QLabel;
class QPushButton;
class QScrollArea;
class QSpinBox;

namespace pipewright {

class BlockCells;
class BlockGrid;
class FactList;

class BlockEditor : public QDialog {
    Q_OBJECT

public:
    explicit BlockEditor(Document& document, QWidget* parent = nullptr);
    ~BlockEditor() override;

    const RepeatedBlock& block() const { return m_block; } ///< as edited, without a drag in progress
    /// One undoable step of the editor.
    void edit(RepeatedBlock after, const QString& what);
    void takeForm(const QString& family); ///< starts over from a published block
    bool isPredicting() const { return m_predicting; }

    BlockGrid& grid() { return *m_grid; }
    BlockCells& cells() { return *m_cells; }
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
    void takePresent(); ///< the block of the present schedule; clears the editor's undo stack
    void showBlock();   ///< fields and grid from m_block
    void showShown();   ///< answers from what the grid shows
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
    BlockGrid* m_grid;
    BlockCells* m_cells;
    FactList* m_facts;
    QLabel* m_faults;
    QPushButton* m_unroll;
    bool m_predicting = false;
    QThreadPool m_worker;
    std::atomic<int> m_generation{0};
};

} // namespace pipewright
