// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/spmd/spmdrun.h"

#include "executor/spmd/deviceactor.h"
#include "executor/spmd/nodemaths.h"
#include "executor/spmd/propertycheck.h"
#include "executor/training/counterrandom.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <thread>

namespace pipewright::spmd {

namespace {

void throwUnlessRunnable(const TensorGraph& graph)
{
    if (Diagnostics found = whyNotRunnable(graph); !found.empty())
        throw Error(std::move(found));
}

/// Of a leaf that holds whole numbers: how many there are to choose from. 0: it holds any.
std::int64_t classesOf(const TensorGraph& graph, int leaf)
{
    for (const Node& node : graph.nodes()) {
        if (node.leaf != Leaf::None)
            continue;
        const std::string_view name = operations()[static_cast<std::size_t>(node.operation)].name;
        if (name == "embedding" && node.operands[0] == leaf)
            return graph.node(node.operands[1]).shape[0];
        if (name == "cross_entropy" && node.operands[1] == leaf)
            return graph.node(node.operands[0]).shape.back();
    }
    return 0;
}

void collect(const SpmdProgram& program, const TensorGraph& graph,
             const std::vector<std::unique_ptr<DeviceActor>>& actors, SpmdRun& run)
{
    const Property loss = program.instructions.back().after;
    run.loss = 0;
    for (std::size_t d = 0; d < actors.size(); ++d)
        if (loss.relation.kind == RelationKind::Reduce || d == 0)
            run.loss += actors[d]->value(loss).data.front();
    run.gradients.clear();
    for (const auto& [property, gradient] : actors.front()->parameterGradients()) {
        if (graph.node(property.tensor).leaf != Leaf::Parameter)
            continue;
        std::vector<const HostTensor*> held;
        for (const auto& actor : actors)
            held.push_back(&actor->parameterGradients().at(property));
        run.gradients[property.tensor] =
            property.relation.kind == RelationKind::Gather ? joined(held, property.relation.dim) : gradient;
    }
}

} // namespace

LeafValues randomLeaves(const TensorGraph& graph, std::uint64_t seed)
{
    LeafValues leaves;
    for (int t = 0; t < graph.size(); ++t) {
        const Node& node = graph.node(t);
        if (node.leaf == Leaf::None)
            continue;
        HostTensor value(node.shape);
        const CounterRandom random(seed, node.name);
        const std::int64_t classes = classesOf(graph, t);
        // Weights are scaled so that activations keep their size; vectors are gains and biases near 1.
        const bool weight = node.leaf == Leaf::Parameter && node.shape.size() > 1;
        const double size = weight ? 1 / std::sqrt(static_cast<double>(node.shape.back())) : 1;
        for (std::size_t i = 0; i < value.elements(); ++i)
            value.data[i] = classes > 0 ? static_cast<float>(random.bits(i) % static_cast<std::uint64_t>(classes))
                                        : static_cast<float>(size * random.normal(i));
        leaves[t] = std::move(value);
    }
    return leaves;
}

SingleRun runSingle(const TensorGraph& graph, const LeafValues& leaves)
{
    throwUnlessRunnable(graph);
    SingleRun run;
    const auto operandsOf = [&run](const Node& node) {
        Operands operands;
        for (const int operand : node.operands)
            operands.push_back(&run.values[static_cast<std::size_t>(operand)]);
        return operands;
    };
    run.values.reserve(static_cast<std::size_t>(graph.size()));
    for (int t = 0; t < graph.size(); ++t)
        run.values.push_back(graph.node(t).leaf == Leaf::None ? forward(graph.node(t), operandsOf(graph.node(t)))
                                                              : leaves.at(t));
    run.loss = run.values.back().data.front();
    std::vector<HostTensor> gradients;
    for (const HostTensor& value : run.values)
        gradients.emplace_back(value.shape);
    gradients.back().data.front() = 1;
    for (int t = graph.size() - 1; t >= 0; --t) {
        const Node& node = graph.node(t);
        if (node.leaf == Leaf::Parameter)
            run.gradients[t] = gradients[static_cast<std::size_t>(t)];
        if (node.leaf != Leaf::None)
            continue;
        auto found = backward(node, operandsOf(node), run.values[static_cast<std::size_t>(t)],
                                    gradients[static_cast<std::size_t>(t)]);
        for (std::size_t o = 0; o < found.size(); ++o)
            if (graph.node(node.operands[o]).leaf != Leaf::Input) {
                accumulate(gradients[static_cast<std::size_t>(node.operands[o])], found[o]);
                run.shares[{t, static_cast<int>(o)}] = std::move(found[o]);
            }
    }
    return run;
}

SpmdRun runProgram(const Theory& theory, const SpmdProgram& program, const LeafValues& leaves,
                   const SpmdRunOptions& options)
{
    throwUnlessRunnable(theory.graph());
    const int devices = theory.machine().devices();
    Exchange exchange(devices);
    std::vector<std::unique_ptr<DeviceActor>> actors;
    for (int d = 0; d < devices; ++d)
        actors.push_back(std::make_unique<DeviceActor>(d, theory, leaves, exchange, options));
    SpmdRun run;
    const auto work = [&](int device) {
        DeviceActor& actor = *actors[static_cast<std::size_t>(device)];
        for (int step = 0; step < options.steps; ++step) {
            actor.begin();
            exchange.wait();
            const auto from = std::chrono::steady_clock::now();
            actor.startClock();
            for (const Instruction& instruction : program.instructions)
                actor.forward(instruction);
            actor.backwardStart(program.instructions.back().after);
            for (auto instruction = program.instructions.rbegin(); instruction != program.instructions.rend();
                 ++instruction)
                actor.backward(*instruction);
            actor.finish();
            exchange.wait();
            if (device == 0)
                run.stepSeconds.push_back(
                    std::chrono::duration<double>(std::chrono::steady_clock::now() - from).count());
        }
    };
    {
        std::vector<std::jthread> threads;
        for (int d = 0; d < devices; ++d)
            threads.emplace_back(work, d);
    }
    collect(program, theory.graph(), actors, run);
    if (options.check)
        checkProperties(theory.graph(), program, actors, options, run);
    return run;
}

double gradientError(const SpmdRun& run, const SingleRun& single)
{
    const auto largestOf = [](const HostTensor& tensor) {
        double largest = 0;
        for (const float value : tensor.data)
            largest = std::max(largest, std::abs(static_cast<double>(value)));
        return largest;
    };
    double scale = 0, worst = 0;
    for (const auto& [parameter, gradient] : single.gradients)
        scale = std::max(scale, largestOf(gradient));
    for (const auto& [parameter, gradient] : single.gradients) {
        const auto found = run.gradients.find(parameter);
        if (found == run.gradients.end())
            return std::numeric_limits<double>::infinity();
        // Some are nothing but rounding, such as a key's bias, to which a softmax is blind.
        const double own = std::max(largestOf(gradient), 1e-6);
        worst = std::max(worst, difference(found->second, gradient) * own / std::max(own, 1e-3 * scale));
    }
    return worst;
}

} // namespace pipewright::spmd
