// SPDX-License-Identifier: GPL-3.0-or-later
// The run of a window: names its files, starts it and reports its progress. At most one is running: a second start is
// refused until the first has ended.
#pragma once

#include "core/design/design.h"
#include "gui/run/runchoice.h"
#include "gui/run/runprocess.h"

namespace pipewright {

class RunController : public QObject {
    Q_OBJECT

public:
    /// Recordings go into `traceFolder`; `program` empty: this binary.
    RunController(const QString& traceFolder, const QString& program, QObject* parent = nullptr);
    ~RunController() override;

    /// False while a run is in progress. An error that prevents the start is reported by finished().
    bool start(const Design& design, const RunChoice& choice);
    void cancel();
    bool isRunning() const { return m_process->isRunning(); }
    const RunChoice& choice() const { return m_choice; } ///< of the last start
    const QString& trace() const { return m_trace; }     ///< which it records
    RunProcess& process() { return *m_process; }
    const QString& program() const { return m_program; }

Q_SIGNALS:
    void started();
    void cancelling();
    void progressed(const ChildProgress& progress);
    void message(const QString& line);
    void finished(const ChildResult& result);

private:
    void end(const ChildResult& result);

    QString m_traceFolder, m_program, m_designFile, m_trace;
    RunChoice m_choice;
    RunProcess* m_process;
};

/// The message when a run has ended: "Done. Gradients are bit-equal to the sequential run ✓".
QString runResultText(const ChildResult& result);
/// Whether that message reports a failure, to be shown in red.
bool isBadResult(const ChildResult& result);
/// "step 3 of 10 · about 7 s left".
QString progressText(const ChildProgress& progress);

} // namespace pipewright
