// SPDX-License-Identifier: GPL-3.0-or-later
// A dialog field with a note below it: an error in its value, or why an entry was refused. Without a note it is as high
// as the field.
#pragma once

#include "core/base/diagnostic.h"
#include "gui/widgets/labels.h"

#include <QWidget>

namespace pipewright {

class NotedField : public QWidget {
    Q_OBJECT

public:
    /// Takes ownership of the field, which must have a fixed width.
    explicit NotedField(QWidget* field, QWidget* parent = nullptr);
    /// The NotedField that holds a field; null when none does.
    static NotedField* around(const QWidget* field);

    void setNote(const QString& text, Tone tone); ///< empty: no note
    /// Shows the diagnostics about this command-line option, without its name, since the field's label is beside them.
    void setNote(const Diagnostics& diagnostics, const char* option);
    QString note() const { return m_note->text(); } ///< includes an entry that the field itself refused

private:
    void refresh();

    QWidget* m_field;
    QLabel* m_note;
    QString m_said;
    Tone m_tone = Tone::Plain;
};

/// Whether a diagnostic is about this option; its `where` lists one or several options.
bool isAbout(const Diagnostic& diagnostic, const char* option);

} // namespace pipewright
