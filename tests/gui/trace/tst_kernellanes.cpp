// SPDX-License-Identifier: GPL-3.0-or-later
// The kernels of an overlaid run: under their blocks, in the inspector, and as lanes in a window of their own. The
// records are made up in CUPTI's shape.
#include "gui/designer/mainwindowfixture.h"
#include "gui/designer/windowactions.h"
#include "gui/document/timelinelayout.h"
#include "gui/inspector/inspector.h"
#include "gui/inspector/kernellist.h"
#include "gui/timeline/lanestrip.h"
#include "gui/timeline/timelineview.h"
#include "gui/trace/activityview.h"
#include "gui/trace/devicetimelist.h"
#include "gui/trace/runerrors.h"
#include "gui/trace/tracewindow.h"
#include "gui/widgets/factlist.h"
#include "gui/widgets/theme.h"
#include "gui/widgets/words.h"
#include "testmain.h"
#include "traces/store/gpurecording.h"

#include <QAction>
#include <QApplication>
#include <QComboBox>
#include <QSignalSpy>

using namespace pipewright;

namespace {

struct KernelLanesFixture : MainWindowFixture {
    explicit KernelLanesFixture(const test::GpuShape& shape = {})
    {
        path = folder.filePath(QStringLiteral("gpu.db"));
        const Prediction& prediction = *document().prediction();
        test::writeGpuRecording(path.toStdString(), document().design(), prediction.program, prediction.timeline, 3,
                                shape);
        document().setOverlay(path);
    }
    void press(const char* action) { window.timeline().findChild<QAction*>(QLatin1String(action))->trigger(); }
    QString path;
};

const Block someBlock{Op::F, 1, 0, 0};

TaskId taskOfBlock(const Program& program, const Block& block)
{
    for (TaskId id = 0; id < program.tasks.size(); ++id)
        if (const Task& t = program.tasks[id]; t.kind == TaskKind::Compute && t.op == block.op && t.stage == block.stage
                                               && t.microbatch() == block.microbatch && t.replica == block.replica)
            return id;
    return none;
}

} // namespace

class TestKernelLanes : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void init() { Theme::dark().apply(*qApp); }

    void aBlockUnfoldsIntoItsKernelsBelowIt()
    {
        KernelLanesFixture fixture;
        TimelineView& view = fixture.window.timeline();
        fixture.document().select(someBlock);
        const int lane = view.chosenLane();
        QCOMPARE(lane, 1);
        QVERIFY(view.visibleKernels(lane).empty());
        fixture.press("laneKernels");
        QVERIFY(view.lanes().showsKernels(lane));
        QVERIFY(!view.visibleKernels(lane).empty());
        QVERIFY(view.visibleKernels(0).empty()); // of this lane only
        // Close enough, every kernel stands alone, inside its block and below it, and says what it is.
        const LaneBlock* block = fixture.document().layout()->blockOf(someBlock);
        view.showRange(block->start, block->end);
        const QRect rect = view.rectOfBlock(someBlock);
        int alone = 0, named = 0;
        for (const auto& [where, text] : view.visibleKernels(lane)) {
            if (where.right() < rect.left() || where.left() > rect.right())
                continue;
            ++alone;
            QVERIFY(where.left() >= rect.left() - 1 && where.right() <= rect.right() + 1);
            QVERIFY(where.top() > rect.bottom());
            named += text.contains(QLatin1String("attentionForward")) && text.contains(QLatin1String("attention"))
                     && text.contains(QLatin1String("F1.0"));
        }
        QCOMPARE(alone, 4);
        QCOMPARE(named, 1);
        fixture.press("laneKernels");
        QVERIFY(view.visibleKernels(lane).empty());
    }

    void farAwayKernelsShareTheirPixels()
    {
        KernelLanesFixture fixture({.each = 2, .gap = 1});
        TimelineView& view = fixture.window.timeline();
        fixture.press("allKernels");
        view.showAll();
        int several = 0;
        for (int lane = 0; lane < view.laneCount(); ++lane) {
            const auto kernels = view.visibleKernels(lane);
            QVERIFY(kernels.size() <= static_cast<std::size_t>(view.axis().width));
            for (const auto& [where, text] : kernels)
                several += text.contains(QLatin1String(" kernels of "));
        }
        QVERIFY(several > 0);
    }

    void theDockListsTheKernelsByGroup()
    {
        KernelLanesFixture probe;
        const TaskId late = taskOfBlock(probe.document().prediction()->program, someBlock);
        KernelLanesFixture fixture({.late = late});
        auto* list = fixture.window.findChild<KernelList*>();
        fixture.document().select(std::nullopt);
        QVERIFY(list && list->isHidden());
        fixture.document().select(someBlock);
        QVERIFY(!list->isHidden());
        QCOMPARE(list->topLevelItemCount(), 4);
        QStringList groups;
        for (int i = 0; i < list->topLevelItemCount(); ++i) {
            groups << list->topLevelItem(i)->text(0);
            QCOMPARE(list->topLevelItem(i)->text(1), QStringLiteral("1"));
            QCOMPARE(list->topLevelItem(i)->childCount(), 1);
        }
        groups.sort();
        QCOMPARE(groups, QStringList({"attention", "elementwise", "norm", "product"}));
        const FactList& facts = fixture.window.inspector().facts();
        QVERIFY(facts.value(QStringLiteral("by its kernels, measured")).contains(QLatin1String("14.0")));
        QVERIFY(facts.value(QStringLiteral("launch-bound, measured")).startsWith(QLatin1String("1.5")));
        fixture.document().select(Block{Op::F, 1, 1, 0});
        QVERIFY(facts.value(QStringLiteral("launch-bound, measured")).startsWith(QLatin1String("0")));
        QCOMPARE(fixture.window.runErrors().facts().value(QStringLiteral("recording took")), durationText(5'000));
        fixture.window.windowActions().clearOverlay->trigger();
        QVERIFY(list->isHidden());
    }

    void theTypicalStepHasNoKernels()
    {
        KernelLanesFixture fixture;
        fixture.press("allKernels");
        QVERIFY(!fixture.window.timeline().visibleKernels(0).empty());
        fixture.document().setOverlay(fixture.path, Document::typicalStep);
        QVERIFY(fixture.window.timeline().visibleKernels(0).empty());
    }

    void aRunOpensAsLanesBesideTheDesign()
    {
        KernelLanesFixture fixture;
        QVERIFY(!TraceWindow::opens(fixture.path)); // opening the file shows its design
        QAction* action = fixture.window.windowActions().traceLanes;
        QVERIFY(action->isEnabled());
        action->trigger();
        auto* trace = fixture.window.findChild<TraceWindow*>();
        QVERIFY(trace);
        QSignalSpy opened(trace, &TraceWindow::opened);
        QVERIFY(opened.wait(20'000));
        QVERIFY(trace->view().trace());
        const StoredActivities& stored = *trace->view().trace();
        QCOMPARE(stored.deviceNames.size(), std::size_t(fixture.document().design().schedule.devices()));
        QCOMPARE(trace->stepPicker()->count(), 4); // the whole trace, and three steps
        QVERIFY(trace->view().find(QStringLiteral("attentionForward"), 1));
        QTRY_VERIFY(trace->isSummed());
        QTRY_VERIFY(!trace->verdict().isEmpty());
        trace->close();
        fixture.window.windowActions().clearOverlay->trigger();
        QVERIFY(!action->isEnabled());
    }
};

PIPEWRIGHT_TEST(TestKernelLanes, QApplication)
#include "tst_kernellanes.moc"
