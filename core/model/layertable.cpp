// SPDX-License-Identifier: GPL-3.0-or-later
// balancedPartition() is the linear partition problem by dynamic programming over (stages, layers): O(stages x
// layers^2) at worst, and less since a last stage that is longer than the best so far ends the inner loop.
#include "core/model/layertable.h"

#include "core/model/parallelism.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace pipewright {

namespace {

constexpr std::size_t mostLayers = 10'000;
// Limits of a layer; sums over all layers stay far below 64 bits.
constexpr Nanoseconds longestTime = 86'400'000'000'000; // a day
constexpr Bytes mostBytes = Bytes{1} << 46;

} // namespace

ModelShape tableShape(std::string name, std::vector<KnownLayer> table, DataType type, std::int64_t microbatchSize)
{
    ModelShape shape;
    shape.name = std::move(name);
    shape.architecture = Architecture::Table;
    shape.layers = static_cast<int>(table.size());
    shape.hidden = shape.headSize = shape.ffn = shape.vocabulary = shape.sequence = 1;
    shape.heads = shape.keyValueHeads = 1;
    shape.tiedHead = false;
    shape.dataType = type;
    shape.microbatchSize = microbatchSize;
    shape.table = std::move(table);
    return shape;
}

Diagnostics checkTable(const ModelShape& shape)
{
    Diagnostics wrong;
    const auto fault = [&wrong](std::string where, std::string what, std::string hint) {
        wrong.push_back({Severity::Error, std::move(where), std::move(what), std::move(hint)});
    };
    if (shape.table.empty() || shape.table.size() > mostLayers)
        fault("model.layer_table", fmt::format("{} layers", shape.table.size()),
              fmt::format("between 1 and {}", mostLayers));
    for (std::size_t i = 0; i < shape.table.size() && wrong.size() < 8; ++i) {
        const KnownLayer& layer = shape.table[i];
        const std::string where = fmt::format("model.layer_table.{}", i);
        if (layer.name.empty())
            fault(where, "a layer without a name", "give every layer one");
        Bytes most = std::max({layer.saved, layer.parameters, layer.output, layer.frozen, layer.shared});
        forEachAutogradField(layer.autograd, [&most](const char*, Bytes bytes) { most = std::max(most, bytes); });
        if (most > mostBytes)
            fault(where, fmt::format("{}: more than {}", inQuotes(layer.name), formatSize(mostBytes)),
                  "check the units");
        if (std::max({layer.forward, layer.inputGrad, layer.weightGrad, layer.backward}) > longestTime)
            fault(where, fmt::format("{}: more than a day", inQuotes(layer.name)), "check the units");
        if (layer.frozen + layer.shared > layer.parameters)
            fault(where,
                  fmt::format("{} has {} of parameters, and {} of them are frozen or shared", inQuotes(layer.name),
                              exactSize(layer.parameters), exactSize(layer.frozen + layer.shared)),
                  "they are parts of its parameters");
        if (const auto end = shape.table.begin() + static_cast<std::ptrdiff_t>(i);
            layer.sharedWith.empty() ? layer.shared > 0
                                     : std::none_of(shape.table.begin(), end, [&](const KnownLayer& each) {
                                           return each.name == layer.sharedWith;
                                       }))
            fault(where,
                  fmt::format("{} shares parameters with {}, which is no layer before it", inQuotes(layer.name),
                              inQuotes(layer.sharedWith)),
                  "name the first layer that has them, in \"shared_with\"");
        if (layer.savedForWeightGrad > layer.saved)
            fault(where,
                  fmt::format("{} keeps {} for its weight gradient, more than the {} that it keeps",
                              inQuotes(layer.name), exactSize(layer.savedForWeightGrad), exactSize(layer.saved)),
                  "it is a part of what is saved");
        if (layer.autograd.savedByLoss > layer.saved)
            fault(where,
                  fmt::format("{} keeps {} for the loss, more than the {} that it keeps", inQuotes(layer.name),
                              exactSize(layer.autograd.savedByLoss), exactSize(layer.saved)),
                  "it is a part of what is saved");
    }
    if (const Parallelism copies{.data = shape.parallel.data, .overlap = shape.parallel.overlap};
        !(shape.parallel == copies))
        fault("model.parallel", "the times and bytes of a layer table hold for the device that they are of",
              "measure a member's layers, use a model by its dimensions, or take copies alone (--data-parallel N)");
    else
        for (Diagnostic& each : checkParallelism(shape))
            wrong.push_back(std::move(each));
    if (shape.sequencePieces != 1)
        fault("model.sequence_pieces", "the layers of a table are of whole microbatches, which cannot be cut",
              "use another family, or a model by its dimensions");
    const ModelShape plain = tableShape(shape.name, {}, shape.dataType, shape.microbatchSize);
    if (shape.sequence != plain.sequence)
        fault("model.sequence", "the layers of a table hold for their own sequences", "leave the length out");
    return wrong;
}

std::vector<Layer> tableLayers(const ModelShape& shape)
{
    std::vector<Layer> layers;
    layers.reserve(shape.table.size());
    for (const KnownLayer& known : shape.table) {
        Layer& layer = layers.emplace_back();
        layer.name = known.name;
        layer.forwardTime = known.forward;
        layer.inputGradTime = known.inputGrad;
        layer.weightGradTime = known.weightGrad;
        layer.backwardTime = known.backward;
        const auto count = [each = bytesOf(shape.dataType)](Bytes bytes) { return (bytes + each - 1) / each; };
        layer.parameters = count(known.parameters);
        layer.frozenParameters = count(known.frozen);
        layer.sharedParameters = count(known.shared);
        layer.tiedTo = known.sharedWith;
        layer.outputBytes = known.output;
        if (const Bytes rest = known.saved - known.savedForWeightGrad; rest > 0)
            layer.saved.push_back({"saved", rest, 1, Lifetime::UntilInputGrad});
        if (known.savedForWeightGrad > 0)
            layer.saved.push_back({"savedForWeightGrad", known.savedForWeightGrad, 1, Lifetime::UntilWeightGrad});
        layer.autograd = known.autograd;
    }
    return layers;
}

std::vector<int> balancedPartition(const std::vector<Layer>& layers, int stages)
{
    const int count = static_cast<int>(layers.size());
    if (stages < 1 || stages > count)
        throw Error("stages", fmt::format("{} layers cannot be cut into {} stages", count, stages),
                    fmt::format("between 1 and {} stages", count));
    std::vector<double> upTo{0};
    for (const Layer& layer : layers)
        upTo.push_back(upTo.back() + layer.work());
    // longest[s][n]: least work of the longest stage when the first n layers form s + 1 stages; begins[s][n]: the first
    // layer of the last of these stages.
    const auto width = static_cast<std::size_t>(count) + 1;
    std::vector<std::vector<double>> longest(stages, std::vector<double>(width, 0));
    std::vector<std::vector<int>> begins(stages, std::vector<int>(width, 0));
    longest[0] = upTo;
    for (std::size_t s = 1; s < longest.size(); ++s)
        for (int n = static_cast<int>(s) + 1; n <= count; ++n) {
            double best = std::numeric_limits<double>::infinity();
            for (int begin = n - 1; begin >= static_cast<int>(s); --begin) {
                const double last = upTo[n] - upTo[begin];
                const double value = std::max(longest[s - 1][begin], last);
                if (value < best) {
                    best = value;
                    begins[s][n] = begin;
                } else if (last > best) {
                    break; // a longer last stage is not better
                }
            }
            longest[s][n] = best;
        }
    std::vector<int> partition(stages);
    int end = count;
    for (int s = stages - 1; s >= 0; --s) {
        const int begin = s == 0 ? 0 : begins[s][end];
        partition[s] = end - begin;
        end = begin;
    }
    return partition;
}

} // namespace pipewright
