// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cancel.h"
#include "app/command.h"
#include "app/costschoice.h"
#include "app/memorylimit.h"
#include "app/noiseoptions.h"
#include "app/progress.h"
#include "app/searchoffload.h"
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

struct SearchCommandOptions {
    explicit SearchCommandOptions(Command command)
        : noise(command, "what decides between the schedules that the search found best one after another")
    {
        command.option("file", file, "the design file").required().typeName("FILE");
        command
            .option("--memory-limit", limit,
                    "bytes of a device, or FACTORx: x = P microbatches of its activations (what the devices have); "
                    "with --pareto a range FROMx:TOx")
            .typeName("SIZE|FACTORx");
        command.option("--time-limit", timeLimit, "give up improving after so long (10s)").typeName("T");
        command
            .option("--objective", objective,
                    "makespan, or span: the longest time between a device's first block and its last")
            .typeName("OBJECTIVE");
        command.option("--seed", seed, "of what is tried at random (1)").typeName("N");
        command.option("--threads", threads, "0: as many as the machine has").typeName("N");
        command
            .option("--rounds", rounds,
                    "end after so many rounds of every thread; with one thread the result follows from the seed")
            .typeName("N");
        command.option("--lock", locked, "blocks that keep their order, such as F0.3")
            .delimiter(',')
            .typeName("BLOCK,…");
        command.flag("--pareto", pareto, "one design per memory limit over a range; the output is a folder");
        command.flag("--partition", partition, "find the layers of every stage too");
        command
            .option(
                "--placement", placement,
                "find the stages' devices too: linear, looped, v, wave, free (any of these, and stages change places)")
            .delimiter(',')
            .typeName("SHAPE,…");
        command
            .option("--backward", backward,
                    "given: as the design has them; split: I and W apart; full: one block; either: what is better")
            .typeName("STYLE");
        command
            .option("--recompute", recompute,
                    "which stages make their activations again before the backward (R blocks), such as 0,1; or auto: "
                    "as many of the first as pay (with a limit in bytes)")
            .typeName("auto|none|selective|full|STAGES");
        command
            .option(
                "--offload", offload,
                "auto: let stages offload what they keep where that costs no time or makes the order fit; none: let "
                "none of the design's stages")
            .typeName("auto|none");
        command.option("--points", points, "with --pareto: limits in the range (9)").typeName("N");
        costs.addTo(command);
        command.option("-o,--output", output, "the design file to write").required().typeName("FILE");
        command.flag("--force", force, "replace what exists");
        command.option("--progress", progress, "auto, bar, json (lines on standard error) or none").typeName("STYLE");
        command.flag("--json", json, "print one JSON object");
    }
    std::string file, output, limit, timeLimit = "10s", objective = "makespan", progress = "auto";
    std::string backward = "given";
    CostsChoice costs;
    NoiseOptions noise;
    std::vector<std::string> locked, placement;
    std::string recompute, offload;
    std::uint64_t seed = 1;
    int threads = 0, rounds = 0, points = 9;
    bool pareto = false, partition = false, force = false, json = false;
};

/// "1x:2x"; without a colon the range begins at 1x.
std::pair<double, double> parseRange(const std::string& text)
{
    const std::size_t colon = text.find(':');
    const auto from = parseFactor(colon == std::string::npos ? "1x" : text.substr(0, colon));
    const auto to =
        text.empty() ? std::optional(2.0) : parseFactor(colon == std::string::npos ? text : text.substr(colon + 1));
    if (!from || !to || *to < *from)
        throw Error("--memory-limit", "\"" + text + "\" is no range", "write a range such as 0.5x:2x");
    return {*from, *to};
}

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

SearchOptions searchOptions(const SearchCommandOptions& given)
{
    SearchOptions options;
    if (given.objective != "makespan" && given.objective != "span")
        throw Error("--objective", "\"" + given.objective + "\" is none that is known", "use one of makespan, span");
    checkProgressStyle(given.progress);
    options.objective = given.objective == "span" ? SearchObjective::Span : SearchObjective::Makespan;
    options.timeLimit = std::chrono::milliseconds(parseDuration(given.timeLimit, "--time-limit") / 1'000'000);
    if (options.timeLimit.count() < 1)
        throw Error("--time-limit", given.timeLimit, "search for at least 1ms");
    if (given.threads < 0 || given.threads > 256)
        throw Error("--threads", fmt::format("{} threads", given.threads), "use 0 to 256");
    if (given.rounds < 0 || given.points < 2 || given.points > 200)
        throw Error(given.rounds < 0 ? "--rounds" : "--points", "is out of range",
                    "use 0 or more rounds, 2 to 200 points");
    options.threads =
        given.threads > 0 ? given.threads : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    options.rounds = given.rounds;
    options.seed = given.seed;
    options.by = given.noise.by();
    for (const std::string& text : given.locked) {
        const auto block = parseBlock(text);
        if (!block)
            throw Error("--lock", "\"" + text + "\" is no block", "write blocks such as F0.3");
        options.locked.push_back(*block);
    }
    return options;
}

/// The costs for which something is proved: those of the operations that the search could choose.
std::string costsText(const Design& design, const SearchCommandOptions& given)
{
    if (given.backward != "given")
        return originsText(design, {Op::F, Op::B, Op::I, Op::W});
    const std::vector<std::vector<Block>>& order = design.schedule.order;
    const auto has = [&](Op op) {
        return std::any_of(order.begin(), order.end(), [op](const std::vector<Block>& lane) {
            return std::any_of(lane.begin(), lane.end(), [op](const Block& block) { return block.op == op; });
        });
    };
    return !has(Op::B)   ? originsText(design, {Op::F, Op::I, Op::W})
           : !has(Op::I) ? originsText(design, {Op::F, Op::B})
                         : originsText(design, {Op::F, Op::B, Op::I, Op::W});
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

std::string verdict(const SearchResult& result, const std::string& costs)
{
    if (result.proved)
        return fmt::format("proved for these costs: {}: no order is shorter", costs);
    return fmt::format("at most {} above the best possible for these costs: {}", percent(result.gap), costs);
}

void print(const SearchResult& result, const Design& design, const SearchCommandOptions& given)
{
    printText("{:<9} {}\n", given.objective, formatDuration(result.value));
    if (const auto noise = given.noise.noise(given.seed, design.costs))
        printText("{}: median {}, 95th percentile {}\n", describe(*noise), formatDuration(result.noisy.median),
                  formatDuration(result.noisy.p95));
    printText("bound     {}: {}\n", formatDuration(result.bound.value), result.bound.why);
    printText("gap       {}\n", verdict(result, costsText(design, given)));
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

PartitionOptions partitionOptions(const SearchCommandOptions& given, const SearchOptions& options)
{
    PartitionOptions partition;
    partition.search = options;
    partition.moveLayers = given.partition;
    if (!given.placement.empty())
        partition.shapes.clear();
    for (const std::string& text : given.placement) {
        const auto known = {PlacementShape::Linear, PlacementShape::Looped, PlacementShape::V, PlacementShape::Wave,
                            PlacementShape::Free};
        const auto shape =
            std::find_if(known.begin(), known.end(), [&](PlacementShape s) { return nameOf(s) == text; });
        if (shape == known.end())
            throw Error("--placement", "\"" + text + "\" is none that is known", "use linear, looped, v, wave or free");
        partition.shapes.push_back(*shape);
    }
    return partition;
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
            object["trials"].push_back({{"placement", nameOf(trial.shape)},
                                        {"layers_per_stage", trial.layersPerStage},
                                        {"device_of_stage", trial.deviceOfStage},
                                        {"best_ns", trial.value},
                                        {"bound_ns", trial.bound}});
        printJson(object);
    } else {
        TextTable table({"placement", given.objective, "bound", "layers per stage", "devices"});
        for (const PartitionTrial& trial : found.trials)
            table.addRow({std::string(nameOf(trial.shape)), formatDuration(trial.value), formatDuration(trial.bound),
                          joined(trial.layersPerStage, " "), joined(trial.deviceOfStage, " ")});
        table.print();
        print(found.result, found.design, given);
    }
    return found.result.cancelled ? exitFinding : exitSuccess;
}

std::string_view styleName(BackwardStyle style)
{
    return style == BackwardStyle::Split ? "split" : "full";
}

std::optional<VariantOptions> variantOptions(const SearchCommandOptions& given)
{
    VariantOptions variants;
    const std::pair<std::string_view, BackwardChoice> styles[] = {{"given", BackwardChoice::Given},
                                                                  {"split", BackwardChoice::Split},
                                                                  {"full", BackwardChoice::Full},
                                                                  {"either", BackwardChoice::Either}};
    const auto style =
        std::find_if(std::begin(styles), std::end(styles), [&](const auto& s) { return s.first == given.backward; });
    if (style == std::end(styles))
        throw Error("--backward", "\"" + given.backward + "\" is none that is known",
                    "use given, split, full or either");
    variants.backward = style->second;
    if (given.recompute == "auto")
        variants.chooseRecompute = true;
    else if (!given.recompute.empty())
        variants.recompute = parseRecompute(given.recompute, "--recompute");
    if (variants.backward == BackwardChoice::Given && given.recompute.empty())
        return std::nullopt;
    if (given.pareto || given.partition || !given.placement.empty())
        throw Error(given.recompute.empty() ? "--backward" : "--recompute",
                    "is not searched together with partitions, placements or a range of limits",
                    "search the partition first, then this with its result");
    return variants;
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
        object["trials"] = Json::array();
        for (const VariantTrial& trial : found.trials)
            object["trials"].push_back({{"backward", styleName(trial.backward)},
                                        {"recomputed", recomputedStages(trial.recompute)},
                                        {"recompute", textOf(trial.recompute)},
                                        {"best_ns", trial.value ? Json(*trial.value) : Json()}});
        printJson(object);
    } else {
        TextTable table({"backward", "recomputed stages", given.objective});
        for (const VariantTrial& trial : found.trials)
            table.addRow({std::string(styleName(trial.backward)),
                          trial.recompute.empty() ? "none" : textOf(trial.recompute),
                          trial.value ? formatDuration(*trial.value) : "does not fit"});
        table.print();
        print(found.result, found.design, given);
    }
    return found.result.cancelled ? exitFinding : exitSuccess;
}

int searchDesign(const SearchCommandOptions& given)
{
    SearchOptions options = searchOptions(given);
    const std::optional<VariantOptions> variants = variantOptions(given);
    if (given.pareto && (given.partition || !given.placement.empty()))
        throw Error("--pareto", "searches orders of one partition and placement",
                    "search the partition first, then the front of its result");
    if (!given.pareto) {
        options.limit = parseMemoryLimit(given.limit);
        checkOutput(given.output, given.force);
    }
    LocatedDesign located = readLocatedDesign(given.file);
    if (given.costs.given())
        located.design = withCostsFrom(located.design, given.costs.read());
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

void addSearchCommand(CommandLine& line, int& exitCode)
{
    Command command =
        line.add("search", "Finds a better order under a memory limit, and how far from the best it can be");
    const auto options = std::make_shared<SearchCommandOptions>(command);
    command.onCall([options, &exitCode] { exitCode = searchDesign(*options); });
}

} // namespace pipewright::app
