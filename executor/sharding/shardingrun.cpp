// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/sharding/shardingrun.h"

#include "core/design/passparts.h"
#include "core/program/compile.h"
#include "core/program/memberprogram.h"
#include "executor/host/hostbackend.h"
#include "executor/runtime/runtime.h"
#include "executor/runtime/timedwork.h"
#include "executor/sharding/drydevice.h"
#include "executor/sharding/grouptraining.h"
#include "executor/sharding/onedevice.h"
#include "executor/sharding/runnablegraph.h"
#include "executor/stage/counterrandom.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

namespace pipewright::sharding {

namespace {

constexpr Nanoseconds longestPart = 600'000'000'000; // limit for a part of a step at an emulated rate

/// For a leaf with whole numbers: how many values they can have. 0: it holds any numbers.
std::int64_t classesOf(const TensorGraph& graph, int leaf)
{
    for (const Node& node : graph.nodes()) {
        if (node.leaf != Leaf::None)
            continue;
        const std::string_view name = operations()[node.operation].name;
        if ((name == "embedding" || name == "feature_bag") && node.operands[0] == leaf)
            return graph.node(node.operands[1]).shape[0];
        if (name == "cross_entropy" && node.operands[1] == leaf)
            return graph.node(node.operands[0]).shape.back();
    }
    return 0;
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

/// Leaves by their own names; parameters stay as they are.
class LeafModel final : public GroupModel {
public:
    LeafModel(const TensorGraph& graph, const LeafValues& leaves) : m_graph(graph), m_leaves(leaves) {}

    std::string nameOf(std::size_t, const Node& parameter) const override { return parameter.name; }
    WholeTensors parameters() const override
    {
        WholeTensors tensors;
        for (const auto& [leaf, value] : m_leaves)
            tensors.emplace(m_graph.node(leaf).name, value);
        return tensors;
    }
    void beginStep(int) override {}
    const HostTensor& data(const Node& leaf, int) const override { return m_leaves.at(m_graph.find(leaf.name)); }
    float lossWeight() const override { return 1; }
    bool learns() const override { return false; }

private:
    const TensorGraph& m_graph;
    const LeafValues& m_leaves;
};

/// The program as the one stage of a pipeline: a forward and a backward of one microbatch, in fp32.
struct LonePipeline {
    GroupStages stages;
    MemberProgram members;

    LonePipeline(const Theory& theory, const ShardingProgram& program, Backend& backend)
    {
        SharedStage& stage = stages.plans.emplace_back(SharedStage{theory.graph(), theory.machine(), {}});
        stage.graph.bytesPerElement = sizeof(float);
        stage.plan.program = program;
        stage.plan.ratios = theory.ratios();
        const int devices = theory.machine().devices();
        stages.membersOfDevice = {devices};
        stages.linkInside.resize(1);
        stages.perReplica = 1;
        stages.deviceOfCopy = {0};
        GroupStage& parts = stages.stages.emplace_back();
        parts.passes = plannedPasses(stage);
        parts.passes[indexOf(Op::U)].parts.emplace_back(static_cast<std::size_t>(devices), 0);
        parts.members.resize(static_cast<std::size_t>(devices));
        measureMembers(stages, 0, {}, {.backend = &backend});
        Schedule schedule;
        schedule.microbatches = 1;
        schedule.deviceOfStage = {0};
        schedule.order = {{Block{Op::F}, Block{Op::B}}};
        Costs costs;
        costs.stages.resize(1);
        takeFullestMembers(stages, costs);
        members = memberProgram(compile(schedule, costs), stages, costs, schedule.transferOrder);
    }
};

/// Seconds of each timed step, without the step that warms up.
std::vector<double> timed(Runtime& runtime, const ShardingRunOptions& options, double* loss = nullptr)
{
    std::vector<double> seconds;
    for (int step = options.warmUp ? -1 : 0; step < options.steps; ++step) {
        const StepOutcome outcome = runtime.runStep(step + (options.warmUp ? 1 : 0));
        if (step >= 0)
            seconds.push_back(static_cast<double>(outcome.end - outcome.start) * 1e-9);
        if (loss)
            *loss = outcome.loss;
    }
    return seconds;
}

} // namespace

ShardingRun runProgram(const Theory& theory, const ShardingProgram& program, const LeafValues& leaves,
                       const ShardingRunOptions& options)
{
    if (Diagnostics found = whyNotRunnable(theory.graph()); !found.empty())
        throw Error(std::move(found));
    const int devices = theory.machine().devices();
    const auto host = options.backend ? nullptr : createHostBackend(devices);
    Backend& backend = options.backend ? *options.backend : *host;
    if (backend.devices() < devices)
        throw Error("devices", fmt::format("the program is for {}, and there are {}", devices, backend.devices()),
                    "run it on as many");
    const LonePipeline pipeline(theory, program, backend);
    const Program& members = pipeline.members.program;
    RuntimeOptions runtimeOptions;
    runtimeOptions.deadline = longestPart;
    ShardingRun run;
    if (options.emulateSpeed) {
        TimedWork work(pipeline.members.durations, TimedWork::Pace::Sleep);
        Runtime runtime(members, backend, work, nullptr, runtimeOptions);
        run.stepSeconds = timed(runtime, options);
        return run;
    }
    GroupTraining work(std::make_unique<LeafModel>(theory.graph(), leaves), pipeline.stages, {});
    Runtime runtime(members, backend, work, nullptr, runtimeOptions);
    for (std::size_t d = 0; d < options.observers.size(); ++d)
        work.watch(static_cast<int>(d), *options.observers[d]);
    run.stepSeconds = timed(runtime, options, &run.loss);
    work.fetch(BufferKind::Gradients);
    for (const auto& [name, gradient] : work.gradients())
        run.gradients[theory.graph().find(name)] = gradient;
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
        // Some gradients are only rounding, such as that of a key's bias, which does not change a softmax.
        const double own = std::max(largestOf(gradient), 1e-6);
        worst = std::max(worst, difference(found->second, gradient) * own / std::max(own, 1e-3 * scale));
    }
    return worst;
}

} // namespace pipewright::sharding
