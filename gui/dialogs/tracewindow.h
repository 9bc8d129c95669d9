// SPDX-License-Identifier: GPL-3.0-or-later
// A recording of another tool, opened: its lanes, what is selected, and what the stretch in sight or measured adds up
// to, by name and by lane. Opening and adding up happen in the background; opening shows how far it is and can
// be cancelled. What the import had to leave out is said in the window.
#pragma once

#include "traces/activitysummary.h"

#include <QThreadPool>
#include <QTimer>
#include <QWidget>

#include <atomic>
#include <memory>

class QLabel;
class QLineEdit;
class QProgressBar;
class QPushButton;
class QTabWidget;
class QTreeWidget;

namespace pipewright {

class ActivityView;
class FactList;

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

    ActivityView& view() { return *m_view; }
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

protected:
    void changeEvent(QEvent* event) override;

private:
    void build();
    QWidget* buildSide();
    void take(std::shared_ptr<const StoredActivities> trace);
    void showSelection();
    void sumUp(); ///< of what is in sight or measured
    void fill(const ActivitySummary& summary);
    void findNext(int direction);
    void exportPicture();

    ActivityView* m_view;
    QLineEdit* m_search;
    QProgressBar* m_progress;
    QPushButton* m_cancel;
    QLabel* m_title;
    QLabel* m_state;
    QLabel* m_report;
    QLabel* m_stretch;
    FactList* m_facts;
    QTabWidget* m_tabs;
    QTreeWidget* m_names;
    QTreeWidget* m_lanes;
    ActivitySummary m_summary;
    bool m_summing = false;
    QTimer m_later; ///< a zoom is many small steps; they are added up once
    QThreadPool m_worker;
    std::atomic<int> m_opening{0}, m_request{0};
};

} // namespace pipewright
