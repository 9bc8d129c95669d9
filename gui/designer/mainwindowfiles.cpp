// SPDX-License-Identifier: GPL-3.0-or-later
// Files and runs: opening, saving, overlaid recordings, and closing the window.
#include "core/base/textfile.h"
#include "core/design/costorigins.h"
#include "core/exchange/timelinepicture.h"
#include "core/presets/modelfile.h"
#include "core/presets/presets.h"
#include "gui/designer/designer.h"
#include "gui/designer/mainwindow.h"
#include "gui/designer/numberbar.h"
#include "gui/designer/windowactions.h"
#include "gui/document/autosave.h"
#include "gui/model/newschedule.h"
#include "gui/run/rundialog.h"
#include "gui/timeline/timelineview.h"
#include "gui/trace/querywindow.h"
#include "gui/trace/runerrors.h"
#include "gui/trace/tracewindow.h"
#include "gui/widgets/picture.h"
#include "gui/widgets/theme.h"
#include "traces/analysis/calibration.h"
#include "traces/export/report.h"

#include <nlohmann/json.hpp>

#include <QApplication>
#include <QCloseEvent>
#include <QDir>
#include <QDragEnterEvent>
#include <QFile>
#include <QFileDialog>
#include <QFileInfo>
#include <QMenu>
#include <QMessageBox>
#include <QMimeData>
#include <QPrintDialog>
#include <QPrinter>
#include <QScrollArea>
#include <QScrollBar>
#include <QStandardPaths>
#include <QTimer>
#include <QUrl>

#include <limits>

namespace pipewright {

namespace {

/// What a person must know of the costs just taken.
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

/// Shows the wait cursor during long work.
class WaitCursor {
public:
    WaitCursor() { QApplication::setOverrideCursor(Qt::WaitCursor); }
    ~WaitCursor() { QApplication::restoreOverrideCursor(); }
    WaitCursor(const WaitCursor&) = delete;
    WaitCursor& operator=(const WaitCursor&) = delete;
};

/// Only the beginning is read: files may be large.
bool isModel(const QString& path)
{
    QFile file(path);
    return file.open(QIODevice::ReadOnly) && isModelText(file.read(1 << 16).toStdString(), path.toStdString());
}

} // namespace

QString MainWindow::dataFolder(const QString& name) const
{
    return QDir(QStandardPaths::writableLocation(QStandardPaths::AppDataLocation)).filePath(name);
}

bool MainWindow::openFile(const QString& path)
{
    if (TraceWindow::opens(path)) {
        openTrace(path);
        return true;
    }
    try {
        if (isModel(path)) { // a design is made of it first
            newScheduleOf(path);
            return true;
        }
        const WaitCursor wait;
        m_document.open(path);
        m_recent.add(path);
        refreshRecent();
        m_timeline->showAll();
        return true;
    } catch (const std::exception& error) {
        complain(tr("Cannot open the file"), QString::fromUtf8(error.what()));
        return false;
    }
}

void MainWindow::openTrace(const QString& path)
{
    auto* window = new TraceWindow(this);
    window->setAttribute(Qt::WA_DeleteOnClose);
    window->addActions({m_actions->theme, m_actions->palette});
    connect(window, &TraceWindow::opened, this, [this, path] {
        m_recent.add(path);
        refreshRecent();
    });
    window->open(path);
    window->show();
}

void MainWindow::openExample()
{
    m_document.reset(exampleDesign());
    m_timeline->showAll();
}

void MainWindow::openRecordedExample()
{
    if (!mayDiscard())
        return;
    try {
        const WaitCursor wait;
        m_document.open(QString::fromStdString(PresetLibrary().directory() + "/examples/zb-h1-byte-gpt.db"));
        m_timeline->showAll();
    } catch (const Error& error) {
        complain(tr("The recorded run cannot be opened"), QString::fromUtf8(error.what()));
    }
}

bool MainWindow::saveTo(const QString& path)
{
    try {
        m_document.save(path);
        m_recent.add(path);
        refreshRecent();
        return true;
    } catch (const std::exception& error) {
        complain(tr("Cannot save the design"), QString::fromUtf8(error.what()));
        return false;
    }
}

QString MainWindow::documentName() const
{
    const QString design = QString::fromStdString(m_document.design().name);
    const QString file = QFileInfo(m_document.path()).fileName();
    const QString name = design.isEmpty() ? tr("untitled") : design;
    return file.isEmpty() || file == name ? name : tr("%1 (%2)").arg(name, file);
}

void MainWindow::showTitle()
{
    setWindowTitle(documentName() + QStringLiteral("[*]")); // Qt appends the program's name
}

bool MainWindow::mayDiscard()
{
    if (m_document.undoStack()->isClean())
        return true;
    QMessageBox box(QMessageBox::Question, tr("Unsaved changes"), tr("Save the changes to %1?").arg(documentName()),
                    QMessageBox::Save | QMessageBox::Discard | QMessageBox::Cancel, this);
    box.setDefaultButton(QMessageBox::Save);
    switch (box.exec()) {
    case QMessageBox::Save: return save();
    case QMessageBox::Discard: return true;
    default: return false;
    }
}

void MainWindow::newScheduleOf(const QString& modelFile)
{
    try {
        NewScheduleDialog dialog(this);
        if (!modelFile.isEmpty())
            dialog.chooseModelFile(modelFile);
        if (dialog.exec() != QDialog::Accepted || !mayDiscard())
            return;
        const WaitCursor wait;
        m_document.reset(dialog.design());
        m_document.undoStack()->resetClean(); // not saved to a file yet
        m_timeline->showAll();
    } catch (const Error& error) {
        complain(tr("Cannot make a new schedule"), QString::fromUtf8(error.what()));
    }
}

void MainWindow::open()
{
    if (!mayDiscard())
        return;
    const QString path =
        QFileDialog::getOpenFileName(this, tr("Open a design or a recording"), QFileInfo(m_document.path()).path(),
                                     tr("Designs, traces and models (*.json *.db *.gz *.sqlite *.csv);;All files (*)"));
    if (!path.isEmpty())
        openFile(path);
}

bool MainWindow::save()
{
    return m_document.path().isEmpty() ? saveAs() : saveTo(m_document.path());
}

bool MainWindow::saveAs()
{
    const QString suggestion = m_document.path().isEmpty() ? QStringLiteral("schedule.json") : m_document.path();
    const QString path = QFileDialog::getSaveFileName(this, tr("Save the design"), suggestion, tr("Designs (*.json)"));
    return !path.isEmpty() && saveTo(path);
}

void MainWindow::run()
{
    RunDialog dialog(m_document.design(),
                     m_options.traceFolder.isEmpty() ? dataFolder(QStringLiteral("runs")) : m_options.traceFolder,
                     m_options.program, this);
    connect(&dialog, &RunDialog::runFinished, this,
            [this, &dialog](const ChildResult& result) { takeRun(result, dialog.calibrateWanted()); });
    dialog.exec();
    m_timeline->setFocus(); // the overlay is read next
}

void MainWindow::takeRun(const ChildResult& result, bool calibrateToo)
{
    try {
        m_document.setOverlay(result.trace);
        if (calibrateToo)
            calibrateFromOverlay();
        // The run's results are below those of the selection.
        QTimer::singleShot(0, m_right, [this] { m_right->verticalScrollBar()->setValue(m_runErrors->y() - 20); });
    } catch (const std::exception& error) {
        complain(tr("The recording cannot be laid over this design"), QString::fromUtf8(error.what()));
    }
}

void MainWindow::showGradients()
{
    const Document::Overlay* overlay = m_document.overlay();
    const nlohmann::json result =
        overlay == nullptr ? nlohmann::json() : nlohmann::json::parse(overlay->resultJson, nullptr, false);
    if (!result.is_object() || !result.contains("gradient_check")) {
        m_numbers->setGradients({}, true, {});
        return;
    }
    const nlohmann::json& check = result["gradient_check"];
    if (!check.is_object() || check.contains("skipped")) { // the run did not check gradients
        m_numbers->setGradients({}, true, {});
    } else if (check.value("bit_equal", false)) {
        m_numbers->setGradients(tr("bit-equal ✓"), true,
                                tr("Gradients of the last step against the sequential run, in %1").arg(overlay->path));
    } else {
        const auto numberOf = [&check](const char* key, double without) { // what is not finite is written as null
            const auto at = check.find(key);
            return at != check.end() && at->is_number() ? at->get<double>() : without;
        };
        const double error = numberOf("max_relative_error", std::numeric_limits<double>::infinity());
        m_numbers->setGradients(tr("differ by %1").arg(error, 0, 'g', 2), error <= numberOf("within", -1),
                                tr("Largest relative difference to the sequential run, in %1").arg(overlay->path));
    }
}

void MainWindow::openOverlay()
{
    const QString folder = m_options.traceFolder.isEmpty() ? dataFolder(QStringLiteral("runs")) : m_options.traceFolder;
    const QString path = QFileDialog::getOpenFileName(this, tr("Overlay a recorded run"), folder,
                                                      tr("Recordings (*.db);;All files (*)"));
    if (path.isEmpty())
        return;
    try {
        const WaitCursor wait;
        m_document.setOverlay(path);
    } catch (const std::exception& error) {
        complain(tr("The recording cannot be laid over this design"), QString::fromUtf8(error.what()));
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
        Calibration calibration = calibrate(m_document.design(), {{&trace, QFileInfo(path).fileName().toStdString()}});
        const QString text = calibrationText(calibration);
        m_document.replaceDesign(std::move(calibration.design), tr("Take the measured costs"));
        m_numbers->setHint(text);
    } catch (const std::exception& error) {
        complain(tr("Cannot calibrate"), QString::fromUtf8(error.what()));
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
        complain(tr("The report cannot be written"), QString::fromUtf8(error.what()));
        return false;
    }
}

void MainWindow::queryOverlay()
{
    if (!m_document.overlay())
        return;
    auto* window = new QueryWindow(this);
    window->setAttribute(Qt::WA_DeleteOnClose);
    window->setTrace(m_document.overlay()->path);
    window->show();
}

std::string MainWindow::pictureSvg(bool dark, int width) const
{
    PictureOptions picture;
    picture.dark = dark;
    picture.width = width;
    if (const Document::Overlay* overlay = m_document.overlay()) {
        picture.measured = &overlay->measured;
        picture.measuredSource = QFileInfo(overlay->path).completeBaseName().toStdString();
    }
    return timelineSvg(m_document.design(), *m_document.prediction(), picture);
}

void MainWindow::exportPicture()
{
    if (!m_document.prediction())
        return;
    const QString path = QFileDialog::getSaveFileName(this, tr("Export picture"), QStringLiteral("schedule.svg"),
                                                      tr("Pictures (*.svg *.png *.pdf)"));
    if (!path.isEmpty())
        exportTo(path);
}

bool MainWindow::exportTo(const QString& path)
{
    try {
        const WaitCursor wait;
        const bool pdf = path.endsWith(QLatin1String(".pdf"), Qt::CaseInsensitive);
        // Paper is white in both looks.
        const std::string svg = pictureSvg(!pdf && Theme::of(*this).isDark, PictureOptions().width);
        if (pdf)
            svgToPdf(svg, path.toStdString());
        else if (path.endsWith(QLatin1String(".png"), Qt::CaseInsensitive))
            svgToPng(svg, path.toStdString());
        else
            writeFileAtomically(path.toStdString(), svg, true); // the file dialog asked about replacing
        return true;
    } catch (const std::exception& error) {
        complain(tr("Cannot write the picture"), QString::fromUtf8(error.what()));
        return false;
    }
}

void MainWindow::print()
{
    if (!m_document.prediction())
        return;
    QPrinter printer(QPrinter::HighResolution);
    printer.setPageOrientation(QPageLayout::Landscape);
    printer.setDocName(QString::fromStdString(m_document.design().name));
    QPrintDialog dialog(&printer, this);
    if (dialog.exec() != QDialog::Accepted)
        return;
    try {
        const WaitCursor wait;
        paintSvg(pictureSvg(false, PictureOptions().width), printer);
    } catch (const std::exception& error) {
        complain(tr("Cannot print"), QString::fromUtf8(error.what()));
    }
}

void MainWindow::dragEnterEvent(QDragEnterEvent* event)
{
    const QList<QUrl> urls = event->mimeData()->urls();
    if (urls.size() == 1 && urls.front().isLocalFile())
        event->acceptProposedAction();
}

void MainWindow::dropEvent(QDropEvent* event)
{
    const QList<QUrl> urls = event->mimeData()->urls();
    if (urls.isEmpty() || !urls.front().isLocalFile())
        return;
    event->acceptProposedAction();
    // Questions wait until the other program's drag has ended.
    QMetaObject::invokeMethod(
        this,
        [this, path = urls.front().toLocalFile()] {
            if (mayDiscard())
                openFile(path);
        },
        Qt::QueuedConnection);
}

bool MainWindow::restoreFile()
{
    const QString path = m_settings->value(QStringLiteral("session/file")).toString();
    return !path.isEmpty() && QFileInfo::exists(path) && openFile(path);
}

void MainWindow::refreshRecent()
{
    m_actions->recentMenu->clear();
    for (const QString& path : m_recent.list()) {
        QAction* action = m_actions->recentMenu->addAction(QFileInfo(path).fileName());
        action->setToolTip(path);
        connect(action, &QAction::triggered, this, [this, path] {
            if (mayDiscard())
                openFile(path);
        });
    }
    m_actions->recentMenu->setEnabled(!m_actions->recentMenu->isEmpty());
}

void MainWindow::closeEvent(QCloseEvent* event)
{
    if (!mayDiscard()) {
        event->ignore();
        return;
    }
    rememberLayout();
    m_settings->setValue(QStringLiteral("session/file"),
                         m_document.path().isEmpty() ? m_document.overlayPath() : m_document.path());
    rememberOpenWindows();
    if (m_autosave)
        m_autosave->finish();
    event->accept();
}

} // namespace pipewright
