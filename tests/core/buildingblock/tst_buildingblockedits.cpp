// SPDX-License-Identifier: GPL-3.0-or-later
// Building blocks under a person's hands: conflicts where they stand, and edits that give what they say.
#include "core/buildingblock/buildingblockedits.h"
#include "core/buildingblock/lifespan.h"
#include "core/buildingblock/publishedblocklist.h"
#include "core/families/family.h"
#include "testmain.h"

#include <QTest>

#include <random>

using namespace pipewright;

namespace {

int indexOf(const BuildingBlock& block, Op op, int stage)
{
    for (std::size_t i = 0; i < block.passes.size(); ++i)
        if (block.passes[i].op == op && block.passes[i].stage == stage)
            return int(i);
    return -1;
}

} // namespace

class BlockEditsTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void everyFormIsOfAFamilyAndHasNoConflict()
    {
        QVERIFY(publishedBlocks().size() >= 10);
        for (const PublishedBlock& form : publishedBlocks()) {
            QVERIFY(findFamily(form.family));
            QCOMPARE(form.title, findFamily(form.family)->title);
            for (int p = 1; p <= 9; ++p) {
                const auto block = blockOfFamily(form.family, p, 6);
                QVERIFY(block && block->devices() == p);
                QVERIFY2(conflictsOf(*block).empty(), form.family.data());
            }
        }
        QVERIFY(!blockOfFamily("zb-auto", 4, 8));
    }

    void aPassBeforeItsDataIsNamedWithWhatItWaitsFor()
    {
        const BuildingBlock block = *blockOfFamily("zb-h1", 4, 8);
        const int f2 = indexOf(block, Op::F, 2), f1 = indexOf(block, Op::F, 1);
        const auto conflicts = conflictsOf(withStart(block, f2, 0));
        QVERIFY(std::find(conflicts.begin(), conflicts.end(), PassConflict{PassConflict::Kind::Early, f2, f1})
                != conflicts.end());
    }

    void passesThatMeetModuloTheIntervalAreNamedOnce()
    {
        const BuildingBlock block = *blockOfFamily("zb-h1", 4, 8);
        const int w0 = indexOf(block, Op::W, 0);
        const BuildingBlock edited =
            withStart(block, w0, block.passes[std::size_t(w0)].start + 1); // onto F0 of another repetition
        int meetings = 0;
        for (const PassConflict& conflict : conflictsOf(edited)) {
            QVERIFY(conflict.kind == PassConflict::Kind::Meets);
            QVERIFY(conflict.pass == w0 || conflict.other == w0);
            ++meetings;
        }
        QCOMPARE(meetings, 1);
    }

    /// Whatever is drawn: conflicts exist exactly when checkBlock() has errors.
    void conflictsAreWhatTheCheckRefuses()
    {
        std::mt19937 random(7);
        int faulty = 0, good = 0;
        for (int round = 0; round < 600; ++round) {
            const auto& form = publishedBlocks()[random() % publishedBlocks().size()];
            BuildingBlock block = *blockOfFamily(form.family, 1 + int(random() % 5), 4);
            for (unsigned edits = random() % 3; edits > 0; --edits) {
                const int pass = int(random() % block.passes.size());
                block = withStart(block, pass, block.passes[std::size_t(pass)].start + int(random() % 9) - 4);
            }
            if (random() % 4 == 0)
                block.interval = 1 + int(random() % 8);
            const bool refused = hasErrors(checkBlock(block));
            QCOMPARE(!conflictsOf(block).empty(), refused);
            ++(refused ? faulty : good);
        }
        QVERIFY(faulty > 50 && good > 50);
    }

    void theFirstFreeStartHasItsDataAndMeetsNothing()
    {
        for (const PublishedBlock& form : publishedBlocks()) {
            const BuildingBlock block = *blockOfFamily(form.family, 4, 8);
            for (int pass = 0; pass < int(block.passes.size()); ++pass) {
                const int start = firstFreeStart(block, pass);
                QVERIFY(start <= block.passes[std::size_t(pass)].start);
                for (const PassConflict& conflict : conflictsOf(withStart(block, pass, start)))
                    QVERIFY(!(conflict.kind == PassConflict::Kind::Early && conflict.pass == pass)
                            && !(conflict.kind == PassConflict::Kind::Meets
                                 && (conflict.pass == pass || conflict.other == pass)));
            }
        }
    }

    void cellsShowThePassThatTakesThem()
    {
        const BuildingBlock block = *blockOfFamily("v-half", 3, 8);
        const auto cells = cellsModuloInterval(block);
        QCOMPARE(cells.size(), std::size_t(3));
        for (std::size_t device = 0; device < cells.size(); ++device) {
            QCOMPARE(int(cells[device].size()), block.interval);
            for (int t = 0; t < block.interval; ++t) {
                const int pass = cells[device][std::size_t(t)];
                QVERIFY(pass >= 0); // a V block fills every cell
                QCOMPARE(block.passes[std::size_t(pass)].start % block.interval, t);
                QCOMPARE(block.deviceOfStage[std::size_t(block.passes[std::size_t(pass)].stage)], int(device));
            }
        }
        QCOMPARE(workPerInterval(block), std::vector<int>(3, block.interval));
    }

    void aStageMovesWithAllItsPassesAndNoDeviceIsLeftEmpty()
    {
        const BuildingBlock v = *blockOfFamily("v-min", 4, 8);
        QCOMPARE(withStageOn(v, 0, 2).deviceOfStage[0], 2);
        QCOMPARE(withStageOn(v, 0, 2).devices(), 4);
        QVERIFY_THROWS_EXCEPTION(Error, withStageOn(v, 0, 4));
        QVERIFY_THROWS_EXCEPTION(Error, withStageOn(*blockOfFamily("1f1b", 4, 8), 1, 0));
    }

    void theBackwardIsSplitAndJoinedAgain()
    {
        const BuildingBlock full = *blockOfFamily("1f1b", 4, 8);
        const BuildingBlock split = withBackward(full, BackwardStyle::Split);
        QVERIFY(!hasErrors(checkBlock(split)));
        QCOMPARE(liveBound(split), liveBound(full));
        QCOMPARE(withBackward(split, BackwardStyle::Full), full);
    }
};

PIPEWRIGHT_TEST(BlockEditsTest, NoApplication)
#include "tst_buildingblockedits.moc"
