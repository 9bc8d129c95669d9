// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cancel.h"
#include "app/command.h"
#include "app/memorylimit.h"
#include "app/progress.h"
#include "app/searchoffload.h"
#include "app/searchoptions.h"
#include "app/table.h"
#include "app/terminal.h"

#include "core/base/formattedtext.h"
#include "core/base/outputfile.h"
#include "core/base/units.h"
#include "core/design/costorigins.h"
#include "core/design/redesign.h"
#include "core/files/designfile.h"
#include "core/search/pareto.h"
#include "core/search/partition.h"
#include "core/search/variants.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <thread>

namespace pipewright::app {

namespace {

void show(ProgressPrinter& printer, const SearchProgress& now, double timeLimit)
{
    const double share = timeLimit > 0 ? std::min(1.0, now.seconds / timeLimit) : 0;
    printer.show(
        share,
        [&] {
            return fmt::format("{:.1f} s  best {}  bound {}", now.seconds,
                               now.best > 0 ? formatDuration(now.best) : "none yet", formatDuration(now.bound));
        },
        [&] {
            return Json{{"progress", share},
                        {"elapsed_s", now.seconds},
                        {"best_ns", now.best > 0 ? Json(now.best) : Json()},
                        {"bound_ns", now.bound}}
                .dump();
        });
}

/// The costs for which something is proved: those of the operations that the search could choose.
std::string costsText(const Design& design, const SearchCommandOptions& given)
{
    const std::vector<std::vector<Block>>& order = design.schedule.order;
    const auto has = [&](Op op) {
        return std::any_of(order.begin(), order.end(), [op](const std::vector<Block>& lane) {
            return std::any_of(lane.begin(), lane.end(), [op](const Block& block) { return block.op == op; });
        });
    };
    std::vector<Op> chosen;
    for (const Op op : {Op::F, Op::R, Op::B, Op::I, Op::W})
        if (op == Op::F || (isBackward(op) && given.backward != "given") || has(op))
            chosen.push_back(op);
    return originsText(design, chosen);
}

Json toJson(const SearchResult& result, const Design& design, const SearchCommandOptions& given)
{
    Json object{{"design", given.output},
                {"objective", given.objective},
                {"best_ns", result.value},
                {"bound_ns", result.bound.value}};
    object["bound"] = {{"name", result.bound.name}, {"why", result.bound.why}};
    object["gap"] = result.gap;
    object["proved"] = result.proved;
    object["unproved"] = result.unproved;
    object["costs"] = costsText(design, given);
    if (const auto noise = given.noise.noise(given.seed, design.costs))
        object["spread"] = spreadToJson(*noise, result.noisy);
    object["cancelled"] = result.cancelled;
    object["history"] = Json::array();
    for (const SearchPoint& point : result.history)
        object["history"].push_back(
            {{"elapsed_s", point.seconds}, {"value_ns", point.value}, {"source", point.source}});
    return object;
}

std::string verdict(const SearchResult& result, const std::string& costs, bool locks)
{
    if (!result.unproved.empty())
        return fmt::format("nothing is proved: {}; {} above the bound for these costs: {}", result.unproved,
                           percent(result.gap), costs);
    if (result.proved)
        return fmt::format("proved for these costs: {}: no order{} is shorter", costs,
                           locks ? " that keeps the locked blocks in theirs" : "");
    return fmt::format("at most {} above the best possible for these costs: {}", percent(result.gap), costs);
}

void print(const SearchResult& result, const Design& design, const SearchCommandOptions& given)
{
    printText("{:<9} {}\n", given.objective, formatDuration(result.value));
    if (const auto noise = given.noise.noise(given.seed, design.costs))
        printText("{}: median {}, 95th percentile {}\n", describe(*noise), formatDuration(result.noisy.median),
                  formatDuration(result.noisy.p95));
    printText("bound     {}: {}\n", formatDuration(result.bound.value), result.bound.why);
    printText("gap       {}\n", verdict(result, costsText(design, given), !given.locked.empty()));
    for (const SearchPoint& point : result.history)
        printText("  {:>8.3f} s  {:>10}  {}\n", point.seconds, formatDuration(point.value), point.source);
    printText("{}\n", given.output);
}

Design found(const Design& design, const SearchResult& result)
{
    Design best = design;
    best.buildingBlock.reset();
    best.schedule = result.schedule;
    return best;
}

void searchFront(const SearchCommandOptions& given, const LocatedDesign& located, const SearchOptions& options)
{
    const auto limits = parseRange(given.limit);
    const std::filesystem::path folder(given.output);
    std::error_code failure;
    std::filesystem::create_directories(folder, failure);
    if (!std::filesystem::is_directory(folder, failure))
        throw Error(given.output, "is no folder and cannot be made one", "name a folder for the designs");
    const std::string costs = costsText(located.design, given);
    Json object{{"folder", given.output}, {"objective", given.objective}, {"costs", costs}, {"points", Json::array()}};
    TextTable table({"limit", given.objective, "bound", "gap", "proved", "design"});
    for (const ParetoPoint& point : orFind(located, [&] {
             return searchFrontOf(located.design, options, limits.first, limits.second, given.points);
         })) {
        Json entry{{"memory_limit", fmt::format("{:.4g}x", point.factor)}};
        if (point.result) {
            const std::string path = (folder / fmt::format("limit-{:.4g}x.json", point.factor)).string();
            Design best = found(located.design, *point.result);
            best.name = fmt::format("{}, within {:.4g}x", located.design.name, point.factor);
            writeDesign(best, path, given.force);
            entry.update({{"design", path},
                          {"best_ns", point.result->value},
                          {"bound_ns", point.result->bound.value},
                          {"gap", point.result->gap},
                          {"proved", point.result->proved},
                          {"unproved", point.result->unproved},
                          {"front", point.onFront}});
            table.addRow({fmt::format("{:.4g}x", point.factor), formatDuration(point.result->value),
                          formatDuration(point.result->bound.value), percent(point.result->gap),
                          point.result->proved ? "yes" : "no", path});
        } else {
            entry["reason"] = point.reason;
            table.addRow({fmt::format("{:.4g}x", point.factor), "-", "-", "-", "-", point.reason});
        }
        object["points"].push_back(std::move(entry));
    }
    if (given.json) {
        printJson(object);
    } else {
        table.print();
        printText("gaps and proofs hold for these costs: {}\n", costs);
    }
}

Json toJson(const PartitionTrial& trial)
{
    return {{"placement", nameOf(trial.shape)},
            {"layers_per_stage", trial.layersPerStage},
            {"device_of_stage", trial.deviceOfStage},
            {"best_ns", trial.value},
            {"bound_ns", trial.bound}};
}

std::vector<std::string> cellsOf(const PartitionTrial& trial)
{
    return {std::string(nameOf(trial.shape)), formatDuration(trial.value), formatDuration(trial.bound),
            joined(trial.layersPerStage, " "), joined(trial.deviceOfStage, " ")};
}

int searchPartitionOf(const SearchCommandOptions& given, const LocatedDesign& located, const PartitionOptions& options)
{
    PartitionResult found = orFind(located, [&] { return searchPartition(located.design, options); });
    writeDesign(found.design, given.output, given.force);
    if (given.json) {
        Json object = toJson(found.result, found.design, given);
        object["layers_per_stage"] = found.design.layersPerStage;
        object["device_of_stage"] = found.design.schedule.deviceOfStage;
        object["trials"] = Json::array();
        for (const PartitionTrial& trial : found.trials)
            object["trials"].push_back(toJson(trial));
        printJson(object);
    } else {
        TextTable table({"placement", given.objective, "bound", "layers per stage", "devices"});
        for (const PartitionTrial& trial : found.trials)
            table.addRow(cellsOf(trial));
        table.print();
        print(found.result, found.design, given);
    }
    return found.result.cancelled ? exitFinding : exitSuccess;
}

std::string_view styleName(std::optional<BackwardStyle> style)
{
    return !style ? "given" : *style == BackwardStyle::Split ? "split" : "full";
}

std::vector<int> recomputedStages(const std::vector<Recompute>& ofStage)
{
    std::vector<int> stages;
    for (std::size_t s = 0; s < ofStage.size(); ++s)
        if (ofStage[s] != Recompute::None)
            stages.push_back(static_cast<int>(s));
    return stages;
}

int searchVariantsOf(const SearchCommandOptions& given, const LocatedDesign& located, VariantOptions variants,
                     const SearchOptions& options)
{
    variants.search = options;
    const VariantResult found = orFind(located, [&] { return searchVariants(located.design, variants); });
    writeDesign(found.design, given.output, given.force);
    if (given.json) {
        Json object = toJson(found.result, found.design, given);
        object["backward"] = styleName(found.backward);
        object["recomputed"] = recomputedStages(found.recompute);
        object["recompute"] = textOf(found.recompute);
        if (variants.partition) {
            object["layers_per_stage"] = found.design.layersPerStage;
            object["device_of_stage"] = found.design.schedule.deviceOfStage;
        }
        object["trials"] = Json::array();
        for (const VariantTrial& trial : found.trials) {
            Json entry{{"backward", styleName(trial.backward)},
                       {"recomputed", recomputedStages(trial.recompute)},
                       {"recompute", textOf(trial.recompute)},
                       {"best_ns", trial.value ? Json(*trial.value) : Json()}};
            if (variants.partition)
                entry["cuts"] = Json::array();
            for (const PartitionTrial& cut : trial.cuts)
                entry["cuts"].push_back(toJson(cut));
            object["trials"].push_back(std::move(entry));
        }
        printJson(object);
    } else {
        TextTable table({"backward", "recomputed stages", given.objective});
        TextTable cuts({"backward", "placement", given.objective, "bound", "layers per stage", "devices"});
        for (const VariantTrial& trial : found.trials) {
            const std::string style(styleName(trial.backward));
            table.addRow({style, trial.recompute.empty() ? "none" : textOf(trial.recompute),
                          trial.value ? formatDuration(*trial.value) : "does not fit"});
            for (const PartitionTrial& cut : trial.cuts) {
                std::vector<std::string> cells = cellsOf(cut);
                cells.insert(cells.begin(), style);
                cuts.addRow(std::move(cells));
            }
        }
        if (variants.partition)
            cuts.print();
        table.print();
        print(found.result, found.design, given);
    }
    return found.result.cancelled ? exitFinding : exitSuccess;
}

int searchDesign(const SearchCommandOptions& given)
{
    SearchOptions options = searchOptions(given);
    const std::optional<VariantOptions> variants = variantOptions(given, options);
    if (given.pareto && (given.partition || !given.placement.empty()))
        throw Error("--pareto", "searches orders of one partition and placement",
                    "search the partition first, then the front of its result");
    if (!given.pareto) {
        options.limit = parseMemoryLimit(given.limit);
        checkOutput(given.output, given.force);
    }
    LocatedDesign located = readLocatedDesign(given.file);
    if (given.costs.given())
        if (const std::optional<UnevenEnds> ends = takeCosts(given.costs, located.design))
            printNote(*ends);
    if (given.offload == "none")
        located.design = withOffload(located.design, std::vector<bool>{});
    else if (!given.offload.empty() && given.offload != "auto")
        throw Error("--offload", "\"" + given.offload + "\" is nothing to search", "use auto or none");
    options.noise = given.noise.noise(given.seed, located.design.costs);
    std::stop_source stop;
    options.stop = stop.get_token();
    ProgressPrinter printer(given.progress);
    options.progress = [&, cancelled = cancelOnSignals(), shown = -1.0](const SearchProgress& now) mutable {
        if (cancelled->load())
            stop.request_stop();
        if (now.seconds >= shown && now.seconds < shown + 0.1)
            return;
        shown = now.seconds;
        show(printer, now, std::chrono::duration<double>(options.timeLimit).count());
    };
    if (given.pareto) {
        searchFront(given, located, options);
        return stop.stop_requested() ? exitFinding : exitSuccess;
    }
    if (given.offload == "auto") {
        if (given.partition || !given.placement.empty() || variants)
            throw Error("--offload", "is searched by itself", "search the rest first, then this with its result");
        return orFind(located, [&] {
            return searchOffload(located.design, options, {given.output, given.force, given.json});
        });
    }
    if (variants)
        return searchVariantsOf(given, located, *variants, options);
    if (given.partition || !given.placement.empty())
        return searchPartitionOf(given, located, partitionOptions(given, options));
    const SearchResult result = orFind(located, [&] { return search(located.design, options); });
    const Design best = found(located.design, result);
    writeDesign(best, given.output, given.force);
    if (given.json)
        printJson(toJson(result, best, given));
    else
        print(result, best, given);
    return result.cancelled ? exitFinding : exitSuccess;
}

} // namespace

void addSearchCommand(CLI::App& program, int& exitCode)
{
    CLI::App& command = *program.add_subcommand(
        "search", "Finds a better order under a memory limit, and how far from the best it can be");
    const auto options = std::make_shared<SearchCommandOptions>(command);
    command.callback([options, &exitCode] { exitCode = searchDesign(*options); });
}

} // namespace pipewright::app
