// SPDX-License-Identifier: GPL-3.0-or-later
// Measures the user's PyTorch module layer by layer and makes it the design's model: `pipewright profile --torch` as a
// child process, with progress, which can be stopped. Family, devices and cluster of the design stay. If the design
// cannot take the model, the reason is shown, and a new schedule can be made from the model. Not modal.
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
    /// `program` empty: this binary. `module` (FILE.py:build) and `python`: as given last.
    ProfileDialog(Document& document, const QString& program, const QString& module, const QString& python,
                  QWidget* parent = nullptr);

    QLineEdit& module() { return *m_module; }
    QLineEdit& python() { return *m_python; }
    QComboBox& device() { return *m_device; }
    QSpinBox& microbatches() { return *m_microbatches; }
    QDoubleSpinBox& seconds() { return *m_seconds; }
    QPushButton& profileButton() { return *m_profile; } ///< starts measuring; while measuring, stops it
    QPushButton& newScheduleButton() { return *m_new; } ///< hidden unless the design cannot take the model
    QString state() const;                              ///< progress, result, or error

Q_SIGNALS:
    void profiled(const QString& module, const QString& python); ///< the design has the measured model
    void newScheduleWanted(const QString& modelFile);            ///< from a model that this design cannot take

private:
    void begin();
    void takeLine(const QByteArray& line);
    void end(const ChildEnd& child);
    void take(); ///< puts the measured model into the design; throws Error when it cannot
    void say(const QString& text, bool isFault = false);
    QString modelFile() const;

    Document& m_document;
    QString m_program, m_of; ///< the module that is measured
    QStringList m_faults, m_notes;
    QTemporaryDir m_folder; ///< for the file that the child writes
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
