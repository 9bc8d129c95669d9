// SPDX-License-Identifier: GPL-3.0-or-later
// Copies of whole pipelines train: gradients to the bits of one sequential run over all microbatches, in the bytes that
// were predicted, and on the virtual clock in the time that was predicted.
#include "core/design/redesign.h"
#include "core/model/transformer.h"
#include "core/predict/predict.h"
#include "core/program/compile.h"
#include "core/schedule/replicas.h"
#include "executor/run/trainabledesign.h"
#include "makers/designs.h"
#include "makers/models.h"
#include "makers/trainedrun.h"
#include "sanitized.h"
#include "testmain.h"

#include <QFile>
#include <QTemporaryDir>
#include <QTest>

#include <numeric>

using namespace pipewright;
using test::trained;

namespace {

Schedule copies(std::string_view family, int replicas, int devices = 2, int microbatches = 4)
{
    FamilyParameters parameters = test::possibleParameters(*findFamily(family), devices, microbatches);
    parameters.devices *= replicas;
    parameters.microbatches *= replicas;
    parameters.replicas = replicas;
    return makeSchedule(family, parameters);
}

/// The tiny GPT on so many copies of the pipeline.
Design tinyCopies(std::string_view family, int replicas, bool tied = true, int devices = 2)
{
    ModelShape shape = test::gptShape(8, 16, 2, 256, 8, 2);
    shape.ffn = 32;
    shape.tiedHead = tied;
    Design design = test::evenDesign({}, copies(family, replicas, devices));
    design.name = "tiny";
    shape.sequencePieces = design.schedule.sequencePieces;
    design.workload = test::workloadOf(shape);
    design.layersPerStage = evenPartition(*design.workload, design.schedule.stages());
    return design;
}

} // namespace

class ReplicaRunTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void everySynchronousFamilyTrainsToTheBitsOfASequentialRun_data()
    {
        QTest::addColumn<QByteArray>("family");
        QTest::addColumn<int>("replicas");
        int row = 0;
        for (const Family& family : families())
            if (!family.updates && !leftOut(row++))
                QTest::addRow("two of %s", family.name.data()) << QByteArray(family.name.data()) << 2;
        for (const char* family : {"1f1b", "zb-h1", "interleaved-1f1b", "v-half"})
            QTest::addRow("four of %s", family) << QByteArray(family) << 4;
        for (const char* family : {"1f1b", "zb-h1", "chimera"})
            QTest::addRow("three of %s", family) << QByteArray(family) << 3;
        QTest::addRow("seven of one device") << QByteArray("gpipe") << 7;
    }
    void everySynchronousFamilyTrainsToTheBitsOfASequentialRun()
    {
        QFETCH(QByteArray, family);
        QFETCH(int, replicas);
        std::vector<double> losses;
        for (const bool tied : {true, false})
            for (const int level : {0, 3}) {
                Design design = tinyCopies(family.toStdString(), replicas, tied);
                design.schedule.zero = {.level = level, .reshard = {tied, {}}};
                if (hasErrors(checkReplicas(design.schedule)))
                    continue; // two replicas have a stage on one device
                const RunResult result = trained(design);
                QVERIFY(result.gradients.has_value());
                QVERIFY(result.gradients->bitEqual);
                QCOMPARE(result.peakBytes, result.predictedPeakBytes);
                QVERIFY(result.losses[0] != result.losses[1]); // something was learnt
                if (level > 0)
                    QCOMPARE(result.losses, losses);
                losses = result.losses;
            }
    }

    /// The first step's loss is of the same weights and microbatches, however they are shared out.
    void copiesStartWithTheLossOfOnePipeline()
    {
        const RunResult two = trained(tinyCopies("1f1b", 2)), four = trained(tinyCopies("1f1b", 4));
        Design design = tinyCopies("1f1b", 1);
        for (const RunResult* result : {&two, &four}) {
            design.schedule = copies("1f1b", 1, 2, result == &two ? 8 : 16);
            const RunResult one = trained(design);
            QCOMPARE(result->losses[0], one.losses[0]);
            QVERIFY(std::abs(result->losses[1] - one.losses[1]) < 1e-4 * one.losses[1]);
        }
    }

    /// Each replica's share of the state, and to the bit what whole updates lead to.
    void sharesOfTheOptimizersStateEndWithTheSameParameters_data()
    {
        QTest::addColumn<QByteArray>("family");
        QTest::addColumn<int>("replicas");
        QTest::addColumn<bool>("narrow");
        for (const char* family : {"1f1b", "zb-h1", "interleaved-1f1b", "v-half", "chimera"})
            for (const bool narrow : {false, true})
                QTest::addRow("two of %s%s", family, narrow ? ", bf16" : "") << QByteArray(family) << 2 << narrow;
        QTest::addRow("three of 1f1b") << QByteArray("1f1b") << 3 << false;
        QTest::addRow("four of gpipe, bf16") << QByteArray("gpipe") << 4 << true;
        QTest::addRow("five of one device with both ends of the model") << QByteArray("gpipe") << 5 << false;
        QTest::addRow("six of 1f1b") << QByteArray("1f1b") << 6 << false;
    }
    void sharesOfTheOptimizersStateEndWithTheSameParameters()
    {
        QFETCH(QByteArray, family);
        QFETCH(int, replicas);
        QFETCH(bool, narrow);
        Design design = tinyCopies(family.toStdString(), replicas, true, replicas == 5 ? 1 : 2);
        if (narrow) {
            ModelShape shape = design.workload->shape;
            shape.dataType = DataType::Bf16;
            shape.widened = true;
            design.workload = makeWorkload(shape, design.workload->optimizer, "test");
        }
        const QTemporaryDir folder;
        std::vector<std::string> dumps;
        std::vector<RunResult> results;
        for (const int level : {0, 1, 2, 3}) {
            design.schedule.zero = {.level = level, .reshard = {narrow, {}}, .prefetch = narrow ? 0 : 1};
            RunOptions options;
            options.steps = 4;
            options.maths = RunOptions::Maths::Training;
            options.runtime.checkMemory = true;
            options.saveWeights = folder.filePath(QString::number(level)).toStdString();
            results.push_back(run(design, options));
            QVERIFY(results.back().gradients && results.back().gradients->bitEqual);
            QCOMPARE(results.back().peakBytes, results.back().predictedPeakBytes);
            for (std::size_t d = 0; d < results.back().heldBytes.size(); ++d)
                QCOMPARE(results.back().heldBytes[d], results.back().memory[d].total());
            QFile file(QString::fromStdString(options.saveWeights));
            QVERIFY(file.open(QIODevice::ReadOnly));
            dumps.push_back(file.readAll().toStdString());
        }
        QVERIFY(results[0].losses[3] != results[0].losses[0] && dumps[0].size() > 1000);
        for (std::size_t level = 1; level < results.size(); ++level) {
            QCOMPARE(results[level].losses, results[0].losses);
            QVERIFY(dumps[level] == dumps[0]);
            design.schedule.zero.level = static_cast<int>(level);
            const Design trains = trainableDesign(design);
            const Program program = compile(trains.schedule, trains.costs, trains.dataflow);
            const std::pair<BufferKind, Bytes StageCosts::*> shared[] = {
                {BufferKind::OptimizerState, &StageCosts::optimizerState},
                {BufferKind::KeptGradients, &StageCosts::gradients},
                {BufferKind::Parameters, &StageCosts::parameters}};
            for (std::size_t i = 0; i < level; ++i) {
                Bytes held = 0, whole = 0;
                for (const Buffer& buffer : program.buffers)
                    held += buffer.kind == shared[i].first ? buffer.bytes : 0;
                for (const StageCosts& stage : trains.costs.stages)
                    whole += stage.*shared[i].second;
                QVERIFY(whole > 0);
                QCOMPARE(held, whole); // once in all replicas together
            }
        }
    }

    void copiesRecomputeAndOffloadToo()
    {
        Design design = tinyCopies("1f1b", 2);
        design.costs.hostLink = LinkCosts{1000, 1e12};
        const RunResult usual = trained(design);
        const auto stages = static_cast<std::size_t>(design.schedule.stages());
        design = withRecompute(design, std::vector<Recompute>(stages, Recompute::BlockSelective));
        design = withOffload(design, std::vector<bool>(stages, true));
        const RunResult result = trained(design);
        QVERIFY(result.gradients->bitEqual);
        QCOMPARE(result.losses, usual.losses);
        QCOMPARE(result.peakBytes, result.predictedPeakBytes);
        QCOMPARE(result.hostBytes, result.predictedHostBytes);
        QVERIFY(std::accumulate(result.hostBytes.begin(), result.hostBytes.end(), Bytes{0}) > 0);
    }

    void theVirtualClockTakesWhatIsPredicted_data()
    {
        QTest::addColumn<QByteArray>("family");
        QTest::addColumn<int>("replicas");
        QTest::addColumn<int>("level");
        int row = 0;
        for (const char* family : {"1f1b", "zb-h1", "interleaved-1f1b", "v-half", "chimera"})
            for (const int replicas : {2, 3, 4})
                for (const int level : {0, 1, 2, 3}) {
                    if (leftOut(row++ + replicas)) // levels take turns
                        continue;
                    QTest::addRow("%d of %s, ZeRO %d", replicas, family, level)
                        << QByteArray(family) << replicas << level;
                }
    }
    void theVirtualClockTakesWhatIsPredicted()
    {
        QFETCH(QByteArray, family);
        QFETCH(int, replicas);
        QFETCH(int, level);
        Design design = test::evenDesign({.transfer = 1000, .saved = 1 << 20, .savedForWeightGrad = 1 << 19},
                                         copies(family.toStdString(), replicas, 4, 8));
        design.schedule.zero.level = level;
        for (StageCosts& stage : design.costs.stages) {
            stage.gradients = stage.parameters = 4 << 10;
            stage.optimizerState = 8 << 10;
            stage.update = 50'000;
        }
        design.costs.link = {1000, 1e8};
        RunOptions options;
        options.steps = 2;
        options.clock = RunOptions::Clock::Virtual;
        const RunResult result = run(design, options);
        QCOMPARE(result.peakBytes, result.predictedPeakBytes);
        for (const Nanoseconds step : result.stepTimes)
            QCOMPARE(step, predict(design).metrics.makespan);
    }
};

PIPEWRIGHT_TEST(ReplicaRunTest, NoApplication)
#include "tst_replicarun.moc"
