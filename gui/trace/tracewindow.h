// SPDX-License-Identifier: GPL-3.0-or-later
// An imported trace: its lanes, the devices' time by cause with the straggler, the selection, and totals of the visible
// or measured range by name and lane. Steps are chosen from a list; ranges carry notes. Opening and summing run in the
// background; opening shows progress and can be cancelled. Records skipped by the import are reported.
#pragma once

#include "traces/analysis/activitysummary.h"
#include "traces/analysis/devicetime.h"

#include <QThreadPool>
#include <QTimer>
#include <QWidget>

#include <atomic>
#include <memory>
#include <optional>

class QComboBox;
class QHBoxLayout;
class QLabel;
class QLineEdit;
class QProgressBar;
class QPushButton;
class QTabWidget;
class QTreeWidget;

namespace pipewright {

class ActivityView;
class DeviceTimeList;
class FactList;
class NoteList;
class QueryWindow;

class TraceWindow : public QWidget {
    Q_OBJECT

public:
    explicit TraceWindow(QWidget* parent = nullptr);
    ~TraceWindow() override;

    /// True for another tool's trace, imported already or not.
    static bool opens(const QString& path);
    /// Opens in the background; opened() or failed() follows. A foreign trace is imported into `cacheFolder`, and this
    /// import is reused next time.
    void open(const QString& path, const QString& cacheFolder = {}) { open(QStringList{path}, cacheFolder); }
    /// Opens the traces of several ranks together, with aligned clocks; all must be another tool's.
    void open(const QStringList& paths, const QString& cacheFolder = {});
    void cancel();
    bool exportTo(const QString& path); ///< .png of the visible range; false after reporting a failure

    /// A report of the whole trace as one HTML page, in the background; reported() follows.
    void reportTo(const QString& path);
    void showQuery(); ///< the SQL box over this trace

    ActivityView& view() { return *m_view; }
    QComboBox* stepPicker() const { return m_step; }
    DeviceTimeList* devices() const { return m_devices; }
    NoteList* notes() const { return m_notes; }
    QueryWindow* query() const { return m_query; } ///< null until first shown
    QString verdict() const;                       ///< the sentence above the tables
    QLineEdit* searchField() const { return m_search; }
    QTreeWidget* names() const { return m_names; }
    QTreeWidget* lanes() const { return m_lanes; }
    FactList& facts() { return *m_facts; }
    QPushButton* cancelButton() const { return m_cancel; }
    QString state() const;
    QString store() const { return m_opened.store; } ///< the database that was read; empty until opened()
    QString leftOut() const;                         ///< records that the import skipped, one line each
    /// The name of a recording for the user: the name of its file, or of the imported file, without extension.
    static QString titleOf(const QString& path);
    QString stretch() const;                     ///< the time range of the visible table, in words
    bool isSummed() const { return !m_summing; } ///< the tables match the visible range

Q_SIGNALS:
    void opened();
    void overlayWanted(); ///< overlay store() on the design of the parent window
    void failed(const QString& why);
    void summed();
    void reported(const QString& path); ///< empty: it could not be written

private:
    void build();
    QWidget* buildSide();
    /// The worker's result: the trace, its file, and the launches.
    struct Opened {
        QString path, store;
        std::shared_ptr<const StoredActivities> trace;
        std::shared_ptr<const LaunchCalls> launches;
    };
    void take(const Opened& what);
    void addButtons(QHBoxLayout& bar);
    void addShortcuts();
    void chooseStep(int index);
    void showTimes(const DeviceTimes& times);
    TraceStep explained() const; ///< the measured range, or else deviceActivity()
    void showSelection();
    void sumUp(); ///< of the visible or measured range
    void fill(const ActivitySummary& summary);
    void showStretch(); ///< shows the time range of the visible table
    void findNext(int direction);
    QString besideTrace(const QString& suffix) const; ///< a file name for exports
    void exportPicture();
    void exportReport();

    ActivityView* m_view;
    QComboBox* m_step;
    QLabel* m_verdict;
    DeviceTimeList* m_devices;
    NoteList* m_notes;
    QueryWindow* m_query = nullptr;
    Opened m_opened;
    std::optional<std::pair<Nanoseconds, Nanoseconds>> m_timesOf; ///< the range of the shown device times
    QLineEdit* m_search;
    QProgressBar* m_progress;
    QPushButton* m_cancel;
    QLabel* m_title;
    QLabel* m_state;
    QString m_size; ///< of the trace, in words; shown when there is no other state
    QLabel* m_report;
    QLabel* m_stretch;
    FactList* m_facts;
    QTabWidget* m_tabs;
    QTreeWidget* m_names;
    QTreeWidget* m_lanes;
    ActivitySummary m_summary;
    std::vector<TraceStep> m_steps;
    TraceStep m_activity; ///< the explained range when none is measured
    bool m_summing = false;
    QTimer m_later; ///< delays summing until zooming pauses
    QThreadPool m_worker;
    std::atomic<int> m_opening{0}, m_request{0};
};

} // namespace pipewright
