// SPDX-License-Identifier: GPL-3.0-or-later
// The dialogs for a new schedule and for a run, with the child process that a run is.
#include "gui/designer/designer.h"
#include "gui/designer/diagnosticlist.h"
#include "gui/designer/shortcuts.h"
#include "gui/designer/windowactions.h"
#include "gui/model/newschedule.h"
#include "gui/run/rundialog.h"
#include "testmain.h"

#include <QAction>
#include <QApplication>
#include <QComboBox>
#include <QDialogButtonBox>
#include <QFile>
#include <QLabel>
#include <QListWidget>
#include <QPlainTextEdit>
#include <QProgressBar>
#include <QPushButton>
#include <QSignalSpy>
#include <QSpinBox>
#include <QTemporaryDir>
#include <QTest>
#include <QTreeWidget>
#include <QUndoStack>

#include <algorithm>
#include <csignal>

using namespace pipewright;

namespace {

template<typename Widget>
Widget* named(QWidget& parent, const char* accessibleName)
{
    for (Widget* child : parent.findChildren<Widget*>()) {
        if (child->accessibleName() == QLatin1String(accessibleName))
            return child;
    }
    return nullptr;
}

QPushButton* button(QWidget& parent, const QString& text)
{
    for (QPushButton* child : parent.findChildren<QPushButton*>()) {
        if (child->text().contains(text))
            return child;
    }
    return nullptr;
}

/// A program in place of pipewright: answers `devices` and does `body` for `run`.
QString fakeProgram(const QTemporaryDir& folder, const QByteArray& body)
{
    const QString path = folder.filePath(QStringLiteral("fake.sh"));
    QFile file(path);
    if (!file.open(QIODevice::WriteOnly))
        return {};
    file.write("#!/bin/sh\nif [ \"$1\" = devices ]; then\n"
               "echo '{\"host\":{\"available\":true,\"name\":\"Test CPU\",\"threads\":4},"
               "\"cuda\":{\"available\":false,\"reason\":\"no driver here\"}}'\nexit 0\nfi\n");
    file.write(body);
    file.close();
    file.setPermissions(QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
    return path;
}

struct RunFixture {
    QTemporaryDir folder;
    RunDialog dialog;
    explicit RunFixture(const QByteArray& body)
        : dialog(exampleDesign(), folder.filePath(QStringLiteral("runs")), fakeProgram(folder, body))
    {
        dialog.show();
    }
    QPushButton* run() { return button(dialog, QStringLiteral("Run")); }
    QString state() { return named<QLabel>(dialog, "State of the run")->text(); }
    bool start()
    {
        if (!QTest::qWaitFor([this] { return run()->isEnabled(); }, 20000))
            return false;
        QTest::mouseClick(run(), Qt::LeftButton);
        return true;
    }
};

} // namespace

class TestDialogs : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void aNewScheduleIsThePreviewedOne()
    {
        NewScheduleDialog dialog;
        dialog.show();
        auto* family = named<QComboBox>(dialog, "Family");
        family->setCurrentIndex(family->findData(QStringLiteral("1f1b")));
        auto* microbatches = named<QSpinBox>(dialog, "Microbatches");
        microbatches->setFocus();
        microbatches->selectAll();
        QTest::keyClicks(microbatches, QStringLiteral("12"));
        QTest::keyClick(microbatches, Qt::Key_Tab);
        QPushButton* create = button(dialog, QStringLiteral("Create"));
        QTRY_VERIFY(create->isEnabled());
        QTest::mouseClick(create, Qt::LeftButton);
        QCOMPARE(dialog.result(), int(QDialog::Accepted));
        QCOMPARE(dialog.design().schedule.family, std::string("1f1b"));
        QCOMPARE(dialog.design().schedule.microbatches, 12);
        QCOMPARE(dialog.design().schedule.devices(), 4);
        QVERIFY(dialog.design().workload);
    }

    void workersArePlacedInEveryWay()
    {
        NewScheduleDialog dialog;
        dialog.show();
        auto* family = named<QComboBox>(dialog, "Family");
        auto* layout = named<QComboBox>(dialog, "Where the workers' blocks run");
        auto* workers = named<QSpinBox>(dialog, "Workers");
        QVERIFY(!layout->isVisible());
        family->setCurrentIndex(family->findData(QStringLiteral("cdp-v2")));
        QVERIFY(layout->isVisible() && workers->isVisible() && !named<QSpinBox>(dialog, "Pieces")->isVisible());
        QPushButton* create = button(dialog, QStringLiteral("Create"));
        const auto place = [&](WorkerLayout where, int devices) {
            layout->setCurrentIndex(layout->findData(int(where)));
            named<QSpinBox>(dialog, "Devices")->setValue(devices);
        };
        place(WorkerLayout::Sharded, 4);
        QTRY_VERIFY(create->isEnabled());
        QVERIFY(dialog.design().schedule.shardedStates);
        QCOMPARE(dialog.design().schedule.stages(), 4);
        place(WorkerLayout::Triangle, 10);
        QTRY_VERIFY(create->isEnabled());
        QCOMPARE(dialog.design().schedule.devices(), 10);
        QCOMPARE(dialog.design().schedule.stages(), 4);
        // One device does not say how many work on it.
        place(WorkerLayout::Single, 1);
        QTRY_VERIFY(named<QLabel>(dialog, "What is wrong")->text().contains(QLatin1String("--workers")));
        QVERIFY(!create->isEnabled());
        workers->setValue(4);
        QTRY_VERIFY(create->isEnabled());
        QCOMPARE(dialog.design().schedule.devices(), 1);
        QCOMPARE(dialog.design().schedule.stages(), 4);
        family->setCurrentIndex(family->findData(QStringLiteral("1f1b")));
        QVERIFY(!layout->isVisible());
    }

    void aTableOfLayersIsAModel()
    {
        QTemporaryDir folder;
        const QString path = folder.filePath(QStringLiteral("mine.csv"));
        QFile file(path);
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write("layer,forward,input_grad,weight_grad,saved,parameters,output\n");
        for (const char* layer : {"a", "b", "c", "d"})
            file.write(QByteArray(layer) + ",1ms,1ms,1ms,1KiB,1KiB,1KiB\n");
        file.close();
        NewScheduleDialog dialog;
        dialog.chooseModelFile(path);
        dialog.show();
        QPushButton* create = button(dialog, QStringLiteral("Create"));
        QTRY_VERIFY(create->isEnabled());
        QCOMPARE(dialog.design().workload->shape.name, std::string("mine"));
        QCOMPARE(dialog.design().layersPerStage, std::vector<int>(4, 1));
        QVERIFY(!named<QSpinBox>(dialog, "Sequence length")->isEnabled());
    }

    void anImpossibleScheduleCannotBeCreatedAndSaysWhy()
    {
        NewScheduleDialog dialog;
        dialog.show();
        named<QSpinBox>(dialog, "Devices")->setValue(300); // more stages than the model has layers
        QPushButton* create = button(dialog, QStringLiteral("Create"));
        QTRY_VERIFY(!named<QLabel>(dialog, "What is wrong")->text().isEmpty());
        QVERIFY(!create->isEnabled());
        named<QSpinBox>(dialog, "Devices")->setValue(4);
        QTRY_VERIFY(create->isEnabled());
        QVERIFY(named<QLabel>(dialog, "What is wrong")->text().isEmpty());
    }

    void aRunShowsItsProgressAndHandsOverTheTrace()
    {
        RunFixture fixture(
            "echo '{\"progress\":0.5,\"step\":5,\"steps\":10,\"loss\":2.25,\"eta_ns\":7000000000}' >&2\n"
            "echo '{\"gradient_check\":{\"bit_equal\":true,\"max_relative_error\":0.0},\"trace\":\"'\"${8}\"'\"}'\n");
        QStringList states;
        connect(&fixture.dialog.process(), &RunProcess::progressed, &fixture.dialog,
                [&states, &dialog = fixture.dialog] { states << named<QLabel>(dialog, "State of the run")->text(); });
        QSignalSpy finished(&fixture.dialog, &RunDialog::runFinished);
        QVERIFY(fixture.start());
        QTRY_COMPARE(finished.count(), 1);
        QCOMPARE(states, QStringList{QStringLiteral("step 5 of 10 · about 7\u00a0s left")});
        QCOMPARE(named<QLabel>(fixture.dialog, "Loss")->text(), QStringLiteral("loss 2.2500"));
        QCOMPARE(named<QProgressBar>(fixture.dialog, "Progress")->value(), 1000);
        QVERIFY(fixture.state().contains(QLatin1String("bit-equal")));
        QVERIFY(fixture.dialog.result().bitEqual);
        QVERIFY(fixture.dialog.result().trace.endsWith(QLatin1String(".db")));
    }

    void theBackendThatIsOffSaysWhyAndCannotBeChosen()
    {
        RunFixture fixture("exit 0\n");
        auto* backend = named<QComboBox>(fixture.dialog, "Backend");
        QTRY_COMPARE(backend->count(), 2);
        QCOMPARE(backend->currentData().toString(), QStringLiteral("host"));
        QVERIFY(!(backend->model()->flags(backend->model()->index(1, 0)) & Qt::ItemIsEnabled));
        QCOMPARE(backend->itemData(1, Qt::ToolTipRole).toString(), QStringLiteral("no driver here"));
    }

    /// Before anything is run: which device asks for too much, and what would do.
    void gpusThatADesignCannotHaveTurnTheBackendOffForIt()
    {
        const QByteArray devices = "{\"cuda\":{\"available\":true,\"gpus\":[{\"name\":\"GPU\",\"multiprocessors\":132,"
                                   "\"compute_capability\":\"9.0\"}]}}";
        const BackendChoice cuda = parseBackends(devices).at(0);
        QCOMPARE(cuda.gpus.size(), std::size_t{1});
        Design design = exampleDesign();
        const auto each = [&](int multiprocessors) {
            design.cluster.gpus.assign(static_cast<std::size_t>(design.schedule.devices()), {0, multiprocessors});
            return forDesign(cuda, design);
        };
        QVERIFY(forDesign(cuda, design).available);
        QVERIFY(each(8).available && each(8).description.isEmpty());
        const BackendChoice refused = each(132);
        QVERIFY(!refused.available);
        QVERIFY2(
            refused.description.contains(QLatin1String("multiprocessors of GPU 0, which has 132 (give them at most ")),
            qPrintable(refused.description));
    }

    void cancelEndsTheChildByInterrupting()
    {
        RunFixture fixture("trap 'echo interrupted >&2; exit 1' INT\n"
                           "echo '{\"progress\":0.1,\"step\":1,\"steps\":10}' >&2\n"
                           "while :; do sleep 0.05; done\n");
        QSignalSpy progressed(&fixture.dialog.process(), &RunProcess::progressed);
        QVERIFY(fixture.start());
        QTRY_COMPARE(progressed.count(), 1);
        QPushButton* cancel = button(fixture.dialog, QStringLiteral("Cancel"));
        QVERIFY(cancel);
        QTest::mouseClick(cancel, Qt::LeftButton);
        QTRY_VERIFY(!fixture.dialog.process().isRunning());
        QVERIFY(fixture.dialog.isVisible());
        QCOMPARE(fixture.dialog.result().kind, ChildResult::Cancelled);
        QVERIFY(fixture.dialog.result().messages.contains(QStringLiteral("interrupted")));
        QVERIFY(fixture.state().startsWith(QLatin1String("Cancelled")));
        QVERIFY(fixture.run()->isEnabled());
    }

    void aChildThatIgnoresTheInterruptIsKilledAfterTheGrace()
    {
        RunFixture fixture("trap '' INT\n"
                           "echo '{\"progress\":0.1}' >&2\n"
                           "while :; do sleep 0.05; done\n");
        fixture.dialog.process().setGrace(50);
        QSignalSpy progressed(&fixture.dialog.process(), &RunProcess::progressed);
        QVERIFY(fixture.start());
        QTRY_COMPARE(progressed.count(), 1);
        QTest::keyClick(&fixture.dialog, Qt::Key_Escape);
        QTRY_VERIFY(!fixture.dialog.process().isRunning());
        QCOMPARE(fixture.dialog.result().kind, ChildResult::Cancelled);
    }

    void aCrashOfTheChildIsTold()
    {
        RunFixture fixture("echo 'run.json:3: error: no such device' >&2\nkill -SEGV $$\n");
        QVERIFY(fixture.start());
        QTRY_VERIFY(fixture.state().contains(QLatin1String("unexpectedly")));
        QCOMPARE(fixture.dialog.result().kind, ChildResult::Failed);
        QVERIFY(named<QPlainTextEdit>(fixture.dialog, "Messages of the run")
                    ->toPlainText()
                    .contains(QLatin1String("no such device")));
        QVERIFY(fixture.run()->isEnabled());
    }

    void differingGradientsAreDoneButRed()
    {
        RunFixture fixture(
            "echo '{\"gradient_check\":{\"bit_equal\":false,\"max_relative_error\":0.25},\"trace\":\"x.db\"}'\nexit "
            "1\n");
        QVERIFY(fixture.start());
        QTRY_VERIFY(fixture.state().contains(QLatin1String("differ")));
        QCOMPARE(fixture.dialog.result().kind, ChildResult::Done);
        QCOMPARE(fixture.dialog.result().maxRelativeError, 0.25);
        QVERIFY(!fixture.dialog.result().gradientsHold);
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
                           "\"trace\":\"x.db\"}'\n")
                .arg(error)
                .toUtf8());
        QVERIFY(fixture.start());
        QTRY_VERIFY(fixture.state().contains(QLatin1String("differ")));
        QCOMPARE(fixture.dialog.result().gradientsHold, holds);
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

    void conflictsAreListedAndSelectTheirBlock()
    {
        Document document;
        document.reset(exampleDesign());
        DiagnosticList dialog(document);
        dialog.show();
        QCOMPARE(dialog.list()->count(), int(document.diagnostics().size()));
        Design broken = document.design();
        std::swap(broken.schedule.order[1].front(), broken.schedule.order[1].back()); // backward before forward
        document.replaceDesign(broken, QStringLiteral("Break it"));
        QVERIFY(hasErrors(document.diagnostics()));
        QCOMPARE(dialog.list()->count(), int(document.diagnostics().size()));
        dialog.list()->setCurrentRow(0);
        QVERIFY(document.selection() == blockNamedIn(document.diagnostics().front()));
        QVERIFY(blockNamedIn({Severity::Error, "device 1, position 3 (B0.3)", "x", ""}) == (Block{Op::B, 0, 3, 0}));
        QVERIFY(!blockNamedIn({Severity::Error, "costs.forward", "negative", ""}));
    }

    void shortcutsAreListedFromTheActions()
    {
        QWidget window;
        QUndoStack stack;
        WindowActions actions(&stack, &window);
        ShortcutList dialog(actions.groups());
        QStringList texts;
        for (int i = 0; i < dialog.list()->topLevelItemCount(); ++i) {
            for (int row = 0; row < dialog.list()->topLevelItem(i)->childCount(); ++row)
                texts << dialog.list()->topLevelItem(i)->child(row)->text(0);
        }
        for (const QAction* action : window.actions()) {
            if (!action->shortcuts().isEmpty())
                QVERIFY2(texts.contains(action->text()), qPrintable(action->text()));
        }
    }

    void noTwoActionsOfTheWindowShareAShortcut()
    {
        QWidget window;
        QUndoStack stack;
        WindowActions actions(&stack, &window);
        QList<QKeySequence> keys;
        for (const QAction* action : window.actions())
            keys << action->shortcuts();
        std::sort(keys.begin(), keys.end());
        QVERIFY(std::adjacent_find(keys.begin(), keys.end()) == keys.end());
    }
};

PIPEWRIGHT_TEST(TestDialogs, QApplication)
#include "tst_dialogs.moc"
