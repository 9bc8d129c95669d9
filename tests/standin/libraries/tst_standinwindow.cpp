// SPDX-License-Identifier: GPL-3.0-or-later
// The designer with a run of the program's real plugin on stand-in GPUs: CUPTI's records appear under the blocks that
// launched them, the inspector lists them by group, and they open as separate lanes. The model window measures such
// GPUs as the cluster of a design.
#include "core/files/designfile.h"
#include "gui/designer/mainwindowfixture.h"
#include "gui/designer/windowactions.h"
#include "gui/document/timelinelayout.h"
#include "gui/inspector/inspector.h"
#include "gui/inspector/kernellist.h"
#include "gui/model/modelwindow.h"
#include "gui/model/thismachine.h"
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
#include <QComboBox>
#include <QPushButton>
#include <QSignalSpy>
#include <QTabWidget>

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
        // A block's kernels are drawn below its measured time: a stand-in takes a thousand times as long as predicted.
        const Document::Overlay* overlay = fixture.document().overlay();
        QVERIFY(overlay);
        const Program& program = fixture.document().prediction()->program;
        TaskId task = 0;
        while (program.tasks[task].kind != TaskKind::Compute || program.tasks[task].op != block.op
               || program.tasks[task].stage != block.stage || program.tasks[task].microbatch() != block.microbatch)
            ++task;
        const Nanoseconds start = overlay->measured.start[task], end = overlay->measured.end[task];
        view.showRange(std::max<Nanoseconds>(0, start - (end - start) / 8), end + (end - start) / 8);
        int shown = 0; // kernels that share a pixel are drawn as a count
        const QRect rect = view.rectOfBlock(block);
        for (const auto& [where, text] : view.visibleKernels(lane)) {
            if (!text.contains(QLatin1String("of F1.0")))
                continue;
            QVERIFY(where.top() > rect.bottom());
            const bool several = text.contains(QLatin1String(" kernels of "));
            shown += several ? text.section(QLatin1Char(' '), 0, 0).toInt() : 1;
            QVERIFY2(several || !text.endsWith(QLatin1String("other")), qPrintable(text));
        }

        // The inspector lists every group of a forward block that ends in the loss, and the launch overhead.
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

    void theModelWindowMeasuresGpusAsTheDesignsCluster()
    {
        const StandInMachine here(2);
        QVERIFY(here.design("1f1b", 2));
        Document document;
        document.reset(readDesign(here.path("design.json").toStdString()));
        // Environment of the program that the window starts: the libraries' folder and the stand-in machine.
        qputenv("LD_LIBRARY_PATH", STANDIN_BUNDLE "/lib");
        qputenv("PIPEWRIGHT_STANDIN_GPUS", "2");
        qputenv("PIPEWRIGHT_STANDIN_WIRES", "nvlink");
        ModelWindow window(document);
        ThisMachine& machine = window.machine();
        machine.setProgram(STANDIN_BUNDLE "/bin/pipewright");
        window.tabs()->setCurrentIndex(ModelWindow::Devices);
        window.show();
        const int gpus = machine.choice()->findData("cuda");
        QTRY_VERIFY2_WITH_TIMEOUT(machine.choice()->model()->index(gpus, 0).flags() & Qt::ItemIsEnabled,
                                  qPrintable(machine.state()), 60'000);
        QCOMPARE(machine.choice()->itemData(gpus, Qt::ToolTipRole).toString(),
                 QString("2 × stand-in GPU, none of NVIDIA's"));
        machine.choice()->setCurrentIndex(gpus);
        const Cluster before = document.design().cluster;
        QSignalSpy measured(&machine, &ThisMachine::measured);
        machine.button()->click();
        QVERIFY2(measured.wait(240'000), qPrintable(machine.state()));
        QCOMPARE(machine.state(), QString("measured"));
        const Cluster& now = document.design().cluster;
        QCOMPARE(now.devices.size(), std::size_t{2});
        QVERIFY(now.devices[1].name.find("none of NVIDIA's") != std::string::npos);
        QCOMPARE(now.devices[1].memory, Bytes{8} << 30);
        QCOMPARE(now.gpus.size(), std::size_t{2}); // each on its own
        QVERIFY(now.gpus[0].gpu == 0 && now.gpus[1].gpu == 1);
        const auto own = now.linkOfPair.find({0, 1});
        const LinkSpec& link = own == now.linkOfPair.end() ? now.link : own->second;
        QCOMPARE(link.name, std::string("NVLink, measured"));
        QVERIFY(link.latency > 0 && link.bandwidth > 0);
        QVERIFY(document.prediction()); // made of what was measured
        document.undoStack()->undo();
        QVERIFY(document.design().cluster == before);
        for (const char* variable : {"LD_LIBRARY_PATH", "PIPEWRIGHT_STANDIN_GPUS", "PIPEWRIGHT_STANDIN_WIRES"})
            qunsetenv(variable);
    }
};

PIPEWRIGHT_TEST(TestStandInWindow, QApplication)
#include "tst_standinwindow.moc"
