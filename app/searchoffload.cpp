// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/searchoffload.h"

#include "app/command.h"
#include "app/table.h"
#include "app/terminal.h"

#include "core/base/units.h"
#include "core/files/designfile.h"
#include "core/search/offloadsearch.h"

#include <fmt/format.h>

namespace pipewright::app {

int searchOffload(const Design& design, const SearchOptions& options, const SearchOutput& to)
{
    const OffloadSearchResult found = searchWithOffload(design, options);
    const std::vector<OffloadPoint> curve =
        offloadCurve(found.design, [&options] { return options.stop.stop_requested(); });
    writeDesign(found.design, to.file, to.replace);
    const auto within = [](const OffloadTrial& trial) {
        return trial.given    ? std::string("as it was")
               : trial.within ? formatSize(*trial.within)
                              : std::string("no limit");
    };
    if (to.json) {
        Json object{{"best_ns", found.value},
                    {"bound_ns", found.bound},
                    {"gap", found.gap},
                    {"unproved", found.unproved},
                    {"offload", found.design.schedule.offload},
                    {"trials", Json::array()}};
        for (const OffloadTrial& trial : found.trials)
            object["trials"].push_back({{"within", within(trial)},
                                        {"offload", trial.offload},
                                        {"best_ns", trial.value ? Json(*trial.value) : Json()}});
        object["curve"] = Json::array();
        for (const OffloadPoint& point : curve)
            object["curve"].push_back({{"offload", point.offload},
                                       {"share", point.share},
                                       {"makespan_ns", point.makespan},
                                       {"peak_bytes", point.peak}});
        printJson(object);
    } else {
        TextTable table({"order within", "stages that offload", "makespan"});
        for (const OffloadTrial& trial : found.trials) {
            const std::string stages = pipewright::textOf(trial.offload);
            table.addRow({within(trial), stages.empty() ? "none" : stages,
                          trial.value ? formatDuration(*trial.value) : "does not fit"});
        }
        table.print();
        printText("\nmemory against time in this order, as more stages offload (predicted):\n");
        TextTable ways({"stages that offload", "activations that leave", "peak memory", "makespan"});
        for (const OffloadPoint& point : curve) {
            const std::string stages = pipewright::textOf(point.offload);
            ways.addRow({stages.empty() ? "none" : stages, percent(point.share), formatSize(point.peak),
                         formatDuration(point.makespan)});
        }
        ways.print();
        if (found.unproved.empty())
            printText("{}: {}, at most {:.1f} % above the best without a memory limit\n", to.file,
                      formatDuration(found.value), 100 * found.gap);
        else
            printText("{}: {}; nothing is proved: {}\n", to.file, formatDuration(found.value), found.unproved);
    }
    return found.cancelled ? exitFinding : exitSuccess;
}

} // namespace pipewright::app
