// SPDX-License-Identifier: GPL-3.0-or-later
// Background work of which only the latest request counts: start() makes earlier requests outdated, and their results
// are dropped. The destructor waits for running work, so declare this object after the members that the work uses.
#pragma once

#include <QCoreApplication>
#include <QEvent>
#include <QMetaObject>
#include <QObject>
#include <QThreadPool>

#include <atomic>
#include <utility>

namespace pipewright {

class LatestWork {
public:
    LatestWork() { m_pool.setMaxThreadCount(1); }
    ~LatestWork()
    {
        drop();
        m_pool.waitForDone();
    }

    /// Drops all requests.
    void drop()
    {
        ++m_number;
        m_pool.clear();
    }

    /// Calls make(outdated) in the background, then take() with its result in this object's thread. Long work polls
    /// outdated().
    template<class Make, class Take>
    void start(Make make, Take take)
    {
        drop();
        m_pool.start([this, number = m_number.load(), make = std::move(make), take = std::move(take)] {
            const auto outdated = [this, number] { return m_number != number; };
            if (outdated())
                return;
            QMetaObject::invokeMethod(
                &m_here,
                [outdated, take, made = make(outdated)]() mutable {
                    if (!outdated())
                        take(std::move(made));
                },
                Qt::QueuedConnection);
        });
    }

    /// Waits at most so long for the result, and has it taken at once when it is there.
    void finishWithin(int milliseconds)
    {
        if (m_pool.waitForDone(milliseconds))
            QCoreApplication::sendPostedEvents(&m_here, QEvent::MetaCall);
    }

private:
    QObject m_here; ///< receives the results, in its thread
    std::atomic<int> m_number{0};
    QThreadPool m_pool;
};

} // namespace pipewright
