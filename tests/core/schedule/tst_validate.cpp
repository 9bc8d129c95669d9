// SPDX-License-Identifier: GPL-3.0-or-later
// Validation of schedules: every fault names its place and remedy, cycles are named block by block.
#include "core/schedule/validate.h"
#include "testmain.h"

#include "makers/schedules.h"

#include <QTest>

using namespace pipewright;
using namespace pipewright::test;

namespace {

QString firstOf(const Schedule& s)
{
    const Diagnostics d = validate(s);
    return d.empty() ? QString() : QString::fromStdString(toString(d.front()));
}

} // namespace

class ValidateTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void aCompleteScheduleHasNothingWrong()
    {
        QCOMPARE(firstOf(schedule(2, {0, 1}, {"F0.0 F0.1 B0.0 B0.1", "F1.0 B1.0 F1.1 B1.1"})), QString());
        QCOMPARE(firstOf(schedule(1, {0, 1, 1, 0}, {"F0.0 F3.0 B3.0 B0.0", "F1.0 F2.0 B2.0 B1.0"})), QString());
    }

    void everyFaultNamesItsPlaceAndRemedy_data()
    {
        QTest::addColumn<QStringList>("lanes");
        QTest::addColumn<QStringList>("says");
        QTest::newRow("missing block") << QStringList{"F0.0 B0.0", "F1.0"}
                                       << QStringList{"device 1", "B1.0", "place it"};
        QTest::newRow("duplicate") << QStringList{"F0.0 F0.0 B0.0", "F1.0 B1.0"}
                                   << QStringList{"device 0, position 1 (F0.0)", "twice", "position 0"};
        QTest::newRow("unknown stage") << QStringList{"F0.0 B0.0 F7.0", "F1.0 B1.0"}
                                       << QStringList{"device 0, position 2 (F7.0)", "unknown stage 7", "0 to 1"};
        QTest::newRow("unknown microbatch")
            << QStringList{"F0.0 B0.0 F0.9", "F1.0 B1.0"} << QStringList{"unknown microbatch 9"};
        QTest::newRow("wrong device") << QStringList{"F0.0 B0.0 F1.0", "B1.0"}
                                      << QStringList{"device 0, position 2 (F1.0)", "held by device 1"};
        QTest::newRow("backward before forward")
            << QStringList{"B0.0 F0.0", "F1.0 B1.0"}
            << QStringList{"device 0, position 0 (B0.0)", "needs F0.0", "behind position 1"};
        QTest::newRow("both kinds of backward")
            << QStringList{"F0.0 B0.0", "F1.0 B1.0 I1.0 W1.0"} << QStringList{"halves"};
        QTest::newRow("half a backward") << QStringList{"F0.0 B0.0", "F1.0 I1.0"} << QStringList{"missing block W1.0"};
        QTest::newRow("recompute placed by hand") << QStringList{"F0.0 R0.0 B0.0", "F1.0 B1.0"}
                                                  << QStringList{"stage 0 has no R blocks", "leave the block out"};
        QTest::newRow("one stage updated, another not")
            << QStringList{"F0.0 B0.0 U0.0", "F1.0 B1.0"} << QStringList{"never applied", "place U1.0"};
        QTest::newRow("unknown replica") << QStringList{"F0.0 B0.0 F0.0/1", "F1.0 B1.0"}
                                         << QStringList{"microbatch 0 belongs to replica 0", "write F0.0"};
    }

    void everyFaultNamesItsPlaceAndRemedy()
    {
        QFETCH(QStringList, lanes);
        QFETCH(QStringList, says);
        const QString text = firstOf(schedule(1, {0, 1}, {lanes[0].toStdString(), lanes[1].toStdString()}));
        for (const QString& word : says)
            QVERIFY2(text.contains(word), qPrintable(text));
    }

    void ordersThatWaitForEachOtherNameTheCycle()
    {
        // JaxPP's reject case: device 1 starts with a backward whose forward comes later would be a local
        // fault; here each device is fine by itself and the circle runs through both.
        const Schedule s = schedule(2, {0, 1}, {"F0.0 B0.0 F0.1 B0.1", "F1.1 B1.1 F1.0 B1.0"});
        const QString text = firstOf(s);
        for (const char* word : {"wait for each other", "B0.0 waits for B1.0 of device 1", "stands behind F1.1",
                                 "F1.1 waits for F0.1 of device 0", "stands behind B0.0"})
            QVERIFY2(text.contains(word), qPrintable(text));
    }

    void aCircleOnOneDeviceIsFoundToo()
    {
        const QString text = firstOf(schedule(1, {0, 0}, {"F1.0 F0.0 B1.0 B0.0"}));
        QVERIFY2(text.contains("F1.0 waits for F0.0"), qPrintable(text));
    }

    void jaxppRejectsABackwardBeforeItsForward()
    {
        QVERIFY(hasErrors(validate(schedule(1, {0, 1}, {"F0.0 B0.0", "B1.0 F1.0"}))));
    }

    void theFirstStagesHalvesStayTogetherUnlessAllowed()
    {
        Schedule s = schedule(2, {0, 1}, {"F0.0 F0.1 I0.0 I0.1 W0.0 W0.1", "F1.0 I1.0 F1.1 I1.1 W1.0 W1.1"},
                              BackwardStyle::Split);
        const QString why = firstOf(s); // in the designer's words first, then as it is written in a file
        QVERIFY2(why.contains("allow the first stage to split (in a file: \"first_stage_may_split\": true)"),
                 qPrintable(why));
        s.firstStageMaySplit = true;
        QCOMPARE(firstOf(s), QString());
        QCOMPARE(firstOf(schedule(2, {0, 1}, {"F0.0 F0.1 I0.0 W0.0 I0.1 W0.1", "F1.0 I1.0 F1.1 I1.1 W1.0 W1.1"},
                                  BackwardStyle::Split)),
                 QString());
    }

    void manyFaultsAreCutShortWithACount()
    {
        const Diagnostics d = validate(schedule(100, {0}, {"F0.0 B0.0"}));
        QCOMPARE(d.size(), std::size_t{33});
        QCOMPARE(QString::fromStdString(d.back().what), QString("166 more like these"));
    }

    void impossibleShapesAreRefusedBeforeAnythingIsBuilt()
    {
        QVERIFY(hasErrors(validate(Schedule{})));
        Schedule s = schedule(1, {0, 5}, {"F0.0 B0.0"});
        QVERIFY(firstOf(s).contains("unknown device 5"));
        s = schedule(1'000'000, {0}, {""});
        QVERIFY(firstOf(s).contains("1000000 microbatches"));
        s = schedule(-1, {0}, {""});
        QVERIFY(hasErrors(validate(s)));
    }

    void pinsMustPointAtPlacedBlocks()
    {
        Schedule s = schedule(1, {0}, {"F0.0 B0.0"});
        s.pins.push_back({{Op::F, 3, 0}, 10});
        QVERIFY(firstOf(s).contains("F3.0"));
        s.pins = {{{Op::F, 0, 0}, -1}};
        QVERIFY(firstOf(s).contains("negative"));
    }

    void unplacedBlocksAreWhatCompletesASchedule()
    {
        const Schedule s = schedule(1, {0, 1}, {"F0.0", "F1.0 I1.0"});
        QStringList names;
        for (const Block& b : unplacedBlocks(s))
            names << QString::fromStdString(toString(b));
        QCOMPARE(names.join(' '), "B0.0 W1.0");
    }

    void blocksRoundTripThroughText()
    {
        for (const char* text : {"F0.0", "B12.345", "I1.2/3", "W4.5", "U6.7", "R8.9"})
            QCOMPARE(QString::fromStdString(toString(block(text))), QString(text));
        for (const char* text :
             {"", "F", "F1", "F1.", "X1.1", "F-1.0", "F01.0", "F1.0 ", "F1.0/0", "F1.0/", "f1.0", "F1.99999999999"})
            QVERIFY2(!parseBlock(text), text);
    }
};

PIPEWRIGHT_TEST(ValidateTest, NoApplication)
#include "tst_validate.moc"
