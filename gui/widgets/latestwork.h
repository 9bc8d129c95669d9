// SPDX-License-Identifier: GPL-3.0-or-later
// Work in the background of which only what was asked for last counts: a later start() makes an earlier one outdated,
// and its result is dropped. The end of this object waits for what runs, so it is declared behind what that uses.
#pragma once

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

    /// Nothing is wanted any more.
    void drop()
    {
        ++m_number;
        m_pool.clear();
    }

    /// make(outdated) in the background, then take(its result) in this object's thread. Long work asks outdated().
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

private:
    QObject m_here; ///< to which results are sent
    std::atomic<int> m_number{0};
    QThreadPool m_pool;
};

} // namespace pipewright
