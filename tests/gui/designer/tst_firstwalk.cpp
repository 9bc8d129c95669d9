// SPDX-License-Identifier: GPL-3.0-or-later
// The first minute as a person has it, by mouse and keys alone: open, drag a W on the first device, accept the remedy,
// ask about idle time, try a suggestion, run with blocks that sleep, read the overlay, switch its sides. What is on
// screen is held against the command line. realwalk.sh does the same in a real window.
#include "core/files/designfile.h"
#include "gui/designer/baseline.h"
#include "gui/designer/designruns.h"
#include "gui/designer/firsthints.h"
#include "gui/designer/hand.h"
#include "gui/designer/mainwindowfixture.h"
#include "gui/designer/sideswitch.h"
#include "gui/designer/topbar.h"
#include "gui/inspector/inspector.h"
#include "gui/inspector/suggestionlist.h"
#include "gui/run/fakeprogram.h"
#include "gui/run/runcontroller.h"
#include "gui/run/runplot.h"
#include "gui/run/runsettings.h"
#include "gui/run/runstrip.h"
#include "gui/timeline/refusalnote.h"
#include "gui/timeline/timelineview.h"
#include "gui/trace/causetable.h"
#include "gui/trace/runerrors.h"
#include "gui/widgets/side.h"
#include "gui/widgets/theme.h"
#include "gui/widgets/words.h"
#include "testmain.h"
#include "testpaths.h"

#include <nlohmann/json.hpp>

#include <QApplication>
#include <QComboBox>
#include <QLabel>
#include <QMessageBox>
#include <QProcess>
#include <QPushButton>
#include <QSpinBox>
#include <QTabBar>
#include <QTabWidget>
#include <QTest>
#include <QTimer>
#include <QToolButton>

#include <functional>

using namespace pipewright;
using pipewright::test::Hand;

namespace {

nlohmann::json ask(const QStringList& words)
{
    QProcess process;
    process.start(QStringLiteral(PIPEWRIGHT_PROGRAM), words);
    process.waitForFinished(60'000);
    return nlohmann::json::parse(process.readAllStandardOutput().toStdString(), nullptr, false);
}

struct WalkFixture {
    Hand hand;
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
        window->resize(hand.isReal() ? screenSize() : QSize(1440, 900));
        window->show();
        (void)QTest::qWaitForWindowActive(window.get());
        if (hand.isReal()) // until the window manager has put it where it stays
            for (QPoint before(-1, -1); before != window->mapToGlobal(QPoint(0, 0)); QTest::qWait(1'500))
                before = window->mapToGlobal(QPoint(0, 0));
    }
    static QSize screenSize() { return QGuiApplication::primaryScreen()->availableSize() - QSize(0, 30); }
    Document& document() { return window->document(); }
    TimelineView& timeline() { return window->timeline(); }

    void drag(QPoint from, QPoint to) { hand.drag(timeline().viewport(), from, to); }
    QString number(const char* name) { return shownNumber(*window, name); }
    QString peakShown() ///< with its device
    {
        const VerdictStrip& strip = window->verdicts();
        const QString value = strip.value(VerdictStrip::Peak), number = value.section(QStringLiteral(" of "), 0, 0);
        const bool ownUnit = number.endsWith(QLatin1Char('B'));
        return number + (ownUnit ? QString() : QChar(0x00A0) + value.section(QChar(0x00A0), -1)) + QLatin1Char(' ')
               + strip.caption(VerdictStrip::Peak).section(QStringLiteral("· "), 1);
    }
    nlohmann::json askPrediction()
    {
        const QString file = folder.filePath(QStringLiteral("walk.json"));
        writeDesign(document().design(), file.toStdString(), true);
        return ask({QStringLiteral("predict"), file, QStringLiteral("--json")});
    }
    /// Makespan, bubble and peak on screen are those of the command line.
    bool saysAsTheCommandLine()
    {
        const nlohmann::json predicted = askPrediction();
        if (!predicted.is_object())
            return false;
        return number("step") == durationText(predicted["makespan_ns"].get<Nanoseconds>())
               && number("bubble") == bubbleText(predicted)
               && peakShown() == peakText(predicted["per_device"], [](const nlohmann::json& device) {
                      return device["peak_bytes"].get<Bytes>();
                  });
    }
    static QString bubbleText(const nlohmann::json& predicted)
    {
        return percentText(predicted["bubble"]["rate_makespan"].get<double>());
    }
    /// "89.6 GiB GPU 3" of the device whose peak is the highest, in the unit in which it is "of 141 GiB".
    using PeakOf = std::function<Bytes(const nlohmann::json& device)>;
    QString peakText(const nlohmann::json& devices, const PeakOf& peakOf)
    {
        const auto fullest = std::max_element(devices.begin(), devices.end(),
                                              [&](const auto& a, const auto& b) { return peakOf(a) < peakOf(b); });
        const int device = (*fullest)["device"].get<int>();
        const Bytes limit = document().design().cluster.devices[static_cast<std::size_t>(device)].memory;
        return QStringLiteral("%1 GPU %2").arg(sizeBeside(peakOf(*fullest), limit)).arg(device);
    }
    void picture(const char* name) ///< of the screen, where a folder is given for them
    {
        if (const QString folder = qEnvironmentVariable("PIPEWRIGHT_PICTURES"); !folder.isEmpty())
            QGuiApplication::primaryScreen()->grabWindow(0).save(
                QStringLiteral("%1/walk-%2.png").arg(folder, QLatin1String(name)));
    }
    /// Run by mouse, so many steps of sleeping blocks by keys, and Return.
    bool runAsleep(int steps)
    {
        hand.click(window->topBar().runButton());
        RunSettings* settings = window->runs().settings();
        if (!settings || !QTest::qWaitForWindowActive(settings))
            return false;
        QComboBox* blocks = nullptr;
        for (QComboBox* field : settings->findChildren<QComboBox*>())
            if (field->accessibleName() == QLatin1String("What blocks do"))
                blocks = field;
        if (!QTest::qWaitFor([&] { return blocks->isVisible() && !settings->choice().backend.isEmpty(); }, 30'000))
            return false;
        hand.click(blocks);
        if (!QTest::qWaitFor([] { return QApplication::activePopupWidget() != nullptr; }))
            return false;
        hand.key(QStringLiteral("Down"));
        hand.key(QStringLiteral("Return"));
        if (!QTest::qWaitFor([] { return QApplication::activePopupWidget() == nullptr; }))
            return false;
        auto* count = settings->findChild<QSpinBox*>();
        hand.click(count, {12, count->height() / 2});
        hand.key(QStringLiteral("ctrl+a"));
        hand.type(QString::number(steps));
        if (!settings->runButton()->isEnabled() || settings->choice().blocks != RunChoice::Blocks::Sleep)
            return false;
        hand.key(QStringLiteral("Return"));
        return QTest::qWaitFor([&] { return window->runs().controller().isRunning() && !settings->isVisible(); });
    }
};

} // namespace

class TestFirstWalk : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void init()
    {
        const bool dark = qEnvironmentVariable("PIPEWRIGHT_THEME") == QLatin1String("dark");
        (dark ? Theme::dark() : Theme::light()).apply(*qApp);
    }

    void aPersonDesignsRunsAndReadsWithinAMinute()
    {
        WalkFixture walk(QStringLiteral(PIPEWRIGHT_PROGRAM));
        Document& document = walk.document();
        QVERIFY(walk.saysAsTheCommandLine());
        QVERIFY(walk.number("step").size() > 3);

        // The first drag a newcomer tries: W0.0 further to the right. It is refused, in the command line's words and
        // with the way out as a button.
        const Block first{Op::W, 0, 0, 0};
        const auto dragIt = [&](const Block& block, const Block& behind) {
            walk.drag(walk.timeline().rectOfBlock(block).center(),
                      walk.timeline().rectOfBlock(behind).center() + QPoint(8, 0));
        };
        const Design opened = document.design();
        dragIt(first, {Op::W, 0, 2, 0});
        auto* note = walk.timeline().findChild<RefusalNote*>();
        QVERIFY(note && QTest::qWaitFor([&] { return note->isVisible(); }));
        walk.picture("1-refused");
        QVERIFY(document.design() == opened);
        auto* remedy = note->findChild<RemedyButton*>();
        QVERIFY(remedy->isVisible());
        QCOMPARE(remedy->text(), QStringLiteral("Allow the first stage to split"));
        Design refused = opened;
        std::vector<Block>& lane = refused.schedule.order[0];
        const auto at = std::find(lane.begin(), lane.end(), first);
        const auto target = std::find(lane.begin(), lane.end(), Block{Op::W, 0, 2, 0});
        QVERIFY(at < target);
        std::rotate(at, at + 1, target + 1);
        const QString file = walk.folder.filePath(QStringLiteral("refused.json"));
        writeDesign(refused, file.toStdString(), true);
        const nlohmann::json findings = ask({QStringLiteral("check"), file, QStringLiteral("--json")});
        const QString why = QString::fromStdString(findings.dump());
        QString onScreen;
        for (const QLabel* label : note->findChildren<QLabel*>())
            onScreen += label->text();
        for (const char* words : {"W0.0", "the first stage may not split, and its W0.0 does not follow at once"}) {
            QVERIFY2(why.contains(QLatin1String(words), Qt::CaseInsensitive), qPrintable(why));
            QVERIFY2(onScreen.contains(QLatin1String(words), Qt::CaseInsensitive), qPrintable(onScreen));
        }
        walk.hand.click(remedy);
        QVERIFY(QTest::qWaitFor([&] { return note->isHidden(); }));
        QCOMPARE(document.undoStack()->count(), 1);
        QVERIFY(document.design().schedule.firstStageMaySplit);
        QVERIFY(document.design().schedule.order == refused.schedule.order);
        QVERIFY(walk.saysAsTheCommandLine());
        walk.picture("2-accepted");

        // What is allowed is just moved; the numbers are the command line's.
        const Block late{Op::W, 3, 0, 0};
        dragIt(late, {Op::F, 3, 4, 0});
        QTRY_COMPARE(document.undoStack()->count(), 2);
        QVERIFY(walk.saysAsTheCommandLine());
        QVERIFY(!walk.window->hints().isShown(FirstHints::Drag));

        // Click idle time: the panel says which block it waits for.
        const QRect waiting = walk.timeline().rectOfBlock({Op::F, 2, 0, 0});
        walk.hand.click(walk.timeline().viewport(), QPoint(waiting.left() - 8, waiting.center().y()));
        QTRY_VERIFY(document.selection() == (Block{Op::F, 2, 0, 0}));
        QVERIFY2(walk.window->inspector().why().contains(QLatin1String("F1.0")),
                 qPrintable(walk.window->inspector().why()));
        QVERIFY(!walk.window->hints().isShown(FirstHints::Idle));

        // Try what is suggested for the block that was moved, and made the step longer; it keeps its promise.
        walk.hand.click(walk.timeline().viewport(), walk.timeline().rectOfBlock(late).center());
        QTRY_VERIFY(document.selection() == late);
        SuggestionList& list = walk.window->suggestions();
        QTRY_VERIFY_WITH_TIMEOUT(!list.isSearching(), 60'000);
        // What other families would give comes in while one reads; it shifts the cards.
        const auto texts = [&list] {
            QStringList all;
            for (const auto& card : list.cards())
                all << card.text;
            return all;
        };
        for (QStringList before; before != texts(); QTest::qWait(1'500))
            before = texts();
        const Nanoseconds makespan = document.prediction()->metrics.makespan;
        const auto better = std::find_if(list.cards().begin(), list.cards().end(),
                                         [](const auto& card) { return card.edit.has_value(); });
        QVERIFY2(better != list.cards().end(), qPrintable(texts().join(QLatin1Char('\n'))));
        const Nanoseconds promised = better->edit->makespan;
        walk.hand.click(list.tryButtons().at(int(better - list.cards().begin())));
        QTRY_COMPARE(document.prediction()->metrics.makespan, makespan + promised);
        QVERIFY(walk.saysAsTheCommandLine());
        walk.picture("3-tried");

        // Run: no window stays in the way, and the result is in the lanes.
        QVERIFY(walk.runAsleep(2));
        QVERIFY(!QApplication::activeModalWidget());
        QVERIFY(walk.window->topBar().runStatus().isVisible() && !walk.window->topBar().runButton()->isVisible());
        QVERIFY(!walk.window->hints().isShown(FirstHints::Run));
        if (walk.hand.isReal() && !qEnvironmentVariableIsEmpty("PIPEWRIGHT_PICTURES")) {
            // A picture with something of the run in it, once it is painted.
            (void)QTest::qWaitFor(
                [&] {
                    return walk.window->runStrip().times().count() > 0 || !walk.window->runs().controller().isRunning();
                },
                60'000);
            QTest::qWait(500);
        }
        walk.picture("4-running");
        QTRY_VERIFY_WITH_TIMEOUT(!walk.window->runs().controller().isRunning(), 120'000);
        QVERIFY2(document.overlay(), qPrintable(walk.window->runStrip().state() + walk.window->runStrip().messages()));
        QVERIFY(walk.window->runStrip().state().contains(QLatin1String("run 1.db is laid over the lanes")));
        QCOMPARE(walk.window->runStrip().times().count(), std::size_t(2));
        QVERIFY(walk.window->topBar().runButton()->isVisible() && walk.window->topBar().runButton()->isEnabled());

        walk.picture("5-ran");

        // Read the overlay on each of its sides: words and numbers of the command line's comparison of that step.
        const QString design = walk.folder.filePath(QStringLiteral("walk.json"));
        writeDesign(document.design(), design.toStdString(), true);
        const nlohmann::json compared =
            ask({QStringLiteral("compare"), design, document.overlay()->path, QStringLiteral("--json")});
        QVERIFY(compared.is_object());
        QCOMPARE(compared["blocks"]["unmatched"].get<int>(), 0);
        const auto predicted = compared["makespan"]["predicted_ns"].get<Nanoseconds>();
        const auto measured = compared["makespan"]["measured_ns"].get<Nanoseconds>();
        QCOMPARE(predicted, document.prediction()->metrics.makespan);
        const nlohmann::json explained =
            ask({QStringLiteral("explain"), document.overlay()->path, QStringLiteral("--json")});
        QVERIFY(explained.is_object());
        // Idle is what no block takes; the records say how long each was.
        const nlohmann::json blocks = ask(
            {QStringLiteral("query"), document.overlay()->path,
             QStringLiteral("SELECT SUM(r.end - r.start) AS busy FROM RECORDS r JOIN TASKS t ON t.taskId = r.taskId "
                            "WHERE t.kind IN ('compute', 'update') AND r.step = %1")
                 .arg(explained["step"].get<int>()),
             QStringLiteral("--json")});
        QVERIFY2(blocks.is_object(), "query");
        const double busy = blocks["rows"][0][0].get<double>();
        const QString idle = percentText(1 - busy / (double(explained["per_device"].size()) * double(measured)));
        const nlohmann::json asPredicted = walk.askPrediction();
        const QString bubble = percentText(asPredicted["bubble"]["rate_makespan"].get<double>());
        const nlohmann::json& devices = compared["per_device"];
        const auto peakOf = [](const char* side) {
            return [side](const nlohmann::json& device) { return device["peak_bytes"][side].get<Bytes>(); };
        };
        QVERIFY(devices[0]["peak_bytes"]["measured"].is_number()); // sleeping blocks have their buffers, too
        const QString peak = walk.peakText(devices, peakOf("predicted"));
        const QString measuredPeak = walk.peakText(devices, peakOf("measured"));
        const QString fullest = measuredPeak.section(QLatin1Char(' '), -2);
        const auto fullestIs = [&](const nlohmann::json& device) {
            return QStringLiteral("GPU %1").arg(device["device"].get<int>()) == fullest;
        };
        const nlohmann::json& ofFullest = *std::find_if(devices.begin(), devices.end(), fullestIs);
        // One difference, whatever side is shown: the run's.
        walk.window->baseline().setAgainst(Baseline::Against::Run);
        const QString difference = signedPercent(double(measured - predicted) / double(predicted));
        const struct {
            Side side;
            const char* words;
            QString makespan, bubble, peak, source;
        } sides[] = {
            {Side::Predicted, "Predicted", durationText(predicted), WalkFixture::bubbleText(asPredicted), peak,
             QStringLiteral("· predicted")},
            {Side::Measured, "Measured", durationText(measured), idle, measuredPeak, QStringLiteral("· measured")},
            {Side::Both, "Both", pairText(durationText(predicted), durationText(measured)), pairText(bubble, idle),
             QStringLiteral("%1 %2").arg(pairOfSizes(ofFullest["peak_bytes"]["predicted"].get<Bytes>(),
                                                     ofFullest["peak_bytes"]["measured"].get<Bytes>()),
                                         fullest),
             QStringLiteral("· measured")},
        };
        for (const auto& each : sides) {
            QToolButton* button = nullptr;
            for (QToolButton* one : walk.window->sideSwitch().findChildren<QToolButton*>())
                if (one->text() == QLatin1String(each.words))
                    button = one;
            QVERIFY(button && button->isVisible() && button->isEnabled());
            walk.hand.click(button);
            QTRY_VERIFY2(document.side() == each.side, each.words);
            QCOMPARE(walk.number("step"), each.makespan);
            QCOMPARE(walk.window->verdicts().change(VerdictStrip::Step), difference);
            QCOMPARE(walk.number("bubble"), each.bubble);
            QCOMPARE(walk.peakShown(), each.peak);
            QVERIFY2(walk.window->inspector().whyHeading().endsWith(each.source),
                     qPrintable(walk.window->inspector().whyHeading()));
            const Block block{Op::F, 2, 0, 0};
            QVERIFY2(walk.timeline().nameOfBlock(block).contains(sideName(each.side) + QLatin1Char(' ')),
                     qPrintable(walk.timeline().nameOfBlock(block)));
            walk.picture(each.words);
        }
        // The causes are those of the command line, and the last row is the whole difference.
        const CauseTable* shown = walk.window->runErrors().causes();
        const auto written = [](Nanoseconds value) {
            return value == 0 ? QStringLiteral("0 ns") : signedDuration(value);
        };
        QVERIFY(!explained["causes"].empty());
        for (std::size_t i = 0; i < explained["causes"].size(); ++i)
            QCOMPARE(shown->topLevelItem(int(i))->text(1),
                     written(explained["causes"][i]["contribution_ns"].get<Nanoseconds>()));
        const QTreeWidgetItem* whole = shown->topLevelItem(shown->topLevelItemCount() - 1);
        QCOMPARE(whole->text(0), QStringLiteral("all together"));
        QCOMPARE(whole->text(1), written(explained["makespan"]["measured_ns"].get<Nanoseconds>()
                                         - explained["makespan"]["predicted_ns"].get<Nanoseconds>()));
        QCOMPARE(whole->text(1), written(measured - predicted));
        // And by key.
        walk.hand.click(walk.timeline().viewport(), walk.timeline().rectOfBlock({Op::F, 2, 0, 0}).center());
        walk.hand.key(QStringLiteral("1"));
        QTRY_VERIFY(document.side() == Side::Predicted);
        QCOMPARE(walk.number("step"), durationText(predicted));

        // Tab leads through the panel into the causes. That chooses nothing, and Delete there deletes no block, not
        // even those that a chosen cause has selected.
        CauseTable* causes = walk.window->runErrors().causes();
        QTabBar* tabs = walk.window->answers().tabBar();
        walk.hand.click(tabs, tabs->tabRect(1).center());
        for (int presses = 0; presses < 80 && !causes->hasFocus(); ++presses)
            walk.hand.key(QStringLiteral("Tab"));
        QVERIFY(causes->hasFocus());
        QVERIFY(document.selection() == (Block{Op::F, 2, 0, 0}));
        const Design before = document.design();
        walk.hand.key(QStringLiteral("Delete"));
        QVERIFY(document.design() == before);
        walk.hand.key(QStringLiteral("Down"));
        QTRY_VERIFY(walk.timeline().selectedBlocks().size() > 1);
        walk.hand.key(QStringLiteral("Delete"));
        QTest::qWait(100);
        QVERIFY(document.design() == before);
        QVERIFY(causes->hasFocus());
    }

    /// Run, the small GPT, Return: the schedule that was drawn has trained, and one undo brings the large model back.
    void aSmallGptTrainsWhatWasDrawnForALargeModel()
    {
        WalkFixture walk(QStringLiteral(PIPEWRIGHT_PROGRAM));
        Document& document = walk.document();
        const Design opened = document.design();
        walk.hand.click(walk.window->topBar().runButton());
        RunSettings* settings = walk.window->runs().settings();
        QVERIFY(settings && QTest::qWaitForWindowActive(settings));
        QTRY_VERIFY_WITH_TIMEOUT(!settings->verdict().isEmpty() || settings->runButton()->isEnabled(), 30'000);
        if (settings->runButton()->isEnabled())
            QSKIP("This machine has room for Llama-3 8B with its optimizer.");
        walk.hand.click(settings->smallButton());
        QTRY_VERIFY2(settings->runButton()->isEnabled(), qPrintable(settings->verdict()));
        QVERIFY(document.design().schedule.order == opened.schedule.order);
        walk.hand.key(QStringLiteral("Return"));
        QTRY_VERIFY(walk.window->runs().controller().isRunning());
        QTRY_VERIFY_WITH_TIMEOUT(!walk.window->runs().controller().isRunning(), 120'000);
        QVERIFY2(document.overlay(), qPrintable(walk.window->runStrip().state() + walk.window->runStrip().messages()));
        QCOMPARE(walk.number("gradients"), QStringLiteral("bit-equal ✓"));
        document.undoStack()->undo();
        QVERIFY(document.design() == opened);
    }

    void returnNeverStartsASecondRun()
    {
        QTemporaryDir folder;
        WalkFixture walk(fakeProgram(folder, "echo '{\"progress\":0.1,\"step\":1,\"steps\":10}' >&2\n"
                                             "while :; do sleep 0.05; done\n"));
        int started = 0;
        connect(&walk.window->runs().controller(), &RunController::started, walk.window.get(),
                [&started] { ++started; });
        QVERIFY(walk.runAsleep(10));
        QCOMPARE(started, 1);
        QTest::keyClick(QApplication::focusWidget() ? QApplication::focusWidget() : walk.window.get(), Qt::Key_Return);
        QTest::keyClick(walk.window.get(), Qt::Key_R, Qt::ControlModifier);
        QVERIFY(!walk.window->runs().settings()->isVisible());
        walk.window->runs().controller().cancel();
        QTRY_VERIFY(!walk.window->runs().controller().isRunning());
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
        QVERIFY(walk.window->runs().controller().isRunning());
        answer(QMessageBox::DestructiveRole);
        QVERIFY(walk.window->close());
        QTRY_VERIFY(!walk.window->runs().controller().isRunning()); // also while another window keeps the program open
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
        QTRY_VERIFY(!walk.window->runs().controller().isRunning());
        QVERIFY2(walk.window->runStrip().state().contains(QLatin1String("before your edits")),
                 qPrintable(walk.window->runStrip().state()));
        QVERIFY(!walk.document().overlay());
        QVERIFY(!QApplication::activeModalWidget()); // nobody has to press anything away
    }
};

PIPEWRIGHT_TEST(TestFirstWalk, QApplication)
#include "tst_firstwalk.moc"
