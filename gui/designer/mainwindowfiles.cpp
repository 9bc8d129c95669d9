// SPDX-License-Identifier: GPL-3.0-or-later
// Files: opening, saving, pictures, and closing the window. Runs and recordings are in mainwindowrun.cpp.
#include "core/base/inputfile.h"
#include "core/base/textfile.h"
#include "core/exchange/timelinepicture.h"
#include "core/presets/modelfile.h"
#include "core/presets/presets.h"
#include "gui/compare/comparewindow.h"
#include "gui/designer/designer.h"
#include "gui/designer/mainwindow.h"
#include "gui/designer/numberbar.h"
#include "gui/designer/otherwindows.h"
#include "gui/designer/picturedialog.h"
#include "gui/designer/waitcursor.h"
#include "gui/designer/windowactions.h"
#include "gui/designer/windowframes.h"
#include "gui/document/autosave.h"
#include "gui/model/newschedule.h"
#include "gui/model/profiledialog.h"
#include "gui/run/runcontroller.h"
#include "gui/run/runsettings.h"
#include "gui/timeline/timelineview.h"
#include "gui/trace/tracewindow.h"
#include "gui/widgets/picture.h"
#include "gui/widgets/theme.h"
#include "gui/widgets/words.h"

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
#include <QStandardPaths>
#include <QUrl>

#include <algorithm>

namespace pipewright {

namespace {

/// Only the beginning is read: files may be large.
bool isModel(const QString& path)
{
    const std::string beginning = beginningOf(path.toStdString(), 1 << 16);
    return !beginning.empty() && isModelText(beginning, path.toStdString());
}

} // namespace

QString MainWindow::dataFolder(const QString& name) const
{
    return QDir(QStandardPaths::writableLocation(QStandardPaths::AppDataLocation)).filePath(name);
}

bool MainWindow::openFile(const QString& path)
{
    try {
        if (TraceWindow::opens(path)) {
            openTrace(path);
            return true;
        }
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
        complain(tr("Cannot open the file"), proseText(error));
        return false;
    }
}

bool MainWindow::openFiles(const QStringList& paths)
try {
    if (paths.size() == 1) { // a design takes the place of the present one
        if (!TraceWindow::opens(paths.front()) && !mayDiscard())
            return false;
        return openFile(paths.front());
    }
    if (const QString design = designAmong(paths); !design.isEmpty()) {
        if (!mayDiscard() || !openFile(design))
            return false;
        QStringList recorded = paths;
        recorded.removeOne(design);
        layOver(recorded);
        return true;
    }
    QStringList others;
    for (const QString& path : paths)
        if (!TraceWindow::opens(path))
            others << QFileInfo(path).fileName();
    if (!others.isEmpty()) {
        complain(tr("Cannot open these together"),
                 tr("Several files are the traces of several ranks, or one design and what was recorded of it. "
                    "These are no traces: %1. Open them one by one.")
                     .arg(others.join(QStringLiteral(", "))));
        return false;
    }
    openTraces(paths);
    return true;
} catch (const Error& error) { // a locked trace
    complain(tr("Cannot open the file"), proseText(error));
    return false;
}

QString MainWindow::designAmong(const QStringList& paths)
{
    QString design;
    qsizetype traces = 0, recordings = 0;
    for (const QString& path : paths) {
        if (TraceWindow::opens(path))
            ++traces;
        else if (isDatabase(path.toStdString()))
            ++recordings;
        else if (design.isEmpty() && !isModel(path))
            design = path;
        else
            return {};
    }
    const bool canLayOver = recordings == 0 ? traces > 0 : recordings == 1 && traces == 0;
    return canLayOver ? design : QString();
}

TraceWindow* MainWindow::openTraces(const QStringList& paths)
{
    auto* window = new TraceWindow(this);
    window->setAttribute(Qt::WA_DeleteOnClose);
    window->addActions({m_actions->theme, m_actions->palette});
    m_frames->remember(window, QStringLiteral("trace"));
    connect(window, &TraceWindow::opened, this, [this, paths] {
        for (const QString& path : paths)
            m_recent.add(path);
        refreshRecent();
    });
    connect(window, &TraceWindow::overlayWanted, this, [this, window] { overlay(window->store()); });
    window->open(paths);
    window->show();
    return window;
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
        complain(tr("The recorded run cannot be opened"), proseText(error));
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
        complain(tr("Cannot save the design"), proseText(error));
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
        NewScheduleDialog dialog(this, m_document.memberPredictor());
        if (!modelFile.isEmpty())
            dialog.chooseModelFile(modelFile);
        if (dialog.exec() != QDialog::Accepted || !mayDiscard())
            return;
        const WaitCursor wait;
        m_document.reset(dialog.design());
        m_document.undoStack()->resetClean(); // not saved to a file yet
        m_timeline->showAll();
    } catch (const Error& error) {
        complain(tr("Cannot make a new schedule"), proseText(error));
    }
}

void MainWindow::open()
{
    const QStringList paths = QFileDialog::getOpenFileNames(
        this, tr("Open a design, a recording, or the traces of several ranks"), QFileInfo(m_document.path()).path(),
        tr("Designs, traces and models (*.json *.db *.gz *.sqlite *.csv);;All files (*)"));
    if (!paths.isEmpty())
        openFiles(paths);
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

void MainWindow::showPicture()
{
    if (!m_picture) {
        m_picture = new PictureDialog(
            m_document, [this] { return m_others->find<CompareWindow>(); }, *m_settings, this);
        m_frames->remember(m_picture, QStringLiteral("picture"));
    }
    bringUp(*m_picture);
}

void MainWindow::profileModule()
{
    if (!m_profile) {
        const RunChoice last = RunChoice::load(*m_settings);
        m_profile = new ProfileDialog(m_document, m_options.program, last.module, last.python, this);
        connect(m_profile, &ProfileDialog::newScheduleWanted, this, &MainWindow::newScheduleOf);
        connect(m_profile, &ProfileDialog::profiled, this, [this](const QString& module, const QString& python) {
            RunChoice choice = RunChoice::load(*m_settings); // Run offers the backend that was measured
            choice.backend = QStringLiteral("torch");
            choice.module = module;
            choice.python = python;
            choice.syntheticStages = false;
            choice.save(*m_settings);
            if (m_runSettings)
                m_runSettings->setModule(module, python);
            m_timeline->showAll();
        });
    }
    bringUp(*m_profile);
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
        PictureOptions look;
        look.colours = PictureColours::Paper;
        PicturePanel panel(m_document.design(), *m_document.prediction());
        if (const Document::Overlay* overlay = m_document.overlay(); overlay && m_document.side() != Side::Predicted) {
            panel.measured = &overlay->measured;
            panel.measuredSource = TraceWindow::titleOf(overlay->path).toStdString();
            if (m_document.side() == Side::Measured)
                look.measured = MeasuredPlace::Alone;
        }
        const Picture picture = drawPicture({panel}, look);
        paintSvg(picture.svg, QSizeF(picture.width, picture.height), printer);
    } catch (const std::exception& error) {
        complain(tr("Cannot print"), proseText(error));
    }
}

void MainWindow::dragEnterEvent(QDragEnterEvent* event)
{
    const QList<QUrl> urls = event->mimeData()->urls();
    if (!urls.isEmpty() && std::all_of(urls.begin(), urls.end(), [](const QUrl& url) { return url.isLocalFile(); }))
        event->acceptProposedAction();
}

void MainWindow::dropEvent(QDropEvent* event)
{
    const QList<QUrl> urls = event->mimeData()->urls();
    QStringList paths;
    for (const QUrl& url : urls)
        if (url.isLocalFile())
            paths << url.toLocalFile();
    if (paths.isEmpty())
        return;
    event->acceptProposedAction();
    // Questions wait until the other program's drag has ended.
    QMetaObject::invokeMethod(
        this, [this, paths] { openFiles(paths); }, Qt::QueuedConnection);
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
    if (!mayEndRun() || !mayDiscard()) {
        event->ignore();
        return;
    }
    m_run->cancel(); // other windows may keep the program open
    rememberLayout();
    m_settings->setValue(QStringLiteral("session/file"),
                         m_document.path().isEmpty() ? m_document.overlayPath() : m_document.path());
    m_others->endSession();
    if (m_autosave)
        m_autosave->finish();
    event->accept();
}

} // namespace pipewright
