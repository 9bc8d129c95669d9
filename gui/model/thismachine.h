// SPDX-License-Identifier: GPL-3.0-or-later
// A button that measures this machine as a cluster, with one thread or GPU per device of the design; it shows progress
// and can stop. `pipewright devices --measure` runs as a child process, so that a crashing driver does not affect the
// designer. Where GPUs cannot be measured, the reason is shown beside the choice.
#pragma once

#include "core/cluster/cluster.h"
#include "gui/run/backends.h"
#include "gui/run/childprocess.h"

#include <QTemporaryDir>
#include <QWidget>

#include <functional>

class QComboBox;
class QLabel;
class QPushButton;

namespace pipewright {

class ThisMachine : public QWidget {
    Q_OBJECT

public:
    /// `devices` says how many the design has when the button is pressed.
    explicit ThisMachine(std::function<int()> devices, QWidget* parent = nullptr);

    QComboBox* choice() const { return m_choice; }                   ///< by the names of the backends
    QPushButton* button() const { return m_button; }                 ///< starts measuring; while measuring, stops it
    QString state() const;                                           ///< progress, or why GPUs cannot be measured
    void setProgram(const QString& program) { m_program = program; } ///< the binary to start; empty: this one

Q_SIGNALS:
    void measured(const pipewright::Cluster& cluster);
    void stopped(const QString& why);

protected:
    void showEvent(QShowEvent* event) override;

private:
    void offer(const std::vector<BackendChoice>& backends);
    void begin();
    void takeLine(const QByteArray& line);
    void end(const ChildEnd& child);

    std::function<int()> m_devices;
    QString m_program, m_lastMessage;
    QTemporaryDir m_folder; ///< for the file that the child writes
    BackendQuery m_query;
    ChildProcess m_child;
    QComboBox* m_choice;
    QPushButton* m_button;
    QLabel* m_state;
};

} // namespace pipewright
