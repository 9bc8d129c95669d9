// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/designer/designer.h"

#include "core/design/newdesign.h"
#include "core/presets/presets.h"
#include "gui/designer/designerapplication.h"
#include "gui/designer/designfiles.h"
#include "gui/designer/mainwindow.h"
#include "gui/designer/otherwindows.h"
#include "gui/designer/screencheck.h"
#include "gui/document/autosave.h"
#include "gui/timeline/timelineview.h"
#include "gui/trace/tracewindow.h"
#include "gui/widgets/runtimefolder.h"
#include "gui/widgets/systemtheme.h"

#include <QApplication>
#include <QFileInfo>
#include <QLocale>
#include <QMessageBox>
#include <QPushButton>

#include <functional>
#include <memory>
#include <optional>

namespace pipewright {

namespace {

/// Offers each autosaved design of a crashed instance. Recovered ones open in separate windows.
void offerRecovery(const QString& folder, const std::function<MainWindow&()>& makeWindow)
{
    QStringList unreadable;
    const std::vector<Autosave::Abandoned> found = Autosave::abandoned(folder, &unreadable);
    if (!unreadable.isEmpty())
        QMessageBox::warning(nullptr, QObject::tr("Recover unsaved work"),
                             QObject::tr("The designer did not end cleanly, and what it kept cannot be read. The files "
                                         "are left where they are:\n\n%1")
                                 .arg(unreadable.join(QStringLiteral("\n"))));
    for (const Autosave::Abandoned& leftover : found) {
        const QString what = leftover.originalPath.isEmpty() ? QString::fromStdString(leftover.design.name)
                                                             : QFileInfo(leftover.originalPath).fileName();
        QMessageBox box(QMessageBox::Question, QObject::tr("Recover unsaved work"),
                        QObject::tr("The designer did not end cleanly. Unsaved changes to %1 of %2 were kept.")
                            .arg(what, QLocale().toString(leftover.savedAt.toLocalTime(), QLocale::ShortFormat)));
        QPushButton* recover = box.addButton(QObject::tr("Recover"), QMessageBox::AcceptRole);
        QPushButton* discard = box.addButton(QObject::tr("Discard"), QMessageBox::DestructiveRole);
        box.addButton(QObject::tr("Ask again next time"), QMessageBox::RejectRole);
        box.setDefaultButton(recover); // Return loses nothing
        box.exec();
        if (box.clickedButton() == recover) {
            MainWindow& window = makeWindow();
            window.document().reset(leftover.design, leftover.originalPath);
            window.document().undoStack()->resetClean();
            window.timeline().showAll();
            if (window.autosave())
                window.autosave()->flush(); // autosaved again before the old copy is removed
            Autosave::discard(leftover);
        } else if (box.clickedButton() == discard) {
            Autosave::discard(leftover);
        }
    }
}

// To both a locked file is no trace: it is opened as a design, which reports the error.
bool isImportedTrace(const QString& file)
try {
    return TraceWindow::opens(file);
} catch (const Error&) {
    return false;
}

bool isDesignWithTraces(const QStringList& files)
try {
    return !DesignFiles::designAmong(files).isEmpty();
} catch (const Error&) {
    return false;
}

} // namespace

Design exampleDesign()
{
    NewDesign choice;
    try {
        const PresetLibrary presets;
        choice.workload = presets.workload("llama-3-8b");
        choice.cluster = presets.cluster("h200-node", 4);
        return designFromModel(choice);
    } catch (const Error&) {
        // Without resources the designer opens the default design.
    }
    FamilyParameters parameters;
    Design design;
    design.schedule = makeSchedule("zb-h1", parameters);
    design.costs = uniformCosts({10'000'000, 10'000'000, 10'000'000, 0, Bytes{1} << 30, Bytes{1} << 29, false}, 4, 1);
    design.name = titleOf(design);
    return design;
}

int runDesigner(int argc, char** argv, const std::vector<std::string>& files)
{
    ensureRuntimeFolder();
    std::optional<ScreenCheck> screen(std::in_place);
    DesignerApplication application(argc, argv);
    screen.reset();
    QApplication::setApplicationName(QStringLiteral("pipewright"));
    QApplication::setOrganizationName(QStringLiteral("Pipewright")); // the folder of its settings
    QApplication::setApplicationDisplayName(QStringLiteral("Pipewright"));
    application.followTheme(std::make_unique<SystemTheme>(SystemTheme::sessionBus()));

    std::vector<std::unique_ptr<MainWindow>> windows;
    const QString autosaveFolder = Autosave::defaultFolder();
    const auto makeWindow = [&]() -> MainWindow& {
        MainWindow::Options options;
        options.autosaveFolder = autosaveFolder;
        windows.push_back(std::make_unique<MainWindow>(options));
        return *windows.back();
    };
    offerRecovery(autosaveFolder, makeWindow);
    QStringList paths, traces; // the latter without a design, of several ranks
    for (const std::string& file : files)
        paths << QString::fromStdString(file);
    if (isDesignWithTraces(paths)) {
        MainWindow& window = makeWindow();
        window.openExample(); // shown behind the message when a file cannot be read
        window.files().openFiles(paths);
        paths.clear();
    }
    for (const QString& path : paths) {
        if (isImportedTrace(path)) {
            traces << path;
            continue;
        }
        MainWindow& window = makeWindow();
        window.openExample();
        window.files().openFile(path);
    }
    std::unique_ptr<TraceWindow> trace;
    if (!traces.isEmpty()) {
        trace = std::make_unique<TraceWindow>();
        trace->open(traces);
        trace->show();
    }
    const bool nothingAsked = windows.empty() && !trace;
    if (nothingAsked) {
        MainWindow& window = makeWindow();
        if (!window.files().restore())
            window.openExample();
    }
    for (const auto& window : windows)
        window->show();
    if (nothingAsked)
        windows.front()->others().restore();
    return QApplication::exec();
}

} // namespace pipewright
