// SPDX-License-Identifier: GPL-3.0-or-later
// Edits leave the original alone, refuse what cannot run with a reason, and never lose a block.
#include "core/schedule/edits.h"
#include "testmain.h"

#include "core/families/family.h"
#include "core/predict/predict.h"
#include "makers/costs.h"
#include "makers/schedules.h"

#include <QTest>

#include <rapidcheck.h>

#include <algorithm>

using namespace pipewright;
using namespace pipewright::test;

namespace {

std::vector<Block> sortedBlocks(const Schedule& s)
{
    std::vector<Block> all;
    for (const auto& lane : s.order)
        all.insert(all.end(), lane.begin(), lane.end());
    std::sort(all.begin(), all.end());
    return all;
}

/// When a block starts in the prediction; -1: it is no block of it.
auto startsOf(const Prediction& p)
{
    return [p](const Block& block) {
        for (TaskId t = 0; t < p.program.tasks.size(); ++t)
            if (p.program.tasks[t].kind == TaskKind::Compute && p.program.tasks[t].block() == block)
                return p.timeline.start[t];
        return Nanoseconds{-1};
    };
}

Schedule example()
{
    return schedule(2, {0, 1}, {"F0.0 F0.1 B0.0 B0.1", "F1.0 B1.0 F1.1 B1.1"});
}

} // namespace

class EditsTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void aBlockMovesBeforeTheIndexNamed()
    {
        const Schedule s = example();
        const EditResult later = moveBlock(s, block("F1.1"), 1);
        QVERIFY(later.legal());
        QVERIFY(later.schedule.order[1] == schedule(2, {0, 1}, {"", "F1.0 F1.1 B1.0 B1.1"}).order[1]);
        const EditResult end = moveBlock(s, block("B0.0"), 4);
        QVERIFY(end.legal());
        QVERIFY(end.schedule.order[0].back() == block("B0.0"));
        QVERIFY(s == example());
        QCOMPARE(later.schedule.family, std::string("custom"));
    }

    void anIllegalMoveSaysWhy()
    {
        const EditResult r = moveBlock(example(), block("B1.0"), 0);
        QVERIFY(!r.legal());
        QVERIFY(QString::fromStdString(toString(r.diagnostics.front())).contains("needs F1.0"));
        const EditResult circle = moveBlock(example(), block("B0.0"), 1);
        QVERIFY(circle.legal()); // device 1 needs nothing of microbatch 1 before B1.0
        const EditResult unknown = moveBlock(example(), block("F1.7"), 0);
        QVERIFY(!unknown.legal());
    }

    void moveToItsOwnPlaceChangesNothing()
    {
        for (int index : {1, 2}) {
            const EditResult r = moveBlock(example(), block("F0.1"), index);
            QVERIFY(r.legal());
            QVERIFY(r.schedule == example());
        }
    }

    void aStageTakesItsBlocksAlongInTimeOrder()
    {
        Design design;
        design.schedule = makeSchedule("1f1b", sized(3, 3));
        design.costs = unitCosts(3);
        const auto startOf = startsOf(predict(design));
        const EditResult r = moveStage(design.schedule, 1, 0, startOf);
        QVERIFY2(r.legal(), r.diagnostics.empty() ? "" : toString(r.diagnostics).c_str());
        QCOMPARE(r.schedule.deviceOfStage, (std::vector<int>{0, 0, 2}));
        QVERIFY(r.schedule.order[1].empty());
        QVERIFY(sortedBlocks(r.schedule) == sortedBlocks(design.schedule));
        QVERIFY(!moveStage(design.schedule, 1, 9, startOf).legal());
    }

    void theFirstStageMovesWithItsHalvesJoined()
    {
        Design design;
        design.schedule = makeSchedule("zb-h1", sized(3, 5));
        design.costs = unitCosts(3);
        const auto startOf = startsOf(predict(design));
        for (const int device : {1, 2}) {
            const EditResult r = moveStage(design.schedule, 0, device, startOf);
            QVERIFY2(r.legal(), r.diagnostics.empty() ? "" : toString(r.diagnostics).c_str());
            QVERIFY(sortedBlocks(r.schedule) == sortedBlocks(design.schedule));
        }
    }

    void theTrayGivesAndTakes()
    {
        const Block taken[] = {block("B0.1")};
        const EditResult out = unplaceBlocks(example(), taken);
        QVERIFY(out.legal());
        QVERIFY(unplacedBlocks(out.schedule) == std::vector<Block>{block("B0.1")});
        const int index = firstLegalIndex(out.schedule, block("B0.1"));
        QCOMPARE(index, 3);
        const EditResult back = placeBlock(out.schedule, block("B0.1"), index);
        QVERIFY(back.legal());
        QVERIFY(back.schedule.order == example().order);
        QVERIFY(!placeBlock(out.schedule, block("B0.1"), 0).legal());
        QVERIFY(!placeBlock(example(), block("B0.1"), 3).legal()); // already there
    }

    void theNextBlockKeepsTheTurnOfItsMicrobatch()
    {
        Schedule s = makeSchedule("1f1b", {});
        s.order.assign(s.order.size(), {});
        for (const char* name : {"F0.0", "F1.0", "F0.1", "F1.1", "F0.2"}) {
            const int index = firstLegalIndex(s, block(name));
            QVERIFY(index >= 0);
            s = placeBlock(s, block(name), index).schedule;
        }
        QVERIFY(s.order[0] == (std::vector<Block>{block("F0.0"), block("F0.1"), block("F0.2")}));
        QVERIFY(s.order[1] == (std::vector<Block>{block("F1.0"), block("F1.1")}));
        // A turn that cannot be kept is none: what is placed already needs the block before.
        Schedule turned = example();
        const auto at = [&](const char* name) { return find(turned, block(name)); };
        const Block taken[] = {block("F0.0")};
        turned = unplaceBlocks(turned, taken).schedule;
        const int index = firstLegalIndex(turned, block("F0.0"));
        QVERIFY(index >= 0 && index <= at("B0.0").index);
    }

    void anEmptyTimelineCanBeFilledFromTheTray()
    {
        for (const Family& family : families()) {
            if (family.updates)
                continue; // the tray holds passes, and without its updates such a schedule is none
            Schedule s = makeSchedule(family.name, {});
            s.order.assign(s.order.size(), {});
            s.overlaps.clear();
            // Always place the first block whose inputs are there.
            for (std::vector<Block> tray = unplacedBlocks(s); !tray.empty(); tray = unplacedBlocks(s)) {
                bool placed = false;
                for (const Block& b : tray)
                    if (const int index = firstLegalIndex(s, b); index >= 0) {
                        const EditResult r = placeBlock(s, b, index);
                        QVERIFY2(r.legal(), toString(r.diagnostics).c_str());
                        s = r.schedule;
                        placed = true;
                        break;
                    }
                QVERIFY2(placed, std::string(family.name).c_str());
            }
            s.firstStageMaySplit = true;
            QVERIFY2(validate(s).empty(), toString(validate(s)).c_str());
        }
    }

    void backwardsAreSplitAndMergedAgain()
    {
        const std::vector<Block> all = sortedBlocks(example());
        const EditResult split = splitBackwards(example(), all);
        QVERIFY2(split.legal(), split.diagnostics.empty() ? "" : toString(split.diagnostics).c_str());
        QVERIFY(unplacedBlocks(split.schedule).empty());
        for (const auto& order : split.schedule.order)
            for (std::size_t i = 0; i < order.size(); ++i) {
                QVERIFY(order[i].op != Op::B);
                QVERIFY(order[i].op != Op::W
                        || order[i - 1] == (Block{Op::I, order[i].stage, order[i].microbatch, order[i].replica}));
            }
        const EditResult merged = mergeBackwards(split.schedule, sortedBlocks(split.schedule));
        QVERIFY(merged.legal());
        QVERIFY(merged.schedule.order == example().order);
        // One alone, with its pin; its half merges both.
        const Block one[] = {block("B0.1")};
        const EditResult pinned = splitBackwards(pinBlock(example(), one[0], 5000).schedule, one);
        QVERIFY(pinned.legal());
        QVERIFY(pinned.schedule.pins.front().block == block("I0.1"));
        const Block half[] = {block("W0.1")};
        QVERIFY(mergeBackwards(pinned.schedule, half).schedule.order == example().order);
        // What is not there to be split or merged is refused.
        const Block forward[] = {block("F0.1")};
        QVERIFY(!splitBackwards(example(), forward).legal());
        QVERIFY(!mergeBackwards(example(), one).legal());
        const Block gone[] = {block("W0.1")};
        QVERIFY(!mergeBackwards(unplaceBlocks(pinned.schedule, gone).schedule, half).legal());
    }

    void pinsComeAndGo()
    {
        const EditResult pinned = pinBlock(example(), block("F1.0"), 5000);
        QCOMPARE(pinned.schedule.pins.size(), std::size_t{1});
        QVERIFY(pinBlock(pinned.schedule, block("F1.0"), 0).schedule == example());
        QVERIFY(!pinBlock(example(), block("F1.0"), -5).legal());
    }

    void randomEditsKeepEveryBlockAndEveryLegalResultRuns()
    {
        const bool held = rc::check("edits", [] {
            Schedule s = makeSchedule("zb-h1", sized(3, 4));
            const std::vector<Block> all = sortedBlocks(s);
            const int steps = *rc::gen::inRange(1, 12);
            for (int i = 0; i < steps; ++i) {
                const Block b = *rc::gen::elementOf(all);
                const Position at = find(s, b);
                RC_ASSERT(at.device >= 0);
                const int index = *rc::gen::inRange(0, static_cast<int>(s.order[at.device].size()) + 1);
                const Schedule before = s;
                const EditResult r = moveBlock(s, b, index);
                RC_ASSERT(s == before);
                RC_ASSERT(sortedBlocks(r.schedule) == all);
                RC_ASSERT(r.legal() == !hasErrors(validate(r.schedule)));
                if (r.legal())
                    s = r.schedule;
            }
            Design design;
            design.schedule = s;
            design.costs = unitCosts(3);
            RC_ASSERT(predict(design).program.computeCount() == s.blocks());
        });
        QVERIFY(held);
    }
};

PIPEWRIGHT_TEST(EditsTest, NoApplication)
#include "tst_edits.moc"
