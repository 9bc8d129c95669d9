// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/inlinedesign.h"

#include "app/command.h"

#include "core/base/diagnostic.h"
#include "core/base/formattedtext.h"
#include "core/base/inputfile.h"
#include "core/base/units.h"
#include "core/design/carriedover.h"
#include "core/design/redesign.h"
#include "core/predict/offloadedstages.h"
#include "core/presets/modelfile.h"
#include "core/workload/parallelism.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <cstdlib>

namespace pipewright::app {

namespace {

/// "1.5x": a multiple of the devices' count of microbatches.
double parseFactor(const std::string& text, const std::string& where)
{
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (end == text.c_str() || std::string_view(end) != "x" || !std::isfinite(value) || value <= 0)
        throw Error(where, "\"" + text + "\" is no memory limit", "write a positive factor, such as 1.5x");
    return value;
}

std::vector<std::string_view> familyNames()
{
    std::vector<std::string_view> names;
    for (const Family& family : families())
        names.push_back(family.name);
    return names;
}

} // namespace

InlineDesign::InlineDesign(Command command, bool acceptFile)
    : m_acceptFile(acceptFile), m_command(command), m_options(command.group("Design", "what a family is made for")),
      m_plan(command)
{
    command
        .option(acceptFile ? "design" : "family", m_what,
                fmt::format("{}one of: {}", acceptFile ? "a design file, or " : "", joined(familyNames(), ", ")))
        .required()
        .typeName(acceptFile ? "FILE|FAMILY" : "FAMILY");
    Command group = m_options;
    group.option("--devices", m_devices, "pipeline devices").typeName("P");
    group.option("--microbatches", m_microbatches, "microbatches per step").typeName("M");
    group
        .option("--replicas", m_replicas,
                "copies of the pipeline in the schedule, which share out P and M and sum their gradients (1)")
        .typeName("N");
    group.flag("--shard-optimizer", m_shardOptimizer,
               "replicas share the optimizer's state out: each updates its share of the parameters and sends it to the "
               "others (ZeRO stage 1)");
    group.option("--chunks", m_chunks, "stages per device").typeName("V");
    group.option("--group", m_group, "interleaving: microbatches per group").typeName("G");
    group.option("--pieces", m_pieces, "seq1f1b: pieces of each microbatch's sequence (4)").typeName("K");
    group.option("--forward", m_forward, "time of one device's worth of layers (1ms)").typeName("T");
    group.option("--input-grad", m_inputGrad, "time of the input-gradient half (1ms)").typeName("T");
    group.option("--weight-grad", m_weightGrad, "time of the weight-gradient half (1ms)").typeName("T");
    group.option("--transfer", m_transfer, "time of one hop between devices (0)").typeName("T");
    group.flag("--per-chunk", m_perChunk, "the three pass times are per chunk");
    group
        .option("--overlap-factor", m_overlapFactor,
                "overlapped F and B take this times their sum, not what their parts give")
        .typeName("X");
    group.option("--memory-limit", m_memoryLimit, "where the family searches; x = P microbatches of activations")
        .typeName("FACTORx");
    group.option("--saved", m_saved, "bytes one F keeps on a device; then there is no model").typeName("SIZE");
    group.option("--saved-for-weight-grad", m_savedForWeightGrad, "of these, what stays until W (all)")
        .typeName("SIZE");
    group
        .option("--model", m_model,
                "model preset, or your own: a Hugging Face config.json, a model file, a table of layers (.csv); its "
                "times hold where none are given")
        .typeName("PRESET|FILE");
    group.option("--device", m_device, "device preset to run the model on").typeName("PRESET");
    group.option("--cluster", m_cluster, "cluster preset, or the file that devices --measure wrote: devices and links")
        .typeName("PRESET|FILE");
    group.option("--efficiency", m_efficiency, "share of its peak rate that a device reaches (the preset's)")
        .typeName("SHARE");
    group
        .option("--half-rate-width", m_halfRateWidth,
                "width of a weight matrix with which its products reach half of that; 0: all widths are alike (the "
                "preset's)")
        .typeName("N");
    group.option("--sequence", m_sequence, "tokens per sequence").typeName("N");
    group.option("--microbatch-size", m_microbatchSize, "sequences per microbatch").typeName("N");
    group.option("--layers-per-stage", m_layersPerStage, "partition of the model, such as 3,3,2")
        .delimiter(',')
        .typeName("N,N,…");
    group.option("--tensor-parallel", m_tensor, "devices of a stage that share every matrix (1)").typeName("N");
    group.flag("--sequence-parallel", m_splitTokens, "they split the tokens between matrices");
    group.option("--context-parallel", m_context, "devices of a stage that share every sequence (1)").typeName("N");
    group.option("--expert-parallel", m_expert, "copies of the pipeline that share out the experts (1)").typeName("N");
    group
        .option("--data-parallel", m_data,
                "copies of the pipeline, each with M microbatches (as many as share out experts)")
        .typeName("N");
    group
        .option(
            "--overlap-exchanges", m_overlapExchanges,
            "share of their communication that is hidden behind computing, where there is enough of that: 0 to 1 (0)")
        .typeName("SHARE");
    group.option("--nodes", m_nodes, "of a cluster of nodes: how many (the preset's)").typeName("N");
    group.option("--devices-per-node", m_devicesPerNode, "devices of a node").typeName("N");
    group.option("--cards-per-node", m_cardsPerNode, "network cards that they share").typeName("N");
    group.option("--nodes-per-switch", m_nodesPerSwitch, "nodes under one switch; 0: all").typeName("N");
    group
        .option("--oversubscription", m_oversubscription,
                "between switches: what their nodes could send over what passes, from 1 on")
        .typeName("X");
    group
        .option("--recompute", m_recompute,
                "which activations R blocks make again before the backward: the attention's, or all, of every stage "
                "or of these (none)")
        .typeName("none|selective|full|STAGES");
    group
        .option("--offload", m_offload,
                "stages whose saved activations wait in the host's memory for the backward; auto: those that cost no "
                "time, and as many more as memory needs (none)")
        .typeName("none|auto|STAGES");
    group
        .option("--host-link", m_hostLink,
                "bytes per second between a device and the host's memory, each way, where the cluster does not say it")
        .typeName("SIZE");
    group.option("--accumulate", m_accumulate, "microbatches per update (asynchronous families)").typeName("T");
    group.option("--optimizer", m_optimizer, "of families that update amid the run (sgd; xpipe: adam)")
        .typeName("sgd|adam|adamw|rmsprop");
    group.option("--prediction-steps", m_predictionSteps, "pipeoptim: how far weights are predicted (paper)")
        .typeName("paper|exact|code");
    group.option("--rounding", m_rounding, "xpipe: what becomes of fractions of a step (half-even)")
        .typeName("half-even|half-up|half-down|floor|ceiling");
    group.option("--spectrain", m_specTrain, "spectrain: 2 reuses the forward's prediction in the backward (1)")
        .typeName("1|2");
    group.flag("--vertical-sync", m_verticalSync, "pipedream: every stage reads the version that stage 0 read");
    group.option("--workers", m_workers, "dp, cdp-v1, cdp-v2: data parallel workers (as many as stages)").typeName("N");
    group
        .option("--layout", m_layout,
                "dp, cdp-v1, cdp-v2: a stage per device, a worker per device, all on one, one activation each, or a "
                "worker per device and stages that hop")
        .typeName("pipeline|workers|single|triangle|sharded");
    group.option("--name", m_name, "name of the design");
    m_costs.addTo(m_command);
    m_command
        .option("--scale", m_scale,
                "the same schedule with a smaller model: keys of a model file, such as layers=8,vocabulary=32000")
        .typeName("KEY=VALUE,…");
}

bool InlineDesign::isFile() const
{
    return m_acceptFile && findFamily(m_what) == nullptr;
}

std::optional<Parallelism> InlineDesign::parallel() const
{
    bool any = false;
    for (const char* option : {"--tensor-parallel", "--sequence-parallel", "--context-parallel", "--expert-parallel",
                               "--data-parallel", "--overlap-exchanges"})
        any = any || m_options.given(option);
    if (!any)
        return std::nullopt;
    Parallelism parallel{m_tensor, m_splitTokens, m_context, m_expert, m_data, m_overlapExchanges};
    if (!m_options.given("--data-parallel"))
        parallel.data = parallel.expert;
    return parallel;
}

NodeChange InlineDesign::nodes() const
{
    const auto number = [&](const char* option, int value) {
        return m_options.given(option) ? std::optional(value) : std::nullopt;
    };
    NodeChange change;
    change.count = number("--nodes", m_nodes);
    change.devices = number("--devices-per-node", m_devicesPerNode);
    change.cards = number("--cards-per-node", m_cardsPerNode);
    change.perSwitch = number("--nodes-per-switch", m_nodesPerSwitch);
    if (m_options.given("--oversubscription"))
        change.oversubscription = m_oversubscription;
    return change;
}

DesignRequest InlineDesign::request() const
{
    const auto given = [&](const char* option) { return m_options.given(option); };
    DesignRequest request;
    if (m_costs.given()) {
        request.costsFrom = m_costs.read();
        request.uneven = m_costs.unevenness();
        request.keepOffload = !given("--offload");
        const Schedule& schedule = request.costsFrom->schedule;
        request.devices = schedule.devices();
        request.microbatches = schedule.microbatches / schedule.sequencePieces;
    }
    for (const char* required : {"--devices", "--microbatches"})
        if (!given(required) && !request.costsFrom)
            throw Error(required, "is missing", "a family needs --devices P and --microbatches M");
    const auto number = [&](const char* option, int value) {
        return given(option) ? std::optional(value) : std::nullopt;
    };
    const auto text = [&](const char* option, const std::string& value) {
        return given(option) ? std::optional(value) : std::nullopt;
    };
    const auto duration = [&](const char* option, const std::string& value) {
        return given(option) ? std::optional(parseDuration(value, option)) : std::nullopt;
    };
    const auto size = [&](const char* option, const std::string& value) {
        return given(option) ? std::optional(parseSize(value, option)) : std::nullopt;
    };

    request.family = m_what;
    request.devices = number("--devices", m_devices).value_or(request.devices);
    request.microbatches = number("--microbatches", m_microbatches).value_or(request.microbatches);
    request.replicas = number("--replicas", m_replicas).value_or(request.replicas);
    request.shardOptimizer = m_shardOptimizer;
    request.chunks = number("--chunks", m_chunks);
    request.group = number("--group", m_group);
    request.pieces = number("--pieces", m_pieces);
    if (given("--memory-limit"))
        request.memoryLimit = parseFactor(m_memoryLimit, "--memory-limit");
    request.accumulate = number("--accumulate", m_accumulate);
    request.workers = number("--workers", m_workers);
    request.weights.verticalSync = m_verticalSync;
    request.weights.specTrain = m_specTrain;
    const auto named = [&](const char* option, const std::string& value, auto find, auto& field) {
        if (!given(option))
            return;
        const auto found = find(value);
        if (!found)
            throw Error(option, "\"" + value + "\" is not known", "use one of " + m_options.typeNameOf(option));
        field = *found;
    };
    named("--optimizer", m_optimizer, optimizerNamed, request.optimizer);
    named("--prediction-steps", m_predictionSteps, predictionStepsNamed, request.weights.steps);
    named("--rounding", m_rounding, stepRoundingNamed, request.weights.rounding);
    named("--layout", m_layout, workerLayoutNamed, request.layout);
    request.forward = duration("--forward", m_forward);
    request.inputGrad = duration("--input-grad", m_inputGrad);
    request.weightGrad = duration("--weight-grad", m_weightGrad);
    request.transfer = duration("--transfer", m_transfer);
    request.perChunk = m_perChunk;
    if (given("--overlap-factor"))
        request.overlapFactor = m_overlapFactor;
    request.saved = size("--saved", m_saved);
    request.savedForWeightGrad = size("--saved-for-weight-grad", m_savedForWeightGrad);
    request.model = text("--model", m_model);
    request.device = text("--device", m_device);
    request.cluster = text("--cluster", m_cluster);
    request.sequence = number("--sequence", m_sequence);
    request.microbatchSize = number("--microbatch-size", m_microbatchSize);
    request.parallel = parallel();
    request.nodes = nodes();
    if (given("--efficiency"))
        request.efficiency = m_efficiency;
    if (given("--half-rate-width"))
        request.halfRateWidth = m_halfRateWidth;
    if (given("--recompute"))
        request.recompute = parseRecompute(m_recompute, "--recompute");
    request.layersPerStage = m_layersPerStage;
    request.name = m_name;
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
    if (m_command.given("--scale")) {
        ScaledDesign scaled = scaledDesign(located.design, m_scale);
        located.design = std::move(scaled.design);
        if (scale)
            *scale = std::move(scaled.report);
    }
    located.design = m_plan.applied(std::move(located.design));
    return located;
}

/// The design with the link to the host's memory and the stages that offload.
Design InlineDesign::offloading(Design design) const
{
    if (m_options.given("--host-link")) {
        const Bytes rate = parseSize(m_hostLink, "--host-link");
        if (rate <= 0)
            throw Error("--host-link", "\"" + m_hostLink + "\" moves nothing", "give bytes per second, such as 25GB");
        design.cluster.hostLink = LinkSpec{"given", 0, static_cast<double>(rate)};
        design.costs.hostLink = LinkCosts{0, static_cast<double>(rate), {}, CostOrigin::Given};
    }
    if (!m_options.given("--offload"))
        return design;
    const OffloadChoice choice = parseOffload(m_offload, "--offload");
    if (choice.kind != OffloadChoice::Kind::Auto)
        return withOffload(design, choice, "--offload");
    OffloadedStages chosen = chooseOffloadedStages(design);
    printDiagnostics({{chosen.fits ? Severity::Note : Severity::Warning, "--offload auto", chosen.text(), {}}});
    return std::move(chosen.design);
}

LocatedDesign InlineDesign::fullDesign(std::optional<UnevenEnds>& ends) const
{
    if (!isFile()) {
        LocatedDesign located;
        if (m_options.given("--model"))
            printDiagnostics(loadModel(m_model).notes);
        DesignRequest wanted = request();
        Design made = makeDesign(wanted);
        if (wanted.costsFrom) {
            for (const std::string& text : carriedOver(*wanted.costsFrom, made))
                printDiagnostics({{Severity::Note, "--costs-from", text, {}}});
            ends = unevenEnds(m_costs, *wanted.costsFrom, [&](Unevenness uneven) {
                wanted.uneven = uneven;
                return makeDesign(wanted);
            });
        }
        located.design = offloading(std::move(made));
        return located;
    }
    if (!pathExists(m_what))
        throw Error(m_what, "is neither a design file nor a family",
                    fmt::format("families: {}", joined(familyNames(), ", ")));
    if (const std::string option = m_options.firstGiven(); !option.empty())
        throw Error(option, "belongs to a family, and " + m_what + " is taken for a design file",
                    "leave it out, or name a family");
    LocatedDesign located = readLocatedDesign(m_what);
    if (m_costs.given())
        ends = takeCosts(m_costs, located.design);
    return located;
}

} // namespace pipewright::app
