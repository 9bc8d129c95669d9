// SPDX-License-Identifier: GPL-3.0-or-later
// What forwards keep, made again or offloaded, on pretended GPUs: the bits of the reference, in the bytes predicted.
#include "core/design/redesign.h"
#include "executor/cuda/pretendedruns.h"
#include "makers/models.h"
#include "testmain.h"

#include <QTest>

using namespace pipewright;
using pretended::onPretendedGpus;

class TestCudaKept : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void stagesThatRecomputeTrainToTheBitsOfTheReference_data()
    {
        QTest::addColumn<bool>("graphs");
        QTest::newRow("launched") << false;
        QTest::newRow("captured") << true;
    }
    void stagesThatRecomputeTrainToTheBitsOfTheReference()
    {
        QFETCH(bool, graphs);
        for (const Recompute recompute : {Recompute::Selective, Recompute::Full}) {
            Design design = test::tinyGpt("zb-h1", 2, 4);
            design = withRecompute(design, std::vector(design.schedule.deviceOfStage.size(), recompute));
            RunOptions options = onPretendedGpus();
            options.runtime.captureBlocks = graphs;
            const RunResult gpu = run(design, options);
            QCOMPARE(gpu.maths, std::string("training"));
            QVERIFY(gpu.gradients && gpu.gradients->bitEqual);
            QCOMPARE(gpu.peakBytes, gpu.predictedPeakBytes);
        }
    }

    void stagesThatOffloadTrainToTheBitsOfTheReference_data()
    {
        stagesThatRecomputeTrainToTheBitsOfTheReference_data();
    }
    void stagesThatOffloadTrainToTheBitsOfTheReference()
    {
        QFETCH(bool, graphs);
        for (const char* family : {"gpipe", "zb-h1"}) {
            Design design = test::tinyGpt(family, 2, 8);
            design.costs.hostLink = LinkCosts{0, 1e12};
            design = withOffload(design, std::vector<bool>(design.schedule.deviceOfStage.size(), true));
            RunOptions options = onPretendedGpus();
            options.runtime.captureBlocks = graphs;
            const RunResult gpu = run(design, options);
            QCOMPARE(gpu.maths, std::string("training"));
            QVERIFY(gpu.gradients && gpu.gradients->bitEqual);
            QCOMPARE(gpu.peakBytes, gpu.predictedPeakBytes);
            QCOMPARE(gpu.hostBytes, gpu.predictedHostBytes);
            QVERIFY(gpu.hostBytes[0] > 0);
            QCOMPARE(gpu.droppedRecords, 0);
        }
    }
};

PIPEWRIGHT_TEST(TestCudaKept, NoApplication)
#include "tst_cudakept.moc"
