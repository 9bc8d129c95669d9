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
    addSchedule();
    addTimes();
    addModel();
    addMachine();
    addTraining();
    m_options.option("--name", m_asked.name, "name of the design");
    m_costs.addTo(m_command);
    m_command
        .option("--scale", m_scale,
                "the same schedule with a smaller model: keys of a model file, such as layers=8,vocabulary=32000")
        .typeName("KEY=VALUE,…");
}

/// An option whose values are names, found by `find`.
template<class Find, class Field>
CommandOption InlineDesign::named(const char* option, Find find, Field& field, const char* values, const char* meaning)
{
    const auto take = [option, find, &field, values](const std::string& value) {
        const auto found = find(value);
        if (!found)
            throw Error(option, "\"" + value + "\" is not known", fmt::format("use one of {}", values));
        field = *found;
    };
    return m_options.parsed(option, take, meaning).typeName(values);
}

void InlineDesign::addSchedule()
{
    Command group = m_options;
    group.option("--devices", m_asked.devices, "pipeline devices").typeName("P");
    group.option("--microbatches", m_asked.microbatches, "microbatches per step").typeName("M");
    group
        .option("--replicas", m_asked.replicas,
                "copies of the pipeline in the schedule, which share out P and M and sum their gradients (1)")
        .typeName("N");
    group.flag("--shard-optimizer", m_asked.shardOptimizer,
               "replicas share the optimizer's state out: each updates its share of the parameters and sends it to the "
               "others (ZeRO stage 1)");
    group.option("--chunks", m_asked.chunks, "stages per device").typeName("V");
    group.option("--group", m_asked.group, "interleaving: microbatches per group").typeName("G");
    group.option("--pieces", m_asked.pieces, "seq1f1b: pieces of each microbatch's sequence (4)").typeName("K");
    group
        .parsed(
            "--memory-limit",
            [this](const std::string& text) {
                const MemoryLimit limit = parseMemoryLimit(text);
                m_asked.memoryLimit = limit.factor;
                m_memoryLimit = limit.bytes;
            },
            "where the family searches; x = P microbatches of activations, bytes: all of a device's memory (1x)")
        .typeName("FACTORx|SIZE");
}

void InlineDesign::addTimes()
{
    const auto duration = [this](const char* option, std::optional<Nanoseconds>& field, const char* meaning) {
        m_options
            .parsed(
                option, [option, &field](const std::string& text) { field = parseDuration(text, option); }, meaning)
            .typeName("T");
    };
    const auto size = [this](const char* option, std::optional<Bytes>& field, const char* meaning) {
        m_options
            .parsed(
                option, [option, &field](const std::string& text) { field = parseSize(text, option); }, meaning)
            .typeName("SIZE");
    };
    duration("--forward", m_asked.forward, "time of one device's worth of layers (1ms)");
    duration("--input-grad", m_asked.inputGrad, "time of the input-gradient half (1ms)");
    duration("--weight-grad", m_asked.weightGrad, "time of the weight-gradient half (1ms)");
    duration("--transfer", m_asked.transfer, "time of one hop between devices (0)");
    named(
        "--communication", communicationNamed, m_communication, "overlapped|one-stream|blocking",
        "transfers of a device run beside each other (overlapped), one after the other as on PyTorch's one stream, or "
        "hold up its blocks; of --costs-from, or overlapped");
    m_options.flag("--per-chunk", m_asked.perChunk, "the three pass times are per chunk");
    m_options
        .option("--overlap-factor", m_asked.overlapFactor,
                "overlapped F and B take this times their sum, not what their parts give")
        .typeName("X");
    size("--saved", m_asked.saved, "bytes one F keeps on a device; then there is no model");
    size("--saved-for-weight-grad", m_asked.savedForWeightGrad, "of these, what stays until W (all)");
}

void InlineDesign::addModel()
{
    Command group = m_options;
    group
        .option("--model", m_asked.model,
                "model preset, or your own: a Hugging Face config.json, a model file, a table of layers (.csv); its "
                "times hold where none are given")
        .typeName("PRESET|FILE");
    group.option("--sequence", m_asked.sequence, "tokens per sequence").typeName("N");
    group.option("--microbatch-size", m_asked.microbatchSize, "sequences per microbatch").typeName("N");
    const auto takePartition = [this](const std::string& text) {
        m_asked.layersPerStage = partitionOf(text, "--layers-per-stage");
    };
    group
        .parsed("--layers-per-stage", takePartition,
                "partition of the model: numbers, such as 3,3,2, or a layout of Megatron-LM, such as Et|(tt|)*3,tL")
        .typeName("N,N,…|LAYOUT");
    group.option("--tensor-parallel", m_parallel.tensor, "devices of a stage that share every matrix (1)")
        .typeName("N");
    group.flag("--sequence-parallel", m_parallel.sequence, "they split the tokens between matrices");
    group.option("--context-parallel", m_parallel.context, "devices of a stage that share every sequence (1)")
        .typeName("N");
    group.option("--expert-parallel", m_parallel.expert, "copies of the pipeline that share out the experts (1)")
        .typeName("N");
    group
        .option("--data-parallel", m_parallel.data,
                "copies of the pipeline, each with M microbatches (as many as share out experts)")
        .typeName("N");
    group
        .option(
            "--overlap-exchanges", m_parallel.overlap,
            "share of their communication that is hidden behind computing, where there is enough of that: 0 to 1 (0)")
        .typeName("SHARE");
    group
        .parsed(
            "--recompute", [this](const std::string& text) { m_asked.recompute = parseRecompute(text, "--recompute"); },
            "which activations R blocks make again before the backward: the attention's, or all, of every stage or of "
            "these (none)")
        .typeName("none|selective|full|STAGES");
    group
        .parsed(
            "--offload", [this](const std::string& text) { m_offload = parseOffload(text, "--offload"); },
            "stages whose saved activations wait in the host's memory for the backward; auto: those that cost no time, "
            "and as many more as memory needs (none)")
        .typeName("none|auto|STAGES");
}

void InlineDesign::addMachine()
{
    Command group = m_options;
    group.option("--device", m_asked.device, "device preset to run the model on").typeName("PRESET");
    group
        .option("--cluster", m_asked.cluster,
                "cluster preset, or the file that devices --measure wrote: devices and links")
        .typeName("PRESET|FILE");
    group.option("--efficiency", m_asked.efficiency, "share of its peak rate that a device reaches (the preset's)")
        .typeName("SHARE");
    group
        .option("--half-rate-width", m_asked.halfRateWidth,
                "width of a weight matrix with which its products reach half of that; 0: all widths are alike (the "
                "preset's)")
        .typeName("N");
    NodeChange& nodes = m_asked.nodes;
    group.option("--nodes", nodes.count, "of a cluster of nodes: how many (the preset's)").typeName("N");
    group.option("--devices-per-node", nodes.devices, "devices of a node").typeName("N");
    group.option("--cards-per-node", nodes.cards, "network cards that they share").typeName("N");
    group.option("--nodes-per-switch", nodes.perSwitch, "nodes under one switch; 0: all").typeName("N");
    group
        .option("--oversubscription", nodes.oversubscription,
                "between switches: what their nodes could send over what passes, from 1 on")
        .typeName("X");
    const auto takeHostLink = [this](const std::string& text) {
        m_hostLink = parseSize(text, "--host-link");
        if (*m_hostLink <= 0)
            throw Error("--host-link", "\"" + text + "\" moves nothing", "give bytes per second, such as 25GB");
    };
    group
        .parsed("--host-link", takeHostLink,
                "bytes per second between a device and the host's memory, each way, where the cluster does not say it")
        .typeName("SIZE");
}

void InlineDesign::addTraining()
{
    Command group = m_options;
    WeightPolicy& weights = m_asked.weights;
    group.option("--accumulate", m_asked.accumulate, "microbatches per update (asynchronous families)").typeName("T");
    named("--optimizer", optimizerNamed, m_asked.optimizer, "sgd|adam|adamw|rmsprop",
          "of families that update amid the run (sgd; xpipe: adam)");
    named("--prediction-steps", predictionStepsNamed, weights.steps, "paper|exact|code",
          "pipeoptim: how far weights are predicted (paper)");
    named("--rounding", stepRoundingNamed, weights.rounding, "half-even|half-up|half-down|floor|ceiling",
          "xpipe: what becomes of fractions of a step (half-even)");
    group.option("--spectrain", weights.specTrain, "spectrain: 2 reuses the forward's prediction in the backward (1)")
        .typeName("1|2");
    group.flag("--vertical-sync", weights.verticalSync, "pipedream: every stage reads the version that stage 0 read");
    group.option("--workers", m_asked.workers, "dp, cdp-v1, cdp-v2: data parallel workers (as many as stages)")
        .typeName("N");
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
    request.given = m_options.allGiven();
    if (m_costs.given()) {
        request.costsFrom = m_costs.read();
        request.uneven = m_costs.unevenness();
        request.keepOffload = !m_options.given("--offload");
        const Schedule& schedule = request.costsFrom->schedule;
        if (!m_options.given("--devices"))
            request.devices = schedule.devices();
        if (!m_options.given("--microbatches"))
            request.microbatches = schedule.microbatches / schedule.sequencePieces;
    }
    for (const char* required : {"--devices", "--microbatches"})
        if (!m_options.given(required) && !request.costsFrom)
            throw Error(required, "is missing", "a family needs --devices P and --microbatches M");
    for (const char* option : {"--tensor-parallel", "--sequence-parallel", "--context-parallel", "--expert-parallel",
                               "--data-parallel", "--overlap-exchanges"})
        if (m_options.given(option))
            request.parallel = m_parallel;
    if (request.parallel && !m_options.given("--data-parallel"))
        request.parallel->data = request.parallel->expert;
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
    if (const std::string option = m_options.firstGiven(); !option.empty())
        throw Error(option, "belongs to a family, and " + m_what + " is taken for a design file",
                    "leave it out, or name a family");
    LocatedDesign located = readLocatedDesign(m_what);
    if (m_costs.given())
        ends = takeCosts(m_costs, located.design);
    return located;
}

} // namespace pipewright::app
