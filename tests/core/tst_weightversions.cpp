// SPDX-License-Identifier: GPL-3.0-or-later
// Update blocks in a schedule: who reads which version, how stale it is, what is kept and sent, and when blocks run.
#include <QTest>

#include "core/formats/designfile.h"
#include "core/formats/locateddesign.h"
#include "core/predict/evaluator.h"
#include "core/program/compile.h"
#include "core/program/deadlock.h"
#include "core/program/weightreport.h"
#include "core/schedule/families/workers.h"
#include "core/schedule/validate.h"
#include "core/schedule/weightrules.h"
#include "schedules.h"

#include <map>
#include <set>

using namespace pipewright;

namespace {

/// F = B = 1 ms, as the published timetables have it.
Costs tickCosts(int stages)
{
    Costs costs = test::unitCosts(stages);
    for (StageCosts& stage : costs.stages) {
        stage.forward = stage.backward = 1'000'000;
        stage.inputGrad = stage.weightGrad = 500'000;
        stage.parameters = stage.gradients = 1000;
    }
    return costs;
}

FamilyParameters parametersOf(int devices, int microbatches)
{
    FamilyParameters p;
    p.devices = devices;
    p.microbatches = microbatches;
    p.inputGrad = p.weightGrad = 500'000;
    return p;
}

FamilyParameters workersOn(WorkerLayout layout, int n, int steps, bool cyclic)
{
    FamilyParameters p = parametersOf(devicesOf(layout, n, cyclic), n * steps);
    p.layout = layout;
    p.workers = n;
    if (layout == WorkerLayout::Workers || layout == WorkerLayout::Sharded)
        for (Nanoseconds* time : {&p.forward, &p.inputGrad, &p.weightGrad})
            *time *= n; // of a device's worth of layers
    return p;
}

struct Compiled {
    explicit Compiled(Schedule s) : schedule(std::move(s)), costs(tickCosts(schedule.stages())), program(compile(schedule, costs))
    {
        Evaluator(program, costs).evaluate(timeline);
        for (TaskId t = 0; t < program.tasks.size(); ++t)
            if (program.tasks[t].kind == TaskKind::Compute || (program.tasks[t].kind == TaskKind::Update && program.tasks[t].peer < 0))
                taskOf[program.tasks[t].block()] = t;
    }
    int tick(const std::string& block) const { return static_cast<int>(timeline.start[taskOf.at(test::block(block))] / 1'000'000); }
    int tick(Op op, int stage, int microbatch) const
    {
        const Nanoseconds start = timeline.start[taskOf.at(Block{op, stage, microbatch})];
        return start % 1'000'000 == 0 ? static_cast<int>(start / 1'000'000) : -1;
    }
    WeightUse use(Op op, int stage, int microbatch) const { return program.weights[taskOf.at(Block{op, stage, microbatch})]; }

    Schedule schedule;
    Costs costs;
    Program program;
    Timeline timeline;
    std::map<Block, TaskId> taskOf;
};

/// The most that a device holds of weights and gradients at once, in units of a stage's.
int weightsAndGradients(const Program& program, int device)
{
    const auto units = [&](BufferId id) {
        const Buffer& buffer = program.buffers[id];
        switch (buffer.kind) {
        case BufferKind::Parameters:
        case BufferKind::Gradients:
        case BufferKind::WeightVersion:
        case BufferKind::SentWeights:
        case BufferKind::ReceivedWeights:
        case BufferKind::PartialGradient:
        case BufferKind::ReceivedPartialGradient: return buffer.device == device ? 1 : 0;
        default: return 0;
        }
    };
    int live = 0, most = 0;
    for (BufferId id = 0; id < program.buffers.size(); ++id)
        if (program.buffers[id].kind == BufferKind::Parameters || program.buffers[id].kind == BufferKind::Gradients)
            live += units(id);
    for (const Instruction& instruction : program.devices[static_cast<std::size_t>(device)].instructions) {
        if (instruction.kind == InstructionKind::Free) {
            live -= instruction.buffer == none ? 0 : units(instruction.buffer);
            continue;
        }
        for (const BufferId id : program.writes(instruction.task))
            live += units(id);
        most = std::max(most, live);
    }
    return most;
}

Compiled family(std::string_view name, const FamilyParameters& p) { return Compiled(makeSchedule(name, p)); }

} // namespace

class tst_weightversions : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void asynchronous1F1BKeepsItsTimetable();
    void versionPairsAsPublished();
    void stalenessStepsAndCopies();
    void stashedForwardAndBackwardAgree();
    void cyclicTimetable();
    void cyclicFreshness();
    void cyclicCounts();
    void cyclicMemory();
    void gradientsPassFromWorkerToWorker();
    void shardedStatesHop();
    void noSlackIsExposedTransfer();
    void olderVersionsAreBuffers();
    void refusals_data();
    void refusals();
    void badPoliciesAreRefused();
    void designsKeepTheirPolicy();
    void xpipeSteps();
};

void tst_weightversions::asynchronous1F1BKeepsItsTimetable()
{
    for (int depth = 1; depth <= 6; ++depth) {
        const int q = 3 * depth;
        const Compiled run = family("pipeoptim", parametersOf(depth, q));
        for (int k = 0; k < depth; ++k)
            for (int i = 1; i <= q; ++i) {
                const int backward = 2 * depth - 1 - k + 2 * (i - 1);
                QCOMPARE(run.tick(Op::B, k, i - 1), backward);
                QCOMPARE(run.tick(Op::F, k, i - 1), i <= depth - k ? k + i - 1 : 2 * depth - 1 - k + 2 * (i - (depth - k) - 1) + 1);
                QCOMPARE(run.tick(Op::U, k, i - 1), backward + 1);
            }
    }
}

void tst_weightversions::versionPairsAsPublished()
{
    // (version of the forward, version of the backward), where both read the newest there is.
    for (int depth = 1; depth <= 6; ++depth) {
        const Compiled run = family("async-1f1b", parametersOf(depth, 4 * depth));
        for (int k = 0; k < depth; ++k)
            for (int q = 0; q < 4 * depth; ++q) {
                const int lag = std::min(q, depth - 1 - k);
                QCOMPARE(run.use(Op::F, k, q).version, q - lag);
                QCOMPARE(run.use(Op::B, k, q).version, q);
                QCOMPARE(run.use(Op::F, k, q).staleness(), lag);
                QCOMPARE(run.use(Op::B, k, q).staleness(), 0);
                const Compiled& again = run;
                QCOMPARE(again.use(Op::U, k, q).update, q);
            }
    }
}

void tst_weightversions::stalenessStepsAndCopies()
{
    const auto column = [](const std::vector<StageWeights>& report, auto field) {
        std::vector<int> values;
        for (const StageWeights& stage : report)
            values.push_back(stage.*field);
        return values;
    };
    using V = std::vector<int>;
    FamilyParameters p = parametersOf(4, 32);
    const auto report = [&](std::string_view name) { return weightReport(family(name, p).program); };
    QCOMPARE(column(report("async-1f1b"), &StageWeights::staleness), (V{3, 2, 1, 0}));
    QCOMPARE(column(report("async-1f1b"), &StageWeights::copies), (V{1, 1, 1, 1}));
    QCOMPARE(column(report("async-1f1b"), &StageWeights::inFlight), (V{4, 3, 2, 1}));
    QCOMPARE(column(report("pipedream"), &StageWeights::versions), (V{4, 3, 2, 1}));
    QCOMPARE(column(report("pipedream-2bw"), &StageWeights::versions), (V{2, 2, 2, 2}));
    QCOMPARE(column(report("pipedream-2bw"), &StageWeights::staleness), (V{1, 1, 1, 1}));
    QCOMPARE(column(report("spectrain"), &StageWeights::forwardSteps), (V{3, 2, 2, 1}));
    QCOMPARE(column(report("spectrain"), &StageWeights::backwardSteps), (V{0, 0, 1, 1}));
    QCOMPARE(column(report("spectrain"), &StageWeights::copies), (V{2, 2, 2, 2}));
    QCOMPARE(column(report("pipeoptim"), &StageWeights::forwardSteps), (V{3, 2, 1, 0}));
    QCOMPARE(column(report("pipeoptim"), &StageWeights::backwardSteps), (V{0, 0, 0, 0}));
    QCOMPARE(column(report("pipeoptim"), &StageWeights::copies), (V{2, 2, 2, 1}));
    QCOMPARE(column(report("pipeoptim"), &StageWeights::inFlight), (V{4, 3, 2, 1}));
    p.weights.steps = PredictionSteps::Code;
    QCOMPARE(column(report("pipeoptim"), &StageWeights::forwardSteps), (V{4, 3, 2, 1}));
    p.weights.steps = PredictionSteps::Exact;
    const Compiled exact = family("pipeoptim", p);
    for (int k = 0; k < 4; ++k)
        for (int q = 0; q < 32; ++q)
            QCOMPARE(exact.use(Op::F, k, q).steps, std::min(q, 3 - k));
    for (const int depth : {2, 3, 8}) {
        const auto wide = weightReport(family("spectrain", parametersOf(depth, 3 * depth)).program);
        for (int k = 0; k < depth; ++k) {
            QCOMPARE(wide[size_t(k)].forwardSteps, k / 2 + depth - k - 1);
            QCOMPARE(wide[size_t(k)].backwardSteps, k / 2);
        }
    }
    FamilyParameters second = parametersOf(4, 32);
    second.weights.specTrain = 2; // the forward's prediction is kept for every microbatch in flight
    QCOMPARE(column(weightReport(family("spectrain", second).program), &StageWeights::copies), (V{5, 4, 3, 2}));
}

void tst_weightversions::stashedForwardAndBackwardAgree()
{
    for (const bool vertical : {false, true}) {
        FamilyParameters p = parametersOf(4, 16);
        p.weights.verticalSync = vertical;
        const Compiled run = family("pipedream", p);
        for (int k = 0; k < 4; ++k)
            for (int q = 0; q < 16; ++q) {
                QCOMPARE(run.use(Op::F, k, q).version, run.use(Op::B, k, q).version);
                if (vertical)
                    QCOMPARE(run.use(Op::F, k, q).version, run.use(Op::F, 0, q).version);
            }
    }
    const Compiled predicted = family("pipeoptim", parametersOf(4, 16));
    for (int k = 0; k < 4; ++k)
        for (int q = 0; q < 16; ++q)
            QCOMPARE(predicted.use(Op::B, k, q).version, q);
}

void tst_weightversions::cyclicTimetable()
{
    for (int n = 1; n <= 5; ++n)
        for (const char* name : {"cdp-v1", "cdp-v2"})
            for (const WorkerLayout layout : {WorkerLayout::Pipeline, WorkerLayout::Workers, WorkerLayout::Triangle, WorkerLayout::Sharded}) {
                const int steps = 4;
                const Compiled run = family(name, workersOn(layout, n, steps, true));
                std::map<std::pair<int, int>, std::set<int>> occupants; // tick, stage
                for (int t = 0; t < steps; ++t)
                    for (int i = 0; i < n; ++i)
                        for (int j = 0; j < n; ++j) {
                            const int forward = 2 * n * t + 2 * i + j, backward = 2 * n * t + 2 * i + 2 * n - 1 - j;
                            QCOMPARE(run.tick(Op::F, j, t * n + i), forward);
                            QCOMPARE(run.tick(Op::B, j, t * n + i), backward);
                            QVERIFY((occupants[{forward, j}].insert(i).second));
                            QVERIFY((occupants[{backward, j}].insert(i).second));
                        }
                for (int tau = 2 * (n - 1); tau < 2 * n * steps; ++tau)
                    for (int j = 0; j < n; ++j) {
                        const int worker = ((tau - j) % 2 == 0 ? (tau - j) / 2 : (tau + j + 1) / 2) % n;
                        QCOMPARE((occupants[{tau, j}]), std::set<int>{worker});
                    }
                for (int j = 0; j < n; ++j)
                    for (int t = 0; t < steps; ++t)
                        QCOMPARE(run.tick(Op::U, j, t * n + n - 1), 2 * n * t + 4 * n - 3 - j + 1); // T_done, and it is over
            }
    const Compiled three = family("cdp-v1", workersOn(WorkerLayout::Pipeline, 3, 2, true));
    QCOMPARE(three.tick("F0.2"), 4);
    QCOMPARE(three.tick("B1.0"), 4);
    QCOMPARE(three.tick("F2.1"), 4);
    const Compiled dp = family("dp", workersOn(WorkerLayout::Workers, 4, 3, false));
    for (int j = 0; j < 4; ++j)
        QCOMPARE(dp.tick(Op::B, j, 5), 8 + 7 - j); // worker 1, training step 1
}

void tst_weightversions::cyclicFreshness()
{
    for (int n = 1; n <= 6; ++n) {
        const Compiled run = family("cdp-v2", workersOn(WorkerLayout::Pipeline, n, 4, true));
        const Compiled old = family("cdp-v1", workersOn(WorkerLayout::Pipeline, n, 4, true));
        int fresh = 0;
        for (int t = 0; t < 4; ++t)
            for (int i = 0; i < n; ++i)
                for (int j = 0; j < n; ++j) {
                    const WeightUse use = run.use(Op::F, j, t * n + i);
                    QCOMPARE(use.update, t);
                    QCOMPARE(use.staleness(), t == 0 || i + j >= n - 1 ? 0 : 1);
                    QCOMPARE(run.use(Op::B, j, t * n + i).version, use.version);
                    QCOMPARE(old.use(Op::F, j, t * n + i).staleness(), t == 0 ? 0 : 1);
                    fresh += t == 3 && use.staleness() == 0;
                    // As fresh as can be: what is read is there exactly when the update ended before the forward.
                    if (t > 0)
                        QCOMPARE(use.staleness() == 0, run.tick(Op::U, j, t * n - 1) <= run.tick(Op::F, j, t * n + i));
                }
        QCOMPARE(fresh, n * (n + 1) / 2);
        for (const StageWeights& stage : weightReport(run.program)) {
            QVERIFY(stage.versions <= 2);
            QCOMPARE(stage.inFlight, n - stage.stage);
        }
    }
}

void tst_weightversions::cyclicCounts()
{
    QCOMPARE(devicesOf(WorkerLayout::Triangle, 4, true), 10);
    QCOMPARE(devicesOf(WorkerLayout::Triangle, 4, false), 16);
    for (int n = 2; n <= 5; ++n) {
        const Compiled run = family("cdp-v2", workersOn(WorkerLayout::Triangle, n, 4, true));
        QCOMPARE(run.schedule.devices(), n * (n + 1) / 2);
        for (const Program::Device& device : run.program.devices)
            QCOMPARE(device.peakActivations, 1.0); // a stage's activations of one microbatch each
    }
}

void tst_weightversions::cyclicMemory()
{
    // Live activations of one stage each, counted while a pass runs, per time step.
    const auto profile = [](const Compiled& run, int n, int steps) {
        std::vector<int> live(static_cast<std::size_t>(2 * n * steps), 0);
        for (int m = 0; m < n * steps; ++m)
            for (int j = 0; j < n; ++j)
                for (int tau = run.tick(Op::F, j, m); tau <= run.tick(Op::B, j, m) && tau < int(live.size()); ++tau)
                    ++live[size_t(tau)];
        return live;
    };
    for (int n = 2; n <= 6; ++n) {
        const auto dp = profile(family("dp", workersOn(WorkerLayout::Workers, n, 2, false)), n, 2);
        for (int tau = 0; tau < 4 * n; ++tau)
            QCOMPARE(dp[size_t(tau)], n * std::min(tau % (2 * n) + 1, 2 * n - tau % (2 * n)));
        const auto cdp = profile(family("cdp-v1", workersOn(WorkerLayout::Workers, n, 4, true)), n, 4);
        for (int tau = 2 * (n - 1); tau < 8 * n; ++tau)
            QCOMPARE(cdp[size_t(tau)], n * (n + 1) / 2);
        if (n == 4)
            QCOMPARE(std::vector<int>(cdp.begin(), cdp.begin() + 9), (std::vector<int>{1, 2, 4, 6, 8, 9, 10, 10, 10}));
        if (n == 3)
            QCOMPARE(std::vector<int>(cdp.begin(), cdp.begin() + 7), (std::vector<int>{1, 2, 4, 5, 6, 6, 6}));
        // After a time step's backwards have let go of theirs: that many fewer, and from then on as many again and again.
        const Compiled released = family("cdp-v1", workersOn(WorkerLayout::Workers, n, 4, true));
        std::vector<int> after;
        for (int tau = 0; tau < 8 * n; ++tau) {
            int ending = 0;
            for (int m = 0; m < n * 4; ++m)
                for (int j = 0; j < n; ++j)
                    ending += released.tick(Op::B, j, m) == tau;
            after.push_back(cdp[size_t(tau)] - ending);
        }
        if (n == 4)
            QCOMPARE(std::vector<int>(after.begin(), after.begin() + 9), (std::vector<int>{1, 2, 4, 6, 7, 8, 8, 8, 8}));
        if (n == 3)
            for (int tau = 4; tau < 24; ++tau)
                QCOMPARE(after[size_t(tau)], tau % 2 == 0 ? after[4] : 9 - after[4]); // 5 and 4 by turns
        // On one device the compiled peak is that number of activations, and the baseline's N * N.
        const Compiled one = family("cdp-v1", workersOn(WorkerLayout::Single, n, 4, true));
        const Compiled base = family("dp", workersOn(WorkerLayout::Single, n, 4, false));
        QCOMPARE(one.program.devices[0].peakActivations * n, double(n * (n + 1) / 2));
        QCOMPARE(base.program.devices[0].peakActivations * n, double(n * n));
    }
}

void tst_weightversions::gradientsPassFromWorkerToWorker()
{
    for (int n = 2; n <= 5; ++n)
        for (const char* name : {"cdp-v1", "cdp-v2", "dp"}) {
            const bool cyclic = std::string_view(name) != "dp";
            const auto traffic = [&](int steps) {
                return weightTraffic(family(name, workersOn(WorkerLayout::Workers, n, steps, cyclic)).program);
            };
            // One training step more: one more round of gradients and of weights.
            const WeightTraffic five = traffic(5), four = traffic(4);
            const Bytes model = 1000 * n;
            QCOMPARE(five.gradients - four.gradients, (n - 1) * model);
            QCOMPARE(five.weights - four.weights, (n - 1) * model);
            QCOMPARE(five.gradients, 5 * (n - 1) * model);
            const Compiled run = family(name, workersOn(WorkerLayout::Workers, n, 3, cyclic));
            QVERIFY(checkDeadlock(run.program, Communication::Overlapped).empty());
            for (TaskId t = 0; t < run.program.tasks.size(); ++t)
                if (run.program.tasks[t].kind == TaskKind::Transfer && cyclic)
                    for (const BufferId id : run.program.reads(t))
                        if (run.program.buffers[id].kind == BufferKind::PartialGradient)
                            QCOMPARE(run.program.tasks[t].peer, run.program.tasks[t].device + 1);
        }
}

void tst_weightversions::shardedStatesHop()
{
    for (int n = 2; n <= 5; ++n)
        for (const char* name : {"cdp-v1", "cdp-v2"}) {
            const Compiled run = family(name, workersOn(WorkerLayout::Sharded, n, 5, true));
            QVERIFY(checkDeadlock(run.program, Communication::Overlapped).empty());
            // Each device keeps one stage: its weights, gradients and optimizer state.
            const StageCosts& stage = run.costs.stages.front();
            for (const Program::Device& device : run.program.devices)
                QCOMPARE(device.persistentBytes, stage.parameters + stage.gradients + stage.optimizerState);
            const Compiled replicated = family(name, workersOn(WorkerLayout::Workers, n, 5, true));
            for (const Program::Device& device : replicated.program.devices)
                QVERIFY(device.persistentBytes >= n * (stage.parameters + stage.gradients));
            // In the filled pipeline a stage is with one worker per time step: from a forward's (stage j) to the next
            // backward's it is j + 1 workers on, from there to the next forward's j back.
            const auto userAt = [&](int stage, int tau) {
                return ((tau - stage) % 2 == 0 ? (tau - stage) / 2 : (tau + stage + 1) / 2) % n;
            };
            for (int tau = 2 * n; tau < 6 * n; ++tau)
                for (int j = 0; j < n; ++j)
                    QCOMPARE(userAt(j, tau + 1), (userAt(j, tau) + ((tau - j) % 2 == 0 ? j + 1 : n - j)) % n);
            // Point to point, as often as the readers of a version change, and nothing else.
            std::map<std::pair<int, int>, std::map<std::int64_t, int>> readers; // stage, version -> time -> worker
            for (int m = 0; m < 5 * n; ++m)
                for (int j = 0; j < n; ++j) {
                    const int version = run.use(Op::F, j, m).version;
                    readers[{j, version}][2 * m + j] = m % n;
                    readers[{j, version}][2 * m + 2 * n - 1 - j] = m % n;
                }
            int hops = 0;
            for (const auto& [what, workers] : readers) {
                int at = n - 1 - what.first;
                for (const auto& [time, worker] : workers) {
                    hops += worker != at;
                    at = worker;
                }
            }
            const WeightTraffic traffic = weightTraffic(run.program);
            QCOMPARE(traffic.weights, Bytes{1000} * hops);
            // A sum passes all workers, and then goes to the one that updates, which for stage 0 is the last.
            QCOMPARE(traffic.gradients, Bytes{1000} * 5 * (n * (n - 1) + n - 1));
            for (const StageWeights& stage : weightReport(run.program)) {
                QVERIFY(stage.versions <= 2);
                QVERIFY2(stage.copies <= 3, qPrintable(QString::number(stage.copies)));
                QCOMPARE(stage.inFlight, n - stage.stage);
            }
        }
    // What a device holds of weights and gradients, in those of a stage: as much for eight workers as for four, where
    // a copy of all of the model, twice a stage per worker, is more and more.
    int most = 0;
    for (int n = 2; n <= 8; ++n)
        for (const char* name : {"cdp-v1", "cdp-v2"}) {
            const Program sharded = family(name, workersOn(WorkerLayout::Sharded, n, 4, true)).program;
            const Program replicated = family(name, workersOn(WorkerLayout::Workers, n, 4, true)).program;
            for (int d = 0; d < n; ++d) {
                most = std::max(most, weightsAndGradients(sharded, d));
                QVERIFY(weightsAndGradients(replicated, d) >= 2 * n);
            }
        }
    QCOMPARE(most, 10);
    // In the designer any block may be in the tray for a while.
    const Schedule whole = makeSchedule("cdp-v2", workersOn(WorkerLayout::Sharded, 3, 3, true));
    CompileOptions incomplete;
    incomplete.allowMissing = true;
    for (std::size_t d = 0; d < whole.order.size(); ++d)
        for (std::size_t i = 0; i < whole.order[d].size(); ++i) {
            Schedule without = whole;
            without.order[d].erase(without.order[d].begin() + static_cast<std::ptrdiff_t>(i));
            try {
                const Program program = compile(without, tickCosts(3), {}, incomplete);
                QVERIFY(program.computeCount() < family("cdp-v2", workersOn(WorkerLayout::Sharded, 3, 3, true)).program.computeCount());
            } catch (const Error& error) {
                QFAIL(qPrintable(QString("%1: %2").arg(QString::fromStdString(toString(whole.order[d][i]))).arg(error.what())));
            }
        }
}

/// The worker that reads an update's weights first reads them in the very next time step with CDP-v2, two later with
/// CDP-v1: a transfer of half a time step delays only the former.
void tst_weightversions::noSlackIsExposedTransfer()
{
    for (const char* name : {"cdp-v1", "cdp-v2"}) {
        Schedule schedule = makeSchedule(name, workersOn(WorkerLayout::Workers, 4, 4, true));
        Costs costs = tickCosts(4);
        for (StageCosts& stage : costs.stages)
            stage.output = 0;
        const auto starts = [&] {
            const Program program = compile(schedule, costs);
            Timeline timeline;
            Evaluator(program, costs).evaluate(timeline);
            std::map<Block, Nanoseconds> passes;
            for (TaskId t = 0; t < program.tasks.size(); ++t)
                if (program.tasks[t].kind == TaskKind::Compute)
                    passes[program.tasks[t].block()] = timeline.start[t];
            return passes;
        };
        const auto atOnce = starts();
        costs.link.latency = 500'000;
        const auto later = starts();
        int delayed = 0;
        for (const auto& [block, start] : atOnce)
            delayed += later.at(block) > start;
        QCOMPARE(delayed > 0, std::string_view(name) == "cdp-v2");
        // The first to wait is worker 2, on stage 1 in training step 1, and it waits for the transfer alone.
        if (delayed > 0)
            QCOMPARE(later.at({Op::F, 1, 4 + 2}), atOnce.at({Op::F, 1, 4 + 2}) + 500'000);
    }
}

void tst_weightversions::olderVersionsAreBuffers()
{
    // Memory needs no formula of its own: the same order with stashing holds that many weights more at its peak.
    const Compiled stash = family("pipedream", parametersOf(4, 24)), vanilla = family("async-1f1b", parametersOf(4, 24));
    for (int d = 0; d < 4; ++d)
        QCOMPARE(stash.program.devices[size_t(d)].peakBytes - vanilla.program.devices[size_t(d)].peakBytes, Bytes{3 - d} * 1000);
    // Every version's buffer is written by the update that replaces it and read by those that want it.
    for (TaskId t = 0; t < stash.program.tasks.size(); ++t)
        for (const BufferId id : stash.program.reads(t))
            if (stash.program.buffers[id].kind == BufferKind::WeightVersion)
                QCOMPARE(stash.program.buffers[id].microbatch, stash.program.weights[t].version);
}

void tst_weightversions::refusals_data()
{
    QTest::addColumn<QStringList>("lanes");
    QTest::addColumn<int>("rule");
    QTest::addColumn<QString>("what");
    QTest::newRow("never applied") << QStringList{"F0.0 B0.0 U0.0 F0.1 B0.1"} << int(WeightRule::Vanilla) << "never applied";
    QTest::newRow("nothing to apply") << QStringList{"F0.0 B0.0 U0.0 U0.1 F0.1 B0.1"} << int(WeightRule::Vanilla) << "comes later";
    QTest::newRow("twice") << QStringList{"F0.0 B0.0 U0.0 F0.1 B0.1 U0.0"} << int(WeightRule::Vanilla) << "placed twice";
    QTest::newRow("too late") << QStringList{"F0.0 F0.1 B0.0 U0.0 B0.1 U0.1"} << int(WeightRule::Synchronous) << "makes later";
    QTest::newRow("no updates") << QStringList{"F0.0 B0.0 F0.1 B0.1"} << int(WeightRule::PipeDream) << "no update blocks";
    QTest::newRow("between halves") << QStringList{"F0.0 I0.0 F0.1 I0.1 W0.1 U0.1 W0.0 U0.0"} << int(WeightRule::Vanilla) << "between";
}

void tst_weightversions::refusals()
{
    QFETCH(QStringList, lanes);
    QFETCH(int, rule);
    QFETCH(QString, what);
    Schedule schedule = test::schedule(2, {0}, {lanes[0].toStdString()});
    schedule.firstStageMaySplit = true;
    schedule.weights.rule = static_cast<WeightRule>(rule);
    const Diagnostics diagnostics = validate(schedule);
    QVERIFY(hasErrors(diagnostics));
    bool said = false;
    for (const Diagnostic& diagnostic : diagnostics)
        said = said || QString::fromStdString(diagnostic.what).contains(what);
    QVERIFY2(said, diagnostics.front().what.c_str());
    QVERIFY(!diagnostics.front().hint.empty());
    QVERIFY_THROWS_EXCEPTION(Error, compile(schedule, test::unitCosts(1)));
}

void tst_weightversions::badPoliciesAreRefused()
{
    // With a reason that names what is the matter, and a remedy.
    const auto refused = [](std::string_view name, FamilyParameters p, std::string_view reason = {}) {
        try {
            makeSchedule(name, p);
        } catch (const Error& error) {
            return !error.diagnostics().empty() && !error.diagnostics().front().hint.empty()
                   && error.diagnostics().front().what.find(reason) != std::string::npos;
        }
        return false;
    };
    FamilyParameters p = parametersOf(4, 16);
    p.optimizer = UpdateRule::Adam;
    QVERIFY(refused("spectrain", p, "SGD with momentum; adam"));
    QVERIFY(!refused("pipeoptim", p));
    p.optimizer = UpdateRule::SgdMomentum;
    QVERIFY(refused("xpipe", p, "Adam's moments; sgd"));
    p.optimizer.reset();
    p.accumulate = 1;
    QVERIFY(refused("xpipe", p, "microbatches of a mini-batch, and there is one"));
    p.accumulate = 2;
    QVERIFY(!refused("xpipe", p));
    QVERIFY(refused("pipedream-2bw", p)); // fewer than stages
    p.accumulate = 5;
    QVERIFY(refused("pipedream-2bw", p)); // 16 is no multiple
    QVERIFY(refused("1f1b", p));
    FamilyParameters workers = parametersOf(4, 15);
    workers.workers = 3; // three workers on four stages
    QVERIFY(refused("cdp-v1", workers, "3 workers where 4 devices hold 4 stages"));
    workers.workers.reset();
    QVERIFY(refused("cdp-v2", workers)); // 15 microbatches of 4 workers
    workers.microbatches = 16;
    workers.layout = WorkerLayout::Triangle;
    QVERIFY(refused("cdp-v2", workers)); // 4 is no N (N + 1) / 2
    workers.layout = WorkerLayout::Sharded;
    QVERIFY(!refused("cdp-v2", workers));
    QVERIFY(refused("dp", workers, "all workers of synchronous data parallelism need a stage at once"));
    Schedule alone = makeSchedule("cdp-v1", workers);
    QVERIFY(!hasErrors(validate(alone)));
    alone.inTurn.clear();
    QVERIFY(hasErrors(validate(alone))); // nobody to hop to
    // By hand: a cyclic rule over an order whose updates take another number of microbatches.
    Schedule schedule = makeSchedule("pipedream-2bw", parametersOf(2, 12));
    schedule.weights.rule = WeightRule::CdpV2;
    QVERIFY(!hasErrors(validate(schedule)));
    FamilyParameters wide = parametersOf(2, 12);
    wide.accumulate = 3;
    schedule = makeSchedule("pipedream-2bw", wide);
    schedule.weights.rule = WeightRule::CdpV2;
    QVERIFY(hasErrors(validate(schedule)));
}

void tst_weightversions::designsKeepTheirPolicy()
{
    for (const char* name : {"pipedream", "pipeoptim", "spectrain", "xpipe", "cdp-v2", "dp", "async-1f1b"}) {
        const bool cyclic = std::string_view(name) == "cdp-v2";
        FamilyParameters p = workersOn(cyclic ? WorkerLayout::Sharded : WorkerLayout::Workers, 3, 4, true);
        if (!cyclic && std::string_view(name) != "dp") {
            p = parametersOf(3, 12);
            if (std::string_view(name) == "pipedream")
                p.weights.verticalSync = true;
            if (std::string_view(name) == "pipeoptim")
                p.weights.steps = PredictionSteps::Exact, p.optimizer = UpdateRule::RmsProp;
            if (std::string_view(name) == "spectrain")
                p.weights.specTrain = 2;
            if (std::string_view(name) == "xpipe")
                p.weights.rounding = StepRounding::HalfUp;
        }
        Design design;
        design.name = name;
        design.schedule = makeSchedule(name, p);
        design.costs = tickCosts(design.schedule.stages());
        const Design back = locatedDesignFromJson(designToJson(design), "test").design;
        QVERIFY2(back.schedule == design.schedule, name);
    }
}

void tst_weightversions::xpipeSteps()
{
    QCOMPARE(xpipeForwardSteps(4, 1, 1), 2.5);
    QCOMPARE(xpipeForwardSteps(4, 3, 2), 1.25);
    QCOMPARE(xpipeForwardSteps(4, 0, 4), 1.5);
    for (int k = 0; k < 4; ++k) {
        QCOMPARE(rounded(xpipeForwardSteps(4, k, 1), StepRounding::Floor), specTrainForwardSteps(4, k));
        QCOMPARE(rounded(xpipeBackwardSteps(k, 1), StepRounding::HalfEven), specTrainBackwardSteps(k));
    }
    QCOMPARE(rounded(2.5, StepRounding::HalfEven), 2);
    QCOMPARE(rounded(2.5, StepRounding::HalfUp), 3);
    QCOMPARE(rounded(1.5, StepRounding::HalfEven), 2);
    QCOMPARE(rounded(1.5, StepRounding::HalfDown), 1);
    QCOMPARE(rounded(1.25, StepRounding::Ceiling), 2);
    FamilyParameters p = parametersOf(4, 16);
    p.accumulate = 4;
    const Compiled run = family("xpipe", p);
    for (int k = 0; k < 4; ++k)
        for (int batch = 0; batch < 4; ++batch)
            for (int i = 1; i < 4; ++i) // all share what the first one predicted
                QVERIFY(run.use(Op::F, k, 4 * batch + i).version == run.use(Op::F, k, 4 * batch).version
                        && run.use(Op::F, k, 4 * batch + i).steps == run.use(Op::F, k, 4 * batch).steps);
}

QTEST_APPLESS_MAIN(tst_weightversions)
#include "tst_weightversions.moc"
