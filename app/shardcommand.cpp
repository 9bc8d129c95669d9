// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/command.h"
#include "app/gpus.h"
#include "app/shardingchoice.h"
#include "app/shardrun.h"
#include "app/table.h"
#include "app/terminal.h"

#include "core/base/formattedtext.h"
#include "core/base/units.h"
#include "core/design/stageplans.h"
#include "core/files/designfile.h"
#include "core/files/tensorgraphfile.h"
#include "core/sharding/shardingplan.h"
#include "core/sharding/shards.h"
#include "executor/cuda/cudabackend.h"
#include "executor/host/hostbackend.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <optional>

namespace pipewright::app {

namespace {

using namespace pipewright::sharding;

struct ShardCommandOptions {
    explicit ShardCommandOptions(CLI::App& command)
    {
        command.add_option("file", file, "a tensor graph or a model with a cluster, or a design")
            ->required()
            ->type_name("FILE");
        command
            .add_option("--ratios", ratios,
                        "shares of the devices, such as 2:1 or 0.6,0.4; those of further segments after a slash; "
                        "found when left out")
            ->type_name("SHARES");
        command.add_option("--stage", stage, "of a design: this stage, on the group of devices that holds it")
            ->type_name("N");
        command
            .add_option("--sharding,--plan", sharding,
                        "of this kind: " + strategyNames() + " (what the design states, else hap)")
            ->type_name("NAME");
        command
            .add_option("-o,--output", output,
                        "of a design: write it with such a plan for the stage, or for every stage of a group, and do "
                        "nothing else")
            ->type_name("FILE");
        command.add_option("--time-limit", timeLimit, "stop searching after so long and state the gap (30s)")
            ->type_name("T");
        command.add_option("--max-expansions", maxExpansions, "of one search (1000000)")->type_name("N");
        command.add_option("--rules", rules, "all, or published: without splits of sums and heads, and factors")
            ->type_name("SET");
        command.add_option("--alternatives", alternatives, "number of runners-up (5)")->type_name("N");
        command.add_flag(
            "--run", run,
            "also run it here, compare the loss and the gradients with a single device, and measure it beside "
            "the common strategies");
        command
            .add_option("--backend", backend,
                        "with --run or --calibrate: host (one thread per device, in a run at its emulated rate), or "
                        "cuda (a GPU or a slice of one for each)")
            ->type_name("NAME");
        command.add_option("--link", link, "with --backend cuda: auto, copy or nccl (auto)")->type_name("WAY");
        command.add_option("--cuda-libraries", libraries, "folders of NVIDIA's libraries")->type_name("FOLDER");
        command.add_option("--steps", steps, "with --run: timed steps of every strategy (3)")->type_name("N");
        command
            .add_option("--calibrate", calibrate,
                        "measure the backend's devices and collectives as the cluster's devices, or, of a design whose "
                        "devices are groups, as their members; write the file with them, and do nothing else")
            ->type_name("FILE");
        command.add_flag("--force", force, "with --calibrate or --output: replace the file");
        command.add_flag("--json", json, "print one JSON object");
    }
    std::string file, ratios, timeLimit = "30s", rules = "all", calibrate, backend = "host", link = "auto", sharding,
                              output;
    std::vector<std::string> libraries;
    std::int64_t maxExpansions = 1'000'000;
    int alternatives = 5, steps = 3, stage = -1;
    bool json = false, run = false, force = false;
};

std::vector<double> parseShares(std::string_view text)
{
    std::vector<double> shares;
    for (std::string part; !text.empty();) {
        const std::size_t end = std::min(text.find_first_of(":,"), text.size());
        part = text.substr(0, end);
        char* rest = nullptr;
        const double share = std::strtod(part.c_str(), &rest);
        if (part.empty() || *rest != 0 || !std::isfinite(share) || share < 0)
            throw Error("--ratios", fmt::format("\"{}\" is no share", part), "write shares such as 2:1, or 0.6,0.4");
        shares.push_back(share);
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
    if (!(sum > 0))
        throw Error("--ratios", "the shares add up to nothing", "write shares such as 2:1, or 0.6,0.4");
    for (double& share : shares)
        share /= sum;
    return shares;
}

/// One list per segment; a single list applies to all.
Ratios parseRatios(std::string_view text, int segments)
{
    Ratios ratios;
    while (!text.empty()) {
        const std::size_t slash = std::min(text.find('/'), text.size());
        ratios.push_back(parseShares(text.substr(0, slash)));
        text.remove_prefix(std::min(slash + 1, text.size()));
    }
    if (ratios.size() == 1)
        ratios.resize(segments, ratios.front());
    return ratios;
}

PlanOptions planOptions(const ShardCommandOptions& given, const TensorGraph& graph)
{
    PlanOptions options;
    if (given.rules != "all" && given.rules != "published")
        throw Error("--rules", fmt::format("\"{}\" is unknown", given.rules), "use one of all, published");
    options.rules = given.rules == "all" ? RuleSet::All : RuleSet::Published;
    if (given.maxExpansions < 1)
        throw Error("--max-expansions", fmt::format("{} expansions", given.maxExpansions), "use 1 or more");
    if (given.alternatives < 0 || given.alternatives > 100)
        throw Error("--alternatives", fmt::format("{} runners-up", given.alternatives), "use 0 to 100");
    options.maxExpansions = given.maxExpansions;
    const Nanoseconds limit = parseDuration(given.timeLimit, "--time-limit");
    if (limit < 1'000'000)
        throw Error("--time-limit", given.timeLimit, "search for at least 1ms");
    options.deadline.time = std::chrono::steady_clock::now() + std::chrono::nanoseconds(limit);
    if (!given.ratios.empty())
        options.ratios = parseRatios(given.ratios, graph.segments());
    if (!given.sharding.empty())
        options.strategy = parseStrategy(given.sharding);
    return options;
}

/// Faults of what an option states have its name.
Diagnostics byOption(const Error& error)
{
    Diagnostics found = error.diagnostics();
    for (Diagnostic& diagnostic : found)
        if (diagnostic.where == "ratios" || diagnostic.where == "plan")
            diagnostic.where = "--" + diagnostic.where;
    return found;
}

/// Faults of the file are bad input; if nothing fits, that is a finding. `stated`: the plan that a design states for
/// its stage.
ShardingPlan planOrFind(const GraphFile& file, const Machine& machine, const PlanOptions& options,
                        const StatedPlan& stated)
{
    try {
        return stated == StatedPlan{} ? planSharding(file.graph, machine, options)
                                      : planOf(stated, file.graph, machine, options);
    } catch (const Error& error) {
        Diagnostics found = byOption(error);
        const bool finding = found.front().where.starts_with("cluster.");
        found = file.locate(std::move(found));
        if (finding)
            throw Finding(std::move(found));
        throw Error(std::move(found));
    }
}

Machine locatedMachine(const GraphFile& file)
{
    try {
        return machineOf(file.cluster);
    } catch (const Error& error) {
        throw Error(file.locate(error.diagnostics()));
    }
}

Json toJson(const ShardingProgram& program, const TensorGraph& graph, const Machine& machine, const Ratios& ratios)
{
    const Theory theory(graph, machine, ratios);
    Json list = Json::array();
    for (const sharding::ShardingInstruction& instruction : program.instructions) {
        const Relation after = instruction.after.relation;
        Json entry{{"action", actionText(instruction, graph)}};
        if (instruction.computes())
            entry["rule"] = sharingRules()[instruction.rule].text;
        entry["before"] = propertyText(instruction.before, graph);
        entry["after"] = propertyText({instruction.after}, graph);
        if (after.kind == RelationKind::Gather)
            entry["lengths"] = shardLengths(theory, instruction.tensor, after);
        entry["cost_ns"] = toNanoseconds(seconds(instruction.charges, machine, ratios));
        list.push_back(std::move(entry));
    }
    return list;
}

Json toJson(const std::vector<Alternative>& alternatives, const GraphFile& file, const Machine& machine)
{
    Json list = Json::array();
    for (const Alternative& alternative : alternatives)
        list.push_back({{"name", alternative.name},
                        {"cost_ns", toNanoseconds(alternative.cost)},
                        {"fits", alternative.fits},
                        {"ratios", alternative.ratios},
                        {"program", toJson(alternative.program, file.graph, machine, alternative.ratios)}});
    return list;
}

Json toJson(const GraphFile& file, const Machine& machine, const ShardingPlan& plan,
            const std::vector<Alternative>& runners, const std::vector<Alternative>& common)
{
    const CostParts parts = costParts(plan.program, machine, plan.ratios);
    Json object{{"graph", file.graph.name}, {"devices", machine.devices()}, {"cost_ns", toNanoseconds(plan.cost)}};
    object["compute_ns"] = toNanoseconds(parts.compute);
    object["communication_ns"] = toNanoseconds(parts.communication);
    object["forward_ns"] = toNanoseconds(parts.forward);
    object["input_grad_ns"] = toNanoseconds(parts.inputGrad);
    object["weight_grad_ns"] = toNanoseconds(parts.weightGrad);
    object["bound_ns"] = toNanoseconds(plan.bound);
    object["gap"] = plan.gap;
    object["proved"] = plan.proved;
    object["expansions"] = plan.expansions;
    object["ratios"] = plan.ratios;
    object["memory_bytes"] = Json::array();
    for (const double bytes : plan.memory)
        object["memory_bytes"].push_back(static_cast<Bytes>(std::ceil(bytes - 1e-6)));
    object["rounds"] = Json::array();
    for (const PlanRound& round : plan.rounds)
        object["rounds"].push_back({{"start", round.start},
                                    {"searched_ns", toNanoseconds(round.searched)},
                                    {"improved_ns", toNanoseconds(round.improved)}});
    object["program"] = toJson(plan.program, file.graph, machine, plan.ratios);
    object["alternatives"] = toJson(runners, file, machine);
    object["common"] = toJson(common, file, machine);
    return object;
}

std::string sharesText(const Ratios& ratios)
{
    std::string text;
    for (const auto& shares : ratios) {
        std::vector<std::string> parts;
        for (const double share : shares)
            parts.push_back(fmt::format("{:.4f}", share));
        text += fmt::format("{}{}", text.empty() ? "" : " / ", joined(parts, ", "));
    }
    return text;
}

void print(const GraphFile& file, const Machine& machine, const ShardingPlan& plan,
           const std::vector<Alternative>& runners, const std::vector<Alternative>& common)
{
    const CostParts parts = costParts(plan.program, machine, plan.ratios);
    const auto time = [](double seconds) { return formatDuration(toNanoseconds(seconds)); };
    printText("step      {} ({} computing, {} communicating)\n", time(plan.cost), time(parts.compute),
              time(parts.communication));
    printText("ratios    {}\n", sharesText(plan.ratios));
    printText("memory   ");
    for (const double bytes : plan.memory)
        printText(" {}", formatSize(static_cast<Bytes>(std::ceil(bytes - 1e-6))));
    printText("\nprogram   {}, {} expansions\n\n",
              plan.expansions == 0 ? std::string("as the design states it")
              : plan.proved        ? std::string("proved for these rates and links: none is cheaper at these ratios")
                                   : fmt::format("at most {} above the best at these ratios", percent(plan.gap)),
              plan.expansions);
    TextTable table({"instruction", "gives", "cost"});
    for (const sharding::ShardingInstruction& instruction : plan.program.instructions)
        table.addRow({actionText(instruction, file.graph), toString(instruction.after.relation),
                      time(seconds(instruction.charges, machine, plan.ratios))});
    table.print();
    printText("\n");
    TextTable others({"instead", "step", "longer", "fits"});
    for (const auto* list : {&runners, &common})
        for (const Alternative& alternative : *list)
            others.addRow({alternative.name, time(alternative.cost), signedPercent(alternative.cost / plan.cost - 1),
                           alternative.fits ? "yes" : "no"});
    others.print();
}

/// Null: the host without a backend. Throws Error with the reason when there is no usable GPU.
std::unique_ptr<Backend> backendFor(const ShardCommandOptions& given, const GraphFile& file)
{
    if (given.backend != "host" && given.backend != "cuda")
        throw Error("--backend", fmt::format("\"{}\" cannot run sharded stages", given.backend),
                    "use one of host, cuda");
    cudaTransportNamed(given.link);
    if (given.backend == "host")
        return nullptr;
    if (!given.run && given.calibrate.empty())
        throw Error("--backend", "nothing runs without --run or --calibrate", "add one of them");
    GpuChoice choice;
    choice.shares = file.cluster.gpus;
    choice.link = given.link;
    choice.libraries = given.libraries;
    const int devices = static_cast<int>(file.cluster.devices.size());
    Diagnostics doubts;
    const auto create = cudaBackend(choice, devices, doubts);
    printDiagnostics(doubts);
    return create(devices);
}

/// Writes the design with the requested plan.
int statePlan(const ShardCommandOptions& given)
{
    if (given.run || !given.calibrate.empty())
        throw Error("--output", "a design is written, and nothing runs", "leave --run and --calibrate out");
    const Design design = readDesign(given.file);
    const Strategy strategy = given.sharding.empty() ? Strategy::Hap : parseStrategy(given.sharding);
    const std::vector<double> shares = given.ratios.empty() ? std::vector<double>{} : parseShares(given.ratios);
    const std::optional<int> stage = given.stage >= 0 ? std::optional(given.stage) : std::nullopt;
    Design changed;
    try {
        changed = withStrategy(design, strategy, stage, shares);
    } catch (const Error& error) {
        throw Error(byOption(error));
    }
    writeDesign(changed, given.output, given.force);
    Json list = Json::array();
    for (int s = 0; s < changed.schedule.stages(); ++s) {
        const StatedPlan plan = planOfStage(changed, s);
        if (plan == StatedPlan{})
            continue;
        list.push_back({{"stage", s}, {"strategy", nameOf(plan.strategy)}, {"ratios", plan.ratios}});
        if (!given.json)
            printText("stage {}: {}, shares {}\n", s, nameOf(plan.strategy), sharesText({plan.ratios}));
    }
    if (given.json)
        printJson({{"design", given.output}, {"plans", std::move(list)}});
    else
        printText("{}: written\n", given.output);
    return exitSuccess;
}

int shard(const ShardCommandOptions& given)
{
    if (!given.output.empty())
        return statePlan(given);
    if (given.steps < 1 || given.steps > 1000)
        throw Error("--steps", fmt::format("{} steps", given.steps), "use 1 to 1000");
    const GraphFile file = given.stage >= 0 ? readStageFile(given.file, given.stage) : readGraphFile(given.file);
    const std::unique_ptr<Backend> backend = backendFor(given, file);
    const auto isGroup = [](const DeviceSpec& device) { return device.group != nullptr; };
    if (!given.calibrate.empty() && std::any_of(file.cluster.devices.begin(), file.cluster.devices.end(), isGroup)) {
        if (backend)
            throw Error("--backend", "the groups of a whole design are measured on the host",
                        "add --stage N for one group, or leave it out");
        calibrateGroups(file, readDesign(given.file), given.calibrate, given.force, given.json);
        return exitSuccess;
    }
    if (!given.calibrate.empty()) {
        const auto host = backend ? nullptr : createHostBackend(static_cast<int>(file.cluster.devices.size()));
        calibrateShares(file, backend ? *backend : *host, given.calibrate, given.force, given.json);
        return exitSuccess;
    }
    const Machine machine = locatedMachine(file);
    const PlanOptions options = planOptions(given, file.graph);
    const bool asked = given.stage < 0 || !given.sharding.empty() || !given.ratios.empty();
    const StatedPlan stated = asked ? StatedPlan{} : planOfStage(readDesign(given.file), given.stage);
    const ShardingPlan plan = planOrFind(file, machine, options, stated);
    const std::vector<Alternative> runners = runnersUp(file.graph, machine, plan, options, given.alternatives);
    const std::vector<Alternative> common = commonStrategies(file.graph, machine, options);
    std::optional<ShardRun> run;
    if (given.run)
        run = runPlan(file, machine, plan, common, given.steps, backend.get());
    if (given.json) {
        Json object = toJson(file, machine, plan, runners, common);
        if (run)
            object["run"] = toJson(*run);
        printJson(object);
    } else {
        print(file, machine, plan, runners, common);
        if (run)
            print(*run);
    }
    if (run && !(run->gradientError < 1e-3))
        throw Finding("--run",
                      fmt::format("the gradients are off by {:.2g} from a single device's", run->gradientError),
                      "this is a mistake in a rule or in the maths of an operation; please report it");
    return exitSuccess;
}

} // namespace

void addShardCommand(CLI::App& program, int& exitCode)
{
    CLI::App& command = *program.add_subcommand(
        "shard", "Shards a model over devices of different speed: program, sharding ratios, cost and runners-up");
    const auto options = std::make_shared<ShardCommandOptions>(command);
    command.callback([options, &exitCode] { exitCode = shard(*options); });
}

} // namespace pipewright::app
