// SPDX-License-Identifier: GPL-3.0-or-later
// The predictor against an independent one, over random designs of every family: times equal to the nanosecond, memory
// to the byte. A failure names the seed of its design: set PIPEWRIGHT_SEED to it to run that one alone.
#include "core/predict/evaluator.h"
#include "core/predict/predict.h"
#include "core/program/compile.h"
#include "core/schedule/weightplan.h"
#include "devicesimulation.h"
#include "randomdesign.h"
#include "sanitized.h"
#include "testmain.h"

#include <QTest>

using namespace pipewright;
using namespace pipewright::test;

namespace {

/// What random designs have, so that a test can see that all of it was there.
enum Feature {
    Replicas,
    Pieces,
    Pairs,
    Updates,
    Workers,
    ShardedStates,
    Scales,
    HostGapsBefore,
    Blocking,
    OneStream,
    Buses,
    BlockingOnBuses,
    SumsOnBuses,
    SharedSumsOnBuses,
    Edits,
    Pins,
    StatedOrders,
    Skips,
    SharedParameters,
    Recomputes,
    Offloads,
    OffloadedPairs,
    PairsWithParts,
    StatedParts,
    SumsOverCopies,
    GatheredAfterUpdates,
    SharedGradients,
    GradientsAfterEach,
    SharedParametersOut,
    FreedAfterVisits,
    StatedGathers,
    OrdersBesideCollectives,
    SharesOfReplicas,
    GradientsOfReplicas,
    ParametersOfReplicas,
    FreedInReplicas,
    features
};
const char* const featureNames[] = {"replicas",
                                    "pieces of sequences",
                                    "overlapped pairs",
                                    "updates",
                                    "workers",
                                    "sharded states",
                                    "uneven microbatches",
                                    "host gaps",
                                    "blocking transfers",
                                    "one stream of transfers",
                                    "buses",
                                    "blocking transfers on buses",
                                    "sums over replicas on buses",
                                    "shared parameters' sums on buses",
                                    "edits",
                                    "pins",
                                    "stated transfer orders",
                                    "skip connections",
                                    "shared parameters",
                                    "recomputes",
                                    "offloads",
                                    "offloads beside pairs",
                                    "pairs with parts",
                                    "stated orders of parts",
                                    "sums over copies",
                                    "updated parameters to gather",
                                    "gradients that copies share out",
                                    "sums over copies after each microbatch",
                                    "parameters that copies share out",
                                    "parameters freed after visits",
                                    "stated gathers",
                                    "stated transfer orders beside collectives",
                                    "optimizer states of replicas",
                                    "gradients of replicas",
                                    "parameters of replicas",
                                    "parameters of replicas freed after visits"};

void note(const Design& design, std::array<int, features>& seen)
{
    const Schedule& s = design.schedule;
    const Program program = compile(s, design.costs, design.dataflow);
    const bool bus = !program.busOfLink.empty();
    const bool offloads = std::any_of(program.tasks.begin(), program.tasks.end(),
                                      [](const Task& task) { return task.kind == TaskKind::Offload; });
    const auto count = [&program](TaskKind kind) {
        return std::count_if(program.tasks.begin(), program.tasks.end(),
                             [kind](const Task& task) { return task.kind == kind; });
    };
    const auto sums = [&program](TaskKind kind) {
        return std::any_of(program.tasks.begin(), program.tasks.end(),
                           [&](const Task& task) { return task.kind == kind && busesOf(program, task).any(); });
    };
    const bool has[features] = {s.replicas() > 1,
                                s.sequencePieces > 1,
                                !s.overlaps.empty(),
                                hasUpdates(s),
                                !s.dataParallelDevices.empty(),
                                s.shardedStates,
                                !design.costs.microbatches.empty(),
                                !design.costs.hostGaps.empty(),
                                design.costs.communication == Communication::Blocking,
                                design.costs.communication == Communication::OneStream,
                                bus,
                                bus && design.costs.communication == Communication::Blocking,
                                sums(TaskKind::ReplicaSum),
                                sums(TaskKind::Reduce),
                                s.family == "custom",
                                !s.pins.empty(),
                                !s.transferOrder.empty(),
                                !design.dataflow.skips.empty(),
                                !design.dataflow.shared.empty(),
                                !s.recompute.empty(),
                                offloads,
                                offloads && !s.overlaps.empty(),
                                !s.overlaps.empty() && design.costs.hasParts(),
                                !s.partOrders.empty(),
                                count(TaskKind::ReduceGradients) > 0,
                                s.zero.level < 3 && count(TaskKind::Gather) > 0,
                                s.zero.level == 2 && s.replicas() == 1,
                                count(TaskKind::ReduceGradients) > s.stages(),
                                s.zero.level == 3 && s.replicas() == 1,
                                s.zero.level == 3 && count(TaskKind::Gather) > s.stages(),
                                !s.gathers.empty() && count(TaskKind::Gather) > 0,
                                !s.transferOrder.empty() && count(TaskKind::ReduceGradients) > 0,
                                s.zero.level == 1 && s.replicas() > 2,
                                s.zero.level == 2 && s.replicas() > 1,
                                s.zero.level == 3 && s.replicas() > 2,
                                s.zero.level == 3 && count(TaskKind::CopyWeightsOut) > s.stages() * s.replicas()};
    for (int f = 0; f < features; ++f)
        seen[static_cast<std::size_t>(f)] += has[f];
}

QString differenceOf(const Program& program, const Timeline& timeline, const DeviceSimulation& simulation)
{
    for (TaskId t = 0; t < program.tasks.size(); ++t)
        if (timeline.start[t] != simulation.start[t] || timeline.end[t] != simulation.end[t])
            return QString("%1 runs from %2 to %3, predicted %4 to %5")
                .arg(QString::fromStdString(program.label(t)))
                .arg(simulation.start[t])
                .arg(simulation.end[t])
                .arg(timeline.start[t])
                .arg(timeline.end[t]);
    return {};
}

/// Does every block begin behind what it needs by definition, and behind the way of what comes from another device?
QString tooEarly(const Design& design, const Program& program, const Timeline& timeline,
                 const DeviceSimulation& simulation)
{
    std::map<Block, TaskId> tasks;
    for (TaskId t = 0; t < program.tasks.size(); ++t)
        if (program.tasks[t].kind == TaskKind::Compute)
            tasks[program.tasks[t].block()] = t;
    const Schedule& s = design.schedule;
    const auto scaled = [&](Bytes bytes, int m) {
        const auto& scales = design.costs.microbatches;
        return scales.empty() ? bytes
                              : static_cast<Bytes>(
                                  std::llround(static_cast<double>(bytes) * scales[static_cast<std::size_t>(m)].bytes));
    };
    QString fault;
    for (const auto& [block, task] : tasks) {
        const auto needs = [&, block = block, task = task](Op op, int stage, Bytes bytes) {
            const auto input = tasks.find({op, stage, block.microbatch, block.replica});
            if (input == tasks.end())
                return;
            const int from = s.deviceOf(input->first), to = s.deviceOf(block);
            const Nanoseconds way = from == to ? 0 : simulation.transferTime(from, to, scaled(bytes, block.microbatch));
            if (timeline.start[task] < timeline.end[input->second] + way)
                fault =
                    QString::fromStdString(toString(block) + " begins before it can have " + toString(input->first));
        };
        const auto output = [&](int stage) {
            return stage < 0 ? 0 : design.costs.stages[static_cast<std::size_t>(stage)].output;
        };
        if (block.op == Op::F) {
            needs(Op::F, block.stage - 1, output(block.stage - 1));
            for (const SkipConnection& skip : design.dataflow.skips)
                if (skip.toStage == block.stage)
                    needs(Op::F, skip.fromStage, skip.bytes);
        } else if (block.op == Op::W) {
            needs(Op::I, block.stage, 0);
        } else if (block.op == Op::R) {
            needs(Op::F, block.stage, 0);
        } else {
            needs(Op::F, block.stage, 0);
            needs(Op::R, block.stage, 0);
            for (const Op op : {Op::B, Op::I}) {
                needs(op, block.stage + 1, output(block.stage));
                for (const SkipConnection& skip : design.dataflow.skips)
                    if (skip.fromStage == block.stage)
                        needs(op, skip.toStage, skip.bytes);
            }
        }
    }
    return fault;
}

/// Is what F read there while R, or a backward that recomputes, has nothing else to begin from, and gone behind it? And
/// what R made while the backward runs?
QString notKept(const Design& design, const Program& program, std::size_t device)
{
    const Schedule& s = design.schedule;
    std::set<BufferId> live;
    const auto holds = [&](BufferKind kind, BufferKind other, int stage, int microbatch) {
        return std::any_of(live.begin(), live.end(), [&](BufferId b) {
            const Buffer& buffer = program.buffers[b];
            return (buffer.kind == kind || buffer.kind == other) && buffer.stage == stage
                   && buffer.microbatch == microbatch && !buffer.skip;
        });
    };
    const auto wants = [&](const Task& task) {
        return s.recomputeOf(task.stage).readsInput() && task.stage > 0
               && design.costs.stages[static_cast<std::size_t>(task.stage) - 1].output > 0;
    };
    const auto& list = program.devices[device].instructions;
    for (std::size_t i = 0; i < list.size(); ++i) {
        const Instruction& instruction = list[i];
        if (instruction.kind == InstructionKind::Free) {
            live.erase(instruction.buffer);
            continue;
        }
        if (instruction.kind != InstructionKind::Send)
            for (const BufferId b : program.writes(instruction.task))
                if (program.buffers[b].device == static_cast<int>(device))
                    live.insert(b);
        const Task& task = program.tasks[instruction.task];
        if (instruction.kind != InstructionKind::Compute)
            continue;
        const QString name = QString::fromStdString(program.label(instruction.task));
        const StageCosts& costs = design.costs.stages[static_cast<std::size_t>(task.stage)];
        const bool inside = s.recomputeOf(task.stage).insideBackward();
        if ((inside ? makesInputGrad(task.op) : task.op == Op::R) && wants(task)
            && !holds(BufferKind::Output, BufferKind::ReceivedOutput, task.stage - 1, task.microbatch()))
            return name + " has nothing to begin from";
        if ((inside ? task.op == Op::W : makesInputGrad(task.op)) && s.overlaps.empty() && wants(task)
            && holds(BufferKind::ReceivedOutput, BufferKind::ReceivedOutput, task.stage - 1, task.microbatch()))
            return name + " runs while its stage's input is still kept";
        if (makesInputGrad(task.op) && costs.recomputedUntilInputGrad > 0
            && !holds(BufferKind::RecomputedUntilInputGrad, BufferKind::RecomputedUntilInputGrad, task.stage,
                      task.microbatch()))
            return name + " misses what the recompute made";
        if (makesWeightGrad(task.op) && costs.recomputedUntilWeightGrad > 0
            && !holds(BufferKind::RecomputedUntilWeightGrad, BufferKind::RecomputedUntilWeightGrad, task.stage,
                      task.microbatch()))
            return name + " misses what the recompute made for the weights";
    }
    return {};
}

QString faultOf(const Design& design, const Prediction& prediction)
{
    DeviceSimulation simulation(prediction.program, design);
    if (!simulation.run())
        return "the simulation comes to a halt";
    if (const QString difference = differenceOf(prediction.program, prediction.timeline, simulation);
        !difference.isEmpty())
        return difference;
    for (std::size_t d = 0; d < prediction.program.devices.size(); ++d) {
        std::string fault;
        const auto [peak, hostPeak] = simulation.peaksOf(d, fault);
        if (const QString missing = notKept(design, prediction.program, d); !missing.isEmpty())
            return missing;
        if (!fault.empty())
            return QString("device %1: %2").arg(d).arg(QString::fromStdString(fault));
        if (hostPeak != prediction.program.devices[d].hostPeakBytes)
            return QString("device %1: a peak of %2 B on the host, predicted %3")
                .arg(d)
                .arg(hostPeak)
                .arg(prediction.program.devices[d].hostPeakBytes);
        if (peak != prediction.program.devices[d].peakBytes || peak != prediction.metrics.devices[d].peakBytes)
            return QString("device %1: a peak of %2 B, predicted %3 and %4")
                .arg(d)
                .arg(peak)
                .arg(prediction.program.devices[d].peakBytes)
                .arg(prediction.metrics.devices[d].peakBytes);
    }
    return tooEarly(design, prediction.program, prediction.timeline, simulation);
}

} // namespace

class OracleTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void randomDesignsRunAsPredicted()
    {
        constexpr unsigned designs = addressSanitized ? 1000 : 3000;
        bool one = false;
        const unsigned given = qEnvironmentVariableIntValue("PIPEWRIGHT_SEED", &one);
        std::array<int, features> seen{};
        unsigned made = 0;
        for (unsigned seed = one ? given : 1; made < (one ? 1 : designs); ++seed) {
            RandomDesign random(seed);
            const std::optional<Design> design = random.make();
            if (!design && one)
                QSKIP("this seed gives no design");
            if (!design)
                continue;
            ++made;
            note(*design, seen);
            const auto told = [&](const QString& fault) {
                return QString("seed %1 (%2): %3").arg(seed).arg(QString::fromStdString(design->name), fault).toUtf8();
            };
            const Prediction prediction = predict(*design);
            const QString fault = faultOf(*design, prediction);
            QVERIFY2(fault.isEmpty(), told(fault).constData());

            Design other = *design;
            random.changeTimes(other.costs);
            Timeline timeline;
            Evaluator(prediction.program, other.costs).evaluate(timeline);
            DeviceSimulation simulation(prediction.program, other);
            QVERIFY2(simulation.run(), told("the simulation with other times comes to a halt").constData());
            const QString difference = differenceOf(prediction.program, timeline, simulation);
            QVERIFY2(difference.isEmpty(), told("with other times: " + difference).constData());
        }
        for (int f = 0; !one && f < features; ++f)
            QVERIFY2(seen[static_cast<std::size_t>(f)] >= 10,
                     qPrintable(QString("%1: %2 designs").arg(featureNames[f]).arg(seen[static_cast<std::size_t>(f)])));
    }
};

PIPEWRIGHT_TEST(OracleTest, NoApplication)
#include "tst_oracle.moc"
