// SPDX-License-Identifier: GPL-3.0-or-later
// Memory against bubble: all families and settings for the design's model, cluster and microbatches, evaluated in the
// background and drawn as they finish, with progress, remaining time and Cancel. A click or Return makes a point the
// schedule in one undo step. Closing does not wait.
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

class NoiseFields;
class TradeOffPlot;

class TradeOffWindow : public QDialog {
    Q_OBJECT

public:
    explicit TradeOffWindow(Document& document, QWidget* parent = nullptr);
    ~TradeOffWindow() override;

    void start();  ///< anew, for the present design
    void cancel(); ///< keeps the evaluated points
    bool isRunning() const { return m_running; }
    const std::vector<TradeOff>& points() const { return m_points; }
    TradeOffPlot& plot() { return *m_plot; }
    NoiseFields& noise() { return *m_noise; } ///< a change restarts the evaluation
    QTreeWidget* list() const { return m_list; }
    QPushButton* button() const { return m_button; } ///< Cancel while running, else Work out again
    QString state() const;
    /// Makes a point's schedule in the background, because families that search take long, and then makes it the
    /// document's schedule. Taking another point replaces this request.
    void take(int point);

Q_SIGNALS:
    void finished(); ///< all are evaluated, or the rest was cancelled

protected:
    void showEvent(QShowEvent* event) override;

private:
    void add(const TradeOff& point);
    void finishTaking(const Design& design, const QString& label);
    void end(const QString& state);
    void showPoints();
    void refreshList();
    void refreshPresent();
    bool isStale() const; ///< the design now has another model, cluster, costs or microbatch count

    Document& m_document;
    Design m_base; ///< the design of the points
    std::vector<TradeOff> m_points;
    std::size_t m_wanted = 0;
    bool m_running = false;
    QString m_result; ///< the state's text while nothing is running
    QElapsedTimer m_clock;
    TradeOffPlot* m_plot;
    QTreeWidget* m_list;
    NoiseFields* m_noise;
    QProgressBar* m_progress;
    QLabel* m_state;
    QPushButton* m_button;
    /// Results of worker threads. Outlives the window, which does not wait when it closes.
    struct Inbox {
        std::mutex mutex;
        TradeOffWindow* window = nullptr; ///< null once it is closed
        void post(std::function<void(TradeOffWindow&)> deliver);
    };
    std::shared_ptr<Inbox> m_inbox;
    std::stop_source m_search, m_making; ///< of the latest requests
};

} // namespace pipewright
