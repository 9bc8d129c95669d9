// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/searchoptions.h"

#include "app/memorylimit.h"
#include "app/progress.h"

#include "core/base/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <thread>

namespace pipewright::app {

SearchCommandOptions::SearchCommandOptions(CLI::App& command)
    : noise(command, "what decides between the schedules that the search found best one after another")
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
        .add_option(
            "--recompute", recompute,
            "which activations are made again for the backward, as `new --help` says; or auto: the kind, and as "
            "many of the first stages as pay (with a limit in bytes)")
        ->type_name("auto|none|selective|full|every:N|block|block-selective, or KIND:STAGES");
    command
        .add_option(
            "--offload", offload,
            "auto: let stages offload what they keep where that costs no time or makes the order fit; none: let "
            "none of the design's stages")
        ->type_name("auto|none");
    command.add_option("--points", points, "with --pareto: limits in the range (9)")->type_name("N");
    costs.addTo(command);
    command.add_option("-o,--output", output, "the design file to write")->required()->type_name("FILE");
    command.add_flag("--force", force, "replace what exists");
    command.add_option("--progress", progress, "auto, bar, json (lines on standard error) or none")->type_name("STYLE");
    command.add_flag("--json", json, "print one JSON object");
}

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

std::optional<VariantOptions> variantOptions(const SearchCommandOptions& given, const SearchOptions& options)
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
    const bool cuts = given.partition || !given.placement.empty();
    if (given.pareto)
        throw Error(given.recompute.empty() ? "--backward" : "--recompute",
                    "is not searched together with a range of limits",
                    "search this first, then the front of its result");
    if (cuts && !given.recompute.empty())
        throw Error("--recompute", "is not searched together with partitions and placements",
                    "search the partition first (with --backward, where it is to be chosen too), then this with its "
                    "result");
    if (cuts)
        variants.partition = partitionOptions(given, options);
    return variants;
}

} // namespace pipewright::app
