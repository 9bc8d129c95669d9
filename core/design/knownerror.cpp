// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/design/knownerror.h"

#include <fmt/format.h>

#include <algorithm>

namespace pipewright {

namespace {

/// One efficiency for all products, as device presets assume it.
const CheckedRuns ofEfficiency{11, 0.208, 0.415, "Megatron-LM on A100 and Llama 3 on H100",
                               "resources/experiments/published-steps.md"};
/// Costs of one recorded run for other schedules of the same model.
const CheckedRuns ofRecordings{30, 0.015, 0.045, "ten families trained on the host",
                               "resources/experiments/training-predicted.md"};
const CheckedRuns ofSchedules{72, 0.054, 0.166, "pairs of the zero-bubble paper's schedules on A100",
                              "resources/experiments/published-steps.md"};

} // namespace

std::optional<CheckedRuns> knownError(const Design& design)
{
    switch (design.costs.sourceOrigin()) {
    case CostOrigin::Measured: return ofRecordings;
    case CostOrigin::Formula: break;
    case CostOrigin::Given:
    case CostOrigin::Estimated:
    case CostOrigin::AsSource: return std::nullopt;
    }
    const std::vector<DeviceSpec>& devices = design.cluster.devices;
    if (devices.empty() || !design.workload || design.workload->shape.architecture == Architecture::Table
        || std::any_of(devices.begin(), devices.end(), [&](const DeviceSpec& device) {
               return device.group != nullptr || device.rates != devices.front().rates;
           }))
        return std::nullopt;
    const ProductType products = design.workload->shape.products;
    if (devices.front().rates)
        return devices.front().rates->checkedOf(products);
    return products == ProductType::Own ? std::optional(ofEfficiency) : std::nullopt;
}

const CheckedRuns& knownErrorOfSchedules()
{
    return ofSchedules;
}

std::string textOf(const CheckedRuns& error)
{
    return fmt::format("off by {:.1f} % in the median and by {:.1f} % at most, over {} measured ones ({}: {})",
                       100 * error.median, 100 * error.largest, error.runs, error.of, error.where);
}

} // namespace pipewright
