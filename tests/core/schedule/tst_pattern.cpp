// SPDX-License-Identifier: GPL-3.0-or-later
// The order of some blocks of a device, given to other devices.
#include "core/families/family.h"
#include "core/schedule/pattern.h"
#include "makers/schedules.h"
#include "testmain.h"

#include <QTest>

using namespace pipewright;
using namespace pipewright::test;

namespace {

Schedule onTwo(const char* first, const char* second)
{
    return schedule(3, {0, 1}, {first, second});
}

std::string textOf(const std::vector<Block>& order)
{
    std::string text;
    for (const Block& each : order)
        text += (text.empty() ? "" : " ") + toString(each);
    return text;
}

Pattern allOf(const Schedule& schedule, int device, std::uint32_t first, std::uint32_t count)
{
    std::vector<std::uint32_t> positions;
    for (std::uint32_t i = 0; i < count; ++i)
        positions.push_back(first + i);
    return patternOf(schedule, device, positions);
}

} // namespace

class PatternTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void aWarmUpIsPastedOnTheOtherDevicesOwnStage()
    {
        const Schedule s = onTwo("F0.0 F0.1 F0.2 B0.0 B0.1 B0.2", "F1.0 B1.0 F1.1 B1.1 F1.2 B1.2");
        const int target[] = {1};
        const EditResult pasted = pastePattern(s, allOf(s, 0, 0, 3), target);
        QVERIFY(pasted.legal());
        QCOMPARE(textOf(pasted.schedule.order[1]), std::string("F1.0 F1.1 F1.2 B1.0 B1.1 B1.2"));
        QVERIFY(pasted.schedule.order[0] == s.order[0]);
        QCOMPARE(pasted.schedule.family, std::string("custom"));
    }

    void theFirstBlockKeepsItsPlaceAmongTheOthers()
    {
        // Where it was copied, one other block stands between the two.
        const Schedule s = onTwo("F0.0 F0.1 B0.0 F0.2 B0.1 B0.2", "F1.0 B1.0 F1.1 F1.2 B1.1 B1.2");
        const std::uint32_t copied[] = {2, 4}; // B0 and B1 of GPU 0, F2 between
        const Pattern pattern = patternOf(s, 0, copied);
        QCOMPARE(pattern.blocks[1].between, 1);
        const PatternOnDevice there = patternOn(s, pattern, 1);
        QVERIFY(there.missing.empty());
        const int target[] = {1};
        const EditResult pasted = pastePattern(s, pattern, target);
        QVERIFY(pasted.legal());
        QCOMPARE(textOf(pasted.schedule.order[1]), std::string("F1.0 B1.0 F1.1 B1.1 F1.2 B1.2"));
    }

    void ofAWholeDeviceTheWholeOrderIsTaken()
    {
        const Schedule s = makeSchedule("1f1b", sized(4, 8));
        const int targets[] = {1, 2, 3};
        const EditResult pasted = pastePattern(s, allOf(s, 0, 0, 16), targets);
        QVERIFY(pasted.legal());
        for (int device = 1; device < 4; ++device)
            for (std::size_t i = 0; i < 16; ++i) {
                const Block &first = s.order[0][i], &there = pasted.schedule.order[device][i];
                QVERIFY(there.op == first.op && there.microbatch == first.microbatch && there.stage == device);
            }
    }

    void eachOfTwoStagesOfADeviceIsPastedOnItsCounterpart()
    {
        const Schedule s = makeSchedule("zb-v", sized(4, 8)); // device d holds stages d and 7 - d
        const auto size = static_cast<std::uint32_t>(s.order[3].size());
        const PatternOnDevice there = patternOn(s, allOf(s, 3, 0, size), 2);
        QVERIFY(there.missing.empty());
        for (std::uint32_t i = 0; i < size; ++i) {
            const Block &from = s.order[3][i], &to = s.order[2][there.positions[i]];
            QCOMPARE(to.stage, from.stage == 3 ? 2 : 5);
            QVERIFY(to.op == from.op && to.microbatch == from.microbatch);
        }
    }

    void copiesOfThePipelineCountTheirOwnMicrobatches()
    {
        Schedule s = schedule(4, {0}, {"F0.0 F0.1 B0.0 B0.1", "F0.2/1 B0.2/1 F0.3/1 B0.3/1"});
        s.replicaPlacements = {{1}};
        const int target[] = {1};
        const EditResult pasted = pastePattern(s, allOf(s, 0, 0, 4), target);
        QVERIFY2(pasted.legal(), toString(pasted.diagnostics).c_str());
        QCOMPARE(textOf(pasted.schedule.order[1]), std::string("F0.2/1 F0.3/1 B0.2/1 B0.3/1"));
    }

    void whatADeviceDoesNotHaveIsNamedAndLeftOut()
    {
        const Schedule s = onTwo("F0.0 F0.1 F0.2 I0.0 W0.0 B0.1 B0.2", "F1.0 B1.0 F1.1 B1.1 F1.2 B1.2");
        const PatternOnDevice there = patternOn(s, allOf(s, 0, 0, 6), 1);
        QCOMPARE(there.missing.size(), std::size_t(2));
        QVERIFY(there.missing[0].op == Op::I && there.missing[1].op == Op::W);
        const int target[] = {1};
        const EditResult pasted = pastePattern(s, allOf(s, 0, 0, 6), target);
        QVERIFY(pasted.legal());
        QCOMPARE(textOf(pasted.schedule.order[1]), std::string("F1.0 F1.1 F1.2 B1.1 B1.0 B1.2"));
        const EditResult none = pastePattern(s, allOf(s, 0, 3, 2), target); // I and W alone
        QVERIFY(!none.legal());
        QVERIFY(toString(none.diagnostics.front()).find("none of the 2 copied blocks") != std::string::npos);
    }

    void anOrderThatWouldWaitForItselfIsRefusedByNameAndChangesNothing()
    {
        // GPU 1 does F1.1 before B1.0, so GPU 0 must not wait for B0.0 before F0.1.
        const Schedule s = onTwo("F0.0 F0.1 B0.0 B0.1 F0.2 B0.2", "F1.0 F1.1 B1.0 B1.1 F1.2 B1.2");
        const Schedule alternating = onTwo("F0.0 B0.0 F0.1 B0.1 F0.2 B0.2", "F1.0 B1.0 F1.1 B1.1 F1.2 B1.2");
        const Pattern pattern = allOf(alternating, 1, 0, 6);
        const int first[] = {0}, both[] = {0, 1}, unknown[] = {2};
        const EditResult alone = pastePattern(s, pattern, first);
        QVERIFY(!alone.legal());
        QVERIFY(alone.schedule == s);
        QVERIFY(toString(alone.diagnostics).find("F0.1") != std::string::npos);
        // Together they can.
        const EditResult together = pastePattern(s, pattern, both);
        QVERIFY(together.legal());
        QVERIFY(together.schedule.order == alternating.order);
        QVERIFY(!pastePattern(s, pattern, unknown).legal());
    }

    void pastingWhatIsThereAlreadyChangesNothing()
    {
        const Schedule s = makeSchedule("gpipe", sized(4, 4));
        const int targets[] = {0, 1, 2, 3};
        const EditResult pasted = pastePattern(s, allOf(s, 0, 0, 8), targets);
        QVERIFY(pasted.legal());
        QVERIFY(pasted.schedule == s);
    }
};

PIPEWRIGHT_TEST(PatternTest, QCoreApplication)

#include "tst_pattern.moc"
