// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/designer/overlays.h"

#include "core/base/textfile.h"
#include "core/design/costorigins.h"
#include "core/design/redesign.h"
#include "gui/designer/waitcursor.h"
#include "gui/designer/windowframes.h"
#include "gui/trace/querywindow.h"
#include "gui/trace/tracewindow.h"
#include "traces/analysis/calibration.h"
#include "traces/analysis/costsfrom.h"
#include "traces/export/report.h"

#include <QFileDialog>
#include <QFileInfo>

namespace pipewright {

namespace {

/// What is said of the costs just taken.
QString costsText(const QString& from, const Design& design, const std::vector<std::string>& notes)
{
    QString text = from;
    if (const std::string gaps = hostGapsText(design); !gaps.empty())
        text += Overlays::tr("; the host takes %1").arg(QString::fromStdString(gaps));
    if (const std::string estimates = estimatesText(design); !estimates.empty())
        text += Overlays::tr("; estimated, not measured: %1").arg(QString::fromStdString(estimates));
    for (const std::string& note : notes)
        text += QStringLiteral("; ") + QString::fromStdString(note);
    return text;
}

} // namespace

Overlays::Overlays(const Desk& desk, const QString& folder, WindowFrames& frames, const QList<QAction*>& everywhere)
    : QObject(desk.window), m_desk(desk), m_document(desk.document), m_folder(folder), m_frames(frames),
      m_everywhere(everywhere)
{
}

TraceWindow* Overlays::openTraces(const QStringList& paths)
{
    auto* window = new TraceWindow(m_desk.window);
    window->setAttribute(Qt::WA_DeleteOnClose);
    window->addActions(m_everywhere);
    m_frames.remember(window, QStringLiteral("trace"));
    connect(window, &TraceWindow::opened, this, [this, paths] { Q_EMIT opened(paths); });
    connect(window, &TraceWindow::overlayWanted, this, [this, window] { lay(window->store()); });
    window->open(paths);
    window->show();
    return window;
}

void Overlays::openLanes()
{
    if (m_document.overlay())
        openTraces({m_document.overlay()->path});
}

void Overlays::choose()
{
    const QStringList paths =
        QFileDialog::getOpenFileNames(m_desk.window, tr("Overlay a recorded run, or the traces of its ranks"), m_folder,
                                      tr("Recordings and traces (*.db *.json *.gz *.sqlite);;All files (*)"));
    if (!paths.isEmpty())
        layOver(paths);
}

void Overlays::layOver(const QStringList& paths)
{
    if (paths.size() == 1 && !TraceWindow::opens(paths.front())) {
        lay(paths.front());
        return;
    }
    TraceWindow* window = openTraces(paths);
    connect(window, &TraceWindow::opened, this, [this, window] {
        lay(window->store());
        if (!m_document.overlay() || m_document.overlay()->path != window->store())
            return; // why not was said
        // The user asked for the overlay, which the trace window would cover; its action opens it again.
        const QString leftOut = window->leftOut();
        window->close();
        if (m_desk.window)
            m_desk.window->activateWindow();
        if (!leftOut.isEmpty())
            m_desk.complain(tr("Laid over the design"),
                            tr("The run is laid over the design. Not all was read:\n%1").arg(leftOut));
    });
}

void Overlays::lay(const QString& recording)
{
    m_desk.attempt(tr("The recording cannot be laid over this design"), [&] {
        const WaitCursor wait;
        m_document.setOverlay(recording);
    });
}

void Overlays::calibrate()
{
    if (m_document.overlay())
        m_desk.attempt(tr("Cannot calibrate"), [&] {
            const WaitCursor wait;
            const QString path = m_document.overlay()->path;
            const TraceReader trace(path.toStdString());
            // The user has seen the run; a note says when it was held up.
            Calibration made =
                pipewright::calibrate(m_document.design(), {{&trace, QFileInfo(path).fileName().toStdString()}},
                                      UnmeasuredStages::Refuse, {}, BusyMachine::Take);
            const QString text =
                costsText(tr("Medians over %1 steps").arg(made.steps.front().typical.size()), made.design, made.notes);
            m_document.replaceDesign(std::move(made.design), tr("Take the measured costs"));
            Q_EMIT said(text);
        });
}

void Overlays::chooseCosts()
{
    const QString path = QFileDialog::getOpenFileName(m_desk.window, tr("Take costs from a run or a design"), m_folder,
                                                      tr("Recordings and designs (*.db *.json);;All files (*)"));
    if (!path.isEmpty())
        takeCostsFrom(path);
}

void Overlays::takeCostsFrom(const QString& path)
{
    m_desk.attempt(tr("These costs cannot be taken"), [&] {
        const WaitCursor wait;
        const std::string file = path.toStdString();
        const QString name = QFileInfo(path).fileName();
        // An imported trace does not contain its schedule: the open schedule is assumed.
        const CarriedCosts costs =
            readCostsFrom(file, isTraceWithoutDesign(file) ? &m_document.design() : nullptr, BusyMachine::Take);
        Design design = withCostsFrom(m_document.design(), costs.design);
        const QString text = costsText(tr("Costs of %1").arg(name), design, costs.notes);
        m_document.replaceDesign(std::move(design), tr("Take the costs of %1").arg(name));
        Q_EMIT said(text);
    });
}

void Overlays::exportReport()
{
    if (!m_document.overlay())
        return;
    QString path = QFileDialog::getSaveFileName(m_desk.window, tr("Export report"), QStringLiteral("report.html"),
                                                tr("HTML (*.html)"));
    if (path.isEmpty())
        return;
    if (QFileInfo(path).suffix().isEmpty())
        path += QStringLiteral(".html");
    reportTo(path);
}

bool Overlays::reportTo(const QString& path)
{
    const Overlay* overlay = m_document.overlay();
    return overlay && m_document.prediction() && m_desk.attempt(tr("The report cannot be written"), [&] {
        const WaitCursor wait;
        const std::string trace = overlay->path.toStdString();
        const bool typical = overlay->step == Document::typicalStep;
        const MeasuredStep step{overlay->measured,
                                typical ? "the typical step" : "step " + std::to_string(overlay->step),
                                typical ? -1 : overlay->step};
        writeFileAtomically(
            path.toStdString(),
            runReport(m_document.design(), *m_document.prediction(), TraceReader(trace), trace, step, readNotes(trace)),
            true);
        Q_EMIT said(tr("%1 written").arg(path));
    });
}

void Overlays::query()
{
    if (!m_document.overlay())
        return;
    auto* window = new QueryWindow(m_desk.window);
    window->setAttribute(Qt::WA_DeleteOnClose);
    m_frames.remember(window, QStringLiteral("query"));
    window->setTrace(m_document.overlay()->path);
    window->show();
}

} // namespace pipewright

#include "moc_overlays.cpp"
