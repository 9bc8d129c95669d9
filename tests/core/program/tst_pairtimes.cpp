// SPDX-License-Identifier: GPL-3.0-or-later
// Overlapped pairs with parts, from the design file to the timeline: everyone asks the same function, and what does not
// fit is refused.
#include "core/design/redesign.h"
#include "core/files/designfile.h"
#include "core/files/locateddesign.h"
#include "core/predict/orderpreview.h"
#include "core/predict/predict.h"
#include "core/predict/spread.h"
#include "core/program/compile.h"
#include "core/program/pairtimes.h"
#include "core/schedule/edits.h"
#include "makers/pairdesigns.h"
#include "testmain.h"

#include <QTest>

using namespace pipewright;
using namespace pipewright::test;

namespace {

Nanoseconds lengthIn(const Prediction& prediction, const Program::Overlap& pair)
{
    return prediction.timeline.end[pair.first] - prediction.timeline.start[pair.first];
}

} // namespace

class PairTimesTest : public QObject {
    Q_OBJECT
private slots:
    void aPairTakesWhatTheShortestOrderOfItsPartsTakes()
    {
        const Design design = partedDesign();
        const Prediction prediction = predict(design);
        QVERIFY(!prediction.program.overlaps.empty());
        PairTimes times(design.costs);
        for (const Program::Overlap& pair : prediction.program.overlaps) {
            const Block first = prediction.program.tasks[pair.first].block(),
                        second = prediction.program.tasks[pair.second].block();
            const ShortestParts found =
                shortestOrder(design.costs.parts(first.op, first.stage), design.costs.parts(second.op, second.stage));
            QVERIFY(found.proven);
            QCOMPARE(lengthIn(prediction, pair), found.length);
            QCOMPARE(prediction.timeline.end[pair.second], prediction.timeline.end[pair.first]);
            QCOMPARE(times.length(first, second), found.length);
            QVERIFY(found.length
                    < design.costs.duration(first.op, first.stage) + design.costs.duration(second.op, second.stage));
        }
        QVERIFY(QString::fromStdString(pairLengthsText(design.schedule, design.costs))
                    .contains("computed from their parts in the shortest order"));
    }

    void aBlockAloneTakesTheSumOfItsParts()
    {
        Design design = partedDesign();
        const Nanoseconds with = predict(withSchedule(design, familySchedule("1f1b", 4, 8))).metrics.makespan;
        for (StageCosts& stage : design.costs.stages)
            stage.parts = {};
        QCOMPARE(predict(withSchedule(design, familySchedule("1f1b", 4, 8))).metrics.makespan, with);
    }

    void pairsOfWhichNeitherHasPartsAreAssumedAndSayIt()
    {
        Design design = partedDesign();
        design.costs.overlapFactor = 0.75;
        for (StageCosts& stage : design.costs.stages)
            stage.parts = {};
        const Prediction prediction = predict(design);
        const Program::Overlap pair = prediction.program.overlaps.front();
        const Task &one = prediction.program.tasks[pair.first], &other = prediction.program.tasks[pair.second];
        QCOMPARE(lengthIn(prediction, pair),
                 (design.costs.duration(one.op, one.stage) + design.costs.duration(other.op, other.stage)) * 3 / 4);
        QVERIFY(QString::fromStdString(pairLengthsText(design.schedule, design.costs))
                    .contains("assumed: 0.75 times the sum"));
    }

    void aStatedOrderCountsAndIsKeptInTheFile()
    {
        Design design = partedDesign();
        const Overlap pair = design.schedule.overlaps.front();
        const PartSequence after{false, false, false, false, true, true, true, true, true};
        statePartOrder(design.schedule, pair, after);
        const Prediction prediction = predict(design);
        PairTimes times(design.costs);
        const Nanoseconds stated = times.length(pair.first, pair.second, &after);
        QVERIFY(stated > times.length(pair.first, pair.second));
        const auto found =
            std::find_if(prediction.program.overlaps.begin(), prediction.program.overlaps.end(),
                         [&](const auto& p) { return prediction.program.tasks[p.first].block() == pair.first; });
        QCOMPARE(lengthIn(prediction, *found), stated);

        const Design again = locatedDesignFromJson(designToJson(design), "again.json").design;
        QVERIFY(again == design);
        QVERIFY(
            QString::fromStdString(pairLengthsText(again.schedule, again.costs)).contains("that the design states"));

        statePartOrder(design.schedule, pair, {});
        QVERIFY(design.schedule.partOrders.empty());
    }

    void anOrderGoesWithItsPair()
    {
        Design design = partedDesign();
        const Overlap pair = design.schedule.overlaps.front();
        statePartOrder(design.schedule, pair, {true, true, true, true, true, false, false, false, false});
        std::erase(design.schedule.overlaps, pair);
        QVERIFY_THROWS_EXCEPTION(Error, (void)predict(design));
        dropBrokenOverlaps(design.schedule);
        QVERIFY(design.schedule.partOrders.empty());
        QVERIFY(predict(design).metrics.makespan > 0);
    }

    void whatDoesNotFitIsRefused()
    {
        const auto refused = [](const Design& design, const char* where) {
            for (const Diagnostic& d : checkParts(design.schedule, design.costs))
                if (QString::fromStdString(d.where).contains(where) && !d.hint.empty())
                    return true;
            return false;
        };
        Design design = partedDesign();
        QVERIFY(checkParts(design.schedule, design.costs).empty());
        design.costs.stages[1].forward += 1;
        QVERIFY(refused(design, "stage 1, parts of forward"));
        QVERIFY_THROWS_EXCEPTION(Error, (void)predict(design));

        design = partedDesign();
        design.costs.stages[0].parts[indexOf(Op::U)] = forwardParts(0);
        QVERIFY(refused(design, "stage 0, parts of update"));

        design = partedDesign();
        statePartOrder(design.schedule, design.schedule.overlaps.front(), {true, false});
        QVERIFY(refused(design, "schedule.part_orders"));
    }

    void aFileNeedsNoTimeBesideItsPartsAndOnlyTheirSum()
    {
        const std::string json = designToJson(partedDesign());
        QVERIFY(json.find("\"forward\": \"") == std::string::npos);
        std::string wrong = json;
        const std::string key = "\"parts\":";
        wrong.insert(wrong.find(key), "\"forward\": \"1ms\", ");
        QVERIFY_THROWS_EXCEPTION(Error, (void)locatedDesignFromJson(wrong, "wrong.json"));
    }

    void scaledMicrobatchesScaleTheirParts()
    {
        Design design = partedDesign();
        for (int m = 0; m < design.schedule.microbatches; ++m)
            design.costs.microbatches.push_back({1.0 + 0.25 * (m % 3), 1.0});
        const Prediction prediction = predict(design);
        for (const Program::Overlap& pair : prediction.program.overlaps) {
            std::array<std::vector<BlockPart>, 2> parts;
            for (const auto& [task, list] : {std::pair{pair.first, &parts[0]}, std::pair{pair.second, &parts[1]}}) {
                const Block block = prediction.program.tasks[task].block();
                *list = design.costs.stages[block.stage].partsOrWhole(block.op);
                for (BlockPart& part : *list) // a unit is a whole number of microseconds: no rounding
                    part.time = part.time * (4 + block.microbatch % 3) / 4;
            }
            QCOMPARE(lengthIn(prediction, pair), shortestOrder(parts[0], parts[1]).length);
        }
    }

    void noiseLengthensAPairInItsOrder()
    {
        const Design design = partedDesign();
        const Program program = compile(design.schedule, design.costs, design.dataflow);
        const StepSpread none = spreadOfStep(program, design.costs, {.block = 0, .samples = 3});
        QCOMPARE(none.median, predict(design).metrics.makespan);
        const StepSpread noisy = spreadOfStep(program, design.costs, {.block = 0.1, .samples = 50});
        QVERIFY(noisy.p95 > none.median);
    }

    void theSteadyStateOfManyMicrobatchesIsThatOfTheWhole()
    {
        const Design design = partedDesign("dualpipe-v", 2, 9000);
        const auto steady = predictSteady(design);
        QVERIFY(steady.has_value());
        QCOMPARE(steady->metrics.makespan, predict(design).metrics.makespan);
    }

    void anotherCutKeepsTheStreamsWork()
    {
        const Design design = partedDesign("dualpipe-v", 2, 8);
        const Design other = withSchedule(design, familySchedule("dualpipe-v", 4, 8));
        QVERIFY(other.costs.hasParts());
        QVERIFY(checkParts(other.schedule, other.costs).empty());
        const auto communication = [](const Costs& costs) {
            Nanoseconds sum = 0;
            for (const StageCosts& stage : costs.stages)
                for (const BlockPart& part : stage.parts[indexOf(Op::F)])
                    sum += part.stream == PartStream::Communication ? part.time : 0;
            return static_cast<double>(sum);
        };
        QVERIFY(predict(other).metrics.makespan > 0);
        QVERIFY(communication(other.costs) > 0);
    }
};

PIPEWRIGHT_TEST(PairTimesTest, NoApplication)
#include "tst_pairtimes.moc"
