// SPDX-License-Identifier: GPL-3.0-or-later
// Cyclic Data Parallelism: its timetable, which versions are fresh, what it holds and sends, sharded states included.
#include "testmain.h"

#include <QTest>

#include "core/families/workers.h"
#include "core/predict/evaluator.h"
#include "core/predict/stepcosts.h"
#include "core/program/compile.h"
#include "core/program/deadlock.h"
#include "core/program/weightreport.h"
#include "core/schedule/weightrules.h"
#include "weightruns.h"

#include <map>
#include <set>

using namespace pipewright;
using namespace pipewright::test;

namespace {

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
    for (const Instruction& instruction : program.devices[device].instructions) {
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

} // namespace

class tst_cyclic : public QObject {
    Q_OBJECT
private Q_SLOTS:
    void cyclicTimetable();
    void cyclicFreshness();
    void cyclicCounts();
    void cyclicMemory();
    void costsPerStepAreThoseOfTheTable();
    void gradientsPassFromWorkerToWorker();
    void shardedStatesHop();
    void noSlackIsExposedTransfer();
};

void tst_cyclic::cyclicTimetable()
{
    for (int n = 1; n <= 5; ++n)
        for (const char* name : {"cdp-v1", "cdp-v2"})
            for (const WorkerLayout layout :
                 {WorkerLayout::Pipeline, WorkerLayout::Workers, WorkerLayout::Triangle, WorkerLayout::Sharded}) {
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
                        QCOMPARE(run.tick(Op::U, j, t * n + n - 1),
                                 2 * n * t + 4 * n - 3 - j + 1); // T_done, and it is over
            }
    const Compiled three = family("cdp-v1", workersOn(WorkerLayout::Pipeline, 3, 2, true));
    QCOMPARE(three.tick("F0.2"), 4);
    QCOMPARE(three.tick("B1.0"), 4);
    QCOMPARE(three.tick("F2.1"), 4);
    const Compiled dp = family("dp", workersOn(WorkerLayout::Workers, 4, 3, false));
    for (int j = 0; j < 4; ++j)
        QCOMPARE(dp.tick(Op::B, j, 5), 8 + 7 - j); // worker 1, training step 1
}

void tst_cyclic::cyclicFreshness()
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

void tst_cyclic::cyclicCounts()
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

void tst_cyclic::cyclicMemory()
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
        // After a time step's backwards have let go of theirs: that many fewer, and from then on as many again and
        // again.
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

// Table 1 of arXiv 2403.08837, as far as it follows from the schedule: a stage's activations of one microbatch and its
// parameters are the units.
void tst_cyclic::costsPerStepAreThoseOfTheTable()
{
    constexpr int n = 4;
    const auto costsOf = [](const char* name, WorkerLayout layout) {
        const bool cyclic = std::string_view(name) != "dp";
        Compiled run = family(name, workersOn(layout, n, 5, cyclic));
        for (StageCosts& stage : run.costs.stages)
            stage.savedUntilInputGrad = 100, stage.savedUntilWeightGrad = stage.savedFromInputGrad = 0;
        run.program = compile(run.schedule, run.costs);
        return stepCosts(run.program, run.timeline);
    };
    const StepCosts alone = costsOf("dp", WorkerLayout::Single), cyclicAlone = costsOf("cdp-v2", WorkerLayout::Single);
    QCOMPARE(alone.activations, Bytes(100 * n * n));
    QCOMPARE(cyclicAlone.activations, Bytes(100 * n * (n + 1) / 2));
    QCOMPARE(alone.gradientTraffic + alone.weightTraffic, Bytes(0));

    const StepCosts together = costsOf("dp", WorkerLayout::Workers), cyclic = costsOf("cdp-v2", WorkerLayout::Workers);
    QCOMPARE(together.activations, Bytes(100 * n)); // each worker has all of its microbatch either way
    QCOMPARE(cyclic.activations, Bytes(100 * n));
    QCOMPARE(together.allActivations, Bytes(100 * n * n));
    QCOMPARE(cyclic.allActivations, Bytes(100 * n * (n + 1) / 2));
    QCOMPARE(together.gradientTraffic, Bytes(1000 * n * (n - 1)));
    QCOMPARE(cyclic.gradientTraffic, together.gradientTraffic); // as much, but spread
    QVERIFY(cyclic.transfersInRow < together.transfersInRow);

    QCOMPARE(costsOf("dp", WorkerLayout::Triangle).devices, n * n);
    const StepCosts triangle = costsOf("cdp-v2", WorkerLayout::Triangle);
    QCOMPARE(triangle.devices, n * (n + 1) / 2);
    QCOMPARE(triangle.activations, Bytes(100));
    QCOMPARE(triangle.parameters, Bytes(2000)); // and the older version

    const StepCosts pipeline = costsOf("cdp-v2", WorkerLayout::Pipeline);
    QCOMPARE(pipeline.activations, Bytes(100 * n)); // of stage 0
    QCOMPARE(pipeline.allActivations, Bytes(100 * n * (n + 1) / 2));
    QCOMPARE(pipeline.gradientTraffic, Bytes(0));
}

void tst_cyclic::gradientsPassFromWorkerToWorker()
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
                            QCOMPARE(run.program.tasks[t].destination(), run.program.tasks[t].device + 1);
        }
}

void tst_cyclic::shardedStatesHop()
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
                QVERIFY(program.computeCount()
                        < family("cdp-v2", workersOn(WorkerLayout::Sharded, 3, 3, true)).program.computeCount());
            } catch (const Error& error) {
                QFAIL(qPrintable(
                    QString("%1: %2").arg(QString::fromStdString(toString(whole.order[d][i]))).arg(error.what())));
            }
        }
}

void tst_cyclic::noSlackIsExposedTransfer()
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

PIPEWRIGHT_TEST(tst_cyclic, NoApplication)
#include "tst_cyclic.moc"
