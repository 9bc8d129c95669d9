// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/search/offloadsearch.h"

#include "core/base/diagnostic.h"
#include "core/design/redesign.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace pipewright {

namespace {

constexpr Bytes withoutLimit = std::numeric_limits<Bytes>::max() / 4;

/// The largest memory of a device, used where no limit is given; 0 when no memory size is known.
Bytes largestMemory(const Design& design)
{
    Bytes most = 0;
    for (const DeviceSpec& device : design.cluster.devices)
        most = std::max(most, device.memory);
    return most;
}

} // namespace

OffloadSearchResult searchWithOffload(const Design& design, const SearchOptions& options)
{
    if (options.limit.factor)
        throw Error("--memory-limit",
                    fmt::format("{}x counts in saved activations, which do not stay", *options.limit.factor),
                    "state the limit in bytes, such as 40GiB");
    if (options.objective != SearchObjective::Makespan)
        throw Error("--objective", "stages are chosen by the makespan", "search the makespan with --offload auto");
    const Design kept = withOffload(design, std::vector<bool>{});
    const Bytes limit = options.limit.bytes.value_or(largestMemory(design));
    std::vector<std::optional<Bytes>> limits;
    if (limit > 0)
        limits = {limit, 2 * limit};
    limits.emplace_back(std::nullopt);

    OffloadSearchResult best;
    std::optional<Error> last;
    for (const std::optional<Bytes>& within : limits) {
        if (options.stop.stop_requested())
            break;
        SearchOptions one = options;
        one.timeLimit /= static_cast<std::int64_t>(limits.size());
        one.limit.bytes = within.value_or(withoutLimit);
        OffloadTrial& trial = best.trials.emplace_back(OffloadTrial{within, std::nullopt, {}});
        try {
            const SearchResult order = search(kept, one);
            if (!within)
                best.bound = order.bound.value;
            Design found = kept;
            found.buildingBlock.reset();
            found.schedule = order.schedule;
            OffloadedStages chosen =
                chooseOffloadedStages(found, options.limit.bytes, [&] { return options.stop.stop_requested(); });
            trial.offload = chosen.design.schedule.offload;
            if (!chosen.fits)
                continue;
            trial.value = chosen.after;
            if (best.value == 0 || chosen.after < best.value) {
                best.value = chosen.after;
                best.design = std::move(chosen.design);
            }
        } catch (const Error& error) {
            last = error;
        }
    }
    best.cancelled = options.stop.stop_requested();
    if (best.value == 0)
        throw last
            ? *last
            : Error("--offload auto",
                    limit > 0 ? fmt::format("no order fits within {}, whatever leaves for the host", formatSize(limit))
                              : std::string("no order was found"),
                    "allow more time or memory");
    best.gap = static_cast<double>(best.value - best.bound) / static_cast<double>(best.value);
    return best;
}

} // namespace pipewright
