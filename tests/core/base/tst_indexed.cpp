// SPDX-License-Identifier: GPL-3.0-or-later
// Typed indices and the vectors that they index: which index a vector takes is decided when this compiles.
#include "core/base/indexed.h"
#include "testmain.h"

#include <QTest>

#include <concepts>
#include <vector>

using namespace pipewright;

namespace {

template<class Vector, class Key>
concept TakesIndex = requires(Vector vector, Key key)
{
    vector[key];
};

static_assert(TakesIndex<ByDevice<int>, DeviceIndex> && TakesIndex<ByDevice<int>, int>);
static_assert(!TakesIndex<ByDevice<int>, StageIndex> && !TakesIndex<ByStage<int>, MicrobatchIndex>);
static_assert(!TakesIndex<ByDevice<int>, double>, "a time or a share is no index");
static_assert(!std::convertible_to<StageIndex, DeviceIndex> && !std::constructible_from<DeviceIndex, StageIndex>);
static_assert(std::invocable<ByStageAndMicrobatch<int>&, StageIndex, MicrobatchIndex>);
static_assert(!std::invocable<ByStageAndMicrobatch<int>&, MicrobatchIndex, StageIndex>);
static_assert(sizeof(DeviceIndex) == sizeof(int) && sizeof(ByDevice<int>) == sizeof(std::vector<int>));

} // namespace

class TestIndexed : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void aLoopOverItsIndicesVisitsEveryValue()
    {
        ByDevice<int> work(3, 5);
        for (const DeviceIndex device : work.indices())
            work[device] += device;
        QCOMPARE(std::vector<int>(work.begin(), work.end()), (std::vector<int>{5, 6, 7}));
        QCOMPARE(work.size(), 3);
        work.fill(1);
        QCOMPARE(std::vector<int>(work.begin(), work.end()), (std::vector<int>{1, 1, 1}));
        for (const DeviceIndex device : ByDevice<int>().indices())
            QFAIL(qPrintable(QString::number(device)));
    }

    void valuesThatAreBoolsAreSetThroughTheirIndex()
    {
        ByMicrobatch<bool> done(2, false);
        done[MicrobatchIndex(1)] = true;
        QVERIFY(!done[0] && done[1]);
    }

    void aTableHasACellForEveryPair()
    {
        ByStageAndMicrobatch<int> cells(2, 3, -1);
        QCOMPARE(cells.size(), std::size_t{6});
        for (int stage = 0; stage < 2; ++stage)
            for (int microbatch = 0; microbatch < 3; ++microbatch)
                cells(stage, microbatch) = 10 * stage + microbatch;
        QCOMPARE(cells(StageIndex(1), MicrobatchIndex(2)), 12);
        QCOMPARE(cells(0, 2), 2);
        QCOMPARE(cells(1, 0), 10);
    }
};

PIPEWRIGHT_TEST(TestIndexed, NoApplication)
#include "tst_indexed.moc"
