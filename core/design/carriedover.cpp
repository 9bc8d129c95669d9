// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/design/carriedover.h"

#include "core/base/optimizer.h"
#include "core/base/recompute.h"
#include "core/schedule/replicas.h"

#include <fmt/format.h>

#include <algorithm>

namespace pipewright {

std::string optimizerChange(const Design& from, const Design& to)
{
    if (!from.workload || !to.workload || from.workload->optimizer == to.workload->optimizer)
        return {};
    return fmt::format("{} in place of {}", factsOf(to.workload->optimizer).title,
                       factsOf(from.workload->optimizer).title);
}

std::vector<std::string> carriedOver(const Design& from, const Design& to)
{
    std::vector<std::string> texts;
    if (const std::string change = optimizerChange(from, to); !change.empty())
        texts.push_back(
            fmt::format("it trains with {}: the bytes of the state and the time of updates are its own", change));
    const auto recomputes = [](const Design& design) { return textOf(design.schedule.recompute); };
    if (const std::string before = recomputes(from), now = recomputes(to); !before.empty())
        texts.push_back(now.empty() ? fmt::format("recomputation ({}) is left out", before)
                                    : fmt::format("recomputation stays: {}", now));
    const auto offloads = [](const Design& design) {
        return std::count(design.schedule.offload.begin(), design.schedule.offload.end(), true);
    };
    if (offloads(from) > 0)
        texts.push_back(offloads(to) == 0
                            ? std::string("offload is left out")
                            : fmt::format("offload stays: {} of {} stages", offloads(to), to.schedule.stages()));
    if (const int before = pipelinesOf(from.schedule), now = pipelinesOf(to.schedule); before != now)
        texts.push_back(fmt::format("{} cop{} of the pipeline in place of {}: --replicas says how many", now,
                                    now == 1 ? "y" : "ies", before));
    return texts;
}

} // namespace pipewright
