// SPDX-License-Identifier: GPL-3.0-or-later
// A search for plans, what differs between two lists, or a plan refined, on another thread. That thread writes to a
// channel which the window's timer reads, so nothing of the window is touched by it: destroying this object stops the
// search and does not wait for it.
#pragma once

#include "gui/plan/listchange.h"

#include "core/plan/plan.h"
#include "core/plan/planrefine.h"

#include <QObject>
#include <QTimer>

#include <functional>
#include <memory>
#include <vector>

namespace pipewright {

class PlanWork : public QObject {
    Q_OBJECT

public:
    explicit PlanWork(QObject* parent = nullptr);
    ~PlanWork() override;

    /// Instead of a search under way, of which nothing is heard any more. Progress and interruption are its own.
    void start(PlanRequest request);
    /// Likewise, what differs between two lists; differs() follows, and of a fault refused().
    void compare(ListBefore before, ListBefore now);
    /// Likewise, a plan of the list past its space; refinedTo() follows, after stop() with the best so far.
    void refine(PlanRequest request, std::shared_ptr<const PlanResult> result, std::size_t plan);
    void stop(); ///< finished() follows with the best so far
    void drop(); ///< nothing follows
    bool isRunning() const { return m_channel != nullptr; }
    bool isStopping() const;

Q_SIGNALS:
    void progressed(const pipewright::PlanProgress& now);
    void found(const std::vector<pipewright::PlanFound>& plans); ///< since the last time
    void finished(std::shared_ptr<const pipewright::PlanResult> result);
    void differs(const pipewright::PlanDifference& difference);
    void refinedTo(const pipewright::RefinedPlan& plan);
    void refused(const pipewright::Diagnostics& why);

private:
    struct Channel;
    /// Runs on another thread, with what it throws taken down.
    void run(std::function<void(Channel&)> work);
    void read();

    std::shared_ptr<Channel> m_channel; ///< of the search under way
    QTimer m_timer;
};

} // namespace pipewright
