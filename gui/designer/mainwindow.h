// SPDX-License-Identifier: GPL-3.0-or-later
// The designer's window: one Document and its views. The window arranges them, keeps the charts on the timeline's axis,
// shows the effect of a drag, and opens and saves files.
#pragma once

#include "gui/designer/breadcrumb.h"
#include "gui/designer/recentfiles.h"
#include "gui/document/document.h"

#include <QSettings>
#include <QWidget>

#include <memory>

class QAction;
class QMenu;
class QScrollArea;
class QSpacerItem;
class QSplitter;

namespace pipewright {

class Autosave;
class BuildingBlockPreview;
class BubblePanel;
class DiagnosticList;
class EditDifferences;
class FamilyList;
class Findings;
class FirstHints;
class Inspector;
class Legend;
class MemoryPanel;
class Minimap;
class NumberBar;
class OtherWindows;
class PictureDialog;
class ProfileDialog;
class RunController;
class RunErrors;
class RunSettings;
class RunStrip;
class SideSwitch;
class SuggestionList;
class TimelineView;
class TopBar;
class TraceWindow;
class Tray;
class WindowActions;
class WindowFrames;
struct ChildResult;
struct RunChoice;

class MainWindow : public QWidget {
    Q_OBJECT

public:
    struct Options {
        QString settingsFile;   ///< empty: the user's own
        QString autosaveFolder; ///< empty: none
        QString traceFolder;    ///< where runs are recorded; empty: the application's data folder
        QString program;        ///< the binary that runs designs; empty: this one
    };
    explicit MainWindow(const Options& options, QWidget* parent = nullptr);
    ~MainWindow() override;

    Document& document() { return m_document; }
    /// Takes the costs of a recorded run or of a design of the same model for the present schedule.
    void takeCostsFrom(const QString& path);
    TimelineView& timeline() { return *m_timeline; }
    Minimap& minimap() { return *m_minimap; }
    Tray& tray() { return *m_tray; }
    FamilyList& families() { return *m_families; }
    OtherWindows& others() { return *m_others; }
    PictureDialog* pictureDialog() { return m_picture; }
    ProfileDialog* profileDialog() { return m_profile; }
    Inspector& inspector() { return *m_inspector; }
    SuggestionList& suggestions() { return *m_suggestions; }
    EditDifferences& differences() { return *m_differences; }
    bool reportTo(const QString& path); ///< HTML report of the overlaid run; false after an error message
    RunErrors& runErrors() { return *m_runErrors; }
    MemoryPanel& memory() { return *m_memory; }
    BubblePanel& bubbles() { return *m_bubbles; }
    NumberBar& numbers() { return *m_numbers; }
    TopBar& topBar() { return *m_topBar; }
    Legend& legend() { return *m_legend; }
    RunController& runs() { return *m_run; }
    RunStrip& runStrip() { return *m_runStrip; }
    RunSettings* runSettings() { return m_runSettings; } ///< null until Run was pressed
    FirstHints& hints() { return *m_hints; }
    QSplitter& columns() { return *m_columns; } ///< families, timeline and charts, inspector
    QSplitter& rows() { return *m_rows; }       ///< timeline, memory, bubbles
    SideSwitch& sideSwitch() { return *m_side; }
    WindowActions& windowActions() { return *m_actions; }
    Autosave* autosave() { return m_autosave.get(); }

    /// Opens a design or a recording; false (after telling the user) when it cannot be read.
    bool openFile(const QString& path);
    /// The example at the start: a well-known model with its prediction, no recording and no unsaved changes.
    void openExample();
    /// Imports another tool's recording and opens it in a trace window.
    void openTrace(const QString& path) { openTraces({path}); }
    TraceWindow* openTraces(const QStringList& paths); ///< of several ranks, in one window
    /// Overlays recordings on the present design; traces of several ranks or of another tool are imported into one file
    /// first.
    void layOver(const QStringList& paths);
    void overlay(const QString& recording); ///< shows a message on failure
    /// Opens one file, the traces of several ranks, or a design and lays its recording or traces over it
    /// (designAmong()); false after an error message.
    bool openFiles(const QStringList& paths);
    /// The one design among files of which the others can be laid over it: one recording, or traces of other tools.
    /// Empty: these are other files. Throws Error: a trace is locked.
    static QString designAmong(const QStringList& paths);
    bool saveTo(const QString& path);
    /// Session: the file open when the last window closed (false: none, or deleted).
    bool restoreFile();
    QString documentName() const; ///< of the design, and of its file where there is one
    void showTitle();
    /// Asks what to do with unsaved changes; false when the user wants to stay.
    bool mayDiscard();

public Q_SLOTS:
    void newSchedule() { newScheduleOf({}); }
    void newScheduleOf(const QString& modelFile); ///< a file of the person's own; empty: a preset
    void open();
    bool save();
    bool saveAs();
    void run();
    void openRecordedExample(); ///< a run of a small model, laid over its prediction
    void openOverlay();
    void openPart(Breadcrumb::Part part); ///< of the title: its page
    void showGradients();                 ///< of the overlaid run
    void calibrateFromOverlay();
    void chooseCosts();
    void exportReport();
    void queryOverlay();
    void showDiagnostics();
    void showShortcuts();
    void switchTheme();
    void showPicture();
    void profileModule(); ///< profiles the user's module, which becomes the design's model
    void placeNext();
    void showPalette();
    void print();

protected:
    void closeEvent(QCloseEvent* event) override;
    void dragEnterEvent(QDragEnterEvent* event) override;
    void dropEvent(QDropEvent* event) override;
    void showEvent(QShowEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;

private:
    void build();
    QWidget* buildLeft();
    QWidget* buildCentre();
    QWidget* buildRight();
    void makeRoomForHint(bool there); ///< the hint at Run reaches over the right panel
    void restoreLayout();             ///< geometry, splitters and visible panels of the last session
    void rememberLayout();
    void addPanels();      ///< actions that hide parts of the window
    void arrangeColumns(); ///< as wide as the window allows, until somebody drags a border
    void arrangeRows();    ///< likewise, by the height that the lanes need
    void connectViews();
    void connectActions();
    void connectPanels();
    void connectTimeline();
    void connectDocument();
    void connectRunErrors();
    void refresh();        ///< after any change of the design
    void refreshNumbers(); ///< of the drag's preview while there is one
    void alignCharts();
    void refreshRecent();
    void showGap(int device, qint64 start, qint64 end);
    void takeSmallDesign(); ///< in place of a model that cannot be trained here
    void startRun(const RunChoice& choice);
    void takeRun(const ChildResult& result);            ///< overlays it if the order is still the present one
    bool mayEndRun();                                   ///< asks while one is under way; false: stay
    void showRunnable();                                ///< whether Run can be pressed
    void findBlock(const QString& text, int direction); ///< the next or previous block whose name starts with the text
    void complain(const QString& title, const QString& text);
    QString dataFolder(const QString& name) const;

    Options m_options;
    std::unique_ptr<QSettings> m_settings;
    RecentFiles m_recent;
    Document m_document;
    std::unique_ptr<Autosave> m_autosave;

    WindowActions* m_actions;
    WindowFrames* m_frames;
    Findings* m_findings = nullptr;
    TopBar* m_topBar = nullptr;
    SideSwitch* m_side = nullptr;
    Tray* m_tray = nullptr;
    FamilyList* m_families = nullptr;
    BuildingBlockPreview* m_blockPreview = nullptr;
    TimelineView* m_timeline = nullptr;
    Minimap* m_minimap = nullptr;
    MemoryPanel* m_memory = nullptr;
    BubblePanel* m_bubbles = nullptr;
    Inspector* m_inspector = nullptr;
    SuggestionList* m_suggestions = nullptr;
    EditDifferences* m_differences = nullptr;
    QSplitter* m_columns = nullptr;
    QSplitter* m_rows = nullptr;
    bool m_columnsAreOwn = false, m_rowsAreOwn = false; ///< somebody dragged their borders
    QWidget* m_left = nullptr;                          ///< the columns beside the timeline
    QWidget* m_right = nullptr;
    QScrollArea* m_inspectorScroll = nullptr; ///< in the right one, below the switch
    QSpacerItem* m_aboveSide = nullptr;
    Legend* m_legend = nullptr;
    FirstHints* m_hints = nullptr;
    RunErrors* m_runErrors = nullptr;
    RunController* m_run = nullptr;
    RunStrip* m_runStrip = nullptr;
    RunSettings* m_runSettings = nullptr;
    std::shared_ptr<const Design> m_ranDesign; ///< of the last run
    NumberBar* m_numbers = nullptr;
    DiagnosticList* m_diagnostics = nullptr;
    OtherWindows* m_others = nullptr;
    // Created on first use.
    PictureDialog* m_picture = nullptr;
    ProfileDialog* m_profile = nullptr;
};

} // namespace pipewright
