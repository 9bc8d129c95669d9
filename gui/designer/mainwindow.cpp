// SPDX-License-Identifier: GPL-3.0-or-later
// Connections between the window's views; how it is laid out is in mainwindowlayout.cpp, files are in
// mainwindowfiles.cpp.
#include "gui/designer/mainwindow.h"

#include "executor/run/backendcheck.h"
#include "executor/run/grouprun.h"
#include "gui/buildingblock/buildingblockeditor.h"
#include "gui/buildingblock/buildingblockpreview.h"
#include "gui/designer/breadcrumb.h"
#include "gui/designer/bubblepanel.h"
#include "gui/designer/commandpalette.h"
#include "gui/designer/diagnosticlist.h"
#include "gui/designer/editdifferences.h"
#include "gui/designer/familylist.h"
#include "gui/designer/legend.h"
#include "gui/designer/numberbar.h"
#include "gui/designer/otherwindows.h"
#include "gui/designer/sideswitch.h"
#include "gui/designer/topbar.h"
#include "gui/designer/windowactions.h"
#include "gui/designer/windowframes.h"
#include "gui/document/autosave.h"
#include "gui/document/memberforecast.h"
#include "gui/document/timelinelayout.h"
#include "gui/inspector/inspector.h"
#include "gui/inspector/suggestionlist.h"
#include "gui/inspector/tray.h"
#include "gui/memory/memorypanel.h"
#include "gui/run/runcontroller.h"
#include "gui/timeline/minimap.h"
#include "gui/timeline/timelineview.h"
#include "gui/trace/runerrors.h"
#include "gui/widgets/labels.h"
#include "gui/widgets/words.h"

#include <QAction>
#include <QApplication>
#include <QLineEdit>
#include <QMenu>
#include <QMessageBox>
#include <QPushButton>
#include <QScreen>
#include <QScrollArea>
#include <QVBoxLayout>

#include <algorithm>
#include <tuple>
#include <utility>

namespace pipewright {

MainWindow::MainWindow(const Options& options, QWidget* parent)
    : QWidget(parent), m_options(options),
      m_settings(options.settingsFile.isEmpty()
                     ? std::make_unique<QSettings>()
                     : std::make_unique<QSettings>(options.settingsFile, QSettings::IniFormat)),
      m_recent(*m_settings), m_actions(new WindowActions(m_document.undoStack(), this)),
      m_frames(new WindowFrames(*m_settings, this))
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
    build();
    connectViews();
    refreshRecent();
    if (!options.autosaveFolder.isEmpty()) {
        try {
            m_autosave = std::make_unique<Autosave>(m_document, options.autosaveFolder);
            connect(m_autosave.get(), &Autosave::failed, m_numbers, [this](const QString& why) {
                m_numbers->setWarning(tr("autosave"), tr("failed: save to another place"), why);
                m_numbers->setHint(why);
            });
            connect(m_autosave.get(), &Autosave::written, m_numbers,
                    [this] { m_numbers->setWarning(tr("autosave"), {}, {}); });
        } catch (const Error& error) {
            m_numbers->setWarning(tr("autosave"), tr("off"), QString::fromUtf8(error.what()));
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

void MainWindow::connectViews()
{
    connectActions();
    connectPanels();
    connectTimeline();
    connectDocument();
    connectRunErrors();
    refresh();
}

void MainWindow::connectActions()
{
    const auto on = [this](QAction* action, auto slot) { connect(action, &QAction::triggered, this, slot); };
    on(m_actions->newSchedule, &MainWindow::newSchedule);
    on(m_actions->profile, &MainWindow::profileModule);
    on(m_actions->open, &MainWindow::open);
    on(m_actions->save, &MainWindow::save);
    on(m_actions->saveAs, &MainWindow::saveAs);
    on(m_actions->picture, &MainWindow::showPicture);
    on(m_actions->quit, &QWidget::close);
    on(m_actions->place, &MainWindow::placeNext);
    on(m_actions->palette, &MainWindow::showPalette);
    on(m_actions->print, &MainWindow::print);
    on(m_actions->run, &MainWindow::run);
    on(m_actions->openOverlay, &MainWindow::openOverlay);
    on(m_actions->calibrate, &MainWindow::calibrateFromOverlay);
    on(m_actions->costsFrom, &MainWindow::chooseCosts);
    connect(m_actions->traceLanes, &QAction::triggered, this, [this] {
        if (m_document.overlay())
            openTrace(m_document.overlay()->path);
    });
    on(m_actions->diagnostics, &MainWindow::showDiagnostics);
    on(m_actions->recordedRun, &MainWindow::openRecordedExample);
    on(m_actions->theme, &MainWindow::switchTheme);
    on(m_actions->shortcuts, &MainWindow::showShortcuts);
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
    connect(m_actions->find, &QAction::triggered, m_topBar, &TopBar::showSearch);
    for (QAction* action : {m_actions->clearOverlay, m_actions->calibrate, m_actions->traceLanes})
        action->setEnabled(false); // there is no overlay yet
}

void MainWindow::connectPanels()
{
    connect(m_blockPreview, &BuildingBlockPreview::opened, m_others, [this] { m_others->open<BuildingBlockEditor>(); });
    connect(m_run, &RunController::finished, this, &MainWindow::takeRun);
    connect(m_topBar, &TopBar::diagnosticsRequested, this, &MainWindow::showDiagnostics);
    connect(m_topBar, &TopBar::searched, this, &MainWindow::findBlock);
    connect(m_topBar, &TopBar::searchLeft, m_timeline, [this] { m_timeline->setFocus(); });
    const auto refuse = [this](const Diagnostics& faults) { complain(tr("That is not possible"), proseText(faults)); };
    connect(m_tray, &Tray::refused, this, refuse);
    connect(m_families, &FamilyList::refused, this, refuse);
    connect(m_families, &FamilyList::estimatesChanged, m_suggestions,
            [this] { m_suggestions->setEstimates(m_families->estimates()); });
    connect(m_suggestions, &SuggestionList::familyChosen, m_families, &FamilyList::switchTo);
    connect(&m_topBar->breadcrumb(), &Breadcrumb::opened, this, &MainWindow::openPart);
    connect(m_memory, &MemoryPanel::pointedAt, m_timeline, &TimelineView::pointAt);
    connect(m_memory, &MemoryPanel::hovered, m_numbers, &NumberBar::setHint);
    connect(m_memory, &MemoryPanel::modeChanged, this, &MainWindow::refreshNumbers);
    connect(m_differences, &EditDifferences::changed, this,
            [this] { m_numbers->setChanges(m_differences->changes()); });
}

void MainWindow::connectTimeline()
{
    connect(m_timeline, &TimelineView::editRefused, m_numbers, &NumberBar::setHint);
    connect(m_timeline, &TimelineView::hovered, m_numbers, &NumberBar::setHint);
    connect(m_timeline, &TimelineView::gapClicked, this, &MainWindow::showGap);
    connect(m_timeline, &TimelineView::viewRangeChanged, this, &MainWindow::alignCharts);
    // Queued, since the lanes may change during a layout pass, which ignores sizes that change while it runs.
    connect(m_timeline, &TimelineView::lanesChanged, this, &MainWindow::arrangeRows, Qt::QueuedConnection);
    connect(m_timeline, &TimelineView::readingsChanged, this, [this] {
        m_memory->setReadings(m_timeline->readings());
        m_bubbles->setReadings(m_timeline->readings());
    });
    connect(m_timeline, &TimelineView::previewChanged, this, [this] {
        m_differences->setPreview(m_timeline->isPreviewing(), m_timeline->preview());
        refreshNumbers();
    });
}

void MainWindow::connectDocument()
{
    connect(&m_document, &Document::designChanged, this, &MainWindow::refresh);
    connect(&m_document, &Document::sideChanged, this, [this] {
        m_numbers->setHint({}); // it described the other side
        refreshNumbers();
    });
    connect(&m_document, &Document::memoryChanged, this, &MainWindow::refreshNumbers);
    connect(&m_document, &Document::selectionChanged, this, &MainWindow::refreshNumbers);
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
        m_numbers->setHint(m_document.isWorking() ? tr("Working out the times of this edit …") : QString());
    });
}

void MainWindow::connectRunErrors()
{
    m_runErrors->setStretch([this] { return m_timeline->range().value_or(m_timeline->timeRange()); });
    connect(m_runErrors, &RunErrors::blocksChosen, this, [this](const std::vector<Block>& blocks) {
        m_timeline->selectBlocks(blocks);
        if (!blocks.empty())
            m_timeline->ensureVisible(blocks.front());
    });
    connect(m_runErrors, &RunErrors::stretchChosen, this, [this](qint64 start, qint64 end) {
        m_timeline->setRange(std::pair(start, end));
        m_timeline->showRange(start, end);
    });
    connect(m_runErrors, &RunErrors::reportRequested, this, &MainWindow::exportReport);
    connect(m_runErrors, &RunErrors::queryRequested, this, &MainWindow::queryOverlay);
    connect(m_runErrors, &RunErrors::failed, this,
            [this](const QString& why) { complain(tr("That is not possible"), why); });
}

void MainWindow::refresh()
{
    const bool complete = m_document.unplaced().empty();
    showRunnable();
    m_actions->place->setEnabled(!complete);
    m_actions->completeRest->setEnabled(!complete);
    m_numbers->setHint({}); // the hint was about the old schedule
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
    m_numbers->showDesign(design, shown, m_document.evaluationMilliseconds(), m_document.unplaced().empty(), overlay,
                          side, pending);
    m_bubbles->showDesign(design, shown, overlay, side);
    int device = shown ? fullestDevice(shown->metrics) : 0;
    if (const auto block = m_document.selection()) {
        if (block->stage < design.schedule.stages() && block->replica < design.schedule.replicas())
            device = design.schedule.deviceOf(*block);
    }
    m_memory->showDesign(
        {design, shown, overlay, side, m_timeline->preview() ? m_document.prediction() : nullptr, device, pending});
}

void MainWindow::alignCharts()
{
    const TimeAxis& axis = m_timeline->axis();
    m_memory->setAxis(axis);
    m_bubbles->setAxis(axis);
    m_memory->setReadings(m_timeline->readings()); // the ruler's ticks have changed
    m_bubbles->setReadings(m_timeline->readings());
}

void MainWindow::findBlock(const QString& text, int direction)
{
    const QString begin = text.trimmed().toUpper();
    if (begin.isEmpty())
        return;
    struct Hit {
        Nanoseconds start;
        int device;
        Block block;
    };
    std::vector<Hit> hits;
    const std::optional<Block> exact = parseBlock(begin.toStdString());
    const std::vector<Lane>& lanes = m_timeline->layout().lanes();
    for (std::size_t device = 0; device < lanes.size(); ++device)
        for (const LaneBlock& block : lanes[device].blocks())
            if (exact ? block.block == *exact : blockText(block.block).startsWith(begin))
                hits.push_back({block.start, static_cast<int>(device), block.block});
    std::sort(hits.begin(), hits.end(),
              [](const Hit& a, const Hit& b) { return std::tie(a.start, a.device) < std::tie(b.start, b.device); });
    if (hits.empty()) {
        // A block in the tray has no place in a lane, but it can be selected.
        const std::vector<Block>& tray = m_document.unplaced();
        if (exact && std::find(tray.begin(), tray.end(), *exact) != tray.end())
            m_document.select(exact);
        else
            m_numbers->setHint(tr("No block is called that. One is written like F0.3: operation, stage, microbatch"));
        return;
    }
    const auto count = static_cast<int>(hits.size());
    const auto now =
        std::find_if(hits.begin(), hits.end(), [this](const Hit& hit) { return m_document.selection() == hit.block; });
    int index = direction > 0 ? 0 : count - 1;
    if (now != hits.end())
        index = (static_cast<int>(now - hits.begin()) + direction + count) % count;
    const Block found = hits[index].block;
    m_document.select(found);
    m_timeline->ensureVisible(found);
    if (count == 1) {
        m_topBar->searchField()->clear();
        m_timeline->setFocus();
        return;
    }
    m_numbers->setHint(tr("%1, %2 of %3: Enter for the next, Shift+Enter for the one before")
                           .arg(QString::fromStdString(toString(found)))
                           .arg(index + 1)
                           .arg(count));
}

void MainWindow::placeNext()
{
    const Diagnostics faults = m_tray->placeNext();
    if (hasErrors(faults))
        m_numbers->setHint(proseText(faults.front()));
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

void MainWindow::showPalette()
{
    auto* palette = new CommandPalette(m_actions->groups(), this);
    palette->setAttribute(Qt::WA_DeleteOnClose);
    palette->move(mapToGlobal(QPoint((width() - palette->width()) / 2, 64)));
    palette->show();
    palette->activateWindow();
}

void MainWindow::switchTheme()
{
    const Theme& next = Theme::of(*this).isDark ? Theme::light() : Theme::dark();
    next.apply(*qApp);
    m_settings->setValue(QStringLiteral("theme"), next.isDark ? QStringLiteral("dark") : QStringLiteral("light"));
}

void MainWindow::complain(const QString& title, const QString& text)
{
    auto* box = new QMessageBox(QMessageBox::Warning, title, text, QMessageBox::Ok, this);
    box->setAttribute(Qt::WA_DeleteOnClose);
    box->open();
}

} // namespace pipewright

#include "moc_mainwindow.cpp"
