// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/design/rateorigins.h"

#include "core/base/formattedtext.h"
#include "core/design/operationtimes.h"
#include "core/design/stagecosts.h"

#include <fmt/format.h>

#include <algorithm>

namespace pipewright {

namespace {

std::string_view phrase(RateOrigin origin)
{
    switch (origin) {
    case RateOrigin::Measured: return "of shapes that were measured";
    case RateOrigin::Interpolated: return "between such";
    case RateOrigin::Nearest: return "far from all of them";
    case RateOrigin::Formula: return "by efficiency and data sheets";
    }
    return {};
}

} // namespace

std::vector<PassOrigins> rateOrigins(const Design& design)
{
    std::vector<PassOrigins> origins;
    const std::vector<DeviceSpec>& devices = design.cluster.devices;
    if (!design.workload || !design.costs.isFormula()
        || std::none_of(devices.begin(), devices.end(),
                        [](const DeviceSpec& device) { return device.rates != nullptr; }))
        return origins;
    const Workload& workload = *design.workload;
    const MemberTimes members(design.cluster, workload.shape.parallel);
    const std::vector<int>& deviceOfStage = design.schedule.deviceOfStage;
    std::size_t stage = 0;
    for (const std::span<const Layer> layers : layersOfStages(workload, design.layersPerStage)) {
        OperationTimes times(devices[static_cast<std::size_t>(deviceOfStage[stage++])], typesOf(workload));
        PassOrigins& sum = origins.emplace_back();
        for (const Layer& layer : layers) {
            sum.add(times.of(layer).origins);
            sum.add(members.origins(layer));
        }
    }
    return origins;
}

std::vector<std::shared_ptr<const OperationRates>> ratesOf(const Design& design)
{
    std::vector<std::shared_ptr<const OperationRates>> found;
    if (!rateOrigins(design).empty())
        for (const DeviceSpec& device : design.cluster.devices)
            if (device.rates && std::find(found.begin(), found.end(), device.rates) == found.end())
                found.push_back(device.rates);
    return found;
}

std::string rateOriginsText(const Design& design)
{
    OriginSeconds sum{};
    double all = 0;
    for (const PassOrigins& stage : rateOrigins(design))
        for (const OriginSeconds& pass : {stage.forward, stage.inputGrad, stage.weightGrad})
            for (std::size_t i = 0; i < pass.size(); ++i) {
                sum[i] += pass[i];
                all += pass[i];
            }
    std::vector<std::string> parts;
    for (std::size_t i = 0; i < sum.size(); ++i)
        if (sum[i] > 0)
            parts.push_back(fmt::format("{:.3g} % {}", 100 * sum[i] / all, phrase(static_cast<RateOrigin>(i))));
    return joined(parts, ", ");
}

} // namespace pipewright
