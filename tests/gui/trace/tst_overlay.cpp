// SPDX-License-Identifier: GPL-3.0-or-later
// A recorded run laid over the design: the table of errors, causes, steps, notes and the report.
#include "core/design/redesign.h"
#include "core/families/family.h"
#include "gui/designer/footline.h"
#include "gui/designer/mainwindowfixture.h"
#include "gui/designer/overlays.h"
#include "gui/designer/windowactions.h"
#include "gui/dock/dock.h"
#include "gui/document/memberforecast.h"
#include "gui/document/timelinelayout.h"
#include "gui/inspector/blockexplanation.h"
#include "gui/inspector/inspector.h"
#include "gui/timeline/timelinetext.h"
#include "gui/timeline/timelineview.h"
#include "gui/trace/causetable.h"
#include "gui/trace/errortable.h"
#include "gui/trace/notelist.h"
#include "gui/trace/recordedruns.h"
#include "gui/trace/runerrors.h"
#include "gui/widgets/factlist.h"
#include "gui/widgets/theme.h"
#include "gui/widgets/words.h"
#include "makers/groups.h"
#include "testmain.h"
#include "traces/import/kineto.h"
#include "traces/import/traceimport.h"

#include <QAction>
#include <QApplication>
#include <QComboBox>
#include <QFile>
#include <QListWidget>
#include <QMessageBox>
#include <QMouseEvent>
#include <QTabWidget>
#include <QTreeWidget>
#include <QUndoStack>
#include <QWheelEvent>

#include <algorithm>

using namespace pipewright;
using Fixture = MainWindowFixture;

class TestOverlay : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void init() { Theme::dark().apply(*qApp); }

    void theErrorTableSelectsItsBlock()
    {
        Fixture fixture;
        QVERIFY(!fixture.window.runErrors().isVisible());
        const QString trace = recordRun(fixture.document(), fixture.folder.filePath(QStringLiteral("run.db")), 1.25);
        fixture.document().setOverlay(trace);
        fixture.window.answers().setCurrentIndex(1);
        QVERIFY(fixture.window.runErrors().isVisible());
        ErrorTable* table = fixture.window.runErrors().table();
        fixture.window.runErrors().tabs()->setCurrentWidget(table);
        QVERIFY(table->errors().rowCount() > 3);
        const auto expected = table->errors().blockAt(2);
        table->scrollTo(table->model()->index(2, 0));
        QTest::mouseClick(table->viewport(), Qt::LeftButton, Qt::NoModifier,
                          table->visualRect(table->model()->index(2, 0)).center());
        QVERIFY(fixture.document().selection() == expected);
        QVERIFY(fixture.window.inspector().facts().value(QStringLiteral("duration")).contains(QStringLiteral(" → ")));
        fixture.window.windowActions().clearOverlay->trigger();
        QVERIFY(!fixture.window.runErrors().isVisible());
        QCOMPARE(table->errors().rowCount(), 0);
    }

    void ofAGroupItsFullestMembersMemoryIsComparedWithTheRecorded()
    {
        Fixture fixture;
        Document& document = fixture.document();
        document.reset(test::groupDesign("1f1b", {{1e9, 5e8}, {2e9}}, 4));
        document.setOverlay(recordRun(document, fixture.folder.filePath(QStringLiteral("run.db")), 1.25));
        QTRY_VERIFY_WITH_TIMEOUT(!document.pendingMemory(), 60'000);
        const MemberForecast::Members* const members = fixture.window.timeline().memberForecast().members();
        QVERIFY(members != nullptr);
        Bytes fullest = 0;
        for (const MemberForecast::Member& member : members->ofDevice[0])
            fullest = std::max(fullest, member.peakBytes);
        // Otherwise nothing here would tell the members' peaks from the groups' estimate.
        QVERIFY(predict(document.design()).program.devices[0].peakBytes != fullest);
        for (const int step : {Document::medianStep, Document::typicalStep}) {
            document.setOverlay(document.overlayPath(), step);
            QCOMPARE(document.overlay()->comparison.devices[0].predictedPeak, fullest);
        }
        // The memory that was recorded is one MiB.
        const auto headers =
            laneHeaders(document.design(), document.prediction(), &document.overlay()->comparison, Side::Both);
        QCOMPARE(headers[0].memory,
                 QString::number(double(fullest) / (1 << 20), 'f', 3) + QStringLiteral(" → 1\u00a0MiB"));
    }

    void whileABlockIsDraggedTheLanesShowTheTimesThatItIsJudgedBy()
    {
        Fixture fixture;
        fixture.document().setOverlay(
            recordRun(fixture.document(), fixture.folder.filePath(QStringLiteral("run.db")), 1.25));
        TimelineView& view = fixture.window.timeline();
        const QPoint from = view.rectOfBlock({Op::F, 0, 2, 0}).center();
        const auto send = [&](QEvent::Type type, QPoint at, Qt::MouseButtons buttons) {
            QMouseEvent event(type, at, view.viewport()->mapToGlobal(at), Qt::LeftButton, buttons, Qt::AltModifier);
            QApplication::sendEvent(view.viewport(), &event);
        };
        const Block later{Op::W, 3, 0, 0};
        const QRect measured = view.rectOfBlock(later);
        send(QEvent::MouseButtonPress, from, Qt::LeftButton);
        QCOMPARE(view.rectOfBlock(later), measured);
        send(QEvent::MouseMove, QPoint(view.axis().right() - 30, from.y()), Qt::LeftButton); // nowhere F may stand
        QVERIFY(view.isPreviewing() && !view.preview());
        const double predicted =
            view.axis().xOf(static_cast<double>(fixture.document().layout()->blockOf(later)->start));
        QVERIFY(std::abs(view.rectOfBlock(later).left() - predicted) <= 1.5);
        QVERIFY(view.rectOfBlock(later).width() < measured.width());
        QTest::keyClick(&view, Qt::Key_Escape);
        QCOMPARE(view.rectOfBlock(later), measured);
    }

    void whatTheMeasuredCostsAreTakenOverIsSaid()
    {
        Fixture fixture;
        const QString path = fixture.folder.filePath(QStringLiteral("run.db"));
        recordSlowDevice(fixture.document(), path, 2, {1.0, 1.2, 1.2, 1.2, 1.2, 9.0});
        fixture.document().setOverlay(path);
        const QComboBox* steps = fixture.window.runErrors().stepPicker();
        QVERIFY(steps->itemText(steps->findData(5)).contains(QLatin1String("outlier")));
        QVERIFY(!steps->itemText(steps->findData(4)).contains(QLatin1String("outlier")));
        fixture.window.windowActions().calibrate->trigger();
        const QString hint = fixture.window.foot().hint();
        QVERIFY2(hint.contains(QLatin1String("Medians over 4 steps")), qPrintable(hint));
        QVERIFY(QString::fromStdString(fixture.document().design().costs.source).contains(QLatin1String("run.db")));
    }

    /// Measured in one run, seen in a second: what the machine itself did in between stands beside the error.
    void theFirstRunSaysHowMuchRunsDifferByThemselves()
    {
        MainWindowFixture fixture;
        RunErrors& errors = fixture.window.runErrors();
        const QString first = recordRun(fixture.document(), fixture.folder.filePath(QStringLiteral("first.db")), 1.0);
        const QString second =
            recordRun(fixture.document(), fixture.folder.filePath(QStringLiteral("second.db")), 1.25);
        fixture.document().setOverlay(first);
        const Nanoseconds before = fixture.document().overlay()->comparison.measuredMakespan;
        fixture.document().setOverlay(second);
        const Nanoseconds now = fixture.document().overlay()->comparison.measuredMakespan;
        QVERIFY(now > before);
        QVERIFY(errors.facts().value(QStringLiteral("from run to run")).isEmpty());
        QCOMPARE(errors.facts().value(QStringLiteral("durations, median")), signedPercent(0.25)); // of the predicted
        errors.setFirstRun(first);
        QCOMPARE(errors.facts().value(QStringLiteral("from run to run")),
                 signedPercent(double(now) / double(before) - 1));
        QCOMPARE(errors.facts().value(QStringLiteral("difference of first")), signedPercent(0));
        errors.setFirstRun(fixture.folder.filePath(QStringLiteral("gone.db")));
        QCOMPARE(errors.facts().value(QStringLiteral("from run to run")), QStringLiteral("not known"));
    }

    /// Another family takes what was recorded of this one, as one undo step.
    void costsOfARecordedRunAreTakenByAnotherSchedule()
    {
        MainWindowFixture fixture;
        const QString run = recordRun(fixture.document(), fixture.folder.filePath(QStringLiteral("run.db")), 2.0);
        const Design recorded = fixture.document().design();
        fixture.document().replaceDesign(withFamily(recorded, *findFamily("gpipe")), QStringLiteral("GPipe"));
        const Design before = fixture.document().design();
        fixture.window.overlays().takeCostsFrom(run);
        const Design& after = fixture.document().design();
        QCOMPARE(after.schedule, before.schedule);
        QVERIFY(after.costs.source.starts_with("measured"));
        for (std::size_t stage = 0; stage < after.costs.stages.size(); ++stage) {
            const Nanoseconds twice = 2 * recorded.costs.stages[stage].forward;
            QVERIFY(std::abs(after.costs.stages[stage].forward - twice) <= twice / 100);
        }
        fixture.document().undoStack()->undo();
        QCOMPARE(fixture.document().design(), before);
    }

    /// An imported trace does not hold the design that it recorded: it is the one that is open, or it is refused.
    void costsOfAnImportedTraceAreThoseOfTheOpenDesign()
    {
        MainWindowFixture fixture;
        const Design before = fixture.document().design();
        const Prediction prediction = *fixture.document().prediction();
        Timeline slower = prediction.timeline;
        for (std::size_t t = 0; t < slower.start.size(); ++t) {
            slower.start[t] *= 2;
            slower.end[t] *= 2;
        }
        std::vector<std::string> files;
        const int ranks = before.schedule.devices();
        for (int rank = 0; rank < ranks; ++rank) {
            const QString path = fixture.folder.filePath(QStringLiteral("rank%1.json").arg(rank));
            QFile file(path);
            QVERIFY(file.open(QIODevice::WriteOnly));
            file.write(QByteArray::fromStdString(
                test::kineto(prediction.program, slower, rank, ranks, 2, 4 * prediction.metrics.makespan, true)));
            files.push_back(path.toStdString());
        }
        const QString trace = fixture.folder.filePath(QStringLiteral("imported.db"));
        importTraces(files, trace.toStdString(), false);
        fixture.window.overlays().takeCostsFrom(trace);
        const Design after = fixture.document().design();
        QCOMPARE(after.costs.source, std::string("measured: imported.db"));
        QVERIFY(std::abs(after.costs.stages[0].forward - 2 * before.costs.stages[0].forward) < 2'000); // printed in us

        // Of another schedule its blocks tell that it is none of this one.
        fixture.document().replaceDesign(withFamily(before, *findFamily("gpipe")), QStringLiteral("GPipe"));
        const Design other = fixture.document().design();
        fixture.window.overlays().takeCostsFrom(trace);
        auto* box = fixture.window.findChild<QMessageBox*>();
        QVERIFY2(box && box->text().contains(QLatin1String("of another program")), box ? qPrintable(box->text()) : "");
        box->close();
        QCOMPARE(fixture.document().design(), other);
    }

    void aSlowRunIsExplainedStepByStepWithNotesAndAReport()
    {
        Fixture fixture;
        RunErrors& errors = fixture.window.runErrors();
        const QString path = fixture.folder.filePath(QStringLiteral("run.db"));
        recordSlowDevice(fixture.document(), path, 2, {1.0, 1.3, 1.5, 1.8});
        fixture.document().setOverlay(path);
        // The median of those after the first.
        QCOMPARE(fixture.document().overlay()->step, 2);
        QCOMPARE(errors.stepPicker()->currentIndex(), 0);
        QCOMPARE(errors.stepPicker()->count(), 2 + 4);
        const QString slow = QStringLiteral("slower blocks on ") + deviceLabel(fixture.document().design(), 2);
        QVERIFY2(errors.verdict().contains(slow), qPrintable(errors.verdict()));
        // One sign convention, in the sentence and in the facts: by how much of the prediction the run took more.
        const Comparison& compared = fixture.document().overlay()->comparison;
        const QString more = signedPercent(double(compared.measuredMakespan) / double(compared.predictedMakespan) - 1);
        QVERIFY(more.startsWith(QLatin1Char('+')));
        QVERIFY2(errors.verdict().startsWith(
                     QStringLiteral("Measured %1, %2 of predicted %3;")
                         .arg(durationText(compared.measuredMakespan), more, durationText(compared.predictedMakespan))),
                 qPrintable(errors.verdict()));
        QCOMPARE(errors.facts().value(QStringLiteral("difference")), more);
        QVERIFY2(errors.verdict().contains(QLatin1String("The slowest is ")), qPrintable(errors.verdict()));

        // The largest cause comes first, and choosing it chooses its blocks, all on that device.
        CauseTable* causes = errors.causes();
        QVERIFY(causes->topLevelItem(0)->text(0).startsWith(slow));
        fixture.window.dock().showPage(QStringLiteral("run"));
        // The focus alone chooses nothing: neither here nor in the table of blocks.
        QVERIFY(QTest::qWaitForWindowActive(&fixture.window));
        const std::optional<Block> before = fixture.document().selection();
        causes->setFocus(Qt::TabFocusReason);
        QVERIFY(causes->hasFocus());
        QVERIFY(fixture.document().selection() == before);
        errors.tabs()->setCurrentIndex(1);
        errors.table()->setFocus(Qt::TabFocusReason);
        QVERIFY(errors.table()->hasFocus());
        QVERIFY(fixture.document().selection() == before);
        QTest::keyClick(errors.table(), Qt::Key_Down);
        QVERIFY(fixture.document().selection() != before);
        errors.tabs()->setCurrentIndex(0);
        causes->setFocus(Qt::TabFocusReason);
        QTest::keyClick(causes, Qt::Key_Down);
        QCOMPARE(causes->currentItem(), causes->topLevelItem(0));
        const std::vector<Block> chosen = fixture.window.timeline().selectedBlocks();
        QVERIFY(chosen.size() > 4);
        for (const Block& block : chosen)
            QCOMPARE(fixture.document().design().schedule.deviceOf(block), 2);

        // Scrolling the panel past the picker chooses no other step.
        QComboBox* const picker = errors.stepPicker();
        QWheelEvent wheel(QPointF(5, 5), picker->mapToGlobal(QPointF(5, 5)), {}, {0, -120}, Qt::NoButton,
                          Qt::NoModifier, Qt::NoScrollPhase, false);
        picker->clearFocus();
        QApplication::sendEvent(picker, &wheel);
        QCOMPARE(picker->currentIndex(), 0);

        // Another step, another number; the last is the slowest.
        const Nanoseconds median = fixture.document().overlay()->comparison.measuredMakespan;
        errors.stepPicker()->setCurrentIndex(errors.stepPicker()->findData(3));
        Q_EMIT errors.stepPicker()->activated(errors.stepPicker()->currentIndex());
        QCOMPARE(fixture.document().overlay()->step, 3);
        QVERIFY(fixture.document().overlay()->comparison.measuredMakespan > median);
        Q_EMIT errors.stepPicker()->activated(errors.stepPicker()->findData(int(Document::typicalStep)));
        QCOMPARE(fixture.document().overlay()->comparison.measuredMakespan,
                 median); // the typical one is that in the middle
        QVERIFY(fixture.document().overlay()->spread
                != std::vector<Nanoseconds>(fixture.document().overlay()->spread.size(), 0));

        // Heat and stretched outlines change what is drawn, and nothing else.
        TimelineView& view = fixture.window.timeline();
        const QImage plain = view.viewport()->grab().toImage();
        for (const char* name : {"heat", "stretch"}) {
            view.action(QLatin1String(name))->trigger();
            QVERIFY2(view.viewport()->grab().toImage() != plain, name);
            view.action(QLatin1String(name))->trigger();
            QCOMPARE(view.viewport()->grab().toImage(), plain);
        }

        // A note about a range of one step is still there when the run is laid over again, and leads back to both.
        Q_EMIT errors.stepPicker()->activated(errors.stepPicker()->findData(3));
        view.setRange(std::pair(Nanoseconds{1000}, Nanoseconds{500'000}));
        errors.notes()->add(QStringLiteral("here <it> begins"));
        fixture.document().clearOverlay();
        view.setRange(std::nullopt);
        fixture.document().setOverlay(path);
        QCOMPARE(errors.notes()->notes().size(), 1u);
        errors.notes()->list()->setCurrentRow(0);
        QCOMPARE(fixture.document().overlay()->step, 3);
        QVERIFY(view.range() == std::pair(Nanoseconds{1000}, Nanoseconds{500'000}));

        const QString report = fixture.folder.filePath(QStringLiteral("report.html"));
        QVERIFY(fixture.window.overlays().reportTo(report));
        QFile file(report);
        QVERIFY(file.open(QIODevice::ReadOnly));
        const QByteArray html = file.readAll();
        for (const char* part :
             {"<svg", "here &lt;it&gt; begins", "slower blocks on GPU 2", "of the predicted", "step 3"})
            QVERIFY2(html.contains(part), part);
    }
};

PIPEWRIGHT_TEST(TestOverlay, QApplication)
#include "tst_overlay.moc"
