// SPDX-License-Identifier: GPL-3.0-or-later
// When a collective of devices that do things later than they are issued began and ended, of the members' own times.
#include "executor/runtime/meetings.h"
#include "testmain.h"

#include <QTest>

using namespace pipewright;

class MeetingsTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void aCollectiveLastsFromTheLastToComeUntilTheLastIsDone()
    {
        Meetings meetings;
        QVERIFY(!meetings.add(7, 3, 100, 250));
        QVERIFY(!meetings.add(9, 2, 5, 6)); // another one meanwhile
        QVERIFY(!meetings.add(7, 3, 180, 240));
        const auto whole = meetings.add(7, 3, 120, 260);
        QVERIFY(whole);
        QCOMPARE(whole->start, Nanoseconds{180});
        QCOMPARE(whole->end, Nanoseconds{260});
    }

    void theNextStepBeginsAnew()
    {
        Meetings meetings;
        QVERIFY(!meetings.add(7, 2, 900, 950)); // the other never came
        meetings.clear();
        QVERIFY(!meetings.add(7, 2, 10, 20));
        const auto whole = meetings.add(7, 2, 12, 18);
        QVERIFY(whole);
        QCOMPARE(whole->start, Nanoseconds{12});
        QCOMPARE(whole->end, Nanoseconds{20});
    }
};

PIPEWRIGHT_TEST(MeetingsTest, NoApplication)
#include "tst_meetings.moc"
