// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/inlinedesign.h"

#include "core/base/diagnostic.h"
#include "core/base/units.h"

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>

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

InlineDesign::InlineDesign(CLI::App& command, bool acceptFile) : m_acceptFile(acceptFile)
{
    command.add_option(acceptFile ? "design" : "family", m_what,
                       fmt::format("{}one of: {}", acceptFile ? "a design file, or " : "", fmt::join(familyNames(), ", ")))
        ->required()
        ->type_name(acceptFile ? "FILE|FAMILY" : "FAMILY");
    m_options = command.add_option_group("Design", "what a family is made for");
    CLI::App& group = *m_options;
    group.add_option("--devices", m_devices, "pipeline devices")->type_name("P");
    group.add_option("--microbatches", m_microbatches, "microbatches per step")->type_name("M");
    group.add_option("--chunks", m_chunks, "stages per device")->type_name("V");
    group.add_option("--group", m_group, "interleaving: microbatches per group")->type_name("G");
    group.add_option("--pieces", m_pieces, "seq1f1b: pieces of each microbatch's sequence (4)")->type_name("K");
    group.add_option("--forward", m_forward, "time of one device's worth of layers (1ms)")->type_name("T");
    group.add_option("--input-grad", m_inputGrad, "time of the input-gradient half (1ms)")->type_name("T");
    group.add_option("--weight-grad", m_weightGrad, "time of the weight-gradient half (1ms)")->type_name("T");
    group.add_option("--transfer", m_transfer, "time of one hop between devices (0)")->type_name("T");
    group.add_flag("--per-chunk", m_perChunk, "the three pass times are per chunk");
    group.add_option("--overlap-factor", m_overlapFactor, "overlapped F and B take this times their sum (1)")->type_name("X");
    group.add_option("--memory-limit", m_memoryLimit, "where the family searches; x = P microbatches of activations")
        ->type_name("FACTORx");
    group.add_option("--saved", m_saved, "bytes one F keeps on a device; then there is no model")->type_name("SIZE");
    group.add_option("--saved-for-weight-grad", m_savedForWeightGrad, "of these, what stays until W (all)")
        ->type_name("SIZE");
    group.add_option("--model", m_model, "model preset; its times hold where none are given")->type_name("PRESET");
    group.add_option("--device", m_device, "device preset to run the model on")->type_name("PRESET");
    group.add_option("--cluster", m_cluster, "cluster preset: devices and links")->type_name("PRESET");
    group.add_option("--sequence", m_sequence, "tokens per sequence")->type_name("N");
    group.add_option("--microbatch-size", m_microbatchSize, "sequences per microbatch")->type_name("N");
    group.add_option("--layers-per-stage", m_layersPerStage, "partition of the model, such as 3,3,2")
        ->delimiter(',')
        ->type_name("N,N,…");
    group.add_option("--accumulate", m_accumulate, "microbatches per update (asynchronous families)")->type_name("T");
    group.add_option("--optimizer", m_optimizer, "of families that update amid the run (sgd; xpipe: adam)")
        ->type_name("sgd|adam|adamw|rmsprop");
    group.add_option("--prediction-steps", m_predictionSteps, "pipeoptim: how far weights are predicted (paper)")
        ->type_name("paper|exact|code");
    group.add_option("--rounding", m_rounding, "xpipe: what becomes of fractions of a step (half-even)")
        ->type_name("half-even|half-up|half-down|floor|ceiling");
    group.add_option("--spectrain", m_specTrain, "spectrain: 2 reuses the forward's prediction in the backward (1)")->type_name("1|2");
    group.add_flag("--vertical-sync", m_verticalSync, "pipedream: every stage reads the version that stage 0 read");
    group.add_option("--workers", m_workers, "dp, cdp-v1, cdp-v2: data parallel workers (as many as stages)")->type_name("N");
    group.add_option("--layout", m_layout, "dp, cdp-v1, cdp-v2: a stage per device, a worker per device, all on one, one activation each, or a worker per device and stages that hop")
        ->type_name("pipeline|workers|single|triangle|sharded");
    group.add_option("--name", m_name, "name of the design");
}

bool InlineDesign::isFile() const { return m_acceptFile && findFamily(m_what) == nullptr; }

DesignRequest InlineDesign::request() const
{
    const auto given = [&](const char* option) { return m_options->count(option) > 0; };
    for (const char* required : {"--devices", "--microbatches"})
        if (!given(required))
            throw Error(required, "is missing", "a family needs --devices P and --microbatches M");
    const auto number = [&](const char* option, int value) { return given(option) ? std::optional(value) : std::nullopt; };
    const auto text = [&](const char* option, const std::string& value) {
        return given(option) ? std::optional(value) : std::nullopt;
    };
    const auto duration = [&](const char* option, const std::string& value) {
        return given(option) ? std::optional(parseDuration(value, option)) : std::nullopt;
    };
    const auto size = [&](const char* option, const std::string& value) {
        return given(option) ? std::optional(parseSize(value, option)) : std::nullopt;
    };

    DesignRequest request;
    request.family = m_what;
    request.devices = m_devices;
    request.microbatches = m_microbatches;
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
            throw Error(option, "\"" + value + "\" is not known", "use one of " + m_options->get_option(option)->get_type_name());
        field = *found;
    };
    named("--optimizer", m_optimizer, updateRuleNamed, request.optimizer);
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
    request.layersPerStage = m_layersPerStage;
    request.name = m_name;
    return request;
}

LocatedDesign InlineDesign::make() const
{
    if (!isFile()) {
        LocatedDesign located;
        located.design = makeDesign(request());
        return located;
    }
    if (!std::filesystem::exists(m_what))
        throw Error(m_what, "is neither a design file nor a family",
                    fmt::format("families: {}", fmt::join(familyNames(), ", ")));
    for (const CLI::Option* option : m_options->get_options())
        if (option->count() > 0)
            throw Error(option->get_name(), "belongs to a family, and " + m_what + " is taken for a design file",
                        "leave it out, or name a family");
    return readLocatedDesign(m_what);
}

} // namespace pipewright::app
