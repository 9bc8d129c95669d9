// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/plan/planwords.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

namespace pipewright {

std::string degreesText(const PlanSetting& setting)
{
    std::string text;
    for (const auto& [name, degree] : {std::pair{"tensor", setting.tensor},
                                       {"context", setting.context},
                                       {"expert", setting.expert},
                                       {"pipeline", setting.pipeline},
                                       {"data", setting.data}})
        if (const bool folded = setting.foldedExperts && name == std::string_view("expert"); degree > 1 || folded)
            text += fmt::format("{}{} {}{}", text.empty() ? "" : ", ", name, degree, folded ? " folded" : "");
    return text.empty() ? "one device" : text;
}

std::string memoryText(const PlanSetting& setting)
{
    std::string text = setting.zero.level == 0 ? "" : fmt::format("ZeRO {}", setting.zero.level);
    if (setting.zero.reshard.every)
        text += ", freed";
    if (setting.recompute != Recompute::None)
        text += (text.empty() ? "recompute " : ", recompute ") + std::string(nameOf(setting.recompute));
    return text;
}

std::string scheduleText(const Family& family, int chunks)
{
    return family.chunksSelectable ? fmt::format("{}, {} chunks", family.title, chunks) : std::string(family.title);
}

std::string planName(const PlanSetting& setting, const Family& family, int chunks)
{
    const std::string memory = memoryText(setting);
    return fmt::format("{}, {} × {}, {}{}{}", degreesText(setting), setting.microbatches, setting.microbatchSize,
                       scheduleText(family, chunks), memory.empty() ? "" : ", ", memory);
}

StepShares sharesOf(const Design& design, const Prediction& prediction)
{
    StepShares shares;
    shares.step = prediction.metrics.makespan;
    const std::vector<DeviceMetrics>& devices = prediction.metrics.devices;
    Nanoseconds all = 0;
    for (std::size_t d = 0; d < devices.size(); ++d) {
        all += devices[d].busy;
        if (devices[d].busy > devices[static_cast<std::size_t>(shares.busiest)].busy)
            shares.busiest = static_cast<int>(d);
    }
    if (devices.empty())
        return shares;
    const Nanoseconds most = devices[static_cast<std::size_t>(shares.busiest)].busy;
    shares.work = all / static_cast<Nanoseconds>(devices.size());
    shares.imbalance = most - shares.work;
    shares.idle = shares.step - most;
    shares.busiestHasHead = devices.size() > 1 && design.schedule.deviceOfStage.back() == shares.busiest;
    return shares;
}

std::string whyText(const StepShares& shares, const StepShares* first)
{
    const auto step = static_cast<double>(std::max<Nanoseconds>(1, shares.step));
    const auto percent = [&](Nanoseconds part) { return 100 * static_cast<double>(part) / step; };
    std::string text = fmt::format("{:.1f} % of the step is work, {:.1f} % imbalance", percent(shares.work),
                                   percent(shares.imbalance));
    if (percent(shares.imbalance) >= 0.5)
        text += fmt::format(" (device {} has most{})", shares.busiest, shares.busiestHasHead ? ", with the head" : "");
    text += fmt::format(", {:.1f} % idle", percent(shares.idle));
    if (first == nullptr || first->step == 0)
        return text;
    const auto base = static_cast<double>(first->step);
    const auto more = [&](Nanoseconds now, Nanoseconds then) { return 100 * static_cast<double>(now - then) / base; };
    const std::array<std::pair<double, const char*>, 3> parts{{
        {more(shares.work, first->work), "work of a device"},
        {more(shares.imbalance, first->imbalance), "imbalance"},
        {more(shares.idle, first->idle), "idle time"},
    }};
    const auto& most =
        *std::max_element(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    return fmt::format("{:+.1f} % over the first ({:+.1f} % {}): {}", more(shares.step, first->step), most.first,
                       most.second, text);
}

std::vector<std::pair<std::int64_t, std::string>> byCount(const std::map<std::string, std::int64_t>& reasons)
{
    std::vector<std::pair<std::int64_t, std::string>> sorted;
    for (const auto& [reason, count] : reasons)
        sorted.emplace_back(count, reason);
    std::sort(sorted.rbegin(), sorted.rend());
    return sorted;
}

std::string shortReason(const Error& error)
{
    const Diagnostics& all = error.diagnostics();
    const auto found =
        std::find_if(all.begin(), all.end(), [](const Diagnostic& each) { return each.severity == Severity::Error; });
    return found == all.end() ? std::string(error.what()) : found->what;
}

} // namespace pipewright
