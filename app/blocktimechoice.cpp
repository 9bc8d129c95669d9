// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/blocktimechoice.h"

#include "app/table.h"
#include "app/terminal.h"

#include <fmt/format.h>

namespace pipewright::app {

void BlockTimeChoice::addTo(CLI::App& command)
{
    command
        .add_option(
            "--block-time", text,
            "a block's measured time: that between its events (the default), or that of its kernels on the GPU, "
            "first start to last end")
        ->type_name("events|kernels");
}

BlockTime BlockTimeChoice::by() const
{
    if (text.empty())
        return BlockTime::Events;
    for (const BlockTime by : blockTimes)
        if (text == nameOf(by))
            return by;
    throw Error("--block-time", "\"" + text + "\" is no time of a block", "events or kernels");
}

Json toJson(const KernelTotals& totals)
{
    const bool launches = totals.kind == WorkKind::Kernels; // operators are not launched
    Json object{{"of", nameOf(totals.kind)},
                {"blocks", totals.blocks},
                {"blocks_without_kernels", totals.without},
                {"by_events_ns", totals.byEvents},
                {"by_kernels_ns", totals.byKernels},
                {"kernels_running_ns", totals.running},
                {"launch_bound_ns", launches ? Json(totals.launching) : Json()},
                {"launch_bound", launches ? Json(shareOf(totals.launching, totals.byEvents)) : Json()},
                {"recorder_ns", totals.overhead},
                {"recorder_records", totals.overheads}};
    object["groups"] = Json::array();
    for (const BlockKernels::Group& group : totals.groups)
        object["groups"].push_back({{"group", KernelGroups::standard().names()[group.group]},
                                    {"kernels", group.kernels},
                                    {"time_ns", group.time}});
    return object;
}

void addBlockTimes(Json& object, BlockTime by, const std::optional<KernelTotals>& totals)
{
    object["block_time"] = nameOf(by);
    object["block_times"] = totals ? toJson(*totals) : Json();
}

void printBlockTimes(BlockTime by, const std::optional<KernelTotals>& totals)
{
    if (!totals)
        return;
    printText("\nblock times are those of their {}: {} block{} with {} took {}\n", nameOf(by), totals->blocks,
              totals->blocks == 1 ? "" : "s", nameOf(totals->kind), blockTimesText(*totals));
    if (by == BlockTime::Kernels && totals->without > 0)
        printText("{} block{} without kernels, and all transfers, keep the times of their events\n", totals->without,
                  totals->without == 1 ? "" : "s");
}

void print(const KernelTotals& totals)
{
    const std::string kind(nameOf(totals.kind));
    printText("\n{} of {} blocks: {}; {}\n\n", kind, totals.blocks, blockTimesText(totals),
              totals.kind == WorkKind::Kernels
                  ? percent(shareOf(totals.launching, totals.byEvents)) + " of the blocks' time bound by launching"
                  : "running for " + percent(shareOf(totals.running, totals.byEvents)) + " of the blocks' time");
    Nanoseconds all = 0;
    for (const BlockKernels::Group& group : totals.groups)
        all += group.time;
    TextTable table({kind, "count", "time", "share"});
    for (const BlockKernels::Group& group : totals.groups)
        table.addRow({KernelGroups::standard().names()[group.group], std::to_string(group.kernels),
                      formatDuration(group.time), percent(shareOf(group.time, all))});
    table.print();
    if (totals.overheads > 0)
        printText("recording took {} of this step: {} record{} of CUPTI's own work, part of what was measured\n",
                  formatDuration(totals.overhead), totals.overheads, totals.overheads == 1 ? "" : "s");
}

} // namespace pipewright::app
