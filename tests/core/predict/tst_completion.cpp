// SPDX-License-Identifier: GPL-3.0-or-later
// Completing a half-placed schedule: placed blocks stay, the result can run, and it follows the family it began as.
#include "core/buildingblock/publishedblocks.h"
#include "core/families/family.h"
#include "core/predict/completion.h"
#include "core/predict/listcompletion.h"
#include "core/predict/predict.h"
#include "core/schedule/validate.h"
#include "makers/designs.h"
#include "testmain.h"

#include <QTest>
#include <rapidcheck.h>

#include <algorithm>

using namespace pipewright;
using namespace pipewright::test;

namespace {

/// Of every lane only as many blocks as `keep` says of it.
Schedule begun(Schedule schedule, const std::vector<std::size_t>& keep)
{
    for (std::size_t d = 0; d < schedule.order.size(); ++d)
        schedule.order[d].resize(std::min(schedule.order[d].size(), keep[d]));
    schedule.family = "custom";
    dropBrokenOverlaps(schedule);
    return schedule;
}

/// The blocks that stand in both keep their order.
bool keepsOrder(const std::vector<Block>& before, const std::vector<Block>& after)
{
    auto at = after.begin();
    for (const Block& block : before) {
        at = std::find(at, after.end(), block);
        if (at == after.end())
            return false;
    }
    return true;
}

QString faultsOf(const Schedule& before, const Schedule& after, const std::vector<SkipConnection>& skips = {})
{
    for (std::size_t d = 0; d < before.order.size(); ++d)
        if (!keepsOrder(before.order[d], after.order[d]))
            return QString("device %1 lost its order").arg(d);
    if (!unplacedBlocks(after).empty())
        return "blocks are left over";
    return QString::fromStdString(toString(validate(after, skips)));
}

} // namespace

class CompletionTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void aCompleteScheduleStaysAsItIs()
    {
        const Design design = unitDesign(familySchedule("zb-h1", 3, 5));
        const Completion completion = completeSchedule(design);
        QVERIFY(completion.schedule == design.schedule);
        QVERIFY(completion.style.empty());
    }

    void aBeginningIsContinuedAsTheFamilyThatItIsOf_data()
    {
        QTest::addColumn<QString>("family");
        QTest::addColumn<QString>("title");
        for (const auto& [name, title] : {std::pair("1f1b", "1F1B"),
                                          {"gpipe", "GPipe"},
                                          {"zb-h1", "ZB-H1"},
                                          {"zb-h2", "ZB-H2"},
                                          {"zb-v", "ZB-V"},
                                          {"v-half", "V-Half"},
                                          {"interleaved-1f1b", "Interleaved 1F1B"},
                                          {"chimera", "Chimera"},
                                          {"dualpipe", "DualPipe"},
                                          {"seq1f1b", "Seq1F1B"}})
            QTest::addRow("%s", name) << name << title;
    }
    void aBeginningIsContinuedAsTheFamilyThatItIsOf()
    {
        QFETCH(QString, family);
        QFETCH(QString, title);
        const Schedule whole = familySchedule(family.toUtf8().constData(), 4, 8);
        std::vector<std::size_t> half;
        for (const auto& lane : whole.order)
            half.push_back(lane.size() * 2 / 3);
        const Completion completion = completeSchedule(unitDesign(begun(whole, half)));
        QVERIFY2(!hasErrors(completion.diagnostics), toString(completion.diagnostics).c_str());
        QCOMPARE(QString::fromStdString(completion.style), title);
        QVERIFY(completion.schedule == whole);
    }

    void aWarmUpAloneSaysEnough()
    {
        const Schedule whole = familySchedule("1f1b", 4, 8);
        const Completion completion = completeSchedule(unitDesign(begun(whole, {4, 3, 2, 1})));
        QCOMPARE(QString::fromStdString(completion.style), QString("1F1B"));
        QVERIFY(completion.schedule == whole);
    }

    void anEmptyTimelineBecomesTheFamilyOfItsPlacementThatNeedsLeastMemory()
    {
        const Schedule whole = familySchedule("gpipe", 4, 8);
        const Completion completion = completeSchedule(unitDesign(begun(whole, {0, 0, 0, 0})));
        QCOMPARE(QString::fromStdString(completion.style), QString("1F1B"));
        QCOMPARE(faultsOf(begun(whole, {0, 0, 0, 0}), completion.schedule), QString());
    }

    void blocksTakenOutOfTheMiddleGoBackWhereTheyWere()
    {
        const Schedule whole = familySchedule("zb-h1", 4, 8);
        Schedule holes = whole;
        for (auto& lane : holes.order)
            std::erase_if(lane, [](const Block& block) { return block.microbatch == 3 || block.op == Op::W; });
        holes.firstStageMaySplit = whole.firstStageMaySplit;
        QVERIFY(completeSchedule(unitDesign(holes)).schedule == whole);
    }

    void aFewMovedBlocksStayMovedAndTheRestFollowsTheFamily()
    {
        const Schedule whole = familySchedule("zb-h1", 4, 8);
        Schedule moved = whole;
        auto& lane = moved.order[2];
        const auto weight = std::find_if(lane.begin(), lane.end(), [](const Block& b) { return b.op == Op::W; });
        std::rotate(weight, weight + 1, weight + 4); // a weight gradient three places later is legal
        QVERIFY(validate(moved).empty());
        Schedule begunMoved = begun(moved, {14, 14, 14, 14});
        const Completion completion = completeSchedule(unitDesign(begunMoved));
        QCOMPARE(QString::fromStdString(completion.style), QString("ZB-H1"));
        QCOMPARE(faultsOf(begunMoved, completion.schedule), QString());
        QVERIFY(completion.schedule.order == moved.order);
        QCOMPARE(QString::fromStdString(completion.schedule.family), QString("custom"));
    }

    void aPersonsOwnBuildingBlockComesFirst()
    {
        RepeatedBlock repeated{eagerBlock(3), 6, true};
        repeated.block.name = "mine";
        Design design = unitDesign(begun(unroll(repeated), {2, 2, 2}));
        design.buildingBlock = repeated;
        const Completion completion = completeSchedule(design);
        QCOMPARE(QString::fromStdString(completion.style), QString("mine"));
        QVERIFY(completion.schedule.order == unroll(repeated).order);
    }

    void withoutAFamilyTheDepthThatWasSeenIsKept()
    {
        // Two microbatches under way on every device: no family has that.
        const Schedule before =
            schedule(8, {0, 1, 2},
                     {"F0.0 F0.1 B0.0 F0.2 B0.1 F0.3 B0.2", "F1.0 F1.1 B1.0 F1.2 B1.1", "F2.0 F2.1 B2.0 F2.2 B2.1"});
        QVERIFY(depthShown(before) == std::vector<int>({2, 2, 2}));
        const Completion completion = completeSchedule(unitDesign(before));
        QVERIFY2(!hasErrors(completion.diagnostics), toString(completion.diagnostics).c_str());
        QVERIFY(completion.style.empty());
        QCOMPARE(faultsOf(before, completion.schedule), QString());
        QVERIFY(depthShown(completion.schedule) == std::vector<int>({2, 2, 2}));
        QCOMPARE(toString(completion.schedule.order[0].back()), std::string("B0.7"));
    }

    void whereThePlacedBlocksWaitForEachOtherThroughMissingOnesItSaysSo()
    {
        const Schedule before = schedule(2, {0, 1, 2}, {"F0.0 B0.0 F0.1", "", "F2.1 B2.0"});
        QVERIFY(!hasErrors(placeBlock(before, block("F1.0"), 0).diagnostics)); // placing one by one does not tell
        const Completion completion = completeSchedule(unitDesign(before));
        QVERIFY(hasErrors(completion.diagnostics));
        QVERIFY(completion.schedule == before);
        QVERIFY(completion.diagnostics.front().what.find("through blocks that are missing") != std::string::npos);
    }

    void anyMissingBlocksAreCompletedByListScheduling()
    {
        QVERIFY(rc::check("list completion", [] {
            const auto all = families();
            const Family& family = all[*rc::gen::inRange(0, static_cast<int>(all.size()))];
            const Schedule whole =
                makeSchedule(family.name, possibleParameters(family, *rc::gen::inRange(1, 5), *rc::gen::inRange(1, 8)));
            RC_PRE(!family.updates); // those are left to a person
            Schedule before = whole;
            before.family = "custom";
            const int percent = *rc::gen::inRange(0, 101);
            for (auto& lane : before.order) {
                std::vector<Block> kept;
                for (const Block& block : lane)
                    if (*rc::gen::inRange(0, 100) < percent)
                        kept.push_back(block);
                lane = kept;
            }
            dropBrokenOverlaps(before);
            Design design = unitDesign(before);
            design.costs.link.latency = *rc::gen::inRange(0, 3000);
            for (StageCosts& stage : design.costs.stages)
                stage.forward = *rc::gen::inRange(0, 4000);
            const EditResult list = completeByList(design);
            RC_ASSERT(list.legal());
            const QString faults = faultsOf(before, list.schedule);
            if (!faults.isEmpty())
                RC_FAIL(std::string(family.name) + ": " + faults.toStdString());
            const Completion completion = completeSchedule(design);
            RC_ASSERT(!hasErrors(completion.diagnostics));
            const QString styled = faultsOf(before, completion.schedule);
            if (!styled.isEmpty())
                RC_FAIL(std::string(family.name) + " in style: " + styled.toStdString());
            design.schedule = completion.schedule;
            RC_ASSERT(predict(design).metrics.makespan >= 0);
        }));
    }
};

PIPEWRIGHT_TEST(CompletionTest, QCoreApplication)
#include "tst_completion.moc"
