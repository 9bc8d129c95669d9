// SPDX-License-Identifier: GPL-3.0-or-later
// When a collective of devices that do things later than they are issued began and ended, of the members' own times.
#include "executor/runtime/collectivespans.h"
#include "testmain.h"

#include <QTest>

using namespace pipewright;

class CollectiveSpansTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void aCollectiveLastsFromTheLastToComeUntilTheLastIsDone()
    {
        CollectiveSpans spans;
        QVERIFY(!spans.add(7, 3, 100, 250));
        QVERIFY(!spans.add(9, 2, 5, 6)); // another one meanwhile
        QVERIFY(!spans.add(7, 3, 180, 240));
        const auto whole = spans.add(7, 3, 120, 260);
        QVERIFY(whole);
        QCOMPARE(whole->start, Nanoseconds{180});
        QCOMPARE(whole->end, Nanoseconds{260});
    }

    void theNextStepBeginsAnew()
    {
        CollectiveSpans spans;
        QVERIFY(!spans.add(7, 2, 900, 950)); // the other never came
        spans.clear();
        QVERIFY(!spans.add(7, 2, 10, 20));
        const auto whole = spans.add(7, 2, 12, 18);
        QVERIFY(whole);
        QCOMPARE(whole->start, Nanoseconds{12});
        QCOMPARE(whole->end, Nanoseconds{20});
    }
};

PIPEWRIGHT_TEST(CollectiveSpansTest, NoApplication)
#include "tst_collectivespans.moc"
