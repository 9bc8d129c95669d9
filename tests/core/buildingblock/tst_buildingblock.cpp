// SPDX-License-Identifier: GPL-3.0-or-later
// Building blocks: what makes one valid, what it promises about memory, and that the published schedules
// come out of their blocks, order for order where the order is published.
#include "core/buildingblock/lifespan.h"
#include "core/buildingblock/publishedblocks.h"
#include "core/buildingblock/vhalf.h"
#include "core/families/family.h"
#include "core/predict/predict.h"
#include "core/schedule/validate.h"
#include "makers/designs.h"
#include "testmain.h"

#include <QTest>

using namespace pipewright;

namespace {

Metrics measured(const Schedule& schedule)
{
    DeviceWorth worth;
    worth.forward = worth.inputGrad = worth.weightGrad = 1000;
    worth.perChunk = true;
    return predict(test::evenDesign(worth, schedule)).metrics;
}

std::vector<std::vector<Block>> family(const char* name, int p, int m)
{
    return test::familySchedule(name, p, m).order;
}

QString first(const Diagnostics& diagnostics)
{
    return diagnostics.empty() ? QString() : QString::fromStdString(toString(diagnostics.front()));
}

const UnrollOptions asStamped{false, true, true};

std::vector<BuildingBlock> allForms(int p, int m)
{
    return {oneF1BBlock(p),      eagerBlock(p), gpipeBlock(p, m), zeroBubbleH1Block(p), zeroBubbleH2Block(p),
            interleavedBlock(p), vMinBlock(p),  vHalfBlock(p),    vZeroBubbleBlock(p),  oneF1BVBlock(p)};
}

} // namespace

class BuildingBlockTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void everyPublishedFormIsValidForEveryNumberOfDevices()
    {
        for (int p = 1; p <= 20; ++p)
            for (const BuildingBlock& block : allForms(p, 5))
                QVERIFY2(checkBlock(block).empty(),
                         qPrintable(QString::fromStdString(block.name) + ": " + first(checkBlock(block))));
    }

    void linearFormsStampTheFamiliesOrders_data()
    {
        QTest::addColumn<int>("p");
        QTest::addColumn<int>("m");
        for (int p : {1, 2, 3, 4, 7})
            for (int m : {1, p, 2 * p, 5 * p})
                QTest::addRow("p%d m%d", p, m) << p << m;
    }

    void linearFormsStampTheFamiliesOrders()
    {
        QFETCH(int, p);
        QFETCH(int, m);
        QCOMPARE(unroll(oneF1BBlock(p), m, asStamped).order, family("1f1b", p, m));
        QCOMPARE(unroll(eagerBlock(p), m, asStamped).order, family("eager-1f1b", p, m));
        QCOMPARE(unroll(gpipeBlock(p, m), m, asStamped).order, family("gpipe", p, m));
        QCOMPARE(unroll(zeroBubbleH1Block(p), m, asStamped).order, family("zb-h1", p, m));
        QCOMPARE(unroll(zeroBubbleH2Block(p), m, asStamped).order, family("zb-h2", p, m));
    }

    void lifespansGiveTheKnownPeaks()
    {
        for (int p : {2, 4, 9}) {
            for (int r = 0; r < p; ++r) {
                const auto d = static_cast<std::size_t>(r);
                QCOMPARE(liveBound(oneF1BBlock(p))[d], p - r);
                QCOMPARE(liveBound(eagerBlock(p))[d], 2 * (p - r) - 1);
                QCOMPARE(liveBound(zeroBubbleH1Block(p))[d], p);
                QCOMPARE(liveBound(zeroBubbleH2Block(p))[d], 2 * p - 1);
            }
            QCOMPARE(lifespan(oneF1BBlock(p), 0), 3 * p);
            QCOMPARE(lifespan(zeroBubbleH2Block(p), p - 1), 3 * (2 * p - 1));
        }
    }

    void publishedWidthsOfTheVZeroBubbleBlock()
    {
        const int d = 6;
        const BuildingBlock block = vZeroBubbleBlock(d);
        const auto start = [&](Op op, int stage) {
            return std::find_if(block.passes.begin(), block.passes.end(),
                                [&](const auto& pass) { return pass.op == op && pass.stage == stage; })
                ->start;
        };
        QCOMPARE(start(Op::F, d - 1) - start(Op::F, 0) + 1, 4 * d - 3);
        QCOMPARE(start(Op::F, 2 * d - 1) - start(Op::F, d) + 1, 2 * d - 1);
        QCOMPARE(start(Op::I, d) - start(Op::I, 2 * d - 1) + 1, 4 * d - 3);
        QCOMPARE(start(Op::I, 0) - start(Op::I, d - 1) + 1, 2 * d - 1);
    }

    void unrollingNeverExceedsTheBound()
    {
        for (int p : {1, 2, 3, 4, 6, 7})
            for (int m : {1, p, 2 * p + 1, 5 * p})
                for (const BuildingBlock& block : allForms(p, m))
                    for (const bool reorder : {false, true})
                        for (const bool share : {false, true}) {
                            const Schedule schedule = unroll(block, m, {reorder, share, true});
                            QVERIFY2(validate(schedule).empty(), block.name.c_str());
                            QVERIFY(unplacedBlocks(schedule).empty());
                            const std::vector<int> bound = liveBound(block);
                            const int most = *std::max_element(bound.begin(), bound.end());
                            const Metrics metrics = measured(schedule);
                            for (std::size_t d = 0; d < bound.size(); ++d)
                                QVERIFY2(qRound(metrics.devices[d].peakActivations * schedule.chunks())
                                             <= (reorder && share ? most : bound[d]),
                                         block.name.c_str());
                        }
    }

    void reorderingDoesNotLengthenThePublishedForms()
    {
        for (int p : {2, 4, 6, 7})
            for (const BuildingBlock& block : allForms(p, 3 * p))
                QVERIFY2(measured(unroll(block, 3 * p)).span <= measured(unroll(block, 3 * p, asStamped)).span,
                         block.name.c_str());
    }

    void interleavedFormHasTheBubbleOfItsFamily()
    {
        for (int p : {2, 4, 6})
            QVERIFY(measured(unroll(interleavedBlock(p), 4 * p)).makespan
                    >= Nanoseconds{1000} * (6 * 4 * p + 3 * (p - 1)));
    }

    void faultsAreNamed_data()
    {
        QTest::addColumn<BuildingBlock>("block");
        QTest::addColumn<QString>("where");
        const auto row = [](const char* name, const char* where, auto change) {
            BuildingBlock block = zeroBubbleH1Block(3); // F at r, I at 7 - 2r, W at 8 + r, every 3
            change(block);
            QTest::newRow(name) << block << QString(where);
        };
        row("collision", "device 0, F0.m and W0.m", [](BuildingBlock& b) { b.passes[6].start = 9; });
        row("gradient before its data", "I0.m", [](BuildingBlock& b) { b.passes[1].start = 4; });
        row("forward before its data", "F2.m", [](BuildingBlock& b) { b.passes[4].start = 1; });
        row("weight gradient too early", "W1.m", [](BuildingBlock& b) { b.passes[7].start = 3; });
        row("missing", "W2.m", [](BuildingBlock& b) { b.passes.pop_back(); });
        row("twice", "F0.m", [](BuildingBlock& b) { b.passes.push_back({Op::F, 0, 30, 1}); });
        row("full backward in a split block", "B0.m", [](BuildingBlock& b) { b.passes.push_back({Op::B, 0, 30, 1}); });
        row("unknown stage", "F9.m", [](BuildingBlock& b) { b.passes.push_back({Op::F, 9, 0, 1}); });
        row("negative start", "F0.m", [](BuildingBlock& b) { b.passes[0].start = -1; });
        row("long pass in a split block", "F0.m", [](BuildingBlock& b) { b.passes[0].length = 2; });
        row("no interval", "block", [](BuildingBlock& b) { b.interval = 0; });
        row("no placement", "block", [](BuildingBlock& b) { b.deviceOfStage.clear(); });
    }

    void faultsAreNamed()
    {
        QFETCH(BuildingBlock, block);
        QFETCH(QString, where);
        const Diagnostics diagnostics = checkBlock(block);
        QVERIFY(hasErrors(diagnostics));
        QCOMPARE(QString::fromStdString(diagnostics.front().where), where);
        QVERIFY_THROWS_EXCEPTION(Error, unroll(block, 4));
    }

    void longerIntervalIsABubbleThatReturns()
    {
        BuildingBlock block = oneF1BBlock(1);
        block.interval = 4;
        const Diagnostics diagnostics = checkBlock(block);
        QCOMPARE(diagnostics.size(), std::size_t{1});
        QCOMPARE(diagnostics.front().severity, Severity::Warning);
        QCOMPARE(unroll(block, 3).blocks(), std::int64_t{6});
    }

    void weightGradsFindNoPlaceInAFullInterval()
    {
        BuildingBlock block = zeroBubbleH1Block(2);
        std::erase_if(block.passes, [](const auto& pass) { return pass.op == Op::W; });
        block.interval = 2;
        QVERIFY_THROWS_EXCEPTION(Error, placeWeightGrads(block));
        block.interval = 3;
        placeWeightGrads(block);
        QVERIFY(checkBlock(block).empty());
    }

    /// ceil(l / T) by stage, whatever the fullest device holds.
    void aBlockDrawnByHandKeepsToItsLifespans()
    {
        RepeatedBlock drawn;
        drawn.block.interval = 3;
        drawn.block.deviceOfStage = {0, 1, 2, 3};
        drawn.block.backward = BackwardStyle::Full;
        for (int stage = 0; stage < 4; ++stage) {
            drawn.block.passes.push_back({Op::F, stage, stage, 1});
            drawn.block.passes.push_back({Op::B, stage, 10 - 2 * stage, 2});
        }
        drawn.microbatches = 12;
        const Schedule schedule = unroll(drawn);
        for (std::size_t device = 0; device < 4; ++device) {
            int alive = 0, most = 0;
            for (const Block& block : schedule.order[device]) {
                alive += block.op == Op::F ? 1 : -1;
                most = std::max(most, alive);
            }
            QCOMPARE(most, 4 - static_cast<int>(device));
        }
    }

    void aUsersOwnBlockUnrolls()
    {
        // Two stages on one device, a third on the other: nothing published, but it repeats every 6.
        BuildingBlock block;
        block.name = "own";
        block.interval = 6;
        block.deviceOfStage = {0, 0, 1};
        block.passes = {{Op::F, 0, 0, 1}, {Op::F, 1, 1, 1}, {Op::F, 2, 2, 1},
                        {Op::I, 2, 3, 1}, {Op::I, 1, 4, 1}, {Op::I, 0, 5, 1}};
        placeWeightGrads(block);
        QVERIFY(!hasErrors(checkBlock(block)));
        const Schedule schedule = unroll(block, 5);
        QVERIFY(validate(schedule).empty());
        QCOMPARE(schedule.blocks(), std::int64_t{45});
        QCOMPARE(schedule.family, std::string("custom"));
    }
};

PIPEWRIGHT_TEST(BuildingBlockTest, QCoreApplication)
#include "tst_buildingblock.moc"
