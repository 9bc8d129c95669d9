// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/sharding/shardingrun.h"

#include "executor/host/hostbackend.h"
#include "executor/runtime/devicethreads.h"
#include "executor/sharding/nodemaths.h"
#include "executor/sharding/onedevice.h"
#include "executor/sharding/programmember.h"
#include "executor/sharding/propertycheck.h"
#include "executor/training/counterrandom.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

namespace pipewright::sharding {

namespace {

/// Of a leaf that holds whole numbers: how many there are to choose from. 0: it holds any.
std::int64_t classesOf(const TensorGraph& graph, int leaf)
{
    for (const Node& node : graph.nodes()) {
        if (node.leaf != Leaf::None)
            continue;
        const std::string_view name = operations()[node.operation].name;
        if (name == "embedding" && node.operands[0] == leaf)
            return graph.node(node.operands[1]).shape[0];
        if (name == "cross_entropy" && node.operands[1] == leaf)
            return graph.node(node.operands[0]).shape.back();
    }
    return 0;
}

void collect(const ShardingProgram& program, const TensorGraph& graph,
             const std::vector<std::unique_ptr<ProgramMember>>& actors, ShardingRun& run)
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
    const auto host = createHostBackend(1);
    MemberDevice member(host->device(0));
    OneDevice device(member, graph, leaves);
    device.step();
    return device.result();
}

namespace {

/// The whole program as a stage of its own.
SharedStage stageOf(const Theory& theory, const ShardingProgram& program)
{
    SharedStage stage{theory.graph(), theory.machine(), {}};
    stage.plan.program = program;
    stage.plan.ratios = theory.ratios();
    return stage;
}

/// What one run is made of, and the threads that do it.
class Devices {
public:
    Devices(const Theory& theory, const ShardingProgram& program, const LeafValues& leaves,
            const ShardingRunOptions& options)
        : m_program(program), m_options(options), m_stage(stageOf(theory, program)),
          m_started(static_cast<std::size_t>(theory.machine().devices()))
    {
        const int devices = theory.machine().devices();
        if (!options.backend)
            m_host = createHostBackend(devices);
        Backend& backend = options.backend ? *options.backend : *m_host;
        if (backend.devices() < devices)
            throw Error("devices", fmt::format("the program is for {}, and there are {}", devices, backend.devices()),
                        "run it on as many");
        std::vector<MemberDevice*> members;
        for (int d = 0; d < devices; ++d)
            members.push_back(m_members.emplace_back(std::make_unique<MemberDevice>(backend.device(d))).get());
        m_collectives = createCollectives(members, backend.createCommunicators());
        for (int d = 0; d < devices; ++d)
            m_actors.push_back(
                std::make_unique<ProgramMember>(d, *members[d], theory, m_stage, leaves, *m_collectives, options));
    }

    const std::vector<std::unique_ptr<ProgramMember>>& actors() const { return m_actors; }

    /// Seconds of every timed step.
    std::vector<double> run()
    {
        onDeviceThreads(
            m_actors.size(), [this](std::size_t d) { runDevice(d); }, [this](std::size_t) { m_collectives->fail(); });
        return std::move(m_stepSeconds);
    }

private:
    void runDevice(std::size_t device)
    {
        try {
            for (int step = m_options.warmUp ? -1 : 0; step < m_options.steps; ++step) {
                const double seconds = this->step(device);
                if (device == 0 && step >= 0)
                    m_stepSeconds.push_back(seconds);
            }
            m_actors[device]->fetch(m_program.instructions.back().after);
        } catch (const Stopped&) { // because of another
        }
    }

    /// Seconds from the first device's start to the last one's end.
    double step(std::size_t device)
    {
        ProgramMember& actor = *m_actors[device];
        m_collectives->wait();
        m_started[device] = ProgramMember::Clock::now();
        actor.startClock(m_started[device]);
        actor.step();
        actor.finish();
        m_collectives->wait();
        const auto first = *std::min_element(m_started.begin(), m_started.end());
        return std::chrono::duration<double>(ProgramMember::Clock::now() - first).count();
    }

    const ShardingProgram& m_program;
    const ShardingRunOptions& m_options;
    SharedStage m_stage;
    std::unique_ptr<Backend> m_host;
    std::vector<std::unique_ptr<MemberDevice>> m_members;
    std::unique_ptr<MemberCollectives> m_collectives;
    std::vector<std::unique_ptr<ProgramMember>> m_actors;
    std::vector<ProgramMember::Clock::time_point> m_started; ///< of each device, its step
    std::vector<double> m_stepSeconds;
};

} // namespace

ShardingRun runProgram(const Theory& theory, const ShardingProgram& program, const LeafValues& leaves,
                       const ShardingRunOptions& options)
{
    if (Diagnostics found = whyNotRunnable(theory.graph()); !found.empty())
        throw Error(std::move(found));
    Devices devices(theory, program, leaves, options);
    ShardingRun run;
    run.stepSeconds = devices.run();
    collect(program, theory.graph(), devices.actors(), run);
    if (options.check)
        checkProperties(theory.graph(), program, devices.actors(), options, run);
    return run;
}

double gradientError(const ShardingRun& run, const SingleRun& single)
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

} // namespace pipewright::sharding
