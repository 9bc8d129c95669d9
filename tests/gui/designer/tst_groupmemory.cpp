// SPDX-License-Identifier: GPL-3.0-or-later
// The memory of groups before any run: everywhere that of each group's fullest member, as a run allocates it, also
// after an edit and while a block is dragged; and what is said instead while it is not known.
#include "core/design/redesign.h"
#include "core/predict/peakchange.h"
#include "core/schedule/edits.h"
#include "executor/run/grouprun.h"
#include "gui/designer/editdifferences.h"
#include "gui/designer/familylist.h"
#include "gui/designer/footline.h"
#include "gui/designer/mainwindowfixture.h"
#include "gui/document/namededits.h"
#include "gui/document/timelinelayout.h"
#include "gui/memory/memorypanel.h"
#include "gui/timeline/timelinetext.h"
#include "gui/timeline/timelineview.h"
#include "gui/widgets/factlist.h"
#include "gui/widgets/theme.h"
#include "gui/widgets/words.h"
#include "makers/groups.h"
#include "testmain.h"

#include <QApplication>
#include <QMouseEvent>
#include <QSignalSpy>
#include <QUndoStack>

#include <algorithm>

using namespace pipewright;

namespace {

Design twoGroups(const char* family = "1f1b", int microbatches = 4)
{
    return test::groupDesign(family, {{1e9, 5e8}, {2e9, 1e9}}, microbatches);
}

/// What a run of it allocates on each group's fullest member.
std::vector<Bytes> allocatedBy(const Design& design)
{
    const GroupRun run(design, true);
    std::vector<Bytes> peaks;
    for (const Program::Device& device : run.members.program.devices)
        peaks.push_back(device.peakBytes);
    return run.shownOf(peaks);
}

Nanoseconds makespanOf(const Design& design)
{
    return predictMembers(GroupRun(design, true).members).metrics.makespan;
}

std::vector<Bytes> peaksOf(const Prediction& prediction)
{
    std::vector<Bytes> peaks;
    for (const DeviceMetrics& device : prediction.metrics.devices)
        peaks.push_back(device.peakBytes);
    return peaks;
}

/// A window with a design whose members' memory has arrived. However busy the machine, a drag waits for its prediction.
struct GroupFixture : MainWindowFixture {
    explicit GroupFixture(Design design = twoGroups())
    {
        document().memberPredictor()->setQuick(60'000);
        document().reset(std::move(design));
        arrived = QTest::qWaitFor([this] { return !document().pendingMemory(); }, 60'000);
    }
    QString peak() { return window.verdicts().value(VerdictStrip::Peak); }
    QString lastPeak() ///< of the first device that the last edit changes
    {
        for (int d = 0; d < document().design().schedule.devices(); ++d)
            if (const QString shown =
                    window.differences().value(deviceLabel(document().design(), d), EditDifferences::Peak);
                !shown.isEmpty())
                return shown;
        return {};
    }
    void send(QEvent::Type type, QPoint at, Qt::MouseButtons buttons)
    {
        QWidget* const view = window.timeline().viewport();
        QMouseEvent event(type, at, view->mapToGlobal(at), type == QEvent::MouseMove ? Qt::NoButton : Qt::LeftButton,
                          buttons, Qt::AltModifier);
        QApplication::sendEvent(view, &event);
    }
    /// Holds a block over the place of another one.
    void drag(const Block& block, const Block& to)
    {
        send(QEvent::MouseButtonPress, window.timeline().rectOfBlock(block).center(), Qt::LeftButton);
        const QRect place = window.timeline().rectOfBlock(to);
        send(QEvent::MouseMove, {place.right() - 2, place.center().y()}, Qt::LeftButton);
    }
    bool arrived = false;
};

} // namespace

class TestGroupMemory : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void init() { Theme::dark().apply(*qApp); }

    void everythingShowsTheFullestMemberBeforeAnyRun()
    {
        GroupFixture fixture;
        QVERIFY(fixture.arrived);
        Document& document = fixture.document();
        const std::vector<Bytes> due = allocatedBy(document.design());
        // Otherwise nothing here would tell the members' memory from the groups' own.
        QVERIFY(due != peaksOf(predict(document.design())));
        QVERIFY(document.prediction()->memoryOfMembers);
        QCOMPARE(peaksOf(*document.prediction()), due);
        const Bytes most = *std::max_element(due.begin(), due.end());
        QVERIFY2(fixture.peak().startsWith(sizeText(most)), qPrintable(fixture.peak()));
        QCOMPARE(fixture.window.foot().value(QStringLiteral("members")), durationText(makespanOf(document.design())));
        const auto headers = laneHeaders(document.design(), document.prediction());
        for (std::size_t d = 0; d < due.size(); ++d) {
            QVERIFY2(headers[d].memory.contains(sizeText(due[d])), qPrintable(headers[d].memory));
            const auto& curve = document.prediction()->timeline.memory[d];
            QCOMPARE(std::max_element(curve.begin(), curve.end(),
                                      [](const MemorySample& a, const MemorySample& b) { return a.bytes < b.bytes; })
                         ->bytes,
                     due[d]);
        }
        const MemoryPanel& panel = fixture.window.memory();
        const QString said = panel.valueAt(panel.plotOf(panel.device()).center());
        QVERIFY2(said.contains(QLatin1String("predicted")), qPrintable(said));
    }

    void anEditIsPredictedWithItAtOnce()
    {
        GroupFixture fixture;
        Document& document = fixture.document();
        QSignalSpy later(&document, &Document::memoryChanged);
        QVERIFY(!hasErrors(document.apply(blockMove(document.design(), {Op::F, 0, 2, 0},
                                                    find(document.design().schedule, {Op::F, 0, 2, 0}).index - 1))));
        QVERIFY(!document.pendingMemory());
        QCOMPARE(later.count(), 0);
        QCOMPARE(peaksOf(*document.prediction()), allocatedBy(document.design()));
        // Another number of stages on each device: the stages are planned anew, and arrive.
        document.reset(twoGroups("interleaved-1f1b"));
        QTRY_VERIFY_WITH_TIMEOUT(!document.pendingMemory(), 60'000);
        QCOMPARE(peaksOf(*document.prediction()), allocatedBy(document.design()));
    }

    void aDragIsJudgedByIt()
    {
        GroupFixture fixture;
        Document& document = fixture.document();
        const std::vector<Bytes> before = peaksOf(*document.prediction());
        fixture.drag({Op::F, 0, 2, 0}, {Op::F, 0, 1, 0});
        const Prediction* preview = fixture.window.timeline().preview();
        QVERIFY(preview && preview->memoryOfMembers);
        const std::vector<Bytes> expected = peaksOf(*preview);
        QCOMPARE(expected, allocatedBy(fixture.window.timeline().previewDesign()));
        for (std::size_t d = 0; d < before.size(); ++d) {
            const QString shown =
                fixture.window.differences().value(deviceLabel(document.design(), int(d)), EditDifferences::Peak);
            const QString peaks[] = {sizeText(before[d]), sizeText(expected[d])};
            if (!shown.isEmpty()) // its idle time or its peak changes
                QCOMPARE(shown, peaks[0] == peaks[1] ? peaks[1] : pairText(peaks[0], peaks[1]));
            else
                QCOMPARE(before[d], expected[d]);
        }
        const auto old = static_cast<double>(makespanOf(document.design())),
                   now = static_cast<double>(makespanOf(fixture.window.timeline().previewDesign()));
        QVERIFY(now != old); // the block is moved out of its order
        QCOMPARE(fixture.window.foot().change(QStringLiteral("members")), signedPercent((now - old) / old));
        fixture.send(QEvent::MouseButtonRelease, {}, Qt::NoButton);
        QTest::keyClick(&fixture.window.timeline(), Qt::Key_Escape);
    }

    void whatIsTooSlowForADragIsSaidToFollowTheDrop()
    {
        GroupFixture fixture;
        Document& document = fixture.document();
        document.memberPredictor()->setQuick(-1);
        fixture.drag({Op::F, 0, 2, 0}, {Op::F, 0, 1, 0});
        const Prediction* preview = fixture.window.timeline().preview();
        QVERIFY(preview);
        QVERIFY(!preview->memoryOfMembers);
        QCOMPARE(fixture.peak(), QStringLiteral("after the drop"));
        QCOMPARE(fixture.lastPeak(), QStringLiteral("after the drop"));
        QTest::keyClick(&fixture.window.timeline(), Qt::Key_Escape);
        QVERIFY(!document.pendingMemory());
        QVERIFY(fixture.peak() != QStringLiteral("after the drop"));
    }

    /// A large design's drag is worked out on another thread when the hand rests.
    void whereTheHandRestsTheMembersArePredicted()
    {
        GroupFixture fixture;
        fixture.window.timeline().setLargeFrom(0);
        fixture.drag({Op::F, 0, 2, 0}, {Op::F, 0, 1, 0});
        QTRY_VERIFY_WITH_TIMEOUT(
            fixture.window.timeline().preview() && fixture.window.timeline().preview()->memoryOfMembers, 30'000);
        QCOMPARE(peaksOf(*fixture.window.timeline().preview()), allocatedBy(fixture.window.timeline().previewDesign()));
        QTest::keyClick(&fixture.window.timeline(), Qt::Key_Escape);
    }

    void whatTakesLongerThanAnEditFollowsIt()
    {
        GroupFixture fixture;
        Document& document = fixture.document();
        document.memberPredictor()->setQuick(-1);
        QSignalSpy later(&document, &Document::memoryChanged);
        QVERIFY(!hasErrors(document.apply(blockMove(document.design(), {Op::F, 0, 2, 0},
                                                    find(document.design().schedule, {Op::F, 0, 2, 0}).index - 1))));
        QVERIFY(document.pendingMemory());
        QCOMPARE(fixture.peak(), QStringLiteral("…"));
        QCOMPARE(laneHeaders(document.design(), document.prediction())[0].memory, QStringLiteral("…"));
        QVERIFY(document.prediction()->timeline.memory.empty());
        QCOMPARE(fixture.lastPeak(), QStringLiteral("…"));
        MemoryPanel& panel = fixture.window.memory();
        QVERIFY(panel.valueAt(panel.plotOf(panel.device()).center()).isEmpty());
        QTRY_COMPARE_WITH_TIMEOUT(later.count(), 1, 60'000);
        QVERIFY(!document.pendingMemory());
        QCOMPARE(peaksOf(*document.prediction()), allocatedBy(document.design()));
        QVERIFY(fixture.peak() != QStringLiteral("…"));
        QVERIFY(fixture.lastPeak() != QStringLiteral("…"));
        // It is as it was before the edit again.
        document.undoStack()->undo();
        QTRY_VERIFY_WITH_TIMEOUT(!document.pendingMemory(), 60'000);
        QCOMPARE(peaksOf(*document.prediction()), allocatedBy(document.design()));
    }

    void whileBlocksHaveNoPlaceThereIsNoneToSay()
    {
        GroupFixture fixture;
        QVERIFY(!hasErrors(fixture.document().apply(UnplaceBlocks{{{Op::B, 0, 3, 0}}})));
        QVERIFY(fixture.document().pendingMemory());
        QCOMPARE(fixture.peak(), QStringLiteral("–"));
        fixture.document().undoStack()->undo();
        QTRY_VERIFY_WITH_TIMEOUT(!fixture.document().pendingMemory(), 60'000);
    }

    /// A family's estimate is what switching to it gives.
    void familiesAreComparedByTheirMembers()
    {
        GroupFixture fixture;
        Document& document = fixture.document();
        const auto gpipe = static_cast<std::size_t>(findFamily("gpipe") - families().data());
        const FamilyEstimate estimate =
            FamilyEstimates::estimate(document.design(), gpipe, *document.memberPredictor()->another());
        const std::vector<Bytes> due = allocatedBy(withFamily(document.design(), families()[gpipe]));
        QCOMPARE(estimate.peakBytes, std::optional(*std::max_element(due.begin(), due.end())));
    }
};

PIPEWRIGHT_TEST(TestGroupMemory, QApplication)
#include "tst_groupmemory.moc"
