// SPDX-License-Identifier: GPL-3.0-or-later
// Ripple moves: a block takes the later blocks of its microbatch along, on every family.
#include "core/families/family.h"
#include "core/schedule/ripple.h"
#include "makers/schedules.h"
#include "testmain.h"

#include <QTest>
#include <rapidcheck.h>

#include <algorithm>

using namespace pipewright;
using namespace pipewright::test;

namespace {

QString laneOf(const Schedule& schedule, int device)
{
    QStringList words;
    for (const Block& block : schedule.order[device])
        words << QString::fromStdString(toString(block));
    return words.join(' ');
}

} // namespace

class RippleTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void aPassOfASplitBackwardTakesWhatDependsOnItAlong()
    {
        Schedule s = schedule(2, {0, 1}, {"F0.0 F0.1 I0.0 I0.1 W0.0 W0.1", "F1.0 F1.1 I1.0 I1.1 W1.0 W1.1"},
                              BackwardStyle::Split);
        s.firstStageMaySplit = true;
        const EditResult input = rippleBlock(s, block("I1.0"), 1);
        QVERIFY(input.legal());
        QCOMPARE(laneOf(input.schedule, 0), "F0.0 F0.1 I0.1 I0.0 W0.1 W0.0");
        QCOMPARE(laneOf(input.schedule, 1), "F1.0 F1.1 I1.1 I1.0 W1.1 W1.0");
        const EditResult weights = rippleBlock(s, block("W1.0"), 1); // nothing depends on it
        QVERIFY(weights.legal());
        QCOMPARE(laneOf(weights.schedule, 0), laneOf(s, 0));
        QCOMPARE(laneOf(weights.schedule, 1), "F1.0 F1.1 I1.0 I1.1 W1.1 W1.0");
    }

    void aForwardTakesTheForwardsAndBackwardsBehindItAlong()
    {
        const Schedule s = schedule(3, {0, 1}, {"F0.0 F0.1 F0.2 B0.0 B0.1 B0.2", "F1.0 F1.1 F1.2 B1.0 B1.1 B1.2"});
        const EditResult later = rippleBlock(s, block("F0.0"), 1);
        QVERIFY(later.legal());
        QCOMPARE(laneOf(later.schedule, 0), "F0.1 F0.0 F0.2 B0.1 B0.0 B0.2");
        QCOMPARE(laneOf(later.schedule, 1), "F1.1 F1.0 F1.2 B1.1 B1.0 B1.2");
        const EditResult back = rippleBlock(later.schedule, block("F0.0"), -1);
        QCOMPARE(laneOf(back.schedule, 0), laneOf(s, 0));
        QCOMPARE(laneOf(back.schedule, 1), laneOf(s, 1));
    }

    void theOthersGoAsFarAsTheyCanAndTheBlockTheWholeWay()
    {
        // B1.0 cannot go before F1.0, so the backwards of microbatch 0 stay where they are, and F0.2 still moves.
        const Schedule s = schedule(3, {0, 1}, {"F0.0 F0.1 F0.2 B0.0 B0.1 B0.2", "F1.0 F1.1 F1.2 B1.0 B1.1 B1.2"});
        const EditResult earlier = rippleBlock(s, block("F0.2"), -2);
        QVERIFY(earlier.legal());
        QCOMPARE(find(earlier.schedule, block("F0.2")).index, 0);
        const EditResult refused = rippleBlock(s, block("B1.0"), -3);
        QVERIFY(!refused.legal());
        QVERIFY(refused.schedule == s);
        QVERIFY(refused.diagnostics.front().what.find("F1.0") != std::string::npos);
        QVERIFY(!rippleBlock(s, block("B1.7"), 1).legal());
        QVERIFY(rippleBlock(s, block("F0.0"), 0).schedule == s);
    }

    void everyRippleMoveIsLegalOrRefusedAndKeepsAllBlocks()
    {
        QVERIFY(rc::check("ripple", [] {
            const auto all = families();
            const Family& family = all[*rc::gen::inRange(0, static_cast<int>(all.size()))];
            const Schedule s =
                makeSchedule(family.name, possibleParameters(family, *rc::gen::inRange(2, 5), *rc::gen::inRange(2, 8)));
            const auto device = static_cast<std::size_t>(*rc::gen::inRange(0, s.devices()));
            const Block block =
                s.order[device]
                       [static_cast<std::size_t>(*rc::gen::inRange(0, static_cast<int>(s.order[device].size())))];
            const int places = *rc::gen::inRange(-4, 5);
            const EditResult result = rippleBlock(s, block, places);
            if (!result.legal()) {
                RC_ASSERT(result.schedule == s);
                return;
            }
            RC_ASSERT(!hasErrors(validate(result.schedule)));
            for (std::size_t d = 0; d < s.order.size(); ++d) {
                RC_ASSERT(std::is_permutation(s.order[d].begin(), s.order[d].end(), result.schedule.order[d].begin(),
                                              result.schedule.order[d].end()));
                // Blocks of other microbatches keep their order.
                std::vector<Block> before = s.order[d], after = result.schedule.order[d];
                for (auto* lane : {&before, &after})
                    std::erase_if(*lane, [&](const Block& b) { return b.microbatch == block.microbatch; });
                RC_ASSERT(before == after);
            }
        }));
    }
};

PIPEWRIGHT_TEST(RippleTest, QCoreApplication)
#include "tst_ripple.moc"
