// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/stretchchoice.h"

#include <fmt/format.h>

#include <algorithm>

namespace pipewright::app {

namespace {

TraceStep stepNamed(const StoredActivities& trace, const std::string& path, int step)
{
    const std::vector<TraceStep> steps = stepsOf(trace);
    const std::string wanted = fmt::format("ProfilerStep#{}", step);
    const auto found = std::find_if(steps.begin(), steps.end(), [&](const TraceStep& s) { return s.name == wanted; });
    if (found == steps.end())
        throw Error(path, fmt::format("has no step {}", step),
                    steps.empty() ? "the profiler wrote no ranges ProfilerStep#N into it"
                                  : fmt::format("the first is {}, the last {}", steps.front().name, steps.back().name));
    return *found;
}

} // namespace

void StretchChoice::addTo(CLI::App& command, const std::string& end)
{
    command.add_option("--from", from, "another tool's trace: look from this time since its beginning, such as 1.5s")
        ->type_name("T");
    command.add_option(end, to, "look up to this time")->type_name("T");
}

TraceStep StretchChoice::of(const StoredActivities& trace, const std::string& path, int step) const
{
    if (!given())
        return step < 0 ? deviceActivity(trace) : stepNamed(trace, path, step);
    if (step >= 0)
        throw Error("--step", "a step and --from or --to together", "a step is a stretch already");
    const Nanoseconds end = endOf(trace);
    const TraceStep stretch{fmt::format("{} to {}", from.empty() ? "the beginning" : from, to.empty() ? "the end" : to),
                            from.empty() ? 0 : parseDuration(from, "--from"),
                            to.empty() ? end : parseDuration(to, "the end")};
    if (stretch.start >= std::min(stretch.end, end))
        throw Error(path, "has nothing from " + stretch.name, fmt::format("it is {} long", formatDuration(end)));
    return stretch;
}

} // namespace pipewright::app
