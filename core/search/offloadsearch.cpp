// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/search/offloadsearch.h"

#include "core/base/diagnostic.h"
#include "core/design/redesign.h"
#include "core/predict/predict.h"
#include "core/program/compile.h"

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

/// Nothing for a design that deadlocks or does not fit.
std::optional<Nanoseconds> fittingMakespan(const Design& design, std::optional<Bytes> limit)
{
    try {
        const Metrics metrics = predict(design).metrics;
        for (std::size_t d = 0; d < metrics.devices.size(); ++d) {
            const Bytes own = d < design.cluster.devices.size() ? design.cluster.devices[d].memory : 0,
                        most = limit.value_or(own);
            if ((limit || most > 0) && metrics.devices[d].peakBytes > most)
                return std::nullopt;
        }
        return metrics.makespan;
    } catch (const Deadlock&) {
        return std::nullopt;
    }
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
    bool fits = false; // one of the orders
    if (const std::optional<Nanoseconds> value = fittingMakespan(design, options.limit.bytes)) {
        best.trials.push_back({true, std::nullopt, value, design.schedule.offload});
        best.value = *value;
        best.design = design;
        fits = true;
    }
    for (const std::optional<Bytes>& within : limits) {
        if (options.stop.stop_requested())
            break;
        SearchOptions one = options;
        one.timeLimit /= static_cast<std::int64_t>(limits.size());
        one.limit.bytes = within.value_or(withoutLimit);
        OffloadTrial& trial = best.trials.emplace_back(OffloadTrial{false, within, std::nullopt, {}});
        try {
            const SearchResult order = search(kept, one);
            if (!within) {
                best.bound = order.bound.value;
                best.unproved = order.unproved;
            }
            Design found = kept;
            found.buildingBlock.reset();
            found.schedule = order.schedule;
            OffloadedStages chosen =
                chooseOffloadedStages(found, options.limit.bytes, [&] { return options.stop.stop_requested(); });
            trial.offload = chosen.design.schedule.offload;
            if (!chosen.fits)
                continue;
            trial.value = chosen.after;
            if (!fits || chosen.after < best.value) {
                fits = true;
                best.value = chosen.after;
                best.design = std::move(chosen.design);
            }
        } catch (const Error& error) {
            last = error;
        }
    }
    best.cancelled = options.stop.stop_requested();
    if (!fits)
        throw last
            ? *last
            : Error("--offload auto",
                    limit > 0 ? fmt::format("no order fits within {}, whatever leaves for the host", formatSize(limit))
                              : std::string("no order was found"),
                    "allow more time or memory");
    best.gap = best.value > 0 ? static_cast<double>(best.value - best.bound) / static_cast<double>(best.value) : 0;
    return best;
}

} // namespace pipewright
