// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/plantext.h"

#include "app/predictionjson.h"
#include "app/table.h"
#include "app/terminal.h"

#include "core/base/units.h"
#include "core/plan/planwords.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace pipewright::app {

namespace {

Json toJson(const TrainingPlan& plan, const std::string& file, bool noisy)
{
    const PlanSetting& s = plan.setting;
    return {{"step_ns", plan.step},
            {"p95_ns", noisy ? Json(plan.noisy.p95) : Json()},
            {"tokens_per_second_per_device", plan.tokensPerSecondPerDevice},
            {"mfu", plan.mfu},
            {"peak_bytes", plan.peak},
            {"peak_by_kind", byKind(plan.memory)},
            {"alike", plan.alike},
            {"tensor", s.tensor},
            {"sequence_parallel", s.tensor > 1},
            {"context", s.context},
            {"expert", s.expert},
            {"folded_experts", s.foldedExperts},
            {"pipeline", s.pipeline},
            {"data", s.data},
            {"chunks", plan.chunks},
            {"layers_per_stage", plan.design.layersPerStage},
            {"family", plan.family->name},
            {"microbatch_size", s.microbatchSize},
            {"microbatches", s.microbatches},
            {"zero", s.zero.level},
            {"reshard", s.zero.reshard.every ? "always" : "never"},
            {"recompute", nameOf(s.recompute)},
            {"offload", "none"},
            {"why", plan.why},
            {"design", file.empty() ? Json() : Json(file)}};
}

/// Behind the best, plans of the frontier are shown that take at least so much less memory than the one before.
constexpr double worthShowing = 0.9;

/// Nothing when no best of all was found.
std::optional<double> overBest(const PlanResult& with, const PlanResult& all)
{
    if (all.plans.empty())
        return std::nullopt;
    return static_cast<double>(with.plans.front().step) / static_cast<double>(all.plans.front().step) - 1;
}

} // namespace

Json toJson(const PlanResult& result, const std::vector<std::string>& files, bool noisy)
{
    Json object;
    object["plans"] = Json::array();
    for (std::size_t i = 0; i < result.plans.size(); ++i)
        object["plans"].push_back(toJson(result.plans[i], files.empty() ? std::string() : files[i], noisy));
    object["considered"] = result.considered;
    object["predicted"] = result.predicted;
    object["refused"] = {
        {"memory", result.refused.memory}, {"shape", result.refused.shape}, {"batch", result.refused.batch}};
    object["complete"] = result.complete;
    object["seconds"] = result.seconds;
    object["frontier"] = result.frontier;
    object["frontier_complete"] = result.frontierComplete;
    object["frontier_tolerance"] = result.frontierTolerance;
    return object;
}

void print(const PlanResult& result, const PlanRequest& request)
{
    const bool noisy = request.noise.has_value();
    TextTable table({"", "step", noisy ? "95 % within" : "", "tok/s/device", "MFU", "peak", "degrees", "microbatches",
                     "schedule", "memory"});
    const auto top = static_cast<std::size_t>(request.top);
    Bytes shown = 0;
    for (std::size_t i = 0; i < result.plans.size(); ++i) {
        const TrainingPlan& plan = result.plans[i];
        if (i >= top && static_cast<double>(plan.peak) > worthShowing * static_cast<double>(shown))
            continue;
        shown = i < top ? std::min(plan.peak, shown == 0 ? plan.peak : shown) : plan.peak;
        const bool frontier = std::find(result.frontier.begin(), result.frontier.end(), i) != result.frontier.end();
        table.addRow({fmt::format("{}{}", i + 1, frontier ? "*" : ""), formatDuration(plan.step),
                      noisy ? formatDuration(plan.noisy.p95) : std::string(),
                      fmt::format("{:.0f}", plan.tokensPerSecondPerDevice), percent(plan.mfu), formatSize(plan.peak),
                      degreesText(plan.setting),
                      fmt::format("{} × {}", plan.setting.microbatches, plan.setting.microbatchSize),
                      scheduleText(*plan.family, plan.chunks), memoryText(plan.setting)});
    }
    if (!result.plans.empty()) {
        table.printWide();
        printText("\n* on the frontier: no other plan is as short and takes less memory\n");
        printText("1: {}\n", result.plans.front().why);
        if (result.plans.size() > 1)
            printText("2: {}\n", result.plans[1].why);
        if (!result.plans.front().alike.empty())
            printText("{} more are within {:.0f} % of the first, which these costs cannot tell apart\n",
                      result.plans.front().alike.size(), 100 * planTolerance);
    }
    printText("{} plans of {} devices and {} sequences a step: {} predicted, {} refused by memory, {} by shape, {} by "
              "batch; {}, {:.1f} s\n",
              result.considered, request.devices, request.batch, result.predicted, result.refused.memory,
              result.refused.shape, result.refused.batch,
              !result.complete          ? "stopped: others may be shorter"
              : result.frontierComplete ? "complete: by these costs no other plan is shorter"
                                        : "by these costs no other plan is shorter; the frontier is not complete",
              result.seconds);
}

Json answerJson(const std::string& fixed, const PlanResult& with, const PlanResult& all)
{
    Json answer{{"why", fixed}};
    if (!with.plans.empty()) {
        const std::optional<double> over = overBest(with, all);
        answer["over_best"] = over ? Json(*over) : Json();
        answer["best"] = toJson(with.plans.front(), {}, false);
    }
    answer["reasons"] = Json::array();
    for (const auto& [count, reason] : byCount(with.reasons))
        answer["reasons"].push_back({{"reason", reason}, {"plans", count}});
    return answer;
}

void printAnswer(const std::string& fixed, const PlanResult& with, const PlanResult& all)
{
    if (with.plans.empty()) {
        constexpr std::size_t most = 6;
        printText("\n{} {}:\n", with.complete ? "no plan has" : "stopped before a plan was found with", fixed);
        const auto reasons = byCount(with.reasons);
        for (std::size_t i = 0; i < std::min(most, reasons.size()); ++i)
            printText("  {} ({} plan{})\n", reasons[i].second, reasons[i].first, reasons[i].first == 1 ? "" : "s");
        return;
    }
    const TrainingPlan& best = with.plans.front();
    const std::string memory = memoryText(best.setting);
    const std::optional<double> over = overBest(with, all);
    printText("\nthe best with {}: {}{}: {}, {} × {}, {}{}{}\n  {}\n", fixed, formatDuration(best.step),
              over ? fmt::format(", {} over the best of all", signedPercent(*over)) : std::string(),
              degreesText(best.setting), best.setting.microbatches, best.setting.microbatchSize,
              scheduleText(*best.family, best.chunks), memory.empty() ? "" : ", ", memory, best.why);
}

Json refinedJson(const RefinedPlan& refined, const std::string& file)
{
    Json object{{"before_ns", refined.before},
                {"step_ns", refined.step},
                {"peak_bytes", refined.peak},
                {"proved", false},
                {"stopped", refined.stopped}};
    object["changes"] = Json::array();
    for (const std::string& change : refined.changes)
        object["changes"].push_back(change);
    object["not_tried"] = Json::array();
    for (const std::string& reason : refined.notTried)
        object["not_tried"].push_back(reason);
    object["design"] = file.empty() ? Json() : Json(file);
    return object;
}

Json whatIfJson(const std::string& changes, const PlanDifference& difference, const PlanResult& other)
{
    Json object{{"changes", changes}, {"list", toJson(other, {}, false)}};
    const auto sides = [](const auto& before, const auto& after) { return Json{{"before", before}, {"after", after}}; };
    const auto orNull = [](auto value) { return value > 0 ? Json(value) : Json(); };
    object["step_ns"] = sides(orNull(difference.stepBefore), orNull(difference.stepAfter));
    object["tokens_per_second"] =
        sides(orNull(difference.tokensPerSecondBefore), orNull(difference.tokensPerSecondAfter));
    object["moves"] = Json::array();
    const auto side = [&](const PlanMove::Side& of) {
        return Json{{"place", of.place ? Json(*of.place) : Json()}, {"step_ns", orNull(of.step)}, {"why", of.why}};
    };
    for (const PlanMove& move : difference.moves)
        object["moves"].push_back({{"plan", planName(move.setting, *move.family, move.chunks)},
                                   {"before", side(move.before)},
                                   {"after", side(move.after)}});
    return object;
}

void printWhatIf(const std::string& changes, const PlanDifference& difference, bool complete)
{
    printText("\nwhat if {}:\n", changes);
    for (const std::string& line : differenceText(difference))
        printText("  {}\n", line);
    if (!complete)
        printText("  not both lists are complete: others may be shorter\n");
}

std::string mostlyBecause(const PlanResult& result)
{
    const auto reasons = byCount(result.reasons);
    return reasons.empty() ? std::string() : ", mostly: " + reasons.front().second;
}

} // namespace pipewright::app
