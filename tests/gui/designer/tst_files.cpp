// SPDX-License-Identifier: GPL-3.0-or-later
// Files and what is said of them: what is clean, what they are called, and several at once.
#include "core/design/redesign.h"
#include "core/families/family.h"
#include "core/files/designfile.h"
#include "core/predict/predict.h"
#include "core/presets/presets.h"
#include "gui/designer/designfiles.h"
#include "gui/designer/familylist.h"
#include "gui/designer/mainwindowfixture.h"
#include "gui/designer/overlays.h"
#include "gui/document/namededits.h"
#include "gui/trace/tracewindow.h"
#include "gui/widgets/style.h"
#include "gui/widgets/theme.h"
#include "gui/widgets/words.h"
#include "makers/designs.h"
#include "testmain.h"
#include "traces/store/tracereader.h"

#include <QApplication>
#include <QFile>
#include <QMessageBox>
#include <QSignalSpy>
#include <QTest>
#include <QTimer>

using namespace pipewright;
using Fixture = MainWindowFixture;

namespace {

/// A trace in Chrome's format: one kernel of one rank.
QString rankFile(const QTemporaryDir& folder, int rank)
{
    const QString path = folder.filePath(QStringLiteral("rank%1.json").arg(rank));
    QFile file(path);
    if (!file.open(QIODevice::WriteOnly))
        return {};
    file.write(QStringLiteral(R"({"distributedInfo":{"rank":%1},"traceEvents":[
{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":%2,"dur":10,"args":{"device":0,"stream":7}},
{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":%3,"dur":10,"args":{"device":0,"stream":7}}]})")
                   .arg(rank)
                   .arg(100 + rank)
                   .arg(200 + rank)
                   .toUtf8());
    return path;
}

/// The traces of a step by PyTorch's ranks, each with a clock of its own.
QStringList torchTraces(const QTemporaryDir& folder, const Schedule& schedule)
{
    QStringList ranks;
    for (int rank = 0; rank < schedule.devices(); ++rank) {
        QStringList events;
        int time = 1000 * rank;
        for (const Block& block : schedule.order[static_cast<std::size_t>(rank)]) // as PyTorch's pipelining names them
            events << QStringLiteral(R"({"ph":"X","cat":"user_annotation","name":"PP:%1%2%3","pid":1,"tid":1,)"
                                     R"("ts":%4,"dur":900})")
                          .arg(block.stage)
                          .arg(QLatin1Char(letter(block.op)))
                          .arg(block.microbatch)
                          .arg(time += 1000);
        ranks << folder.filePath(QStringLiteral("torch%1.json").arg(rank));
        QFile file(ranks.back());
        if (!file.open(QIODevice::WriteOnly))
            return {};
        file.write(QStringLiteral(R"({"schemaVersion":1,"distributedInfo":{"rank":%1},"traceEvents":[%2]})")
                       .arg(rank)
                       .arg(events.join(QLatin1Char(',')))
                       .toUtf8());
    }
    return ranks;
}

const Family& familyNamed(const char* name)
{
    return *findFamily(name);
}

} // namespace

class TestFiles : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void init() { Theme::dark().apply(*qApp); }

    void whatIsOpenedIsCleanWhateverWasThereBefore()
    {
        Fixture fixture;
        const QString path = fixture.folder.filePath(QStringLiteral("a.json"));
        QVERIFY(fixture.window.files().saveTo(path));
        // As a new schedule, and recovered work: unsaved without an edit.
        fixture.document().reset(exampleDesign());
        fixture.document().undoStack()->resetClean();
        QVERIFY(fixture.window.isWindowModified());
        QVERIFY(fixture.window.files().openFile(path));
        QVERIFY(fixture.document().undoStack()->isClean());
        QVERIFY(!fixture.window.isWindowModified());
    }

    void theTitleOfAnEditedOrderNamesNoFamily()
    {
        Fixture fixture;
        QVERIFY(fixture.window.windowTitle().contains(QLatin1String("ZB-H1")));
        const Document& document = fixture.document();
        QVERIFY(!hasErrors(fixture.document().apply(warmUpChange(document.design(), 1, 2))));
        QVERIFY(!findFamily(document.design().schedule.family));
        QVERIFY2(fixture.window.windowTitle().contains(QLatin1String("own order"))
                     && !fixture.window.windowTitle().contains(QLatin1String("ZB-H1")),
                 qPrintable(fixture.window.windowTitle()));
        fixture.document().undoStack()->undo();
        QVERIFY(fixture.window.windowTitle().contains(QLatin1String("ZB-H1")));
    }

    void theFileIsNamedInTheTitleAndInTheQuestion()
    {
        Fixture fixture;
        QVERIFY(fixture.window.files().saveTo(fixture.folder.filePath(QStringLiteral("mine.json"))));
        QVERIFY2(fixture.window.windowTitle().contains(QLatin1String("mine.json")),
                 qPrintable(fixture.window.windowTitle()));
        fixture.document().apply(UnplaceBlocks{{{Op::W, 0, 7, 0}}});
        QString asked;
        QTimer::singleShot(0, qApp, [&asked] {
            if (auto* box = qobject_cast<QMessageBox*>(QApplication::activeModalWidget())) {
                asked = box->text();
                box->reject();
            }
        });
        QVERIFY(!fixture.window.files().mayDiscard());
        QVERIFY2(asked.contains(QLatin1String("mine.json")), qPrintable(asked));
    }

    void anotherFamilyAndBackIsTheSameAgainAndHasItsName()
    {
        const Design start = exampleDesign();
        const Nanoseconds makespan = predict(start).metrics.makespan;
        const Design other = withFamily(start, familyNamed("interleaved-1f1b"));
        QVERIFY2(other.name.find("Interleaved") != std::string::npos, other.name.c_str());
        const Design back = withFamily(other, familyNamed("zb-h1"));
        QCOMPARE(predict(back).metrics.makespan, makespan);
        QCOMPARE(back.name, start.name);
        QCOMPARE(back, start);
    }

    void theTracesOfSeveralRanksOpenInOneWindow()
    {
        Fixture fixture;
        const QStringList ranks{rankFile(fixture.folder, 0), rankFile(fixture.folder, 1)};
        TraceWindow window;
        QSignalSpy opened(&window, &TraceWindow::opened);
        QSignalSpy failed(&window, &TraceWindow::failed);
        window.open(ranks, fixture.folder.filePath(QStringLiteral("cache")));
        QTRY_VERIFY_WITH_TIMEOUT(opened.count() + failed.count() > 0, 20'000);
        QVERIFY2(failed.isEmpty(), failed.isEmpty() ? "" : qPrintable(failed.front().front().toString()));
        QVERIFY(window.windowTitle().contains(QLatin1String("rank0.json and 1 more")));

        QVERIFY(fixture.window.files().openFiles(ranks)); // as the file dialog gives them
        QCOMPARE(fixture.window.findChildren<TraceWindow*>().size(), 1);
        delete fixture.window.findChild<TraceWindow*>();
    }

    void theTracesOfSeveralRanksAreLaidOverThePresentDesign()
    {
        Fixture fixture;
        fixture.document().reset(test::familyDesign("1f1b", 2, 4));
        const QStringList ranks = torchTraces(fixture.folder, fixture.document().design().schedule);
        fixture.window.overlays().layOver(ranks);
        QTRY_VERIFY_WITH_TIMEOUT(fixture.document().overlay(), 20'000);
        QCOMPARE(fixture.document().overlay()->comparison.matched, std::int64_t{16});
        QCOMPARE(fixture.document().overlay()->comparison.unmatched, std::int64_t{0});
        // The lanes are in sight: the window that brought the files together is gone, and a box says what was left out.
        QTRY_VERIFY(!fixture.window.findChild<TraceWindow*>());
        auto* box = fixture.window.findChild<QMessageBox*>();
        QVERIFY(box && box->text().contains(QLatin1String("times of rank 1")));
        box->close();
        // It is called by its files and not by the name that it is kept under.
        QCOMPARE(TraceWindow::titleOf(fixture.document().overlay()->path), QString("torch0"));
        QCOMPARE(TraceWindow::titleOf(QStringLiteral("/a/second.run.db")), QString("second.run"));
    }

    void aDesignIsOpenedTogetherWithWhatWasRecordedOfIt()
    {
        Fixture fixture;
        const QString file = fixture.folder.filePath(QStringLiteral("design.json"));
        const Design design = test::familyDesign("1f1b", 2, 4);
        writeDesign(design, file.toStdString(), true);
        QStringList paths = torchTraces(fixture.folder, design.schedule);
        paths.insert(1, file);
        QVERIFY(fixture.window.files().openFiles(paths));
        QCOMPARE(fixture.document().path(), file);
        QTRY_VERIFY_WITH_TIMEOUT(fixture.document().overlay(), 20'000);
        QCOMPARE(fixture.document().overlay()->comparison.matched, std::int64_t{16});
        QTRY_VERIFY(!fixture.window.findChild<TraceWindow*>());
        fixture.window.findChild<QMessageBox*>()->close(); // what was left out

        const QString recording = QString::fromStdString(PresetLibrary().directory() + "/examples/zb-h1-byte-gpt.db");
        const QString recorded = fixture.folder.filePath(QStringLiteral("recorded.json"));
        writeDesign(TraceReader(recording.toStdString()).design(), recorded.toStdString(), true);
        QVERIFY(fixture.window.files().openFiles({recording, recorded}));
        QCOMPARE(fixture.document().path(), recorded);
        QVERIFY(fixture.document().overlay());
        QCOMPARE(fixture.document().overlay()->path, recording);

        // Of one design one run can be shown, and a model is no design.
        QCOMPARE(DesignFiles::designAmong({recording, recorded, recording}), QString());
        QCOMPARE(DesignFiles::designAmong({recording, recorded, paths.front()}), QString());
        QCOMPARE(DesignFiles::designAmong({recorded}), QString());
        QCOMPARE(DesignFiles::designAmong({recording}), QString());
        const QString model = QString::fromStdString(PresetLibrary().directory() + "/models/byte-gpt.json");
        QVERIFY(QFile::exists(model));
        QCOMPARE(DesignFiles::designAmong({model, recording}), QString());
    }

    void severalFilesThatAreNoTracesAreRefusedByName()
    {
        Fixture fixture;
        const QString design = fixture.folder.filePath(QStringLiteral("design.json"));
        writeDesign(exampleDesign(), design.toStdString(), true);
        const Design before = fixture.document().design();
        const QString other = fixture.folder.filePath(QStringLiteral("other.json"));
        QVERIFY(QFile::copy(design, other));
        QVERIFY(!fixture.window.files().openFiles({rankFile(fixture.folder, 0), design, other}));
        auto* box = fixture.window.findChild<QMessageBox*>();
        QVERIFY(box && box->text().contains(QLatin1String("design.json")));
        QCOMPARE(fixture.document().design(), before);
        box->close();
    }

    void proseSpeaksOfFieldsAndWritesQuantitiesOneWay()
    {
        const Diagnostics found{{Severity::Error, "--microbatches", "3 are too few for 141GiB in 12us",
                                 "raise --layers-per-stage, --chunks or the 1.5ms"}};
        QCOMPARE(proseText(found),
                 QStringLiteral("Microbatches: 3 are too few for 141\u00a0GiB in 12\u00a0µs (raise Layers per stage, "
                                "Chunks per device or the 1.5\u00a0ms)"));
        QCOMPARE(proseText(QStringLiteral("device 3, F0.3 at line 12: 8 x 4s-wide")),
                 QStringLiteral("device 3, F0.3 at line 12: 8 x 4\u00a0s-wide"));
        QCOMPARE(proseText(Error("--devices", "none", "use 1 to 9")), QStringLiteral("Devices: none (use 1 to 9)"));
    }

    void iconsOfFileDialogsAreDrawnInBothLooks()
    {
        for (const Theme* theme : {&Theme::light(), &Theme::dark()}) {
            const Style style(*theme);
            for (const auto which :
                 {QStyle::SP_FileDialogToParent, QStyle::SP_FileDialogNewFolder, QStyle::SP_ArrowBack,
                  QStyle::SP_FileDialogListView, QStyle::SP_FileDialogDetailedView, QStyle::SP_ComputerIcon,
                  QStyle::SP_DirHomeIcon, QStyle::SP_DriveHDIcon, QStyle::SP_FileLinkIcon}) {
                const QImage icon = style.standardIcon(which, nullptr, nullptr).pixmap(16, 16).toImage();
                int inked = 0; // pixels of the theme's text: a blank dot has none
                for (int y = 0; y < icon.height(); ++y)
                    for (int x = 0; x < icon.width(); ++x)
                        inked += icon.pixelColor(x, y).alpha() > 128
                                 && std::abs(icon.pixelColor(x, y).lightness() - theme->text.lightness()) < 40;
                QVERIFY2(inked > 12, qPrintable(QStringLiteral("%1: %2").arg(which).arg(inked)));
            }
        }
    }
};

PIPEWRIGHT_TEST(TestFiles, QApplication)
#include "tst_files.moc"
