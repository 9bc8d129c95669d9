// SPDX-License-Identifier: GPL-3.0-or-later
// Which memory buys which bubble: all families and settings worked out in the background for the model, cluster
// and microbatches of the design, drawn as they come, with progress, an estimate of the time left and Cancel. A
// point becomes the schedule by click or Return, as one undoable command, and then gives exactly what was drawn.
// Closing waits for nothing.
#pragma once

#include "gui/document/document.h"

#include "core/search/tradeoffs.h"

#include <QDialog>
#include <QElapsedTimer>

#include <memory>
#include <mutex>
#include <stop_token>

class QLabel;
class QProgressBar;
class QPushButton;
class QTreeWidget;

namespace pipewright {

class TradeOffPlot;

class TradeOffWindow : public QDialog {
    Q_OBJECT

public:
    explicit TradeOffWindow(Document& document, QWidget* parent = nullptr);
    ~TradeOffWindow() override;

    void start();  ///< anew, for the present design
    void cancel(); ///< what was worked out stays
    bool isRunning() const { return m_running; }
    const std::vector<TradeOff>& points() const { return m_points; }
    TradeOffPlot& plot() { return *m_plot; }
    QTreeWidget* list() const { return m_list; }
    QPushButton* button() const { return m_button; } ///< Cancel while running, else Work out again
    QString state() const;
    /// Makes a point's schedule, on another thread since a family that searches takes its time, and then makes it
    /// the design. Taking another point meanwhile takes the place of this one.
    void take(int point);

Q_SIGNALS:
    void finished(); ///< all are worked out, or the rest was cancelled

protected:
    void showEvent(QShowEvent* event) override;
    void changeEvent(QEvent* event) override;

private:
    void add(const TradeOff& point);
    void finishTaking(const Design& design, const QString& label);
    void end(const QString& state);
    void refreshList();
    void refreshPresent();
    bool isStale() const; ///< the design now has another model, cluster, costs or microbatch count

    Document& m_document;
    Design m_base; ///< what the points were worked out for
    std::vector<TradeOff> m_points;
    std::size_t m_wanted = 0;
    bool m_running = false;
    QString m_result; ///< what the state says when nothing is under way
    QElapsedTimer m_clock;
    TradeOffPlot* m_plot;
    QTreeWidget* m_list;
    QProgressBar* m_progress;
    QLabel* m_state;
    QPushButton* m_button;
    /// Where work on other threads leaves its results. It outlives the window, which waits for nobody when it closes.
    struct Inbox {
        std::mutex mutex;
        TradeOffWindow* window = nullptr; ///< null once it is closed
        void post(std::function<void(TradeOffWindow&)> deliver);
    };
    std::shared_ptr<Inbox> m_inbox;
    std::stop_source m_search, m_making; ///< of what was asked for last
};

} // namespace pipewright
