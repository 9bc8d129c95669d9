// SPDX-License-Identifier: GPL-3.0-or-later
// The one run of a window: gives it its files, starts it and says how it goes. There is at most one at a time; a second
// start while one is under way is refused.
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

    /// False while a run is under way. What keeps it from starting comes as finished().
    bool start(const Design& design, const RunChoice& choice);
    void cancel();
    bool isRunning() const { return m_process->isRunning(); }
    const RunChoice& choice() const { return m_choice; } ///< of the last start
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

    QString m_traceFolder, m_program, m_designFile;
    RunChoice m_choice;
    RunProcess* m_process;
};

/// What a person reads when a run has ended: "Done. Gradients are bit-equal to the sequential run ✓".
QString runResultText(const ChildResult& result);
/// Whether that is something to be red about.
bool isBadResult(const ChildResult& result);
/// "step 3 of 10 · about 7 s left".
QString progressText(const ChildProgress& progress);

} // namespace pipewright
