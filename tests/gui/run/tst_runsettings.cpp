// SPDX-License-Identifier: GPL-3.0-or-later
// What is said before a run starts: which backends are off and why, what does not fit, and with what it would.
#include "core/design/newdesign.h"
#include "core/families/family.h"
#include "core/predict/predict.h"
#include "core/presets/presets.h"
#include "gui/designer/designer.h"
#include "gui/run/fakeprogram.h"
#include "gui/run/runsettings.h"
#include "gui/run/smalldesign.h"
#include "testmain.h"

#include <QApplication>
#include <QCheckBox>
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QPushButton>
#include <QSettings>
#include <QSignalSpy>
#include <QSpinBox>
#include <QTest>

using namespace pipewright;

namespace {

template<typename Widget>
Widget* settingNamed(QWidget& parent, const char* accessibleName)
{
    for (Widget* child : parent.findChildren<Widget*>())
        if (child->accessibleName() == QLatin1String(accessibleName))
            return child;
    return nullptr;
}

struct Settings {
    QTemporaryDir folder;
    std::unique_ptr<RunSettings> dialog;

    explicit Settings(const QByteArray& memory = "1000000000000", bool torch = false,
                      const Design& design = exampleDesign())
    {
        RunChoice choice;
        choice.python = fakePython(folder, torch);
        dialog = std::make_unique<RunSettings>(fakeProgram(folder, "exit 0\n", memory), choice);
        show(design);
        dialog->show();
        (void)QTest::qWaitFor([this] { return backend()->count() == 3; }, 20'000);
    }
    void show(const Design& design)
    {
        std::vector<Bytes> peaks;
        for (const DeviceMetrics& device : predict(design).metrics.devices)
            peaks.push_back(device.peakBytes);
        dialog->setDesign(std::make_shared<const Design>(design), peaks);
    }
    QComboBox* backend() { return settingNamed<QComboBox>(*dialog, "Backend"); }
    QComboBox* blocks() { return settingNamed<QComboBox>(*dialog, "What blocks do"); }
    bool isOn(int row) { return backend()->model()->flags(backend()->model()->index(row, 0)) & Qt::ItemIsEnabled; }
};

} // namespace

class TestRunSettings : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void theBackendThatIsOffSaysWhyAndCannotBeChosen()
    {
        Settings settings;
        QCOMPARE(settings.backend()->currentData().toString(), QStringLiteral("host"));
        QVERIFY(settings.isOn(0) && !settings.isOn(1) && !settings.isOn(2));
        QCOMPARE(settings.backend()->itemData(1, Qt::ToolTipRole).toString(), QStringLiteral("no driver here"));
        QVERIFY(settings.backend()->itemText(2).startsWith(QLatin1String("torch")));
        QVERIFY(settings.backend()->itemData(2, Qt::ToolTipRole).toString().contains(QLatin1String("has no PyTorch")));
    }

    /// The program's own answer is about another Python than the one that is chosen in the dialog.
    void torchIsListedOnceOfThePythonThatIsChosen()
    {
        const std::vector<BackendChoice> choices =
            parseBackends("{\"host\":{\"available\":true},\"torch\":{\"available\":false,\"reason\":\"none\"}}");
        QCOMPARE(choices.size(), std::size_t{1});
        QCOMPARE(choices.front().name, QStringLiteral("host"));
    }

    void aPythonThatIsChosenWhileAnotherIsAskedIsTheOneThatAnswers()
    {
        const QTemporaryDir folder;
        BackendQuery query;
        std::vector<BackendChoice> backends;
        connect(&query, &BackendQuery::ready, this, [&](const std::vector<BackendChoice>& all) { backends = all; });
        const QString slow = writeScript(folder, "python-slow", "exec sleep 60\n");
        query.start(fakeProgram(folder, "exit 0\n"), slow);
        query.start({}, fakePython(folder, false));
        query.start({}, slow);
        query.start({}, fakePython(folder, true)); // all while the first is running
        QTRY_VERIFY_WITH_TIMEOUT(!backends.empty(), 20'000);
        QCOMPARE(backends.back().name, QStringLiteral("torch"));
        QVERIFY2(backends.back().available, qPrintable(backends.back().description));
        QCOMPARE(query.python(), fakePython(folder, true));
    }

    /// Before anything is run: which device asks for too much, and what would do.
    void gpusThatADesignCannotHaveTurnTheBackendOffForIt()
    {
        const QByteArray devices = "{\"cuda\":{\"available\":true,\"gpus\":[{\"name\":\"GPU\",\"multiprocessors\":132,"
                                   "\"compute_capability\":\"9.0\"}]}}";
        const BackendChoice cuda = parseBackends(devices).at(0);
        QCOMPARE(cuda.description, QString("GPU"));
        QCOMPARE(cuda.gpus.size(), std::size_t{1});
        Design design = exampleDesign();
        const auto each = [&](int multiprocessors) {
            design.cluster.gpus.assign(static_cast<std::size_t>(design.schedule.devices()), {0, multiprocessors});
            return forDesign(cuda, design);
        };
        QVERIFY(forDesign(cuda, design).available);
        QVERIFY(each(8).available && each(8).description == cuda.description);
        const BackendChoice refused = each(132);
        QVERIFY(!refused.available);
        QVERIFY2(
            refused.description.contains(QLatin1String("multiprocessors of GPU 0, which has 132 (give them at most ")),
            qPrintable(refused.description));
    }

    void aModelTooLargeForTheMachineIsSaidBeforeRunWithWhatWouldFit()
    {
        Settings settings("16000000000"); // 16 GB, and the example wants some 300 GiB
        QVERIFY(!settings.dialog->runButton()->isEnabled());
        QVERIFY2(settings.dialog->verdict().contains(QStringLiteral("this machine: 4 devices would hold 305\u00a0GiB")),
                 qPrintable(settings.dialog->verdict()));
        QVERIFY(settings.dialog->verdict().contains(QLatin1String("sleep")));
        QVERIFY(settings.dialog->remedyButton()->isVisible());
        QTest::mouseClick(settings.dialog->remedyButton(), Qt::LeftButton);
        QVERIFY(settings.dialog->runButton()->isEnabled());
        QVERIFY(!settings.dialog->remedyButton()->isVisible() && !settings.dialog->smallButton()->isVisible());
        const RunChoice choice = settings.dialog->choice();
        QVERIFY(choice.blocks == RunChoice::Blocks::Sleep);
        QCOMPARE(choice.memoryScale, 0.01);
        QVERIFY2(settings.dialog->verdict().contains(QLatin1String("1/100 of the design's bytes")),
                 qPrintable(settings.dialog->verdict()));
        const QStringList words = choice.request().arguments();
        QCOMPARE(words.at(words.indexOf(QStringLiteral("--maths")) + 1), QStringLiteral("timed"));
        QCOMPARE(words.at(words.indexOf(QStringLiteral("--memory-scale")) + 1).toDouble(), 0.01);
        QVERIFY(!words.contains(QStringLiteral("--data")));
    }

    void aModelTooLargeCanBeReplacedByASmallOneThatTrains()
    {
        Settings settings("16000000000");
        QVERIFY(settings.dialog->smallButton()->isVisible());
        connect(settings.dialog.get(), &RunSettings::smallDesignWanted, this,
                [&] { settings.show(smallDesign(exampleDesign())); });
        QTest::mouseClick(settings.dialog->smallButton(), Qt::LeftButton);
        QVERIFY2(settings.dialog->runButton()->isEnabled(), qPrintable(settings.dialog->verdict()));
        QVERIFY(settings.dialog->choice().blocks == RunChoice::Blocks::Train);
        QVERIFY(!settings.dialog->smallButton()->isVisible() && !settings.dialog->remedyButton()->isVisible());
    }

    void whereTheSmallOneIsTooLargeNothingSmallerIsOffered()
    {
        Settings settings("16000000", false, smallDesign(exampleDesign()));
        QVERIFY2(settings.dialog->verdict().contains(QStringLiteral("this machine: 4 devices would hold")),
                 qPrintable(settings.dialog->verdict()));
        QVERIFY(settings.dialog->remedyButton()->isVisible());
        QVERIFY(!settings.dialog->smallButton()->isVisible());
    }

    void whatFitsTrains()
    {
        Settings settings("16000000000", false, smallDesign(exampleDesign()));
        QVERIFY2(settings.dialog->runButton()->isEnabled(), qPrintable(settings.dialog->verdict()));
        QVERIFY(settings.dialog->choice().blocks == RunChoice::Blocks::Train);
        const QStringList words = settings.dialog->choice().request().arguments();
        QCOMPARE(words.at(words.indexOf(QStringLiteral("--maths")) + 1), QStringLiteral("training"));
    }

    void aDesignWithoutAModelCanSleepOrTakeASmallOne()
    {
        Design design;
        design.schedule = makeSchedule("1f1b", FamilyParameters{});
        design.costs = uniformCosts({1'000'000, 1'000'000, 1'000'000, 0, 1 << 20, 1 << 19, false}, 4, 1);
        Settings settings("1000000000000", false, design);
        QVERIFY(!settings.dialog->runButton()->isEnabled());
        QVERIFY2(settings.dialog->verdict().contains(QLatin1String("no model")),
                 qPrintable(settings.dialog->verdict()));
        QVERIFY(settings.dialog->smallButton()->isVisible());
        QTest::mouseClick(settings.dialog->remedyButton(), Qt::LeftButton);
        QVERIFY(settings.dialog->runButton()->isEnabled());
    }

    void pyTorchHasItsOwnFieldsAndNeedsAModule()
    {
        Settings settings("1000000000000", true);
        QVERIFY(settings.isOn(2));
        QVERIFY(settings.backend()->itemData(2, Qt::ToolTipRole).toString().contains(QLatin1String("PyTorch 2.4.1")));
        auto* module = settingNamed<QLineEdit>(*settings.dialog, "Module");
        QVERIFY(!module->isVisible());
        settings.backend()->setCurrentIndex(2);
        QVERIFY(module->isVisible() && !settings.blocks()->isVisible());
        QVERIFY(!settings.dialog->runButton()->isEnabled());
        // Beside the field that lacks it, and nowhere else.
        auto* aboutModule = settingNamed<QLabel>(*settings.dialog, "About the module");
        QVERIFY(aboutModule && aboutModule->isVisible()
                && aboutModule->text().contains(QLatin1String("FILE.py:build")));
        QVERIFY(settings.dialog->verdict().isEmpty());
        module->setText(QStringLiteral("mine.py:build"));
        QVERIFY2(settings.dialog->runButton()->isEnabled(), qPrintable(settings.dialog->verdict()));
        QStringList words = settings.dialog->choice().request().arguments();
        QCOMPARE(words.at(words.indexOf(QStringLiteral("--backend")) + 1), QStringLiteral("torch"));
        QCOMPARE(words.at(words.indexOf(QStringLiteral("--module")) + 1), QStringLiteral("mine.py:build"));
        // Which PyTorch's ranks refuse; and their number, which is the design's.
        for (const char* other : {"--maths", "--transport", "--memory-scale", "--ranks"})
            QVERIFY(!words.contains(QLatin1String(other)));
        QVERIFY(!words.contains(QStringLiteral("--replicas")) && !words.contains(QStringLiteral("--record")));
        const auto check = [&](const char* part, bool on) {
            for (QCheckBox* box : settings.dialog->findChildren<QCheckBox*>())
                if (box->text().contains(QLatin1String(part)))
                    box->setChecked(on);
        };
        check("PyTorch's profiler", true);
        words = settings.dialog->choice().request().arguments();
        QCOMPARE(words.at(words.indexOf(QStringLiteral("--record")) + 1), QStringLiteral("kernels"));
        check("PyTorch's profiler", false);
        // Copies of the pipeline, which stages without a module have no gradients for.
        auto* replicas = settingNamed<QSpinBox>(*settings.dialog, "Replicas");
        QVERIFY(replicas->isVisible());
        replicas->setValue(2);
        QVERIFY2(settings.dialog->runButton()->isEnabled(), qPrintable(settings.dialog->verdict()));
        words = settings.dialog->choice().request().arguments();
        QCOMPARE(words.at(words.indexOf(QStringLiteral("--replicas")) + 1), QStringLiteral("2"));
        check("no module", true);
        QVERIFY(!settings.dialog->runButton()->isEnabled());
        auto* aboutReplicas = settingNamed<QLabel>(*settings.dialog, "About Replicas");
        QVERIFY2(aboutReplicas->isVisible() && aboutReplicas->text().contains(QLatin1String("gradients to share")),
                 qPrintable(aboutReplicas->text()));
        QVERIFY(!aboutModule->isVisible());
        replicas->setValue(1);
        words = settings.dialog->choice().request().arguments();
        QVERIFY(words.contains(QStringLiteral("--synthetic-stages")) && !words.contains(QStringLiteral("--module")));
        // What was profiled is what is offered next.
        settings.backend()->setCurrentIndex(0);
        settings.dialog->setModule(QStringLiteral("profiled.py:build"), settings.dialog->choice().python);
        words = settings.dialog->choice().request().arguments();
        QCOMPARE(words.at(words.indexOf(QStringLiteral("--backend")) + 1), QStringLiteral("torch"));
        QCOMPARE(words.at(words.indexOf(QStringLiteral("--module")) + 1), QStringLiteral("profiled.py:build"));
    }

    void theDialogCutsNoLineAndKeepsItsWidth()
    {
        Settings settings("16000000000", true); // more reasons than it has lines of its own
        const int width = settings.dialog->width();
        QString cut;
        const auto isWhole = [&] {
            cut.clear();
            for (const QLabel* label : settings.dialog->findChildren<QLabel*>()) {
                const bool wraps = label->wordWrap();
                const int high = wraps ? label->heightForWidth(label->width()) : label->sizeHint().height();
                if (label->isVisible()
                    && (high > label->height() || (!wraps && label->sizeHint().width() > label->width())))
                    cut = label->text();
            }
            return cut.isEmpty();
        };
        const auto isLaidOut = [&] {
            for (const QWidget* field : settings.dialog->findChildren<QWidget*>())
                if (field->isVisible() && !field->accessibleName().isEmpty() && field->height() < 8)
                    cut = field->accessibleName();
            return cut.isEmpty();
        };
        for (const int blocks : {1, 2, 0})
            for (const int backend : {2, 0}) { // PyTorch, whose rows are others, and back
                settings.backend()->setCurrentIndex(backend);
                settings.blocks()->setCurrentIndex(blocks);
                QVERIFY2(QTest::qWaitFor([&] { return isWhole() && isLaidOut(); }, 5'000), qPrintable(cut));
                QCOMPARE(settings.dialog->width(), width);
            }
    }

    void whatPyTorchCannotRunIsSaidBefore()
    {
        FamilyParameters parameters;
        Design design = exampleDesign();
        design.schedule = makeSchedule("chimera", parameters);
        design.costs = uniformCosts({1'000'000, 1'000'000, 1'000'000, 0, 1 << 20, 1 << 19, false}, 4, 1);
        design.workload.reset();
        Settings settings("1000000000000", true, design);
        settings.backend()->setCurrentIndex(2);
        settingNamed<QLineEdit>(*settings.dialog, "Module")->setText(QStringLiteral("mine.py:build"));
        QVERIFY(!settings.dialog->runButton()->isEnabled());
        QVERIFY(!settings.dialog->verdict().isEmpty());
    }

    void returnRunsOnceAndTheDialogCloses()
    {
        Settings settings("16000000000", false, smallDesign(exampleDesign()));
        QSignalSpy wanted(settings.dialog.get(), &RunSettings::runWanted);
        QVERIFY(QTest::qWaitForWindowActive(settings.dialog.get()));
        QTest::keyClick(settings.dialog.get(), Qt::Key_Return);
        QCOMPARE(wanted.count(), 1);
        QVERIFY(!settings.dialog->isVisible());
        QVERIFY(!settings.dialog->isModal());
    }

    void whatWasChosenIsKept()
    {
        QTemporaryDir folder;
        QSettings kept(folder.filePath(QStringLiteral("s.ini")), QSettings::IniFormat);
        RunChoice choice;
        choice.backend = QStringLiteral("torch");
        choice.steps = 17;
        choice.module = QStringLiteral("a.py:build");
        choice.calibrate = true;
        choice.replicas = 3;
        choice.profile = true;
        choice.save(kept);
        const RunChoice again = RunChoice::load(kept);
        QCOMPARE(again.backend, choice.backend);
        QCOMPARE(again.steps, 17);
        QCOMPARE(again.module, choice.module);
        QVERIFY(again.calibrate);
        QCOMPARE(again.replicas, 3);
        QVERIFY(again.profile);
        QVERIFY(again.blocks == RunChoice::Blocks::Train); // asked of every design anew
    }
};

PIPEWRIGHT_TEST(TestRunSettings, QApplication)
#include "tst_runsettings.moc"
