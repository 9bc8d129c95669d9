// SPDX-License-Identifier: GPL-3.0-or-later
// What a device exchanges with copies of the pipeline that are only counted. That times and bytes are as they should be
// is tested against a simulation (core/predict/tst_oracle.cpp); here, which collectives there are.
#include "core/design/designbuilder.h"
#include "core/design/redesign.h"
#include "core/files/designfile.h"
#include "core/predict/predict.h"
#include "core/program/compile.h"
#include "core/schedule/weightplan.h"
#include "makers/designs.h"
#include "makers/schedules.h"
#include "testmain.h"

#include <QTest>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>

using namespace pipewright;

namespace {

Design sharing(std::string_view family, int level, const std::function<void(DesignRequest&)>& change = {})
{
    DesignRequest request = test::requestFor(family, 4, 8);
    request.model = "llama-3-8b";
    request.cluster = "h100-nodes";
    request.parallel = Parallelism{.data = 8};
    request.zero.level = level;
    request.efficiency = 0.5; // the data sheets by hand, not what was measured
    if (change)
        change(request);
    return makeDesign(request);
}

std::vector<TaskId> tasksOf(const Program& program, TaskKind kind)
{
    std::vector<TaskId> found;
    for (TaskId t = 0; t < program.tasks.size(); ++t)
        if (program.tasks[t].kind == kind)
            found.push_back(t);
    return found;
}

/// What PyTorch's schedules do: of `active` stages at most so many, looked up anew before every action; what is not
/// among those that come next is freed. The stages gathered before each block of a device.
std::vector<std::vector<int>> asPyTorchGathers(const std::vector<Block>& blocks, std::size_t most)
{
    std::vector<std::vector<int>> gathered;
    std::set<int> active;
    for (std::size_t i = 0; i < blocks.size(); ++i) {
        std::vector<int> next;
        for (std::size_t j = i; j < blocks.size() && next.size() < most; ++j)
            if (std::find(next.begin(), next.end(), blocks[j].stage) == next.end())
                next.push_back(blocks[j].stage);
        std::erase_if(active, [&](int stage) { return std::find(next.begin(), next.end(), stage) == next.end(); });
        std::vector<int>& now = gathered.emplace_back();
        for (const int stage : next)
            if (active.insert(stage).second)
                now.push_back(stage);
    }
    return gathered;
}

/// The same of a compiled Program.
std::vector<std::vector<int>> gathersOf(const Program& program, int device)
{
    std::vector<std::vector<int>> gathered;
    std::vector<int> now;
    for (const Instruction& instruction : program.devices[static_cast<std::size_t>(device)].instructions) {
        if (instruction.kind == InstructionKind::Gather)
            now.push_back(program.tasks[instruction.task].stage);
        if (instruction.kind == InstructionKind::Compute)
            gathered.push_back(std::exchange(now, {}));
    }
    return gathered;
}

} // namespace

class CopyCollectivesTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void aDeviceHoldsAnEighthOfWhatIsSharedOut()
    {
        const Design whole = sharing("1f1b", 0), optimizer = sharing("1f1b", 1), gradients = sharing("1f1b", 2),
                     parameters = sharing("1f1b", 3);
        for (std::size_t s = 0; s < 4; ++s) {
            const StageCosts &all = whole.costs.stages[s], &one = optimizer.costs.stages[s],
                             &two = gradients.costs.stages[s], &three = parameters.costs.stages[s];
            const auto eighth = [](Bytes bytes, Bytes each) { return (bytes / each + 7) / 8 * each; };
            QCOMPARE(one.optimizerState, eighth(all.optimizerState, 12));
            QCOMPARE(one.gradients, all.gradients);
            QCOMPARE(two.gradients, eighth(all.gradients, 4));
            QCOMPARE(two.wholeGradients, all.gradients);
            QCOMPARE(two.parameters, all.parameters);
            QCOMPARE(three.gradients, two.gradients);
            QCOMPARE(three.parameters, eighth(all.parameters, 2));
            QCOMPARE(three.gatheredParameters, all.parameters);
        }
        // Summed once and held over the step, they take as much at the peak as when the optimizer's state alone is
        // shared out, but for the parameters' own share.
        const Prediction first = predict(optimizer), second = predict(gradients), third = predict(parameters);
        for (std::size_t d = 0; d < 4; ++d) {
            QCOMPARE(second.metrics.devices[d].peakBytes, first.metrics.devices[d].peakBytes);
            QCOMPARE(third.metrics.devices[d].peakBytes,
                     second.metrics.devices[d].peakBytes + parameters.costs.stages[d].parameters);
        }
        QVERIFY(predict(whole).metrics.devices[0].peakBytes
                > first.metrics.devices[0].peakBytes + whole.costs.stages[0].optimizerState / 2);
    }

    /// FSDP's mixed precision: each holds its share in fp32, and copies in the model's type are gathered.
    void narrowCopiesOfWideParametersAreGathered()
    {
        const Design narrow = sharing("1f1b", 3),
                     wide = sharing("1f1b", 3, [](DesignRequest&r) { r.framework = frameworkNamed("torchtitan"); });
        for (std::size_t s = 0; s < 4; ++s) {
            QCOMPARE(wide.costs.stages[s].parameters, 2 * narrow.costs.stages[s].parameters);
            QCOMPARE(wide.costs.stages[s].gatheredParameters, narrow.costs.stages[s].gatheredParameters);
            QCOMPARE(wide.costs.stages[s].gather, narrow.costs.stages[s].gather);
            // An update reads and writes its share in fp32, with two moments, and reads its gradients.
            const double touched = double(wide.costs.stages[s].parameters / 4) * (2 * 4 + 4 + 2 * 8);
            QVERIFY(
                std::abs(double(wide.costs.stages[s].update) / 1e9 * wide.cluster.devices[s].memoryBandwidth / touched
                         - 1)
                < 1e-4);
        }
    }

    /// Parameters are gathered after an update that they are not shared out in, or before the first reader.
    void eachLevelHasItsCollectives()
    {
        const auto counts = [](const Design& design) {
            const Program program = compile(design.schedule, design.costs, design.dataflow);
            return std::pair(tasksOf(program, TaskKind::ReduceGradients).size(),
                             tasksOf(program, TaskKind::Gather).size());
        };
        using Counts = std::pair<std::size_t, std::size_t>;
        QCOMPARE(counts(sharing("1f1b", 0)), (Counts{4, 0}));
        QCOMPARE(counts(sharing("1f1b", 1)), (Counts{4, 4}));
        QCOMPARE(counts(sharing("1f1b", 2)), (Counts{4, 4}));
        QCOMPARE(counts(sharing("1f1b", 3)), (Counts{4, 4}));
        const auto each = [](DesignRequest& r) { r.zero.reduce = Zero::Reduce::Each; };
        QCOMPARE(counts(sharing("1f1b", 2, each)), (Counts{4 * 8, 4}));
        QCOMPARE(counts(sharing("zb-h1", 3, each)), (Counts{4 * 8, 4}));
        const auto visits = [](DesignRequest& r) {
            r.chunks = 2;
            r.reshard = ReshardChoice{true};
            r.zero.prefetch = 0;
        };
        QVERIFY(counts(sharing("interleaved-1f1b", 3, visits)).second > 3 * 8);
        // One copy has nobody to share anything with.
        const Design alone = makeDesign([] {
            DesignRequest r = test::requestFor("1f1b", 4, 8);
            r.model = "llama-3-8b";
            r.cluster = "h100-nodes";
            return r;
        }());
        QCOMPARE(counts(alone), (Counts{0, 0}));
    }

    void updatesWaitForTheSumAndReadersForTheirParameters()
    {
        for (const int level : {1, 2, 3}) {
            const Prediction prediction = predict(sharing("1f1b", level));
            const Program& program = prediction.program;
            const Timeline& times = prediction.timeline;
            std::map<int, TaskId> gather, sum, update, first;
            for (TaskId t = 0; t < program.tasks.size(); ++t) {
                const Task& task = program.tasks[t];
                if (task.kind == TaskKind::Gather)
                    gather[task.stage] = t;
                else if (task.kind == TaskKind::ReduceGradients)
                    sum[task.stage] = t;
                else if (task.kind == TaskKind::Update)
                    update[task.stage] = t;
                else if (task.kind == TaskKind::Compute)
                    first.try_emplace(task.stage, t);
            }
            for (int stage = 0; stage < 4; ++stage) {
                QVERIFY(times.end[sum[stage]] > times.start[sum[stage]]);
                QVERIFY(times.start[update[stage]] >= times.end[sum[stage]]);
                QVERIFY(level < 3 ? times.start[gather[stage]] >= times.end[update[stage]]
                                  : times.start[first[stage]] >= times.end[gather[stage]]);
            }
        }
    }

    void parametersAreGatheredWherePyTorchsSchedulesGatherThem()
    {
        int met = 0;
        for (const Family& family : families()) {
            const Schedule schedule = test::possibleSchedule(family.name, 4, 8);
            if (hasUpdates(schedule) || schedule.replicas() > 1 || !schedule.overlaps.empty())
                continue;
            for (const int ahead : {0, 1, 2, 5}) {
                Design design = test::evenDesign({.saved = 1 << 20}, schedule);
                design.schedule.zero = {.level = 3, .reshard = {true, {}}, .prefetch = ahead};
                for (StageCosts& stage : design.costs.stages) {
                    stage.gatheredParameters = 1 << 20;
                    stage.gather = 1000;
                }
                const Program program = compile(design.schedule, design.costs, design.dataflow);
                for (int device = 0; device < schedule.devices(); ++device) {
                    QCOMPARE(gathersOf(program, device),
                             asPyTorchGathers(schedule.order[static_cast<std::size_t>(device)],
                                              static_cast<std::size_t>(1 + ahead)));
                    ++met;
                }
            }
        }
        QVERIFY(met > 100);
    }

    void whatDoesNotFitTogetherIsRefused()
    {
        const auto refusal = [](Design design) {
            try {
                (void)compile(design.schedule, design.costs, design.dataflow);
            } catch (const Error& error) {
                return QString::fromUtf8(error.what());
            }
            return QString();
        };
        const Zero zero{.level = 3};
        Design replicas = sharing("1f1b", 0, [](DesignRequest& r) {
            r.devices = 8;
            r.replicas = 2;
        });
        replicas.schedule.zero = zero;
        QVERIFY(refusal(replicas).contains("drawn and counted, too"));
        for (StageCosts& stage : replicas.costs.stages)
            stage.gather = stage.reduceGradients = 0;
        replicas.schedule.zero = {.level = 2, .reduce = Zero::Reduce::Each};
        QVERIFY(refusal(replicas).contains("add up in another order"));
        replicas.schedule.zero.reduce = Zero::Reduce::Last;
        QCOMPARE(refusal(replicas), QString());
        replicas.schedule.transferOrder = {{*parseTransfer("F0.1 to 1"), *parseTransfer("F0.0 to 1")}};
        QVERIFY(refusal(replicas).contains("the order of transfers is stated"));
        Design amid = sharing("pipedream", 0);
        amid.schedule.zero = zero;
        QVERIFY(refusal(amid).contains("updates its stages amid the step"));
        QVERIFY_THROWS_EXCEPTION(Error, sharing("1f1b", 3, [](DesignRequest& r) {
                                     r.reshard = ReshardChoice{false, {{4, 4}}}; // stages 0 to 3
                                 }));
        QVERIFY_THROWS_EXCEPTION(Error, parseReshard("sometimes", "--reshard"));
        QVERIFY_THROWS_EXCEPTION(Error, parseReduce("first", "--reduce"));
    }

    void filesSayAllOfIt()
    {
        Design design = sharing("interleaved-1f1b", 3, [](DesignRequest& r) {
            r.chunks = 2;
            r.reshard = ReshardChoice{false, {{0, 2}, {5, 5}}};
            r.zero.prefetch = 3;
            r.zero.reduce = Zero::Reduce::Each;
        });
        QCOMPARE(design.schedule.zero.reshard.stages, (std::vector<int>{0, 1, 2, 5}));
        QCOMPARE(designFromJson(designToJson(design), "shared.json"), design);
        design.schedule.zero.reshard = {true, {}};
        QCOMPARE(designFromJson(designToJson(design), "shared.json"), design);
        QCOMPARE(QString::fromStdString(textOf(design.schedule.zero)),
                 QString("ZeRO 3 over data and context, parameters freed after each visit, 3 stages ahead, gradients "
                         "summed after each microbatch"));
    }
};

PIPEWRIGHT_TEST(CopyCollectivesTest, NoApplication)
#include "tst_copycollectives.moc"
