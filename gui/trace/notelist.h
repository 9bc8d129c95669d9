// SPDX-License-Identifier: GPL-3.0-or-later
// The notes of a trace (traces/store/notes.h): lists, adds for the measured or visible range, and removes. Every change
// is saved at once.
#pragma once

#include "traces/store/notes.h"

#include <QWidget>

#include <functional>

class QLineEdit;
class QListWidget;
class QPushButton;

namespace pipewright {

class NoteList : public QWidget {
    Q_OBJECT

public:
    /// `stretch`: the range of a new note; its text is ignored.
    explicit NoteList(std::function<TraceNote()> stretch, QWidget* parent = nullptr);

    /// Reads the notes of a trace. With an empty name there are none, and none can be added.
    void setTrace(const QString& trace);
    const std::vector<TraceNote>& notes() const { return m_notes; }
    QLineEdit* field() const { return m_field; }
    QListWidget* list() const { return m_list; }
    void add(const QString& text);
    void removeCurrent();

Q_SIGNALS:
    void chosen(const pipewright::TraceNote& note);
    void changed();
    void failed(const QString& why);

private:
    bool keep(std::vector<TraceNote> notes); ///< writes and shows them; on an error emits failed() and returns false
    void fill();

    std::function<TraceNote()> m_stretch;
    QString m_trace;
    std::vector<TraceNote> m_notes;
    QLineEdit* m_field;
    QListWidget* m_list;
    QPushButton* m_remove;
};

} // namespace pipewright
