// SPDX-License-Identifier: GPL-3.0-or-later
// Drawing a building block: by mouse and by key, with its collisions and its bound, until it is the schedule.
#include "core/buildingblock/publishedblocklist.h"
#include "gui/buildingblock/buildingblockcells.h"
#include "gui/buildingblock/buildingblockeditor.h"
#include "gui/buildingblock/buildingblockgrid.h"
#include "gui/buildingblock/buildingblockpreview.h"
#include "gui/widgets/factlist.h"
#include "makers/designs.h"
#include "testmain.h"

#include <QApplication>
#include <QComboBox>
#include <QLabel>
#include <QPushButton>
#include <QSignalSpy>
#include <QSpinBox>
#include <QTest>
#include <QToolButton>

#include <cmath>

using namespace pipewright;

namespace {

struct Fixture {
    Document document;
    std::unique_ptr<BuildingBlockEditor> editor;

    explicit Fixture(const char* family = "zb-h1")
    {
        document.reset(test::familyDesign(family));
        editor = std::make_unique<BuildingBlockEditor>(document);
        editor->show();
        (void)QTest::qWaitForWindowActive(editor.get());
    }
    BuildingBlockGrid& grid() { return editor->grid(); }
    int pass(Op op, int stage)
    {
        const BuildingBlock& block = grid().shown();
        for (std::size_t i = 0; i < block.passes.size(); ++i)
            if (block.passes[i].op == op && block.passes[i].stage == stage)
                return int(i);
        return -1;
    }
    int start(Op op, int stage) { return grid().shown().passes[std::size_t(pass(op, stage))].start; }
    double unit() { return grid().rectOfPass(0).width() + 1; }
    /// Presses on a pass and moves by units and devices, in steps as a hand does; no release.
    QPoint grab(int index, int units, int devices)
    {
        const QPoint from = grid().rectOfPass(index).center().toPoint();
        const double lane = grid().rectOfPass(pass(Op::F, 1)).top() - grid().rectOfPass(pass(Op::F, 0)).top();
        const QPoint to = from + QPoint(int(units * unit()), int(devices * std::abs(lane)));
        QTest::mousePress(&grid(), Qt::LeftButton, {}, from);
        for (int i = 1; i <= 4; ++i)
            QTest::mouseMove(&grid(), from + (to - from) * i / 4);
        return to;
    }
    void drag(int index, int units, int devices)
    {
        QTest::mouseRelease(&grid(), Qt::LeftButton, {}, grab(index, units, devices));
    }
    bool settled()
    {
        return QTest::qWaitFor([this] { return !editor->isPredicting(); }, 30'000);
    }
    template<typename Widget>
    Widget* named(const char* name)
    {
        for (Widget* child : editor->findChildren<Widget*>())
            if (child->accessibleName() == QLatin1String(name))
                return child;
        return nullptr;
    }
};

} // namespace

class TestBuildingBlockEditor : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void init() { Theme::dark().apply(*qApp); }

    void itOpensOnTheBlockOfThePresentSchedule()
    {
        Fixture fixture;
        QCOMPARE(fixture.editor->block().block, *blockOfFamily("zb-h1", 4, 8));
        QCOMPARE(fixture.named<QComboBox>("Start from")->currentData().toString(), QStringLiteral("zb-h1"));
        QVERIFY(fixture.settled());
        // Unrolled, it is the schedule that is there already.
        QCOMPARE(fixture.editor->facts().value(QStringLiteral("against the present")), QStringLiteral("unchanged"));
        QCOMPARE(fixture.editor->facts().value(QStringLiteral("memory bound")),
                 QStringLiteral("4 chunks = 4.0\u00a0×"));
    }

    void passesAreWrittenAsBlocksAreOnTheLanes()
    {
        Fixture fixture;
        const BuildingBlock& block = fixture.grid().shown();
        const BuildingBlock::Pass& f1 = block.passes[std::size_t(fixture.pass(Op::F, 1))];
        QCOMPARE(labelOfPass(block, f1, 0).letter, QStringLiteral("F")); // its lane says the stage
        QCOMPARE(labelOfPass(block, f1, 0).microbatch, QStringLiteral("m"));
        QCOMPARE(labelOfPass(block, f1, 2).microbatch, QStringLiteral("m+2"));
        QCOMPARE(labelOfPass(block, f1, -1).microbatch, QStringLiteral("m\u22121"));
        QVERIFY(fixture.grid().nameOfPass(fixture.pass(Op::F, 1)).startsWith(QLatin1String("F1.m at 1")));
        Fixture several("v-half"); // two stages on a device
        const BuildingBlock& v = several.grid().shown();
        QCOMPARE(labelOfPass(v, v.passes[std::size_t(several.pass(Op::F, 7))], 0).letter, QStringLiteral("F7"));
    }

    void repeatedPassesCanBeReadInBothThemes()
    {
        for (const Theme* theme : {&Theme::dark(), &Theme::light()}) {
            theme->apply(*qApp);
            Fixture fixture;
            fixture.editor->resize(1600, 900);
            QTest::qWait(0);
            const QRectF first = fixture.grid().rectOfPass(fixture.pass(Op::F, 0));
            const QRectF next = first.translated(fixture.grid().shown().interval * fixture.unit(), 0);
            const QImage picture = fixture.grid().grab(next.toRect()).toImage();
            const auto contrast = [](QRgb a, QRgb b) {
                const auto light = [](QRgb c) {
                    const auto part = [](int v) {
                        const double x = v / 255.0;
                        return x <= 0.04045 ? x / 12.92 : std::pow((x + 0.055) / 1.055, 2.4);
                    };
                    return 0.2126 * part(qRed(c)) + 0.7152 * part(qGreen(c)) + 0.0722 * part(qBlue(c));
                };
                return (std::max(light(a), light(b)) + 0.05) / (std::min(light(a), light(b)) + 0.05);
            };
            const QRgb ground = picture.pixel(8, 8);
            double most = 0;
            for (int y = picture.height() / 4; y < picture.height() * 3 / 4; ++y)
                for (int x = picture.width() / 4; x < picture.width() * 3 / 4; ++x)
                    most = std::max(most, contrast(ground, picture.pixel(x, y)));
            QVERIFY2(most >= 3, qPrintable(QStringLiteral("%1 in the %2 look").arg(most).arg(theme->isDark)));
        }
    }

    void aLargeWindowIsUsed()
    {
        Fixture fixture;
        fixture.editor->resize(2500, 1380);
        QTRY_VERIFY(fixture.grid().height() > 750);
        QVERIFY(fixture.editor->cells().height() >= 4 * 60);
    }

    void aDraggedPassShowsItsCollisionAndEscapeTakesItBack()
    {
        Fixture fixture;
        const BuildingBlock before = fixture.grid().shown();
        const int w0 = fixture.pass(Op::W, 0);
        fixture.grab(w0, 1, 0); // onto the cell in which the device runs F
        QCOMPARE(fixture.start(Op::W, 0), before.passes[std::size_t(w0)].start + 1);
        QCOMPARE(fixture.grid().conflicts().size(), std::size_t(1));
        QCOMPARE(fixture.editor->block().block, before); // a drag is a preview
        QVERIFY(fixture.settled());
        QVERIFY2(fixture.editor->faults().contains(QLatin1String("W0.m")), qPrintable(fixture.editor->faults()));
        QVERIFY(!fixture.editor->unrollButton()->isEnabled());
        QTest::keyClick(&fixture.grid(), Qt::Key_Escape);
        QCOMPARE(fixture.grid().shown(), before);
        QVERIFY(fixture.editor->isVisible());
        QVERIFY(fixture.settled());
        QVERIFY(fixture.editor->unrollButton()->isEnabled());
    }

    void aLongerIntervalShrinksTheBound()
    {
        Fixture fixture;
        QCOMPARE(fixture.editor->cells().boundText(0), QStringLiteral("⌈12/3⌉ = 4"));
        auto* interval = fixture.named<QSpinBox>("Interval");
        interval->setFocus();
        interval->selectAll();
        QTest::keyClicks(interval, QStringLiteral("6"));
        QTest::keyClick(interval, Qt::Key_Tab);
        QCOMPARE(fixture.editor->cells().boundText(0), QStringLiteral("⌈12/6⌉ = 2"));
        QVERIFY(fixture.settled());
        QCOMPARE(fixture.editor->facts().value(QStringLiteral("work per interval")), QStringLiteral("3 of 6 units"));
        QTest::keyClick(fixture.editor.get(), Qt::Key_Z, Qt::ControlModifier);
        QCOMPARE(fixture.editor->block().block.interval, 3);
        QCOMPARE(interval->value(), 3);
    }

    void keysAndFieldDoWhatTheMouseDoes()
    {
        Fixture byMouse, byKey, byField;
        const int w0 = byMouse.pass(Op::W, 0);
        byMouse.drag(w0, 3, 0);
        byKey.grid().setFocus();
        byKey.grid().selectPass(w0);
        for (int i = 0; i < 3; ++i)
            QTest::keyClick(&byKey.grid(), Qt::Key_Right, Qt::AltModifier);
        byField.grid().selectPass(w0);
        auto* start = byField.named<QSpinBox>("Start of the pass");
        start->setFocus();
        start->selectAll();
        QTest::keyClicks(start, QString::number(start->value() + 3));
        QTest::keyClick(start, Qt::Key_Tab);
        QCOMPARE(byKey.editor->block(), byMouse.editor->block());
        QCOMPARE(byField.editor->block(), byMouse.editor->block());
        QVERIFY(!(byMouse.editor->block().block == *blockOfFamily("zb-h1", 4, 8)));
        // Return puts it back into the first free cell, which is where it came from.
        QTest::keyClick(&byKey.grid(), Qt::Key_Return);
        QCOMPARE(byKey.editor->block().block, *blockOfFamily("zb-h1", 4, 8));
    }

    void aStageGoesToAnotherDeviceWithItsPasses()
    {
        Fixture fixture("v-half");
        const int f1 = fixture.pass(Op::F, 1);
        fixture.drag(f1, 0, 1);
        QCOMPARE(fixture.editor->block().block.deviceOfStage[1], 2);
        QCOMPARE(fixture.start(Op::F, 1), blockOfFamily("v-half", 4, 8)->passes[std::size_t(f1)].start);
        QVERIFY(!fixture.grid().conflicts().empty());
        QTest::keyClick(&fixture.grid(), Qt::Key_Up, Qt::AltModifier);
        QCOMPARE(fixture.editor->block().block, *blockOfFamily("v-half", 4, 8));
        auto* device = fixture.named<QSpinBox>("Device of the pass");
        QCOMPARE(device->value(), 1);
        QTest::keyClick(device, Qt::Key_Up);
        QCOMPARE(fixture.editor->block().block.deviceOfStage[1], 2);
        QCOMPARE(device->value(), 2);
    }

    void theLastStageOfADeviceStays()
    {
        Fixture fixture;
        QSignalSpy refused(&fixture.grid(), &BuildingBlockGrid::refused);
        fixture.grid().selectPass(fixture.pass(Op::F, 2));
        QTest::keyClick(&fixture.grid(), Qt::Key_Down, Qt::AltModifier);
        QCOMPARE(refused.count(), 1);
        QCOMPARE(fixture.editor->block().block, *blockOfFamily("zb-h1", 4, 8));
        QVERIFY2(fixture.editor->faults().contains(QLatin1String("every device keeps a stage")),
                 qPrintable(fixture.editor->faults()));
        auto* device = fixture.named<QSpinBox>("Device of the pass");
        QTest::keyClick(device, Qt::Key_Up);
        QCOMPARE(refused.count(), 2);
        QCOMPARE(device->value(), 2);
    }

    void arrowsWalkOverThePasses()
    {
        Fixture fixture;
        fixture.grid().selectPass(fixture.pass(Op::F, 0));
        QTest::keyClick(&fixture.grid(), Qt::Key_Period);
        QCOMPARE(fixture.grid().selectedPass(), fixture.pass(Op::I, 0));
        QTest::keyClick(&fixture.grid(), Qt::Key_Right);
        QCOMPARE(fixture.grid().selectedPass(), fixture.pass(Op::W, 0));
        QTest::keyClick(&fixture.grid(), Qt::Key_Down);
        QCOMPARE(fixture.grid().selectedPass(), fixture.pass(Op::W, 1));
        QTest::keyClick(&fixture.grid(), Qt::Key_Comma);
        QCOMPARE(fixture.grid().selectedPass(), fixture.pass(Op::I, 1));
    }

    void unrollingIsOneUndoableCommandAndTheBlockIsKept()
    {
        Fixture fixture;
        const Design before = fixture.document.design();
        auto* forms = fixture.named<QComboBox>("Start from");
        const int form = forms->findData(QStringLiteral("v-half"));
        forms->setFocus();
        while (forms->currentIndex() < form)
            QTest::keyClick(forms, Qt::Key_Down);
        QCOMPARE(fixture.editor->block().block, *blockOfFamily("v-half", 4, 8));
        QVERIFY(fixture.settled());
        const QString promised = fixture.editor->facts().value(QStringLiteral("live at most"));
        QTest::mouseClick(fixture.editor->unrollButton(), Qt::LeftButton);
        QCOMPARE(fixture.document.undoStack()->index(), 1);
        QCOMPARE(fixture.document.design().schedule.stages(), 8);
        QVERIFY(fixture.document.design().buildingBlock == fixture.editor->block());
        double most = 0;
        for (const DeviceMetrics& device : fixture.document.prediction()->metrics.devices)
            most = std::max(most, device.peakActivations);
        QCOMPARE(promised, QString::number(most, 'f', 1) + QStringLiteral("\u00a0×"));
        QVERIFY(fixture.document.diagnostics().empty());
        fixture.document.undoStack()->undo();
        QCOMPARE(fixture.document.design(), before);
    }

    void thePreviewShowsTheBlockAndOpensTheEditorByClickAndKey()
    {
        Document document;
        document.reset(test::familyDesign("v-half"));
        BuildingBlockPreview preview(document);
        preview.resize(220, 130);
        preview.show();
        QCOMPARE(preview.caption().left(11), QStringLiteral("interval 6 "));
        QVERIFY(preview.caption().endsWith(QStringLiteral("bound 3.0\u00a0×")));
        QSignalSpy opened(&preview, &BuildingBlockPreview::opened);
        QWidget* picture = nullptr;
        for (QWidget* child : preview.findChildren<QWidget*>())
            if (child->accessibleName() == QLatin1String("Edit the building block"))
                picture = child;
        QVERIFY(picture);
        QTest::mouseClick(picture, Qt::LeftButton);
        QTest::keyClick(picture, Qt::Key_Return);
        QCOMPARE(opened.count(), 2);
        document.reset(test::familyDesign("gpipe")); // never more than there are
        QVERIFY2(preview.caption().endsWith(QStringLiteral("bound 8.0\u00a0×")), qPrintable(preview.caption()));
        document.reset(test::familyDesign("zb-auto"));
        QVERIFY(preview.caption().contains(QLatin1String("no building block")));
    }
};

PIPEWRIGHT_TEST(TestBuildingBlockEditor, QApplication)
#include "tst_buildingblockeditor.moc"
