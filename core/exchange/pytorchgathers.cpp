// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/exchange/pytorchgathers.h"

#include "core/program/gatherplan.h"

#include <fmt/format.h>

#include <algorithm>

namespace pipewright {

namespace {

/// The arguments with which a schedule of PyTorch 2.15 gathers as this one does; empty where there are none.
std::string argumentsOf(const Schedule& schedule, int stagesOfARank)
{
    if (!schedule.gathers.empty() || (schedule.zero.reshard.any() && !schedule.zero.reshard.every))
        return {};
    const int ahead = std::min(schedule.zero.prefetch + 1, stagesOfARank);
    const int active = schedule.zero.reshard.every ? ahead : stagesOfARank;
    if (active == 1 && !schedule.overlaps.empty()) // PyTorch wants room for both stages of a pair
        return {};
    std::string text = fmt::format("max_active_stages={}", active);
    if (ahead == active)
        return text;
    text += ", unshard_lookahead=(";
    for (int rank = 0; rank < schedule.devices(); ++rank)
        text += fmt::format("{}{}", rank > 0 ? ", " : "", ahead);
    return text + (schedule.devices() == 1 ? ",)" : ")");
}

} // namespace

std::optional<Diagnostic> gatheredElsewhere(const Schedule& schedule)
{
    if (!schedule.zero.sharesParameters())
        return std::nullopt;
    Schedule asPytorch = schedule;
    asPytorch.zero.reshard = {.every = true, .stages = {}};
    asPytorch.zero.prefetch = gatheredByPytorch - 1;
    asPytorch.gathers.clear();
    Diagnostics faults;
    const OrderGraph graph(schedule, {}, true, faults);
    const std::vector<bool> all(static_cast<std::size_t>(schedule.stages()), true);
    const GatherPlan given(schedule, all, graph), byPytorch(asPytorch, all, graph);
    std::size_t own = 0, others = 0;
    bool alike = true;
    int most = 0;
    for (int device = 0; device < schedule.devices(); ++device) {
        const auto mine = given.ofDevice(device), theirs = byPytorch.ofDevice(device);
        own += mine.size();
        others += theirs.size();
        alike = alike && std::equal(mine.begin(), mine.end(), theirs.begin(), theirs.end());
        most = std::max(
            most, static_cast<int>(std::count(schedule.deviceOfStage.begin(), schedule.deviceOfStage.end(), device)));
    }
    if (alike)
        return std::nullopt;
    const std::string arguments = argumentsOf(schedule, most);
    return Diagnostic{
        Severity::Warning, "schedule.zero",
        fmt::format(
            "PyTorch keeps {} stages of a rank gathered and frees the others: {} gathers a step, and the design "
            "has {}{}",
            gatheredByPytorch, others, own, own == others ? ", before other blocks" : ""),
        fmt::format("predict it with --reshard always --prefetch {}, or {}", gatheredByPytorch - 1,
                    arguments.empty() ? "let PyTorch load the file of pytorch-comms-csv, which states every gather"
                                      : fmt::format("make the schedule with {} (PyTorch 2.15)", arguments))};
}

} // namespace pipewright
