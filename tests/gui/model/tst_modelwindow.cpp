// SPDX-License-Identifier: GPL-3.0-or-later
// The premises edited: borders between stages by mouse, key and number, devices and links in their tables.
#include "core/design/newdesign.h"
#include "core/design/redesign.h"
#include "core/predict/busqueues.h"
#include "core/predict/stagememory.h"
#include "core/presets/presets.h"
#include "gui/memory/memorybars.h"
#include "gui/model/modelfields.h"
#include "gui/model/modelwindowfixture.h"
#include "gui/model/newschedule.h"
#include "gui/model/nodefields.h"
#include "gui/model/parallelismfields.h"
#include "gui/model/partitionbar.h"
#include "gui/widgets/fields.h"
#include "gui/widgets/theme.h"
#include "gui/widgets/valuetable.h"
#include "gui/widgets/words.h"
#include "testmain.h"

#include <QApplication>
#include <QCheckBox>
#include <QComboBox>
#include <QDoubleSpinBox>
#include <QLineEdit>
#include <QPushButton>
#include <QSpinBox>
#include <QTabWidget>
#include <QTest>

using namespace pipewright;
using namespace pipewright::test;

namespace {

struct ModelAndClusterFixture : ModelWindowFixture {
    ModelAndClusterFixture() : ModelWindowFixture(ModelWindow::Stages) {}
    void bringUp(ValueTable& table)
    {
        for (int tab = 0; tab < window->tabs()->count(); ++tab)
            if (window->tabs()->widget(tab) == &table || window->tabs()->widget(tab)->isAncestorOf(&table))
                window->tabs()->setCurrentIndex(tab);
        table.setFocus();
    }
    void clear(ValueTable& table, int row, int column) { type(table, row, column, {}); }
    /// Types into a cell as a person does: Return begins, Return commits.
    void type(ValueTable& table, int row, int column, const QString& text)
    {
        bringUp(table);
        table.setCurrentCell(row, column);
        QTest::keyClick(&table, Qt::Key_Return);
        auto* editor = table.findChild<QLineEdit*>();
        QVERIFY(editor);
        editor->selectAll();
        if (text.isEmpty())
            QTest::keyClick(editor, Qt::Key_Delete);
        QTest::keyClicks(editor, text);
        QTest::keyClick(editor, Qt::Key_Return);
        QCoreApplication::sendPostedEvents(nullptr, QEvent::DeferredDelete);
        QTest::qWait(0);
    }
};

} // namespace

class TestModelWindow : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void noCellOfATableIsCutOnASmallScreen()
    {
        ModelAndClusterFixture fixture;
        fixture.window->resize(1016, 600);
        for (int tab = 0; tab < fixture.window->tabs()->count(); ++tab) {
            fixture.window->tabs()->setCurrentIndex(tab);
            QTest::qWait(0);
            for (ValueTable* table : fixture.window->tabs()->findChildren<ValueTable*>()) {
                if (!table->isVisible())
                    continue;
                int all = 0;
                for (int column = 0; column < table->columnCount(); all += table->columnWidth(column++))
                    for (int row = 0; row < table->rowCount(); ++row)
                        QVERIFY2(table->sizeHintForIndex(table->model()->index(row, column)).width()
                                     <= table->columnWidth(column),
                                 qPrintable(table->text(row, column)));
                QVERIFY2(all <= table->viewport()->width(), qPrintable(table->accessibleName()));
            }
        }
    }

    void init() { Theme::dark().apply(*qApp); }

    void anOrderOfOnesOwnKeepsItsMicrobatches()
    {
        ModelAndClusterFixture fixture;
        Design own = fixture.document.design();
        own.schedule.family = "custom";
        fixture.document.reset(own);
        fixture.window->setMicrobatches(own.schedule.microbatches + 1);
        QVERIFY(fixture.window->fault().contains(QLatin1String("choose a family")));
        QVERIFY(fixture.document.design() == own);
    }

    void aDraggedBorderMovesLayersAndIsUndone()
    {
        ModelAndClusterFixture fixture;
        const Design before = fixture.document.design();
        PartitionBar& bar = fixture.window->partition();
        const double layer = bar.width() * 0.7 / 32;
        const QPoint from(int(bar.xOfBorder(1)), 20);
        QTest::mousePress(&bar, Qt::LeftButton, {}, from);
        QTest::mouseMove(&bar, from + QPoint(int(layer * 1.2), 0));
        QTest::mouseMove(&bar, from + QPoint(int(layer * 2.2), 0));
        QVERIFY(bar.partition()[1] > fixture.cut()[1]); // a preview; the document is as it was
        QCOMPARE(fixture.document.design(), before);
        QVERIFY2(fixture.window->effect().contains(QLatin1String("makespan ")), qPrintable(fixture.window->effect()));
        const std::vector<int> wanted = bar.partition();
        QTest::mouseRelease(&bar, Qt::LeftButton, {}, from + QPoint(int(layer * 2.2), 0));
        QCOMPARE(fixture.cut(), wanted);
        QCOMPARE(fixture.document.undoStack()->index(), 1);
        QVERIFY(fixture.document.design().costs.stages[1].forward > before.costs.stages[1].forward);
        fixture.document.undoStack()->undo();
        QCOMPARE(fixture.document.design(), before);
        QCOMPARE(bar.partition(), before.layersPerStage);
    }

    void escapeEndsTheDragAndKeysMoveTheBorder()
    {
        ModelAndClusterFixture fixture;
        const std::vector<int> before = fixture.cut();
        PartitionBar& bar = fixture.window->partition();
        const QPoint from(int(bar.xOfBorder(0)), 20);
        QTest::mousePress(&bar, Qt::LeftButton, {}, from);
        QTest::mouseMove(&bar, from + QPoint(80, 0));
        QVERIFY(bar.partition() != before);
        QTest::keyClick(&bar, Qt::Key_Escape);
        QTest::mouseRelease(&bar, Qt::LeftButton, {}, from + QPoint(80, 0));
        QCOMPARE(bar.partition(), before);
        QCOMPARE(fixture.cut(), before);
        QVERIFY(fixture.window->isVisible());

        QTest::keyClick(&bar, Qt::Key_Right);
        QCOMPARE(bar.currentBorder(), 1);
        QTest::keyClick(&bar, Qt::Key_Left, Qt::AltModifier);
        QCOMPARE(fixture.cut()[1], before[1] - 1);
        QCOMPARE(fixture.cut()[2], before[2] + 1);
        QCOMPARE(fixture.document.undoStack()->undoText(),
                 QStringLiteral("Cut stage 1 at %1 layers").arg(before[1] - 1));
    }

    void degreesOfParallelismAreFieldsThatSayWhyNot()
    {
        ModelAndClusterFixture fixture;
        const Design before = fixture.document.design();
        ParallelismFields& groups = fixture.window->groups();
        auto* tensor = named<QSpinBox>(groups, "Tensor parallel");
        QVERIFY(tensor);
        tensor->setValue(4);
        named<QCheckBox>(groups, "Sequence parallel")->setChecked(true);
        const Parallelism wanted{.tensor = 4, .sequence = true};
        QCOMPARE(fixture.document.design().workload->shape.parallel, wanted);
        QCOMPARE(fixture.document.undoStack()->undoText(),
                 QStringLiteral("Share out every stage: tensor 4 with sequence"));
        QVERIFY(fixture.document.design().costs.stages[1].forward < before.costs.stages[1].forward / 2);
        tensor->setValue(3);
        QVERIFY2(fixture.window->fault().contains(QLatin1String("cannot be shared out over 3 members")),
                 qPrintable(fixture.window->fault()));
        QCOMPARE(tensor->value(), 4);
        for (int i = 0; i < 2; ++i)
            fixture.document.undoStack()->undo();
        QCOMPARE(fixture.document.design(), before);
        QCOMPARE(groups.value(), Parallelism{});
    }

    void expertsAreFoldedByAField()
    {
        ModelAndClusterFixture fixture;
        DesignRequest request = test::requestFor("1f1b", 2, 4);
        request.model = "mixtral-8x7b";
        request.cluster = "h100-nodes";
        Parallelism wanted{.tensor = 4, .sequence = true, .data = 2};
        request.parallel = wanted;
        fixture.document.reset(makeDesign(request));
        const auto parallel = [&] { return fixture.document.design().workload->shape.parallel; };
        ParallelismFields& groups = fixture.window->groups();
        auto* expert = named<QSpinBox>(groups, "Expert parallel");
        auto* folded = named<QCheckBox>(groups, "Folded experts");
        QVERIFY(expert && folded && !folded->isChecked());
        expert->setValue(8);
        QVERIFY2(
            fixture.window->fault().contains(QLatin1String("2 data-parallel copies cannot share out experts by 8")),
            qPrintable(fixture.window->fault()));
        QCOMPARE(expert->value(), 1);
        folded->setChecked(true);
        expert->setValue(8);
        wanted.foldedExperts = true;
        wanted.expert = 8;
        QCOMPARE(parallel(), wanted);
        QCOMPARE(groups.value(), wanted);
        folded->setChecked(false);
        QVERIFY(fixture.window->fault().contains(QLatin1String("cannot share out experts by 8")));
        QVERIFY(folded->isChecked());
        for (int i = 0; i < 2; ++i)
            fixture.document.undoStack()->undo();
        QVERIFY(!folded->isChecked() && !parallel().foldedExperts);
    }

    void howDevicesStandInNodesIsEdited()
    {
        ModelAndClusterFixture fixture;
        NodeFields& nodes = fixture.window->nodes();
        QVERIFY(!nodes.isEnabled()); // of one node
        DesignRequest request = test::requestFor("1f1b", 4, 4);
        request.model = "llama-3-8b";
        request.cluster = "h100-nodes";
        request.parallel = Parallelism{8, true, 1, 1, 4};
        fixture.document.reset(makeDesign(request));
        QVERIFY(nodes.isEnabled());
        const Design before = fixture.document.design();
        auto* cards = named<QSpinBox>(nodes, "Network cards per node");
        QCOMPARE(cards->value(), 8);
        cards->setValue(1);
        QCOMPARE(fixture.document.design().cluster.nodes.cards, 1);
        QVERIFY(fixture.document.design().costs.stages[1].reduceGradients > before.costs.stages[1].reduceGradients);
        named<QSpinBox>(nodes, "Nodes under one switch")->setValue(2);
        named<QDoubleSpinBox>(nodes, "Oversubscription")->setValue(4);
        QCOMPARE(fixture.document.design().cluster.nodes.perSwitch, 2);
        QCOMPARE(fixture.document.design().cluster.nodes.oversubscription, 4.0);
        auto* count = named<QSpinBox>(nodes, "Nodes");
        count->setValue(2); // 4 stages of 8, four times, are 128 devices
        QVERIFY2(fixture.window->fault().contains(QLatin1String("2 nodes of 8 have 16")),
                 qPrintable(fixture.window->fault()));
        QCOMPARE(count->value(), 512);
        for (int i = 0; i < 3; ++i)
            fixture.document.undoStack()->undo();
        QCOMPARE(fixture.document.design(), before);
        QCOMPARE(cards->value(), 8);

        named<QSpinBox>(fixture.window->groups(), "Exchanges overlapped")->setValue(100);
        QCOMPARE(fixture.document.design().workload->shape.parallel.overlap, 1.0);
        QVERIFY(fixture.document.design().costs.stages[1].forward < before.costs.stages[1].forward);
    }

    void narrowMatricesAreAColumnOfTheDevices()
    {
        ModelAndClusterFixture fixture;
        fixture.type(fixture.window->devices(), 0, 4, QStringLiteral("50%")); // in place of measured rates
        const Nanoseconds before = fixture.document.design().costs.stages[0].forward;
        fixture.type(fixture.window->devices(), 0, 8, QStringLiteral("1400"));
        QCOMPARE(fixture.document.design().cluster.devices[0].halfRateWidth, 1400.0);
        QVERIFY(fixture.document.design().costs.stages[0].forward > before);
        fixture.clear(fixture.window->devices(), 0, 8);
        QCOMPARE(fixture.document.design().costs.stages[0].forward, before);
    }

    void everyStageSaysWhatItRecomputes()
    {
        ModelAndClusterFixture fixture;
        const Design before = fixture.document.design();
        auto* all = named<QComboBox>(*fixture.window, "Recomputed in every stage");
        QVERIFY(all);
        QCOMPARE(fixture.window->stages().text(1, 10), QStringLiteral("none"));
        fixture.type(fixture.window->stages(), 1, 10, QStringLiteral("block"));
        const Schedule& schedule = fixture.document.design().schedule;
        QCOMPARE(schedule.recomputeOf(1), Recompute::Block);
        QCOMPARE(schedule.blocks(), before.schedule.blocks() + schedule.microbatches); // R blocks are there
        QCOMPARE(all->currentText(), QStringLiteral("as listed by stage"));
        QCOMPARE(fixture.document.undoStack()->undoText(), QStringLiteral("Let stage 1 recompute: block"));
        fixture.type(fixture.window->stages(), 0, 10, QStringLiteral("sometimes"));
        QVERIFY2(fixture.window->fault().contains(QLatin1String("use none, selective, full")),
                 qPrintable(fixture.window->fault()));
        all->setCurrentIndex(1);
        Q_EMIT all->activated(1); // this model's attention keeps nothing of its core
        QVERIFY2(fixture.window->fault().contains(QLatin1String("nothing to recompute selectively")),
                 qPrintable(fixture.window->fault()));
        QCOMPARE(all->currentText(), QStringLiteral("as listed by stage"));
        all->setCurrentIndex(2);
        Q_EMIT all->activated(2);
        QCOMPARE(fixture.window->stages().text(0, 10), QStringLiteral("full"));
        QVERIFY(fixture.window->fault().isEmpty());
        for (int i = 0; i < 2; ++i)
            fixture.document.undoStack()->undo();
        QCOMPARE(fixture.document.design(), before);
    }

    void everyStageSaysWhetherItOffloads()
    {
        ModelAndClusterFixture fixture;
        const Design before = fixture.document.design();
        QCOMPARE(fixture.window->stages().text(1, 11), QStringLiteral("no"));
        fixture.type(fixture.window->stages(), 1, 11, QStringLiteral("yes"));
        QVERIFY2(fixture.window->fault().isEmpty(), qPrintable(fixture.window->fault()));
        QVERIFY(fixture.document.design().schedule.offloads(1));
        QVERIFY(!fixture.document.design().schedule.offloads(0));
        QCOMPARE(fixture.window->stages().text(1, 11), QStringLiteral("yes"));
        fixture.type(fixture.window->stages(), 0, 11, QStringLiteral("perhaps"));
        QVERIFY2(fixture.window->fault().contains(QLatin1String("write yes or no")),
                 qPrintable(fixture.window->fault()));
        fixture.document.undoStack()->undo();
        QCOMPARE(fixture.document.design(), before);
    }

    void aNewScheduleCanBeOfGroups()
    {
        NewScheduleDialog dialog;
        dialog.show();
        auto* tensor = named<QSpinBox>(dialog, "Tensor parallel");
        QVERIFY(tensor);
        tensor->setValue(2);
        QTRY_VERIFY(dialog.design().workload && dialog.design().workload->shape.parallel.tensor == 2);
        QVERIFY(dialog.design().costs.source.ends_with("tensor 2"));
    }

    void theNumberOfLayersIsAFieldThatSaysWhyNot()
    {
        ModelAndClusterFixture fixture;
        const std::vector<int> before = fixture.cut();
        fixture.type(fixture.window->stages(), 0, 2, QString::number(before[0] - 2));
        QCOMPARE(fixture.cut()[0], before[0] - 2);
        QCOMPARE(fixture.cut()[1], before[1] + 2);
        fixture.type(fixture.window->stages(), 3, 2, QString::number(before[3] - 1));
        QCOMPARE(fixture.cut()[3], before[3] - 1); // the last takes from the one before
        const std::vector<int> now = fixture.cut();
        fixture.type(fixture.window->stages(), 1, 2, QStringLiteral("99"));
        QCOMPARE(fixture.cut(), now);
        QVERIFY(!fixture.window->fault().isEmpty());
        QCOMPARE(fixture.window->stages().text(1, 2), QString::number(now[1]));
    }

    void deviceValuesAreEditedWithUnitsOneUndoEach()
    {
        ModelAndClusterFixture fixture;
        const Design before = fixture.document.design();
        fixture.type(fixture.window->devices(), 1, 3, QStringLiteral("500 TFLOP/s"));
        QCOMPARE(fixture.document.design().cluster.devices[1].peakFlops, 500e12);
        QVERIFY(fixture.document.design().costs.stages[1].forward > before.costs.stages[1].forward);
        fixture.type(fixture.window->devices(), 0, 2, QStringLiteral("40GiB"));
        QCOMPARE(fixture.document.design().cluster.devices[0].memory, Bytes{40} << 30);
        fixture.type(fixture.window->devices(), 2, 4, QStringLiteral("40 %"));
        QCOMPARE(fixture.document.design().cluster.devices[2].efficiency, 0.4);
        QCOMPARE(fixture.document.undoStack()->index(), 3);
        fixture.type(fixture.window->devices(), 2, 4, QStringLiteral("fast"));
        QCOMPARE(fixture.document.undoStack()->index(), 3);
        QVERIFY(fixture.window->fault().contains(QLatin1String("50 %")));
        for (int i = 0; i < 3; ++i)
            fixture.document.undoStack()->undo();
        QCOMPARE(fixture.document.design(), before);
        QCOMPARE(fixture.window->devices().text(2, 4), percentText(before.cluster.devices[2].efficiency));
    }

    void devicesArePlacedOnGpusAndOnSlicesOfThem()
    {
        ModelAndClusterFixture fixture;
        const Design before = fixture.document.design();
        ValueTable& table = fixture.window->devices();
        const auto gpus = [&fixture]() -> const std::vector<GpuShare>& {
            return fixture.document.design().cluster.gpus;
        };
        QVERIFY(table.text(0, 6).isEmpty() && table.text(0, 7).isEmpty()); // left open
        fixture.type(table, 1, 6, QStringLiteral("0"));
        QCOMPARE(gpus(), std::vector<GpuShare>(4, GpuShare{0, 0})); // of all devices or of none
        fixture.type(table, 1, 7, QStringLiteral("40"));
        fixture.type(table, 2, 6, QStringLiteral("1"));
        QCOMPARE(gpus(), (std::vector<GpuShare>{{0, 0}, {0, 40}, {1, 0}, {0, 0}}));
        QCOMPARE(table.text(1, 7), QStringLiteral("40"));
        QVERIFY(table.text(0, 7).isEmpty());
        QVERIFY2(fixture.window->mapping().contains(QLatin1String("40 multiprocessors"))
                     && fixture.window->mapping().contains(QLatin1String("GPU 1")),
                 qPrintable(fixture.window->mapping()));
        QCOMPARE(fixture.document.design().costs, before.costs);
        QCOMPARE(fixture.document.undoStack()->index(), 3);
        for (const char* wrong : {"-1", "1025", "half"}) {
            fixture.type(table, 3, 6, QLatin1String(wrong));
            QVERIFY2(fixture.window->fault().contains(QLatin1String("between 0 and 1024")),
                     qPrintable(fixture.window->fault()));
        }
        fixture.type(table, 3, 7, QStringLiteral("0"));
        QVERIFY(fixture.window->fault().contains(QLatin1String("between 1 and 1024")));
        QCOMPARE(fixture.document.undoStack()->index(), 3);
        fixture.clear(table, 1, 7); // all of GPU 0 again
        QCOMPARE(gpus()[1], (GpuShare{0, 0}));
        fixture.clear(table, 0, 6); // open again
        QVERIFY(gpus().empty());
        fixture.type(table, 2, 7, QStringLiteral("32"));
        QCOMPARE(gpus(), std::vector<GpuShare>(4, GpuShare{0, 32}));
        while (fixture.document.undoStack()->canUndo())
            fixture.document.undoStack()->undo();
        QCOMPARE(fixture.document.design(), before);
        QVERIFY(table.text(2, 7).isEmpty());
    }

    void linksAreEditedAddedAndRemoved()
    {
        ModelAndClusterFixture fixture;
        fixture.type(fixture.window->links(), 0, 2, QStringLiteral("25us"));
        QCOMPARE(fixture.document.design().cluster.link.latency, Nanoseconds(25'000));
        QCOMPARE(fixture.document.design().costs.link.latency, Nanoseconds(25'000));
        fixture.window->addLink(1, 2);
        QCOMPARE(fixture.window->links().rowCount(), 2);
        fixture.type(fixture.window->links(), 1, 3, QStringLiteral("1 GB/s"));
        QCOMPARE(fixture.document.design().cluster.linkOfPair.at({1, 2}).bandwidth, 1e9);
        QCOMPARE(fixture.document.design().costs.linkBetween(1, 2).bytesPerSecond, 1e9);
        fixture.window->addLink(1, 1);
        QVERIFY(!fixture.window->fault().isEmpty());
        fixture.window->links().setCurrentCell(1, 0);
        fixture.window->links().setFocus();
        QTest::keyClick(&fixture.window->links(), Qt::Key_Delete);
        QVERIFY(fixture.document.design().cluster.linkOfPair.empty());
        QCOMPARE(fixture.document.undoStack()->index(), 4);
    }

    void howTransfersRunIsOneChoiceAndIsToldBelowTheLinks()
    {
        ModelAndClusterFixture fixture;
        fixture.bringUp(fixture.window->links());
        QComboBox& choice = fixture.window->communication();
        QCOMPARE(choice.currentIndex(), 0);
        choice.setCurrentIndex(1);
        Q_EMIT choice.activated(1);
        QVERIFY(fixture.document.design().costs.communication == Communication::OneStream);
        QVERIFY2(fixture.window->buses().contains(QLatin1String("one after the other, on one stream")),
                 qPrintable(fixture.window->buses()));
        QVERIFY(fixture.document.prediction()->program.communication == Communication::OneStream);
        // Another latency leaves the choice as it is.
        fixture.type(fixture.window->links(), 0, 2, QStringLiteral("25us"));
        QVERIFY(fixture.document.design().costs.communication == Communication::OneStream);
        fixture.document.undoStack()->undo();
        fixture.document.undoStack()->undo();
        QVERIFY(fixture.document.design().costs.communication == Communication::Overlapped);
        QCOMPARE(choice.currentIndex(), 0);
    }

    void linksThatShareABusSaySoAndHowItServesThem()
    {
        ModelAndClusterFixture fixture;
        fixture.bringUp(fixture.window->links());
        QVERIFY2(fixture.window->buses().contains(QLatin1String("share a bus")), qPrintable(fixture.window->buses()));
        Design design = fixture.document.design();
        design.cluster.link.bus = "switch";
        fixture.document.reset(withCluster(design, design.cluster));
        QVERIFY2(fixture.window->buses().contains(QLatin1String("switch")), qPrintable(fixture.window->buses()));
        const std::string_view discipline = busDiscipline();
        QVERIFY(fixture.window->buses().contains(QString::fromUtf8(discipline.data(), qsizetype(discipline.size()))));
    }

    void theTablesShowWhereTheMemoryGoes()
    {
        ModelAndClusterFixture fixture;
        const MemoryBreakdown memory = memoryBreakdown(fixture.document.design(), *fixture.document.prediction());
        ValueTable& stages = fixture.window->stages();
        QCOMPARE(stages.rowCount(), 4);
        QCOMPARE(stages.text(2, 6), sizeText(memory.stages[2].weights));
        QVERIFY(stages.text(2, 9).startsWith(sizeText(memory.stages[2].activations)));
        QCOMPARE(fixture.window->memory().label(3), ofWhole(memory.devices[3].peak, memory.devices[3].limit));
        ValueTable& layers = fixture.window->layers();
        QCOMPARE(layers.rowCount(), int(fixture.document.design().workload->layers.size()));
        QCOMPARE(layers.text(0, 1), QStringLiteral("0"));
        QCOMPARE(layers.text(layers.rowCount() - 1, 1), QStringLiteral("3"));
        double shares = 0;
        for (int stage = 0; stage < 4; ++stage)
            shares += fixture.window->partition().shareOfStage(stage);
        QVERIFY(std::abs(shares - 1) < 1e-9);
    }

    void aDesignWithoutAModelShowsItsCostsAndCannotBeCut()
    {
        ModelAndClusterFixture fixture;
        fixture.document.reset(test::familyDesign());
        QVERIFY(fixture.window->partition().partition().empty());
        QCOMPARE(fixture.window->stages().rowCount(), 4);
        QCOMPARE(fixture.window->layers().rowCount(), 0);
        fixture.window->stages().setCurrentCell(0, 2);
        QTest::keyClick(&fixture.window->stages(), Qt::Key_Return);
        QVERIFY(!fixture.window->stages().findChild<QLineEdit*>());
    }
};

PIPEWRIGHT_TEST(TestModelWindow, QApplication)
#include "tst_modelwindow.moc"
