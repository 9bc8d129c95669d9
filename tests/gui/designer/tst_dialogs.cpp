// SPDX-License-Identifier: GPL-3.0-or-later
// The dialogs for a new schedule, conflicts and shortcuts.
#include "core/predict/designcheck.h"
#include "gui/designer/designer.h"
#include "gui/designer/diagnosticlist.h"
#include "gui/designer/mainwindowfixture.h"
#include "gui/designer/shortcuts.h"
#include "gui/designer/topbar.h"
#include "gui/designer/windowactions.h"
#include "gui/model/newschedule.h"
#include "gui/widgets/fields.h"
#include "gui/widgets/theme.h"
#include "testmain.h"

#include <QAction>
#include <QApplication>
#include <QCollator>
#include <QComboBox>
#include <QDialogButtonBox>
#include <QFile>
#include <QFileDialog>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QPushButton>
#include <QSpinBox>
#include <QTemporaryDir>
#include <QTest>
#include <QTreeWidget>
#include <QUndoStack>

#include <algorithm>

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

/// What stands below a field; empty when nothing does.
QString about(QWidget& dialog, const char* field)
{
    const auto* note = named<QLabel>(dialog, (QByteArray("About ") + field).constData());
    return note && note->isVisible() ? note->text() : QString();
}

QPushButton* button(QWidget& parent, const QString& text)
{
    for (QPushButton* child : parent.findChildren<QPushButton*>()) {
        if (child->text().contains(text))
            return child;
    }
    return nullptr;
}

} // namespace

class TestDialogs : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void aNewScheduleIsThePreviewedOne()
    {
        NewScheduleDialog dialog;
        dialog.show();
        // The keys begin in the first field; while Create waits for a prediction, Return must not be Cancel's.
        QVERIFY(QTest::qWaitForWindowActive(&dialog));
        QVERIFY(qobject_cast<QComboBox*>(dialog.focusWidget()));
        QTest::keyClick(dialog.focusWidget(), Qt::Key_Return);
        QVERIFY(dialog.isVisible() || dialog.result() == int(QDialog::Accepted));
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

    void modelsStandByTitleAndAnOwnFileIsAskedFor()
    {
        NewScheduleDialog dialog;
        dialog.show();
        auto* model = named<QComboBox>(dialog, "Model");
        QCollator collator(QLocale::c());
        collator.setNumericMode(true);
        collator.setCaseSensitivity(Qt::CaseInsensitive);
        const int own = model->count() - 1;
        QVERIFY(own > 20);
        for (int i = 1; i + 1 < own; ++i) // a line before the last entry
            QVERIFY2(collator.compare(model->itemText(i - 1), model->itemText(i)) <= 0, qPrintable(model->itemText(i)));
        QCOMPARE(model->itemText(own), QStringLiteral("Open config.json…"));
        const QString before = model->currentText();
        model->setCurrentIndex(own);
        Q_EMIT model->activated(own);
        QCOMPARE(model->currentText(), before); // until there is one
        auto* files = dialog.findChild<QFileDialog*>();
        QVERIFY(files);
        QTemporaryDir folder;
        const QString path = folder.filePath(QStringLiteral("config.json"));
        QFile file(path);
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write(R"({"architectures":["LlamaForCausalLM"],"model_type":"llama","hidden_size":512,)"
                   R"("intermediate_size":1024,"num_attention_heads":8,"num_hidden_layers":4,"vocab_size":1000,)"
                   R"("max_position_embeddings":1024})");
        file.close();
        Q_EMIT files->fileSelected(path);
        files->close();
        QCOMPARE(model->currentText(), QStringLiteral("config.json"));
        QPushButton* create = button(dialog, QStringLiteral("Create"));
        QTRY_VERIFY(create->isEnabled());
        QCOMPARE(dialog.design().workload->shape.hidden, 512);
    }

    void replicasShareTheOptimizersState()
    {
        NewScheduleDialog dialog;
        dialog.show();
        auto* family = named<QComboBox>(dialog, "Family");
        family->setCurrentIndex(family->findData(QStringLiteral("1f1b")));
        auto* share = named<QComboBox>(dialog, "States that copies share out");
        QPushButton* create = button(dialog, QStringLiteral("Create"));
        share->setCurrentIndex(1);
        QTRY_VERIFY(!named<QLabel>(dialog, "What is wrong")->text().isEmpty()); // with whom?
        QVERIFY(!create->isEnabled());
        named<QSpinBox>(dialog, "Replicas")->setValue(2);
        QTRY_VERIFY(create->isEnabled());
        QCOMPARE(dialog.design().schedule.replicas(), 2);
        QVERIFY(dialog.design().schedule.sharesOptimizer());
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
        auto* cluster = named<QComboBox>(dialog, "Cluster");
        cluster->setCurrentIndex(cluster->findData(QStringLiteral("h200-nodes"))); // one node has 8 devices
        place(WorkerLayout::Triangle, 10);
        QTRY_VERIFY(create->isEnabled());
        QCOMPARE(dialog.design().schedule.devices(), 10);
        QCOMPARE(dialog.design().schedule.stages(), 4);
        // One device does not say how many work on it.
        place(WorkerLayout::Single, 1);
        QTRY_VERIFY(!about(dialog, "Workers").isEmpty());
        QVERIFY(!about(dialog, "Workers").contains(QLatin1String("--")));
        QVERIFY(named<QLabel>(dialog, "What is wrong")->text().isEmpty());
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

    void aDiagnosticNamesItsFieldAndMarksIt()
    {
        NewScheduleDialog dialog;
        dialog.show();
        auto* family = named<QComboBox>(dialog, "Family");
        family->setCurrentIndex(family->findData(QStringLiteral("dualpipe")));
        named<QSpinBox>(dialog, "Microbatches")->setValue(3);
        auto* faults = named<QLabel>(dialog, "What is wrong");
        QTRY_VERIFY(!about(dialog, "Microbatches").isEmpty());
        // Below the field, without its name, which stands beside it; the list is for what speaks of no field.
        auto* note = named<QLabel>(dialog, "About Microbatches");
        auto* field = named<QSpinBox>(dialog, "Microbatches");
        QVERIFY2(!note->text().contains(QLatin1String("Microbatches: ")), qPrintable(note->text()));
        QVERIFY(!note->text().contains(QLatin1String("--")) && !note->text().contains(QLatin1String("error:")));
        QVERIFY2(faults->text().isEmpty(), qPrintable(faults->text()));
        QCOMPARE(note->mapTo(&dialog, QPoint()).x(), field->mapTo(&dialog, QPoint()).x());
        QTRY_VERIFY(note->mapTo(&dialog, QPoint()).y() - field->mapTo(&dialog, QPoint(0, field->height())).y() < 8);
        QVERIFY(note->heightForWidth(note->width()) <= note->height());
        QCOMPARE(note->palette().color(QPalette::WindowText), Theme::of(dialog).bad);
        QLabel* caption = nullptr;
        for (QLabel* label : dialog.findChildren<QLabel*>())
            if (label->text() == QLatin1String("Microbatches"))
                caption = label;
        QVERIFY(caption);
        QCOMPARE(caption->palette().color(QPalette::WindowText), Theme::of(dialog).bad);
        named<QSpinBox>(dialog, "Microbatches")->setValue(8);
        QTRY_VERIFY(about(dialog, "Microbatches").isEmpty());
        QVERIFY(!note->isVisible());
    }

    void aNumberBeyondItsRangeIsNotCutInSilence()
    {
        NewScheduleDialog dialog;
        dialog.show();
        QVERIFY(QTest::qWaitForWindowActive(&dialog));
        auto* count = qobject_cast<CountField*>(named<QSpinBox>(dialog, "Devices"));
        QVERIFY(count);
        count->setFocus();
        count->selectAll();
        const int most = count->maximum();
        QTest::keyClicks(count, QString::number(most) + QStringLiteral("9"));
        QCOMPARE(count->text(), QString::number(most) + QStringLiteral("9")); // what was typed stands as it is typed
        QTest::keyClick(count, Qt::Key_Tab);
        QCOMPARE(count->value(), most);
        QVERIFY2(count->refusal().contains(QString::number(most) + QStringLiteral("9 is beyond")),
                 qPrintable(count->refusal()));
        QCOMPARE(about(dialog, "Devices").section(QLatin1Char('\n'), 0, 0), count->refusal()); // and it stays in sight
        count->setValue(4);
        QVERIFY(count->refusal().isEmpty());
        count->setFocus();
        count->selectAll();
        QTest::keyClicks(count, QStringLiteral("0"));
        count->interpretText(); // as on leaving
        QCOMPARE(count->value(), count->minimum());
        QVERIFY(!count->refusal().isEmpty());
    }

    void moreDevicesThanANodeHasIsAnError()
    {
        NewScheduleDialog dialog;
        dialog.show();
        QPushButton* create = button(dialog, QStringLiteral("Create"));
        QTRY_VERIFY(create->isEnabled());
        QVERIFY(about(dialog, "Devices").isEmpty());
        named<QSpinBox>(dialog, "Devices")->setValue(16);
        named<QSpinBox>(dialog, "Microbatches")->setValue(16);
        QTRY_VERIFY2(about(dialog, "Cluster").contains(QLatin1String("h200-node has 8 devices, and 16 are needed")),
                     qPrintable(about(dialog, "Cluster")));
        QVERIFY(!create->isEnabled());
        auto* cluster = named<QComboBox>(dialog, "Cluster");
        cluster->setCurrentIndex(cluster->findData(QStringLiteral("h200-nodes")));
        QTRY_VERIFY(about(dialog, "Cluster").isEmpty());
        QTRY_VERIFY(create->isEnabled());
    }

    void aNewScheduleCanRecompute()
    {
        NewScheduleDialog dialog;
        dialog.show();
        auto* recompute = named<QComboBox>(dialog, "Recomputed");
        QVERIFY(recompute);
        recompute->setCurrentIndex(2);
        QPushButton* create = button(dialog, QStringLiteral("Create"));
        QTRY_VERIFY(create->isEnabled());
        const Schedule& schedule = dialog.design().schedule;
        QCOMPARE(schedule.recompute, std::vector<Recompute>(std::size_t(schedule.stages()), Recompute::Full));
        recompute->setCurrentIndex(0);
        QTRY_VERIFY(create->isEnabled());
        QVERIFY(dialog.design().schedule.recompute.empty());
    }

    void anImpossibleScheduleCannotBeCreatedAndSaysWhy()
    {
        NewScheduleDialog dialog;
        dialog.show();
        auto* cluster = named<QComboBox>(dialog, "Cluster");
        cluster->setCurrentIndex(cluster->findData(QStringLiteral("h200-nodes"))); // any number of nodes
        named<QSpinBox>(dialog, "Devices")->setValue(300); // more stages than the model has layers
        QPushButton* create = button(dialog, QStringLiteral("Create"));
        QTRY_VERIFY(!about(dialog, "Devices").isEmpty() || !named<QLabel>(dialog, "What is wrong")->text().isEmpty());
        QVERIFY(!create->isEnabled());
        named<QSpinBox>(dialog, "Devices")->setValue(4);
        QTRY_VERIFY(create->isEnabled());
        QVERIFY(named<QLabel>(dialog, "What is wrong")->text().isEmpty());
    }

    void conflictsAreListedAndSelectTheirBlock()
    {
        Document document;
        document.reset(exampleDesign());
        Findings findings(document);
        DiagnosticList dialog(document, findings);
        dialog.show();
        QCOMPARE(dialog.list()->count(), int(document.diagnostics().size()));
        Design broken = document.design();
        std::swap(broken.schedule.order[1].front(), broken.schedule.order[1].back()); // backward before forward
        document.replaceDesign(broken, QStringLiteral("Break it"));
        QVERIFY(hasErrors(document.diagnostics()));
        QCOMPARE(dialog.list()->count(), int(document.diagnostics().size()));
        QVERIFY(!dialog.list()->item(0)->text().contains(QLatin1String("error:")));
        dialog.list()->setCurrentRow(0);
        QVERIFY(document.selection() == blockNamedIn(document.diagnostics().front()));
        QVERIFY(blockNamedIn({Severity::Error, "device 1, position 3 (B0.3)", "x", ""}) == (Block{Op::B, 0, 3, 0}));
        QVERIFY(!blockNamedIn({Severity::Error, "costs.forward", "negative", ""}));
    }

    /// The tick is green only when `check` finds nothing.
    void overMemoryIsRedAndItsRemediesAreButtons()
    {
        MainWindowFixture fixture;
        Design design = fixture.document().design();
        for (DeviceSpec& device : design.cluster.devices)
            device.memory = device.memory / 2;
        fixture.document().replaceDesign(design, QStringLiteral("Smaller devices"));
        QPushButton& validity = *fixture.window.topBar().validity();
        std::vector<MemoryPeak> crossed;
        QVERIFY(hasErrors(checkDesign(design, &crossed)));
        QCOMPARE(validity.text(), QStringLiteral("▲ %1 over memory").arg(crossed.size()));
        QVERIFY(validity.styleSheet().contains(Theme::of(validity).bad.name()));
        validity.click();
        auto* list = fixture.window.findChild<DiagnosticList*>();
        QVERIFY(list);
        QTRY_VERIFY_WITH_TIMEOUT(!list->remedyButtons().isEmpty(), 60'000);
        list->remedyButtons().front()->click();
        QVERIFY(!hasErrors(checkDesign(fixture.document().design())));
        QVERIFY(!validity.text().contains(QLatin1String("over memory")));
        QVERIFY(list->remedyButtons().isEmpty());
        fixture.document().undoStack()->undo();
        QVERIFY(validity.text().contains(QLatin1String("over memory")));
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

    void shortcutsAreFoundByWordsAndByKeys()
    {
        QWidget window;
        QUndoStack stack;
        WindowActions actions(&stack, &window);
        ShortcutList dialog(actions.groups());
        dialog.show();
        const auto shown = [&dialog] {
            QStringList texts;
            for (int i = 0; i < dialog.list()->topLevelItemCount(); ++i) {
                const QTreeWidgetItem* group = dialog.list()->topLevelItem(i);
                for (int row = 0; row < group->childCount() && !group->isHidden(); ++row)
                    if (!group->child(row)->isHidden())
                        texts << group->child(row)->text(0);
            }
            return texts;
        };
        const auto all = shown().size();
        QVERIFY(dialog.list()->topLevelItemCount() >= 5);
        QVERIFY(dialog.searchField()->hasFocus() || !dialog.isActiveWindow());
        QTest::keyClicks(dialog.searchField(), QStringLiteral("ctrl+shift+p"));
        QCOMPARE(shown(), QStringList{actions.palette->text()});
        dialog.searchField()->clear();
        QCOMPARE(shown().size(), all);
        QTest::keyClicks(dialog.searchField(), QStringLiteral("overlay"));
        QVERIFY(shown().contains(actions.clearOverlay->text()) && shown().size() < all);
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
