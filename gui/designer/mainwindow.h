// SPDX-License-Identifier: GPL-3.0-or-later
// The designer's window: one Document and its views. The window arranges them, keeps the charts on the timeline's axis
// and shows the effect of a drag. Files, recordings, runs and other windows have classes of their own.
#pragma once

#include "gui/designer/breadcrumb.h"
#include "gui/designer/desk.h"
#include "gui/designer/findfield.h"

#include <QWidget>

#include <memory>
#include <vector>

class QSplitter;
class QTabWidget;

namespace pipewright {

class Autosave;
class Baseline;
class BuildingBlockPreview;
class DesignFiles;
class DesignMenus;
class DesignRuns;
class DiagnosticList;
class Dock;
class EditDifferences;
class FamilyList;
class Findings;
class FirstHints;
class FootLine;
class Inspector;
class Legend;
class MemoryPanel;
class Minimap;
class OtherWindows;
class Overlays;
class PictureDialog;
class ProfileDialog;
class RunErrors;
class RunStrip;
class SideSwitch;
class SuggestionList;
class TimelineView;
class TopBar;
class Tray;
class WindowActions;
class VerdictStrip;
class WindowFrames;

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
    TimelineView& timeline() { return *m_timeline; }
    Minimap& minimap() { return *m_minimap; }
    Tray& tray() { return *m_tray; }
    FamilyList& families() { return *m_families; }
    DesignFiles& files() { return *m_files; }
    Overlays& overlays() { return *m_overlays; }
    DesignRuns& runs() { return *m_runs; }
    OtherWindows& others() { return *m_others; }
    DesignMenus& menus() { return *m_menus; }            ///< of the title
    PictureDialog* pictureDialog() { return m_picture; } ///< null until opened
    ProfileDialog* profileDialog() { return m_profile; } ///< likewise
    Inspector& inspector() { return *m_inspector; }
    SuggestionList& suggestions() { return *m_suggestions; }
    EditDifferences& differences() { return *m_differences; }
    RunErrors& runErrors() { return *m_runErrors; }
    MemoryPanel& memory() { return *m_memory; }
    VerdictStrip& verdicts() { return *m_verdicts; }
    FootLine& foot() { return *m_foot; } ///< the line at the bottom
    Baseline& baseline() { return *m_baseline; }
    TopBar& topBar() { return *m_topBar; }
    Legend& legend() { return *m_legend; }
    RunStrip& runStrip() { return *m_runStrip; }
    FirstHints& hints() { return *m_hints; }
    QSplitter& columns() { return *m_columns; }  ///< families, timeline and charts, inspector
    QSplitter& rows() { return *m_rows; }        ///< timeline, dock
    Dock& dock() { return *m_dock; }             ///< memory, compare, run, kernels, transfers, microbatches
    QTabWidget& answers() { return *m_answers; } ///< the tabs at the right: block, run
    SideSwitch& sideSwitch() { return *m_side; }
    WindowActions& windowActions() { return *m_actions; }
    Autosave* autosave() { return m_autosave.get(); }

    /// The example at the start: a well-known model with its prediction, no recording and no unsaved changes.
    void openExample();

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
    void buildDock();                                    ///< its pages, of panels that exist by then
    void chooseBlocks(const std::vector<Block>& blocks); ///< of a row of a table
    enum Answer { OfBlock, OfRun };
    void showAnswer(Answer answer); ///< its tab at the right, from the top
    void restoreLayout();           ///< geometry, splitters and visible panels of the last session
    void rememberLayout();
    void addPanels();      ///< actions that hide parts of the window
    void arrangeColumns(); ///< as wide as the window allows, until somebody drags a border
    void arrangeRows();    ///< likewise, by the height that the lanes need
    void connectActions();
    void connectPanels();
    void connectTimeline();
    void connectDocument();
    void connectRunErrors();
    void connectControllers();
    void refresh();        ///< after any change of the design
    void refreshNumbers(); ///< of the drag's preview while there is one
    void showKinds();      ///< of the memory of the device in the dock
    void alignCharts();
    void showTitle();
    void showGap(int device, qint64 start, qint64 end);
    void showGradients();                               ///< of the overlaid run
    void showRunnable();                                ///< whether Run can be pressed
    void findBlock(const QString& text, int direction); ///< the next or previous block whose name starts with the text
    void openPart(Breadcrumb::Part part);               ///< of the title: its page
    void placeNext();
    void showDiagnostics();
    void showShortcuts();
    std::vector<FindField::Entry> foundEntries(); ///< of the field that finds
    void showPicture();
    void profileModule(); ///< profiles the user's module, which becomes the design's model
    void switchTheme();
    void complain(const QString& title, const QString& text);

    Options m_options;
    std::unique_ptr<QSettings> m_settings;
    Document m_document;
    std::unique_ptr<Autosave> m_autosave;

    WindowActions* m_actions;
    WindowFrames* m_frames;
    DesignFiles* m_files;
    Overlays* m_overlays;
    DesignRuns* m_runs;
    DesignMenus* m_menus = nullptr;
    Findings* m_findings = nullptr;
    TopBar* m_topBar = nullptr;
    Baseline* m_baseline = nullptr;
    SideSwitch* m_side = nullptr;
    VerdictStrip* m_verdicts = nullptr;
    Tray* m_tray = nullptr;
    FamilyList* m_families = nullptr;
    BuildingBlockPreview* m_blockPreview = nullptr;
    TimelineView* m_timeline = nullptr;
    Minimap* m_minimap = nullptr;
    Dock* m_dock = nullptr;
    MemoryPanel* m_memory = nullptr;
    Inspector* m_inspector = nullptr;
    SuggestionList* m_suggestions = nullptr;
    EditDifferences* m_differences = nullptr;
    QSplitter* m_columns = nullptr;
    QSplitter* m_rows = nullptr;
    std::pair<const Prediction*, int> m_kindsOf;        ///< the device whose memory is shown by kind
    bool m_columnsAreOwn = false, m_rowsAreOwn = false; ///< somebody dragged their borders
    QWidget* m_left = nullptr;                          ///< the columns beside the timeline
    QWidget* m_right = nullptr;
    QTabWidget* m_answers = nullptr; ///< the right one: block, run
    Legend* m_legend = nullptr;
    FirstHints* m_hints = nullptr;
    RunErrors* m_runErrors = nullptr;
    RunStrip* m_runStrip = nullptr;
    FootLine* m_foot = nullptr;
    DiagnosticList* m_diagnostics = nullptr;
    OtherWindows* m_others = nullptr;
    // Created on first use.
    PictureDialog* m_picture = nullptr;
    ProfileDialog* m_profile = nullptr;
};

} // namespace pipewright
