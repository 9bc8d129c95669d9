// SPDX-License-Identifier: GPL-3.0-or-later
// Packed buffers are those that were put in, whether they have much in common or nothing.
#include "core/program/buffers.h"
#include "testmain.h"

#include <QTest>

#include <random>

using namespace pipewright;

namespace {

/// `variety`: of stages, replicas, devices and sizes.
std::vector<Buffer> someBuffers(int count, int variety)
{
    std::mt19937 random(7);
    const auto below = [&](int most) { return static_cast<int>(random() % static_cast<unsigned>(most)); };
    std::vector<Buffer> made;
    for (int i = 0; i < count; ++i)
        made.push_back({below(variety) * Bytes{1'000'000'007},
                        static_cast<BufferKind>(below(1 + static_cast<int>(BufferKind::ReloadedUntilWeightGrad))),
                        static_cast<std::uint16_t>(below(variety)), below(variety), below(variety * 100),
                        below(1000) - 1, below(variety) - 1, below(2) == 1});
    return made;
}

} // namespace

class TestBuffers : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void buffersAreThoseThatWerePutIn_data()
    {
        QTest::addColumn<int>("variety");
        for (const int variety : {1, 2, 7, 4000})
            QTest::addRow("%d of each", variety) << variety;
    }

    void buffersAreThoseThatWerePutIn()
    {
        QFETCH(int, variety);
        const std::vector<Buffer> made = someBuffers(20'000, variety);
        Buffers packed, others;
        for (const Buffer& buffer : made) {
            packed.push_back(buffer);
            others.push_back(buffer);
        }
        QCOMPARE(packed.size(), made.size());
        std::size_t at = 0;
        for (const Buffer& buffer : packed)
            QVERIFY(buffer == made[at++]);
        for (std::size_t b = 0; b < made.size(); ++b) {
            QVERIFY(packed[b] == made[b]);
            QVERIFY(packed.kind(static_cast<BufferId>(b)) == made[b].kind);
            QCOMPARE(packed.bytes(static_cast<BufferId>(b)), made[b].bytes);
        }
        QVERIFY(packed == others);
        others.push_back(made.front());
        QVERIFY(!(packed == others));
    }

    void repetitionsAreOfLaterMicrobatches()
    {
        const std::vector<Buffer> made = someBuffers(100, 3);
        Buffers packed;
        for (const Buffer& buffer : made)
            packed.push_back(buffer);
        packed.repeat(60, 20, 3, 5);
        std::vector<Buffer> expected(made.begin(), made.begin() + 60);
        const auto append = [&](std::size_t begin, std::size_t end, int later) {
            for (std::size_t b = begin; b < end; ++b) {
                expected.push_back(made[b]);
                if (expected.back().microbatch >= 0)
                    expected.back().microbatch += later;
            }
        };
        for (const int times : {1, 2, 3})
            append(40, 60, 5 * times);
        append(60, 100, 15);
        QCOMPARE(packed.size(), expected.size());
        for (std::size_t b = 0; b < expected.size(); ++b)
            QVERIFY(packed[b] == expected[b]);
    }
};

PIPEWRIGHT_TEST(TestBuffers, NoApplication)
#include "tst_buffers.moc"
