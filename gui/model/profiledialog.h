// SPDX-License-Identifier: GPL-3.0-or-later
// A person's own PyTorch module, measured layer by layer, as the model of the design: `pipewright profile --torch` as a
// child process with its progress and a way to stop it. Family, devices and cluster of the design stay; what keeps it
// from taking the model is said, and a new schedule can be made of the model then. It is not modal.
#pragma once

#include "gui/document/document.h"
#include "gui/run/childprocess.h"

#include <QDialog>
#include <QElapsedTimer>
#include <QTemporaryDir>

class QComboBox;
class QDoubleSpinBox;
class QLabel;
class QLineEdit;
class QProgressBar;
class QPushButton;
class QSpinBox;

namespace pipewright {

class ProfileDialog : public QDialog {
    Q_OBJECT

public:
    /// `program` empty: this binary. `module` (FILE.py:build) and `python`: what was given last.
    ProfileDialog(Document& document, const QString& program, const QString& module, const QString& python,
                  QWidget* parent = nullptr);

    QLineEdit& module() { return *m_module; }
    QLineEdit& python() { return *m_python; }
    QComboBox& device() { return *m_device; }
    QSpinBox& microbatches() { return *m_microbatches; }
    QDoubleSpinBox& seconds() { return *m_seconds; }
    QPushButton& profileButton() { return *m_profile; } ///< begins, and stops what has begun
    QPushButton& newScheduleButton() { return *m_new; } ///< hidden unless the design cannot take the model
    QString state() const;                              ///< how far it is, what came out, or why nothing did

Q_SIGNALS:
    void profiled(const QString& module, const QString& python); ///< and the design has the model
    void newScheduleWanted(const QString& modelFile);            ///< of a model that this design cannot take

private:
    void begin();
    void takeLine(const QByteArray& line);
    void end(const ChildEnd& child);
    void take(); ///< what was measured; throws Error when the design cannot have it
    void say(const QString& text, bool isFault = false);
    QString modelFile() const;

    Document& m_document;
    QString m_program, m_of; ///< the module that is measured
    QStringList m_faults, m_notes;
    QTemporaryDir m_folder; ///< of the file that the child writes
    QElapsedTimer m_clock;
    ChildProcess m_child;
    QLineEdit *m_module, *m_python;
    QComboBox* m_device;
    QSpinBox* m_microbatches;
    QDoubleSpinBox* m_seconds;
    QProgressBar* m_bar;
    QLabel* m_state;
    QPushButton *m_new, *m_profile;
};

} // namespace pipewright
