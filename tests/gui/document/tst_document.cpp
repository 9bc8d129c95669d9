// SPDX-License-Identifier: GPL-3.0-or-later
// The Document: edits as values with exact undo, files, selection, and a trace laid over the prediction.
#include "core/schedule/edits.h"
#include "gui/document/document.h"
#include "gui/document/namededits.h"
#include "makers/designs.h"
#include "testmain.h"
#include "traces/store/tracewriter.h"

#include <QApplication>
#include <QFile>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>
#include <QWidget>

#include <random>

using namespace pipewright;

namespace {

const Block w10{Op::W, 1, 0, 0}, i10{Op::I, 1, 0, 0};

// A recording of `steps` steps in which every task takes `stretch` times as long as predicted, and the
// first step twice that.
void record(const QString& path, const Document& document, int steps, double stretch)
{
    const Prediction& prediction = *document.prediction();
    TraceHeader header;
    header.backend = "host";
    header.maths = "timed";
    TraceWriter writer(path.toStdString(), document.design(), prediction.program, header);
    Nanoseconds clock = 1'000;
    for (int step = 0; step < steps; ++step) {
        const double factor = step == 0 ? 2 * stretch : stretch;
        std::vector<TaskRecord> records;
        Nanoseconds last = 0;
        for (TaskId task = 0; task < prediction.program.tasks.size(); ++task) {
            const auto at = [&](Nanoseconds time) {
                return clock + static_cast<Nanoseconds>(static_cast<double>(time) * factor);
            };
            const Task& what = prediction.program.tasks[task];
            const int device = what.recordedOn();
            records.push_back(
                {task, step, device, at(prediction.timeline.start[task]), at(prediction.timeline.end[task])});
            last = std::max(last, records.back().end);
        }
        writer.append(records);
        writer.append(StepRecord{step, clock, last, 0});
        clock = last + 500;
    }
    std::vector<Bytes> peaks;
    for (const DeviceMetrics& device : prediction.metrics.devices)
        peaks.push_back(device.peakBytes);
    writer.finish(peaks, 0, "{}");
}

} // namespace

class DocumentTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void everyAcceptedEditIsOneStepThatUndoRestoresExactly()
    {
        Document document;
        document.reset(test::familyDesign());
        std::mt19937 random(11);
        std::vector<Design> states{document.design()};
        for (int i = 0; i < 300; ++i) {
            const Schedule& schedule = document.design().schedule;
            const auto device = static_cast<std::size_t>(random() % static_cast<unsigned>(schedule.devices()));
            const std::vector<Block>& order = schedule.order[device];
            const std::vector<Block> tray = unplacedBlocks(schedule);
            const Design before = document.design();
            const int count = document.undoStack()->count();
            Diagnostics diagnostics;
            const unsigned kind = random() % 6;
            if (kind == 0 && !tray.empty())
                diagnostics = document.apply(PlaceBlock{tray[random() % tray.size()], static_cast<int>(random() % 30)});
            else if (kind == 1 && !order.empty())
                diagnostics = document.apply(UnplaceBlocks{{order[random() % order.size()]}});
            else if (kind == 2)
                diagnostics = document.apply(MoveStage{static_cast<int>(random() % 4), static_cast<int>(random() % 4)});
            else if (!order.empty())
                diagnostics = document.apply(blockMove(document.design(), order[random() % order.size()],
                                                       static_cast<int>(random() % (order.size() + 1))));
            if (document.design() == before) {
                QCOMPARE(document.undoStack()->count(), count);
            } else {
                QVERIFY(!hasErrors(diagnostics));
                QCOMPARE(document.undoStack()->index(), static_cast<int>(states.size()));
                states.push_back(document.design());
            }
            QVERIFY(document.prediction() != nullptr);
        }
        QVERIFY(states.size() > 30);
        for (std::size_t i = states.size() - 1; i > 0; --i) {
            QVERIFY(document.design() == states[i]);
            document.undoStack()->undo();
        }
        QVERIFY(document.design() == states[0]);
        while (document.undoStack()->canRedo())
            document.undoStack()->redo();
        QVERIFY(document.design() == states.back());
    }

    void aRefusedEditSaysWhyAndChangesNothing()
    {
        Document document;
        document.reset(test::familyDesign());
        const Design before = document.design();
        QSignalSpy changes(&document, &Document::designChanged);
        const Diagnostics diagnostics = document.apply(blockMove(document.design(), w10, 0));
        QVERIFY(hasErrors(diagnostics));
        QVERIFY(!diagnostics.front().what.empty());
        QVERIFY(document.design() == before);
        QCOMPARE(changes.count(), 0);
        QCOMPARE(document.undoStack()->count(), 0);
    }

    void movingABlockToWhereItStandsIsNoEdit()
    {
        Document document;
        document.reset(test::familyDesign());
        const Position position = find(document.design().schedule, w10);
        QVERIFY(document.apply(blockMove(document.design(), w10, position.index)).empty());
        QVERIFY(document.apply(blockMove(document.design(), w10, position.index + 1)).empty());
        QCOMPARE(document.undoStack()->count(), 0);
    }

    void anEditThatIsOnlyTriedLeavesTheDocumentAlone()
    {
        Document document;
        document.reset(test::familyDesign());
        const Design before = document.design();
        const Document::Edit edit =
            document.tryEdit(blockMove(document.design(), w10, find(before.schedule, w10).index + 3));
        QVERIFY(!hasErrors(edit.diagnostics));
        QVERIFY(!(*edit.design == before));
        QVERIFY(document.design() == before);
        QVERIFY(document.commit(edit).empty());
        QVERIFY(document.design() == *edit.design);
    }

    void predictionAndDiagnosticsAreUpToDateWhenTheChangeIsAnnounced()
    {
        Document document;
        document.reset(test::familyDesign());
        Nanoseconds seen = 0;
        connect(&document, &Document::designChanged, &document,
                [&] { seen = document.prediction() ? document.prediction()->metrics.makespan : -1; });
        Design slower = document.design();
        for (StageCosts& stage : slower.costs.stages)
            stage.forward *= 2;
        const Nanoseconds expected = predict(slower).metrics.makespan;
        document.replaceDesign(slower, QStringLiteral("Slower forward"));
        QCOMPARE(seen, expected);
        QCOMPARE(document.undoStack()->undoText(), QStringLiteral("Slower forward"));
        QVERIFY(document.diagnostics().empty());
        QVERIFY(document.evaluationMilliseconds() > 0);
    }

    void anEditOfALargeDesignArrivesWhenItsNumbersDo()
    {
        Document document;
        document.reset(test::familyDesign());
        document.setLargeFrom(1);
        const Design before = document.design();
        const Nanoseconds makespan = document.prediction()->metrics.makespan;
        QSignalSpy changed(&document, &Document::designChanged), working(&document, &Document::workingChanged);
        const Document::Edit edit =
            document.tryEdit(blockMove(document.design(), w10, 0 + find(before.schedule, w10).index + 2));
        QVERIFY(!hasErrors(document.commit(edit)));
        QVERIFY(document.isWorking());
        QCOMPARE(document.design(), before); // a design never stands beside another's numbers
        QCOMPARE(changed.count(), 0);
        QTRY_VERIFY(!document.isWorking());
        QCOMPARE(working.count(), 2);
        QCOMPARE(changed.count(), 1);
        QCOMPARE(document.design(), *edit.design);
        QCOMPARE(document.prediction()->metrics.makespan, predictPlaced(*edit.design).metrics.makespan);
        const Prediction* after = document.prediction();
        document.undoStack()->undo();
        QCOMPARE(document.design(), before);
        QCOMPARE(document.prediction()->metrics.makespan, makespan);
        document.undoStack()->redo();
        QCOMPARE(document.prediction(), after); // kept, not made again
    }

    void whateverIsPressedWaitsForAnEditThatIsUnderWay()
    {
        Document document;
        document.reset(test::familyDesign());
        document.setLargeFrom(1);
        const Document::Edit edit =
            document.tryEdit(blockMove(document.design(), w10, find(document.design().schedule, w10).index + 2));
        (void)document.commit(edit);
        QVERIFY(document.isWorking());
        QWidget anywhere;
        QTest::keyClick(&anywhere, Qt::Key_A);
        QVERIFY(!document.isWorking());
        QCOMPARE(document.design(), *edit.design);
        // An edit that was made of the design before it is refused, and what was under way is not lost.
        const Document::Edit first = document.tryEdit(UnplaceBlocks{{w10}}),
                             second = document.tryEdit(PinBlock{i10, 5000});
        (void)document.commit(first);
        QVERIFY(hasErrors(document.commit(second)));
        QCOMPARE(document.design(), *first.design);
        QCOMPARE(document.unplaced(), std::vector<Block>{w10});
        // Undoing, saving and opening are asked of what has arrived.
        (void)document.commit(document.tryEdit(PlaceBlock{w10, find(edit.design->schedule, w10).index}));
        document.reset(test::familyDesign());
        QVERIFY(!document.isWorking());
        QCOMPARE(document.undoStack()->count(), 0);
    }

    void anIncompleteScheduleIsPredictedAsFarAsItIsPlaced()
    {
        Document document;
        document.reset(test::familyDesign());
        const auto blocks = document.prediction()->program.computeCount();
        QVERIFY(document.apply(UnplaceBlocks{{w10}}).empty());
        QVERIFY(document.prediction() != nullptr);
        QCOMPARE(document.prediction()->program.computeCount(), blocks - 1);
    }

    void aScheduleThatCannotRunHasDiagnosticsInsteadOfAPrediction()
    {
        Design design = test::familyDesign();
        std::reverse(design.schedule.order[1].begin(), design.schedule.order[1].end());
        Document document;
        document.reset(design);
        QVERIFY(document.prediction() == nullptr);
        QVERIFY(hasErrors(document.diagnostics()));
    }

    void theSelectionSurvivesEditsUntilItsBlockIsGone()
    {
        Document document;
        document.reset(test::familyDesign());
        QSignalSpy selections(&document, &Document::selectionChanged);
        document.select(w10);
        document.apply(UnplaceBlocks{{w10}});
        QVERIFY(document.selection() == w10); // in the tray
        QCOMPARE(selections.count(), 1);
        document.replaceDesign(test::familyDesign("1f1b"), QStringLiteral("Switch to 1F1B"));
        QVERIFY(!document.selection()); // 1F1B has no W
        QCOMPARE(selections.count(), 2);
    }

    void aSavedDesignOpensEqualAndIsClean()
    {
        QTemporaryDir folder;
        const QString path = folder.filePath(QStringLiteral("design.json"));
        Document document;
        document.reset(test::familyDesign());
        document.apply(blockMove(document.design(), w10, find(document.design().schedule, w10).index + 3));
        QVERIFY(!document.undoStack()->isClean());
        document.save(path);
        QVERIFY(document.undoStack()->isClean());
        QCOMPARE(document.path(), path);
        Document other;
        other.open(path);
        QVERIFY(other.design() == document.design());
        QCOMPARE(other.path(), path);
        QVERIFY(other.undoStack()->isClean());
        Document made;
        made.reset(test::familyDesign());
        made.undoStack()->resetClean(); // as for a new design that was never saved
        made.open(path);
        QVERIFY(made.undoStack()->isClean());
    }

    void anUnreadableFileIsAnErrorAndKeepsWhatIsOpen()
    {
        QTemporaryDir folder;
        Document document;
        document.reset(test::familyDesign());
        const Design before = document.design();
        QVERIFY_THROWS_EXCEPTION(Error, document.open(folder.filePath(QStringLiteral("none.json"))));
        QVERIFY(document.design() == before);
    }

    void aTraceIsLaidOverAndComesBackWhenAnEditIsUndone()
    {
        QTemporaryDir folder;
        const QString path = folder.filePath(QStringLiteral("run.db"));
        Document document;
        document.reset(test::familyDesign());
        record(path, document, 5, 1.1);
        QSignalSpy overlays(&document, &Document::overlayChanged);
        document.setOverlay(path);
        QCOMPARE(overlays.count(), 1);
        QVERIFY(document.overlay() != nullptr);
        QCOMPARE(document.overlay()->comparison.unmatched, 0);
        QVERIFY(std::abs(document.overlay()->comparison.makespanError + 0.1 / 1.1) < 0.01);
        for (const Nanoseconds spread : document.overlay()->spread)
            QVERIFY(spread <= 1); // the steps after the first are alike

        // Another order is another program: the trace does not fit until the edit is undone.
        QVERIFY(
            document.apply(blockMove(document.design(), w10, find(document.design().schedule, w10).index + 3)).empty());
        QVERIFY(document.overlay() == nullptr);
        QCOMPARE(document.overlayPath(), path);
        document.undoStack()->undo();
        QTRY_VERIFY(document.overlay() != nullptr);

        // Other costs are the same program: compared with the new prediction.
        Design measured = document.design();
        for (StageCosts& stage : measured.costs.stages)
            stage.weightGrad *= 2;
        const double before = document.overlay()->comparison.makespanError;
        document.replaceDesign(measured, QStringLiteral("Slower W"));
        QTRY_VERIFY(document.overlay() != nullptr);
        QVERIFY(document.overlay()->comparison.makespanError > before);

        document.clearOverlay();
        QVERIFY(document.overlay() == nullptr);
    }

    void anEditLaysTheRecordingOverAgainWithoutOpeningTheFile()
    {
        QTemporaryDir folder;
        const QString path = folder.filePath(QStringLiteral("run.db"));
        Document document;
        document.reset(test::familyDesign());
        record(path, document, 5, 1.1);
        document.setOverlay(path);
        QVERIFY(QFile::remove(path));
        document.apply(PinBlock{{Op::F, 0, 1, 0}, 500'000'000}); // the same program
        QTRY_VERIFY(document.overlay() != nullptr);
        document.apply(blockMove(document.design(), w10, find(document.design().schedule, w10).index + 3)); // another
        QTRY_VERIFY(!document.isOverlayPending());
        QVERIFY(document.overlay() == nullptr);
        document.undoStack()->undo();
        QTRY_VERIFY(document.overlay() != nullptr);
        QCOMPARE(document.overlay()->comparison.predictedMakespan, document.prediction()->metrics.makespan);
    }

    void aRecordingLaidOverAnOlderDesignIsDropped()
    {
        QTemporaryDir folder;
        const QString path = folder.filePath(QStringLiteral("run.db"));
        Document document;
        document.reset(test::familyDesign());
        record(path, document, 5, 1.1);
        document.setOverlay(path);
        document.setOverlayPatience(0); // every answer is late
        QSignalSpy overlays(&document, &Document::overlayChanged);
        const auto slower = [&](double factor) {
            Design design = document.design();
            for (StageCosts& stage : design.costs.stages)
                stage.weightGrad = static_cast<Nanoseconds>(static_cast<double>(stage.weightGrad) * factor);
            document.replaceDesign(design, QStringLiteral("Slower W"));
        };
        slower(2);
        QVERIFY(document.isOverlayPending() && !document.overlay()); // nothing of the design before is shown
        QCOMPARE(document.side(), Side::Predicted);
        QCOMPARE(document.overlayPath(), path);
        slower(2);
        QCOMPARE(overlays.count(), 1); // it went, once
        QTRY_VERIFY(document.overlay() != nullptr);
        QTest::qWait(50); // for another answer
        QCOMPARE(overlays.count(), 2);
        QCOMPARE(document.overlay()->comparison.predictedMakespan, document.prediction()->metrics.makespan);
        slower(2);
        document.clearOverlay();
        QTest::qWait(50);
        QVERIFY(!document.isOverlayPending() && !document.overlay() && document.overlayPath().isEmpty());
    }

    void aTraceOfAnotherProgramIsRefused()
    {
        QTemporaryDir folder;
        const QString path = folder.filePath(QStringLiteral("run.db"));
        Document other;
        other.reset(test::familyDesign("1f1b"));
        record(path, other, 3, 1);
        Document document;
        document.reset(test::familyDesign());
        QVERIFY_THROWS_EXCEPTION(Error, document.setOverlay(path));
        QVERIFY(document.overlay() == nullptr);
        QVERIFY(document.overlayPath().isEmpty());
    }

    void openingATraceOpensItsDesignWithTheTraceOverIt()
    {
        QTemporaryDir folder;
        const QString path = folder.filePath(QStringLiteral("run.db"));
        Document document;
        document.reset(test::familyDesign());
        record(path, document, 3, 1);
        Document other;
        other.open(path);
        QVERIFY(other.design() == document.design());
        QVERIFY(other.overlay() != nullptr);
        QVERIFY(other.path().isEmpty()); // saving asks for a name: the recording is not the design's file
    }
};

PIPEWRIGHT_TEST(DocumentTest, QApplication)
#include "tst_document.moc"
