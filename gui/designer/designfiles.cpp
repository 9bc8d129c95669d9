// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/designer/designfiles.h"

#include "core/base/inputfile.h"
#include "core/exchange/timelinepicture.h"
#include "core/families/family.h"
#include "core/presets/modelfile.h"
#include "core/presets/presets.h"
#include "gui/designer/waitcursor.h"
#include "gui/model/newschedule.h"
#include "gui/trace/tracewindow.h"
#include "gui/widgets/picture.h"

#include <QFileDialog>
#include <QFileInfo>
#include <QMenu>
#include <QMessageBox>
#include <QPrintDialog>
#include <QPrinter>

#include <algorithm>

namespace pipewright {

namespace {

const QString fileKey = QStringLiteral("session/file");

/// Only the beginning is read: files may be large.
bool isModel(const QString& path)
{
    const std::string beginning = beginningOf(path.toStdString(), 1 << 16);
    return !beginning.empty() && isModelText(beginning, path.toStdString());
}

} // namespace

DesignFiles::DesignFiles(const Desk& desk)
    : QObject(desk.window), m_desk(desk), m_document(desk.document), m_recent(desk.settings)
{
}

bool DesignFiles::openFile(const QString& path)
{
    return m_desk.attempt(tr("Cannot open the file"), [&] {
        if (TraceWindow::opens(path)) {
            Q_EMIT tracesFound({path});
        } else if (isModel(path)) { // a design is made of it first
            newScheduleOf(path);
        } else {
            const WaitCursor wait;
            m_document.open(path);
            addRecent({path});
            Q_EMIT opened();
        }
    });
}

bool DesignFiles::openFiles(const QStringList& paths)
{
    bool done = false;
    m_desk.attempt(tr("Cannot open the file"), [&] { // a locked trace
        if (paths.size() == 1) {                     // a design takes the place of the present one
            done = (TraceWindow::opens(paths.front()) || mayDiscard()) && openFile(paths.front());
            return;
        }
        if (const QString design = designAmong(paths); !design.isEmpty()) {
            done = mayDiscard() && openFile(design);
            QStringList recorded = paths;
            recorded.removeOne(design);
            if (done)
                Q_EMIT recordingsFound(recorded);
            return;
        }
        QStringList others;
        for (const QString& path : paths)
            if (!TraceWindow::opens(path))
                others << QFileInfo(path).fileName();
        done = others.isEmpty();
        if (done)
            Q_EMIT tracesFound(paths);
        else
            m_desk.complain(tr("Cannot open these together"),
                            tr("Several files are the traces of several ranks, or one design and what was recorded of "
                               "it. These are no traces: %1. Open them one by one.")
                                .arg(others.join(QStringLiteral(", "))));
    });
    return done;
}

QString DesignFiles::designAmong(const QStringList& paths)
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

void DesignFiles::openRecordedExample()
{
    if (mayDiscard())
        m_desk.attempt(tr("The recorded run cannot be opened"), [&] {
            const WaitCursor wait;
            m_document.open(QString::fromStdString(PresetLibrary().directory() + "/examples/zb-h1-byte-gpt.db"));
            Q_EMIT opened();
        });
}

bool DesignFiles::saveTo(const QString& path)
{
    return m_desk.attempt(tr("Cannot save the design"), [&] {
        m_document.save(path);
        addRecent({path});
    });
}

QString DesignFiles::name() const
{
    QString design = QString::fromStdString(m_document.design().name);
    // An edited order is of no family any more, whatever the name says that the design was made with.
    if (!findFamily(m_document.design().schedule.family)) {
        QStringList ends{tr(" · custom")}, beginnings;
        for (const Family& family : families()) {
            ends << tr(" · %1").arg(QString::fromUtf8(family.title));
            beginnings << tr("%1, ").arg(QString::fromUtf8(family.name));
        }
        const auto end = std::find_if(ends.begin(), ends.end(), [&](const QString& e) { return design.endsWith(e); });
        const auto beginning =
            std::find_if(beginnings.begin(), beginnings.end(), [&](const QString& b) { return design.startsWith(b); });
        if (end != ends.end())
            design = tr("%1 · own order").arg(design.chopped(end->size()));
        else if (beginning != beginnings.end())
            design = tr("own order, %1").arg(design.sliced(beginning->size()));
    }
    const QString file = QFileInfo(m_document.path()).fileName();
    const QString name = design.isEmpty() ? tr("untitled") : design;
    return file.isEmpty() || file == name ? name : tr("%1 (%2)").arg(name, file);
}

bool DesignFiles::mayDiscard()
{
    if (m_document.undoStack()->isClean())
        return true;
    const auto answer =
        QMessageBox::question(m_desk.window, tr("Unsaved changes"), tr("Save the changes to %1?").arg(name()),
                              QMessageBox::Save | QMessageBox::Discard | QMessageBox::Cancel, QMessageBox::Save);
    return answer == QMessageBox::Save ? save() : answer == QMessageBox::Discard;
}

void DesignFiles::newScheduleOf(const QString& modelFile)
{
    m_desk.attempt(tr("Cannot make a new schedule"), [&] {
        NewScheduleDialog dialog(m_desk.window, m_document.memberPredictor());
        if (!modelFile.isEmpty())
            dialog.chooseModelFile(modelFile);
        if (dialog.exec() != QDialog::Accepted || !mayDiscard())
            return;
        const WaitCursor wait;
        m_document.reset(dialog.design());
        m_document.undoStack()->resetClean(); // not saved to a file yet
        Q_EMIT opened();
    });
}

void DesignFiles::open()
{
    const QStringList paths = QFileDialog::getOpenFileNames(
        m_desk.window, tr("Open a design, a recording, or the traces of several ranks"),
        QFileInfo(m_document.path()).path(),
        tr("Designs, traces and models (*.json *.db *.gz *.sqlite *.csv);;All files (*)"));
    if (!paths.isEmpty())
        openFiles(paths);
}

bool DesignFiles::save()
{
    return m_document.path().isEmpty() ? saveAs() : saveTo(m_document.path());
}

bool DesignFiles::saveAs()
{
    const QString suggestion = m_document.path().isEmpty() ? QStringLiteral("schedule.json") : m_document.path();
    const QString path =
        QFileDialog::getSaveFileName(m_desk.window, tr("Save the design"), suggestion, tr("Designs (*.json)"));
    return !path.isEmpty() && saveTo(path);
}

void DesignFiles::print()
{
    if (!m_document.prediction())
        return;
    QPrinter printer(QPrinter::HighResolution);
    printer.setPageOrientation(QPageLayout::Landscape);
    printer.setDocName(QString::fromStdString(m_document.design().name));
    QPrintDialog dialog(&printer, m_desk.window);
    if (dialog.exec() != QDialog::Accepted)
        return;
    m_desk.attempt(tr("Cannot print"), [&] {
        const WaitCursor wait;
        PictureOptions look;
        look.colours = PictureColours::Paper;
        PicturePanel panel(m_document.design(), *m_document.prediction());
        if (const Overlay* overlay = m_document.overlay(); overlay && m_document.side() != Side::Predicted) {
            panel.measured = &overlay->measured;
            panel.measuredSource = TraceWindow::titleOf(overlay->path).toStdString();
            if (m_document.side() == Side::Measured)
                look.measured = MeasuredPlace::Alone;
        }
        const Picture picture = drawPicture({panel}, look);
        paintSvg(picture.svg, QSizeF(picture.width, picture.height), printer);
    });
}

bool DesignFiles::restore()
{
    const QString path = m_desk.settings.value(fileKey).toString();
    return !path.isEmpty() && QFileInfo::exists(path) && openFile(path);
}

void DesignFiles::endSession()
{
    m_desk.settings.setValue(fileKey, m_document.path().isEmpty() ? m_document.overlayPath() : m_document.path());
}

void DesignFiles::addRecent(const QStringList& paths)
{
    for (const QString& path : paths)
        m_recent.add(path);
    Q_EMIT recentChanged();
}

void DesignFiles::fill(QMenu& recent)
{
    recent.clear();
    for (const QString& path : m_recent.list()) {
        QAction* action = recent.addAction(QFileInfo(path).fileName());
        action->setToolTip(path);
        connect(action, &QAction::triggered, this, [this, path] {
            if (mayDiscard())
                openFile(path);
        });
    }
    recent.setEnabled(!recent.isEmpty());
}

} // namespace pipewright

#include "moc_designfiles.cpp"
