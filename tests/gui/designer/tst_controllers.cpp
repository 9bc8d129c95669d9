// SPDX-License-Identifier: GPL-3.0-or-later
// The controllers of a window without the window: files, recordings beside the design, and runs.
#include "core/files/designfile.h"
#include "core/presets/presets.h"
#include "gui/designer/designfiles.h"
#include "gui/designer/designruns.h"
#include "gui/designer/windowframes.h"
#include "gui/run/fakeprogram.h"
#include "gui/trace/recordedruns.h"
#include "makers/designs.h"
#include "testmain.h"

#include <QApplication>
#include <QMenu>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>

using namespace pipewright;

namespace {

struct Office {
    QTemporaryDir folder;
    QSettings settings{folder.filePath(QStringLiteral("settings.ini")), QSettings::IniFormat};
    Document document;
    QStringList complaints;
    Desk desk{document, settings, nullptr,
              [this](const QString& title, const QString& text) { complaints << title + QStringLiteral(": ") + text; }};
    Office() { document.reset(test::familyDesign()); }
    QString path(const char* name) const { return folder.filePath(QLatin1String(name)); }
};

struct RunOffice : Office {
    WindowFrames frames{settings, nullptr};
    Overlays overlays{desk, path("runs"), frames, {}};
    DesignRuns runs;
    QStringList reports;
    QSignalSpy laidOver{&runs, &DesignRuns::laidOver};

    /// Its runs record what `recording` holds.
    explicit RunOffice(const QString& recording = {})
        : runs(desk, overlays, path("runs"),
               fakeProgram(folder, "cp '" + recording.toUtf8() + "' \"${8}\"\necho '{\"trace\":\"'\"${8}\"'\"}'\n"))
    {
        QObject::connect(&runs.controller(), &RunController::finished, &runs, &DesignRuns::take);
        QObject::connect(&runs, &DesignRuns::reported, &runs, [this](const QString& text) { reports << text; });
    }
    bool run(bool calibrate = false)
    {
        RunChoice choice;
        choice.calibrate = calibrate;
        QSignalSpy ended(&runs.controller(), &RunController::finished);
        runs.start(choice);
        return ended.count() > 0 || ended.wait(20'000);
    }
};

const Block w10{Op::W, 1, 0, 0};

} // namespace

class TestControllers : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void whatIsSavedIsRecentAndOpensAgain()
    {
        Office office;
        DesignFiles files(office.desk);
        QSignalSpy opened(&files, &DesignFiles::opened), recent(&files, &DesignFiles::recentChanged);
        QVERIFY(files.saveTo(office.path("first.json")) && files.saveTo(office.path("second.json")));
        QCOMPARE(recent.count(), 2);
        QVERIFY(files.name().contains(QLatin1String("second.json")));
        QVERIFY(files.openFile(office.path("first.json")));
        QCOMPARE(opened.count(), 1);
        QVERIFY(files.mayDiscard()); // nothing is unsaved
        QMenu menu;
        files.fill(menu);
        QCOMPARE(menu.actions().size(), 2);
        QCOMPARE(menu.actions()[0]->text(), QStringLiteral("first.json"));
        menu.actions()[1]->trigger();
        QCOMPARE(office.document.path(), office.path("second.json"));
        files.endSession();
        DesignFiles next(office.desk);
        office.document.reset(test::familyDesign("gpipe"));
        QVERIFY(next.restore());
        QCOMPARE(office.document.path(), office.path("second.json"));
        QFile::remove(office.path("second.json"));
        QVERIFY(!next.restore());
        QVERIFY(office.complaints.isEmpty());
    }

    void whatCannotBeReadOrWrittenIsToldAndChangesNothing()
    {
        Office office;
        DesignFiles files(office.desk);
        QSignalSpy opened(&files, &DesignFiles::opened), recent(&files, &DesignFiles::recentChanged);
        const Design before = office.document.design();
        QVERIFY(!files.openFile(office.path("none.json")));
        QVERIFY(!files.saveTo(QStringLiteral("/no/such/folder/a.json")));
        QCOMPARE(office.complaints.size(), 2);
        QVERIFY(office.complaints[0].startsWith(QLatin1String("Cannot open the file: ")));
        QVERIFY(office.complaints[1].startsWith(QLatin1String("Cannot save the design: ")));
        QVERIFY(office.document.design() == before && opened.isEmpty() && recent.isEmpty());
    }

    void recordingsAreHandedOnWithTheirDesign()
    {
        Office office;
        DesignFiles files(office.desk);
        const QString recording = QString::fromStdString(PresetLibrary().directory() + "/examples/zb-h1-byte-gpt.db");
        const QString design = office.path("design.json");
        writeDesign(TraceReader(recording.toStdString()).design(), design.toStdString(), true);
        QSignalSpy found(&files, &DesignFiles::recordingsFound), traces(&files, &DesignFiles::tracesFound);
        QVERIFY(files.openFiles({recording, design}));
        QCOMPARE(office.document.path(), design);
        QCOMPARE(found.count(), 1);
        QCOMPARE(found[0][0].toStringList(), QStringList{recording});
        QVERIFY(traces.isEmpty());
    }

    void aRunIsLaidOverTheOrderThatRanAndNoOther()
    {
        RunOffice first;
        const QString recording = recordRun(first.document, first.path("recorded.db"), 1.25);
        RunOffice office(recording);
        QVERIFY(office.runs.isPossible());
        QVERIFY(office.run());
        QVERIFY2(office.document.overlay(), qPrintable(office.complaints.join(QLatin1Char(' '))));
        QCOMPARE(office.laidOver.count(), 1);
        QVERIFY(office.reports[0].contains(QLatin1String("run 1.db is laid over")));
        office.document.clearOverlay();
        QSignalSpy changed(&office.runs, &DesignRuns::changed);
        connect(&office.runs, &DesignRuns::started, &office.runs,
                [&] { QVERIFY(!hasErrors(office.document.apply(UnplaceBlocks{{w10}}))); });
        QVERIFY(office.run());
        QCOMPARE(changed.count(), 2); // it began and ended
        QVERIFY(!office.document.overlay());
        QVERIFY(office.reports[1].contains(QLatin1String("before your edits")));
        QVERIFY(!office.runs.isPossible()); // a block has no place
        QVERIFY(office.runs.mayEnd());
    }

    void whatARunMeasuredBecomesTheCostsWhereItWasAskedFor()
    {
        RunOffice first;
        const QString recording = recordRun(first.document, first.path("recorded.db"), 1.25);
        RunOffice office(recording);
        office.document.setOverlayPatience(0); // it comes later
        bool isThere = false;
        connect(&office.runs, &DesignRuns::laidOver, this, [&] { isThere = office.document.overlay() != nullptr; });
        QSignalSpy said(&office.overlays, &Overlays::said);
        QVERIFY(office.run(true));
        QVERIFY2(office.complaints.isEmpty(), qPrintable(office.complaints.join(QLatin1Char(' '))));
        QCOMPARE(office.document.undoStack()->count(), 1);
        QCOMPARE(said.count(), 1);
        QVERIFY(said[0][0].toString().startsWith(QLatin1String("Medians over 1 steps")));
        QTRY_VERIFY(isThere); // over the new prediction
        QCOMPARE(office.laidOver.count(), 1);
    }

    void aRecordingOfAnotherProgramIsTold()
    {
        RunOffice first;
        first.document.reset(test::familyDesign("gpipe"));
        const QString recording = recordRun(first.document, first.path("recorded.db"), 1);
        RunOffice office(recording);
        QVERIFY(office.run());
        QVERIFY(!office.document.overlay() && office.laidOver.isEmpty() && office.reports.isEmpty());
        QCOMPARE(office.complaints.size(), 1);
        office.overlays.lay(recording);
        QCOMPARE(office.complaints.size(), 2);
        QVERIFY(office.complaints[1].startsWith(QLatin1String("The recording cannot be laid over this design")));
    }
};

PIPEWRIGHT_TEST(TestControllers, QApplication)
#include "tst_controllers.moc"
