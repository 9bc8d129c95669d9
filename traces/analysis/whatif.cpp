// SPDX-License-Identifier: GPL-3.0-or-later
// Parses the changes into durations and lags per task and replays the step once. O(changes × tasks).
#include "traces/analysis/whatif.h"

#include "core/base/diagnostic.h"
#include "core/predict/evaluator.h"
#include "core/program/overlaps.h"
#include "core/schedule/replicas.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <map>
#include <tuple>

namespace pipewright {

namespace {

struct Value {
    bool factor = false;
    double times = 1;
    Nanoseconds duration = 0;
    Nanoseconds of(Nanoseconds measured) const
    {
        return factor ? std::llround(times * static_cast<double>(measured)) : duration;
    }
};

Value parseValue(const std::string& text, const std::string& change)
{
    Value value;
    if (text.ends_with('x')) {
        const char* const end = text.data() + text.size() - 1;
        value.factor = true;
        const auto [stop, error] = std::from_chars(text.data(), end, value.times);
        if (error != std::errc{} || stop != end || !(value.times >= 0) || value.times > 1e6)
            throw Error(change, "\"" + text + "\" is no factor", "for example 0.5x");
    } else {
        value.duration = parseDuration(text, change);
    }
    return value;
}

/// The number after `word`, such as 1 in "device1"; -1 when there is none.
int numberAfter(std::string_view text, std::string_view word)
{
    text.remove_prefix(word.size());
    int number = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc{} && end == text.data() + text.size() ? number : -1;
}

} // namespace

WhatIf whatIf(const Program& program, const Replay& replay, const std::vector<std::string>& changes)
{
    std::vector<Nanoseconds> duration = replay.duration, lag = replay.lag;
    const std::vector<TaskId> partner = overlapPartners(program);
    // Blocks that wait for nothing begin with the step, and the two of a pair together.
    const auto hasGap = [&](TaskId t) {
        const bool second = !partner.empty() && partner[t] != none && partner[t] < t;
        return !second
               && (replay.lag[t] > 0 || program.afterOnDevice[t] != none || program.afterData[t] != none
                   || !replay.extras(t).empty());
    };
    WhatIf result;
    result.before = replay.makespan();
    for (const std::string& change : changes) {
        const std::size_t equals = change.find('=');
        if (equals == std::string::npos)
            throw Error(change, "a change is written WHAT=VALUE",
                        "for example F1=2ms, device1=0.8x, link0-1=50us, host1=0ns");
        const std::string what = change.substr(0, equals);
        const Value value = parseValue(change.substr(equals + 1), change);
        std::function<bool(TaskId)> meant;
        bool gaps = false;
        if (what.starts_with("device") || what.starts_with("host")) {
            gaps = what.starts_with("host");
            const int device = numberAfter(what, gaps ? "host" : "device");
            meant = [&program, device](TaskId t) {
                return !usesLink(program.tasks[t]) && program.tasks[t].device == device;
            };
        } else if (what.starts_with("link")) {
            const std::size_t dash = what.find('-');
            const int from =
                dash == std::string::npos ? -1 : numberAfter(std::string_view(what).substr(0, dash), "link");
            const int to =
                dash == std::string::npos ? -1 : numberAfter(what, std::string_view(what).substr(0, dash + 1));
            meant = [&program, from, to](TaskId t) {
                const Task& task = program.tasks[t];
                if (!task.joinsTwoDevices())
                    return false;
                const bool there = task.device == from && task.otherDevice() == to;
                return there || (isReduction(task.kind) && task.device == to && task.otherDevice() == from);
            };
        } else {
            meant = [&program, what](TaskId t) {
                const Task& task = program.tasks[t];
                if (isBesideBlocks(task.kind))
                    return false;
                return program.label(t) == what || std::string(1, letter(task.op)) + std::to_string(task.stage) == what;
            };
        }
        std::int64_t matched = 0;
        for (TaskId t = 0; t < program.tasks.size(); ++t) {
            if (!meant(t) || (gaps && !hasGap(t)))
                continue;
            ++matched;
            const Nanoseconds before = duration[t], lagBefore = lag[t];
            const Nanoseconds late = std::max<Nanoseconds>(0, replay.lag[t]);
            if (gaps)
                lag[t] = value.of(late);
            else if (usesLink(program.tasks[t])) { // a hand-off counts from its producer's end
                duration[t] = value.of(late + replay.duration[t]);
                lag[t] = std::min<Nanoseconds>(0, replay.lag[t]);
            } else
                duration[t] = value.of(replay.duration[t]);
            result.changed += duration[t] != before || lag[t] != lagBefore ? 1 : 0;
        }
        if (matched == 0)
            throw Error(change, "nothing in this step is \"" + what + "\"",
                        "a block F1.3, all of a stage F1, device1, host1, or link0-1 from device 0 to device 1");
    }
    result.after = replay.makespan(duration, lag);
    return result;
}

WhatIf inOtherOrder(const Program& program, const Replay& replay, const Program& other, const Costs& costs)
{
    if (other.stages() != program.stages() || std::ssize(costs.stages) != program.stages())
        throw Error("order",
                    fmt::format("it has {} stages, what was measured has {}", other.stages(), program.stages()),
                    "the other order must be of the same stages and microbatches");
    const auto key = [](const Program& of, const Task& task) {
        const int with =
            task.kind == TaskKind::ReplicaSum ? rootOfPair(of, task.stage, task.device, task.replica) : task.replica;
        const int number = isUpdate(task.kind) ? 0 : isReduction(task.kind) ? task.otherStage() : task.microbatch();
        return std::tuple(task.kind, task.op, task.stage, number, task.replica, with);
    };
    std::map<decltype(key(program, Task())), Nanoseconds> measured;
    std::map<std::pair<int, int>, std::vector<Nanoseconds>> links;
    for (TaskId t = 0; t < program.tasks.size(); ++t) {
        const Task& task = program.tasks[t];
        if (task.kind == TaskKind::Transfer)
            links[{task.device, task.destination()}].push_back(std::max<Nanoseconds>(0, replay.lag[t])
                                                               + replay.duration[t]);
        else if (replay.recorded(t))
            measured.emplace(key(program, task), replay.duration[t]);
    }
    for (auto& [pair, times] : links)
        std::sort(times.begin(), times.end());
    const auto makespanOf = [&](const Program& ordered) {
        Evaluator evaluator(ordered, Evaluator::Times::Measured);
        evaluator.setCosts(costs);
        for (TaskId t = 0; t < ordered.tasks.size(); ++t) {
            const Task& task = ordered.tasks[t];
            Nanoseconds& duration = evaluator.node(t).duration;
            if (task.kind == TaskKind::Transfer) {
                if (const auto link = links.find({task.device, task.destination()}); link != links.end())
                    duration = link->second[(link->second.size() - 1) / 2];
            } else if (const auto found = measured.find(key(ordered, task)); found != measured.end()) {
                duration = found->second;
            } else if (task.kind == TaskKind::Compute) {
                throw Error(ordered.label(t), "was not measured in this step",
                            "the other order must be of the same stages and microbatches");
            }
        }
        Timeline timeline;
        evaluator.evaluate(timeline);
        return lengthOf(timeline);
    };
    WhatIf result;
    result.before = makespanOf(program);
    result.after = makespanOf(other);
    result.changed = static_cast<std::int64_t>(other.tasks.size());
    return result;
}

} // namespace pipewright
