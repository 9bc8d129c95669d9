// SPDX-License-Identifier: GPL-3.0-or-later
// Decoders of today through pipelines: gradients to the bit of the sequential run, in the bytes that were predicted.
#include "core/base/diagnostic.h"
#include "core/design/redesign.h"
#include "core/families/family.h"
#include "core/model/transformer.h"
#include "core/predict/predict.h"
#include "executor/run/backendcheck.h"
#include "makers/models.h"
#include "makers/trainedrun.h"
#include "sanitized.h"
#include "testmain.h"

#include <QTest>

#include <cmath>

using namespace pipewright;
using test::trained;

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

/// Linear biases in place of positions.
ModelShape mpt()
{
    ModelShape shape = runnable(test::llamaShape());
    shape.linearBiases = true;
    shape.rotary = {};
    return shape;
}

ModelShape inBf16(ModelShape shape)
{
    shape.dataType = DataType::Bf16;
    shape.widened = true;
    return shape;
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
        int row = int(family.size()); // models take turns
        for (const ModelShape& shape : {runnable(test::llamaShape()), qwen(), deepseek(), mpt()}) {
            if (leftOut(row++))
                continue;
            const Design design = withBytes(test::tinyDesign(family.toStdString(), 4, 8, shape));
            verifyRun(design, trained(design));
        }
    }

    void bf16TrainsToTheBitsOfTheReferenceInItsBytes_data()
    {
        QTest::addColumn<QByteArray>("family");
        int row = 0;
        for (const char* family : {"gpipe", "1f1b", "interleaved-1f1b", "zb-h1", "v-half", "zb-v", "chimera", "seq1f1b",
                                   "pipedream-2bw", "pipeoptim"})
            if (!leftOut(row++))
                QTest::newRow(family) << QByteArray(family);
    }
    void bf16TrainsToTheBitsOfTheReferenceInItsBytes()
    {
        QFETCH(QByteArray, family);
        for (ModelShape shape : {qwen(), deepseek(), mpt()}) {
            if (findFamily(family.toStdString())->updates)
                shape.tiedHead = false; // two stages' updates would share it
            const Design design = withBytes(test::tinyDesign(family.toStdString(), 4, 8, inBf16(shape)));
            const RunResult result = trained(design);
            verifyRun(design, result);
            QCOMPARE(result.gradients->within, bf16GradientBound);
            // As fp32 trains, within what bf16 can hold of the values, and not the same.
            const RunResult exact = trained(withBytes(test::tinyDesign(family.toStdString(), 4, 8, shape)));
            for (std::size_t step = 0; step < exact.losses.size(); ++step)
                QVERIFY(std::abs(result.losses[step] / exact.losses[step] - 1) < 1e-2);
            QVERIFY(result.losses != exact.losses);
        }
    }

    void bf16PiecesMakeAttentionAgain()
    {
        for (const ModelShape& shape : {qwen(), deepseek(), mpt(), runnable(test::smallShape(4))}) {
            const Design kept = withBytes(test::tinyDesign("seq1f1b", 2, 8, inBf16(shape)));
            const Design again = withBytes(withRecompute(
                kept, std::vector<Recompute>(std::size_t(kept.schedule.stages()), Recompute::BlockSelective)));
            const RunResult usual = trained(kept), result = trained(again);
            verifyRun(kept, usual);
            verifyRun(again, result);
            QCOMPARE(result.losses, usual.losses);
        }
    }

    void bf16SaysWhatItNeedsBeside()
    {
        ModelShape shape = inBf16(qwen());
        shape.widened = false;
        const RunResult result = trained(test::tinyDesign("1f1b", 2, 4, shape));
        QVERIFY(result.gradients->bitEqual);
        QCOMPARE(result.peakBytes, result.predictedPeakBytes);
        QVERIFY(std::any_of(result.notes.begin(), result.notes.end(),
                            [](const Diagnostic& note) { return note.where == "model.widened"; }));
        for (const char* family : {"pipedream-2bw", "seq1f1b"}) {
            shape.tiedHead = false;
            const RunResult other = trained(test::tinyDesign(family, 2, 8, shape));
            QVERIFY2(other.gradients->bitEqual, family);
            QCOMPARE(other.peakBytes, other.predictedPeakBytes);
        }
    }

    void aModelThatThisMachineCannotHoldIsTimedUnlessToldOtherwise()
    {
        ModelShape shape = runnable(test::llamaShape());
        QVERIFY(checkForBackend(withBytes(test::tinyDesign("1f1b", 2, 4, shape)), {"host"}).trains);
        shape.hidden = 65536;
        shape.ffn = 4 * shape.hidden;
        const Design large = test::tinyDesign("1f1b", 2, 4, shape);
        const BackendCheck check = checkForBackend(large, {"host"});
        QVERIFY(!check.trains && !hasErrors(check.found));
        QVERIFY(check.found.front().hint.find("--scale") != std::string::npos);
        QVERIFY(checkForBackend(large, {"host", RunOptions::Maths::Training}).trains);
    }

    void expertsAreCorrectedTowardsBalance()
    {
        // Routers that learn nothing keep visiting the same experts; the correction changes that.
        ModelShape shape = deepseek();
        shape.layers = 2;
        shape.denseLayers = 0;
        shape.routerBiasRate = 0.01;
        RunOptions options;
        options.steps = 2;
        options.maths = RunOptions::Maths::Training;
        const RunResult moved = run(withBytes(test::tinyDesign("zb-h1", 2, 4, shape)), options);
        QVERIFY2(moved.gradients->bitEqual, moved.gradients->worst.c_str());
        shape.routerBiasRate = 0.5; // larger than any difference of scores
        const RunResult far = run(withBytes(test::tinyDesign("zb-h1", 2, 4, shape)), options);
        QVERIFY2(far.gradients->bitEqual, far.gradients->worst.c_str());
        QCOMPARE(far.losses[0], moved.losses[0]);
        QVERIFY(far.losses[1] != moved.losses[1]);
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
        QTest::addColumn<std::size_t>("kind");
        for (std::size_t kind = 1; kind < std::size(recomputeKinds); ++kind)
            QTest::newRow(nameOf(recomputeKinds[kind]).c_str()) << kind;
    }
    void recomputationMakesTheSameAgain()
    {
        QFETCH(std::size_t, kind);
        for (const ModelShape& shape : {qwen(), deepseek(), inBf16(qwen())}) {
            const Design kept = withBytes(test::tinyDesign("zb-h1", 4, 8, shape));
            const RunResult usual = trained(kept);
            const Design design = withBytes(
                withRecompute(kept, std::vector<Recompute>(std::size_t(kept.schedule.stages()), recomputeKinds[kind])));
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

    void everyBackendTrainsInBf16()
    {
        for (ModelShape shape : {test::tinyGpt("1f1b", 2, 4).workload->shape, runnable(test::llamaShape())}) {
            shape.dataType = DataType::Bf16;
            const Design design = test::tinyDesign("1f1b", 2, 4, runnable(shape));
            for (const char* backend : {"host", "mpi", "cuda"})
                QVERIFY(checkForBackend(design, {backend, RunOptions::Maths::Training}).trains);
            RunMeans means{"mpi", RunOptions::Maths::Training};
            means.gpus = true;
            QVERIFY(checkForBackend(design, means).trains);
        }
    }
};

PIPEWRIGHT_TEST(TestDecoderRun, QCoreApplication)
#include "tst_decoderrun.moc"
