// SPDX-License-Identifier: GPL-3.0-or-later
// The undo stack as a list of edits by name with the current state marked; a click or the arrow keys go to the state
// after an edit.
#pragma once

#include <QDialog>

class QUndoStack;
class QUndoView;

namespace pipewright {

class HistoryWindow : public QDialog {
    Q_OBJECT

public:
    explicit HistoryWindow(QUndoStack* stack, QWidget* parent = nullptr);
    QUndoView* view() const { return m_view; }

private:
    QUndoView* m_view;
};

} // namespace pipewright
