// SPDX-License-Identifier: GPL-3.0-or-later
// A field of a dialog with room for a note below it: what is wrong with its value, or was refused of what was typed.
// Without a note it is as high as the field.
#pragma once

#include "core/base/diagnostic.h"
#include "gui/widgets/labels.h"

#include <QWidget>

namespace pipewright {

class NotedField : public QWidget {
    Q_OBJECT

public:
    /// Takes the field over, which has a fixed width.
    explicit NotedField(QWidget* field, QWidget* parent = nullptr);
    /// The one that holds a field; null: none does.
    static NotedField* around(const QWidget* field);

    void setNote(const QString& text, Tone tone); ///< empty: none
    /// The diagnostics that name this option of the command line, without its name, as it stands beside them.
    void setNote(const Diagnostics& diagnostics, const char* option);
    QString note() const { return m_note->text(); } ///< with what the field itself refused of an entry

protected:
    void changeEvent(QEvent* event) override;

private:
    void refresh();

    QWidget* m_field;
    QLabel* m_note;
    QString m_said;
    Tone m_tone = Tone::Plain;
};

/// Whether a diagnostic speaks of this option: its place is a list of them.
bool speaksOf(const Diagnostic& diagnostic, const char* option);

} // namespace pipewright
