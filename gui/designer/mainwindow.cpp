// SPDX-License-Identifier: GPL-3.0-or-later
// Connections between the window's views; how it is laid out is in mainwindowlayout.cpp.
#include "gui/designer/mainwindow.h"

#include "core/json/jsonvalue.h"
#include "executor/run/backendcheck.h"
#include "executor/run/grouprun.h"
#include "gui/buildingblock/buildingblockeditor.h"
#include "gui/buildingblock/buildingblockpreview.h"
#include "gui/compare/comparewindow.h"
#include "gui/designer/baseline.h"
#include "gui/designer/breadcrumb.h"
#include "gui/designer/designer.h"
#include "gui/designer/designerapplication.h"
#include "gui/designer/designfiles.h"
#include "gui/designer/designmenus.h"
#include "gui/designer/designruns.h"
#include "gui/designer/diagnosticlist.h"
#include "gui/designer/editdifferences.h"
#include "gui/designer/familylist.h"
#include "gui/designer/firsthints.h"
#include "gui/designer/footline.h"
#include "gui/designer/legend.h"
#include "gui/designer/otherwindows.h"
#include "gui/designer/overlays.h"
#include "gui/designer/picturedialog.h"
#include "gui/designer/sideswitch.h"
#include "gui/designer/topbar.h"
#include "gui/designer/verdictstrip.h"
#include "gui/designer/windowactions.h"
#include "gui/designer/windowframes.h"
#include "gui/dock/dock.h"
#include "gui/document/autosave.h"
#include "gui/document/memberforecast.h"
#include "gui/document/timelinelayout.h"
#include "gui/inspector/inspector.h"
#include "gui/inspector/suggestionlist.h"
#include "gui/inspector/tray.h"
#include "gui/memory/memorypanel.h"
#include "gui/model/profiledialog.h"
#include "gui/run/runsettings.h"
#include "gui/run/runstrip.h"
#include "gui/timeline/minimap.h"
#include "gui/timeline/timelineview.h"
#include "gui/trace/runerrors.h"
#include "gui/widgets/labels.h"
#include "gui/widgets/theme.h"
#include "gui/widgets/words.h"

#include <QAction>
#include <QApplication>
#include <QCloseEvent>
#include <QDir>
#include <QDragEnterEvent>
#include <QMessageBox>
#include <QMimeData>
#include <QPushButton>
#include <QStandardPaths>
#include <QTabWidget>
#include <QTimer>
#include <QUrl>

#include <algorithm>
#include <limits>
#include <utility>

namespace pipewright {

MainWindow::MainWindow(const Options& options, QWidget* parent)
    : QWidget(parent), m_options(options),
      m_settings(options.settingsFile.isEmpty()
                     ? std::make_unique<QSettings>()
                     : std::make_unique<QSettings>(options.settingsFile, QSettings::IniFormat)),
      m_actions(new WindowActions(m_document.undoStack(), this)), m_frames(new WindowFrames(*m_settings, this))
{
    setWindowTitle(tr("Pipewright[*]"));
    setAutoFillBackground(true);
    setAcceptDrops(true);
    // For trainable designs, uses the bytes that a run allocates.
    m_document.setMemberPredictor(std::make_shared<MemberPredictor>([](const Design& design) {
        MeasuredGroups measured(design, whyNotTrainable(design).empty());
        return MemberPredictor::Stages{std::move(measured.stages), std::move(measured.design.costs),
                                       std::move(measured.design.dataflow)};
    }));
    const Desk desk{m_document, *m_settings, this,
                    [this](const QString& title, const QString& text) { complain(title, text); }};
    const QString recordings =
        options.traceFolder.isEmpty()
            ? QDir(QStandardPaths::writableLocation(QStandardPaths::AppDataLocation)).filePath(QStringLiteral("runs"))
            : options.traceFolder;
    m_files = new DesignFiles(desk);
    m_overlays = new Overlays(desk, recordings, *m_frames, {m_actions->theme, m_actions->palette});
    m_runs = new DesignRuns(desk, *m_overlays, recordings, options.program);
    build();
    connectActions();
    connectPanels();
    connectTimeline();
    connectDocument();
    connectRunErrors();
    connectControllers();
    refresh();
    if (!options.autosaveFolder.isEmpty()) {
        try {
            m_autosave = std::make_unique<Autosave>(m_document, options.autosaveFolder);
            connect(m_autosave.get(), &Autosave::failed, m_foot, [this](const QString& why) {
                m_foot->setWarning(tr("autosave"), tr("failed: save to another place"), why);
                m_foot->setHint(why);
            });
            connect(m_autosave.get(), &Autosave::written, m_foot,
                    [this] { m_foot->setWarning(tr("autosave"), {}, {}); });
        } catch (const Error& error) {
            m_foot->setWarning(tr("autosave"), tr("off"), QString::fromUtf8(error.what()));
        }
    }
    restoreLayout();
}

MainWindow::~MainWindow()
{
    // Delete the views first: they are children, while the document is a member.
    for (QObject* child : QList<QObject*>(children())) {
        if (child->isWidgetType())
            delete child;
    }
}

void MainWindow::connectActions()
{
    const auto on = [](QAction* action, auto* receiver, auto slot) {
        connect(action, &QAction::triggered, receiver, slot);
    };
    on(m_actions->newSchedule, m_files, &DesignFiles::newSchedule);
    on(m_actions->open, m_files, &DesignFiles::open);
    on(m_actions->save, m_files, &DesignFiles::save);
    on(m_actions->saveAs, m_files, &DesignFiles::saveAs);
    on(m_actions->print, m_files, &DesignFiles::print);
    on(m_actions->recordedRun, m_files, &DesignFiles::openRecordedExample);
    on(m_actions->openOverlay, m_overlays, &Overlays::choose);
    on(m_actions->calibrate, m_overlays, &Overlays::calibrate);
    on(m_actions->costsFrom, m_overlays, &Overlays::chooseCosts);
    on(m_actions->traceLanes, m_overlays, &Overlays::openLanes);
    on(m_actions->run, m_runs, [this] { m_runs->ask(*m_topBar->runButton()); });
    on(m_actions->profile, this, &MainWindow::profileModule);
    on(m_actions->picture, this, &MainWindow::showPicture);
    on(m_actions->quit, this, &QWidget::close);
    on(m_actions->place, this, &MainWindow::placeNext);
    on(m_actions->diagnostics, this, &MainWindow::showDiagnostics);
    on(m_actions->theme, this, &MainWindow::switchTheme);
    on(m_actions->shortcuts, this, &MainWindow::showShortcuts);
    connect(m_actions->clearOverlay, &QAction::triggered, &m_document, &Document::clearOverlay);
    connect(m_actions->emptyTimeline, &QAction::triggered, this, [this] {
        std::vector<Block> blocks;
        for (const auto& lane : m_document.design().schedule.order)
            blocks.insert(blocks.end(), lane.begin(), lane.end());
        Document::Edit edit = m_document.tryEdit(UnplaceBlocks{blocks});
        edit.text = tr("Empty the timeline");
        m_document.commit(std::move(edit));
    });
    connect(m_actions->completeRest, &QAction::triggered, this, [this] {
        if (const Diagnostics faults = m_tray->placeAll(); hasErrors(faults))
            complain(tr("Not every block could be placed"), proseText(faults));
    });
    connect(m_actions->takeSuggestion, &QAction::triggered, m_suggestions, [this] { m_suggestions->take(0); });
    for (QAction* action : {m_actions->find, m_actions->palette})
        connect(action, &QAction::triggered, m_topBar->findField(),
                [this] { m_topBar->findField()->setFocus(Qt::ShortcutFocusReason); });
    for (QAction* action : {m_actions->clearOverlay, m_actions->calibrate, m_actions->traceLanes})
        action->setEnabled(false); // there is no overlay yet
}

void MainWindow::connectPanels()
{
    connect(m_blockPreview, &BuildingBlockPreview::opened, m_others, [this] { m_others->open<BuildingBlockEditor>(); });
    connect(m_topBar, &TopBar::diagnosticsRequested, this, &MainWindow::showDiagnostics);
    connect(m_topBar->findField(), &FindField::blockWanted, this, &MainWindow::findBlock);
    connect(m_topBar->findField(), &FindField::left, m_timeline, [this] { m_timeline->setFocus(); });
    connect(m_menus, &DesignMenus::pageWanted, this, &MainWindow::openPart);
    connect(m_menus, &DesignMenus::failed, this,
            [this](const QString& why) { complain(tr("That is not possible"), why); });
    const auto refuse = [this](const Diagnostics& faults) { complain(tr("That is not possible"), proseText(faults)); };
    connect(m_tray, &Tray::refused, this, refuse);
    connect(m_families, &FamilyList::refused, this, refuse);
    connect(m_families, &FamilyList::estimatesChanged, m_suggestions,
            [this] { m_suggestions->setEstimates(m_families->estimates()); });
    connect(m_suggestions, &SuggestionList::familyChosen, m_families, &FamilyList::switchTo);
    connect(m_memory, &MemoryPanel::pointedAt, m_timeline, &TimelineView::pointAt);
    connect(m_memory, &MemoryPanel::hovered, m_foot, &FootLine::setHint);
    connect(m_memory, &MemoryPanel::modeChanged, this, &MainWindow::refreshNumbers);
    connect(m_baseline, &Baseline::changed, m_foot,
            [this] { m_foot->setMembersChange(m_baseline->changes().value_or(Baseline::Changes{}).members); });
}

void MainWindow::connectTimeline()
{
    connect(m_timeline, &TimelineView::editRefused, m_foot, &FootLine::setHint);
    connect(m_timeline, &TimelineView::hovered, m_foot, &FootLine::setHint);
    connect(m_timeline, &TimelineView::gapClicked, this, &MainWindow::showGap);
    connect(m_timeline, &TimelineView::viewRangeChanged, this, &MainWindow::alignCharts);
    // Queued, since the lanes may change during a layout pass, which ignores sizes that change while it runs.
    connect(m_timeline, &TimelineView::lanesChanged, this, &MainWindow::arrangeRows, Qt::QueuedConnection);
    connect(m_timeline, &TimelineView::readingsChanged, this,
            [this] { m_memory->setReadings(m_timeline->readings()); });
    connect(m_timeline, &TimelineView::previewChanged, this, [this] {
        m_baseline->setPreview(m_timeline->isPreviewing(), m_timeline->preview());
        refreshNumbers();
    });
}

void MainWindow::connectDocument()
{
    connect(&m_document, &Document::designChanged, this, &MainWindow::refresh);
    connect(&m_document, &Document::sideChanged, this, [this] {
        m_foot->setHint({}); // it described the other side
        refreshNumbers();
    });
    connect(&m_document, &Document::memoryChanged, this, &MainWindow::refreshNumbers);
    connect(&m_document, &Document::selectionChanged, this, [this] {
        refreshNumbers();
        if (m_document.selection())
            showAnswer(OfBlock);
    });
    connect(&m_document, &Document::overlayChanged, this, [this] {
        for (QAction* action : {m_actions->clearOverlay, m_actions->calibrate, m_actions->traceLanes})
            action->setEnabled(m_document.overlay() != nullptr);
        showGradients();
        refreshNumbers();
        m_legend->showDesign(m_document.design(), m_document.prediction(), m_document.overlay() != nullptr);
    });
    connect(&m_document, &Document::pathChanged, this, [this] {
        setWindowFilePath(m_document.path());
        showTitle();
    });
    connect(m_document.undoStack(), &QUndoStack::cleanChanged, this, [this](bool clean) { setWindowModified(!clean); });
    connect(&m_document, &Document::workingChanged, this, [this] {
        m_foot->setHint(m_document.isWorking() ? tr("Working out the times of this edit …") : QString());
    });
}

void MainWindow::connectControllers()
{
    const auto fillRecent = [this] { m_files->fill(*m_actions->recentMenu); };
    connect(m_files, &DesignFiles::recentChanged, this, fillRecent);
    fillRecent();
    connect(m_files, &DesignFiles::opened, m_timeline, &TimelineView::showAll);
    connect(m_files, &DesignFiles::tracesFound, m_overlays, &Overlays::openTraces);
    connect(m_files, &DesignFiles::recordingsFound, m_overlays, &Overlays::layOver);
    connect(m_overlays, &Overlays::opened, m_files, &DesignFiles::addRecent);
    connect(m_overlays, &Overlays::said, m_foot, &FootLine::setHint);
    connect(&m_runs->controller(), &RunController::finished, m_runs, &DesignRuns::take); // behind the strip's own
    connect(m_runs, &DesignRuns::changed, this, &MainWindow::showRunnable);
    connect(m_runs, &DesignRuns::reported, m_runStrip, &RunStrip::addToResult);
    connect(m_runs, &DesignRuns::started, this, [this] {
        // The focus goes to the timeline, so that the next key does not press Run again.
        activateWindow();
        m_timeline->setFocus();
        m_hints->finish(FirstHints::Run);
    });
    connect(m_runs, &DesignRuns::laidOver, this, [this] {
        showAnswer(OfRun);
        m_dock->showPage(QStringLiteral("run")); // its causes
    });
}

void MainWindow::connectRunErrors()
{
    m_runErrors->setStretch([this] { return m_timeline->range().value_or(m_timeline->timeRange()); });
    connect(m_runErrors, &RunErrors::blocksChosen, this,
            [this](const std::vector<Block>& blocks) { chooseBlocks(blocks); });
    connect(m_runErrors, &RunErrors::stretchChosen, this, [this](qint64 start, qint64 end) {
        m_timeline->setRange(std::pair(start, end));
        m_timeline->showRange(start, end);
    });
    connect(m_runErrors, &RunErrors::reportRequested, m_overlays, &Overlays::exportReport);
    connect(m_runErrors, &RunErrors::queryRequested, m_overlays, &Overlays::query);
    connect(m_runErrors, &RunErrors::failed, this,
            [this](const QString& why) { complain(tr("That is not possible"), why); });
}

void MainWindow::refresh()
{
    const bool complete = m_document.unplaced().empty();
    showRunnable();
    m_tray->setVisible(!complete);
    m_actions->place->setEnabled(!complete);
    m_actions->completeRest->setEnabled(!complete);
    m_foot->setHint({}); // the hint was about the old schedule
    m_kindsOf = {};
    showTitle();
    m_actions->emptyTimeline->setEnabled(m_document.design().schedule.blocks() > 0);
    refreshNumbers();
    m_legend->showDesign(m_document.design(), m_document.prediction(), m_document.overlay() != nullptr);
    arrangeRows();
    alignCharts();
}

void MainWindow::refreshNumbers()
{
    const Prediction* shown = m_timeline->preview() ? m_timeline->preview() : m_document.prediction();
    const Design& design = m_timeline->previewDesign();
    // Drops are judged by predictions, so during a drag all numbers are predicted ones.
    const bool dragged = m_timeline->isPreviewing();
    const Document::Overlay* const overlay = m_document.overlay();
    const Side side = dragged ? Side::Predicted : m_document.side();
    std::optional<PendingMemory> pending = m_document.pendingMemory();
    if (m_timeline->preview())
        pending = isMemoryPending(design, *shown) ? std::optional(pendingUntilDrop()) : std::nullopt;
    m_verdicts->showDesign(design, shown, m_document.unplaced().empty(), overlay, side, pending);
    m_foot->showDesign(design, shown, m_document.evaluationMilliseconds(), overlay != nullptr, side, pending);
    int device = shown ? fullestDevice(shown->metrics) : 0;
    if (const auto block = m_document.selection()) {
        if (block->stage < design.schedule.stages() && block->replica < design.schedule.replicas())
            device = design.schedule.deviceOf(*block);
    }
    m_memory->showDesign(
        {design, shown, overlay, side, m_timeline->preview() ? m_document.prediction() : nullptr, device, pending});
    showKinds();
}

void MainWindow::alignCharts()
{
    const TimeAxis& axis = m_timeline->axis();
    m_memory->setAxis(axis);
    m_memory->setReadings(m_timeline->readings()); // the ruler's ticks have changed
}

void MainWindow::placeNext()
{
    const Diagnostics faults = m_tray->placeNext();
    if (hasErrors(faults))
        m_foot->setHint(proseText(faults.front()));
}

void MainWindow::showRunnable()
{
    m_actions->run->setEnabled(m_runs->isPossible());
    m_topBar->runButton()->setEnabled(m_runs->isPossible());
    m_topBar->setRunning(m_runs->controller().isRunning());
}

void MainWindow::showGradients()
{
    const Document::Overlay* overlay = m_document.overlay();
    const JsonValue result = overlay == nullptr ? JsonValue() : JsonValue::fromText(overlay->resultJson);
    const JsonValue& check = result.member("gradient_check");
    if (!check.isObject() || check.contains("skipped")) { // the run did not check gradients
        m_foot->setGradients({}, true, {});
    } else if (check.member("bit_equal").boolean().value_or(false)) {
        m_foot->setGradients(tr("bit-equal ✓"), true,
                             tr("Gradients of the last step against the sequential run, in %1").arg(overlay->path));
    } else {
        // What is not finite is written as null.
        const double error =
            check.member("max_relative_error").number().value_or(std::numeric_limits<double>::infinity());
        m_foot->setGradients(error > 0 ? tr("differ by %1").arg(error, 0, 'g', 2) : tr("equal but for rounding"),
                             error <= check.member("within").number().value_or(-1),
                             tr("Largest relative difference to the sequential run, in %1").arg(overlay->path));
    }
}

void MainWindow::openExample()
{
    m_document.reset(exampleDesign());
    m_timeline->showAll();
}

void MainWindow::showTitle()
{
    setWindowTitle(m_files->name() + QStringLiteral("[*]")); // Qt appends the program's name
}

void MainWindow::showDiagnostics()
{
    if (!m_diagnostics)
        m_diagnostics = new DiagnosticList(m_document, *m_findings, this);
    bringUp(*m_diagnostics);
}

void MainWindow::showShortcuts()
{
    auto* list = new ShortcutList(m_actions->groups(), this);
    list->setAttribute(Qt::WA_DeleteOnClose);
    list->show();
}

void MainWindow::switchTheme()
{
    DesignerApplication::switchTheme(*m_settings);
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
        connect(m_profile, &ProfileDialog::newScheduleWanted, m_files, &DesignFiles::newScheduleOf);
        connect(m_profile, &ProfileDialog::profiled, this, [this](const QString& module, const QString& python) {
            RunChoice choice = RunChoice::load(*m_settings); // Run offers the backend that was measured
            choice.backend = QStringLiteral("torch");
            choice.module = module;
            choice.python = python;
            choice.syntheticStages = false;
            choice.save(*m_settings);
            if (RunSettings* settings = m_runs->settings())
                settings->setModule(module, python);
            m_timeline->showAll();
        });
    }
    bringUp(*m_profile);
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
        this, [this, paths] { m_files->openFiles(paths); }, Qt::QueuedConnection);
}

void MainWindow::closeEvent(QCloseEvent* event)
{
    if (!m_runs->mayEnd() || !m_files->mayDiscard()) {
        event->ignore();
        return;
    }
    m_runs->controller().cancel(); // other windows may keep the program open
    rememberLayout();
    m_files->endSession();
    m_others->endSession();
    if (m_autosave)
        m_autosave->finish();
    event->accept();
}

void MainWindow::complain(const QString& title, const QString& text)
{
    auto* box = new QMessageBox(QMessageBox::Warning, title, text, QMessageBox::Ok, this);
    box->setAttribute(Qt::WA_DeleteOnClose);
    box->open();
}

} // namespace pipewright

#include "moc_mainwindow.cpp"
