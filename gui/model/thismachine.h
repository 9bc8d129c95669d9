// SPDX-License-Identifier: GPL-3.0-or-later
// A button that measures this machine as a cluster of host threads, one for each device of the design, on another
// thread, with its progress and a way to stop it.
#pragma once

#include "executor/machine/machinemeasure.h"

#include <QThreadPool>
#include <QWidget>

class QLabel;
class QPushButton;

namespace pipewright {

class ThisMachine : public QWidget {
    Q_OBJECT

public:
    /// `devices` says how many the design has when the button is pressed.
    explicit ThisMachine(std::function<int()> devices, QWidget* parent = nullptr);
    ~ThisMachine() override;

    QPushButton* button() const { return m_button; } ///< begins, and stops what has begun
    QString state() const;
    /// For tests: smaller messages and products take less time.
    void setOptions(const MachineMeasureOptions& options) { m_options = options; }

Q_SIGNALS:
    void measured(const pipewright::Cluster& cluster);
    void stopped(const QString& why);

private:
    void begin();
    void end();

    std::function<int()> m_devices;
    QPushButton* m_button;
    QLabel* m_state;
    MachineMeasureOptions m_options;
    std::atomic<bool> m_cancel = false;
    bool m_running = false;
    QThreadPool m_worker;
};

} // namespace pipewright
