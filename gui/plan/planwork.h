// SPDX-License-Identifier: GPL-3.0-or-later
// A search for plans, or what differs between two lists, on another thread. That thread writes to a channel which the
// window's timer reads, so nothing of the window is touched by it: destroying this object stops the search and does not
// wait for it.
#pragma once

#include "gui/plan/listchange.h"

#include "core/plan/plan.h"

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
    void stop(); ///< finished() follows with the best so far
    void drop(); ///< nothing follows
    bool isRunning() const { return m_channel != nullptr; }
    bool isStopping() const;

Q_SIGNALS:
    void progressed(const pipewright::PlanProgress& now);
    void found(const std::vector<pipewright::PlanFound>& plans); ///< since the last time
    void finished(std::shared_ptr<const pipewright::PlanResult> result);
    void differs(const pipewright::PlanDifference& difference);
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
