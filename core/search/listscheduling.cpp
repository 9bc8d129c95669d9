// SPDX-License-Identifier: GPL-3.0-or-later
// An event loop over the devices' wake-up times: the device that wakes first takes the block that the policy prefers
// among the heads of its stages' sequences, if memory lets its microbatch finish, or sleeps until a value arrives.
// O(blocks × (stages of a device + devices)).
#include "core/search/listscheduling.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace pipewright {

namespace {

/// Locked blocks keep their locked order: the positions that they hold in the ascending sequence are refilled in that
/// order.
void orderByLocks(std::vector<std::int32_t>& sequence, const std::vector<int>& rankOfLock)
{
    std::vector<std::size_t> slots;
    std::vector<std::int32_t> locked;
    for (std::size_t i = 0; i < sequence.size(); ++i)
        if (rankOfLock[sequence[i]] >= 0) {
            slots.push_back(i);
            locked.push_back(sequence[i]);
        }
    std::sort(locked.begin(), locked.end(),
              [&](std::int32_t a, std::int32_t b) { return rankOfLock[a] < rankOfLock[b]; });
    for (std::size_t i = 0; i < slots.size(); ++i)
        sequence[slots[i]] = locked[i];
}

std::vector<int> lockRanks(const SearchModel& model)
{
    std::vector<int> rank(model.tasks.size(), -1);
    std::vector<std::int32_t> next(model.tasks.size(), -1);
    for (std::size_t t = 0; t < model.tasks.size(); ++t)
        if (model.tasks[t].lockedAfter >= 0)
            next[model.tasks[t].lockedAfter] = static_cast<std::int32_t>(t);
    for (std::size_t t = 0; t < model.tasks.size(); ++t)
        if (model.tasks[t].lockedAfter < 0 && next[t] >= 0) {
            int r = 0;
            for (auto at = static_cast<std::int32_t>(t); at >= 0; at = next[at])
                rank[at] = r++;
        }
    return rank;
}

/// Memory that a backward needs on top of what its forward keeps, with its recompute.
Bytes spaceOf(const SearchModel& model, const SearchTask& backward)
{
    const Bytes own = backward.taken + backward.passing;
    const std::int32_t id = model.recompute(backward.stage, backward.microbatch);
    if (id < 0)
        return own;
    const SearchTask& again = model.tasks[id];
    return again.taken + std::max(again.passing, own - again.freed);
}

} // namespace

PolicyRunner::PolicyRunner(const SearchModel& model)
    : m_model(model), m_sequence(taskKinds * model.stages), m_next(m_sequence.size()), m_end(model.tasks.size()),
      m_started(model.tasks.size()), m_wakes(model.tasks.size()), m_live(model.devices),
      m_backwardSpace(m_live.size(), 0), m_free(m_live.size()), m_wake(m_live.size()), m_lanes(m_live.size())
{
    for (int s = 0; s < model.stages; ++s)
        for (int m = 0; m < model.microbatches; ++m)
            for (int kind = 0; kind < taskKinds; ++kind)
                if (const std::int32_t task = model.taskOf(kind, s, m); task >= 0)
                    sequence(s, kind).push_back(task);
    const std::vector<int> ranks = lockRanks(model);
    for (std::vector<std::int32_t>& sequence : m_sequence)
        orderByLocks(sequence, ranks);
    for (std::size_t t = 0; t < model.tasks.size(); ++t) {
        const SearchTask& task = model.tasks[t];
        if (task.input >= 0 && model.tasks[task.input].device != task.device)
            m_wakes[task.input].push_back(task.device);
        if (makesInputGrad(task.op))
            m_backwardSpace[task.device] = std::max(m_backwardSpace[task.device], spaceOf(model, task));
    }
    for (const ExtraInput& extra : model.extras)
        m_wakes[extra.input].push_back(model.tasks[extra.task].device);
}

Policy PolicyRunner::initial(double share, int more) const
{
    Policy policy;
    if (m_model.recomputes())
        policy.recomputeEarly = false;
    const int bottom = m_model.stages - 1;
    Nanoseconds away = 0; // from the end of F to the start of B, of the first microbatch
    policy.ahead.assign(m_model.stages, 1);
    for (int s = bottom; s >= 0; --s) {
        const auto task = [&](std::int32_t id) -> const SearchTask& { return m_model.tasks[id]; };
        if (s < bottom)
            away += task(m_model.forward(s + 1, 0)).delay + task(m_model.forward(s + 1, 0)).duration
                    + task(m_model.backward(s + 1, 0)).duration + task(m_model.backward(s, 0)).delay;
        else if (const std::int32_t again = m_model.recompute(s, 0); again >= 0)
            away += task(again).duration;
        const auto length = static_cast<double>(std::max<Nanoseconds>(1, task(m_model.forward(s, 0)).duration));
        policy.ahead[s] = std::clamp(static_cast<int>(std::ceil(static_cast<double>(away) / length * share)) + 1 + more,
                                     1, m_model.microbatches);
    }
    return policy;
}

PolicyRunner::Head PolicyRunner::head(int stage, int kind) const
{
    const std::size_t index = taskKinds * stage + kind;
    return m_next[index] < std::ssize(m_sequence[index]) ? headOf(m_sequence[index][m_next[index]]) : Head{};
}

/// When the task may start, as far as it depends on other tasks than `besides`.
PolicyRunner::Head PolicyRunner::headOf(std::int32_t id, std::int32_t besides) const
{
    Head head{id, 0, true};
    const SearchTask& task = m_model.tasks[id];
    const auto need = [&](std::int32_t input, Nanoseconds delay) {
        if (input < 0 || input == besides)
            return;
        if (m_started[input] == 0)
            head.known = false;
        else
            head.ready = std::max(head.ready, m_end[input] + delay);
    };
    head.ready = task.earliest;
    need(task.local, 0);
    need(task.lockedAfter, 0);
    need(task.input, task.delay);
    for (const ExtraInput& extra : m_model.extrasOf(id))
        need(extra.input, extra.delay);
    return head;
}

/// The stage's next backward, or what it needs first: a recompute, which ends when the gradient arrives.
PolicyRunner::Head PolicyRunner::backwardHead(int stage) const
{
    const Head backward = head(stage, backwardKind);
    if (backward.task < 0)
        return backward;
    const std::int32_t again = m_model.recompute(stage, m_model.tasks[backward.task].microbatch);
    if (again < 0 || m_started[again] != 0)
        return backward;
    Head recompute = head(stage, recomputeKind); // with locks perhaps that of another microbatch
    const Head gradient = headOf(backward.task, again);
    recompute.known = recompute.known && gradient.known;
    recompute.ready = std::max(recompute.ready, gradient.ready - m_model.tasks[recompute.task].duration);
    return recompute;
}

bool PolicyRunner::fits(int stage, std::int32_t id, Bytes live) const
{
    const SearchTask& task = m_model.tasks[id];
    const Bytes capacity = m_model.capacity[task.device];
    if (isRecompute(task.op))
        return live + spaceOf(m_model, m_model.tasks[m_model.backward(stage, task.microbatch)]) <= capacity;
    if (!makesActivation(task.op))
        return live + task.taken + task.passing <= capacity;
    // The microbatch must be able to finish: memory for its later stages on this device and for a backward.
    Bytes later = 0;
    for (const int s : m_model.stagesOfDevice[task.device])
        if (s > stage)
            later += m_model.tasks[m_model.forward(s, task.microbatch)].taken;
    return live + task.taken + later + std::max(task.passing, m_backwardSpace[task.device]) <= capacity;
}

/// May it be made again before its gradient is on the way? Another backward must still fit.
bool PolicyRunner::fitsEarly(std::int32_t recompute, Bytes live) const
{
    const SearchTask& task = m_model.tasks[recompute];
    return live + task.taken + std::max(task.passing, m_backwardSpace[task.device] - task.freed)
           <= m_model.capacity[task.device];
}

PolicyRunner::Choice PolicyRunner::choose(const Policy& policy, int device, Nanoseconds now)
{
    const std::vector<int>& stages = m_model.stagesOfDevice[device];
    Head forward, backward, again, weight; // the preferred ready one of each kind
    Nanoseconds nextForward = unknown, nextBackward = unknown, nextAny = unknown;
    bool blocked = false, owesMuch = false; // a ready F waits for memory, or for a W
    for (const int s : stages) {
        const auto counted = [&](int kind) { return m_next[taskKinds * s + kind]; };
        if (const Head f = head(s, forwardKind); f.task >= 0 && f.known) {
            if (!fits(s, f.task, m_live[device]))
                blocked = blocked || f.ready <= now;
            else if (counted(forwardKind) - counted(backwardKind) < policy.ahead[s]) {
                if (f.ready > now)
                    nextForward = std::min(nextForward, f.ready);
                else if (forward.task < 0 || policy.deepForward)
                    forward = f;
            }
        }
        if (const Head b = backwardHead(s); b.task >= 0 && b.known) {
            if (!fits(s, b.task, m_live[device]))
                blocked = blocked || b.ready <= now;
            else if (b.ready > now)
                nextBackward = std::min(nextBackward, b.ready);
            else if (backward.task < 0 || policy.deepBackward)
                backward = b;
        }
        if (policy.recomputeEarly.value_or(false))
            if (const Head r = head(s, recomputeKind); r.task >= 0 && r.known && fitsEarly(r.task, m_live[device])) {
                if (r.ready > now)
                    nextAny = std::min(nextAny, r.ready);
                else if (again.task < 0)
                    again = r;
            }
        if (const Head w = head(s, weightKind); w.task >= 0 && w.known) {
            if (w.ready > now)
                nextAny = std::min(nextAny, w.ready);
            else if (fits(s, w.task, m_live[device]) && weight.task < 0)
                weight = w;
            owesMuch = owesMuch || counted(backwardKind) - counted(weightKind) > policy.owed;
        }
    }
    const auto length = [&](const Head& h) { return static_cast<double>(m_model.tasks[h.task].duration); };
    const auto comesWithin = [&](Nanoseconds time, double share, const Head& h) {
        return time != unknown && static_cast<double>(time - now) < share * length(h);
    };
    if (forward.task >= 0 && backward.task >= 0 && policy.fillFirst)
        return {forward.task, 0};
    if (backward.task >= 0)
        return {backward.task, 0};
    if (weight.task >= 0 && owesMuch)
        return {weight.task, 0};
    if (forward.task >= 0) {
        if (comesWithin(nextBackward, policy.waitInForward, forward))
            return {-1, nextBackward};
        return {forward.task, 0};
    }
    const Nanoseconds next = std::min(nextForward, nextBackward);
    if (again.task >= 0 && !comesWithin(nextBackward, policy.waitInWeight, again))
        return {again.task, 0};
    if (weight.task >= 0 && (blocked || !comesWithin(next, policy.waitInWeight, weight)))
        return {weight.task, 0};
    return {-1, std::min(next, nextAny)};
}

void PolicyRunner::start(std::int32_t id, Nanoseconds now)
{
    const SearchTask& task = m_model.tasks[id];
    ++m_next[taskKinds * task.stage + kindOf(task.op)];
    m_started[id] = 1;
    m_end[id] = now + task.duration;
    m_live[task.device] += task.taken - task.freed;
    m_lanes[task.device].push_back(id);
    m_free[task.device] = m_wake[task.device] = now + task.duration;
    for (const std::int32_t other : m_wakes[id])
        m_wake[other] = std::min(m_wake[other], std::max(now, m_free[other]));
}

std::optional<Lanes> PolicyRunner::run(const Policy& policy, const std::function<bool()>& stop)
{
    std::fill(m_next.begin(), m_next.end(), 0);
    std::fill(m_started.begin(), m_started.end(), std::uint8_t{0});
    std::fill(m_live.begin(), m_live.end(), Bytes{0});
    std::fill(m_free.begin(), m_free.end(), Nanoseconds{0});
    std::fill(m_wake.begin(), m_wake.end(), Nanoseconds{0});
    for (std::vector<std::int32_t>& lane : m_lanes)
        lane.clear();
    for (std::size_t done = 0; done < m_model.tasks.size();) {
        const std::size_t d = std::min_element(m_wake.begin(), m_wake.end()) - m_wake.begin();
        const Nanoseconds now = m_wake[d];
        if (now == unknown)
            return std::nullopt;
        const Choice choice = choose(policy, static_cast<int>(d), now);
        if (choice.task < 0) {
            m_wake[d] = choice.wait;
            continue;
        }
        start(choice.task, now);
        ++m_work;
        if (++done % static_cast<std::size_t>(tasksBetweenStops) == 0 && stop && stop())
            return std::nullopt;
    }
    return m_lanes;
}

Policy varied(const Policy& policy, int microbatches, std::mt19937_64& random)
{
    const auto below = [&](int count) { return static_cast<int>(random() % static_cast<unsigned>(count)); };
    Policy next = policy;
    const auto count = static_cast<int>(next.ahead.size());
    for (int changes = 1 + below(2); changes > 0; --changes)
        switch (below(next.recomputeEarly ? 10 : 9)) {
        case 0: next.waitInForward = below(5) * 0.25; break;
        case 1: next.waitInWeight = below(5) * 0.25; break;
        case 2: next.fillFirst = !next.fillFirst; break;
        case 3: (below(2) != 0 ? next.deepForward : next.deepBackward) ^= true; break;
        case 4: next.owed = below(3) == 0 ? 1 << 20 : below(2 * count + 2); break;
        case 5:
        case 6: { // a run of stages together
            const int from = below(count), to = from + below(count - from) + 1, by = below(2) * 2 - 1;
            for (int s = from; s < to; ++s)
                next.ahead[s] = std::clamp(next.ahead[s] + by, 1, microbatches);
            break;
        }
        case 9: next.recomputeEarly = !*next.recomputeEarly; break;
        default: {
            int& ahead = next.ahead[below(count)];
            ahead = std::clamp(ahead + below(5) - 2, 1, microbatches);
        }
        }
    return next;
}

} // namespace pipewright
