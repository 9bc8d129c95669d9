// SPDX-License-Identifier: GPL-3.0-or-later
// Ranges of the zero-bubble runtimes, told apart from those of a design.
#include "testmain.h"
#include "traces/import/recognisedblocks.h"
#include "traces/store/activities.h"

#include <fmt/format.h>

#include <QTest>

#include <map>
#include <set>

using namespace pipewright;
using namespace pipewright::test;

namespace {

/// A range of 10 us per name and rank, one after the other.
TraceData traceOf(const std::vector<std::vector<std::string>>& namesOfRanks)
{
    TraceData data;
    for (std::size_t rank = 0; rank < namesOfRanks.size(); ++rank) {
        const auto thread = addLane(data, TraceLane::Kind::Thread, static_cast<int>(rank), 100, 1, -1, "thread 1");
        Nanoseconds clock = static_cast<Nanoseconds>(rank) * 1000;
        for (const std::string& name : namesOfRanks[rank]) {
            addActivity(data, thread, ActivityKind::Range, name, clock, clock + 10'000);
            clock += 10'000;
        }
    }
    return data;
}

/// ZB-V on two ranks as its runtime records it: six microbatches, two chunks, F, B and W of each. Chunk 1 begins on the
/// last rank.
TraceData zbv(const std::string& afterChunk)
{
    std::vector<std::vector<std::string>> names(2);
    for (int rank = 0; rank < 2; ++rank)
        for (int microbatch = 0; microbatch < 6; ++microbatch) {
            for (const int chunk : {0, 1}) {
                if (rank == 0 && chunk == 1 && microbatch == 0)
                    names[0].emplace_back("waits");
                names[rank].push_back(fmt::format("F{}.{}{}", microbatch, chunk, afterChunk));
            }
            for (const char letter : {'B', 'W'})
                for (const int chunk : {1, 0})
                    names[rank].push_back(fmt::format("{}{}.{}{}", letter, microbatch, chunk, afterChunk));
        }
    return traceOf(names);
}

std::string blockNames(const RecognisedBlocks& blocks)
{
    std::set<std::string> labels;
    for (std::size_t i = 0; i < blocks.tasks.size(); ++i)
        labels.insert(fmt::format("{}@{}", blocks.labels[i], blocks.tasks[i].device));
    std::string text;
    for (const std::string& label : labels)
        text += (text.empty() ? "" : " ") + label;
    return text;
}

bool says(const TraceData& data, const std::string& part)
{
    return toString(data.report.diagnostics("t")).find(part) != std::string::npos;
}

} // namespace

class TestZeroBubbleNames : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void everyRangeOfBothRanksIsABlock_data()
    {
        QTest::addColumn<QString>("piece");
        QTest::newRow("microbatch and chunk") << "";
        QTest::newRow("microbatch, chunk and piece") << ".0";
    }

    void everyRangeOfBothRanksIsABlock()
    {
        QFETCH(QString, piece);
        TraceData data = zbv(piece.toStdString());
        const RecognisedBlocks blocks = recogniseBlocks(data);
        QCOMPARE(blocks.records.size(), std::size_t{2 * 36});
        QCOMPARE(blocks.devices, 2);
        std::map<Op, int> count;
        for (const Task& task : blocks.tasks) {
            ++count[task.op];
            // Chunk 0 goes down the ranks, chunk 1 back up: stages 0 and 3 are rank 0's.
            QCOMPARE(task.device, task.stage == 0 || task.stage == 3 ? 0 : 1);
        }
        QCOMPARE(count, (std::map<Op, int>{{Op::F, 24}, {Op::I, 24}, {Op::W, 24}})); // their B is our I
        QVERIFY(says(data, "72 repaired: ranges of a zero-bubble runtime"));
        QVERIFY(says(data, "odd chunks from the last one back"));
        QVERIFY(!says(data, "data parallelism"));
    }

    void namesAreReadAsWhatTheyCanBe_data()
    {
        using Names = std::vector<std::vector<std::string>>;
        QTest::addColumn<Names>("names");
        QTest::addColumn<QString>("blocks");
        // A design's names stay a design's.
        QTest::newRow("a design, full backward")
            << Names{{"F0.0", "F0.1", "B0.0", "B0.1"}, {"F1.0", "B1.0", "F1.1", "B1.1"}}
            << "B0.0@0 B0.1@0 B1.0@1 B1.1@1 F0.0@0 F0.1@0 F1.0@1 F1.1@1";
        QTest::newRow("a design, split backward") << Names{{"F0.0", "I0.0", "W0.0"}} << "F0.0@0 I0.0@0 W0.0@0";
        QTest::newRow("a design of many stages on one rank")
            << Names{{"F0.0", "F1.0", "F2.0", "B2.0", "B1.0", "B0.0"}} << "B0.0@0 B1.0@0 B2.0@0 F0.0@0 F1.0@0 F2.0@0";
        QTest::newRow("data parallel copies of a design")
            << Names{{"F0.0", "F0.1", "B0.0", "B0.1"}, {"F0.0", "F0.1", "B0.0", "B0.1"}}
            << "B0.0@0 B0.1@0 F0.0@0 F0.1@0";
        // A W and a B of one block, which no design has.
        QTest::newRow("a runtime with W")
            << Names{{"F0.0", "F1.0", "B0.0", "W0.0", "B1.0", "W1.0"}} << "F0.0@0 F0.1@0 I0.0@0 I0.1@0 W0.0@0 W0.1@0";
        QTest::newRow("a runtime that clears W at the end")
            << Names{{"F0.0", "F1.0", "B0.0", "B1.0", "W_clear.0.0"}} << "F0.0@0 F0.1@0 I0.0@0 I0.1@0";
        // The same names on every rank, more microbatches than chunks: each rank has a stage of its own.
        QTest::newRow("a runtime without W")
            << Names{{"F0.0", "F1.0", "B0.0", "B1.0"}, {"F0.0", "B0.0", "F1.0", "B1.0"}}
            << "B0.0@0 B0.1@0 B1.0@1 B1.1@1 F0.0@0 F0.1@0 F1.0@1 F1.1@1";
        QTest::newRow("microbatches alone")
            << Names{{"F0", "F1", "B0", "W0", "B1", "W1"}} << "F0.0@0 F0.1@0 I0.0@0 I0.1@0 W0.0@0 W0.1@0";
        QTest::newRow("pieces of sequences")
            << Names{{"F0.0.0", "F0.0.1", "B0.0.1", "B0.0.0", "F1.0.0", "F1.0.1", "B1.0.1", "B1.0.0"}}
            << "B0.0@0 B0.1@0 B0.2@0 B0.3@0 F0.0@0 F0.1@0 F0.2@0 F0.3@0";
        QTest::newRow("chunks that go round")
            << Names{{"F0.0", "F0.1", "B0.1", "W0.1", "B0.0", "W0.0"}, {"F0.0", "F0.1", "B0.1", "W0.1", "B0.0", "W0.0"}}
            << "F0.0@0 F1.0@1 F2.0@0 F3.0@1 I0.0@0 I1.0@1 I2.0@0 I3.0@1 W0.0@0 W1.0@1 W2.0@0 W3.0@1";
        // Other people's ranges.
        QTest::newRow("a name that looks alike") << Names{{"F1", "F2", "score"}} << "";
        QTest::newRow("numbers beyond reason")
            << Names{{"F99999999999999999999", "B99999999999999999999", "F1.2.3.4", "B1.2.3.4"}} << "";
    }

    void namesAreReadAsWhatTheyCanBe()
    {
        QFETCH(std::vector<std::vector<std::string>>, names);
        QFETCH(QString, blocks);
        TraceData data = traceOf(names);
        QCOMPARE(QString::fromStdString(blockNames(recogniseBlocks(data))), blocks);
        QCOMPARE(says(data, "W_clear"),
                 std::string_view(QTest::currentDataTag()).find("clears") != std::string_view::npos);
    }
};

PIPEWRIGHT_TEST(TestZeroBubbleNames, QCoreApplication)
#include "tst_zerobubblenames.moc"
