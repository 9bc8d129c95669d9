// SPDX-License-Identifier: GPL-3.0-or-later
// What a run recorded before it was cancelled is shown.
#include "gui/designer/designruns.h"
#include "gui/designer/mainwindow.h"
#include "gui/designer/topbar.h"
#include "gui/run/fakeprogram.h"
#include "gui/run/runcontroller.h"
#include "gui/run/runsettings.h"
#include "gui/run/runstrip.h"
#include "gui/trace/recordedruns.h"
#include "testmain.h"

#include <QApplication>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>

using namespace pipewright;

namespace {

struct CancelledRun {
    QTemporaryDir folder;
    std::unique_ptr<MainWindow> window;

    /// `whenInterrupted`: what the program does then, `first`: before it reports a step; $trace is where it records.
    explicit CancelledRun(const QByteArray& whenInterrupted, const QByteArray& first = {})
    {
        MainWindow::Options options;
        options.settingsFile = folder.filePath(QStringLiteral("settings.ini"));
        options.traceFolder = folder.filePath(QStringLiteral("runs"));
        options.program =
            fakeProgram(folder, "for word in \"$@\"; do case \"$word\" in *.db) trace=$word;; esac; done\n"
                                "trap '"
                                    + whenInterrupted + " exit 1' INT\n" + first
                                    + "echo '{\"progress\":0.1,\"step\":1,\"steps\":10}' >&2\n"
                                      "while :; do sleep 0.05; done\n");
        window = std::make_unique<MainWindow>(options);
        window->openExample();
        window->show();
    }
    Document& document() { return window->document(); }
    bool start()
    {
        window->runs().ask(*window->topBar().runButton());
        RunChoice choice;
        choice.backend = QStringLiteral("host");
        choice.steps = 10;
        choice.calibrate = true;
        Q_EMIT window->runs().settings()->runWanted(choice);
        return window->runs().controller().isRunning();
    }
    bool runAndCancel()
    {
        RunController& controller = window->runs().controller();
        QSignalSpy progressed(&controller, &RunController::progressed);
        if (!start() || (progressed.isEmpty() && !progressed.wait(30'000)))
            return false;
        controller.cancel();
        return QTest::qWaitFor([&] { return !controller.isRunning(); }, 30'000);
    }
};

} // namespace

class CancelledRunTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void itsFinishedStepsAreLaidOverAndNoCostsAreTaken()
    {
        QTemporaryDir recorded;
        const QString finished = recorded.filePath(QStringLiteral("finished.db"));
        CancelledRun run("cp \"" + finished.toUtf8() + "\" \"$trace\";");
        recordRun(run.document(), finished, 1.25);
        const Costs costs = run.document().design().costs;
        QVERIFY(run.runAndCancel());
        QVERIFY2(run.document().overlay(),
                 qPrintable(run.window->runStrip().state() + run.window->runStrip().messages()));
        QVERIFY(run.window->runStrip().state().contains(QLatin1String("Cancelled")));
        QVERIFY(run.window->runStrip().state().contains(QLatin1String("laid over")));
        QVERIFY(run.document().design().costs == costs);
    }

    void whatIsRecordedSoFarIsLaidOverWhileItRuns()
    {
        QTemporaryDir recorded;
        const QString finished = recorded.filePath(QStringLiteral("finished.db"));
        CancelledRun run("", "cp \"" + finished.toUtf8() + "\" \"$trace\"\n");
        recordRun(run.document(), finished, 1.25);
        QVERIFY(run.start());
        QTRY_VERIFY_WITH_TIMEOUT(run.document().overlay(), 30'000);
        QVERIFY(run.window->runs().controller().isRunning());
        QVERIFY(run.document().overlay()->path == run.window->runs().controller().trace());
        QVERIFY(run.document().side() == Side::Both);
        run.window->runs().controller().cancel();
        QTRY_VERIFY_WITH_TIMEOUT(!run.window->runs().controller().isRunning(), 30'000);
        QVERIFY(run.document().overlay());
    }

    void aFailedRunLeavesItsFinishedSteps()
    {
        QTemporaryDir recorded;
        const QString finished = recorded.filePath(QStringLiteral("finished.db"));
        CancelledRun run("", "cp \"" + finished.toUtf8() + "\" \"$trace\"\nexit 3\n");
        recordRun(run.document(), finished, 1.25);
        QVERIFY(run.start());
        QTRY_VERIFY_WITH_TIMEOUT(!run.window->runs().controller().isRunning(), 30'000);
        QVERIFY(run.document().overlay());
        QVERIFY2(run.window->runStrip().state().contains(QLatin1String("with the finished steps is laid over")),
                 qPrintable(run.window->runStrip().state()));
    }

    void withoutAFinishedStepNothingIsLaidOver()
    {
        CancelledRun run("");
        QVERIFY(run.runAndCancel());
        QVERIFY(!run.document().overlay());
        QVERIFY2(!run.window->runStrip().state().contains(QLatin1String("laid over")),
                 qPrintable(run.window->runStrip().state()));
    }
};

PIPEWRIGHT_TEST(CancelledRunTest, QApplication)
#include "tst_cancelledrun.moc"
