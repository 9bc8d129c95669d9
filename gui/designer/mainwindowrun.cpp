// SPDX-License-Identifier: GPL-3.0-or-later
// Runs and their recordings: settings, one run at a time in the background, its recording as overlay, calibration and
// report.
#include "core/base/textfile.h"
#include "core/design/costorigins.h"
#include "core/design/redesign.h"
#include "core/json/jsonvalue.h"
#include "gui/designer/firsthints.h"
#include "gui/designer/mainwindow.h"
#include "gui/designer/numberbar.h"
#include "gui/designer/otherwindows.h"
#include "gui/designer/topbar.h"
#include "gui/designer/waitcursor.h"
#include "gui/designer/windowactions.h"
#include "gui/designer/windowframes.h"
#include "gui/run/runcontroller.h"
#include "gui/run/runsettings.h"
#include "gui/run/runstrip.h"
#include "gui/run/smalldesign.h"
#include "gui/timeline/timelineview.h"
#include "gui/trace/querywindow.h"
#include "gui/trace/runerrors.h"
#include "gui/trace/tracewindow.h"
#include "gui/widgets/words.h"
#include "traces/analysis/calibration.h"
#include "traces/analysis/costsfrom.h"
#include "traces/export/report.h"

#include <QAction>
#include <QFileDialog>
#include <QFileInfo>
#include <QMessageBox>
#include <QPushButton>
#include <QScrollArea>
#include <QScrollBar>
#include <QTimer>

#include <algorithm>
#include <cmath>
#include <limits>

namespace pipewright {

namespace {

std::vector<Bytes> peaksOf(const Document& document)
{
    std::vector<Bytes> peaks;
    if (document.prediction())
        for (const DeviceMetrics& device : document.prediction()->metrics.devices)
            peaks.push_back(device.peakBytes);
    return peaks;
}

/// The text that tells the user about the costs just taken.
QString calibrationText(const Calibration& calibration)
{
    QString text = MainWindow::tr("Medians over %1 steps").arg(calibration.steps.front().typical.size());
    if (const std::string gaps = hostGapsText(calibration.design); !gaps.empty())
        text += MainWindow::tr("; the host takes %1").arg(QString::fromStdString(gaps));
    if (const std::string estimates = estimatesText(calibration.design); !estimates.empty())
        text += MainWindow::tr("; estimated, not measured: %1").arg(QString::fromStdString(estimates));
    for (const std::string& note : calibration.notes)
        text += QStringLiteral("; ") + QString::fromStdString(note);
    return text;
}

} // namespace

void MainWindow::run()
{
    if (m_run->isRunning())
        return; // Cancel is beside it
    if (!m_runSettings) {
        m_runSettings = new RunSettings(m_options.program, RunChoice::load(*m_settings), this);
        connect(m_runSettings, &RunSettings::runWanted, this, &MainWindow::startRun);
        connect(m_runSettings, &RunSettings::smallDesignWanted, this, &MainWindow::takeSmallDesign);
    }
    m_runSettings->setDesign(m_document.sharedDesign(), peaksOf(m_document));
    m_runSettings->adjustSize();
    const QPushButton* button = m_topBar->runButton();
    const QPoint below = button->mapToGlobal(QPoint(button->width(), button->height() + 6));
    const QRect around = screen()->availableGeometry();
    const int lowest = around.bottom() - m_runSettings->sizeHint().height() - 40; // with its frame
    m_runSettings->move(std::max(around.left(), below.x() - m_runSettings->width()),
                        std::max(around.top(), std::min(below.y(), lowest)));
    m_runSettings->show();
    m_runSettings->raise();
    m_runSettings->activateWindow();
}

void MainWindow::takeSmallDesign()
{
    m_document.settle();
    try {
        m_document.replaceDesign(smallDesign(m_document.design()), tr("Train a small GPT"));
    } catch (const Error& error) {
        complain(tr("The small GPT cannot take this schedule"), proseText(error));
    }
}

void MainWindow::startRun(const RunChoice& choice)
{
    // The focus goes to the timeline, so that the next key does not press Run again.
    activateWindow();
    m_timeline->setFocus();
    m_ranDesign = m_document.sharedDesign();
    if (!m_run->start(*m_ranDesign, choice))
        return;
    choice.save(*m_settings);
    m_hints->finish(FirstHints::Run);
    showRunnable();
}

void MainWindow::takeRun(const ChildResult& result)
{
    showRunnable();
    if (result.kind != ChildResult::Done)
        return;
    const QString name = QFileInfo(result.trace).fileName();
    if (m_document.design().schedule.order != m_ranDesign->schedule.order
        || m_document.design().schedule.deviceOfStage != m_ranDesign->schedule.deviceOfStage) {
        m_runStrip->addToResult(
            tr("It ran the schedule as it was before your edits: undo them and overlay %1 to see it.").arg(name));
        return;
    }
    try {
        m_document.setOverlay(result.trace);
        m_runStrip->addToResult(tr("%1 is laid over the lanes.").arg(name));
        if (const double scale = m_run->choice().memoryScale; scale != 1)
            m_runStrip->addToResult(
                tr("Measured memory is 1/%1 of the design's, as it was run.").arg(std::llround(1 / scale)));
        if (m_run->choice().calibrate)
            calibrateFromOverlay();
        // The run's results are below those of the selection.
        QTimer::singleShot(0, m_inspectorScroll,
                           [this] { m_inspectorScroll->verticalScrollBar()->setValue(m_runErrors->y() - 20); });
    } catch (const std::exception& error) {
        complain(tr("The recording cannot be laid over this design"), proseText(error));
    }
}

bool MainWindow::mayEndRun()
{
    if (!m_run->isRunning())
        return true;
    QMessageBox box(QMessageBox::Question, tr("A run is under way"),
                    tr("End the run and close the window? Its finished steps stay in the recording."),
                    QMessageBox::NoButton, this);
    QPushButton* end = box.addButton(tr("End the run"), QMessageBox::DestructiveRole);
    box.setDefaultButton(box.addButton(tr("Keep running"), QMessageBox::RejectRole));
    box.exec();
    return box.clickedButton() == end;
}

void MainWindow::showRunnable()
{
    const bool runs = m_document.unplaced().empty() && !hasErrors(m_document.diagnostics()) && m_document.prediction()
                      && !m_run->isRunning();
    m_actions->run->setEnabled(runs);
    m_topBar->runButton()->setEnabled(runs);
    m_topBar->setRunning(m_run->isRunning());
    if (m_runSettings && m_runSettings->isVisible() && runs)
        m_runSettings->setDesign(m_document.sharedDesign(), peaksOf(m_document));
}

void MainWindow::showGradients()
{
    const Document::Overlay* overlay = m_document.overlay();
    const JsonValue result = overlay == nullptr ? JsonValue() : JsonValue::fromText(overlay->resultJson);
    const JsonValue& check = result.member("gradient_check");
    if (!check.isObject() || check.contains("skipped")) { // the run did not check gradients
        m_numbers->setGradients({}, true, {});
    } else if (check.member("bit_equal").truth().value_or(false)) {
        m_numbers->setGradients(tr("bit-equal ✓"), true,
                                tr("Gradients of the last step against the sequential run, in %1").arg(overlay->path));
    } else {
        // What is not finite is written as null.
        const double error =
            check.member("max_relative_error").number().value_or(std::numeric_limits<double>::infinity());
        m_numbers->setGradients(error > 0 ? tr("differ by %1").arg(error, 0, 'g', 2) : tr("equal but for rounding"),
                                error <= check.member("within").number().value_or(-1),
                                tr("Largest relative difference to the sequential run, in %1").arg(overlay->path));
    }
}

void MainWindow::openOverlay()
{
    const QString folder = m_options.traceFolder.isEmpty() ? dataFolder(QStringLiteral("runs")) : m_options.traceFolder;
    const QStringList paths =
        QFileDialog::getOpenFileNames(this, tr("Overlay a recorded run, or the traces of its ranks"), folder,
                                      tr("Recordings and traces (*.db *.json *.gz *.sqlite);;All files (*)"));
    if (!paths.isEmpty())
        layOver(paths);
}

void MainWindow::layOver(const QStringList& paths)
{
    if (paths.size() == 1 && !TraceWindow::opens(paths.front())) {
        overlay(paths.front());
        return;
    }
    // Traces of another tool are imported first; the trace window shows the progress.
    TraceWindow* window = openTraces(paths);
    connect(window, &TraceWindow::opened, this, [this, window] {
        overlay(window->store());
        if (!m_document.overlay() || m_document.overlay()->path != window->store())
            return; // why not was said
        // The user asked for the overlay, which the trace window would cover; its action opens it again.
        const QString leftOut = window->leftOut();
        window->close();
        activateWindow();
        if (!leftOut.isEmpty())
            complain(tr("Laid over the design"),
                     tr("The run is laid over the design. Not all was read:\n%1").arg(leftOut));
    });
}

void MainWindow::overlay(const QString& recording)
{
    try {
        const WaitCursor wait;
        m_document.setOverlay(recording);
    } catch (const std::exception& error) {
        complain(tr("The recording cannot be laid over this design"), proseText(error));
    }
}

void MainWindow::calibrateFromOverlay()
{
    if (!m_document.overlay())
        return;
    try {
        const WaitCursor wait;
        const QString path = m_document.overlay()->path;
        const TraceReader trace(path.toStdString());
        // The user has seen the run; a note says when it was held up.
        Calibration calibration = calibrate(m_document.design(), {{&trace, QFileInfo(path).fileName().toStdString()}},
                                            UnmeasuredStages::Refuse, {}, BusyMachine::Take);
        const QString text = calibrationText(calibration);
        m_document.replaceDesign(std::move(calibration.design), tr("Take the measured costs"));
        m_numbers->setHint(text);
    } catch (const std::exception& error) {
        complain(tr("Cannot calibrate"), proseText(error));
    }
}

void MainWindow::chooseCosts()
{
    const QString folder = m_options.traceFolder.isEmpty() ? dataFolder(QStringLiteral("runs")) : m_options.traceFolder;
    const QString path = QFileDialog::getOpenFileName(this, tr("Take costs from a run or a design"), folder,
                                                      tr("Recordings and designs (*.db *.json);;All files (*)"));
    if (!path.isEmpty())
        takeCostsFrom(path);
}

void MainWindow::takeCostsFrom(const QString& path)
{
    try {
        const WaitCursor wait;
        const std::string file = path.toStdString();
        // An imported trace does not contain its schedule: the open schedule is assumed.
        const CarriedCosts costs =
            readCostsFrom(file, isTraceWithoutDesign(file) ? &m_document.design() : nullptr, BusyMachine::Take);
        Design design = withCostsFrom(m_document.design(), costs.design);
        QString text = tr("Costs of %1").arg(QFileInfo(path).fileName());
        for (const std::string& note : costs.notes)
            text += QStringLiteral("; ") + QString::fromStdString(note);
        if (const std::string gaps = hostGapsText(design); !gaps.empty())
            text += tr("; the host takes %1").arg(QString::fromStdString(gaps));
        if (const std::string estimates = estimatesText(design); !estimates.empty())
            text += tr("; estimated, not measured: %1").arg(QString::fromStdString(estimates));
        m_document.replaceDesign(std::move(design), tr("Take the costs of %1").arg(QFileInfo(path).fileName()));
        m_numbers->setHint(text);
    } catch (const std::exception& error) {
        complain(tr("These costs cannot be taken"), proseText(error));
    }
}

void MainWindow::exportReport()
{
    if (!m_document.overlay())
        return;
    QString path =
        QFileDialog::getSaveFileName(this, tr("Export report"), QStringLiteral("report.html"), tr("HTML (*.html)"));
    if (path.isEmpty())
        return;
    if (QFileInfo(path).suffix().isEmpty())
        path += QStringLiteral(".html");
    reportTo(path);
}

bool MainWindow::reportTo(const QString& path)
{
    const Document::Overlay* overlay = m_document.overlay();
    if (!overlay || !m_document.prediction())
        return false;
    try {
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
        m_numbers->setHint(tr("%1 written").arg(path));
        return true;
    } catch (const std::exception& error) {
        complain(tr("The report cannot be written"), proseText(error));
        return false;
    }
}

void MainWindow::queryOverlay()
{
    if (!m_document.overlay())
        return;
    auto* window = new QueryWindow(this);
    window->setAttribute(Qt::WA_DeleteOnClose);
    m_frames->remember(window, QStringLiteral("query"));
    window->setTrace(m_document.overlay()->path);
    window->show();
}

} // namespace pipewright
