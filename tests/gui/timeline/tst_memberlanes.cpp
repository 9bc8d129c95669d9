// SPDX-License-Identifier: GPL-3.0-or-later
// Lanes of groups unfolded into their members: by key, by mouse and from the menu; what stands there is the prediction
// of the members, made again after an edit.
#include "core/design/stageplans.h"
#include "core/program/compile.h"
#include "gui/document/memberforecast.h"
#include "gui/timeline/lanestrip.h"
#include "gui/timeline/timelinestage.h"
#include "makers/groups.h"
#include "testmain.h"

#include <QSignalSpy>

using namespace pipewright;
using namespace pipewright::testing;

namespace {

/// A group of two, and a single device.
Design oneGroup()
{
    return withStrategy(test::groupDesign("1f1b", {{1e9, 5e8}, {2e9}}, 4), sharding::Strategy::Megatron);
}

bool arrived(Stage& stage)
{
    QSignalSpy changed(stage.view.get(), &TimelineView::membersChanged);
    while (!stage.view->memberForecast().members() || stage.view->memberForecast().isWorking())
        if (!changed.wait(30'000))
            return false;
    return true;
}

} // namespace

class MemberLanesTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void theForecastIsThePredictionOfTheMembers()
    {
        const Design design =
            withStrategy(test::groupDesign("zb-h1", {{1e9, 5e8}, {1e9, 1e9, 4e8}}, 6), sharding::Strategy::Even);
        const Prediction prediction =
            predictMembers(memberProgram(compile(design.schedule, design.costs, design.dataflow), groupStages(design),
                                         design.costs, design.schedule.transferOrder));
        const MemberForecast::Members members = MemberForecast::of(design, MemberPredictor().members(design));
        QCOMPARE(members.makespan, prediction.metrics.makespan);
        QCOMPARE(members.ofDevice.size(), std::size_t{2});
        QCOMPARE(members.first, (std::vector<int>{0, 2}));
        std::size_t number = 0;
        for (const std::vector<MemberForecast::Member>& group : members.ofDevice)
            for (const MemberForecast::Member& member : group) {
                QCOMPARE(member.peakBytes, prediction.metrics.devices[number++].peakBytes);
                QVERIFY(member.busy > 0 && member.exchanging > 0);
                Nanoseconds before = 0;
                for (const MemberForecast::Part& part : member.parts) {
                    QVERIFY(part.start >= before && part.end >= part.start && part.waited >= 0);
                    QVERIFY(part.index < part.count);
                    before = part.end;
                }
            }
        // With equal shares the faster wait for the slowest.
        for (const std::vector<MemberForecast::Member>& group : members.ofDevice)
            QVERIFY(std::any_of(group.begin(), group.end(), [](const auto& member) { return member.waiting > 0; }));
    }

    void aLaneUnfoldsByKeyByMouseAndFromItsMenu()
    {
        Stage stage(oneGroup());
        TimelineView& view = *stage.view;
        const int height = view.rectOfLane(0).height();
        QVERIFY(view.visibleMemberParts(0).empty());
        stage.click(QPoint(40, view.rectOfLane(0).center().y())); // its label
        QTest::keyClick(&view, Qt::Key_J);
        QCOMPARE(view.lanes().members(0), 2);
        QVERIFY(arrived(stage));
        const auto parts = view.visibleMemberParts(0);
        QVERIFY(!parts.empty());
        const auto said = [&](const char* words) {
            return std::any_of(parts.begin(), parts.end(),
                               [&](const auto& part) { return part.second.contains(QLatin1String(words)); });
        };
        view.showRange(0, view.total() / 8);
        QVERIFY2(view.textOfMember(0, 1).startsWith(QStringLiteral("Member 1 (member): ")),
                 qPrintable(view.textOfMember(0, 1)));
        QVERIFY(view.textOfMember(0, 1).contains(QStringLiteral("of stage 0")));
        QVERIFY(said("predicted"));
        QTest::keyClick(&view, Qt::Key_J);
        QCOMPARE(view.lanes().members(0), 0);

        // The mark in the label, and a device that is no group.
        const QRect lane = view.rectOfLane(0);
        stage.click(QPoint(TimelineView::plotLeft() - 10, lane.top() + 10));
        QCOMPARE(view.lanes().members(0), 2);
        QSignalSpy refused(&view, &TimelineView::editRefused);
        stage.click(QPoint(40, view.rectOfLane(1).center().y()));
        QTest::keyClick(&view, Qt::Key_J);
        QCOMPARE(view.lanes().members(1), 0);
        QVERIFY(refused.count() == 1 && refused.front().front().toString().contains("is a single device"));
        view.action(QStringLiteral("allMembers"))->trigger();
        QCOMPARE(view.lanes().members(0), 0);
        view.action(QStringLiteral("allMembers"))->trigger();
        QCOMPARE(view.lanes().members(0), 2);
        QVERIFY(view.rectOfLane(0).height() > 2 * LaneStrip::memberLane);
        QVERIFY(height > 0);
    }

    void anEditOfSharesIsPredictedAnew()
    {
        Stage stage(oneGroup());
        TimelineView& view = *stage.view;
        view.action(QStringLiteral("allMembers"))->trigger();
        QVERIFY(arrived(stage));
        const QString before = view.textOfMember(0, 1);
        sharding::StatedPlan plan = stage.document.design().plans[0];
        plan.ratios = {0.25, 0.75};
        QVERIFY(!hasErrors(stage.document.apply(SetStagePlan{0, plan})));
        QVERIFY(arrived(stage));
        const QString after = view.textOfMember(0, 1);
        QVERIFY2(after != before && after.contains(QStringLiteral("75.0")), qPrintable(after));
        stage.document.undoStack()->undo();
        QVERIFY(arrived(stage));
        QCOMPARE(view.textOfMember(0, 1), before);
    }

    void aCollectiveIsDraggedPastWhatItsGroupSends()
    {
        Stage stage(
            withStrategy(test::groupDesign("gpipe", {{1e9, 5e8}, {1e9, 1e9}}, 4), sharding::Strategy::DataParallel));
        TimelineView& view = *stage.view;
        QSignalSpy refused(&view, &TimelineView::editRefused);
        const auto stated = [&]() -> const std::vector<TransferPrecedence>& {
            return stage.document.design().schedule.transferOrder;
        };
        view.action(QStringLiteral("allMembers"))->trigger();
        QVERIFY(arrived(stage));
        const Transfer gradient = *parseTransfer("B1.3 to 0");
        const auto find = [&](bool collective) { // the last one of B1.3 on the first member, or the first part
            const auto& parts = view.memberForecast().members()->ofDevice[1][0].parts;
            const auto isIt = [&](const auto& part) {
                return part.block == gradient.producer && part.collective == collective;
            };
            return collective ? *std::find_if(parts.rbegin(), parts.rend(), isIt)
                              : *std::find_if(parts.begin(), parts.end(), isIt);
        };
        const auto sent = [&] {
            for (const auto& send : view.memberForecast().members()->sends[1])
                if (send.transfer == gradient)
                    return send.start;
            return Nanoseconds{-1};
        };
        const MemberForecast::Part last = find(true);
        const Nanoseconds before = sent();
        QVERIFY(before >= last.end);
        const Nanoseconds span = before - last.start;
        Nanoseconds promised = -1; // by the preview, before the drop
        const auto drag = [&](const MemberForecast::Part& part, bool later, int pixels = 0) {
            const Nanoseconds end = part.end + 3 * span, start = std::min(part.start, sent()); // of what is passed
            view.showRange(start - (end - start) / 20, end);
            const QString name = part.collective ? QStringLiteral("(B1.3 collective %1, of").arg(part.index)
                                                 : QStringLiteral("Part %1 of").arg(part.index + 1);
            for (const auto& [rect, text] : view.visibleMemberParts(1)) {
                if (!text.contains(name) || !(part.collective || text.contains(QLatin1String("of B1.3 on"))))
                    continue;
                const QPoint from = rect.center().toPoint();
                const int edge = later ? view.viewport()->width() - 5 : TimelineView::plotLeft() + 5;
                const QPoint to(pixels != 0 ? from.x() + (later ? pixels : -pixels) : edge, from.y());
                stage.press(from);
                stage.move((from + to) / 2);
                stage.move(to);
                promised = view.preview() ? view.preview()->membersMakespan : -1;
                stage.release(to);
                return true;
            }
            return false;
        };
        QVERIFY(drag(last, true));
        QTRY_COMPARE(stated(), (std::vector<TransferPrecedence>{{gradient, {gradient.producer, 0, last.index}}}));
        QVERIFY(arrived(stage));
        QVERIFY(sent() < before);
        QCOMPARE(promised, view.memberForecast().members()->makespan);
        // Back again, and undone.
        QVERIFY(drag(find(true), false));
        QTRY_VERIFY(stated().empty());
        stage.document.undoStack()->undo();
        QCOMPARE(stated().size(), std::size_t{1});
        stage.document.undoStack()->undo();
        QVERIFY(stated().empty());
        QVERIFY(arrived(stage));
        QCOMPARE(refused.count(), 0);
        // What stays says why.
        QVERIFY(drag(find(false), true));
        QCOMPARE(refused.count(), 1);
        QVERIFY(refused.takeFirst().front().toString().contains(QStringLiteral("moves with its block")));
        QCOMPARE(promised, Nanoseconds{-1});
        QVERIFY(drag(find(true), false, 30));
        QTRY_COMPARE(refused.count(), 1);
        QVERIFY(refused.front().front().toString().contains(QStringLiteral("sends nothing in between")));
        QVERIFY(stated().empty());
        // By key.
        refused.clear();
        view.selectTransfer(1, gradient);
        view.action(QStringLiteral("transferBeforeCollective"))->trigger();
        QTRY_COMPARE(stated().size(), std::size_t{1});
        QCOMPARE(stated().front().first, gradient);
        QCOMPARE(refused.count(), 0);
    }

    void whatGroupsDoNotRunIsSaidInPlaceOfMembers()
    {
        Design design = oneGroup();
        design.costs.hostGaps.resize(2);
        design.costs.hostGaps[0].before.fill(1000);
        Stage stage(design);
        stage.view->action(QStringLiteral("allMembers"))->trigger();
        QVERIFY(!stage.view->memberForecast().members());
        QVERIFY2(stage.view->memberForecast().why().contains(QStringLiteral("host gaps")),
                 qPrintable(stage.view->memberForecast().why()));
    }
};

PIPEWRIGHT_TEST(MemberLanesTest, QApplication)
#include "tst_memberlanes.moc"
