// SPDX-License-Identifier: GPL-3.0-or-later
// Published numbers of every family, reproduced from the schedule itself: the zero-bubble papers' bubble
// rates, JaxPP's lists, makespans, peaks and transfer counts, and hand-made goldens.
#include "core/families/family.h"
#include "core/predict/predict.h"
#include "core/schedule/validate.h"
#include "makers/designs.h"
#include "testmain.h"

#include <QTest>

using namespace pipewright;

namespace {

struct Made {
    Design design;
    Prediction prediction;
};

Made make(const char* family, int devices, int microbatches, DeviceWorth worth, std::optional<int> chunks = {})
{
    FamilyParameters parameters = test::sized(devices, microbatches);
    parameters.chunks = chunks;
    const Design design = test::evenDesign(worth, makeSchedule(family, parameters));
    return {design, predict(design)};
}

/// F = I = W = 1 unit (full B = 2), free transfers, times per chunk.
DeviceWorth units()
{
    DeviceWorth worth;
    worth.forward = worth.inputGrad = worth.weightGrad = 1'000;
    worth.perChunk = true;
    return worth;
}

/// JaxPP's latencies: F = 1 and B = 2, or I = W = 1.
QString names(const std::vector<Block>& blocks, bool withStage)
{
    QStringList list;
    for (const Block& b : blocks)
        list << (withStage ? QString::fromStdString(toString(b))
                           : QString("%1%2").arg(QChar::fromLatin1(letter(b.op))).arg(b.microbatch));
    return list.join(' ');
}

} // namespace

class FamiliesTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void zeroBubblePaperRates_data()
    {
        QTest::addColumn<int>("devices");
        QTest::addColumn<int>("microbatches");
        QTest::addColumn<int>("forward"); // microseconds, per device
        QTest::addColumn<int>("inputGrad");
        QTest::addColumn<int>("weightGrad");
        QTest::addColumn<int>("transfer");
        QTest::addColumn<double>("oneF1B");
        QTest::addColumn<double>("h1");
        QTest::addColumn<double>("h2");
        // arXiv 2401.10241, Table 9 (inputs) and Table 5 (rates).
        QTest::newRow("1.5B m24") << 8 << 24 << 18522 << 18086 << 9337 << 601 << .2431 << .1585 << .1083;
        QTest::newRow("1.5B m32") << 8 << 32 << 18513 << 18086 << 9331 << 626 << .1985 << .1242 << .0837;
        QTest::newRow("1.5B m64") << 8 << 64 << 18546 << 18097 << 9321 << 762 << .1240 << .0674 << .0444;
        QTest::newRow("6.2B m24") << 8 << 24 << 29718 << 29444 << 19927 << 527 << .2347 << .1323 << .0698;
        QTest::newRow("6.2B m32") << 8 << 32 << 29802 << 29428 << 19530 << 577 << .1898 << .1045 << .0559;
        QTest::newRow("6.2B m64") << 8 << 64 << 29935 << 29621 << 19388 << 535 << .1091 << .0554 << .0294;
        QTest::newRow("14.6B m48") << 16 << 48 << 11347 << 11248 << 8132 << 377 << .2552 << .1397 << .0672;
        QTest::newRow("14.6B m64") << 16 << 64 << 11307 << 11254 << 8101 << 379 << .2082 << .1088 << .0516;
        QTest::newRow("14.6B m128") << 16 << 128 << 11325 << 11308 << 8109 << 378 << .1251 << .0576 << .0266;
        QTest::newRow("28.3B m96") << 32 << 96 << 10419 << 10207 << 7715 << 408 << .2646 << .1421 << .0641;
        QTest::newRow("28.3B m128") << 32 << 128 << 10408 << 10204 << 7703 << 408 << .2168 << .1106 << .0490;
        QTest::newRow("28.3B m256") << 32 << 256 << 10402 << 10248 << 7698 << 460 << .1352 << .0594 << .0257;
        // Table 8; its inputs are per chunk of half a device, so the linear schedules take twice the times.
        QTest::newRow("p16 m48") << 16 << 48 << 28814 << 28760 << 19352 << 1610 << .2668 << .1536 << .0823;
        QTest::newRow("p16 m64") << 16 << 64 << 28824 << 28786 << 19376 << 1621 << .2206 << .1198 << .0630;
        QTest::newRow("p16 m128") << 16 << 128 << 28632 << 28612 << 19278 << 1619 << .1390 << .0637 << .0325;
    }

    void zeroBubblePaperRates()
    {
        QFETCH(int, devices);
        QFETCH(int, microbatches);
        QFETCH(int, forward);
        QFETCH(int, inputGrad);
        QFETCH(int, weightGrad);
        QFETCH(int, transfer);
        QFETCH(double, oneF1B);
        QFETCH(double, h1);
        QFETCH(double, h2);
        DeviceWorth worth;
        worth.forward = forward * 1000;
        worth.inputGrad = inputGrad * 1000;
        worth.weightGrad = weightGrad * 1000;
        worth.transfer = transfer * 1000;
        const auto rate = [&](const char* family) {
            return QString::number(make(family, devices, microbatches, worth).prediction.metrics.rateSpan, 'f', 4);
        };
        QCOMPARE(rate("1f1b"), QString::number(oneF1B, 'f', 4));
        QCOMPARE(rate("zb-h1"), QString::number(h1, 'f', 4));
        QCOMPARE(rate("zb-h2"), QString::number(h2, 'f', 4));
    }

    void makespanAndPeakGoldens_data()
    {
        QTest::addColumn<QString>("family");
        QTest::addColumn<int>("devices");
        QTest::addColumn<int>("chunks");
        QTest::addColumn<int>("microbatches");
        QTest::addColumn<int>("makespan");
        QTest::addColumn<QList<int>>("peaks"); // in chunks
        QTest::addColumn<int>("transfers");
        const auto row = [](const char* family, int p, int v, int m, int makespan, QList<int> peaks, int transfers) {
            QTest::addRow("%s p%d v%d m%d", family, p, v, m)
                << QString(family) << p << v << m << makespan << peaks << transfers;
        };
        // JaxPP's generators, simulated (F = 1, B = 2, I = W = 1).
        row("gpipe", 2, 1, 4, 15, {4, 4}, 8);
        row("1f1b", 2, 1, 4, 15, {2, 1}, 8);
        row("1f1b", 4, 1, 4, 21, {4, 3, 2, 1}, 24);
        row("1f1b", 4, 1, 8, 33, {4, 3, 2, 1}, 48);
        row("gpipe", 4, 1, 8, 33, {8, 8, 8, 8}, 48);
        row("eager-1f1b", 4, 1, 8, 33, {7, 5, 3, 1}, 48);
        row("zb-h1", 2, 1, 4, 13, {2, 2}, 8);
        row("zb-h1", 4, 1, 8, 27, {4, 4, 4, 4}, 48);
        row("interleaved-1f1b", 2, 2, 4, 27, {5, 3}, 24);
        row("interleaved-1f1b", 4, 2, 8, 57, {11, 9, 7, 5}, 112);
        // Worked out by hand.
        row("looped-bfs", 4, 2, 8, 57, {16, 16, 16, 16}, 112);
        row("zb-h2", 4, 1, 8, 27, {7, 7, 7, 7}, 48);
        row("1f1b", 4, 1, 12, 45, {4, 3, 2, 1}, 72);
        row("interleaved-1f1b", 4, 2, 12, 81, {11, 9, 7, 5}, 168);
        row("looped-bfs", 4, 2, 12, 81, {24, 24, 24, 24}, 168);
        row("zb-h1", 4, 1, 12, 39, {4, 4, 4, 4}, 72);
        row("zb-h2", 4, 1, 12, 39, {7, 7, 7, 7}, 72);
        row("gpipe", 8, 1, 16, 69, QList<int>(8, 16), 224);
        row("1f1b", 8, 1, 16, 69, {8, 7, 6, 5, 4, 3, 2, 1}, 224);
        row("eager-1f1b", 8, 1, 16, 69, {15, 13, 11, 9, 7, 5, 3, 1}, 224);
        row("interleaved-1f1b", 8, 2, 16, 117, {23, 21, 19, 17, 15, 13, 11, 9}, 480);
        row("looped-bfs", 8, 2, 16, 117, QList<int>(8, 32), 480);
        row("zb-h1", 8, 1, 16, 55, QList<int>(8, 8), 224);
        row("zb-h2", 8, 1, 16, 55, QList<int>(8, 15), 224);
        row("1f1b", 8, 1, 32, 117, {8, 7, 6, 5, 4, 3, 2, 1}, 448);
        row("interleaved-1f1b", 8, 2, 32, 213, {23, 21, 19, 17, 15, 13, 11, 9}, 960);
        row("zb-h1", 8, 1, 32, 103, QList<int>(8, 8), 448);
        row("zb-h2", 8, 1, 32, 103, QList<int>(8, 15), 448);
    }

    void makespanAndPeakGoldens()
    {
        QFETCH(QString, family);
        QFETCH(int, devices);
        QFETCH(int, chunks);
        QFETCH(int, microbatches);
        QFETCH(int, makespan);
        QFETCH(QList<int>, peaks);
        QFETCH(int, transfers);
        const Made made = make(family.toUtf8().constData(), devices, microbatches, units(),
                               chunks > 1 ? std::optional(chunks) : std::nullopt);
        QCOMPARE(made.prediction.metrics.makespan, Nanoseconds{1000} * makespan);
        QList<int> measured;
        for (const DeviceMetrics& d : made.prediction.metrics.devices)
            measured << qRound(d.peakActivations * chunks);
        QCOMPARE(measured, peaks);
        QCOMPARE(made.prediction.program.transferCount(), std::int64_t{transfers});
        QVERIFY(validate(made.design.schedule).empty());
    }

    void bubbleOfJaxppRows()
    {
        QCOMPARE(make("1f1b", 4, 8, units()).prediction.metrics.rateMakespan, 1 - 24.0 / 33);
        QCOMPARE(make("zb-h1", 4, 8, units()).prediction.metrics.rateMakespan, 1 - 24.0 / 27);
        QCOMPARE(make("interleaved-1f1b", 4, 8, units()).prediction.metrics.rateMakespan, 1 - 48.0 / 57);
    }

    void spanOfH2HasNoBubbleWhilstItsMakespanHas()
    {
        const Metrics m = make("zb-h2", 4, 8, units()).prediction.metrics;
        QCOMPARE(m.span, Nanoseconds{24'000});
        QCOMPARE(m.rateSpan, 0.0);
        QCOMPARE(m.rateMakespan, 1 - 24.0 / 27);
        QCOMPARE(m.ratioIdeal, 3.0 / 24);
    }

    void closedFormsHoldForEverySize_data()
    {
        QTest::addColumn<int>("devices");
        QTest::addColumn<int>("microbatches");
        for (int p : {1, 2, 3, 5, 8})
            for (int m : {p, p + 1, 2 * p, 5 * p + 3})
                QTest::addRow("p%d m%d", p, m) << p << m;
    }

    void closedFormsHoldForEverySize()
    {
        QFETCH(int, devices);
        QFETCH(int, microbatches);
        const Nanoseconds full = 3000 * (microbatches + devices - 1);
        for (const char* family : {"gpipe", "1f1b", "eager-1f1b"})
            QCOMPARE(make(family, devices, microbatches, units()).prediction.metrics.makespan, full);
        if (microbatches >= 2 * devices - 1) {
            QCOMPARE(make("zb-h1", devices, microbatches, units()).prediction.metrics.makespan,
                     Nanoseconds{1000} * (3 * microbatches + devices - 1));
            QCOMPARE(make("zb-h2", devices, microbatches, units()).prediction.metrics.rateSpan, 0.0);
        }
    }

    void actorListsOfJaxpp()
    {
        const Schedule plain = make("1f1b", 3, 4, units()).design.schedule;
        QCOMPARE(names(plain.order[0], false), "F0 F1 F2 B0 F3 B1 B2 B3");
        QCOMPARE(names(plain.order[1], false), "F0 F1 B0 F2 B1 F3 B2 B3");
        QCOMPARE(names(plain.order[2], false), "F0 B0 F1 B1 F2 B2 F3 B3");
        const Schedule split = make("zb-h1", 3, 4, units()).design.schedule;
        QCOMPARE(names(split.order[0], false), "F0 F1 F2 I0 W0 F3 I1 W1 I2 W2 I3 W3");
        QCOMPARE(names(split.order[1], false), "F0 F1 I0 F2 I1 W0 F3 I2 W1 I3 W2 W3");
        QCOMPARE(names(split.order[2], false), "F0 I0 F1 I1 F2 I2 W0 F3 I3 W1 W2 W3");
        const Schedule looped = make("interleaved-1f1b", 2, 4, units()).design.schedule;
        QCOMPARE(names(looped.order[0], true),
                 "F0.0 F0.1 F2.0 F2.1 F0.2 B2.0 F0.3 B2.1 F2.2 B0.0 F2.3 B0.1 B2.2 B2.3 B0.2 B0.3");
    }

    // One forward of warm-up more than interleaved 1F1B, and then pairs (Megatron-Core's guide to combined 1F1B).
    void combinedBlocksRunInPairs()
    {
        const Schedule schedule = makeSchedule("combined-1f1b", test::sized(2, 4));
        QCOMPARE(names(schedule.order[0], true),
                 "F0.0 F0.1 F2.0 F2.1 F0.2 F0.3 B2.0 F2.2 B2.1 F2.3 B0.0 B0.1 B2.2 B2.3 B0.2 B0.3");
        QCOMPARE(names(schedule.order[1], true),
                 "F1.0 F1.1 F3.0 F3.1 B3.0 F1.2 B3.1 F1.3 B1.0 F3.2 B1.1 F3.3 B3.2 B3.3 B1.2 B1.3");
        QCOMPARE(schedule.overlaps.size(), std::size_t(3 + 5));
        for (const Overlap& pair : schedule.overlaps)
            QVERIFY(pair.first.op == Op::F && pair.second.op == Op::B
                    && pair.first.microbatch != pair.second.microbatch);
        // On one device a forward runs beside the backward of the microbatch before it.
        FamilyParameters alone = test::sized(1, 3);
        alone.chunks = 1;
        const Schedule single = makeSchedule("combined-1f1b", alone);
        QCOMPARE(names(single.order[0], true), "F0.0 F0.1 B0.0 F0.2 B0.1 B0.2");
        QCOMPARE(single.overlaps.size(), std::size_t(2));
    }

    void combinedBlocksNeverWaitForEachOther()
    {
        for (int devices = 1; devices <= 6; ++devices)
            for (int chunks = 1; chunks <= 4; ++chunks)
                for (int microbatches = devices; microbatches <= 3 * devices; microbatches += devices) {
                    FamilyParameters parameters = test::sized(devices, microbatches);
                    parameters.chunks = chunks;
                    QVERIFY(!hasErrors(validate(makeSchedule("combined-1f1b", parameters))));
                }
    }

    void megatronGroupTableWithUnevenLastGroup()
    {
        FamilyParameters parameters = test::sized(2, 5);
        parameters.chunks = 2;
        parameters.group = 3;
        const Schedule s = makeSchedule("interleaved-1f1b", parameters);
        QString forwards;
        for (const Block& b : s.order[0])
            if (b.op == Op::F)
                forwards += QString("%1/%2 ").arg(b.microbatch).arg(b.stage / 2);
        QCOMPARE(forwards.trimmed(), "0/0 1/0 2/0 0/1 1/1 2/1 3/0 4/0 3/1 4/1");
    }

    void preconditionsNameTheOption_data()
    {
        QTest::addColumn<QString>("family");
        QTest::addColumn<int>("devices");
        QTest::addColumn<int>("microbatches");
        QTest::addColumn<int>("group");
        QTest::addColumn<QString>("where");
        QTest::newRow("no devices") << "1f1b" << 0 << 8 << 0 << "--devices";
        QTest::newRow("no microbatches") << "1f1b" << 4 << 0 << 0 << "--microbatches";
        QTest::newRow("a million microbatches") << "1f1b" << 4 << 1'000'000 << 0 << "--microbatches";
        QTest::newRow("interleaving short of microbatches") << "interleaved-1f1b" << 8 << 4 << 0 << "--microbatches";
        QTest::newRow("ragged last group") << "interleaved-1f1b" << 4 << 9 << 0 << "--microbatches";
        QTest::newRow("group below devices") << "interleaved-1f1b" << 4 << 8 << 2 << "--group";
        QTest::newRow("unknown family") << "2f2b" << 4 << 8 << 0 << "family";
    }

    void preconditionsNameTheOption()
    {
        QFETCH(QString, family);
        QFETCH(int, devices);
        QFETCH(int, microbatches);
        QFETCH(int, group);
        QFETCH(QString, where);
        FamilyParameters parameters = test::sized(devices, microbatches);
        if (group > 0)
            parameters.group = group;
        try {
            makeSchedule(family.toStdString(), parameters);
            QFAIL("accepted");
        } catch (const Error& error) {
            QCOMPARE(QString::fromStdString(error.diagnostics().front().where), where);
            QVERIFY(!error.diagnostics().front().hint.empty());
        }
    }

    void savedBytesFollowTheActivations()
    {
        DeviceWorth worth = units();
        worth.saved = 1024;
        worth.savedForWeightGrad = 1024;
        const Made all = make("zb-h1", 4, 8, worth);
        for (const DeviceMetrics& d : all.prediction.metrics.devices)
            QCOMPARE(d.peakBytes, Bytes{1024} * 4);
        // Rank i (from 1) of ZB-H1 holds (p - i + 1) M_B + (i - 1) M_W.
        worth.savedForWeightGrad = 256;
        const Made some = make("zb-h1", 4, 8, worth);
        for (int rank = 0; rank < 4; ++rank)
            QCOMPARE(some.prediction.metrics.devices[rank].peakBytes, Bytes{1024} * (4 - rank) + Bytes{256} * rank);
    }
};

PIPEWRIGHT_TEST(FamiliesTest, NoApplication)
#include "tst_families.moc"
