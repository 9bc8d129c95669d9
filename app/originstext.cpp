// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/originstext.h"

#include "app/terminal.h"

#include "core/design/costorigins.h"
#include "core/design/knownerror.h"
#include "core/design/rateorigins.h"
#include "core/predict/leftout.h"

#include <fmt/format.h>

#include <algorithm>

namespace pipewright::app {

void printOrigins(const Design& design)
{
    if (const std::string estimates = estimatesText(design); !estimates.empty())
        printText("estimated, not measured: {}\n", estimates);
    if (const std::string rates = rateOriginsText(design); !rates.empty())
        printText("rates: {}\n", rates);
    for (const auto& rates : ratesOf(design))
        printText("{}: {}, {}\n", rates->name, rates->title, rates->origin);
    const std::optional<CheckedRuns> error = knownError(design);
    printText("steps predicted like this one: {}\n",
              error ? textOf(*error) : "how far they are from measured ones is not known");
}

Json toJson(const CheckedRuns& error)
{
    return {{"median", error.median},
            {"largest", error.largest},
            {"runs", error.runs},
            {"of", error.of},
            {"where", error.where}};
}

Json originsToJson(const Design& design)
{
    Json object{{"source", design.costs.source}, {"estimated", estimatesText(design)}, {"left_out", leftOut(design)}};
    object["origins"] = Json::array();
    for (int stage = 0; stage < static_cast<int>(design.costs.stages.size()); ++stage) {
        Json origins;
        for (const Op op : allOps)
            origins[std::string(timeKey(op))] = nameOf(design.costs.originOf(op, stage));
        object["origins"].push_back(std::move(origins));
    }
    for (const PassOrigins& stage : rateOrigins(design)) {
        Json passes;
        for (const auto& [op, seconds] :
             {std::pair{Op::F, stage.forward}, {Op::I, stage.inputGrad}, {Op::W, stage.weightGrad}})
            for (std::size_t i = 0; i < seconds.size(); ++i)
                passes[std::string(timeKey(op))][std::string(nameOf(static_cast<RateOrigin>(i))) + "_ns"] =
                    toNanoseconds(seconds[i]);
        object["rates"].push_back(std::move(passes));
    }
    for (const auto& rates : ratesOf(design))
        object["rates_from"].push_back({{"name", rates->name}, {"title", rates->title}, {"origin", rates->origin}});
    const std::optional<CheckedRuns> error = knownError(design);
    object["error"] = error ? toJson(*error) : Json();
    return object;
}

std::vector<const TradeOff*> alikeWithFirst(const std::vector<TradeOff>& ranked)
{
    const TradeOff* first = nullptr;
    for (const TradeOff& each : ranked)
        if (each.possible && (first == nullptr || each.makespan < first->makespan))
            first = &each;
    std::vector<const TradeOff*> alike;
    const double most = 1 + knownErrorOfSchedules().median;
    for (const TradeOff& each : ranked)
        if (each.possible && &each != first
            && static_cast<double>(each.makespan) < most * static_cast<double>(first->makespan))
            alike.push_back(&each);
    return alike;
}

} // namespace pipewright::app
