// SPDX-License-Identifier: GPL-3.0-or-later
// Collectives of the members of a group on real data: uneven and empty pieces along any dimension, on the host and on
// stand-in GPUs.
#include "executor/host/hostbackend.h"
#include "executor/runtime/collectives.h"
#include "executor/sharding/membercollectives.h"
#include "shardinggpus.h"
#include "testmain.h"

#include <QTest>

#include <array>
#include <functional>
#include <numeric>
#include <thread>

using namespace pipewright;
using namespace pipewright::sharding;
using pipewright::test::memberGpus;

namespace {

HostTensor vectorOf(const std::vector<float>& values)
{
    HostTensor tensor({static_cast<std::int64_t>(values.size())});
    tensor.data = values;
    return tensor;
}

HostTensor countedUp(const Shape& shape)
{
    HostTensor tensor(shape);
    std::iota(tensor.data.begin(), tensor.data.end(), 0.0f);
    return tensor;
}

/// The ways in which devices do collectives.
void everyWay()
{
    QTest::addColumn<int>("backend"); // 0: host, 1: GPUs by copies, 2: by NCCL
    QTest::addColumn<bool>("pieceByPiece");
    QTest::newRow("host") << 0 << false;
    if (!test::hasStandInGpus)
        return;
    QTest::newRow("GPUs, copies") << 1 << false;
    for (const bool exact : {false, true})
        QTest::addRow("GPUs, NCCL, %s", exact ? "piece by piece" : "padded") << 2 << exact;
}

/// A thread per device, in the way of the test's row.
void onDevices(int devices, const std::function<void(int, MemberDevice&, MemberCollectives&)>& work)
{
    QFETCH(int, backend);
    const auto machine = backend == 0 ? createHostBackend(devices) : memberGpus(devices, backend == 2);
    std::vector<std::unique_ptr<MemberDevice>> places;
    std::vector<MemberDevice*> pointers;
    for (int d = 0; d < devices; ++d)
        pointers.push_back(places.emplace_back(std::make_unique<MemberDevice>(machine->device(d))).get());
    const auto collectives = createCollectives(pointers, machine->createCommunicators());
    {
        std::vector<std::jthread> threads;
        for (int d = 0; d < devices; ++d)
            threads.emplace_back([&, d] { work(d, *places[d], *collectives); });
    }
}

} // namespace

class TestMemberCollectives : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void cleanup()
    {
        if (test::hasStandInGpus)
            QCOMPARE(test::standInReport().faults(), QString());
    }

    void propertiesAreWhatTheirNamesSay_data() { everyWay(); }
    void propertiesAreWhatTheirNamesSay()
    {
        // Shards [1,2] and [3] are [1,2,3]; partials [1,1,1] and [2,2,2] are [3,3,3], scattered by (2,1) and gathered
        // again.
        const std::vector<std::vector<float>> shards{{1, 2}, {3}}, pieces{{3, 3}, {3}};
        QFETCH(bool, pieceByPiece);
        const Cut cut{0, {2, 1}, pieceByPiece};
        std::array<bool, 2> right{};
        onDevices(2, [&](int d, MemberDevice& place, MemberCollectives& collectives) {
            const auto at = static_cast<std::size_t>(d);
            const Tensor shard = place.put(vectorOf(shards[at])),
                         part = place.put(vectorOf(std::vector<float>(3, float(d + 1))));
            const Tensor gathered = collectives.allGather(d, shard, cut), reduced = collectives.allReduce(d, part);
            const Tensor mine = collectives.reduceScatter(d, part, cut);
            const Tensor again = collectives.allGather(d, mine, cut);
            right[at] = place.get(gathered).data == std::vector<float>{1, 2, 3}
                        && place.get(reduced).data == std::vector<float>{3, 3, 3} && place.get(mine).data == pieces[at]
                        && place.get(again).data == std::vector<float>{3, 3, 3};
        });
        QVERIFY(right[0] && right[1]);
    }

    /// The gradient of an all-gather of pieces of 1 to 4 elements under a quarter of the sum, on four devices: all 1.
    void gradientsOfGatheredPiecesAreOne_data() { everyWay(); }
    void gradientsOfGatheredPiecesAreOne()
    {
        QFETCH(bool, pieceByPiece);
        std::array<HostTensor, 4> found;
        onDevices(4, [&](int d, MemberDevice& place, MemberCollectives& collectives) {
            const Tensor quarter = place.put(vectorOf(std::vector<float>(10, 0.25f)));
            found[d] = place.get(collectives.reduceScatter(d, quarter, {0, {1, 2, 3, 4}, pieceByPiece}));
        });
        for (std::size_t d = 0; d < 4; ++d)
            QCOMPARE(found[d].data, std::vector<float>(d + 1, 1.0f));
    }

    void piecesAlongAnyDimensionGatherAndScatter_data() { everyWay(); }
    void piecesAlongAnyDimensionGatherAndScatter()
    {
        QFETCH(bool, pieceByPiece);
        const HostTensor whole = countedUp({2, 5, 3});
        const Cut middle{1, {3, 0, 2}, pieceByPiece};
        std::array<HostTensor, 3> gathered, scattered;
        onDevices(3, [&](int d, MemberDevice& place, MemberCollectives& collectives) {
            const auto at = static_cast<std::size_t>(d);
            gathered[at] = place.get(
                collectives.allGather(d, place.put(cut(whole, 1, middle.first(d), middle.length(d))), middle));
            scattered[at] = place.get(collectives.reduceScatter(d, place.put(whole), middle));
        });
        for (int d = 0; d < 3; ++d) {
            const auto at = static_cast<std::size_t>(d);
            QCOMPARE(gathered[at].data, whole.data);
            HostTensor expected = cut(whole, 1, middle.first(d), middle.length(d));
            for (float& value : expected.data)
                value *= 3;
            QCOMPARE(scattered[at].data, expected.data);
        }
    }

    void allToAllTakesUnevenAndEmptyPieces_data() { everyWay(); }
    void allToAllTakesUnevenAndEmptyPieces()
    {
        const HostTensor whole = countedUp({4, 3});
        const Cut rows{0, {3, 0, 1}}, columns{1, {0, 1, 2}}, otherRows{0, {0, 2, 2}};
        std::array<HostTensor, 3> found, moved;
        onDevices(3, [&](int d, MemberDevice& place, MemberCollectives& collectives) {
            const auto at = static_cast<std::size_t>(d);
            const Tensor mine = place.put(cut(whole, 0, rows.first(d), rows.length(d)));
            found[at] = place.get(collectives.allToAll(d, mine, rows, columns));
            moved[at] = place.get(collectives.allToAll(d, mine, rows, otherRows));
        });
        for (int d = 0; d < 3; ++d) {
            const auto at = static_cast<std::size_t>(d);
            QCOMPARE(found[at].data, cut(whole, 1, columns.first(d), columns.length(d)).data);
            QCOMPARE(moved[at].data, cut(whole, 0, otherRows.first(d), otherRows.length(d)).data);
        }
    }
};

PIPEWRIGHT_TEST(TestMemberCollectives, NoApplication)
#include "tst_membercollectives.moc"
