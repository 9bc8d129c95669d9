// SPDX-License-Identifier: GPL-3.0-or-later
// The MLP of a layer: plain, gated, or experts with their router.
#include "core/model/modelbuilder.h"

#include <algorithm>

namespace pipewright {

int ModelBuilder::gated(const std::string& name, const std::string& part, int gate, int factor)
{
    if (m_shape.activation == Activation::ClampedSilu) // one function of both halves
        return apply(name + ".product", "clamped_silu", {gate, factor}, part, Width::Own);
    const std::string made = name + "." + std::string(activation());
    return apply(name + ".product", "multiply", {apply(made, activation(), {gate}, part, Width::Own), factor}, part,
                 Width::Own);
}

int ModelBuilder::mlp(const MlpNames& names, int x, std::int64_t width, bool isGated, bool bias)
{
    // The gate first: the two are one matrix, whose rows are in this order.
    const int gate = isGated ? linear({names.nodes + ".gate", names.up, m_shape.hidden, width, bias}, x) : -1;
    int inner = linear({names.nodes + ".up", names.up, m_shape.hidden, width, bias}, x);
    if (isGated)
        inner = gated(names.nodes, names.activation, gate, inner);
    else
        inner =
            apply(names.nodes + "." + std::string(activation()), activation(), {inner}, names.activation, Width::Own);
    return linear({names.nodes + ".down", names.down, width, m_shape.hidden, bias, Width::Model, Start::Residual},
                  inner);
}

// Every token is copied to `expertsPerToken` experts; shared experts, together one MLP, read the token where it is.
int ModelBuilder::experts(int x)
{
    const std::int64_t e = m_shape.experts, f = m_shape.expertFfn, h = m_shape.hidden,
                       tokens = m_shape.sequence / m_shape.sequencePieces;
    const std::int64_t slots = std::max<std::int64_t>(1, (tokens * m_shape.expertsPerToken + e - 1) / e);
    Attributes routing{{"top_k", double(m_shape.expertsPerToken)}, {"capacity", double(slots)}};
    if (m_shape.routerScore == RouterScore::Sigmoid)
        routing["sigmoid"] = 1;
    if (m_shape.routerGroups > 1) {
        routing["groups"] = m_shape.routerGroups;
        routing["groups_per_token"] = m_shape.routerGroupsPerToken;
    }
    if (!m_shape.routerNormalised)
        routing["unnormalised"] = 1;
    if (m_shape.parallel.expertSpread != 1)
        routing["spread"] = m_shape.parallel.expertSpread;
    if (m_shape.routerScale != 1)
        routing["scale"] = m_shape.routerScale;
    if (m_shape.routerBalance != 0)
        routing["balance"] = m_shape.routerBalance;
    const int logits = linear({.name = "router",
                               .part = "router",
                               .inputs = h,
                               .outputs = e,
                               .bias = m_shape.routerBias && m_shape.expertBias,
                               .wide = true},
                              x);
    std::vector<int> routed{logits};
    if (m_shape.routerBias && !m_shape.expertBias) { // added for the choice of experts alone, without a gradient
        routed.push_back(parameter("router.correction", {e}, "router.correction", Start::Zero));
        m_graph.describeParameter(routed.back(), "router.correction", Start::Zero, false);
    }
    const int weights = apply("route", "route", std::move(routed), "router", Width::Own, std::move(routing));
    const int sent = apply("dispatch", "dispatch", {weights, x}, "experts", Width::Own);
    // A tensor-parallel member with whole experts routes and sends its own tokens alone.
    const int members = m_shape.parallel.foldedExperts ? m_shape.parallel.tensor : 1;
    const auto product = [&](const std::string& name, const char* part, int from, std::int64_t inputs,
                             std::int64_t outputs, Start start) {
        std::vector<int> operands{
            from, parameter(name + ".weight", {e, outputs, inputs}, std::string(part) + ".weight", start)};
        if (m_shape.expertBias)
            operands.push_back(parameter(name + ".bias", {e, outputs}, std::string(part) + ".bias", Start::Zero));
        return narrowed(apply(name, "expert_linear", std::move(operands), part, Width::Own));
    };
    const int gate = product("experts.gate", "experts.fc1", sent, h, f, Start::Normal);
    const int up = product("experts.up", "experts.fc1", sent, h, f, Start::Normal);
    const int down =
        product("experts.down", "experts.fc2", gated("experts", "experts", gate, up), f, h, Start::Residual);
    for (int tensor = logits; tensor <= down; ++tensor)
        if (m_graph.node(tensor).leaf == Leaf::None)
            m_graph.describeTokensOver(tensor, members);
    const int combined = apply("combine", "combine", {weights, down}, "experts", Width::Model);
    if (m_shape.sharedExperts == 0)
        return combined;
    const int shared = mlp({"shared", "shared.fc1", "shared", "shared.fc2"}, x, f * m_shape.sharedExperts / members,
                           true, m_shape.expertBias);
    return apply("add.shared", "add", {combined, shared}, {}, Width::Model);
}

} // namespace pipewright
