// SPDX-License-Identifier: GPL-3.0-or-later
// The rows of the table of operations agree with each other, and with what a microbatch needs.
#include "core/schedule/operations.h"
#include "testmain.h"

#include "core/schedule/blockinputs.h"
#include "makers/schedules.h"

#include <QTest>

#include <algorithm>
#include <vector>

using namespace pipewright;
using namespace pipewright::test;

class OperationsTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void lettersNamesAndKeysAreOnesOwn()
    {
        for (const Op a : allOps) {
            QVERIFY(letter(a) >= 'A' && letter(a) <= 'Z' && !describe(a).empty() && !timeKey(a).empty());
            QVERIFY(parseBlock(std::string(1, letter(a)) + "1.2") == (Block{a, 1, 2, 0}));
            for (const Op b : allOps)
                QVERIFY(a == b || (letter(a) != letter(b) && describe(a) != describe(b) && timeKey(a) != timeKey(b)));
        }
        QVERIFY(letter(static_cast<Op>(opCount)) == '\0' && describe(static_cast<Op>(opCount)).empty());
    }

    void theHalvesOfABackwardMakeTogetherWhatAFullOneMakes()
    {
        for (const Op half : halvesOfBackward)
            QVERIFY(isHalfBackward(half) && isBackward(half) && !isFullBackward(half));
        QVERIFY(isFullBackward(Op::B) && !isHalfBackward(Op::B));
        int kept = 0, owed = 0, step = 0;
        for (const Op half : halvesOfBackward) {
            kept += activationsKept(half);
            owed += weightGradsOwed(half);
            step += stageStep(half);
            QCOMPARE(sentAs(half), half);
        }
        QCOMPARE(kept, activationsKept(Op::B));
        QCOMPARE(owed, weightGradsOwed(Op::B));
        QCOMPARE(step, stageStep(Op::B));
        QCOMPARE(sentAs(Op::B), halvesOfBackward.front());
        QVERIFY(waitsFor(halvesOfBackward.back()) == halvesOfBackward.front());
    }

    /// A microbatch makes one activation and one gradient of each kind, and leaves nothing behind.
    void thePassesOfAMicrobatchComeOutEven()
    {
        for (const BackwardStyle style : {BackwardStyle::Full, BackwardStyle::Split})
            for (const bool recomputes : {false, true}) {
                int forwards = 0, inputGrads = 0, weightGrads = 0, again = 0, kept = 0, owed = 0;
                for (const Op op : allOps)
                    if (isNeeded(op, style, recomputes)) {
                        QVERIFY(isPass(op));
                        forwards += makesActivation(op);
                        inputGrads += makesInputGrad(op);
                        weightGrads += makesWeightGrad(op);
                        again += isRecompute(op);
                        kept += activationsKept(op);
                        owed += weightGradsOwed(op);
                        if (const auto input = waitsFor(op))
                            QVERIFY(isNeeded(*input, style, recomputes) && passRank(*input) <= passRank(op));
                    }
                QVERIFY(forwards == 1 && inputGrads == 1 && weightGrads == 1 && again == int{recomputes});
                QVERIFY(kept == 0 && owed == 0);
            }
    }

    void whatAPassMakesAndReadsFitsTogether()
    {
        for (const Op op : allOps) {
            QVERIFY(isPass(op) || (!runsForward(op) && !isBackward(op) && !waitsFor(op)));
            QVERIFY(!(runsForward(op) && isBackward(op)) && !(makesActivation(op) && isRecompute(op)));
            QCOMPARE(isPass(op), runsForward(op) || isBackward(op));
            QCOMPARE(usesWeights(op), runsForward(op) || makesInputGrad(op));
            QVERIFY(passRank(op) >= 0 && passRank(op) < passRanks);
            QCOMPARE(bool(waitsFor(op)), isPass(op) && !makesActivation(op)); // only a forward begins a microbatch
            QVERIFY(!waitsFor(op) || *waitsFor(op) != op);
            if (isPass(op))
                QVERIFY(isNeeded(op, BackwardStyle::Full, true) || isNeeded(op, BackwardStyle::Split, true));
        }
    }

    void aPassWaitsForItsOwnStageItsNeighbourItsSequenceAndItsSkips()
    {
        Schedule s = schedule(4, {0, 1, 2}, {"", "", ""});
        s.sequencePieces = 2;
        const SkipConnection skips[] = {{0, 2, 8}};
        const auto inputsOf = [&](const std::string& of, std::vector<Op> placed) {
            std::vector<std::string> names;
            forEachInput(
                s, skips, parseBlock(of).value(),
                [&](Op op, int, int) { return std::find(placed.begin(), placed.end(), op) != placed.end(); },
                [&](Op op, int stage, int m) {
                    names.push_back(toString(Block{op, stage, m, 0}));
                });
            return names;
        };
        using Names = std::vector<std::string>;
        QVERIFY(inputsOf("F0.0", {}) == (Names{}));
        QVERIFY(inputsOf("F2.1", {}) == (Names{"F1.1", "F2.0", "F0.1"}));
        QVERIFY(inputsOf("R1.3", {Op::R}) == (Names{"F1.3"}));
        QVERIFY(inputsOf("B2.1", {Op::B}) == (Names{"F2.1"}));
        QVERIFY(inputsOf("B0.2", {Op::B, Op::R}) == (Names{"R0.2", "B1.2", "B0.3", "B2.2"}));
        QVERIFY(inputsOf("I1.0", {Op::I}) == (Names{"F1.0", "I2.0", "I1.1"}));
        QVERIFY(inputsOf("W1.0", {Op::I, Op::R}) == (Names{"I1.0"}));
        QVERIFY(inputsOf("U1.0", {Op::I}) == (Names{}));
    }
};

PIPEWRIGHT_TEST(OperationsTest, NoApplication)
#include "tst_operations.moc"
