// SPDX-License-Identifier: GPL-3.0-or-later
// The first minute as a person has it, by mouse and keys alone: open, drag a block, ask about idle time, try a
// suggestion, run with blocks that sleep, read the overlay. What is on screen is held against the command line.
#include "core/files/designfile.h"
#include "gui/designer/firsthints.h"
#include "gui/designer/mainwindowfixture.h"
#include "gui/designer/numberbar.h"
#include "gui/designer/topbar.h"
#include "gui/inspector/inspector.h"
#include "gui/inspector/suggestionlist.h"
#include "gui/run/fakeprogram.h"
#include "gui/run/runcontroller.h"
#include "gui/run/runplot.h"
#include "gui/run/runsettings.h"
#include "gui/run/runstrip.h"
#include "gui/timeline/timelineview.h"
#include "gui/widgets/theme.h"
#include "gui/widgets/words.h"
#include "testmain.h"
#include "testpaths.h"

#include <nlohmann/json.hpp>

#include <QApplication>
#include <QComboBox>
#include <QMessageBox>
#include <QProcess>
#include <QPushButton>
#include <QSpinBox>
#include <QTest>
#include <QTimer>
#include <QToolButton>

using namespace pipewright;

namespace {

struct WalkFixture {
    QTemporaryDir folder;
    std::unique_ptr<MainWindow> window;

    explicit WalkFixture(const QString& program)
    {
        MainWindow::Options options;
        options.settingsFile = folder.filePath(QStringLiteral("settings.ini"));
        options.traceFolder = folder.filePath(QStringLiteral("runs"));
        options.program = program;
        window = std::make_unique<MainWindow>(options);
        window->openExample();
        window->resize(1440, 900);
        window->show();
        (void)QTest::qWaitForWindowActive(window.get());
    }
    Document& document() { return window->document(); }
    TimelineView& timeline() { return window->timeline(); }

    void drag(QPoint from, QPoint to)
    {
        QWidget* lanes = timeline().viewport();
        const auto send = [lanes](QEvent::Type type, QPoint at, Qt::MouseButton button, Qt::MouseButtons held) {
            QMouseEvent event(type, at, lanes->mapToGlobal(at), button, held, Qt::NoModifier);
            QApplication::sendEvent(lanes, &event);
        };
        send(QEvent::MouseButtonPress, from, Qt::LeftButton, Qt::LeftButton);
        for (int part = 1; part <= 8; ++part)
            send(QEvent::MouseMove, from + (to - from) * part / 8, Qt::NoButton, Qt::LeftButton);
        send(QEvent::MouseButtonRelease, to, Qt::LeftButton, Qt::NoButton);
    }
    /// Run by mouse, so many steps of sleeping blocks by keys, and Return.
    bool runAsleep(int steps)
    {
        QTest::mouseClick(window->topBar().runButton(), Qt::LeftButton);
        RunSettings* settings = window->runSettings();
        if (!settings || !QTest::qWaitForWindowActive(settings))
            return false;
        QComboBox* blocks = nullptr;
        for (QComboBox* field : settings->findChildren<QComboBox*>())
            if (field->accessibleName() == QLatin1String("What blocks do"))
                blocks = field;
        if (!QTest::qWaitFor([&] { return blocks->isVisible() && !settings->choice().backend.isEmpty(); }, 30'000))
            return false;
        blocks->setFocus();
        QTest::keyClick(blocks, Qt::Key_Down);
        auto* count = settings->findChild<QSpinBox*>();
        count->setFocus();
        count->selectAll();
        QTest::keyClicks(count, QString::number(steps));
        if (!settings->runButton()->isEnabled() || settings->choice().blocks != RunChoice::Blocks::Sleep)
            return false;
        QTest::keyClick(count, Qt::Key_Return);
        return window->runs().isRunning() && !settings->isVisible();
    }
};

nlohmann::json ask(const QStringList& words)
{
    QProcess process;
    process.start(QStringLiteral(PIPEWRIGHT_PROGRAM), words);
    process.waitForFinished(60'000);
    return nlohmann::json::parse(process.readAllStandardOutput().toStdString(), nullptr, false);
}

} // namespace

class TestFirstWalk : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void init() { Theme::light().apply(*qApp); }

    void aPersonDesignsRunsAndReadsWithinAMinute()
    {
        WalkFixture walk(QStringLiteral(PIPEWRIGHT_PROGRAM));
        Document& document = walk.document();
        NumberBar& numbers = walk.window->numbers();

        // Drag W1.3 behind W1.5; the numbers are the command line's.
        const QString opened = numbers.value(QStringLiteral("makespan"));
        walk.drag(walk.timeline().rectOfBlock({Op::W, 1, 3, 0}).center(),
                  walk.timeline().rectOfBlock({Op::W, 1, 5, 0}).center() + QPoint(8, 0));
        QCOMPARE(document.undoStack()->count(), 1);
        const QString file = walk.folder.filePath(QStringLiteral("walk.json"));
        writeDesign(document.design(), file.toStdString(), true);
        const nlohmann::json predicted = ask({QStringLiteral("predict"), file, QStringLiteral("--json")});
        QVERIFY(predicted.is_object());
        const auto makespan = predicted["makespan_ns"].get<Nanoseconds>();
        QCOMPARE(numbers.value(QStringLiteral("makespan")), durationText(makespan));
        QVERIFY(numbers.value(QStringLiteral("bubble"))
                    .startsWith(percentText(predicted["bubble"]["rate_makespan"].get<double>())));
        QVERIFY(!walk.window->hints().bubble(FirstHints::Drag));

        // Click idle time: the panel says which block it waits for.
        const QRect first = walk.timeline().rectOfBlock({Op::F, 2, 0, 0});
        QTest::mouseClick(walk.timeline().viewport(), Qt::LeftButton, {}, QPoint(first.left() - 8, first.center().y()));
        QVERIFY(document.selection() == (Block{Op::F, 2, 0, 0}));
        QVERIFY2(walk.window->inspector().why().contains(QLatin1String("F1.0")),
                 qPrintable(walk.window->inspector().why()));
        QVERIFY(!walk.window->hints().bubble(FirstHints::Idle));

        // Try what is suggested, if anything is; it keeps its promise.
        SuggestionList& list = walk.window->suggestions();
        QTRY_VERIFY_WITH_TIMEOUT(!list.isSearching(), 60'000);
        const auto better = std::find_if(list.cards().begin(), list.cards().end(),
                                         [](const auto& card) { return card.edit && card.edit->makespan < 0; });
        if (better != list.cards().end()) {
            const Nanoseconds promised = better->edit->makespan;
            QTest::mouseClick(list.tryButtons().at(int(better - list.cards().begin())), Qt::LeftButton);
            QCOMPARE(document.prediction()->metrics.makespan, makespan + promised);
        }

        // Run: no window stays in the way, and the result is in the lanes.
        QVERIFY(walk.runAsleep(2));
        QVERIFY(!QApplication::activeModalWidget());
        QVERIFY(walk.window->topBar().runStatus().isVisible() && !walk.window->topBar().runButton()->isVisible());
        QVERIFY(!walk.window->hints().bubble(FirstHints::Run));
        QTRY_VERIFY_WITH_TIMEOUT(!walk.window->runs().isRunning(), 120'000);
        QVERIFY2(document.overlay(), qPrintable(walk.window->runStrip().state() + walk.window->runStrip().messages()));
        QVERIFY(walk.window->runStrip().state().contains(QLatin1String("run 1.db is laid over the lanes")));
        QCOMPARE(walk.window->runStrip().times().count(), std::size_t(2));
        QVERIFY(walk.window->topBar().runButton()->isVisible() && walk.window->topBar().runButton()->isEnabled());

        // Read the overlay: the same comparison as the command line's, of the same step.
        writeDesign(document.design(), file.toStdString(), true);
        const nlohmann::json compared =
            ask({QStringLiteral("compare"), file, document.overlay()->path, QStringLiteral("--json")});
        QVERIFY(compared.is_object());
        QCOMPARE(compared["makespan"]["predicted_ns"].get<Nanoseconds>(), document.prediction()->metrics.makespan);
        QCOMPARE(compared["makespan"]["measured_ns"].get<Nanoseconds>(),
                 document.overlay()->comparison.measuredMakespan);
        QCOMPARE(compared["blocks"]["unmatched"].get<int>(), 0);
    }

    void returnNeverStartsASecondRun()
    {
        QTemporaryDir folder;
        WalkFixture walk(fakeProgram(folder, "echo '{\"progress\":0.1,\"step\":1,\"steps\":10}' >&2\n"
                                             "while :; do sleep 0.05; done\n"));
        int started = 0;
        connect(&walk.window->runs(), &RunController::started, walk.window.get(), [&started] { ++started; });
        QVERIFY(walk.runAsleep(10));
        QCOMPARE(started, 1);
        QTest::keyClick(QApplication::focusWidget() ? QApplication::focusWidget() : walk.window.get(), Qt::Key_Return);
        QTest::keyClick(walk.window.get(), Qt::Key_R, Qt::ControlModifier);
        QVERIFY(!walk.window->runSettings()->isVisible());
        walk.window->runs().cancel();
        QTRY_VERIFY(!walk.window->runs().isRunning());
        QTest::keyClick(QApplication::focusWidget() ? QApplication::focusWidget() : walk.window.get(), Qt::Key_Return);
        QTest::qWait(0);
        QCOMPARE(started, 1);
    }

    void closingDuringARunAsks()
    {
        QTemporaryDir folder;
        WalkFixture walk(fakeProgram(folder, "while :; do sleep 0.05; done\n"));
        QVERIFY(walk.runAsleep(10));
        QString asked;
        const auto answer = [&asked](QMessageBox::ButtonRole role) {
            QTimer::singleShot(0, qApp, [&asked, role] {
                auto* box = qobject_cast<QMessageBox*>(QApplication::activeModalWidget());
                if (!box)
                    return;
                asked = box->text();
                for (QAbstractButton* button : box->buttons())
                    if (box->buttonRole(button) == role)
                        QTest::mouseClick(button, Qt::LeftButton);
            });
        };
        answer(QMessageBox::RejectRole);
        QVERIFY(!walk.window->close());
        QVERIFY2(asked.contains(QLatin1String("End the run")), qPrintable(asked));
        QVERIFY(walk.window->runs().isRunning());
        answer(QMessageBox::DestructiveRole);
        QVERIFY(walk.window->close());
        QTRY_VERIFY(!walk.window->runs().isRunning()); // also while another window keeps the program open
    }

    void anEditDuringARunIsNoReasonToLoseIt()
    {
        QTemporaryDir folder;
        const QString go = folder.filePath(QStringLiteral("go"));
        WalkFixture walk(fakeProgram(folder, "while [ ! -e '" + go.toUtf8()
                                                 + "' ]; do sleep 0.02; done\n"
                                                   "echo '{\"trace\":\"'\"${8}\"'\"}'\n"));
        QVERIFY(walk.runAsleep(1));
        QVERIFY(!hasErrors(walk.document().apply(UnplaceBlocks{{{Op::W, 0, 7, 0}}})));
        QVERIFY(!writeScript(folder, "go", "").isEmpty());
        QTRY_VERIFY(!walk.window->runs().isRunning());
        QVERIFY2(walk.window->runStrip().state().contains(QLatin1String("before your edits")),
                 qPrintable(walk.window->runStrip().state()));
        QVERIFY(!walk.document().overlay());
        QVERIFY(!QApplication::activeModalWidget()); // nobody has to press anything away
    }
};

PIPEWRIGHT_TEST(TestFirstWalk, QApplication)
#include "tst_firstwalk.moc"
