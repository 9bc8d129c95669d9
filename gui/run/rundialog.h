// SPDX-License-Identifier: GPL-3.0-or-later
// Runs the design: asks for backend, steps and data, then shows progress, remaining time, loss and Cancel. The run is a
// child process (runprocess.h). Afterwards the window overlays the trace on the design.
#pragma once

#include "core/design/design.h"
#include "gui/run/backends.h"
#include "gui/run/runprocess.h"

#include <QDialog>

class QCheckBox;
class QComboBox;
class QLabel;
class QLineEdit;
class QPlainTextEdit;
class QProgressBar;
class QPushButton;
class QSpinBox;

namespace pipewright {

class LossCurve;

class RunDialog : public QDialog {
    Q_OBJECT

public:
    /// Traces are written into `traceFolder`. `program` empty: this binary.
    RunDialog(const Design& design, const QString& traceFolder, const QString& program = {}, QWidget* parent = nullptr);
    ~RunDialog() override;

    const ChildResult& result() const { return m_result; }
    bool calibrateWanted() const;
    RunProcess& process() { return *m_process; }

public Q_SLOTS:
    void reject() override; ///< while running: cancels the run and stays until it has ended

Q_SIGNALS:
    /// The trace of a finished run is ready.
    void runFinished(const ChildResult& result);

private:
    QWidget* buildForm();
    QWidget* buildProgress();
    void takeBackends(const std::vector<BackendChoice>& backends);
    void startRun();
    void showProgress(const ChildProgress& progress);
    void end(const ChildResult& result);
    void setRunning(bool running);
    QString resultText(const ChildResult& result) const;

    Design m_design;
    QString m_traceFolder, m_program, m_designFile;
    RunProcess* m_process;
    ChildResult m_result;

    QWidget* m_form;
    QComboBox* m_backend;
    QLabel* m_backendNote;
    QSpinBox* m_steps;
    QLineEdit* m_data;
    QComboBox* m_transport;
    QCheckBox* m_calibrate;
    QProgressBar* m_bar;
    QLabel* m_status;
    QLabel* m_loss;
    LossCurve* m_curve;
    QPlainTextEdit* m_log;
    QPushButton* m_run;
    QPushButton* m_cancel;
};

} // namespace pipewright
