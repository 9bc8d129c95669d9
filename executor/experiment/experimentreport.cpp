// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/experiment/experimentreport.h"

#include "core/base/formattedtext.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace pipewright {

namespace {

Bytes largest(const std::vector<Bytes>& bytes)
{
    return bytes.empty() ? 0 : *std::max_element(bytes.begin(), bytes.end());
}

Spread spreadOf(const std::vector<const ExperimentRun*>& runs, double ExperimentRun::*field)
{
    double sum = 0, low = INFINITY, high = -INFINITY;
    for (const ExperimentRun* run : runs) {
        sum += run->*field;
        low = std::min(low, run->*field);
        high = std::max(high, run->*field);
    }
    return {sum / static_cast<double>(runs.size()), high - low};
}

std::string csvCell(std::string_view text)
{
    std::string result = "\"";
    for (const char c : text)
        result += c == '"' ? std::string("\"\"") : std::string(1, c == '\n' ? ' ' : c);
    return result + '"';
}

std::size_t parameterCount(const ExperimentRun& run)
{
    std::size_t count = 0;
    for (const auto& stage : run.parameters)
        count += stage.size();
    return count;
}

} // namespace

std::vector<ExperimentSummary> summarise(const std::vector<ExperimentRun>& runs)
{
    std::vector<std::vector<const ExperimentRun*>> byDesign;
    for (const ExperimentRun& run : runs) {
        byDesign.resize(std::max(byDesign.size(), run.design + 1));
        byDesign[run.design].push_back(&run);
    }
    std::vector<ExperimentSummary> lines;
    for (const auto& group : byDesign) {
        if (group.empty())
            continue;
        const ExperimentRun& first = *group.front();
        ExperimentSummary line;
        line.name = first.name;
        line.rule = first.rule;
        line.optimizer = first.optimizer;
        line.reference = first.reference;
        line.classifies = first.classifies;
        line.heldBack = first.heldBack;
        line.seeds = static_cast<int>(group.size());
        line.finalLoss = spreadOf(group, &ExperimentRun::finalLoss);
        line.heldBackLoss = spreadOf(group, &ExperimentRun::heldBackLoss);
        line.heldBackAccuracy = spreadOf(group, &ExperimentRun::heldBackAccuracy);
        line.updatesPerSecond = spreadOf(group, &ExperimentRun::updatesPerSecond);
        line.predictedUpdatesPerSecond = first.predictedUpdatesPerSecond;
        line.predictedPeakBytes = largest(first.predictedPeakBytes);
        for (const StageWeights& stage : first.weights) {
            line.staleness.push_back(stage.staleness);
            line.copies.push_back(stage.copies);
        }
        for (const ExperimentRun* run : group) {
            line.peakBytes = std::max(line.peakBytes, largest(run->peakBytes));
            line.readsAgree = line.readsAgree && run->readsAgree;
            if (run->bitEqual)
                line.bitEqual = line.bitEqual.value_or(true) && *run->bitEqual;
        }
        lines.push_back(std::move(line));
    }
    return lines;
}

std::string curvesCsv(const std::vector<ExperimentRun>& runs)
{
    std::string text = "update";
    std::size_t rows = 0;
    for (const ExperimentRun& run : runs) {
        text += "," + csvCell(fmt::format("{} seed {}", run.name, run.seed));
        rows = std::max(rows, run.losses.size());
    }
    for (const ExperimentRun& run : runs)
        if (!run.accuracies.empty())
            text += "," + csvCell(fmt::format("{} seed {} accuracy", run.name, run.seed));
    for (std::size_t row = 0; row < rows; ++row) {
        text += fmt::format("\n{}", row);
        for (const ExperimentRun& run : runs)
            text += row < run.losses.size() ? fmt::format(",{:.9g}", run.losses[row]) : ",";
        for (const ExperimentRun& run : runs)
            if (!run.accuracies.empty())
                text += row < run.accuracies.size() ? fmt::format(",{:.9g}", run.accuracies[row]) : ",";
    }
    return text + "\n";
}

std::string summaryCsv(const std::vector<ExperimentSummary>& lines)
{
    std::string text =
        "design,weights,optimizer,seeds,final_loss,final_loss_spread,held_back_loss,held_back_loss_spread,"
        "held_back_accuracy,held_back_accuracy_spread,bit_equal_to_sequential,staleness,copies,"
        "updates_per_second,peak_bytes,predicted_peak_bytes\n";
    for (const ExperimentSummary& line : lines)
        text += fmt::format("{},{},{},{},{:.6f},{:.6f},{:.6f},{:.6f},{:.6f},{:.6f},{},{},{},{:.4g},{},{}\n",
                            csvCell(line.name), line.rule, line.optimizer, line.seeds, line.finalLoss.mean,
                            line.finalLoss.range, line.heldBackLoss.mean, line.heldBackLoss.range,
                            line.heldBackAccuracy.mean, line.heldBackAccuracy.range,
                            !line.bitEqual   ? ""
                            : *line.bitEqual ? "yes"
                                             : "no",
                            joined(line.staleness, " "), joined(line.copies, " "), line.updatesPerSecond.mean,
                            line.peakBytes, line.predictedPeakBytes);
    return text;
}

namespace {

std::vector<LossSeries> curvesOf(const std::vector<ExperimentRun>& runs, std::vector<double> ExperimentRun::*values)
{
    std::vector<LossSeries> curves;
    for (const ExperimentRun& run : runs) {
        curves.resize(std::max(curves.size(), run.design + 1));
        LossSeries& curve = curves[run.design];
        curve.name = run.name;
        curve.reference = run.reference;
        curve.seeds.push_back(run.*values);
    }
    return curves;
}

} // namespace

std::vector<LossSeries> lossCurves(const std::vector<ExperimentRun>& runs)
{
    return curvesOf(runs, &ExperimentRun::losses);
}

std::vector<LossSeries> accuracyCurves(const std::vector<ExperimentRun>& runs)
{
    return curvesOf(runs, &ExperimentRun::accuracies);
}

JsonValue toJson(const ExperimentRun& run)
{
    JsonValue stages = JsonValue::array();
    for (const StageWeights& stage : run.weights)
        stages.push_back({{"stage", stage.stage},
                          {"staleness", stage.staleness},
                          {"forward_steps", stage.forwardSteps},
                          {"backward_steps", stage.backwardSteps},
                          {"versions", stage.versions},
                          {"copies", stage.copies}});
    JsonValue object{{"design", run.name},
                     {"number", run.design},
                     {"reference", run.reference},
                     {"rule", run.rule},
                     {"optimizer", run.optimizer},
                     {"seed", run.seed},
                     {"microbatches_per_update", run.microbatchesPerUpdate},
                     {"rows_per_update", run.rowsPerUpdate},
                     {"devices", run.devices},
                     {"stages", run.stages},
                     {"classifies", run.classifies},
                     {"loss", run.losses},
                     {"accuracy", run.accuracies},
                     {"final_loss", run.finalLoss},
                     {"held_back", run.heldBack},
                     {"held_back_loss", run.heldBackLoss},
                     {"held_back_accuracy", run.heldBackAccuracy},
                     {"updates_per_second", run.updatesPerSecond},
                     {"predicted_updates_per_second", run.predictedUpdatesPerSecond},
                     {"peak_bytes", run.peakBytes},
                     {"predicted_peak_bytes", run.predictedPeakBytes},
                     {"reads_agree", run.readsAgree},
                     {"bit_equal_to_reference", nullptr},
                     {"weights", std::move(stages)}};
    const auto numbers = [](const std::vector<double>& values) {
        JsonValue list = JsonValue::array();
        for (const double value : values)
            list.push_back(std::isfinite(value) ? JsonValue(value) : JsonValue());
        return list;
    };
    if (!run.weightBytes.empty()) {
        object["weight_bytes"] = run.weightBytes;
        object["prediction_rmse"] = numbers(run.predictionErrors);
        object["unpredicted_rmse"] = numbers(run.staleErrors);
    }
    if (!run.classifies)
        object["perplexity"] = std::exp(run.heldBackLoss);
    if (run.bitEqual)
        object["bit_equal_to_reference"] = *run.bitEqual;
    return object;
}

ExperimentRun experimentRunFrom(const JsonValue& object)
{
    const auto text = [&](const char* key) { return object.member(key).text().value_or(std::string()); };
    const auto truth = [&](const char* key, bool without) { return object.member(key).boolean().value_or(without); };
    const auto whole = [](const JsonValue& from, const char* key) { return from.member(key).integer().value_or(0); };
    const auto small = [&](const JsonValue& from, const char* key) { return static_cast<int>(whole(from, key)); };
    // Numbers that are not finite were written as null.
    const auto number = [&](const char* key) { return object.member(key).number().value_or(NAN); };
    const auto bytes = [&](const char* key) {
        std::vector<Bytes> list;
        for (const JsonValue& each : object.member(key).elements())
            list.push_back(each.integer().value_or(0));
        return list;
    };
    ExperimentRun run;
    run.name = text("design");
    run.design = object.member("number").unsignedInteger().value_or(0);
    run.reference = truth("reference", false);
    run.rule = text("rule");
    run.optimizer = text("optimizer");
    run.seed = object.member("seed").unsignedInteger().value_or(0);
    run.microbatchesPerUpdate = small(object, "microbatches_per_update");
    run.rowsPerUpdate = whole(object, "rows_per_update");
    run.devices = small(object, "devices");
    run.stages = small(object, "stages");
    run.classifies = truth("classifies", false);
    for (const JsonValue& accuracy : object.member("accuracy").elements())
        run.accuracies.push_back(accuracy.number().value_or(NAN));
    for (const JsonValue& loss : object.member("loss").elements())
        run.losses.push_back(loss.number().value_or(NAN));
    run.finalLoss = number("final_loss");
    run.heldBack = truth("held_back", true);
    run.heldBackLoss = number("held_back_loss");
    run.heldBackAccuracy = number("held_back_accuracy");
    run.updatesPerSecond = number("updates_per_second");
    run.predictedUpdatesPerSecond = number("predicted_updates_per_second");
    run.peakBytes = bytes("peak_bytes");
    run.predictedPeakBytes = bytes("predicted_peak_bytes");
    run.readsAgree = truth("reads_agree", true);
    run.bitEqual = object.member("bit_equal_to_reference").boolean();
    for (const JsonValue& stage : object.member("weights").elements()) {
        StageWeights& weights = run.weights.emplace_back();
        weights.stage = small(stage, "stage");
        weights.staleness = small(stage, "staleness");
        weights.forwardSteps = small(stage, "forward_steps");
        weights.backwardSteps = small(stage, "backward_steps");
        weights.versions = small(stage, "versions");
        weights.copies = small(stage, "copies");
    }
    return run;
}

ExperimentRecord recordOf(const ExperimentRun& run)
{
    return {run.name,
            run.rule,
            run.optimizer,
            static_cast<std::int64_t>(run.seed),
            run.devices,
            run.stages,
            run.microbatchesPerUpdate,
            run.finalLoss,
            run.heldBackLoss,
            run.heldBackAccuracy,
            run.updatesPerSecond,
            run.predictedUpdatesPerSecond,
            largest(run.peakBytes),
            run.losses,
            run.weights};
}

Diagnostics whatIsUnfair(const std::vector<ExperimentRun>& runs)
{
    Diagnostics diagnostics;
    for (const ExperimentRun& run : runs) {
        if (run.seed != runs.front().seed)
            break;
        if (run.rowsPerUpdate != runs.front().rowsPerUpdate)
            diagnostics.push_back({Severity::Warning, run.name,
                                   fmt::format("its updates take {} rows of data, those of {} {}", run.rowsPerUpdate,
                                               runs.front().name, runs.front().rowsPerUpdate),
                                   "for a fair comparison give the designs microbatch sizes that make equal updates"});
        if (parameterCount(run) != parameterCount(runs.front()))
            diagnostics.push_back({Severity::Warning, run.name,
                                   fmt::format("its model has {} parameters, that of {} {}", parameterCount(run),
                                               runs.front().name, parameterCount(runs.front())),
                                   "for a fair comparison make all designs from one model"});
    }
    return diagnostics;
}

} // namespace pipewright
