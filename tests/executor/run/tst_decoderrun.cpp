// SPDX-License-Identifier: GPL-3.0-or-later
// Decoders of today through pipelines: gradients to the bit of the sequential run, in the bytes that were predicted.
#include "core/base/diagnostic.h"
#include "core/design/redesign.h"
#include "core/predict/predict.h"
#include "core/workload/transformer.h"
#include "executor/run/backendcheck.h"
#include "executor/run/run.h"
#include "makers/models.h"
#include "testmain.h"

#include <QTest>

#include <cmath>

using namespace pipewright;

namespace {

/// Eight layers, so that every family has its stages; the text's bytes are its vocabulary.
ModelShape runnable(ModelShape shape)
{
    shape.layers = 8;
    shape.vocabulary = 256;
    shape.sequence = 8;
    return shape;
}

ModelShape qwen()
{
    ModelShape shape = runnable(test::llamaShape());
    shape.queryKeyNorm = shape.queryKeyValueBias = true;
    shape.tiedHead = true;
    shape.window = 3;
    shape.fullAttentionEvery = 2;
    shape.rotary = {.base = 1'000'000};
    return shape;
}

ModelShape deepseek()
{
    ModelShape shape = runnable(test::llamaShape());
    shape.experts = 6;
    shape.expertsPerToken = 2;
    shape.expertFfn = 10;
    shape.sharedExperts = shape.denseLayers = 1;
    shape.routerScore = RouterScore::Sigmoid;
    shape.routerGroups = 3;
    shape.routerGroupsPerToken = 2;
    shape.routerBias = true;
    shape.headSize = 4;
    shape.rotaryHeadSize = 6;
    shape.valueHeadSize = 5;
    shape.keyValueLatent = 7;
    shape.queryLatent = 9;
    shape.keyValueHeads = shape.heads;
    return shape;
}

RunResult trained(const Design& design)
{
    RunOptions options;
    options.steps = 2;
    options.maths = RunOptions::Maths::Training;
    options.runtime.checkMemory = true;
    return run(design, options);
}

void verifyRun(const Design& design, const RunResult& result)
{
    QVERIFY2(result.gradients->bitEqual, result.gradients->worst.c_str());
    QCOMPARE(result.peakBytes, result.predictedPeakBytes);
    std::vector<Bytes> predicted;
    for (const DeviceMetrics& device : predict(design).metrics.devices)
        predicted.push_back(device.peakBytes);
    QCOMPARE(result.peakBytes, predicted);
    for (const double loss : result.losses)
        QVERIFY(std::isfinite(loss));
}

Design withBytes(Design design)
{
    return trainableDesign(design);
}

} // namespace

class TestDecoderRun : public QObject {
    Q_OBJECT

private slots:
    void familiesTrainToTheBitsOfTheReference_data()
    {
        QTest::addColumn<QByteArray>("family");
        for (const char* family :
             {"gpipe", "1f1b", "interleaved-1f1b", "zb-h1", "v-half", "zb-v", "seq1f1b", "chimera"})
            QTest::newRow(family) << QByteArray(family);
    }
    void familiesTrainToTheBitsOfTheReference()
    {
        QFETCH(QByteArray, family);
        for (const ModelShape& shape : {runnable(test::llamaShape()), qwen(), deepseek()}) {
            const Design design = withBytes(test::tinyDesign(family.toStdString(), 4, 8, shape));
            verifyRun(design, trained(design));
        }
    }

    void updatesAmidTheStepTrainToo()
    {
        const Design design = test::tinyDesign("pipedream-2bw", 2, 8, runnable(test::llamaShape()));
        const RunResult result = trained(design);
        QVERIFY(result.gradients->lagged);
        QVERIFY2(result.gradients->bitEqual, result.gradients->worst.c_str());
        QCOMPARE(result.peakBytes, result.predictedPeakBytes);
    }

    void recomputationMakesTheSameAgain_data()
    {
        QTest::addColumn<int>("recompute");
        QTest::newRow("selective") << int(Recompute::Selective);
        QTest::newRow("full") << int(Recompute::Full);
    }
    void recomputationMakesTheSameAgain()
    {
        QFETCH(int, recompute);
        for (const ModelShape& shape : {qwen(), deepseek()}) {
            const Design kept = withBytes(test::tinyDesign("zb-h1", 4, 8, shape));
            const RunResult usual = trained(kept);
            const Design design = withBytes(
                withRecompute(kept, std::vector<Recompute>(std::size_t(kept.schedule.stages()), Recompute(recompute))));
            const RunResult result = trained(design);
            verifyRun(design, result);
            QCOMPARE(result.losses, usual.losses);
        }
    }

    void theLossFalls()
    {
        RunOptions options;
        options.steps = 30;
        const RunResult result = run(test::tinyDesign("1f1b", 2, 4, runnable(test::llamaShape())), options);
        QCOMPARE(result.maths, std::string("training"));
        QVERIFY2(result.losses.back() < 0.95 * result.losses.front(),
                 qPrintable(QString("%1 to %2").arg(result.losses.front()).arg(result.losses.back())));
    }

    void attentionThatWasToKeepNothingKeepsANumberPerQuery()
    {
        ModelShape shape = runnable(test::llamaShape());
        shape.attention = AttentionMemory::Recomputed;
        const RunResult result = trained(test::tinyDesign("1f1b", 2, 4, shape));
        QVERIFY(result.gradients->bitEqual);
        QCOMPARE(result.peakBytes, result.predictedPeakBytes);
        QVERIFY(std::any_of(result.notes.begin(), result.notes.end(),
                            [](const Diagnostic& note) { return note.where == "model.attention"; }));
    }

    void gpusRefuseWhatTheirKernelsCannotDo()
    {
        const Design design = test::tinyDesign("1f1b", 2, 4, runnable(test::llamaShape()));
        QVERIFY(checkForBackend(design, {"host"}).trains);
        QVERIFY(checkForBackend(design, {"mpi"}).trains);
        RunMeans means{"cuda", RunOptions::Maths::Training};
        const BackendCheck onGpus = checkForBackend(design, means);
        QVERIFY(!onGpus.trains && hasErrors(onGpus.found));
        QVERIFY(onGpus.found.front().hint.find("--backend host") != std::string::npos);
        means.backend = "mpi";
        means.gpus = true;
        QVERIFY(hasErrors(checkForBackend(design, means).found));
        QVERIFY(checkForBackend(test::tinyGpt("1f1b", 2, 4), means).trains);
    }
};

PIPEWRIGHT_TEST(TestDecoderRun, QCoreApplication)
#include "tst_decoderrun.moc"
