// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/inlinedesign.h"

#include "app/command.h"
#include "app/memorylimit.h"

#include "core/base/diagnostic.h"
#include "core/base/formattedtext.h"
#include "core/base/inputfile.h"
#include "core/base/textcells.h"
#include "core/base/units.h"
#include "core/design/carriedover.h"
#include "core/design/redesign.h"
#include "core/exchange/megatronlayout.h"
#include "core/predict/designwithin.h"
#include "core/predict/offloadedstages.h"
#include "core/presets/modelfile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <numeric>

namespace pipewright::app {

namespace {

std::vector<std::string_view> familyNames()
{
    std::vector<std::string_view> names;
    for (const Family& family : families())
        names.push_back(family.name);
    return names;
}

/// "3,3,2", or a layout of Megatron-LM.
std::vector<int> partitionOf(const std::string& text, const std::string& where)
{
    if (text.find_first_not_of("0123456789,") != std::string::npos) {
        Diagnostics notes;
        std::vector<int> layers = layersOfLayout(text, where, notes);
        printDiagnostics(notes);
        return layers;
    }
    std::vector<int> layers;
    for (std::string_view rest = text;; rest.remove_prefix(1)) {
        layers.push_back(takeNumber(rest, 1'000'000));
        if (layers.back() < 0 || (!rest.empty() && rest.front() != ','))
            throw Error(where, "\"" + text + "\" is no list of numbers", "write one for every stage, such as 3,3,2");
        if (rest.empty())
            return layers;
    }
}

std::optional<Communication> communicationNamed(std::string_view text)
{
    for (const Communication kind : {Communication::Overlapped, Communication::OneStream, Communication::Blocking})
        if (text == nameOf(kind))
            return kind;
    return std::nullopt;
}

/// As many as share out experts.
int fewestCopies(const Parallelism& parallel)
{
    const std::int64_t members = parallel.foldedExperts ? std::int64_t{parallel.tensor} * parallel.context : 1;
    return static_cast<int>(parallel.expert
                            / std::gcd(std::int64_t{parallel.expert}, std::max(std::int64_t{1}, members)));
}

} // namespace

InlineDesign::InlineDesign(CLI::App& command, bool acceptFile)
    : m_acceptFile(acceptFile), m_command(command),
      m_options(*command.add_option_group("Design", "what a family is made for")), m_sharding(command)
{
    command
        .add_option(acceptFile ? "design" : "family", m_what,
                    fmt::format("{}one of: {}", acceptFile ? "a design file, or " : "", joined(familyNames(), ", ")))
        ->required()
        ->type_name(acceptFile ? "FILE|FAMILY" : "FAMILY");
    addSchedule();
    addTimes();
    addModel();
    addMachine();
    addTraining();
    m_options.add_option("--name", m_asked.name, "name of the design");
    m_modelOptions.addTo(m_command);
    m_costs.addTo(m_command);
    m_command
        .add_option("--scale", m_scale,
                    "the same schedule with a smaller model: keys of a model file, such as layers=8,vocabulary=32000")
        ->type_name("KEY=VALUE,…");
}

/// An option whose values are names, found by `find`.
template<class Find, class Field>
CLI::Option* InlineDesign::named(const char* option, Find find, Field& field, const char* values, const char* meaning)
{
    const auto take = [option, find, &field, values](const std::string& value) {
        const auto found = find(value);
        if (!found)
            throw Error(option, "\"" + value + "\" is not known", fmt::format("use one of {}", values));
        field = *found;
    };
    return m_options.add_option_function<std::string>(option, take, meaning)->type_name(values);
}

void InlineDesign::addSchedule()
{
    CLI::App& group = m_options;
    group.add_option("--devices", m_asked.devices, "pipeline devices")->type_name("P");
    group.add_option("--microbatches", m_asked.microbatches, "microbatches per step")->type_name("M");
    group
        .add_option("--replicas", m_asked.replicas,
                    "copies of the pipeline in the schedule, which share out P and M and sum their gradients (1)")
        ->type_name("N");
    group
        .add_option(
            "--zero", m_asked.zero.level,
            "ZeRO level: what the copies of the pipeline (--replicas, --data-parallel) and of contexts share out. "
            "1: the optimizer's state, each updates its share of the parameters and sends it to the others; 2: the "
            "gradients too; 3: the parameters too, which are gathered before their stage runs, as FSDP does (0)")
        ->check(CLI::Range(0, Zero::highestLevel))
        ->type_name("0|1|2|3");
    group
        .add_option_function<std::string>(
            "--reshard", [this](const std::string& text) { m_asked.reshard = parseReshard(text, "--reshard"); },
            "with --zero 3, the stages whose gathered parameters are freed when other stages of their device are next; "
            "those of the others stay to the end of the step (never)")
        ->type_name("always|never|STAGES");
    group
        .add_option("--prefetch", m_asked.zero.prefetch,
                    "with --zero 3, how many stages ahead of the one that runs are gathered (1)")
        ->check(CLI::Range(0, Zero::mostPrefetch))
        ->type_name("N");
    group
        .add_option_function<std::string>(
            "--reduce", [this](const std::string& text) { m_asked.zero.reduce = parseReduce(text, "--reduce"); },
            "with --zero 2 or 3, when gradients are summed over the copies and freed but for the device's share: after "
            "the last microbatch of a stage, or after each (last)")
        ->type_name("last|each");
    group.add_flag_callback(
        "--shard-optimizer", [this] { m_asked.zero.level = 1; }, "another name of --zero 1");
    group.add_option("--chunks", m_asked.chunks, "stages per device")->type_name("V");
    group.add_option("--group", m_asked.group, "interleaving: microbatches per group")->type_name("G");
    group.add_option("--pieces", m_asked.pieces, "seq1f1b: pieces of each microbatch's sequence (4)")->type_name("K");
    group
        .add_option_function<std::string>(
            "--memory-limit",
            [this](const std::string& text) {
                const MemoryLimit limit = parseMemoryLimit(text);
                m_asked.memoryLimit = limit.factor;
                m_memoryLimit = limit.bytes;
            },
            "where the family searches; x = P microbatches of activations, bytes: all of a device's memory (1x)")
        ->type_name("FACTORx|SIZE");
}

void InlineDesign::addTimes()
{
    const auto duration = [this](const char* option, std::optional<Nanoseconds>& field, const char* meaning) {
        m_options
            .add_option_function<std::string>(
                option, [option, &field](const std::string& text) { field = parseDuration(text, option); }, meaning)
            ->type_name("T");
    };
    const auto size = [this](const char* option, std::optional<Bytes>& field, const char* meaning) {
        m_options
            .add_option_function<std::string>(
                option, [option, &field](const std::string& text) { field = parseSize(text, option); }, meaning)
            ->type_name("SIZE");
    };
    duration("--forward", m_asked.forward, "time of one device's worth of layers (1ms)");
    duration("--input-grad", m_asked.inputGrad, "time of the input-gradient half (1ms)");
    duration("--weight-grad", m_asked.weightGrad, "time of the weight-gradient half (1ms)");
    duration("--transfer", m_asked.transfer, "time of one hop between devices (0)");
    named(
        "--communication", communicationNamed, m_communication, "overlapped|one-stream|blocking",
        "transfers of a device run beside each other (overlapped), one after the other as on PyTorch's one stream, or "
        "hold up its blocks; of --costs-from, or overlapped");
    m_options.add_flag("--per-chunk", m_asked.perChunk, "the three pass times are per chunk");
    m_options
        .add_option("--overlap-factor", m_asked.overlapFactor,
                    "overlapped F and B take this times their sum, not what their parts give")
        ->type_name("X");
    size("--saved", m_asked.saved, "bytes one F keeps on a device; then there is no model");
    size("--saved-for-weight-grad", m_asked.savedForWeightGrad, "of these, what stays until W (all)");
}

void InlineDesign::addModel()
{
    CLI::App& group = m_options;
    group
        .add_option(
            "--model", m_asked.model,
            "model preset, or your own: a Hugging Face config.json, a model file, a table of layers (.csv); its "
            "times hold where none are given")
        ->type_name("PRESET|FILE");
    group.add_option("--sequence", m_asked.sequence, "tokens per sequence")->type_name("N");
    group.add_option("--microbatch-size", m_asked.microbatchSize, "sequences per microbatch")->type_name("N");
    const auto takePartition = [this](const std::string& text) {
        m_asked.layersPerStage = partitionOf(text, "--layers-per-stage");
    };
    group
        .add_option_function<std::string>(
            "--layers-per-stage", takePartition,
            "partition of the model: numbers, such as 3,3,2, or a layout of Megatron-LM, such as Et|(tt|)*3,tL")
        ->type_name("N,N,…|LAYOUT");
    group.add_option("--tensor-parallel", m_parallel.tensor, "devices of a stage that share every matrix (1)")
        ->type_name("N");
    group.add_flag("--sequence-parallel", m_parallel.sequence, "they split the tokens between matrices");
    group.add_option("--context-parallel", m_parallel.context, "devices of a stage that share every sequence (1)")
        ->type_name("N");
    group.add_option("--expert-parallel", m_parallel.expert, "copies of the pipeline that share out the experts (1)")
        ->type_name("N");
    group.add_flag("--folded-experts", m_parallel.foldedExperts,
                   "experts are shared out over all devices of a stage, tensor- and context-parallel ones too, each "
                   "with whole experts (MoE parallel folding; --expert-tensor-parallel-size 1 of Megatron)");
    group.add_flag("--node-dispatch", m_parallel.nodeDispatch, nodeDispatchMeaning);
    group
        .add_option("--data-parallel", m_parallel.data,
                    "copies of the pipeline, each with M microbatches (as many as share out experts)")
        ->type_name("N");
    group
        .add_option(
            "--overlap-exchanges", m_parallel.overlap,
            "share of their communication that is hidden behind computing, where there is enough of that: 0 to 1 (0)")
        ->type_name("SHARE");
    group.add_option("--expert-spread", m_parallel.expertSpread, expertSpreadMeaning)->type_name("FACTOR");
    group
        .add_option_function<std::string>(
            "--recompute", [this](const std::string& text) { m_asked.recompute = parseRecompute(text, "--recompute"); },
            "which activations are made again for the backward. Inside it, as frameworks do: full, layer by layer; "
            "every:N, N layers at a time; selective, attention cores. By R blocks before it: block, whole stages; "
            "block-selective. For some stages: full:0-2,5 (none)")
        ->type_name("none|selective|full|every:N|block|block-selective, or KIND:STAGES");
    group
        .add_option_function<std::string>(
            "--offload", [this](const std::string& text) { m_offload = parseOffload(text, "--offload"); },
            "stages whose saved activations wait in the host's memory for the backward; auto: those that cost no time, "
            "and as many more as memory needs (none)")
        ->type_name("none|auto|STAGES");
}

void InlineDesign::addMachine()
{
    CLI::App& group = m_options;
    group.add_option("--device", m_asked.device, "device preset to run the model on")->type_name("PRESET");
    group
        .add_option("--cluster", m_asked.cluster,
                    "cluster preset, or the file that devices --measure wrote: devices and links")
        ->type_name("PRESET|FILE");
    group.add_option("--efficiency", m_asked.efficiency, "share of its peak rate that a device reaches (the preset's)")
        ->type_name("SHARE");
    group
        .add_option("--half-rate-width", m_asked.halfRateWidth,
                    "width of a weight matrix with which its products reach half of that; 0: all widths are alike (the "
                    "preset's)")
        ->type_name("N");
    NodeChange& nodes = m_asked.nodes;
    group.add_option("--nodes", nodes.count, "of a cluster of nodes: how many (the preset's)")->type_name("N");
    group.add_option("--devices-per-node", nodes.devices, "devices of a node")->type_name("N");
    group.add_option("--cards-per-node", nodes.cards, "network cards that they share")->type_name("N");
    group.add_option("--nodes-per-switch", nodes.perSwitch, "nodes under one switch; 0: all")->type_name("N");
    group
        .add_option("--oversubscription", nodes.oversubscription,
                    "between switches: what their nodes could send over what passes, from 1 on")
        ->type_name("X");
    const auto takeHostLink = [this](const std::string& text) {
        m_hostLink = parseSize(text, "--host-link");
        if (*m_hostLink <= 0)
            throw Error("--host-link", "\"" + text + "\" moves nothing", "give bytes per second, such as 25GB");
    };
    group
        .add_option_function<std::string>(
            "--host-link", takeHostLink,
            "bytes per second between a device and the host's memory, each way, where the cluster does not say it")
        ->type_name("SIZE");
}

void InlineDesign::addTraining()
{
    CLI::App& group = m_options;
    WeightPolicy& weights = m_asked.weights;
    group.add_option("--accumulate", m_asked.accumulate, "microbatches per update (asynchronous families)")
        ->type_name("T");
    named("--optimizer", optimizerNamed, m_asked.optimizer, "sgd|adam|adamw|rmsprop",
          "of families that update amid the run (sgd; xpipe: adam)");
    named("--prediction-steps", predictionStepsNamed, weights.steps, "paper|exact|code",
          "pipeoptim: how far weights are predicted (paper)");
    named("--rounding", stepRoundingNamed, weights.rounding, "half-even|half-up|half-down|floor|ceiling",
          "xpipe: what becomes of fractions of a step (half-even)");
    group
        .add_option("--spectrain", weights.specTrain,
                    "spectrain: 2 reuses the forward's prediction in the backward (1)")
        ->type_name("1|2");
    group.add_flag("--vertical-sync", weights.verticalSync,
                   "pipedream: every stage reads the version that stage 0 read");
    group.add_option("--workers", m_asked.workers, "dp, cdp-v1, cdp-v2: data parallel workers (as many as stages)")
        ->type_name("N");
    named("--layout", workerLayoutNamed, m_asked.layout, "pipeline|workers|single|triangle|sharded",
          "dp, cdp-v1, cdp-v2: a stage per device, a worker per device, all on one, one activation each, or a worker "
          "per device and stages that hop");
}

bool InlineDesign::isFile() const
{
    return m_acceptFile && findFamily(m_what) == nullptr;
}

DesignRequest InlineDesign::request() const
{
    DesignRequest request = m_asked;
    request.family = m_what;
    request.given = givenOptions(m_options);
    request.framework = m_modelOptions.framework;
    request.precision = m_modelOptions.precision;
    if (m_costs.given()) {
        request.costsFrom = m_costs.read();
        request.uneven = m_costs.unevenness();
        request.keepOffload = m_options.count("--offload") == 0;
        const Schedule& schedule = request.costsFrom->schedule;
        if (m_options.count("--devices") == 0)
            request.devices = schedule.devices();
        if (m_options.count("--microbatches") == 0)
            request.microbatches = schedule.microbatches / schedule.sequencePieces;
    }
    for (const char* required : {"--devices", "--microbatches"})
        if (m_options.count(required) == 0 && !request.costsFrom)
            throw Error(required, "is missing", "a family needs --devices P and --microbatches M");
    for (const char* option : {"--tensor-parallel", "--sequence-parallel", "--context-parallel", "--expert-parallel",
                               "--folded-experts", "--data-parallel", "--overlap-exchanges", "--expert-spread"})
        if (m_options.count(option) > 0)
            request.parallel = m_parallel;
    if (request.parallel && m_options.count("--data-parallel") == 0)
        request.parallel->data = fewestCopies(*request.parallel);
    return request;
}

LocatedDesign InlineDesign::make(std::optional<ScaleReport>* scale, std::optional<UnevenEnds>* uneven) const
{
    std::optional<UnevenEnds> ends;
    LocatedDesign located = fullDesign(ends);
    if (ends)
        printNote(*ends);
    if (uneven)
        *uneven = std::move(ends);
    if (m_command.count("--scale") > 0) {
        ScaledDesign scaled = scaledDesign(located.design, m_scale);
        located.design = std::move(scaled.design);
        if (scale)
            *scale = std::move(scaled.report);
    }
    located.design = m_sharding.applied(std::move(located.design));
    return located;
}

/// The design with the link to the host's memory and the stages that offload.
Design InlineDesign::offloading(Design design) const
{
    if (m_hostLink) {
        const auto rate = static_cast<double>(*m_hostLink);
        design.cluster.hostLink = LinkSpec{"given", 0, rate};
        design.costs.hostLink = LinkCosts{0, rate, {}, CostOrigin::Given};
    }
    if (!m_offload)
        return design;
    if (m_offload->kind != OffloadChoice::Kind::Auto)
        return withOffload(design, *m_offload, "--offload");
    OffloadedStages chosen = chooseOffloadedStages(design);
    printDiagnostics({{chosen.fits ? Severity::Note : Severity::Warning, "--offload auto", chosen.text(), {}}});
    return std::move(chosen.design);
}

LocatedDesign InlineDesign::fullDesign(std::optional<UnevenEnds>& ends) const
{
    if (!isFile()) {
        LocatedDesign located;
        if (m_asked.model)
            printDiagnostics(loadModel(*m_asked.model).notes);
        DesignRequest wanted = request();
        const auto make = [&] {
            Design design = m_memoryLimit ? makeDesignWithin(wanted, *m_memoryLimit) : makeDesign(wanted);
            if (m_communication)
                design.costs.communication = *m_communication;
            return design;
        };
        Design made = make();
        if (wanted.costsFrom) {
            for (const std::string& text : carriedOver(*wanted.costsFrom, made))
                printDiagnostics({{Severity::Note, "--costs-from", text, {}}});
            ends = unevenEnds(m_costs, *wanted.costsFrom, [&](Unevenness uneven) {
                wanted.uneven = uneven;
                return make();
            });
        }
        located.design = offloading(std::move(made));
        return located;
    }
    if (!pathExists(m_what))
        throw Error(m_what, "is neither a design file nor a family",
                    fmt::format("families: {}", joined(familyNames(), ", ")));
    if (const auto given = givenOptions(m_options); !given.empty())
        throw Error(given.front(), "belongs to a family, and " + m_what + " is taken for a design file",
                    "leave it out, or name a family");
    LocatedDesign located = readLocatedDesign(m_what);
    if (m_costs.given())
        ends = takeCosts(m_costs, located.design);
    if (m_modelOptions.framework)
        located.design = withFramework(located.design, *m_modelOptions.framework);
    if (m_modelOptions.precision)
        located.design = withPrecision(located.design, *m_modelOptions.precision);
    return located;
}

} // namespace pipewright::app
