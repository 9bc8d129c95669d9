// SPDX-License-Identifier: GPL-3.0-or-later
// The run in progress, while the design can still be edited. RunStatus shows its progress in the top bar, with Cancel.
// RunStrip, below the bar, plots loss and step time over the steps and shows messages and the result. Both follow one
// RunController.
#pragma once

#include "gui/run/runprocess.h"
#include "gui/widgets/labels.h"

#include <QWidget>

class QLabel;
class QPlainTextEdit;
class QProgressBar;
class QPushButton;
class QToolButton;

namespace pipewright {

class RunController;
class RunPlot;

class RunStatus : public QWidget {
    Q_OBJECT

public:
    explicit RunStatus(RunController& controller, QWidget* parent = nullptr);
    QPushButton* cancelButton() const { return m_cancel; }
    QString text() const;

private:
    QLabel* m_text;
    QProgressBar* m_bar;
    QPushButton* m_cancel;
};

class RunStrip : public QWidget {
    Q_OBJECT

public:
    explicit RunStrip(RunController& controller, QWidget* parent = nullptr);
    QString state() const;
    Tone tone() const { return m_tone; } ///< of the state
    /// Appends to the result what was done with the recording.
    void addToResult(const QString& text);
    QString messages() const;
    RunPlot& loss() { return *m_loss; }
    RunPlot& times() { return *m_times; }

private:
    void say(const QString& text, Tone tone);

    QLabel* m_state;
    Tone m_tone = Tone::Plain;
    int m_step = -1; ///< of the values that came last
    RunPlot* m_loss;
    RunPlot* m_times;
    QPlainTextEdit* m_log;
    QToolButton* m_close;
};

} // namespace pipewright
