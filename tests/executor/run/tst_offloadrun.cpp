// SPDX-License-Identifier: GPL-3.0-or-later
// Stages that offload train to the bits of those that do not, in the bytes that were predicted on the device and on the
// host.
#include "core/design/redesign.h"
#include "core/predict/predict.h"
#include "executor/run/backendcheck.h"
#include "makers/designs.h"
#include "makers/models.h"
#include "makers/trainedrun.h"
#include "testmain.h"

#include <QTest>

#include <numeric>

using namespace pipewright;
using test::trained;

namespace {

Design offloading(Design design, double perSecond)
{
    design.costs.hostLink = LinkCosts{1000, perSecond};
    return withOffload(design, std::vector<bool>(static_cast<std::size_t>(design.schedule.stages()), true));
}

Bytes sumOf(const std::vector<Bytes>& bytes)
{
    return std::accumulate(bytes.begin(), bytes.end(), Bytes{0});
}

} // namespace

class OffloadRunTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void everyFamilyTrainsToTheSameBits_data()
    {
        QTest::addColumn<QByteArray>("family");
        for (const Family& family : families())
            QTest::newRow(family.name.data()) << QByteArray(family.name.data());
    }
    void everyFamilyTrainsToTheSameBits()
    {
        QFETCH(QByteArray, family);
        const Design kept = test::tinyGpt(family.toStdString(), 4, 8);
        const RunResult usual = trained(kept);
        QVERIFY(usual.gradients->bitEqual);
        const Design design = offloading(kept, 1e12);
        const RunResult result = trained(design);
        QVERIFY(result.gradients->bitEqual);
        QCOMPARE(result.losses, usual.losses);
        QCOMPARE(result.peakBytes, result.predictedPeakBytes);
        QCOMPARE(result.hostBytes, result.predictedHostBytes);
        QVERIFY(sumOf(result.hostBytes) > 0);
    }

    /// What recomputes keeps less, and what is left of it leaves too.
    void stagesThatRecomputeOffloadTheRest()
    {
        Design design = test::tinyGpt("1f1b", 4, 8);
        design = withRecompute(design, std::vector<Recompute>(4, Recompute::BlockSelective));
        const RunResult result = trained(offloading(design, 1e12));
        QVERIFY(result.gradients->bitEqual);
        QCOMPARE(result.peakBytes, result.predictedPeakBytes);
        QCOMPARE(result.hostBytes, result.predictedHostBytes);
        QVERIFY(sumOf(result.hostBytes) > 0);
    }

    void aDeviceThatOffloadsHoldsLess()
    {
        for (const char* family : {"gpipe", "1f1b", "zb-h1"}) {
            const Design kept = test::tinyGpt(family, 4, 8);
            const RunResult with = trained(offloading(kept, 1e12));
            QVERIFY2(with.peakBytes[0] < trained(kept).peakBytes[0], family);
        }
    }

    void theVirtualClockTakesWhatIsPredicted_data()
    {
        QTest::addColumn<QByteArray>("family");
        QTest::addColumn<double>("perSecond");
        for (const char* family : {"gpipe", "1f1b", "zb-h1", "v-half", "interleaved-1f1b", "dualpipe"})
            for (const double perSecond : {1e12, 1048576e3, 400e6})
                QTest::addRow("%s at %g", family, perSecond) << QByteArray(family) << perSecond;
    }
    void theVirtualClockTakesWhatIsPredicted()
    {
        QFETCH(QByteArray, family);
        QFETCH(double, perSecond);
        const Design design =
            offloading(test::evenDesign({.transfer = 1000, .saved = 1 << 20, .savedForWeightGrad = 1 << 19},
                                        test::possibleSchedule(family.toStdString(), 4, 16)),
                       perSecond);
        RunOptions options;
        options.steps = 2;
        options.clock = RunOptions::Clock::Virtual;
        const RunResult result = run(design, options);
        const Prediction prediction = predict(design);
        QCOMPARE(result.peakBytes, result.predictedPeakBytes);
        QCOMPARE(result.hostBytes, result.predictedHostBytes);
        for (const Nanoseconds step : result.stepTimes)
            QCOMPARE(step, prediction.metrics.makespan);
    }

    void everyBackendMayOffload()
    {
        const Design design = offloading(test::tinyGpt("1f1b", 4, 8), 1e12);
        for (const std::string_view backend : runBackends)
            QVERIFY(!hasErrors(checkForBackend(design, {std::string(backend)}).found));
    }
};

PIPEWRIGHT_TEST(OffloadRunTest, NoApplication)
#include "tst_offloadrun.moc"
