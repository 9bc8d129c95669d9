// SPDX-License-Identifier: GPL-3.0-or-later
// Measured times become costs: known costs come back from a recording that was made with them.
#include "core/design/costorigins.h"
#include "core/design/designbuilder.h"
#include "core/design/recutcosts.h"
#include "core/design/redesign.h"
#include "core/design/stagecosts.h"
#include "core/families/family.h"
#include "core/files/designfile.h"
#include "testmain.h"
#include "traces/analysis/calibration.h"
#include "traces/analysis/recordedcosts.h"

#include <QTest>
#include <SQLiteCpp/SQLiteCpp.h>

#include <cmath>
#include <functional>
#include <set>

using namespace pipewright;
using namespace pipewright::test;

class TestCalibration : public QObject {
    Q_OBJECT

private:
    Folder m_folder;

    std::string record(const char* name, const Design& design, int steps, const std::function<Costs(int)>& costsOfStep,
                       int percentWaited = -1)
    {
        return recordedRun(m_folder / name, design, steps, costsOfStep, percentWaited);
    }

    /// Of F, B, I and W.
    static std::string originsOf(const Design& design, int stage)
    {
        std::string text;
        for (const Op op : {Op::F, Op::B, Op::I, Op::W})
            text += (text.empty() ? "" : " ") + std::string(nameOf(design.costs.originOf(op, stage)));
        return text;
    }

    /// A trace of `design` in which only these stages were recorded.
    std::string recordStages(const char* name, const Design& design, const std::set<int>& stages)
    {
        const Prediction prediction = predict(design);
        const Program& program = prediction.program;
        const std::string path = m_folder / name;
        TraceWriter writer(path, design, program, smallHeader());
        Timeline timeline = prediction.timeline;
        for (TaskId id = 0; id < program.tasks.size(); ++id)
            if (program.tasks[id].kind != TaskKind::Compute || !stages.contains(program.tasks[id].stage))
                timeline.start[id] = timeline.end[id] = notRun;
        std::vector<TaskRecord> records = recordsOf(program, timeline, 0, 0);
        std::erase_if(records, [&](const TaskRecord& record) { return timeline.start[record.task] == notRun; });
        writer.append(records);
        writer.append(StepRecord{0, 0, 100'000'000, 0});
        writer.finish({0, 0}, 0, "{}");
        return path;
    }

private Q_SLOTS:
    void aFullBackwardIsSplitByTheModelsWork()
    {
        DesignRequest request;
        request.family = "1f1b";
        request.devices = 2;
        request.microbatches = 4;
        const Design model = makeDesign(request);
        const auto shares = inputGradShares(*model.workload, model.layersPerStage);
        Design none = model; // the ratio of its present costs: 1 to 3
        none.workload.reset();
        none.layersPerStage.clear();
        none.dataflow.shared.clear();
        for (StageCosts& stage : none.costs.stages)
            stage.weightGrad = 3 * stage.inputGrad;
        for (const Design& design : {model, none}) {
            const Costs real = realCosts(design);
            const std::string path =
                record(design.workload ? "model.db" : "ratio.db", design, 3, [&](int) { return real; });
            const Design found = calibrate(design, TraceReader(path), "run.db");
            for (std::size_t stage = 0; stage < 2; ++stage) {
                const StageCosts& cost = found.costs.stages[stage];
                const double share = design.workload ? shares[stage].value() : 0.25;
                QCOMPARE(cost.inputGrad + cost.weightGrad, real.stages[stage].backward);
                QCOMPARE(cost.inputGrad, Nanoseconds(std::llround(double(real.stages[stage].backward) * share)));
            }
            QCOMPARE(estimatesText(found), std::string("I and W"));
            QCOMPARE(originsText(found, {Op::F, Op::B, Op::I, Op::W}),
                     std::string("F and B measured, I and W estimated"));
            QCOMPARE(designFromJson(designToJson(found), "written").costs, found.costs);
        }
        QVERIFY(shares[0].value() > 0 && shares[0].value() < 1);
    }

    void stagesThatWereNotRecordedAreNamed()
    {
        const Design design = smallDesign("1f1b", 4, 8);
        const TraceReader trace(recordStages("half.db", design, {0, 2}));
        const std::string refused = errorOf([&] { calibrate(design, trace, "half.db"); });
        QVERIFY2(refused.find("stages 1, 3") != std::string::npos, refused.c_str());
        QVERIFY(refused.find("--keep-unmeasured") != std::string::npos);
        const Calibration kept = calibrate(design, {{&trace, "half.db"}}, UnmeasuredStages::Keep);
        QCOMPARE(kept.unmeasured, (std::vector<int>{1, 3}));
        QCOMPARE(originsOf(kept.design, 0), std::string("measured measured estimated estimated"));
        QCOMPARE(originsOf(kept.design, 3), std::string("given given given given"));
        QCOMPARE(kept.design.costs.stages[3].backward, design.costs.stages[3].backward);
        // Two halves are a whole.
        const TraceReader other(recordStages("other half.db", design, {1, 3}));
        QVERIFY(calibrate(design, {{&trace, "half.db"}, {&other, "other half.db"}}).unmeasured.empty());
    }

    void severalTracesCountTogetherAndSayHowSureTheyAre()
    {
        const Design design = smallDesign();
        const auto recorded = [&](const char* name, Nanoseconds forward) {
            return record(name, design, 5, [&design, forward](int) {
                Costs costs = realCosts(design);
                costs.stages[1].forward = forward;
                return costs;
            });
        };
        const TraceReader one(recorded("first of two.db", 1'000'000)), other(recorded("second of two.db", 1'400'000));
        const Calibration both = calibrate(design, {{&one, "one.db"}, {&other, "other.db"}});
        QCOMPARE(both.design.costs.stages[1].forward, Nanoseconds{1'000'000}); // the lower of the two in the middle
        QCOMPARE(both.design.costs.stages[0].forward, realCosts(design).stages[0].forward);
        QCOMPARE(both.design.costs.source, std::string("measured: one.db, other.db"));
        bool seen = false;
        for (const CalibrationFit& fit : both.fits) {
            const bool mixed = fit.op == Op::F && fit.stage == 1;
            seen = seen || mixed;
            QVERIFY(fit.time.samples > 0);
            QCOMPARE(fit.time.value, both.design.costs.stages[fit.stage].*timeField(fit.op));
            if (!mixed)
                QCOMPARE(fit.time.spread, Nanoseconds{0});
        }
        QVERIFY(seen);
        QCOMPARE(both.links.size(), std::size_t{2}); // there and back
        for (const LinkFit& fit : both.links) {
            QCOMPARE(fit.time.value, Nanoseconds{230'000});
            QVERIFY(fit.time.samples > 0);
        }
    }

    void aTraceOfABusyMachineSaysSo_data()
    {
        QTest::addColumn<int>("percent");
        QTest::addColumn<QString>("said");
        QTest::newRow("quiet") << 4 << "";
        QTest::newRow("busy") << 32 << " (held up: 32 % of the time waited for a core)";
        QTest::newRow("too busy") << 59 << " (held up: 59 % of the time waited for a core)";
    }

    void aTraceOfABusyMachineSaysSo()
    {
        QFETCH(int, percent);
        QFETCH(QString, said);
        const Design design = smallDesign();
        const TraceReader trace(record(("busy" + std::to_string(percent) + ".db").c_str(), design, 3,
                                       [&](int) { return realCosts(design); }, percent));
        const std::string refused = errorOf([&] { calibrate(design, {{&trace, "a.db"}}); });
        QCOMPARE(refused.find("--busy-machine") != std::string::npos, percent > 33);
        const Calibration calibration =
            calibrate(design, {{&trace, "a.db"}}, UnmeasuredStages::Refuse, {}, BusyMachine::Take);
        QCOMPARE(calibration.design.costs.source, "measured: a.db" + said.toStdString());
        QCOMPARE(calibration.notes.size(), said.isEmpty() ? std::size_t{0} : std::size_t{1});
    }

    void measuredCostsComeBack_data()
    {
        QTest::addColumn<QString>("family");
        QTest::newRow("a full backward") << "1f1b";
        QTest::newRow("a split backward") << "zb-h1";
    }

    void measuredCostsComeBack()
    {
        QFETCH(QString, family);
        const Design design = smallDesign(family.toUtf8().constData(), 4, 8);
        const Costs real = realCosts(design);
        const std::string path =
            record(("back-" + family + ".db").toUtf8().constData(), design, 5, [&](int) { return real; });
        const Design calibrated = calibrate(design, TraceReader(path), "back.db");
        const bool split = design.schedule.backward == BackwardStyle::Split;
        for (std::size_t stage = 0; stage < real.stages.size(); ++stage) {
            const StageCosts& found = calibrated.costs.stages[stage];
            QCOMPARE(found.forward, real.stages[stage].forward);
            if (split && stage > 0) {
                QCOMPARE(found.inputGrad, real.stages[stage].inputGrad);
                QCOMPARE(found.weightGrad, real.stages[stage].weightGrad);
                QCOMPARE(found.backward, found.inputGrad + found.weightGrad);
                QCOMPARE(originsOf(calibrated, int(stage)), std::string("measured estimated measured measured"));
            } else if (!split) {
                QCOMPARE(found.backward, real.stages[stage].backward);
                QCOMPARE(originsOf(calibrated, int(stage)), std::string("measured measured estimated estimated"));
            }
            QCOMPARE(found.savedUntilInputGrad, design.costs.stages[stage].savedUntilInputGrad);
        }
        QCOMPARE(calibrated.costs.linkBetween(0, 1).latency, Nanoseconds{230'000});
        QCOMPARE(calibrated.costs.linkBetween(2, 1).latency, Nanoseconds{230'000});
        QCOMPARE(calibrated.costs.source, std::string("measured: back.db"));
        QVERIFY(calibrated.schedule == design.schedule);

        Design reality = design;
        reality.costs = real;
        QCOMPARE(predict(calibrated).metrics.makespan, predict(reality).metrics.makespan);
    }

    void whatHandsWeightsOnIsNoUpdate()
    {
        std::ptrdiff_t handedOn = 0;
        for (const char* family : {"dp", "cdp-v1", "cdp-v2"}) {
            Design design = smallDesign(family, 4, 4);
            // Every device has copies of all stages, and puts new weights in their place.
            FamilyParameters workers;
            workers.devices = workers.microbatches = 4;
            workers.layout = WorkerLayout::Workers;
            design.schedule = makeSchedule(family, workers);
            Costs real = realCosts(design);
            for (StageCosts& stage : real.stages)
                stage.update = 500'000;
            const Program program = predict(design).program;
            const auto of = [&](TaskKind kind) {
                return std::count_if(program.tasks.begin(), program.tasks.end(),
                                     [kind](const Task& task) { return task.kind == kind; });
            };
            handedOn = std::max(handedOn, of(TaskKind::CopyWeightsIn) - of(TaskKind::Update));
            const std::string path =
                record((std::string("update-") + family + ".db").c_str(), design, 3, [&](int) { return real; });
            const Design calibrated = calibrate(design, TraceReader(path), family);
            for (const StageCosts& stage : calibrated.costs.stages)
                QCOMPARE(stage.update, Nanoseconds{500'000});
        }
        QVERIFY(handedOn > 0); // more of it than of updates
    }

    void pairsThatRanTogetherGiveTheirFactor()
    {
        const Design design = smallDesign("dualpipe-v", 4, 12);
        Costs real = realCosts(design);
        real.overlapFactor = 0.75;
        const Design calibrated =
            calibrate(design, TraceReader(record("pairs.db", design, 3, [&](int) { return real; })), "pairs.db");
        // Blocks outside pairs give the times, and the pairs take three quarters of them.
        QVERIFY(std::abs(calibrated.costs.overlapFactor - 0.75) < 1e-6);
        QCOMPARE(calibrated.costs.stages[1].forward, real.stages[1].forward);
        QVERIFY(std::abs(double(predict(calibrated).metrics.makespan)
                             / double(predict([&] {
                                          Design d = design;
                                          d.costs = real;
                                          return d;
                                      }())
                                          .metrics.makespan)
                         - 1)
                < 0.01);
    }

    void longMicrobatchesTeachTheUsualLength()
    {
        Design design = smallDesign("1f1b", 2, 2);
        design.costs.microbatches = {{1, 1}, {3, 1}};
        Costs real = realCosts(design);
        real.microbatches = design.costs.microbatches;
        const Design calibrated =
            calibrate(design, TraceReader(record("long.db", design, 3, [&](int) { return real; })), "long.db");
        QCOMPARE(calibrated.costs.stages[0].forward, real.stages[0].forward);
        QCOMPARE(calibrated.costs.stages[1].backward, real.stages[1].backward);
    }

    void theWarmUpStepAndOutliersDoNotCount()
    {
        const Design design = smallDesign();
        const Costs real = realCosts(design);
        const std::string path = record("outliers.db", design, 12, [&](int step) {
            Costs costs = real;
            if (step == 0 || step == 7)
                for (StageCosts& stage : costs.stages)
                    stage.forward *= 50;
            return costs;
        });
        const TraceReader trace(path);
        const Calibration calibration = calibrate(design, {{&trace, "outliers.db"}});
        const Design& calibrated = calibration.design;
        QCOMPARE(calibration.steps.front().outliers.size(), std::size_t{1});
        QCOMPARE(calibration.steps.front().outliers.front().step, 7);
        QCOMPARE(calibration.steps.front().typical.size(), std::size_t{10});
        QCOMPARE(calibrated.costs.stages[0].forward, real.stages[0].forward);
        QCOMPARE(calibrated.costs.linkBetween(0, 1).latency, Nanoseconds{230'000});
    }

    /// The typical step is stated by medians and stored by them: a slow third of the steps changes neither.
    void onlyTheStepsThatAreNamedCount()
    {
        const Design design = smallDesign();
        const TraceReader trace(record("steps.db", design, 6, [&](int step) {
            Costs costs = realCosts(design);
            costs.stages[0].forward = 1'000'000 * (step + 1);
            return costs;
        }));
        const auto of = [&](int first, int last) {
            return calibrate(design, {{&trace, "a.db"}}, UnmeasuredStages::Refuse, StepRange{first, last});
        };
        QCOMPARE(of(0, 0).design.costs.stages[0].forward, Nanoseconds{1'000'000}); // the first too, where it is named
        QCOMPARE(of(3, 5).design.costs.stages[0].forward, Nanoseconds{5'000'000});
        QCOMPARE(of(3, 5).steps.front().typical, (std::vector<int>{3, 4, 5}));
        QCOMPARE(of(3, 5).design.costs.source, std::string("measured: a.db (steps 3 to 5)"));
        QVERIFY(errorOf([&] { of(6, 8); }).find("its finished steps are 0 to 5") != std::string::npos);
    }

    void whatIsStoredIsTheMedian()
    {
        const Design design = smallDesign();
        const std::string path = record("medians.db", design, 10, [&](int step) {
            Costs costs = realCosts(design);
            costs.stages[0].forward = step % 3 == 0 ? 1'030'000 : 1'000'000 + 1'000 * step;
            return costs;
        });
        const TraceReader trace(path);
        const Calibration calibration = calibrate(design, {{&trace, "medians.db"}});
        QCOMPARE(calibration.design.costs.stages[0].forward, Nanoseconds{1'007'000});
        QCOMPARE(calibration.fits.front().time.value, Nanoseconds{1'007'000});
        QCOMPARE(calibration.fits.front().time.spread, Nanoseconds{5'000});
        QCOMPARE(calibration.fits.front().time.samples, std::int64_t{9 * design.schedule.microbatches});
    }

    /// By how much blocks vary is a part of the costs, from the median distance: the slow steps do not count.
    void howMuchBlocksVaryIsStored()
    {
        const Design design = smallDesign();
        const std::string path = record("varying.db", design, 10, [&](int step) {
            Costs costs = realCosts(design);
            costs.stages[0].forward = step % 3 == 0 ? 1'030'000 : 1'000'000 + 1'000 * step;
            return costs;
        });
        const TraceReader trace(path);
        const Costs costs = calibrate(design, trace, "varying.db").costs;
        QCOMPARE(costs.stages[0].spread[indexOf(Op::F)], 1.4826 * 5'000 / 1'007'000);
        QCOMPARE(costs.stages[1].spread[indexOf(Op::F)], 0.0);
        Design measured = design;
        measured.costs = costs;
        QCOMPARE(designFromJson(designToJson(measured), "measured").costs, costs);
    }

    static void giveGaps(Costs& costs, int devices)
    {
        costs.hostGaps.assign(static_cast<std::size_t>(devices), {});
        for (int d = 0; d < devices; ++d)
            for (const Op op : allOps)
                costs.hostGaps[d].before[indexOf(op)] = 40'000 + 7'000 * d + 3'000 * static_cast<int>(indexOf(op));
    }

    /// Neither blocks nor links get slower by what lies between blocks.
    void gapsOfTheHostAreCostsOfTheirOwn_data() { measuredCostsComeBack_data(); }
    void gapsOfTheHostAreCostsOfTheirOwn()
    {
        QFETCH(QString, family);
        const Design design = smallDesign(family.toUtf8().constData(), 4, 8);
        Costs real = realCosts(design);
        giveGaps(real, 4);
        const std::string path =
            record(("gaps-" + family + ".db").toUtf8().constData(), design, 5, [&](int) { return real; });
        const TraceReader trace(path);
        const Calibration calibration = calibrate(design, {{&trace, "gaps.db"}});
        const Costs& found = calibration.design.costs;
        const bool split = design.schedule.backward == BackwardStyle::Split;
        QCOMPARE(found.hostGaps.size(), std::size_t{4});
        for (int d = 0; d < 4; ++d)
            for (const Op op : allOps) {
                const CostOrigin origin = found.hostGaps[d].origin[indexOf(op)];
                const bool runs = op == Op::F || op == Op::U || (split ? op == Op::I || op == Op::W : op == Op::B);
                QCOMPARE(origin, runs || (split && d == 0 && op == Op::B) ? origin : CostOrigin::Estimated);
                if (origin == CostOrigin::Measured)
                    QCOMPARE(found.hostGap(op, d), real.hostGap(op, d));
            }
        for (std::size_t stage = 0; stage < real.stages.size(); ++stage)
            QCOMPARE(found.stages[stage].forward, real.stages[stage].forward);
        QCOMPARE(found.linkBetween(0, 1).latency, Nanoseconds{230'000});
        QVERIFY(!calibration.gaps.empty());
        for (const HostGapFit& fit : calibration.gaps) {
            QVERIFY(fit.gap.samples > 0);
            QCOMPARE(fit.gap.value, real.hostGap(fit.op, fit.device));
        }
        Design reality = design;
        reality.costs = real;
        QCOMPARE(predict(calibration.design).metrics.makespan, predict(reality).metrics.makespan);
        QCOMPARE(calibration.makespan.value(), predict(reality).metrics.makespan);
        // In another schedule, too; there it says what was not seen.
        const Design other = withFamily(calibration.design, *findFamily(split ? "1f1b" : "zb-h1"));
        QCOMPARE(other.costs.hostGaps, found.hostGaps);
        QVERIFY2(estimatesText(other).find("the host's gaps before") != std::string::npos,
                 estimatesText(other).c_str());
        QCOMPARE(designFromJson(designToJson(calibration.design), "written").costs, found);
    }

    /// The last gradient leaves late because its target is busy, and the update waits until its memory is free.
    void waitsForMemoryAreNoGapsOfTheHost()
    {
        const Design design = smallDesign("1f1b", 2, 4);
        const Prediction prediction = predict(design);
        const Program& program = prediction.program;
        Timeline timeline = prediction.timeline;
        constexpr Nanoseconds late = 5'000'000;
        TaskId last = none;
        for (TaskId id = 0; id < program.tasks.size(); ++id)
            if (program.tasks[id].kind == TaskKind::Transfer && program.tasks[id].device == 1)
                last = id;
        QVERIFY(last != none);
        timeline.start[last] += late;
        timeline.end[last] += late;
        for (TaskId id = 0; id < program.tasks.size(); ++id)
            if (program.tasks[id].kind == TaskKind::Update && program.tasks[id].device == 1) {
                timeline.end[id] += timeline.end[last] - timeline.start[id];
                timeline.start[id] = timeline.end[last];
            }
        const std::string path = m_folder / "memory.db";
        {
            TraceWriter writer(path, design, program, smallHeader());
            writer.append(recordsOf(program, timeline, 0, 0));
            writer.append(StepRecord{0, 0, 100'000'000, 0});
            writer.finish({0, 0}, 0, "{}");
        }
        QCOMPARE(calibrate(design, TraceReader(path), "memory.db").costs.hostGap(Op::U, 1), Nanoseconds{0});
    }

    /// A step that is slow without a slow transfer: the link keeps what its transfers took.
    void aSlowStepDoesNotRaiseTheLink()
    {
        const Design design = smallDesign("1f1b", 4, 8);
        const Costs real = realCosts(design);
        Costs slower = real;
        giveGaps(slower, 4);
        for (HostGaps& gaps : slower.hostGaps)
            gaps.before.fill(400'000);
        const std::string path = record("slow.db", design, 5, [&](int) { return slower; });
        const Design found = calibrate(design, TraceReader(path), "slow.db");
        for (const auto& [pair, link] : found.costs.linkOfPair)
            QCOMPARE(link.latency, Nanoseconds{230'000});
    }

    void pytorchsFirstStageDoesAllInItsWeightGradient()
    {
        const Design design = smallDesign("1f1b", 2, 4);
        const std::string path = record("torch.db", design, 3, [&](int) { return realCosts(design); });
        const auto calibrated = [&] {
            const TraceReader trace(path);
            return calibrate(design, {{&trace, "torch.db"}});
        };
        QVERIFY(calibrated().notes.empty());
        QVERIFY(calibrated().design.costs.stages[0].inputGrad > 0);
        {
            SQLite::Database database(path, SQLite::OPEN_READWRITE);
            database.exec("INSERT INTO META VALUES ('tool', 'PyTorch Kineto')");
        }
        const Calibration found = calibrated();
        QCOMPARE(found.notes.size(), std::size_t{1});
        QCOMPARE(found.design.costs.stages[0].inputGrad, Nanoseconds{0});
        QCOMPARE(found.design.costs.stages[0].weightGrad, found.design.costs.stages[0].backward);
        QVERIFY(found.design.costs.stages[1].inputGrad > 0);
        QCOMPARE(originsOf(found.design, 0), std::string("measured measured estimated estimated"));
    }

    void withoutAFinishedStepThereIsNothingToLearn()
    {
        const Design design = smallDesign();
        const std::string path = record("empty.db", design, 0, {});
        const TraceReader trace(path);
        QVERIFY(errorOf([&] { calibrate(design, trace, "empty.db"); }).find("no finished step") != std::string::npos);
    }

    void aTraceOfAnotherDesignIsRefused()
    {
        const Design design = smallDesign();
        const std::string path = record("other.db", design, 2, [&](int) { return realCosts(design); });
        const TraceReader trace(path);
        QVERIFY(errorOf([&] { calibrate(smallDesign("gpipe"), trace, "other.db"); }).find("another program")
                != std::string::npos);
    }
};

PIPEWRIGHT_TEST(TestCalibration, QCoreApplication)
#include "tst_calibration.moc"
