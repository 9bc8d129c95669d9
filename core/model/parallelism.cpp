// SPDX-License-Identifier: GPL-3.0-or-later
// Divides the work, parameters and bytes of each part of a layer by the degree that splits it, and adds the collectives
// that the cited papers place around it. O(tensors of the layer).
#include "core/model/parallelism.h"

#include "core/base/formattedtext.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace pipewright {

namespace {

/// `whole`: the layer's only MLP are experts that no member splits, whose tokens stay where they are.
void addTensorTraffic(const ModelShape& shape, const ModelShape& member, bool whole, Layer& layer)
{
    const bool split = shape.parallel.sequence;
    const GroupExchange exchange = split ? GroupExchange::GatherOrScatter : GroupExchange::AllReduce;
    const Bytes bytes = member.tokens() * shape.hidden * bytesOf(shape.dataType);
    const auto add = [&](int forward, int inputGrad, int weightGrad) {
        layer.traffic.push_back({GroupAxis::Tensor, exchange, bytes, forward, inputGrad, weightGrad});
    };
    switch (layer.kind) {
    case LayerKind::Embedding: add(1, 0, split ? 1 : 0); break;
    case LayerKind::Transformer: // attention and MLP; an all-reduce is a scatter and a gather
    case LayerKind::Mlp: {
        const int parts = whole ? 1 : 2, times = split ? 2 * parts : parts;
        add(times, times, 0);
        break;
    }
    case LayerKind::Head: add(split ? 1 : 0, shape.head == Head::Own ? 1 : 0, 0); break; // members score alike
    case LayerKind::Other: break;
    }
}

void addContextTraffic(const ModelShape& shape, const ModelShape& member, Layer& layer)
{
    const std::int64_t perToken = shape.keyValueLatent > 0 ? shape.keyValueLatent + shape.rotaryHeadSize
                                                           : 2 * member.keyValueHeads * shape.headSize;
    const Bytes bytes = shape.tokens() * perToken * bytesOf(shape.dataType);
    if (hasAttention(layer.kind)) // keys and values for both passes, and their gradients back
        layer.traffic.push_back({GroupAxis::Context, GroupExchange::GatherOrScatter, bytes, 1, 2, 0});
}

/// Heads are exchanged for tokens: queries, keys, values and the result are ordered by member before they are sent, and
/// by token where they arrive.
void addExchangeCopies(const ModelShape& shape, Layer& layer)
{
    Movements& moved = layer.moved[static_cast<std::size_t>(Movement::Elementwise)];
    for (const AttentionSize& size : layer.attentions) {
        const std::int64_t tokens = size.sequences * size.queries * bytesOf(shape.dataType);
        for (const std::int64_t width : {size.heads * size.querySize, size.keyValueHeads * size.querySize,
                                         size.keyValueHeads * size.valueSize, size.heads * size.valueSize})
            for (int copy = 0; copy < 2; ++copy)
                for (MovedBytes* pass : {&moved.forward, &moved.inputGrad})
                    pass->add(2 * static_cast<double>(tokens * width));
    }
}

void addExpertTraffic(const ModelShape& shape, const ModelShape& member, Layer& layer)
{
    const std::int64_t tokens = member.tokens() / (shape.parallel.sequence ? shape.parallel.tensor : 1);
    const Bytes even = tokens * shape.expertsPerToken * shape.hidden * bytesOf(shape.dataType);
    // What arrives at the fullest copy takes longest.
    const Bytes bytes = std::llround(static_cast<double>(even) * shape.parallel.expertSpread);
    layer.traffic.push_back({GroupAxis::Expert, GroupExchange::AllToAll, bytes, 2, 2, 0});
    if (shape.parallel.nodeDispatch)
        layer.traffic.back().oncePerNode = {shape.experts, shape.expertsPerToken, shape.routerGroups,
                                            shape.routerGroupsPerToken};
}

/// `fault(field, what, hint)` takes what is wrong.
template<class Fault>
void checkFolding(const ModelShape& shape, const Fault& fault)
{
    const Parallelism& p = shape.parallel;
    if (!p.foldedExperts) {
        if (p.data % p.expert == 0)
            return;
        const bool couldFold = shape.experts > 0 && p.devicesPerStage() % p.expert == 0;
        fault("expert", fmt::format("{} data-parallel copies cannot share out experts by {}", p.data, p.expert),
              couldFold
                  ? "use a divisor of the copies, or share them out over all devices of a stage: \"folded_experts\", "
                    "--folded-experts"
                  : "use a divisor of the copies");
        return;
    }
    if (shape.experts == 0)
        fault("folded_experts", "the model has no experts", "leave it out");
    else if (p.members() == 1)
        fault("folded_experts", "there are no tensor- or context-parallel members to fold experts over",
              "leave it out, or use it with such members");
    else if (p.tensor > 1 && !p.sequence)
        fault("folded_experts", "tensor-parallel members have the same tokens, and each would send all of them",
              "use sequence parallelism too, which splits them");
    if (p.devicesPerStage() % p.expert != 0)
        fault("expert",
              fmt::format("{} devices of a stage cannot share out experts by {}", p.devicesPerStage(), p.expert),
              "use a divisor of the tensor-, context- and data-parallel devices together");
}

} // namespace

Diagnostics checkParallelism(const ModelShape& shape)
{
    Diagnostics wrong;
    const Parallelism& p = shape.parallel;
    const auto fault = [&wrong](const char* field, std::string what, std::string hint) {
        wrong.push_back({Severity::Error, std::string("model.parallel.") + field, std::move(what), std::move(hint)});
    };
    constexpr int most = 65'536;
    constexpr std::int64_t mostDevices = 1'000'000;
    for (const auto& [field, degree] :
         {std::pair{"tensor", p.tensor}, {"context", p.context}, {"expert", p.expert}, {"data", p.data}})
        if (degree < 1 || degree > most)
            fault(field, fmt::format("{} is no degree of parallelism", degree), fmt::format("between 1 and {}", most));
    if (!(p.overlap >= 0 && p.overlap <= 1))
        fault("overlap", fmt::format("{} is no share of the exchanges", p.overlap), "between 0, none, and 1, all");
    if (!(p.expertSpread >= 1 && p.expertSpread <= std::max(1, p.expert)))
        fault("expert_spread", fmt::format("{} is not the most tokens of a copy over the mean", p.expertSpread),
              p.expert > 1 ? fmt::format("between 1, even, and {}, all at one copy", p.expert)
                           : "copies have to share out the experts: give expert parallelism too");
    if (p.nodeDispatch && p.expert == 1)
        fault("node_dispatch", "no devices share out experts, so that no token is sent",
              "leave it out, or give expert parallelism too");
    if (!wrong.empty() || p == Parallelism{})
        return wrong;
    if (p.devicesPerStage() == 1 && !p.foldedExperts)
        fault("overlap", "no devices exchange anything that could overlap", "use it with a degree of parallelism");
    if (std::int64_t{p.tensor} * p.context > mostDevices || std::int64_t{p.tensor} * p.context * p.data > mostDevices)
        fault("data", fmt::format("more than {} devices for each of the schedule", mostDevices), "use smaller degrees");
    const bool classifier = shape.architecture == Architecture::Classifier;
    const bool vision = shape.architecture == Architecture::Vision;
    if (classifier && p.tensor > 1)
        fault("tensor", "a classifier has no attention to share out", "use 1");
    const auto divides = [&](const char* field, std::string_view what, std::int64_t size, int degree) {
        if (size % degree != 0)
            fault(field, fmt::format("{} {} cannot be shared out over {} members", size, what, degree),
                  "use a divisor");
    };
    divides("tensor", "heads", shape.heads, p.tensor);
    if (shape.experts == 0 || shape.denseLayers > 0)
        divides("tensor", "columns of the MLP", shape.ffn, p.tensor);
    if (shape.experts > 0 && !p.foldedExperts)
        divides("tensor", "columns of an expert", shape.expertFfn, p.tensor);
    else if (shape.experts > 0)
        divides("tensor", "columns of the shared experts", shape.expertFfn * shape.sharedExperts, p.tensor);
    if (shape.keyValueHeads % p.tensor != 0 && p.tensor % shape.keyValueHeads != 0)
        fault("tensor",
              fmt::format("{} key and value heads can neither be shared out nor doubled over {} members",
                          shape.keyValueHeads, p.tensor),
              "use a divisor or a multiple");
    if (p.sequence && p.tensor == 1)
        fault("sequence", "tokens are split between tensor-parallel members, and there is one",
              "use it with tensor parallelism");
    if (p.context > 1 && (classifier || vision || shape.sequencePieces > 1))
        fault("context",
              shape.sequencePieces > 1 ? "the schedule cuts sequences into pieces already"
                                       : "only texts can be cut into parts",
              "use 1");
    else
        divides(p.sequence ? "sequence" : "context", "tokens of a sequence", shape.sequence,
                p.context * (p.sequence ? p.tensor : 1));
    if (p.expert > 1 && shape.experts == 0)
        fault("expert", "the model has no experts", "use 1");
    else if (p.expert > 1)
        divides("expert", "experts", shape.experts, p.expert);
    checkFolding(shape, fault);
    return wrong;
}

ModelShape memberShape(const ModelShape& shape)
{
    const Parallelism& p = shape.parallel;
    ModelShape member = shape;
    member.parallel = {};
    member.parallel.expertSpread = p.expertSpread; // copies that arrive at the member
    member.heads /= p.tensor;
    member.keyValueHeads = std::max(1, shape.keyValueHeads / p.tensor);
    member.ffn /= p.tensor;
    if (p.foldedExperts) { // the tokens of each expert are split instead
        member.parallel.foldedExperts = true;
        member.parallel.tensor = p.tensor;
    } else
        member.expertFfn /= p.tensor;
    if (shape.architecture != Architecture::Classifier) { // the last part is padded
        const std::int64_t multiple =
            shape.architecture == Architecture::Vision ? 1 : shape.framework.vocabularyMultiple;
        member.vocabulary = (shape.vocabulary + p.tensor * multiple - 1) / (p.tensor * multiple) * multiple;
    }
    member.sequencePieces *= p.context;
    return member;
}

void asMember(const ModelShape& shape, Layer& layer)
{
    const Parallelism& p = shape.parallel;
    if (p == Parallelism{})
        return;
    const ModelShape member = memberShape(shape);
    const bool experts = std::any_of(layer.parameterTensors.begin(), layer.parameterTensors.end(),
                                     [](const LayerParameter& tensor) { return tensor.name == "experts.fc1.weight"; });
    if (experts) {
        layer.expertParameters = shape.experts / p.expert * member.expertElements();
        layer.parameters -= (shape.experts - shape.experts / p.expert) * member.expertElements();
        if (layer.narrowParameters > 0) {
            const std::int64_t elsewhere =
                (shape.experts - shape.experts / p.expert) * 3 * member.hidden * member.expertFfn;
            layer.narrowParameters -= elsewhere;
            layer.narrowExpertParameters = shape.experts / p.expert * 3 * member.hidden * member.expertFfn;
            if (!shape.framework.narrowInputs) { // weights are cast in every pass
                Movements& casts = layer.moved[static_cast<std::size_t>(Movement::Cast)];
                for (MovedBytes* pass : {&casts.forward, &casts.inputGrad})
                    pass->bytes -= castBytes(elsewhere, bytesOf(shape.dataType), shape.products);
            }
        }
        for (ProductSize& product : layer.products)
            product.experts /= p.expert; // fewer, with the tokens of all copies
        if (p.expert > 1) {              // sorted by device before they are sent, and by expert once they are there
            Movements& permuted = layer.moved[static_cast<std::size_t>(Movement::Permutation)];
            for (MovedBytes* pass : {&permuted.forward, &permuted.inputGrad})
                *pass = {2 * pass->bytes, 2 * pass->kernels};
        }
    }
    if (p.tensor > 1)
        addTensorTraffic(shape, member, experts && p.foldedExperts && shape.sharedExperts == 0, layer);
    if (p.context > 1)
        addContextTraffic(shape, member, layer);
    if (p.context > 1 && shape.framework.attentionInBothLayouts)
        addExchangeCopies(shape, layer);
    if (experts && p.expert > 1)
        addExpertTraffic(shape, member, layer);
}

double TokenRouting::otherNodes(int nodes) const
{
    if (nodes < 2 || experts < 1)
        return 0;
    const auto logChoose = [](double from, double count) {
        return std::lgamma(from + 1) - std::lgamma(count + 1) - std::lgamma(from - count + 1);
    };
    /// The chance that none of `chosen` of `all` is among `marked` of them.
    const auto avoids = [&](double all, double marked, double chosen) {
        return marked + chosen > all ? 0 : std::exp(logChoose(all - marked, chosen) - logChoose(all, chosen));
    };
    // Whole groups on a node, or whole nodes within a group; otherwise as if there were no groups.
    const bool known = groups > 1 && (groups % nodes == 0 || nodes % groups == 0);
    const int all = known ? groups : 1, visited = known ? groupsPerToken : 1, onNode = std::max(1, all / nodes);
    const double ofGroup = double(experts) / all, ofNodeInGroup = double(experts) / std::max(all, nodes),
                 reachable = ofGroup * visited;
    double passed = 0; // over
    for (int here = 0; here <= std::min(onNode, visited); ++here) {
        if (visited - here > all - onNode)
            continue;
        const double chance =
            std::exp(logChoose(onNode, here) + logChoose(all - onNode, visited - here) - logChoose(all, visited));
        passed += chance * avoids(reachable, here * ofNodeInGroup, perToken);
    }
    return (nodes - 1) * (1 - passed);
}

std::string textOf(const Parallelism& p)
{
    std::vector<std::string> parts;
    if (p.tensor > 1)
        parts.push_back(fmt::format("tensor {}{}", p.tensor, p.sequence ? " with sequence" : ""));
    if (p.context > 1)
        parts.push_back(fmt::format("context {}", p.context));
    if (p.expert > 1 || p.foldedExperts)
        parts.push_back(
            fmt::format("expert {}{}{}{}", p.expert, p.foldedExperts ? " folded over tensor and context" : "",
                        p.nodeDispatch ? ", tokens once to each node" : "",
                        p.expertSpread > 1 ? fmt::format(", up to {:.3g} times the mean", p.expertSpread) : ""));
    if (p.data > 1)
        parts.push_back(fmt::format("data {}", p.data));
    if (p.overlap > 0)
        parts.push_back(fmt::format("{:.3g} % of exchanges beside computing", 100 * p.overlap));
    return joined(parts, ", ");
}

} // namespace pipewright
