// SPDX-License-Identifier: GPL-3.0-or-later
// Drops judged in large designs, where the answer comes later, against small ones, where it comes at once.
#include "core/schedule/edits.h"
#include "core/schedule/warmup.h"
#include "gui/timeline/dropplanner.h"
#include "makers/designs.h"
#include "testmain.h"

#include <QApplication>
#include <QSignalSpy>
#include <QTest>

#include <random>

using namespace pipewright;

namespace {

bool areEqual(const Document::Edit& a, const Document::Edit& b)
{
    return *a.design == *b.design && a.diagnostics == b.diagnostics && a.text == b.text;
}

struct Desk {
    explicit Desk(double largeFrom, Design design = test::familyDesign())
    {
        document.reset(std::move(design));
        planner.setLargeFrom(largeFrom);
        layout = TimelineLayout(document.prediction()->program, document.prediction()->timeline,
                                document.design().schedule.devices());
    }
    DropPlan at(const Block& block, int device, double time, const std::vector<Block>& moving = {}, double snapTime = 0)
    {
        return planner.plan(layout, block, moving, {device, time, snapTime, {}});
    }
    Document document;
    DropPlanner planner{document};
    TimelineLayout layout;
};

constexpr double never = 1e9;
using State = DropPlan::State;

} // namespace

class DropPlannerTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void aLargeDesignIsAnsweredAtOnceWithTheTimesOfTheExactAnswer_data()
    {
        QTest::addColumn<QString>("family");
        QTest::addColumn<int>("microbatches");
        QTest::newRow("one pipeline") << QStringLiteral("zb-h1") << 8;
        QTest::newRow("two replicas") << QStringLiteral("chimera") << 8;
        QTest::newRow("overlapped pairs") << QStringLiteral("dualpipe") << 20;
    }
    void aLargeDesignIsAnsweredAtOnceWithTheTimesOfTheExactAnswer()
    {
        QFETCH(QString, family);
        QFETCH(int, microbatches);
        const Design design = test::familyDesign(family.toLatin1().constData(), 4, microbatches);
        Desk large(0, design), small(never, design);
        std::mt19937 random(5);
        int legal = 0, illegal = 0;
        for (int round = 0; round < 150; ++round) {
            const int device = static_cast<int>(random() % 4);
            const std::vector<Block>& order = large.document.design().schedule.order[device];
            const Block block = order[random() % order.size()];
            const double time = static_cast<double>(random() % 300) * 1e6;
            const DropPlan quick = large.at(block, device, time), exact = small.at(block, device, time);
            QCOMPARE(quick.isLegal(), exact.isLegal());
            QVERIFY(quick.is<ReorderDevice>());
            QVERIFY(quick.request == exact.request);
            QCOMPARE(quick.title.isEmpty(), false);
            if (quick.state != State::Approximate) {
                illegal += !quick.isLegal();
                continue;
            }
            ++legal;
            QCOMPARE(exact.state, State::Exact);
            QCOMPARE(quick.prediction->metrics.makespan, exact.prediction->metrics.makespan);
            QCOMPARE(quick.prediction->metrics.rateMakespan, exact.prediction->metrics.rateMakespan);
            // The lanes show the same blocks at the same times.
            TimelineLayout shown = large.layout;
            QVERIFY(shown.retime(large.layout, *quick.prediction, quick.device,
                                 std::get<ReorderDevice>(*quick.request).positions));
            const TimelineLayout expected(exact.prediction->program, exact.prediction->timeline, 4);
            QCOMPARE(shown.makespan(), expected.makespan());
            for (std::size_t d = 0; d < 4; ++d) {
                QCOMPARE(shown.lanes()[d].blocks().size(), expected.lanes()[d].blocks().size());
                for (std::size_t i = 0; i < expected.lanes()[d].blocks().size(); ++i) {
                    const LaneBlock& a = shown.lanes()[d].blocks()[i];
                    const LaneBlock& b = expected.lanes()[d].blocks()[i];
                    QVERIFY(a.block == b.block && a.start == b.start && a.end == b.end);
                    QCOMPARE(shown.find(b.block)->index, i);
                }
                QCOMPARE(shown.lanes()[d].timePerOpUntil(1e8), expected.lanes()[d].timePerOpUntil(1e8));
            }
            QVERIFY(areEqual(large.planner.editOf(quick), exact.edit));
        }
        QVERIFY(legal > 10 && illegal > 10);
    }

    void whateverIsMarkedAsAllowedIsAllowed_data()
    {
        QTest::addColumn<QString>("family");
        QTest::addColumn<double>("largeFrom");
        for (const char* family : {"1f1b", "zb-h1", "interleaved-1f1b", "zb-v", "gpipe"})
            for (const double largeFrom : {0.0, never})
                QTest::addRow("%s %s", family, largeFrom == 0 ? "large" : "small")
                    << QString::fromLatin1(family) << largeFrom;
    }
    void whateverIsMarkedAsAllowedIsAllowed()
    {
        QFETCH(QString, family);
        QFETCH(double, largeFrom);
        Desk desk(largeFrom, test::familyDesign(family.toLatin1().constData(), 4, 4));
        const Design& design = desk.document.design();
        const auto step = static_cast<double>(desk.document.prediction()->metrics.makespan) / 60.0;
        int within = 0, beyond = 0;
        for (int device = 0; device < 4; ++device)
            for (const Block& block : design.schedule.order[device])
                for (int i = 0; i <= 60; ++i) {
                    const DropPlan plan = desk.at(block, device, i * step);
                    QVERIFY(plan.room);
                    const bool inside = static_cast<double>(plan.room->first) < i * step
                                        && i * step < static_cast<double>(plan.room->second);
                    QVERIFY2(!inside || plan.isLegal(),
                             qPrintable(blockText(block) + QStringLiteral(": ") + plan.title));
                    (inside ? within : beyond)++;
                }
        QVERIFY(within > 100 && beyond > 100);
    }

    void whatKeepsABlockFromGoingFurtherIsSaidHoweverFarTheCursorIs()
    {
        Desk desk(0, test::familyDesign("chimera", 4, 8));
        const Design& design = desk.document.design();
        for (int device = 0; device < 4; ++device)
            for (const Block& block : design.schedule.order[device]) {
                OrderPreview preview(design, *desk.document.prediction());
                const int position = placeOf(design.schedule, desk.layout, block).index;
                const int last = preview.legalRange(device, position).last;
                const std::size_t size = design.schedule.order[device].size();
                if (last + 1 == static_cast<int>(size))
                    continue;
                Diagnostics next;
                QVERIFY(!preview.evaluate(
                    device,
                    shiftedPositions(size, std::vector{static_cast<std::uint32_t>(position)}, last + 1 - position),
                    &next));
                const DropPlan plan = desk.at(block, device, 1e12);
                QVERIFY(plan.state == State::Refused && !plan.prediction);
                QCOMPARE(plan.title, explain(next));
                QVERIFY(plan.edit.diagnostics == next);
            }
    }

    void whatNoPreviewCanAnswerIsPending()
    {
        const Design design = test::familyDesign("seq1f1b", 4, 8);
        Desk large(0, design), small(never, design);
        std::vector<DropPlan> answers;
        connect(&large.planner, &DropPlanner::refined, this,
                [&answers](const DropPlan& plan) { answers.push_back(plan); });
        const Block block = design.schedule.order[3].back();
        const DropPlan plan = large.at(block, 3, 0), exact = small.at(block, 3, 0);
        QVERIFY(plan.state == State::Pending && plan.is<ReorderDevice>());
        QCOMPARE(exact.state, State::Refused);
        QTRY_COMPARE(answers.size(), std::size_t(1));
        QCOMPARE(answers[0].state, State::Refused);
        QCOMPARE(answers[0].title, exact.title);
        QVERIFY(hasErrors(large.planner.editOf(plan).diagnostics));
    }

    void aRestingMouseGetsTheExactPlanOfItsLastPlaceOnly()
    {
        Desk large(0);
        QVERIFY(large.document.design().schedule.order[1].size() > 12);
        std::vector<DropPlan> answers;
        connect(&large.planner, &DropPlanner::refined, this,
                [&answers](const DropPlan& plan) { answers.push_back(plan); });
        const Block w10{Op::W, 1, 0, 0};
        const LaneBlock here = *large.layout.blockOf(w10);
        DropPlan last;
        for (int place = 1; place < 5; ++place)
            if (const DropPlan plan = large.at(w10, 1, static_cast<double>(here.end) + place * 12e6);
                plan.state == State::Approximate)
                last = plan;
        QCOMPARE(last.state, State::Approximate);
        QTRY_COMPARE(answers.size(), std::size_t(1));
        QVERIFY(answers[0].isSamePlace(last) && answers[0].state == State::Exact);
        QCOMPARE(answers[0].prediction->metrics.makespan, last.prediction->metrics.makespan);
        QVERIFY(areEqual(answers[0].edit, large.planner.editOf(last)));
        // A question that is taken back is not answered.
        (void)large.at(w10, 1, static_cast<double>(here.end) + 13e6);
        large.planner.stop();
        QTest::qWait(200);
        QCOMPARE(answers.size(), std::size_t(1));
    }

    void aStageOnAnotherDeviceIsPendingAndThenAnswered()
    {
        Desk large(0);
        std::vector<DropPlan> answers;
        connect(&large.planner, &DropPlanner::refined, this,
                [&answers](const DropPlan& plan) { answers.push_back(plan); });
        const DropPlan plan = large.at({Op::F, 1, 0, 0}, 2, 1e7);
        QVERIFY(plan.state == State::Pending && plan.is<MoveStage>());
        QTRY_COMPARE(answers.size(), std::size_t(1));
        QVERIFY(answers[0].state == State::Exact && answers[0].prediction);
        QCOMPARE(answers[0].edit.design->schedule.deviceOfStage[1], 2);
        QVERIFY(areEqual(large.planner.editOf(plan), answers[0].edit)); // a drop before the answer does the same
    }

    void aRefusedPlanSaysWhichRemedyADropIsOffered()
    {
        Desk desk(never);
        const LaneBlock target = *desk.layout.blockOf({Op::F, 0, 6, 0});
        const DropPlan plan = desk.at({Op::W, 0, 0, 0}, 0, static_cast<double>(target.start) + 1);
        QCOMPARE(plan.state, State::Refused);
        QVERIFY2(plan.title.contains(QLatin1String("may not split")), qPrintable(plan.title));
        QCOMPARE(plan.detail, QStringLiteral("drop it here to be offered: Allow the first stage to split"));
        const DropPlan other = desk.at({Op::W, 1, 0, 0}, 1, 0); // before its I
        QCOMPARE(other.state, State::Refused);
        QVERIFY2(!other.detail.contains(QLatin1String("to be offered")), qPrintable(other.detail));
    }

    void theRoomOfABlockLiesBetweenWhatItNeedsAndWhatNeedsIt()
    {
        Desk desk(never);
        const Block i10{Op::I, 1, 0, 0};
        const DropPlan plan = desk.at(i10, 1, static_cast<double>(desk.layout.blockOf(i10)->start) + 1);
        QVERIFY(plan.room);
        QVERIFY(plan.room->first >= desk.layout.blockOf({Op::F, 1, 0, 0})->end);
        QVERIFY(plan.room->second <= desk.layout.blockOf({Op::W, 1, 0, 0})->start);
    }

    void severalBlocksMoveTogetherAndKeepTheirOrder()
    {
        QCOMPARE(shiftedPositions(6, std::vector<std::uint32_t>{1, 2}, 2),
                 (std::vector<std::uint32_t>{0, 3, 4, 1, 2, 5}));
        QCOMPARE(shiftedPositions(6, std::vector<std::uint32_t>{3, 4}, -2),
                 (std::vector<std::uint32_t>{0, 3, 4, 1, 2, 5}));
        QCOMPARE(shiftedPositions(6, std::vector<std::uint32_t>{1, 3}, 1),
                 (std::vector<std::uint32_t>{0, 2, 1, 4, 3, 5}));
        QCOMPARE(shiftedPositions(4, std::vector<std::uint32_t>{2, 3}, 5), (std::vector<std::uint32_t>{0, 1, 2, 3}));
        QCOMPARE(shiftedPositions(4, std::vector<std::uint32_t>{0}, 9), (std::vector<std::uint32_t>{1, 2, 3, 0}));
    }

    void aWarmUpChangesByShiftingTheForwardsBehindIt()
    {
        const Schedule schedule = test::familyDesign("1f1b", 4, 8).schedule;
        for (std::size_t device = 0; device < 4; ++device) {
            const std::vector<Block>& order = schedule.order[device];
            const int now = warmUp(order);
            QCOMPARE(now, 4 - static_cast<int>(device));
            for (int wanted = 0; wanted <= longestWarmUp(order); ++wanted) {
                std::vector<std::uint32_t> positions = withWarmUp(order, wanted);
                std::vector<Block> changed;
                for (const std::uint32_t position : positions)
                    changed.push_back(order[position]);
                QCOMPARE(warmUp(changed), wanted);
                std::sort(positions.begin(), positions.end());
                QCOMPARE(positions, presentPositions(order.size())); // every block once
            }
            QCOMPARE(withWarmUp(order, now), presentPositions(order.size()));
        }
        // The rhythm stays: one forward for each backward, one earlier.
        const std::vector<Block>& order = schedule.order[1];
        const std::vector<std::uint32_t> positions = withWarmUp(order, 4);
        for (std::size_t i = 4; i < 11; ++i)
            QCOMPARE(order[positions[i]].op, i % 2 == 0 ? Op::B : Op::F);
    }
};

PIPEWRIGHT_TEST(DropPlannerTest, QApplication)
#include "tst_dropplanner.moc"
