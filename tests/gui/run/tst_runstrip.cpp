// SPDX-License-Identifier: GPL-3.0-or-later
// A run beside the design: the child process, its progress, curves and result, and that there is only one.
#include "gui/designer/designer.h"
#include "gui/run/fakeprogram.h"
#include "gui/run/runcontroller.h"
#include "gui/run/runplot.h"
#include "gui/run/runstrip.h"
#include "testmain.h"

#include <QApplication>
#include <QPushButton>
#include <QSignalSpy>
#include <QTest>

using namespace pipewright;

namespace {

struct RunFixture {
    QTemporaryDir folder;
    RunController controller;
    QWidget window;
    RunStatus* status;
    RunStrip* strip;
    ChildResult result;
    QSignalSpy finished{&controller, &RunController::finished};

    explicit RunFixture(const QByteArray& body)
        : controller(folder.filePath(QStringLiteral("runs")), fakeProgram(folder, body)),
          status(new RunStatus(controller, &window)), strip(new RunStrip(controller, &window))
    {
        window.resize(900, 300);
        window.show();
        QObject::connect(&controller, &RunController::finished, &window,
                         [this](const ChildResult& end) { result = end; });
    }
    bool start(int steps = 10)
    {
        RunChoice choice;
        choice.steps = steps;
        return controller.start(exampleDesign(), choice);
    }
};

} // namespace

class TestRun : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void aRunShowsItsProgressAndHandsOverTheTrace()
    {
        RunFixture fixture("echo '{\"progress\":0.5,\"step\":5,\"steps\":10,\"loss\":2.25,\"step_ns\":18500000,"
                           "\"eta_ns\":7000000000}' >&2\n"
                           "echo '{\"gradient_check\":{\"bit_equal\":true,\"max_relative_error\":0.0},"
                           "\"trace\":\"'\"${8}\"'\"}'\n");
        QStringList states;
        connect(&fixture.controller, &RunController::progressed, &fixture.window,
                [&] { states << fixture.status->text() << fixture.strip->state(); });
        QVERIFY(fixture.start());
        QVERIFY(fixture.status->isVisible() && fixture.strip->isVisible());
        QTRY_COMPARE(fixture.finished.count(), 1);
        QCOMPARE(states, (QStringList{QStringLiteral("step 5 of 10"), // the bar has no room for more
                                      QStringLiteral("step 5 of 10 · about 7\u00a0s left")}));
        QCOMPARE(fixture.strip->loss().last(), QStringLiteral("2.2500"));
        QCOMPARE(fixture.strip->times().last(), QStringLiteral("18.5\u00a0ms"));
        QVERIFY(fixture.strip->state().contains(QLatin1String("bit-equal")));
        QVERIFY(fixture.strip->tone() == Tone::Good);
        QVERIFY(!fixture.status->isVisible() && fixture.strip->isVisible()); // the result stays
        QVERIFY(fixture.result.bitEqual);
        QVERIFY(fixture.result.trace.endsWith(QLatin1String("run 1.db")));
    }

    void curvesHaveAxes()
    {
        RunFixture fixture(
            "for s in 1 2 3; do echo '{\"progress\":0.1,\"step\":'$s',\"steps\":4,\"loss\":'$((6 - s))"
            "',\"step_ns\":'${s}000000'}' >&2; done\n"
            "echo '{\"progress\":1,\"step\":3,\"steps\":4,\"loss\":3,\"step_ns\":3000000}' >&2\nexit 1\n");
        QVERIFY(fixture.start(4));
        QTRY_COMPARE(fixture.finished.count(), 1);
        QCOMPARE(fixture.strip->loss().axisTexts(), (QStringList{QStringLiteral("3.0000"), QStringLiteral("5.0000"),
                                                                 QStringLiteral("1"), QStringLiteral("4")}));
        QCOMPARE(fixture.strip->times().axisTexts().at(0), QStringLiteral("0")); // times begin at nothing
        QCOMPARE(fixture.strip->times().axisTexts().at(1), QStringLiteral("3\u00a0ms"));
        QCOMPARE(fixture.strip->times().count(), std::size_t(3));
    }

    void aFailedRunSaysItsError()
    {
        RunFixture fixture("echo 'a.json: warning: 4 devices compute on 2 cores' >&2\n"
                           "echo 'device 0: error: cannot allocate 73.5GiB (use fewer microbatches)' >&2\nexit 2\n");
        QVERIFY(fixture.start());
        QTRY_COMPARE(fixture.finished.count(), 1);
        QCOMPARE(fixture.strip->state(),
                 QStringLiteral("The run failed: device 0: cannot allocate 73.5\u00a0GiB (use fewer microbatches)"));
        QVERIFY(fixture.strip->tone() == Tone::Bad);
        QVERIFY(fixture.strip->messages().contains(QLatin1String("2 cores"))); // the rest stays in the list
    }

    void theNextStartIsNotGreenAndForgetsTheCurves()
    {
        RunFixture fixture("if [ -e once ]; then sleep 30; fi\n"
                           "echo '{\"progress\":1,\"step\":1,\"steps\":1,\"loss\":1}' >&2\n"
                           "echo '{\"gradient_check\":{\"bit_equal\":true},\"trace\":\"x.db\"}'\n");
        QVERIFY(fixture.start());
        QTRY_COMPARE(fixture.finished.count(), 1);
        QVERIFY(fixture.strip->tone() == Tone::Good);
        QVERIFY(fixture.start());
        QCOMPARE(fixture.strip->state(), QStringLiteral("Starting …"));
        QVERIFY(fixture.strip->tone() == Tone::Plain);
        QCOMPARE(fixture.strip->loss().count(), std::size_t(0));
        QTRY_COMPARE(fixture.finished.count(), 2);
    }

    void aSecondStartIsRefusedWhileOneIsUnderWay()
    {
        RunFixture fixture("echo '{\"progress\":0.1,\"step\":1,\"steps\":10}' >&2\nwhile :; do sleep 0.05; done\n");
        QSignalSpy started(&fixture.controller, &RunController::started);
        QVERIFY(fixture.start());
        QVERIFY(!fixture.start());
        QCOMPARE(started.count(), 1);
        fixture.controller.cancel();
        QTRY_COMPARE(fixture.finished.count(), 1);
        QVERIFY(fixture.start());
        fixture.controller.cancel();
        QTRY_COMPARE(fixture.finished.count(), 2);
    }

    void cancelEndsTheChildByInterrupting()
    {
        RunFixture fixture("trap 'echo interrupted >&2; exit 1' INT\n"
                           "echo '{\"progress\":0.1,\"step\":1,\"steps\":10}' >&2\n"
                           "while :; do sleep 0.05; done\n");
        QSignalSpy progressed(&fixture.controller, &RunController::progressed);
        QVERIFY(fixture.start());
        QTRY_COMPARE(progressed.count(), 1);
        QTest::mouseClick(fixture.status->cancelButton(), Qt::LeftButton);
        QCOMPARE(fixture.status->text(), QStringLiteral("Cancelling …"));
        QTRY_COMPARE(fixture.finished.count(), 1);
        QCOMPARE(fixture.result.kind, ChildResult::Cancelled);
        QVERIFY(fixture.result.messages.contains(QStringLiteral("interrupted")));
        QVERIFY(fixture.strip->state().startsWith(QLatin1String("Cancelled")));
        QVERIFY(fixture.strip->tone() == Tone::Plain);
    }

    void aChildThatIgnoresTheInterruptIsKilledAfterTheGrace()
    {
        RunFixture fixture("trap '' INT\necho '{\"progress\":0.1}' >&2\nwhile :; do sleep 0.05; done\n");
        fixture.controller.process().setGrace(50);
        QSignalSpy progressed(&fixture.controller, &RunController::progressed);
        QVERIFY(fixture.start());
        QTRY_COMPARE(progressed.count(), 1);
        fixture.controller.cancel();
        QTRY_VERIFY(!fixture.controller.isRunning());
        QCOMPARE(fixture.result.kind, ChildResult::Cancelled);
    }

    void aCrashOfTheChildIsTold()
    {
        RunFixture fixture("echo 'run.json:3: error: no such device' >&2\nkill -SEGV $$\n");
        QVERIFY(fixture.start());
        QTRY_VERIFY(fixture.strip->state().contains(QLatin1String("unexpectedly")));
        QCOMPARE(fixture.result.kind, ChildResult::Failed);
        QVERIFY(fixture.strip->tone() == Tone::Bad);
        QVERIFY(fixture.strip->messages().contains(QLatin1String("no such device")));
    }

    void aRunWhoseRecordingWasLostSaysSo()
    {
        RunFixture fixture("echo 'x.db: error: the trace was removed; the run goes on without it' >&2\n"
                           "echo '{\"gradient_check\":{\"bit_equal\":true},\"trace\":\"x.db\",\"trace_fault\":\"the "
                           "trace was removed\"}'\nexit 2\n");
        QVERIFY(fixture.start());
        QTRY_COMPARE(fixture.finished.count(), 1);
        QCOMPARE(fixture.result.kind, ChildResult::Failed);
        QVERIFY2(fixture.strip->state().contains(QLatin1String("not all of it was recorded: the trace was removed")),
                 qPrintable(fixture.strip->state()));
    }

    void aFolderThatCannotBeMadeIsTold()
    {
        QTemporaryDir folder;
        const QString file = writeScript(folder, "no-folder", "");
        RunController controller(file, {});
        ChildResult result;
        connect(&controller, &RunController::finished, &controller,
                [&result](const ChildResult& end) { result = end; });
        QVERIFY(controller.start(exampleDesign(), {}));
        QCOMPARE(result.kind, ChildResult::Failed);
        QVERIFY(result.reason.contains(QLatin1String("cannot create the folder")));
    }

    /// A GPU adds up in another order than the reference: what is within the bound is right.
    void gradientsWithinTheirBoundHold_data()
    {
        QTest::addColumn<QString>("error");
        QTest::addColumn<bool>("holds");
        QTest::newRow("within") << QStringLiteral("2e-5") << true;
        QTest::newRow("beyond") << QStringLiteral("2e-4") << false;
        QTest::newRow("not finite") << QStringLiteral("null") << false;
    }
    void gradientsWithinTheirBoundHold()
    {
        QFETCH(QString, error);
        QFETCH(bool, holds);
        RunFixture fixture(
            QStringLiteral("echo '{\"gradient_check\":{\"bit_equal\":false,\"max_relative_error\":%1,\"within\":1e-4},"
                           "\"trace\":\"x.db\"}'\nexit 1\n")
                .arg(error)
                .toUtf8());
        QVERIFY(fixture.start());
        QTRY_VERIFY(fixture.strip->state().contains(QLatin1String("differ")));
        QCOMPARE(fixture.result.kind, ChildResult::Done);
        QCOMPARE(fixture.result.gradientsHold, holds);
        QVERIFY(fixture.strip->tone() == (holds ? Tone::Good : Tone::Bad));
    }

    void linesThatAreNoProgressAreMessages_data()
    {
        QTest::addColumn<QByteArray>("line");
        QTest::addColumn<bool>("isProgress");
        QTest::addColumn<double>("share");
        QTest::newRow("number") << QByteArray(R"({"progress":0.25})") << true << 0.25;
        QTest::newRow("object") << QByteArray(R"({"progress":{"step":3,"steps":4}})") << true << 0.75;
        QTest::newRow("beyond the end") << QByteArray(R"({"progress":1.5})") << true << 1.0;
        QTest::newRow("loss that is no number") << QByteArray(R"({"progress":0.5,"loss":null})") << true << 0.5;
        QTest::newRow("diagnostic") << QByteArray("a.json:1: error: broken") << false << 0.0;
        QTest::newRow("other object") << QByteArray(R"({"note":1})") << false << 0.0;
        QTest::newRow("half a line") << QByteArray(R"({"progress":0.2)") << false << 0.0;
    }
    void linesThatAreNoProgressAreMessages()
    {
        QFETCH(QByteArray, line);
        QFETCH(bool, isProgress);
        QFETCH(double, share);
        const auto progress = RunProcess::parseProgress(line);
        QCOMPARE(progress.has_value(), isProgress);
        if (progress)
            QCOMPARE(progress->share, share);
    }
};

PIPEWRIGHT_TEST(TestRun, QApplication)
#include "tst_runstrip.moc"
