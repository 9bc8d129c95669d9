// SPDX-License-Identifier: GPL-3.0-or-later
// A recording of another tool, opened: its lanes, what its devices' time went to and which of them holds up the others,
// what is selected, and what the stretch in sight or measured adds up to, by name and by lane. Steps are picked from a
// list; stretches carry notes. Opening and adding up happen in the background; opening shows how far it is and can be
// cancelled. What the import had to leave out is said in the window.
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

    /// Whether a file is one for this window: another tool's trace, imported already or not.
    static bool opens(const QString& path);
    /// In the background; opened() or failed() follows. What is not imported yet is imported into `cacheFolder` first
    /// and found there the next time.
    void open(const QString& path, const QString& cacheFolder = {});
    void cancel();
    bool exportTo(const QString& path); ///< .png of what is in sight; false (after saying so) when it cannot be written

    /// A report of the whole trace as one HTML page, in the background; reported() follows.
    void reportTo(const QString& path);
    void showQuery(); ///< the SQL box over this trace

    ActivityView& view() { return *m_view; }
    QComboBox* stepPicker() const { return m_step; }
    DeviceTimeList* devices() const { return m_devices; }
    NoteList* notes() const { return m_notes; }
    QueryWindow* query() const { return m_query; } ///< null until it was shown
    QString verdict() const;                       ///< the sentence above the tables
    QLineEdit* searchField() const { return m_search; }
    QTreeWidget* names() const { return m_names; }
    QTreeWidget* lanes() const { return m_lanes; }
    FactList& facts() { return *m_facts; }
    QPushButton* cancelButton() const { return m_cancel; }
    QString state() const;
    bool isSummed() const { return !m_summing; } ///< the tables are those of what is in sight

Q_SIGNALS:
    void opened();
    void failed(const QString& why);
    void summed();
    void reported(const QString& path); ///< empty: it could not be written

protected:
    void changeEvent(QEvent* event) override;

private:
    void build();
    QWidget* buildSide();
    /// What the worker read: the trace, the file that holds it, and who launched what.
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
    std::pair<Nanoseconds, Nanoseconds> explained() const; ///< the measured range, or else all of the trace
    void showSelection();
    void sumUp(); ///< of what is in sight or measured
    void fill(const ActivitySummary& summary);
    void findNext(int direction);
    QString besideTrace(const QString& suffix) const; ///< a name for what is exported
    void exportPicture();
    void exportReport();

    ActivityView* m_view;
    QComboBox* m_step;
    QLabel* m_verdict;
    DeviceTimeList* m_devices;
    NoteList* m_notes;
    QueryWindow* m_query = nullptr;
    Opened m_opened;
    std::optional<std::pair<Nanoseconds, Nanoseconds>> m_timesOf; ///< what the devices' times are shown of
    QLineEdit* m_search;
    QProgressBar* m_progress;
    QPushButton* m_cancel;
    QLabel* m_title;
    QLabel* m_state;
    QString m_size; ///< of the trace, in words; the state while nothing else is to be said
    QLabel* m_report;
    QLabel* m_stretch;
    FactList* m_facts;
    QTabWidget* m_tabs;
    QTreeWidget* m_names;
    QTreeWidget* m_lanes;
    ActivitySummary m_summary;
    std::vector<TraceStep> m_steps;
    bool m_summing = false;
    QTimer m_later; ///< a zoom is many small steps; they are added up once
    QThreadPool m_worker;
    std::atomic<int> m_opening{0}, m_request{0};
};

} // namespace pipewright
