// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/command.h"
#include "app/table.h"

#include "core/base/outputfile.h"
#include "core/base/units.h"
#include "core/formats/designfile.h"
#include "core/search/pareto.h"
#include "core/search/partition.h"
#include "core/search/variants.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <thread>
#include <unistd.h>

namespace pipewright::app {

namespace {

std::atomic<bool> searchCancelled{false};

extern "C" void cancelSearch(int)
{
    searchCancelled.store(true);
}

struct SearchCommandOptions {
    explicit SearchCommandOptions(CLI::App& command)
    {
        command.add_option("file", file, "the design file")->required()->type_name("FILE");
        command
            .add_option("--memory-limit", limit,
                        "bytes of a device, or FACTORx: x = P microbatches of its activations (what the devices have); "
                        "with --pareto a range FROMx:TOx")
            ->type_name("SIZE|FACTORx");
        command.add_option("--time-limit", timeLimit, "give up improving after so long (10s)")->type_name("T");
        command
            .add_option("--objective", objective,
                        "makespan, or span: the longest time between a device's first block and its last")
            ->type_name("OBJECTIVE");
        command.add_option("--seed", seed, "of what is tried at random (1)")->type_name("N");
        command.add_option("--threads", threads, "0: as many as the machine has")->type_name("N");
        command
            .add_option("--rounds", rounds,
                        "end after so many rounds of every thread; with one thread the result follows from the seed")
            ->type_name("N");
        command.add_option("--lock", locked, "blocks that keep their order, such as F0.3")
            ->delimiter(',')
            ->type_name("BLOCK,…");
        command.add_flag("--pareto", pareto, "one design per memory limit over a range; the output is a folder");
        command.add_flag("--partition", partition, "find the layers of every stage too");
        command
            .add_option(
                "--placement", placement,
                "find the stages' devices too: linear, looped, v, wave, free (any of these, and stages change places)")
            ->delimiter(',')
            ->type_name("SHAPE,…");
        command
            .add_option("--backward", backward,
                        "given: as the design has them; split: I and W apart; full: one block; either: what is better")
            ->type_name("STYLE");
        command
            .add_option("--recompute", recompute,
                        "stages that keep only their input and compute the rest again, such as 0,1; or auto: as many "
                        "of the first as pay (with a limit in bytes)")
            ->delimiter(',')
            ->type_name("STAGE,…");
        command.add_option("--points", points, "with --pareto: limits in the range (9)")->type_name("N");
        command.add_option("-o,--output", output, "the design file to write")->required()->type_name("FILE");
        command.add_flag("--force", force, "replace what exists");
        command.add_option("--progress", progress, "auto, bar, json (lines on standard error) or none")
            ->type_name("STYLE");
        command.add_flag("--json", json, "print one JSON object");
    }
    std::string file, output, limit, timeLimit = "10s", objective = "makespan", progress = "auto";
    std::string backward = "given";
    std::vector<std::string> locked, placement, recompute;
    std::uint64_t seed = 1;
    int threads = 0, rounds = 0, points = 9;
    bool pareto = false, partition = false, force = false, json = false;
};

std::optional<double> parseFactor(const std::string& text)
{
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (end == text.c_str() || std::string_view(end) != "x")
        return std::nullopt;
    if (!std::isfinite(value) || value <= 0 || value > 1e6)
        throw Error("--memory-limit", "\"" + text + "\" is no memory limit", "write a positive factor, such as 1.5x");
    return value;
}

MemoryLimit parseLimit(const std::string& text)
{
    MemoryLimit limit;
    if (text.empty())
        return limit;
    limit.factor = parseFactor(text);
    if (!limit.factor)
        limit.bytes = parseSize(text, "--memory-limit");
    return limit;
}

/// "1x:2x"; without a colon from 1x to that.
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

class SearchProgressPrinter {
public:
    SearchProgressPrinter(const std::string& choice, double seconds) : m_seconds(seconds)
    {
        m_json = choice == "json";
        m_bar = choice == "bar" || (choice == "auto" && isatty(STDERR_FILENO) == 1);
    }
    ~SearchProgressPrinter()
    {
        if (m_drawn)
            fmt::print(stderr, "\n");
    }
    void show(const SearchProgress& now)
    {
        if (now.seconds >= m_shown && now.seconds < m_shown + 0.1)
            return;
        m_shown = now.seconds;
        const double share = m_seconds > 0 ? std::min(1.0, now.seconds / m_seconds) : 0;
        if (m_json) {
            Json object{{"progress", share}, {"elapsed_s", now.seconds}};
            object["best_ns"] = now.best > 0 ? Json(now.best) : Json();
            object["bound_ns"] = now.bound;
            fmt::print(stderr, "{}\n", object.dump());
        } else if (m_bar) {
            constexpr int width = 30;
            const int full = static_cast<int>(share * width);
            m_drawn = true;
            fmt::print(stderr, "\r[{:=<{}}{:<{}}] {:.1f} s  best {}  bound {}\033[K", "", full, "", width - full,
                       now.seconds, now.best > 0 ? formatDuration(now.best) : "none yet", formatDuration(now.bound));
        }
    }

private:
    double m_seconds, m_shown = -1;
    bool m_json = false, m_bar = false, m_drawn = false;
};

SearchOptions searchOptions(const SearchCommandOptions& given)
{
    SearchOptions options;
    if (given.objective != "makespan" && given.objective != "span")
        throw Error("--objective", "\"" + given.objective + "\" is none that is known", "use one of makespan, span");
    if (given.progress != "auto" && given.progress != "bar" && given.progress != "json" && given.progress != "none")
        throw Error("--progress", "\"" + given.progress + "\" is none that is known",
                    "use one of auto, bar, json, none");
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
    for (const std::string& text : given.locked) {
        const auto block = parseBlock(text);
        if (!block)
            throw Error("--lock", "\"" + text + "\" is no block", "write blocks such as F0.3");
        options.locked.push_back(*block);
    }
    return options;
}

Json toJson(const SearchResult& result, const SearchCommandOptions& given)
{
    Json object{{"design", given.output},
                {"objective", given.objective},
                {"best_ns", result.value},
                {"bound_ns", result.bound.value}};
    object["bound"] = {{"name", result.bound.name}, {"why", result.bound.why}};
    object["gap"] = result.gap;
    object["proved"] = result.proved;
    object["cancelled"] = result.cancelled;
    object["history"] = Json::array();
    for (const SearchPoint& point : result.history)
        object["history"].push_back(
            {{"elapsed_s", point.seconds}, {"value_ns", point.value}, {"source", point.source}});
    return object;
}

std::string verdict(const SearchResult& result)
{
    if (result.proved)
        return "proved: no order is shorter";
    return fmt::format("at most {} above the best possible", percent(result.gap));
}

void print(const SearchResult& result, const SearchCommandOptions& given)
{
    fmt::print("{:<9} {}\n", given.objective, formatDuration(result.value));
    fmt::print("bound     {}: {}\n", formatDuration(result.bound.value), result.bound.why);
    fmt::print("gap       {}\n", verdict(result));
    for (const SearchPoint& point : result.history)
        fmt::print("  {:>8.3f} s  {:>10}  {}\n", point.seconds, formatDuration(point.value), point.source);
    fmt::print("{}\n", given.output);
}

/// The file's name and line in front of what is wrong.
template<typename Work>
auto locating(const LocatedDesign& located, Work work)
{
    try {
        return work();
    } catch (const Error& error) {
        throw Finding(located.locate(error.diagnostics()));
    }
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
    const auto [from, to] = parseRange(given.limit);
    const std::filesystem::path folder(given.output);
    std::error_code failure;
    std::filesystem::create_directories(folder, failure);
    if (!std::filesystem::is_directory(folder))
        throw Error(given.output, "is no folder and cannot be made one", "name a folder for the designs");
    Json object{{"folder", given.output}, {"objective", given.objective}, {"points", Json::array()}};
    Table table({"limit", given.objective, "bound", "gap", "proved", "design"});
    for (const ParetoPoint& point :
         locating(located, [&] { return searchFrontOf(located.design, options, from, to, given.points); })) {
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
    if (given.json)
        printJson(object);
    else
        table.print();
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
    PartitionResult found = locating(located, [&] { return searchPartition(located.design, options); });
    writeDesign(found.design, given.output, given.force);
    if (given.json) {
        Json object = toJson(found.result, given);
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
        Table table({"placement", given.objective, "bound", "layers per stage", "devices"});
        for (const PartitionTrial& trial : found.trials)
            table.addRow({std::string(nameOf(trial.shape)), formatDuration(trial.value), formatDuration(trial.bound),
                          fmt::format("{}", fmt::join(trial.layersPerStage, " ")),
                          fmt::format("{}", fmt::join(trial.deviceOfStage, " "))});
        table.print();
        print(found.result, given);
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
    const auto style = std::find_if(std::begin(styles), std::end(styles), [&](const auto& s) { return s.first == given.backward; });
    if (style == std::end(styles))
        throw Error("--backward", "\"" + given.backward + "\" is none that is known", "use given, split, full or either");
    variants.backward = style->second;
    for (const std::string& text : given.recompute) {
        char* end = nullptr;
        const long stage = std::strtol(text.c_str(), &end, 10);
        if (text == "auto" && given.recompute.size() == 1)
            variants.chooseRecompute = true;
        else if (end == text.c_str() || *end != 0 || stage < 0 || stage > maxMicrobatches)
            throw Error("--recompute", "\"" + text + "\" is no stage", "write stages such as 0,1, or auto alone");
        else
            variants.recompute.push_back(static_cast<int>(stage));
    }
    if (variants.backward == BackwardChoice::Given && given.recompute.empty())
        return std::nullopt;
    if (given.pareto || given.partition || !given.placement.empty())
        throw Error(given.recompute.empty() ? "--backward" : "--recompute", "is not searched together with partitions, placements or a range of limits",
                    "search the partition first, then this with its result");
    return variants;
}

int searchVariantsOf(const SearchCommandOptions& given, const LocatedDesign& located, VariantOptions variants, const SearchOptions& options)
{
    variants.search = options;
    const VariantResult found = locating(located, [&] { return searchVariants(located.design, variants); });
    writeDesign(found.design, given.output, given.force);
    if (!found.recompute.empty())
        printDiagnostics({Diagnostic{Severity::Warning, given.output,
                                     "its costs count stages that recompute, which the executor cannot do yet",
                                     "run it with --synthetic, which takes the design's times and bytes"}});
    if (given.json) {
        Json object = toJson(found.result, given);
        object["backward"] = styleName(found.backward);
        object["recomputed"] = found.recompute;
        object["trials"] = Json::array();
        for (const VariantTrial& trial : found.trials)
            object["trials"].push_back({{"backward", styleName(trial.backward)},
                                        {"recomputed", trial.recompute},
                                        {"best_ns", trial.value ? Json(*trial.value) : Json()}});
        printJson(object);
    } else {
        Table table({"backward", "recomputed stages", given.objective});
        for (const VariantTrial& trial : found.trials)
            table.addRow({std::string(styleName(trial.backward)), trial.recompute.empty() ? "none" : fmt::format("{}", fmt::join(trial.recompute, " ")),
                          trial.value ? formatDuration(*trial.value) : "does not fit"});
        table.print();
        print(found.result, given);
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
        options.limit = parseLimit(given.limit);
        checkOutput(given.output, given.force);
    }
    const LocatedDesign located = readLocatedDesign(given.file);
    std::stop_source stop;
    options.stop = stop.get_token();
    struct sigaction action {};
    action.sa_handler = cancelSearch;
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    sigaction(SIGINT, &action, nullptr);
    sigaction(SIGTERM, &action, nullptr);
    SearchProgressPrinter progress(given.progress, std::chrono::duration<double>(options.timeLimit).count());
    options.progress = [&](const SearchProgress& now) {
        if (searchCancelled.load())
            stop.request_stop();
        progress.show(now);
    };
    if (given.pareto) {
        searchFront(given, located, options);
        return stop.stop_requested() ? exitFinding : exitSuccess;
    }
    if (variants)
        return searchVariantsOf(given, located, *variants, options);
    if (given.partition || !given.placement.empty())
        return searchPartitionOf(given, located, partitionOptions(given, options));
    const SearchResult result = locating(located, [&] { return search(located.design, options); });
    writeDesign(found(located.design, result), given.output, given.force);
    if (given.json)
        printJson(toJson(result, given));
    else
        print(result, given);
    return result.cancelled ? exitFinding : exitSuccess;
}

} // namespace

void addSearchCommand(CLI::App& app, int& exitCode)
{
    CLI::App* command =
        app.add_subcommand("search", "Finds a better order under a memory limit, and how far from the best it can be");
    const auto options = std::make_shared<SearchCommandOptions>(*command);
    command->callback([options, &exitCode] { exitCode = searchDesign(*options); });
}

} // namespace pipewright::app
