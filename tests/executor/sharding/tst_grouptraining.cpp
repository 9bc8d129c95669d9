// SPDX-License-Identifier: GPL-3.0-or-later
// Pipelines whose stages are held by groups, trained on all members: gradients against one device that has the whole
// model, and every member's memory against what was planned.
#include "core/design/redesign.h"
#include "core/design/stageplans.h"
#include "core/predict/evaluator.h"
#include "core/program/compile.h"
#include "core/program/memberprogram.h"
#include "executor/host/hostbackend.h"
#include "executor/runtime/runtime.h"
#include "executor/runtime/timedwork.h"
#include "executor/sharding/drydevice.h"
#include "executor/sharding/grouptraining.h"
#include "executor/sharding/trainedgroups.h"
#include "executor/training/referencetrainer.h"
#include "sanitized.h"
#include "testmain.h"

#include <QTest>

#include <algorithm>
#include <cmath>

using namespace pipewright;
using namespace pipewright::test;
using namespace pipewright::sharding;

class GroupTrainingTest : public QObject {
    Q_OBJECT

    static constexpr int microbatches = sanitized ? 2 : 4;

private Q_SLOTS:
    void gradientsAreThoseOfOneDeviceAndBytesAreThosePlanned_data()
    {
        QTest::addColumn<QString>("family");
        int row = 0;
        for (const char* family : {"gpipe", "1f1b", "zb-h1", "v-half", "interleaved-1f1b"})
            if (!leftOut(row++))
                QTest::newRow(family) << family;
    }
    void gradientsAreThoseOfOneDeviceAndBytesAreThosePlanned()
    {
        QFETCH(QString, family);
        verify(trained(groupDesign(family.toStdString(), {{1e9, 5e8}, {1e9, 1e9}}, microbatches, groupShape(6))));
    }

    void modelsOfTodayTrainInEveryFamily_data()
    {
        QTest::addColumn<QString>("family");
        QTest::addColumn<bool>("tied");
        int row = 0;
        for (const bool tied : {false, true})
            for (const char* family : {"zb-h1", "1f1b", "interleaved-1f1b", "v-half"})
                if (!leftOut(row++))
                    QTest::addRow("%s%s", family, tied ? " with a tied head" : "") << family << tied;
    }
    void modelsOfTodayTrainInEveryFamily()
    {
        QFETCH(QString, family);
        QFETCH(bool, tied);
        const ModelShape shape = tied ? groupGemma() : groupLlama();
        verify(trained(groupDesign(family.toStdString(), {{1e9, 5e8}, {1e9, 1e9}}, microbatches, shape)));
    }

    void aTiedHeadIsSummedHoweverTheTwoSidesAreCut_data()
    {
        QTest::addColumn<QByteArray>("strategy");
        int row = 0;
        for (const StrategyFacts& facts : strategies())
            if (!leftOut(row++))
                QTest::newRow(facts.name.data()) << QByteArray(facts.name.data());
    }
    void aTiedHeadIsSummedHoweverTheTwoSidesAreCut()
    {
        QFETCH(QByteArray, strategy);
        const ModelShape shape = groupGemma(4);
        const Design design = groupDesign("1f1b", {{1e9, 5e8}, {1e9, 5e8, 5e8}}, microbatches, shape);
        verify(trained(strategy.contains("megatron") // three members do not share two heads of keys
                           ? withPlan(design, 0, {*strategyNamed(strategy.toStdString()), {}, {}})
                           : withStrategy(design, *strategyNamed(strategy.toStdString()))));
    }

    void skipConnectionsTrain_data()
    {
        QTest::addColumn<QString>("family");
        int row = 0;
        for (const char* family : {"zb-h1", "1f1b", "interleaved-1f1b", "v-half"})
            if (!leftOut(row++))
                QTest::newRow(family) << family;
    }
    void skipConnectionsTrain()
    {
        QFETCH(QString, family);
        Design design = groupDesign(family.toStdString(), {{1e9, 5e8}, {2e9}, {1e9, 1e9}}, 6, groupLlama(7));
        const int last = design.schedule.stages() - 1;
        for (const auto& [from, to] : {std::pair{0, last}, std::pair{0, last - 1}})
            design.dataflow.skips.push_back({from, to, design.costs.stages[static_cast<std::size_t>(from)].output});
        QVERIFY(whyNoMembers(design).empty());
        verify(trained(design));
        verify(trained(
            withRecompute(design, std::vector<Recompute>(static_cast<std::size_t>(last) + 1, Recompute::Block))));
        design.dataflow.skips.front().bytes += 4;
        QVERIFY(!whyNoMembers(design).empty());
    }

    void bothDirectionsOfAPipelineTrain_data()
    {
        QTest::addColumn<bool>("tied");
        QTest::newRow("with a head of its own") << false;
        QTest::newRow("with a tied head") << true;
    }
    void bothDirectionsOfAPipelineTrain()
    {
        QFETCH(bool, tied);
        const Design design =
            groupDesign("chimera", {{1e9, 5e8}, {1e9, 7e8, 3e8}}, 4, tied ? groupGemma(4) : groupShape());
        QCOMPARE(design.schedule.replicas(), 2);
        verify(trained(design));
    }

    void copiesOfAPipelineOfGroupsTrain_data()
    {
        QTest::addColumn<QString>("family");
        QTest::addColumn<int>("copies");
        int row = 0;
        for (const auto& [family, copies] :
             {std::pair{"1f1b", 3}, {"zb-h1", 4}, {"1f1b", 2}, {"zb-h1", 3}, {"v-half", 5}, {"gpipe", 7}})
            if (!leftOut(row++))
                QTest::addRow("%d of %s", copies, family) << family << copies;
    }
    void copiesOfAPipelineOfGroupsTrain()
    {
        QFETCH(QString, family);
        QFETCH(int, copies);
        Design design =
            copiesOf(groupDesign(family.toStdString(), {{1e9, 5e8}, {1e9, 7e8, 3e8}}, 2, groupShape()), copies);
        QVERIFY(whyNoMembers(design).empty());
        const Run whole = trained(design, 3);
        verify(whole);
        // Each replica updates a share, to the bit what whole updates lead to.
        design.schedule.zero.level = 1;
        QVERIFY(whyNoMembers(design).empty());
        const Run shares = trained(design, 3);
        verify(shares);
        verifySame(shares, whole);
        QCOMPARE(shares.state, whole.state / copies);
        for (std::size_t device = 0; device < whole.peak.size(); ++device)
            QVERIFY(shares.persistent[device] < whole.persistent[device]);
    }

    void copiesInBf16ShareTheirMasterCopies()
    {
        ModelShape shape = groupGemma(4);
        shape.dataType = DataType::Bf16;
        for (const int copies : {2, 3}) {
            Design design = copiesOf(groupDesign("1f1b", {{1e9, 5e8}, {1e9, 1e9}}, 2, shape), copies);
            const Run whole = trained(design, 3);
            verifyNarrow(whole);
            design.schedule.zero.level = 1;
            const Run shares = trained(design, 3);
            verifyNarrow(shares);
            verifySame(shares, whole);
            QCOMPARE(shares.state, whole.state / copies);
        }
    }

    void copiesOnUnlikeGroupsTrainAndShareNothing()
    {
        Design design = copiesOf(groupDesign("1f1b", {{1e9, 5e8}, {1e9, 1e9}}, 2, groupShape()), 3);
        design.cluster.devices[3] = groupDevice({1e9, 7e8, 3e8}); // of the second copy
        design.cluster.devices[4] = groupDevice({2e9});           // of the third one, which is sent the sum
        design.cluster.devices[5] = groupDevice({1e9, 5e8, 5e8, 2e8});
        QVERIFY(whyNoMembers(design).empty());
        verify(trained(design));
        design.schedule.zero.level = 1;
        const Diagnostics why = whyNoMembers(design);
        QCOMPARE(why.size(), std::size_t{1});
        QCOMPARE(why.front().where, std::string("schedule.zero"));
        QVERIFY(!why.front().hint.empty());
    }

    void theReferenceIsTheModelThatSingleDevicesTrain_data()
    {
        QTest::addColumn<QString>("model");
        int row = 0;
        for (const auto& [name, shape] : groupModels())
            if (!leftOut(row++))
                QTest::newRow(name) << QString(name);
    }
    void theReferenceIsTheModelThatSingleDevicesTrain()
    {
        QFETCH(QString, model);
        const ModelShape shape = groupModel(model);
        compareReferences(groupDesign("1f1b", {{1e9, 5e8}}, 2, shape));
        if (mayBeCut(shape))
            compareReferences(groupDesign("seq1f1b", {{1e9, 5e8}}, 2, inTwelve(shape)));
    }

private:
    static void compareReferences(const Design& design)
    {
        const ModelShape& shape = design.workload->shape;
        const int microbatches = design.schedule.microbatches;
        const auto data = loadTrainingData("", shape, 7, 4);
        const WholeTensors values = initialParameters(*design.workload, 3);
        const ReferenceStep reference = referenceStep(design, values, sampleStep(*data, shape, 0, microbatches));
        ReferenceTrainer single(*design.workload, design.layersPerStage, microbatches, {}, *data, 3);
        const ParameterLayout& layout = single.maths(0).parameters();
        const std::span<const float> parameters = single.parameters(0);
        QCOMPARE(inLayout(values, shape, layout), std::vector<float>(parameters.begin(), parameters.end()));
        if (shape.experts > 0
            && shape.sequence > 1) // a group's have room for as many tokens as each would get if all got alike
            return;
        const double loss = single.step(design.schedule);
        QVERIFY2(std::abs(loss - reference.loss) < 1e-6 * loss,
                 qPrintable(QString("%1 %2").arg(loss).arg(reference.loss)));
        for (const auto& [name, gradient] : wholeTensors(*design.workload, layout, single.gradients(0))) {
            if (isRoundingAlone(name, shape.sequence))
                continue;
            const double error = errorOf(gradient, reference.gradients.at(name));
            QVERIFY2(error < 1e-5, qPrintable(QString("%1 %2").arg(QString::fromStdString(name)).arg(error)));
        }
    }

private Q_SLOTS:
    void everyModelTrains_data()
    {
        QTest::addColumn<QString>("model");
        QTest::addColumn<QString>("plan");
        int row = 0;
        for (const auto& [name, shape] : groupModels())
            for (const char* plan : {"hap", "megatron", "data-parallel"})
                if (!leftOut(row++))
                    QTest::addRow("%s, %s", name, plan) << QString(name) << QString(plan);
    }
    void everyModelTrains()
    {
        QFETCH(QString, model);
        QFETCH(QString, plan);
        const Design design = withStrategy(groupDesign("1f1b", {{1e9, 5e8}, {1e9, 1e9}}, 3, groupModel(model)),
                                           *strategyNamed(plan.toStdString()));
        verify(trained(design));
    }

    void aDeviceOfItsOwnBesideAGroupHasTheMemoryThatItNeeds_data()
    {
        theReferenceIsTheModelThatSingleDevicesTrain_data();
    }
    void aDeviceOfItsOwnBesideAGroupHasTheMemoryThatItNeeds()
    {
        QFETCH(QString, model);
        verify(trained(groupDesign("1f1b", {{1e9, 5e8}, {1e9}}, 4, groupModel(model))));
    }

    void everyStepMovesTheCorrectionOfTheExpertsChoice()
    {
        const Run run = trained(groupDesign("1f1b", {{1e9, 5e8}, {1e9, 1e9}}, 4, groupSigmoids(true)), 3);
        const std::vector<float>& correction = run.parameters.at("0.router.correction").data; // after two of three
        QVERIFY(std::any_of(correction.begin(), correction.end(), [](float value) { return value != 0; }));
        for (const float value : correction)
            QVERIFY(value == 0 || std::abs(std::abs(value) - 0.02f) < 1e-6f
                    || std::abs(std::abs(value) - 0.04f) < 1e-6f);
        const std::vector<float>& visits = run.gradients.at("0.router.correction").data;
        double all = 0;
        for (const float count : visits)
            all += double(count);
        const ModelShape shape = groupSigmoids(true); // every copy of a token finds room
        QCOMPARE(all, double(4 * shape.tokens() * shape.expertsPerToken));
    }

    void everyModelTrainsInBf16_data() { theReferenceIsTheModelThatSingleDevicesTrain_data(); }
    void everyModelTrainsInBf16()
    {
        QFETCH(QString, model);
        ModelShape shape = groupModel(model);
        shape.dataType = DataType::Bf16;
        verifyNarrow(trained(groupDesign("zb-h1", {{1e9, 5e8}, {1e9, 1e9}}, 3, shape)));
    }

    void stagesThatRecomputeTrainAlikeInLessMemory_data()
    {
        QTest::addColumn<QString>("family");
        int row = 0;
        for (const char* family : {"gpipe", "1f1b", "zb-h1", "interleaved-1f1b", "v-half"})
            if (!leftOut(row++))
                QTest::newRow(family) << family;
    }
    void stagesThatRecomputeTrainAlikeInLessMemory()
    {
        QFETCH(QString, family);
        const Design plain = groupDesign(family.toStdString(), {{1e9, 5e8}, {1e9, 1e9}}, microbatches, groupShape(6));
        const auto stages = static_cast<std::size_t>(plain.schedule.stages());
        const Design all = withRecompute(plain, std::vector<Recompute>(stages, Recompute::Block));
        std::vector<Recompute> some(stages, Recompute::None);
        some.front() = Recompute::Block;
        const Run kept = trained(plain), again = trained(all);
        verify(again);
        verify(trained(withRecompute(plain, some)));
        // What is made again is what was there.
        for (const auto& [name, gradient] : kept.gradients)
            QVERIFY2(again.gradients.at(name).data == gradient.data, name.c_str());
        QVERIFY(family != "gpipe" || again.peak.front() < kept.peak.front());
    }

    void stagesThatOffloadTrainAlike_data()
    {
        QTest::addColumn<QString>("family");
        QTest::addColumn<bool>("narrow");
        int row = 0;
        for (const char* family : {"1f1b", "zb-h1", "interleaved-1f1b", "chimera"})
            if (!leftOut(row++))
                QTest::newRow(family) << family << (row == 1);
    }
    void stagesThatOffloadTrainAlike()
    {
        QFETCH(QString, family);
        QFETCH(bool, narrow);
        ModelShape shape = groupShape(6);
        shape.dataType = narrow ? DataType::Bf16 : DataType::Fp32;
        const Design plain = groupDesign(family.toStdString(), {{1e9, 5e8}, {1e9, 1e9}}, 6, shape);
        const Run kept = trained(plain), away = trained(offloading(plain, 1e12));
        QCOMPARE(away.peak, away.planned);
        QVERIFY(*std::max_element(away.peak.begin() + 4, away.peak.end()) > 0);
        for (const auto& [name, gradient] : kept.gradients)
            QVERIFY2(away.gradients.at(name).data == gradient.data, name.c_str());
    }

    void bf16TrainsInHalfTheRoom_data()
    {
        QTest::addColumn<QString>("family");
        QTest::addColumn<QString>("plan");
        int row = 0;
        for (const auto& [family, plan] : {std::pair{"zb-h1", "hap"}, std::pair{"v-half", "megatron-sequence"},
                                           std::pair{"chimera", "data-parallel"}})
            if (!leftOut(row++))
                QTest::newRow(family) << family << plan;
    }
    void bf16TrainsInHalfTheRoom()
    {
        QFETCH(QString, family);
        QFETCH(QString, plan);
        const Strategy strategy = *strategyNamed(plan.toStdString());
        ModelShape shape = groupGemma(4);
        const auto made = [&] {
            return withStrategy(groupDesign(family.toStdString(), {{1e9, 5e8}, {1e9, 1e9}}, microbatches, shape),
                                strategy);
        };
        const Design wide = made();
        shape.dataType = DataType::Bf16;
        const Design narrow = made();
        const Run run = trained(narrow);
        verifyNarrow(run);
        const Run again = trained(withRecompute(
            narrow, std::vector<Recompute>(static_cast<std::size_t>(narrow.schedule.stages()), Recompute::Block)));
        verifyNarrow(again);
        for (const auto& [name, gradient] : run.gradients)
            QVERIFY2(again.gradients.at(name).data == gradient.data, name.c_str());
        QVERIFY(run.peak.front() < trained(wide).peak.front());
    }

    void groupsOfUnlikeSizesTrain()
    {
        verify(trained(groupDesign("zb-h1", {{1e9, 5e8}, {2e9}, {1e9, 7e8, 3e8}}, 6, groupShape(7))));
    }

    void everyPlanThatCanBeAskedForTrains_data()
    {
        QTest::addColumn<QByteArray>("name");
        QTest::addColumn<bool>("experts");
        int row = 0;
        for (const bool experts : {false, true})
            for (const StrategyFacts& facts : strategies()) {
                if (leftOut(row++))
                    continue;
                const QByteArray name(facts.name.data());
                QTest::newRow(experts ? name + " with experts" : name) << name << experts;
            }
    }
    void everyPlanThatCanBeAskedForTrains()
    {
        QFETCH(QByteArray, name);
        QFETCH(bool, experts);
        const ModelShape shape = experts ? groupExperts() : groupShape();
        const Design design = groupDesign("zb-h1", {{1e9, 5e8}, {1e9, 5e8, 5e8}}, microbatches, shape);
        verify(trained(withStrategy(design, *strategyNamed(name.toStdString()))));
    }

    void sharesThatAPersonStatesTrain()
    {
        Design design = withStrategy(groupDesign("1f1b", {{1e9, 5e8}, {1e9, 5e8}}, microbatches), Strategy::Megatron);
        StatedPlan plan = design.plans[0];
        plan.ratios = {0.25, 0.75}; // the slower one has more heads
        verify(trained(withPlan(design, 0, plan)));
    }

    void aSlowWireCutsTheBatchAndAFastOneTheMatrices()
    {
        verify(trained(groupDesign("1f1b", {{1e9, 5e8}, {1e9, 5e8}}, microbatches, groupShape(), 1e6)));
        verify(trained(groupDesign("1f1b", {{1e9, 5e8}, {1e9, 5e8}}, microbatches, groupShape(), 1e13)));
    }

    void mlpsTrain_data()
    {
        QTest::addColumn<QString>("family");
        QTest::addColumn<QString>("plan");
        int row = 0;
        for (const auto& [family, plan] : {std::pair{"1f1b", "hap"},
                                           {"zb-h1", "megatron"},
                                           {"interleaved-1f1b", "data-parallel"},
                                           {"v-half", "tag"}})
            if (!leftOut(row++))
                QTest::newRow(family) << family << plan;
    }
    void mlpsTrain()
    {
        QFETCH(QString, family);
        QFETCH(QString, plan);
        verify(
            trained(withStrategy(groupDesign(family.toStdString(), {{1e9, 5e8}, {1e9, 1e9}}, microbatches, groupMlp(6)),
                                 *strategyNamed(plan.toStdString()))));
    }

    void expertsTrain()
    {
        verify(trained(groupDesign("zb-h1", {{1e9, 5e8}, {1e9, 1e9}}, microbatches, groupExperts())));
    }

    void timedBlocksOnAVirtualClockTakeWhatIsPredicted_data()
    {
        QTest::addColumn<QString>("family");
        QTest::addColumn<bool>("more");
        QTest::newRow("split backward") << "zb-h1" << false;
        QTest::newRow("a tied head and a skip connection") << "interleaved-1f1b" << true;
        QTest::newRow("two replicas") << "chimera" << true;
        QTest::newRow("what is kept leaves") << "gpipe" << true;
        QTest::newRow("updates amid the step") << "pipeoptim" << false;
        QTest::newRow("pieces of sequences") << "seq1f1b" << false;
        QTest::newRow("three copies") << "v-half" << false;
        QTest::newRow("three copies that share the optimizer's state") << "v-half" << true;
    }
    void timedBlocksOnAVirtualClockTakeWhatIsPredicted()
    {
        QFETCH(QString, family);
        QFETCH(bool, more);
        Design design =
            groupDesign(family.toStdString(), {{1e9, 5e8}, {1e9, 1e9, 4e8}}, 6, more ? groupGemma(4) : groupShape());
        if (family == "interleaved-1f1b")
            design.dataflow.skips.push_back({0, 3, design.costs.stages[0].output});
        if (family == "gpipe")
            design = offloading(design, 1e9);
        if (family == "v-half") {
            design = copiesOf(design, 3);
            design.schedule.zero.level = more ? 1 : 0;
            for (StageCosts& stage : design.costs.stages)
                stage.update = 100'000;
        }
        const GroupStages stages = groupStages(design);
        const MemberProgram members = memberProgram(compile(design.schedule, design.costs, design.dataflow), stages,
                                                    design.costs, design.schedule.transferOrder);
        Evaluator evaluator(members.program);
        evaluator.setDurations(members.durations);
        Timeline predicted;
        evaluator.evaluate(predicted);
        const auto backend = createHostBackend(stages.members());
        TimedWork work(members.durations, TimedWork::Pace::Virtual);
        Runtime runtime(members.program, *backend, work, nullptr,
                        {.virtualClock = true, .durations = members.durations});
        const StepOutcome step = runtime.runStep(0);
        QCOMPARE(step.end - step.start, *std::max_element(predicted.end.begin(), predicted.end.end()));
    }

    void aMemberThatFailsEndsTheStep()
    {
        const Design design = groupDesign("1f1b", {{1e9, 5e8}, {1e9, 1e9}}, 4);
        GroupStages stages = groupStages(design);
        measureMembers(stages, factsOf(design.workload->optimizer).values);
        const MemberProgram members = memberProgram(compile(design.schedule, design.costs, design.dataflow), stages,
                                                    design.costs, design.schedule.transferOrder);
        const auto data = loadTrainingData("", design.workload->shape, 7, 4);
        GroupTraining work(std::make_unique<DesignModel>(design, *data, 3), stages, {});
        const auto backend = createHostBackend(stages.members());
        Runtime runtime(members.program, *backend, work, nullptr,
                        {.faults = {{.kind = Fault::Kind::Throws, .device = 1, .instruction = 0}}});
        try {
            runtime.runStep(0);
            QFAIL("the step went on without a member");
        } catch (const Error& error) {
            const QString text = QString::fromStdString(toString(error.diagnostics()));
            QVERIFY2(text.contains("waits at F0.0 collective"), qPrintable(text));
            QVERIFY2(text.contains("for the other members of its group (device 1 stopped"), qPrintable(text));
        }
    }
};

PIPEWRIGHT_TEST(GroupTrainingTest, NoApplication)
#include "tst_grouptraining.moc"
