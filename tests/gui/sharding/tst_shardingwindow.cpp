// SPDX-License-Identifier: GPL-3.0-or-later
// A stage shared among mixed devices: the program that was found, shares moved by key, the other programs, and the
// group taken over into the design and undone.
#include "core/design/newdesign.h"
#include "core/model/transformer.h"
#include "gui/sharding/programflow.h"
#include "gui/sharding/ratiosliders.h"
#include "gui/sharding/shardingwindow.h"
#include "gui/widgets/valuetable.h"
#include "makers/groups.h"
#include "makers/models.h"
#include "testmain.h"

#include <QApplication>
#include <QComboBox>
#include <QDoubleSpinBox>
#include <QMouseEvent>
#include <QPushButton>
#include <QScrollBar>
#include <QSignalSpy>
#include <QSlider>
#include <QTableWidget>
#include <QTest>
#include <QTreeWidget>
#include <QUndoStack>

#include <numeric>

using namespace pipewright;

namespace {

/// Two stages of a small model, one per device.
Design smallDesign()
{
    NewDesign choice;
    choice.workload = test::workloadOf(test::gptShape(2, 64, 4, 256, 64));
    choice.cluster.name = "test";
    choice.cluster.devices.assign(2, DeviceSpec{"fast", Bytes{1} << 34, 1e9, 1e11, 1});
    choice.cluster.link.latency = 2'000;
    choice.cluster.link.bandwidth = 1e9;
    choice.family = "1f1b";
    choice.microbatches = 4;
    return designFromModel(choice);
}

struct Fixture {
    Document document;
    std::unique_ptr<ShardingWindow> window;

    explicit Fixture(const Design& design)
    {
        document.reset(design);
        window = std::make_unique<ShardingWindow>(document);
        QSignalSpy finished(window.get(), &ShardingWindow::finished);
        window->show();
        ended = !finished.isEmpty() || finished.wait(120'000);
    }
    bool ended = false;
};

} // namespace

class TestShardingWindow : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void theProgramAndWhyIsShown()
    {
        Fixture f(smallDesign());
        QVERIFY(f.ended);
        QVERIFY2(f.window->state().contains(QStringLiteral("a microbatch")), qPrintable(f.window->state()));
        QVERIFY(f.window->flow().rows() > 4);
        for (int row = 0; row < f.window->flow().rows(); ++row)
            QVERIFY(!f.window->flow().rowText(row).isEmpty());
        QVERIFY(f.window->strategies()->topLevelItemCount() >= 3);
        QVERIFY(f.window->prediction().contains(QStringLiteral("best")));
        // The half as fast member, listed second, gets the smaller part.
        const std::vector<double> shares = f.window->sliders().shares();
        QCOMPARE(shares.size(), std::size_t{2});
        QVERIFY(shares[1] < shares[0]);
    }

    void sharesMovedByKeyCostMoreAndComeBack()
    {
        Fixture f(smallDesign());
        QVERIFY(f.ended);
        const QString best = f.window->prediction();
        const std::vector<double> shares = f.window->sliders().shares();
        QTest::keyClick(f.window->sliders().slider(1), Qt::Key_End);
        QCOMPARE(f.window->sliders().shares()[1], 1.0);
        QVERIFY(f.window->prediction() != best);
        QTest::keyClick(f.window->sliders().slider(1), Qt::Key_PageDown);
        const std::vector<double> moved = f.window->sliders().shares();
        QVERIFY(std::abs(std::accumulate(moved.begin(), moved.end(), 0.0) - 1) < 1e-9);
        auto* percent = f.window->sliders().findChild<QDoubleSpinBox*>();
        percent->selectAll();
        QTest::keyClicks(percent, QStringLiteral("25"));
        QTest::keyClick(percent, Qt::Key_Up); // takes what is typed, and one more
        QCOMPARE(f.window->sliders().shares()[0], 0.26);
        QCOMPARE(f.window->sliders().slider(0)->value(), 260);
        const auto buttons = f.window->findChildren<QPushButton*>();
        const auto back = std::find_if(buttons.begin(), buttons.end(),
                                       [](QPushButton* b) { return b->text() == QStringLiteral("Best shares"); });
        QVERIFY(back != buttons.end());
        (*back)->click();
        QCOMPARE(f.window->sliders().shares(), shares);
        QCOMPARE(f.window->prediction(), best);
    }

    void anotherProgramIsLookedAt()
    {
        Fixture f(smallDesign());
        QVERIFY(f.ended);
        const int last = f.window->strategies()->topLevelItemCount() - 1;
        const QString best = f.window->prediction();
        f.window->strategies()->setCurrentItem(f.window->strategies()->topLevelItem(last));
        QVERIFY(f.window->flow().rows() > 0);
        QVERIFY(f.window->prediction() != best);
    }

    void theGroupBecomesTheDeviceAndIsUndone()
    {
        Fixture f(smallDesign());
        QVERIFY(f.ended);
        const Design before = f.document.design();
        QSignalSpy applied(f.window.get(), &ShardingWindow::applied);
        f.window->applyButton()->click();
        QVERIFY(applied.wait(120'000));
        const Design& after = f.document.design();
        QVERIFY(after.cluster.devices[0].group != nullptr);
        QCOMPARE(after.cluster.devices[0].group->devices.size(), std::size_t{2});
        QVERIFY(after.costs != before.costs);
        f.document.undoStack()->undo();
        QVERIFY(f.document.design() == before);
    }

    void aPlanIsTakenOverItsSharesEditedAndUndone()
    {
        Fixture f(test::groupDesign("1f1b", {{1e9, 5e8}, {1e9, 5e8}}, 4));
        QVERIFY(f.ended);
        const Design before = f.document.design();
        QTreeWidget* list = f.window->strategies();
        const auto megatron = list->findItems(QStringLiteral("Megatron, columns and rows"), Qt::MatchExactly);
        QCOMPARE(megatron.size(), 1);
        list->setCurrentItem(megatron.front());
        QVERIFY(f.window->prediction().contains(QStringLiteral("the design's step is then")));
        QVERIFY(!f.window->forgetButton()->isEnabled());
        f.window->useButton()->click();
        QCOMPARE(f.document.design().plans.size(), std::size_t{2});
        QVERIFY(f.document.design().plans[0].strategy == sharding::Strategy::Megatron);
        QCOMPARE(f.document.undoStack()->undoText(), QStringLiteral("Plan of stage 0: megatron"));
        QCOMPARE(list->topLevelItem(0)->text(0), QStringLiteral("in the design: megatron"));
        QCOMPARE(list->indexOfTopLevelItem(list->currentItem()), 0);
        QVERIFY(!f.window->useButton()->isEnabled());
        const Design used = f.document.design();
        QVERIFY(!(used.costs == before.costs));

        // A drag predicts as it goes, and is one edit when the slider is let go.
        QSlider* slider = f.window->sliders().slider(0);
        const QString still = f.window->prediction();
        slider->setSliderDown(true);
        slider->setValue(400);
        slider->setValue(300);
        QVERIFY(f.window->prediction() != still);
        QVERIFY(f.document.design() == used);
        const int steps = f.document.undoStack()->count();
        slider->setSliderDown(false);
        QCOMPARE(f.document.undoStack()->count(), steps + 1);
        QCOMPARE(f.document.undoStack()->undoText(), QStringLiteral("Shares of stage 0: 30 : 70 %"));
        const std::vector<double> dragged = f.window->sliders().shares();
        QCOMPARE(dragged.front(), 0.3);
        QCOMPARE(f.document.design().plans[0].ratios, dragged);
        QVERIFY(f.document.design().plans[0].program == used.plans[0].program);
        QVERIFY(f.document.prediction()->metrics.makespan > 0);
        QTest::keyClick(slider, Qt::Key_PageUp);
        QCOMPARE(f.document.undoStack()->count(), steps + 2);

        f.document.undoStack()->undo();
        QCOMPARE(f.window->sliders().shares(), dragged);
        f.document.undoStack()->undo();
        QVERIFY(f.document.design() == used);
        QCOMPARE(f.window->sliders().shares(), used.plans[0].ratios);
        f.window->forgetButton()->click();
        QVERIFY(f.document.design() == before);
        QVERIFY(!list->topLevelItem(0)->text(0).startsWith(QStringLiteral("in the design")));
        QCOMPARE(f.document.undoStack()->undoText(), QStringLiteral("Find the plan of stage 0 anew"));
        // Another stage states nothing.
        f.window->useButton()->click();
        QVERIFY(f.document.design().plans[1] == sharding::StatedPlan{});
    }

    /// Where nothing before or behind it needs otherwise, by mouse and by key, and back by undo.
    void aCollectiveIsMovedByHand()
    {
        Fixture f(test::groupDesign("1f1b", {{1e9, 5e8}, {1e9, 5e8}}, 4));
        QVERIFY(f.ended);
        QTreeWidget* list = f.window->strategies();
        const auto megatron = list->findItems(QStringLiteral("Megatron, columns and rows"), Qt::MatchExactly);
        QCOMPARE(megatron.size(), 1);
        list->setCurrentItem(megatron.front());
        f.window->useButton()->click();
        const Design used = f.document.design();
        const std::vector<std::string> lines = used.plans[0].program;
        const auto isCollective = [&](std::size_t line) {
            return lines[line].find(": all_") != std::string::npos
                   || lines[line].find(": reduce_scatter") != std::string::npos;
        };
        std::size_t from = 0;
        while (from < lines.size() && !isCollective(from))
            ++from;
        QVERIFY(from > 0 && from + 1 < lines.size());

        // Before what it communicates: refused, with the line that misses it.
        ProgramFlow& flow = f.window->flow();
        flow.setCurrentRow(int(from));
        const int steps = f.document.undoStack()->count();
        Q_EMIT flow.moveWanted(int(from), 0);
        QCOMPARE(f.document.undoStack()->count(), steps);
        QVERIFY2(f.window->state().contains(QStringLiteral("program.0")), qPrintable(f.window->state()));
        QVERIFY(f.document.design() == used);

        // Something that does not depend on it goes before or behind it: one of the neighbours can, since parameters
        // are loaded when it is all the same to the rest.
        int to = -1;
        for (const int step : {1, -1})
            for (std::size_t c = from; c + 1 < lines.size() && to < 0; ++c) {
                if (!isCollective(c))
                    continue;
                flow.setCurrentRow(int(c));
                QTest::keyClick(&flow, step > 0 ? Qt::Key_Down : Qt::Key_Up, Qt::AltModifier);
                if (f.document.undoStack()->count() == steps)
                    continue;
                from = c;
                to = int(c) + step;
            }
        QVERIFY2(to >= 0, "no collective can move");
        std::vector<std::string> moved = lines;
        std::swap(moved[from], moved[std::size_t(to)]);
        QCOMPARE(f.document.design().plans[0].program, moved);
        QCOMPARE(f.document.undoStack()->undoText(), QStringLiteral("Order of stage 0's program"));
        QCOMPARE(flow.currentRow(), to);
        QVERIFY(f.document.prediction()->metrics.makespan > 0);

        // The mouse brings it back, and undo takes both away.
        const auto point = [&](int row, double part) {
            return QPoint(60, int((row + part) * 30) - flow.verticalScrollBar()->value());
        };
        const bool up = to > int(from);
        QTest::mousePress(flow.viewport(), Qt::LeftButton, {}, point(to, 0.5));
        QMouseEvent drag(QEvent::MouseMove, point(int(from), up ? 0.1 : 0.9),
                         flow.viewport()->mapToGlobal(point(int(from), up ? 0.1 : 0.9)), Qt::NoButton, Qt::LeftButton,
                         Qt::NoModifier);
        QApplication::sendEvent(flow.viewport(), &drag);
        QTest::mouseRelease(flow.viewport(), Qt::LeftButton, {}, point(int(from), up ? 0.1 : 0.9));
        QVERIFY(f.document.design() == used);
        f.document.undoStack()->undo();
        QCOMPARE(f.document.design().plans[0].program, moved);
        f.document.undoStack()->undo();
        QVERIFY(f.document.design() == used);
    }

    void theWindowFitsASmallScreenWithWhatWasFound()
    {
        Design design = smallDesign();
        for (DeviceSpec& device : design.cluster.devices)
            device.name = "NVIDIA H200 SXM"; // a long name, which stands in table and sliders
        Fixture f(design);
        QVERIFY(f.ended);
        QVERIFY2(f.window->minimumSizeHint().width() <= 1016,
                 qPrintable(QString::number(f.window->minimumSizeHint().width())));
        QCOMPARE(f.window->stageBox()->itemText(1), QStringLiteral("stage 1 on GPU 1")); // as on the lanes
        f.window->resize(1016, 616);
        QTest::qWait(0);
        const ValueTable& members = *f.window->members();
        QVERIFY(!members.showGrid());
        for (int column = 0; column < members.columnCount(); ++column)
            QCOMPARE(members.horizontalHeaderItem(column)->textAlignment(), members.item(0, column)->textAlignment());
    }

    void whatCannotBeSharedSaysWhy()
    {
        Fixture plain(test::familyDesign());
        QVERIFY(plain.ended);
        QVERIFY2(plain.window->state().contains(QStringLiteral("no model")), qPrintable(plain.window->state()));
        QVERIFY(!plain.window->applyButton()->isEnabled());

        Fixture f(smallDesign());
        QVERIFY(f.ended);
        const Design before = f.document.design();
        f.window->members()->item(1, 1)->setText(QStringLiteral("fast enough"));
        f.window->applyButton()->click();
        QVERIFY2(f.window->state().contains(QStringLiteral("fast enough")), qPrintable(f.window->state()));
        QVERIFY(f.document.design() == before);
    }
};

PIPEWRIGHT_TEST(TestShardingWindow, QApplication)
#include "tst_shardingwindow.moc"
