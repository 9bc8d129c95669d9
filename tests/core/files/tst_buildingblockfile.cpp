// SPDX-License-Identifier: GPL-3.0-or-later
// Building blocks in design files: they stand for the order, read back equal, and their faults name their line.
#include "core/buildingblock/publishedblocks.h"
#include "core/buildingblock/vhalf.h"
#include "core/files/designfile.h"
#include "core/schedule/validate.h"
#include "designtexts.h"
#include "makers/schedules.h"
#include "testmain.h"
#include "testpaths.h"

#include <QTest>

#include <algorithm>

using namespace pipewright;
using namespace pipewright::test;

namespace {

const char* const blockFile = R"({
  "pipewright": 1,
  "name": "own block",
  "building_block": {
    "interval": 6,
    "microbatches": 5,
    "placement": [0, 0, 1],
    "backward": "split",
    "F": [0, 1, 2],
    "I": [5, 4, 3]
  },
  "costs": {"stages": [
    {"forward": "1ms", "input_grad": "1ms", "weight_grad": "1ms"},
    {"forward": "1ms", "input_grad": "1ms", "weight_grad": "1ms"},
    {"forward": "1ms", "input_grad": "1ms", "weight_grad": "1ms"}
  ]}
}
)";

} // namespace

class TestBlockFile : public QObject {
    Q_OBJECT

private slots:
    void aBuildingBlockStandsForTheOrder()
    {
        const Design design = designFromJson(blockFile, "design.json");
        QVERIFY(design.buildingBlock);
        QCOMPARE(design.buildingBlock->block.passes.size(), std::size_t{6}); // as written: W is left open
        QCOMPARE(design.schedule.blocks(), std::int64_t{45});
        QCOMPARE(design.schedule.family, std::string("custom"));
        QVERIFY(validate(design.schedule).empty());
        QVERIFY(design.schedule == unroll(*design.buildingBlock));

        const std::string text = designToJson(design);
        QVERIFY2(text.find("\"order\"") == std::string::npos && text.find("\"W\"") == std::string::npos, text.c_str());
        QVERIFY(designFromJson(text, "x") == design);
        QCOMPARE(designToJson(designFromJson(text, "x")), text);
    }

    void anEditedOrderCountsAndTheBlockIsKept()
    {
        Design design = designFromJson(blockFile, "design.json");
        design.schedule.pins.push_back({{Op::F, 0, 1, 0}, 5'000});
        std::string text = designToJson(design);
        QVERIFY(text.find("\"order\"") == std::string::npos && text.find("\"pins\"") != std::string::npos);
        QVERIFY(designFromJson(text, "x") == design);

        std::swap(design.schedule.order[0][0], design.schedule.order[0][1]);
        text = designToJson(design);
        QVERIFY(text.find("\"order\"") != std::string::npos && text.find("\"building_block\"") != std::string::npos);
        QVERIFY(designFromJson(text, "x") == design);

        design.schedule =
            schedule(2, {0, 1}, {"F0.0 F0.1 B0.0 B0.1", "F1.0 F1.1 B1.0 B1.1"}); // nothing of the block is left in it
        design.costs.stages.resize(2);
        QVERIFY(designFromJson(designToJson(design), "x") == design);
    }

    void everyPublishedBlockReadsBackEqual()
    {
        for (const BuildingBlock& block :
             {oneF1BBlock(4), zeroBubbleH1Block(3), interleavedBlock(4), vHalfBlock(4), oneF1BVBlock(3)})
            for (const bool reorder : {true, false}) {
                Design design;
                design.buildingBlock = {block, 7, reorder};
                // Files list passes by operation, then stage.
                std::stable_sort(
                    design.buildingBlock->block.passes.begin(), design.buildingBlock->block.passes.end(),
                    [](const auto& a, const auto& b) { return std::pair(a.op, a.stage) < std::pair(b.op, b.stage); });
                design.schedule = unroll(*design.buildingBlock);
                design.costs.stages.assign(block.deviceOfStage.size(), StageCosts{});
                const std::string text = designToJson(design);
                QVERIFY2(text.find("\"order\"") == std::string::npos, text.c_str());
                QVERIFY2(designFromJson(text, "x") == design, text.c_str());
            }
    }

    void lengthsOfABlockReadBack()
    {
        Design design;
        design.buildingBlock = RepeatedBlock{{"long",
                                              {0, 1},
                                              BackwardStyle::Full,
                                              7,
                                              {{Op::F, 0, 0, 2}, {Op::F, 1, 2, 3}, {Op::B, 0, 9, 4}, {Op::B, 1, 5, 4}}},
                                             3,
                                             true};
        design.schedule = unroll(*design.buildingBlock);
        design.costs.stages.assign(2, StageCosts{});
        const std::string text = designToJson(design);
        QVERIFY2(text.find("\"lengths\"") != std::string::npos, text.c_str());
        QVERIFY(designFromJson(text, "x") == design);
    }

    void everyFaultOfABlockNamesItsLine_data()
    {
        QTest::addColumn<QString>("from");
        QTest::addColumn<QString>("to");
        QTest::addColumn<QString>("expected");
        const auto row = [](const char* name, const char* from, const char* to, const char* expected) {
            QTest::newRow(name) << QString(from) << QString(to) << QString(expected);
        };
        row("gradient before its forward", "\"F\": [0, 1, 2]", "\"F\": [0, 10, 11]",
            "design.json:10: error: I1.m: starts at 4, before F1.m ends at 11");
        row("two in a cell", "\"I\": [5, 4, 3]", "\"I\": [12, 4, 3]",
            "design.json:10: error: device 0, F0.m and I0.m: meet in cell 0 of every interval of 6");
        row("before its data", "\"I\": [5, 4, 3]", "\"I\": [4, 4, 3]",
            "design.json:10: error: I0.m: starts at 4, before I1.m ends at 5");
        row("negative", "\"F\": [0, 1, 2]", "\"F\": [-1, 1, 2]", "design.json:9: error: -1 is out of range");
        row("one too few", "\"F\": [0, 1, 2]", "\"F\": [0, 1]",
            "design.json:9: error: \"F\" has 2 numbers for 3 stages");
        row("no gradient", "    \"F\": [0, 1, 2],\n    \"I\": [5, 4, 3]", "    \"F\": [0, 1, 2]",
            "design.json:4: error: the key \"I\" is missing");
        row("wrong style", "\"split\"", "\"full\"", "design.json:4: error: the key \"B\" is missing");
        row("interval too short", "\"interval\": 6", "\"interval\": 5",
            "design.json:10: error: device 0, F0.m and I0.m: meet in cell 0 of every interval of 5");
        row("no room for W", "[0, 0, 1]", "[0, 0, 0]", "design.json:4: error: W2.m: finds no free cell on its device");
        row("no interval", "\"interval\": 6", "\"interval\": 0",
            "design.json:5: error: \"interval\" is 0, out of range");
        row("too large", "\"interval\": 6,\n    \"microbatches\": 5", "\"interval\": 600,\n    \"microbatches\": 65536",
            "design.json:4: error: building block: ");
        row("contradicted", "  \"costs\"", "  \"schedule\": {\"microbatches\": 4},\n  \"costs\"",
            "design.json:12: error: \"microbatches\" is not that of the building block");
        row("unknown key", "\"F\"", "\"G\"", "design.json:9: error: unknown key \"G\"");
    }

    void everyFaultOfABlockNamesItsLine()
    {
        QFETCH(QString, from);
        QFETCH(QString, to);
        QFETCH(QString, expected);
        const QString fault =
            QString::fromStdString(faultOf(replaced(blockFile, from.toStdString(), to.toStdString())));
        QVERIFY2(fault.contains(expected), qPrintable(fault));
        QVERIFY2(!fault.contains("costs of"), qPrintable(fault)); // no fault that is only a consequence
    }

    void theExampleOfABlockReads()
    {
        const Design design = readDesign(PIPEWRIGHT_SOURCE_DIR "/resources/examples/own-building-block.json");
        QVERIFY(design.buildingBlock);
        QVERIFY(validate(design.schedule).empty());
        QVERIFY(designFromJson(designToJson(design), "x") == design);
    }
};

PIPEWRIGHT_TEST(TestBlockFile, NoApplication)
#include "tst_buildingblockfile.moc"
