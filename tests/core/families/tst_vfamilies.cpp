// SPDX-License-Identifier: GPL-3.0-or-later
// The V and wave families against published and hand-made numbers: ZBV goldens, the bubble and peak table of
// V-Min and V-Half, the adaptive search's bubble for every peak, 1F1B-V, Hanayo and the asynchronous orders.
#include "core/families/family.h"
#include "core/predict/predict.h"
#include "core/schedule/validate.h"
#include "makers/designs.h"
#include "testmain.h"

#include <QTest>

using namespace pipewright;

namespace {

struct VPrediction {
    Schedule schedule;
    Metrics metrics;
    QList<int> peaks; ///< chunk activations per device

    int bubble(int units) const { return static_cast<int>(metrics.span / 1000) - units; }
    int highest() const { return *std::max_element(peaks.begin(), peaks.end()); }
};

VPrediction predictV(const char* family, FamilyParameters q)
{
    const Design design = test::evenDesign(test::worthOf(q), makeSchedule(family, q));
    VPrediction made{design.schedule, predict(design).metrics, {}};
    for (const DeviceMetrics& d : made.metrics.devices)
        made.peaks << qRound(d.peakActivations * design.schedule.chunks());
    return made;
}

/// Every pass of a chunk takes 1000 ns, a full backward of a chunk 2000 ns.
FamilyParameters units(int devices, int microbatches, int chunks = 2)
{
    FamilyParameters q = test::sized(devices, microbatches);
    q.forward = q.inputGrad = q.weightGrad = 1000 * chunks;
    return q;
}

FamilyParameters limited(FamilyParameters q, int chunkActivations)
{
    q.memoryLimit = (chunkActivations + 1e-6) / (2 * q.devices);
    return q;
}

} // namespace

class VFamiliesTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void zeroBubbleVHasNoneWhenPassesAreEqual_data()
    {
        QTest::addColumn<QString>("family");
        QTest::addColumn<int>("p");
        QTest::addColumn<int>("m");
        QTest::addColumn<int>("makespan");
        QTest::addColumn<int>("span");
        for (const char* family : {"zb-v", "v-zb"}) {
            QTest::addRow("%s p4 m8", family) << family << 4 << 8 << 51 << 48;
            QTest::addRow("%s p4 m12", family) << family << 4 << 12 << 75 << 72;
            QTest::addRow("%s p8 m16", family) << family << 8 << 16 << 103 << 96;
            QTest::addRow("%s p8 m32", family) << family << 8 << 32 << 199 << 192;
        }
    }

    void zeroBubbleVHasNoneWhenPassesAreEqual()
    {
        QFETCH(QString, family);
        QFETCH(int, p);
        QFETCH(int, m);
        QFETCH(int, makespan);
        QFETCH(int, span);
        const VPrediction made = predictV(family.toUtf8().constData(), units(p, m));
        QCOMPARE(made.metrics.makespan, Nanoseconds{1000} * makespan);
        QCOMPARE(made.metrics.span, Nanoseconds{1000} * span);
        QCOMPARE(made.peaks, QList<int>(p, 2 * p));
        QVERIFY(validate(made.schedule).empty());
    }

    void bubbleAndPeakOfFixedBlocks_data()
    {
        QTest::addColumn<QString>("family");
        QTest::addColumn<int>("p");
        QTest::addColumn<QList<int>>("bubbles"); // m = p, 2p, 4p
        QTest::addColumn<int>("peak");
        // From the authors' generator with unit chunk times.
        QTest::newRow("v-min p4") << "v-min" << 4 << QList<int>{11, 11, 11} << 4;
        QTest::newRow("v-min p6") << "v-min" << 6 << QList<int>{17, 17, 17} << 6;
        QTest::newRow("v-half p4") << "v-half" << 4 << QList<int>{10, 5, 5} << 6;
        QTest::newRow("v-half p6") << "v-half" << 6 << QList<int>{12, 11, 11} << 8;
    }

    void bubbleAndPeakOfFixedBlocks()
    {
        QFETCH(QString, family);
        QFETCH(int, p);
        QFETCH(QList<int>, bubbles);
        QFETCH(int, peak);
        for (int i = 0; i < 3; ++i) {
            const int m = p << i;
            const VPrediction made = predictV(family.toUtf8().constData(), units(p, m));
            QCOMPARE(made.bubble(6 * m), bubbles[i]);
            QCOMPARE(made.highest(), peak);
            QVERIFY(validate(made.schedule).empty());
        }
    }

    void publishedPeaksHoldForEveryNumberOfDevices()
    {
        for (int p = 2; p <= 12; ++p) {
            QCOMPARE((predictV("v-min", units(p, 4 * p)).highest() + 1) / 2, (p + 4) / 3);
            QCOMPARE((predictV("v-half", units(p, 4 * p)).highest() + 1) / 2, (p + 2) / 2);
            QCOMPARE(predictV("v-zb", units(p, 4 * p)).highest(), 2 * p);
            QCOMPARE(predictV("v-zb", units(p, 4 * p)).metrics.rateSpan, 0.0);
        }
    }

    void measuredTimesGiveTheAuthorsSpans()
    {
        FamilyParameters q = units(4, 8);
        q.forward = 2 * 1442, q.inputGrad = 2 * 1438, q.weightGrad = 2 * 967, q.transfer = 161;
        QCOMPARE(predictV("v-min", q).metrics.span, Nanoseconds{90975});
        QCOMPARE(predictV("v-half", q).metrics.span, Nanoseconds{74675});
        q.devices = 8, q.microbatches = 16;
        QCOMPARE(predictV("v-min", q).metrics.span, Nanoseconds{193713});
        QCOMPARE(predictV("v-half", q).metrics.span, Nanoseconds{159593});
    }

    void oneF1BVTakesTwoThirdsOfTheMemory()
    {
        const VPrediction made = predictV("1f1b-v", units(4, 8));
        QCOMPARE(made.peaks, QList<int>({6, 6, 6, 6}));
        QCOMPARE(made.metrics.makespan, Nanoseconds{63'000});
        QCOMPARE(QString::number(made.metrics.rateMakespan * 100, 'f', 1), QString("23.8"));
        QCOMPARE(predictV("1f1b-v", units(12, 24)).peaks, QList<int>(12, 18));
        QCOMPARE(predictV("1f1b-v", units(8, 16)).metrics.makespan, Nanoseconds{129'000});
    }

    void adaptiveSearchMeetsTheBoundForEveryPeak_data()
    {
        QTest::addColumn<int>("p");
        for (int p : {3, 4, 5, 6, 7, 8, 9, 12})
            QTest::addRow("p%d", p) << p;
    }

    void adaptiveSearchMeetsTheBoundForEveryPeak()
    {
        QFETCH(int, p);
        const int least = 2 * ((p + 4) / 3); // no V block needs less
        for (int peak = least; peak <= 2 * p; ++peak) {
            const int expected = peak == 2 * p - 1 ? 3 : std::max(0, 6 * p - 1 - 3 * peak);
            for (int m : {2 * p, 3 * p + 1}) {
                const VPrediction made = predictV("v-auto", limited(units(p, m), peak));
                QCOMPARE(made.bubble(6 * m), expected);
                QVERIFY(made.highest() <= peak);
                QVERIFY(validate(made.schedule).empty());
            }
        }
    }

    void adaptiveSearchIsNoWorseThanThePublishedOne_data()
    {
        QTest::addColumn<QList<int>>("row"); // p, m, F, I, W, c of a chunk, chunk activations
        QTest::addColumn<int>("published");
        QTest::newRow("p4 m8 8 chunks") << QList<int>{4, 8, 1442, 1438, 967, 161, 8} << 67288;
        QTest::newRow("p4 m11 8 chunks") << QList<int>{4, 11, 2971, 2944, 1992, 52, 8} << 180683;
        QTest::newRow("p4 m4 8 chunks") << QList<int>{4, 4, 945, 974, 728, 87, 8} << 25967;
        QTest::newRow("p5 m10 10 chunks") << QList<int>{5, 10, 1000, 1300, 700, 40, 10} << 65680;
        QTest::newRow("p3 m9 6 chunks") << QList<int>{3, 9, 945, 974, 728, 87, 6} << 49616;
    }

    void adaptiveSearchIsNoWorseThanThePublishedOne()
    {
        QFETCH(QList<int>, row);
        QFETCH(int, published);
        FamilyParameters q = units(row[0], row[1]);
        q.forward = 2 * row[2], q.inputGrad = 2 * row[3], q.weightGrad = 2 * row[4], q.transfer = row[5];
        q = limited(q, row[6]);
        const VPrediction made = predictV("v-auto", q);
        QVERIFY(made.metrics.span <= published);
        QVERIFY(made.highest() <= row[6]);
        QVERIFY(made.metrics.span <= predictV("zb-v", q).metrics.span);
    }

    void fewMicrobatchesMakeCompleteSchedules()
    {
        for (const char* family : {"zb-v", "v-min", "v-half", "v-zb", "v-auto", "1f1b-v", "hanayo"})
            for (int p : {1, 2, 3, 4, 7})
                for (int m : {1, 2, 3, 5}) {
                    const VPrediction made = predictV(family, units(p, m));
                    QVERIFY2(validate(made.schedule).empty(),
                             qPrintable(QString("%1 p%2 m%3").arg(family).arg(p).arg(m)));
                    QVERIFY(unplacedBlocks(made.schedule).empty());
                }
    }

    void hanayoWithOneWaveAndAsManyMicrobatchesAsDevices()
    {
        for (int p : {2, 4, 8, 16}) {
            const VPrediction made = predictV("hanayo", units(p, p));
            QCOMPARE(made.metrics.makespan, Nanoseconds{1000} * (6 * p + 4 * (p - 1)));
            QVERIFY(made.highest() <= 2 * p);
        }
    }

    void hanayosBubbleShrinksWithTheWaves()
    {
        double before = 1;
        for (int chunks : {2, 4, 8}) {
            FamilyParameters q = units(8, 8, chunks);
            q.chunks = chunks;
            const VPrediction made = predictV("hanayo", q);
            QVERIFY(made.metrics.rateMakespan < before);
            before = made.metrics.rateMakespan;
            QVERIFY(made.highest() <= 8 * chunks);
        }
        FamilyParameters odd = units(8, 8, 3);
        odd.chunks = 3;
        QVERIFY_THROWS_EXCEPTION(Error, predictV("hanayo", odd));
    }

    void hanayoStagesZigzag()
    {
        FamilyParameters q = units(2, 2, 4);
        q.chunks = 4;
        QCOMPARE(makeSchedule("hanayo", q).deviceOfStage, (std::vector<int>{0, 1, 1, 0, 0, 1, 1, 0}));
    }

    void hanayoKeepsTheMemoryOf1F1BInLongRuns()
    {
        for (int p : {2, 4, 8})
            QVERIFY(predictV("hanayo", units(p, 8 * p)).highest() <= 2 * p);
    }

    void asynchronousOrdersAre1F1BInOneLongRun()
    {
        const Schedule sync = makeSchedule("1f1b", units(4, 64, 1));
        for (const char* family : {"pipedream", "pipedream-2bw"}) {
            Schedule schedule = makeSchedule(family, units(4, 64, 1));
            for (std::vector<Block>& lane : schedule.order)
                std::erase_if(lane, [](const Block& block) { return block.op == Op::U; });
            QCOMPARE(schedule.order, sync.order);
        }
        QVERIFY_THROWS_EXCEPTION(Error, makeSchedule("pipedream-2bw", units(4, 3, 1)));
    }
};

PIPEWRIGHT_TEST(VFamiliesTest, QCoreApplication)
#include "tst_vfamilies.moc"
