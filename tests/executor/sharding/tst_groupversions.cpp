// SPDX-License-Identifier: GPL-3.0-or-later
// Groups whose schedules update amid the step: every block reads the version that the schedule says, parameters are
// those of single devices with the same weight rule, and every member has the memory that was planned.
#include "core/design/stageplans.h"
#include "core/schedule/weightplan.h"
#include "executor/run/gradientcheck.h"
#include "executor/run/trainabledesign.h"
#include "executor/sharding/trainedgroups.h"
#include "sanitized.h"
#include "testmain.h"

#include <QTest>

using namespace pipewright;
using namespace pipewright::test;
using namespace pipewright::sharding;

namespace {

/// Trains for some steps, and has a reference of single devices do the last one again.
GradientCheck checkOfLast(const Design& design, int steps = 3)
{
    OptimizerSettings optimizer;
    optimizer.kind = design.schedule.weightPolicy.optimizer;
    GroupStages stages = groupStages(design);
    measureMembers(stages, factsOf(optimizer.kind).values, design.schedule.recompute);
    const MemberProgram members = memberProgram(compile(design.schedule, design.costs, design.dataflow), stages,
                                                design.costs, design.schedule.transferOrder);
    const auto data = loadTrainingData("", design.workload->shape, 7, 4);
    const int batch = microbatchesPerUpdate(members.program);
    GroupTraining work(std::make_unique<DesignModel>(design, *data, 3, TrainedWork::Start(), batch), stages, optimizer,
                       design.schedule.recompute);
    const auto backend = createHostBackend(stages.members());
    Runtime runtime(members.program, *backend, work, nullptr, {.checkMemory = true});
    const LastStep last{design, members.program, optimizer, *data, steps - 1, fp32GradientBound};
    std::vector<StageStart> start;
    for (int step = 0; step < steps; ++step) {
        start = startOfStages(last, work.values(BufferKind::Parameters), work.optimizerState());
        runtime.runStep(step);
        if (const TaskId wrong = work.versions()->firstDifference(); wrong != none)
            throw Error(members.program.label(wrong), "read another version", "");
    }
    for (std::size_t d = 0; d < members.program.devices.size(); ++d)
        if (runtime.peakBytes()[d] != members.program.devices[d].peakBytes)
            throw Error("memory", "is not what was planned", "");
    return checkUpdates(last, start, work.values(BufferKind::Parameters));
}

void verify(const GradientCheck& check, double bound)
{
    QVERIFY2(check.maxRelativeError < bound,
             qPrintable(QString("%1 %2").arg(check.worst.c_str()).arg(check.maxRelativeError)));
}

} // namespace

class GroupVersionsTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void parametersAreThoseOfSingleDevices_data()
    {
        QTest::addColumn<QString>("family");
        QTest::addColumn<QString>("plan");
        int row = 0;
        for (const char* family : {"async-1f1b", "pipedream", "pipedream-2bw", "spectrain", "xpipe", "pipeoptim"})
            for (const char* plan : {"hap", "megatron", "data-parallel"})
                if (!leftOut(row++))
                    QTest::addRow("%s, %s", family, plan) << family << plan;
    }
    void parametersAreThoseOfSingleDevices()
    {
        QFETCH(QString, family);
        QFETCH(QString, plan);
        const Design design = withStrategy(groupDesign(family.toStdString(), {{1e9, 5e8}, {1e9, 1e9}}, 4, groupShape()),
                                           *strategyNamed(plan.toStdString()));
        QVERIFY(hasUpdates(design.schedule));
        QCOMPARE(whyNoMembers(design).size(), std::size_t{0});
        // XPipe's Adam divides a gradient by its size, however small it is.
        verify(checkOfLast(design), family == "xpipe" ? fp32GradientBound : 1e-5);
    }

    void whatMembersExchangedOfWeightsIsTheForwards()
    {
        const auto sharded = [](const char* family) {
            return withStrategy(groupDesign(family, {{1e9, 5e8}, {1e9, 1e9}}, 4, groupShape()),
                                *strategyNamed("deepspeed"));
        };
        verify(checkOfLast(sharded("pipedream")), 1e-5);
        QVERIFY_THROWS_EXCEPTION(Error, checkOfLast(sharded("pipeoptim"))); // its backwards read newer ones
    }

    void everyModelTrains_data()
    {
        QTest::addColumn<QString>("model");
        QTest::addColumn<bool>("narrow");
        int row = 0;
        for (const auto& [name, shape] : groupModels())
            for (const bool narrow : {false, true})
                if (shape.experts == 0 && !leftOut(row++))
                    QTest::addRow("%s%s", name, narrow ? ", bf16" : "") << QString(name) << narrow;
    }
    void everyModelTrains()
    {
        QFETCH(QString, model);
        QFETCH(bool, narrow);
        ModelShape shape = groupModel(model);
        shape.tiedHead = shape.tiedHead && shape.architecture == Architecture::Encoder;
        shape.dataType = narrow ? DataType::Bf16 : DataType::Fp32;
        for (const char* family : {"pipedream", "pipeoptim"}) {
            const Design plain = groupDesign(family, {{1e9, 5e8}, {1e9}}, 4, shape);
            for (const Design& design :
                 {plain, withRecompute(plain, std::vector<Recompute>(2, Recompute::Block)), offloading(plain, 1e12)})
                verify(checkOfLast(design), narrow ? bf16GradientBound : 1e-5);
        }
    }
};

PIPEWRIGHT_TEST(GroupVersionsTest, NoApplication)
#include "tst_groupversions.moc"
