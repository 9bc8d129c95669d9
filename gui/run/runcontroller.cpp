// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/run/runcontroller.h"

#include "core/base/diagnostic.h"
#include "core/files/designfile.h"
#include "gui/widgets/words.h"

#include <QDir>
#include <QFile>

#include <algorithm>
#include <cmath>

namespace pipewright {

namespace {

QString timeLeftText(double seconds)
{
    if (seconds < 0)
        return {};
    const int whole = static_cast<int>(std::lround(seconds));
    if (whole < 60)
        return RunController::tr("about %1\u00a0s left").arg(std::max(1, whole));
    return RunController::tr("about %1\u00a0min %2\u00a0s left").arg(whole / 60).arg(whole % 60);
}

} // namespace

QString progressText(const ChildProgress& progress)
{
    QStringList words;
    if (progress.step >= 0 && progress.steps > 0)
        words << RunController::tr("step %1 of %2").arg(progress.step).arg(progress.steps);
    else
        words << RunController::tr("%1\u00a0%").arg(std::lround(progress.share * 100));
    if (const QString left = timeLeftText(progress.secondsLeft); !left.isEmpty())
        words << left;
    return words.join(QStringLiteral(" · "));
}

QString runResultText(const ChildResult& result)
{
    switch (result.kind) {
    case ChildResult::Cancelled: return RunController::tr("Cancelled. Finished steps are in the recording.");
    case ChildResult::Failed: return result.reason;
    case ChildResult::Done: break;
    }
    if (!result.gradientsChecked)
        return RunController::tr("Done. Gradients were not checked.");
    if (result.bitEqual)
        return RunController::tr("Done. Gradients are bit-equal to the sequential run ✓");
    return RunController::tr("Done. Gradients differ from the sequential run by up to %1.")
        .arg(result.maxRelativeError, 0, 'g', 3);
}

bool isBadResult(const ChildResult& result)
{
    return result.kind == ChildResult::Failed || (result.gradientsChecked && !result.gradientsHold);
}

RunController::RunController(const QString& traceFolder, const QString& program, QObject* parent)
    : QObject(parent), m_traceFolder(traceFolder), m_program(program), m_process(new RunProcess(this))
{
    connect(m_process, &RunProcess::progressed, this, &RunController::progressed);
    connect(m_process, &RunProcess::message, this, &RunController::message);
    connect(m_process, &RunProcess::finished, this, &RunController::end);
}

RunController::~RunController()
{
    if (!m_designFile.isEmpty())
        QFile::remove(m_designFile);
}

bool RunController::start(const Design& design, const RunChoice& choice)
{
    if (isRunning())
        return false;
    m_choice = choice;
    ChildRequest request = choice.request();
    Q_EMIT started();
    try {
        if (!QDir().mkpath(m_traceFolder))
            throw Error(m_traceFolder.toStdString(), "cannot create the folder for recordings",
                        "is the disk full, or the folder not yours?");
        // Runs are numbered for reference.
        const QDir folder(m_traceFolder);
        int number = 1;
        while (folder.exists(QStringLiteral("run %1.db").arg(number)))
            ++number;
        m_designFile = folder.filePath(QStringLiteral("run %1.design.json").arg(number));
        request.trace = m_trace = folder.filePath(QStringLiteral("run %1.db").arg(number));
        writeDesign(design, m_designFile.toStdString(), true);
    } catch (const Error& error) {
        ChildResult result;
        result.reason = proseText(error);
        end(result);
        return true;
    }
    request.program = m_program;
    request.design = m_designFile;
    m_process->start(request);
    return true;
}

void RunController::cancel()
{
    if (!isRunning())
        return;
    Q_EMIT cancelling();
    m_process->cancel();
}

void RunController::end(const ChildResult& result)
{
    QFile::remove(m_designFile);
    m_designFile.clear();
    Q_EMIT finished(result);
}

} // namespace pipewright

#include "moc_runcontroller.cpp"
