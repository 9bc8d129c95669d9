// SPDX-License-Identifier: GPL-3.0-or-later
// The designer over a run of the program's real plugin on stand-in GPUs: what CUPTI recorded lies under the blocks that
// launched it, the inspector lists it by group, and it opens as lanes of its own.
#include "core/files/designfile.h"
#include "gui/designer/mainwindowfixture.h"
#include "gui/designer/windowactions.h"
#include "gui/document/timelinelayout.h"
#include "gui/inspector/inspector.h"
#include "gui/inspector/kernellist.h"
#include "gui/timeline/lanestrip.h"
#include "gui/timeline/timelineview.h"
#include "gui/trace/activityview.h"
#include "gui/trace/runerrors.h"
#include "gui/trace/tracewindow.h"
#include "gui/widgets/factlist.h"
#include "standin/libraries/standinmachine.h"
#include "testmain.h"

#include <QAction>
#include <QApplication>
#include <QSignalSpy>

using namespace pipewright;
using namespace pipewright::test;

class TestStandInWindow : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void theDesignerShowsTheKernelsOfARun()
    {
        const StandInMachine machine(1);
        QVERIFY(machine.design("1f1b", 2));
        const StandInOutcome ran = machine.run(onGpus + "2 --no-gradient-check");
        QVERIFY2(ran.code == 0, qPrintable(ran.errors));

        MainWindowFixture fixture;
        fixture.document().reset(readDesign(machine.path("design.json").toStdString()));
        fixture.document().setOverlay(machine.path("trace.db"));
        TimelineView& view = fixture.window.timeline();
        const Block block{Op::F, 1, 0, 0};
        fixture.document().select(block);
        const int lane = view.chosenLane();
        QVERIFY(lane >= 0 && view.visibleKernels(lane).empty());
        view.findChild<QAction*>(QStringLiteral("laneKernels"))->trigger(); // the key K
        QVERIFY(view.lanes().showsKernels(lane));
        // Where the block was measured, its kernels lie below it: a stand-in takes a thousand times as long as
        // predicted.
        const Document::Overlay* overlay = fixture.document().overlay();
        QVERIFY(overlay);
        const Program& program = fixture.document().prediction()->program;
        TaskId task = 0;
        while (program.tasks[task].kind != TaskKind::Compute || program.tasks[task].op != block.op
               || program.tasks[task].stage != block.stage || program.tasks[task].microbatch != block.microbatch)
            ++task;
        const Nanoseconds start = overlay->measured.start[task], end = overlay->measured.end[task];
        view.showRange(std::max<Nanoseconds>(0, start - (end - start) / 8), end + (end - start) / 8);
        int shown = 0; // those that share a pixel are told as so many
        const QRect rect = view.rectOfBlock(block);
        for (const auto& [where, text] : view.visibleKernels(lane)) {
            if (!text.contains(QLatin1String("of F1.0")))
                continue;
            QVERIFY(where.top() > rect.bottom());
            const bool several = text.contains(QLatin1String(" kernels of "));
            shown += several ? text.section(QLatin1Char(' '), 0, 0).toInt() : 1;
            QVERIFY2(several || !text.endsWith(QLatin1String("other")), qPrintable(text));
        }

        // The inspector: every group of a forward block that ends in the loss, and what of it was launching.
        auto* list = fixture.window.findChild<KernelList*>();
        QVERIFY(list && !list->isHidden());
        QStringList groups;
        int kernels = 0;
        for (int i = 0; i < list->topLevelItemCount(); ++i) {
            groups << list->topLevelItem(i)->text(0);
            kernels += list->topLevelItem(i)->text(1).toInt();
        }
        groups.sort();
        QVERIFY2(groups.contains("attention") && groups.contains("norm") && groups.contains("product")
                     && groups.contains("loss") && !groups.contains("other"),
                 qPrintable(groups.join(", ")));
        QVERIFY(kernels > 20);
        QCOMPARE(shown, kernels);
        const FactList& facts = fixture.window.inspector().facts();
        QVERIFY(!facts.value(QStringLiteral("by its kernels, measured")).isEmpty());
        QVERIFY(!facts.value(QStringLiteral("launch-bound, measured")).isEmpty());
        QVERIFY(!fixture.window.runErrors().facts().value(QStringLiteral("recording took")).isEmpty());

        // As lanes: the streams of both slices, with names that tell what a kernel is.
        fixture.window.windowActions().traceLanes->trigger();
        auto* trace = fixture.window.findChild<TraceWindow*>();
        QVERIFY(trace);
        QSignalSpy opened(trace, &TraceWindow::opened);
        QVERIFY(opened.wait(60'000));
        QVERIFY(trace->view().trace());
        QCOMPARE(trace->view().trace()->deviceNames.size(), std::size_t{2});
        QVERIFY(trace->view().find(QStringLiteral("attention"), 1));
        QTRY_VERIFY_WITH_TIMEOUT(trace->isSummed(), 60'000);
        trace->close();
    }
};

PIPEWRIGHT_TEST(TestStandInWindow, QApplication)
#include "tst_standinwindow.moc"
