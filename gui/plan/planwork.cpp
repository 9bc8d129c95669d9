// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/plan/planwork.h"

#include <QThreadPool>

#include <atomic>
#include <mutex>
#include <optional>
#include <utility>

namespace pipewright {

namespace {

constexpr int readEvery = 60; ///< milliseconds

} // namespace

struct PlanWork::Channel {
    std::atomic<bool> stopped{false};
    std::mutex mutex; ///< of what follows
    std::optional<PlanProgress> progress;
    std::vector<PlanFound> found;
    std::shared_ptr<const PlanResult> result;
    std::optional<PlanDifference> difference;
    std::optional<RefinedPlan> refined;
    std::optional<Diagnostics> refused;
};

PlanWork::PlanWork(QObject* parent) : QObject(parent)
{
    m_timer.setInterval(readEvery);
    connect(&m_timer, &QTimer::timeout, this, &PlanWork::read);
}

PlanWork::~PlanWork()
{
    drop();
}

void PlanWork::run(std::function<void(Channel&)> work)
{
    drop();
    m_channel = std::make_shared<Channel>();
    m_timer.start();
    QThreadPool::globalInstance()->start([channel = m_channel, work = std::move(work)] {
        std::optional<Diagnostics> refused;
        try {
            work(*channel);
        } catch (const Error& error) {
            refused = error.diagnostics();
        } catch (const std::exception& error) {
            refused = Diagnostics{{Severity::Error, {}, error.what(), {}}};
        }
        const std::lock_guard lock(channel->mutex);
        channel->refused = std::move(refused);
    });
}

void PlanWork::start(PlanRequest request)
{
    run([request = std::move(request)](Channel& channel) mutable {
        request.isStopped = [&channel] { return channel.stopped.load(); };
        request.progress = [&channel](const PlanProgress& now) {
            const std::lock_guard lock(channel.mutex);
            channel.progress = now;
        };
        request.found = [&channel](const PlanFound& plan) {
            const std::lock_guard lock(channel.mutex);
            channel.found.push_back(plan);
        };
        auto result = std::make_shared<const PlanResult>(findPlans(request));
        const std::lock_guard lock(channel.mutex);
        channel.result = std::move(result);
    });
}

void PlanWork::compare(ListBefore before, ListBefore now)
{
    run([before = std::move(before), now = std::move(now)](Channel& channel) mutable {
        now.request.isStopped = [&channel] { return channel.stopped.load(); };
        PlanDifference difference = differenceOf({before.request, *before.result}, {now.request, *now.result});
        const std::lock_guard lock(channel.mutex);
        channel.difference = std::move(difference);
    });
}

void PlanWork::refine(PlanRequest request, std::shared_ptr<const PlanResult> result, std::size_t plan)
{
    run([request = std::move(request), result = std::move(result), plan](Channel& channel) {
        RefineOptions options;
        options.threads = request.threads;
        options.isStopped = [&channel] { return channel.stopped.load(); };
        RefinedPlan found = refined(request, result->plans.at(plan), options);
        const std::lock_guard lock(channel.mutex);
        channel.refined = std::move(found);
    });
}

void PlanWork::stop()
{
    if (m_channel)
        m_channel->stopped = true;
}

bool PlanWork::isStopping() const
{
    return m_channel && m_channel->stopped;
}

void PlanWork::drop()
{
    stop();
    m_channel.reset();
    m_timer.stop();
}

void PlanWork::read()
{
    const std::shared_ptr<Channel> channel = m_channel;
    std::optional<PlanProgress> progress;
    std::vector<PlanFound> plans;
    std::shared_ptr<const PlanResult> result;
    std::optional<PlanDifference> difference;
    std::optional<RefinedPlan> better;
    std::optional<Diagnostics> why;
    {
        const std::lock_guard lock(channel->mutex);
        progress.swap(channel->progress);
        plans.swap(channel->found);
        result = channel->result;
        difference.swap(channel->difference);
        better.swap(channel->refined);
        why = channel->refused;
    }
    if (!plans.empty())
        Q_EMIT found(plans);
    if (progress && m_channel == channel)
        Q_EMIT progressed(*progress);
    if (m_channel != channel || (!result && !difference && !better && !why))
        return; // a slot began another search, or this one goes on
    drop();
    if (result)
        Q_EMIT finished(result);
    else if (difference)
        Q_EMIT differs(*difference);
    else if (better)
        Q_EMIT refinedTo(*better);
    else
        Q_EMIT refused(*why);
}

} // namespace pipewright

#include "moc_planwork.cpp"
