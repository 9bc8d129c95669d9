// SPDX-License-Identifier: GPL-3.0-or-later
// The main window: its panels together, suggestions, undo, idle time explained, the tray, files.
#include "core/families/family.h"
#include "core/schedule/edits.h"
#include "gui/designer/designfiles.h"
#include "gui/designer/editdifferences.h"
#include "gui/designer/familylist.h"
#include "gui/designer/footline.h"
#include "gui/designer/mainwindowfixture.h"
#include "gui/designer/topbar.h"
#include "gui/designer/windowactions.h"
#include "gui/document/namededits.h"
#include "gui/inspector/blockexplanation.h"
#include "gui/inspector/inspector.h"
#include "gui/inspector/suggestionlist.h"
#include "gui/memory/memorypanel.h"
#include "gui/timeline/timelineview.h"
#include "gui/widgets/factlist.h"
#include "gui/widgets/theme.h"
#include "gui/widgets/words.h"
#include "testmain.h"

#include <QAction>
#include <QApplication>
#include <QComboBox>
#include <QLineEdit>
#include <QListWidget>
#include <QMimeData>
#include <QPushButton>
#include <QSet>
#include <QSettings>
#include <QSignalSpy>
#include <QSpinBox>
#include <QTest>
#include <QTimer>
#include <QToolButton>
#include <QTreeWidget>

using namespace pipewright;
using Fixture = MainWindowFixture;

class TestMainWindow : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void init() { Theme::dark().apply(*qApp); }

    void theWindowIsNeverEmpty()
    {
        Fixture fixture;
        QVERIFY(fixture.document().prediction());
        QCOMPARE(fixture.document().design().schedule.family, std::string("zb-h1"));
        QVERIFY(shownNumber(fixture.window, "step").contains(QLatin1Char('s')));
        QVERIFY(shownNumber(fixture.window, "throughput").endsWith(QLatin1String("tok/s")));
        QVERIFY(fixture.window.topBar().validity()->text().contains(QLatin1String("fits")));
        QVERIFY(fixture.document().undoStack()->isClean());
    }

    void chartsShareTheTimelinesAxisToThePixel()
    {
        Fixture fixture;
        TimelineView& timeline = fixture.window.timeline();
        const Nanoseconds makespan = fixture.document().prediction()->metrics.makespan;
        for (const double from : {0.0, 0.3}) {
            timeline.showRange(static_cast<Nanoseconds>(double(makespan) * from),
                               static_cast<Nanoseconds>(double(makespan) * (from + 0.4)));
            const TimeAxis& axis = timeline.axis();
            const MemoryPanel& chart = fixture.window.memory();
            const double time = axis.timeAt(axis.left + axis.width / 3.0);
            const int timelineX = timeline.mapTo(&fixture.window, QPoint(0, 0)).x();
            const int chartX = chart.mapTo(&fixture.window, QPoint(0, 0)).x();
            QVERIFY(std::abs(timelineX + axis.xOf(time) - (chartX + chart.xOf(time))) < 0.5);
        }
    }

    void aSuggestedEditIsTriedWithOneClickAndUndoneExactly()
    {
        Fixture fixture;
        // A weight gradient put where it delays the input gradients that others wait for.
        const Block late{Op::I, 1, 2, 0};
        const int index = find(fixture.document().design().schedule, late).index;
        QVERIFY(!hasErrors(fixture.document().apply(blockMove(fixture.document().design(), late, index + 4))));
        const Design before = fixture.document().design();
        const int steps = fixture.document().undoStack()->count();
        const Nanoseconds makespan = fixture.document().prediction()->metrics.makespan;
        SuggestionList& list = fixture.window.suggestions();
        QSignalSpy searched(&list, &SuggestionList::searched);
        fixture.document().select(late);
        QTRY_VERIFY_WITH_TIMEOUT(!searched.isEmpty(), 60'000);
        QVERIFY(!list.cards().empty() && list.cards().front().edit);
        const Nanoseconds promised = list.cards().front().edit->makespan;
        QVERIFY(promised < 0);
        QVERIFY(list.cards().front().gain.startsWith(QStringLiteral("step \u2212")));
        QVERIFY(QTest::qWaitForWindowActive(&fixture.window));
        list.tryButtons().front()->setFocus();
        QTest::mouseClick(list.tryButtons().front(), Qt::LeftButton);
        QCOMPARE(fixture.document().undoStack()->count(), steps + 1);
        // The keys stay on the list, also while it searches, and then on one of its buttons.
        QVERIFY(QApplication::focusWidget() == &list || list.isAncestorOf(QApplication::focusWidget()));
        QTRY_VERIFY_WITH_TIMEOUT(!list.isSearching(), 60'000);
        QVERIFY(list.tryButtons().isEmpty() ? list.hasFocus() : list.tryButtons().front()->hasFocus());
        QCOMPARE(fixture.document().prediction()->metrics.makespan, makespan + promised);
        fixture.document().undoStack()->undo();
        QCOMPARE(fixture.document().design(), before);
    }

    void theFirstSuggestionIsTakenByKeyAndAFamilyThatIsFasterIsOffered()
    {
        Fixture fixture;
        QVERIFY(QTest::qWaitForWindowActive(&fixture.window));
        SuggestionList& list = fixture.window.suggestions();
        std::vector<std::optional<FamilyEstimate>> estimates;
        fixture.document().select(Block{Op::F, 0, 0, 0});
        QTRY_VERIFY_WITH_TIMEOUT(!list.isSearching(), 60'000);
        for (std::size_t f = 0; f < families().size(); ++f)
            estimates.push_back(
                FamilyEstimates::estimate(fixture.document().design(), f, *fixture.document().memberPredictor()));
        list.setEstimates(estimates);
        const auto offered =
            std::find_if(list.cards().begin(), list.cards().end(), [](const auto& c) { return c.family.has_value(); });
        QVERIFY(offered != list.cards().end());
        const FamilyEstimate best = *estimates[*offered->family];
        // Prices can be compared at a glance: one unit on all cards, also where they differ by orders of magnitude.
        QSet<QString> units;
        for (const auto& card : list.cards())
            if (!card.price.contains(QChar(0x00B1))) // ±0
                units << card.price.section(QChar(0x00A0), 1);
        QVERIFY2(units.size() == 1, qPrintable(units.values().join(u' ')));
        QTest::mouseClick(list.tryButtons().at(int(offered - list.cards().begin())), Qt::LeftButton);
        QCOMPARE(fixture.document().undoStack()->count(), 1);
        QCOMPARE(fixture.document().prediction()->metrics.makespan, best.makespan);
        fixture.document().undoStack()->undo();

        const Block late{Op::I, 1, 2, 0};
        fixture.document().apply(
            blockMove(fixture.document().design(), late, find(fixture.document().design().schedule, late).index + 4));
        fixture.document().select(late);
        QTRY_VERIFY_WITH_TIMEOUT(!list.isSearching(), 60'000);
        const Nanoseconds makespan = fixture.document().prediction()->metrics.makespan;
        fixture.window.timeline().setFocus();
        QTest::keyClick(&fixture.window.timeline(), Qt::Key_T);
        QVERIFY(fixture.document().prediction()->metrics.makespan < makespan);
    }

    void aClickOnABubbleExplainsItAndShowsTheChain()
    {
        Fixture fixture;
        TimelineView& timeline = fixture.window.timeline();
        const Block first{Op::F, 2, 0, 0};
        const QRect rect = timeline.rectOfBlock(first);
        QTest::mouseClick(timeline.viewport(), Qt::LeftButton, {}, QPoint(rect.left() - 8, rect.center().y()));
        QVERIFY(fixture.document().selection() == first);
        const TimelineView::Reason* reason = timeline.reason();
        QVERIFY(reason);
        QCOMPARE(reason->device, 2);
        QCOMPARE(reason->start, Nanoseconds(0));
        QCOMPARE(reason->chain, (std::vector<Block>{{Op::F, 1, 0, 0}, {Op::F, 0, 0, 0}}));
        const QString why = fixture.window.inspector().why();
        QVERIFY2(why.contains(QStringLiteral("F1.0")) && why.contains(QStringLiteral("F0.0"))
                     && why.contains(QStringLiteral("transfer")),
                 qPrintable(why));
        // The keyboard's way to the same answer.
        fixture.document().select(std::nullopt);
        QVERIFY(!timeline.reason());
        fixture.document().select(first);
        QTest::keyClick(&timeline, Qt::Key_E);
        QVERIFY(timeline.reason() && timeline.reason()->chain.size() == 2);
    }

    void searchingByABeginningGoesOnWithEnterAndBackWithShiftEnter()
    {
        Fixture fixture;
        QVERIFY(QTest::qWaitForWindowActive(&fixture.window));
        QLineEdit* field = fixture.window.topBar().findField();
        QTest::keyClick(&fixture.window.timeline(), Qt::Key_Slash);
        QVERIFY(field->hasFocus());
        QTest::keyClicks(field, QStringLiteral("w1."));
        QTest::keyClick(field, Qt::Key_Return);
        const auto first = fixture.document().selection();
        QVERIFY(first && first->op == Op::W && first->stage == 1);
        QTest::keyClick(field, Qt::Key_Return);
        QVERIFY(fixture.document().selection() != first);
        QTest::keyClick(field, Qt::Key_Return, Qt::ShiftModifier);
        QVERIFY(fixture.document().selection() == first);
        QTest::keyClick(field, Qt::Key_Escape);
        QVERIFY(field->text().isEmpty());
    }

    void idleTimeBehindTheLastBlockIsExplainedByTheOneThatFinishesLast()
    {
        Fixture fixture;
        TimelineView& timeline = fixture.window.timeline();
        const std::optional<Block> last =
            lastBlock(fixture.document().prediction()->program, fixture.document().prediction()->timeline);
        // A device that is done well before the step ends.
        QRect rect;
        for (int device = 0; device < timeline.laneCount(); ++device) {
            const QRect end = timeline.rectOfBlock(timeline.visibleBlocks(device).back());
            if (end.right() + 12 < timeline.rectOfBlock(*last).right())
                rect = end;
        }
        QVERIFY(!rect.isNull());
        QTest::mouseClick(timeline.viewport(), Qt::LeftButton, {}, QPoint(rect.right() + 6, rect.center().y()));
        QVERIFY(timeline.reason());
        QVERIFY(timeline.reason()->chain.front() == *last);
        const QString why = fixture.window.inspector().why();
        QVERIFY2(why.contains(QString::fromStdString(toString(*last))), qPrintable(why));
    }

    void undoAndRedoButtonsWork()
    {
        Fixture fixture;
        const Design before = fixture.document().design();
        fixture.document().select(Block{Op::W, 0, 7, 0});
        QVERIFY(!fixture.window.topBar().undoButton()->isEnabled());
        fixture.document().apply(UnplaceBlocks{{{Op::W, 0, 7, 0}}});
        const Design after = fixture.document().design();
        QVERIFY(fixture.window.topBar().undoButton()->isEnabled());
        QTest::mouseClick(fixture.window.topBar().undoButton(), Qt::LeftButton);
        QCOMPARE(fixture.document().design(), before);
        QTest::mouseClick(fixture.window.topBar().redoButton(), Qt::LeftButton);
        QCOMPARE(fixture.document().design(), after);
    }

    void aBlockFromTheTrayCanBeDraggedAndPlacedByKey()
    {
        Fixture fixture;
        const Design before = fixture.document().design();
        fixture.document().apply(UnplaceBlocks{{{Op::W, 2, 7, 0}}});
        BlockChip* chip = fixture.firstChip();
        QVERIFY(chip);
        QVERIFY(chip->block() == (Block{Op::W, 2, 7, 0}));
        const std::unique_ptr<QMimeData> data(chip->mimeData());
        QCOMPARE(data->data(QStringLiteral("application/x-pipewright-block")), QByteArray("W2.7"));
        QVERIFY(!fixture.window.topBar().runButton()->isEnabled());

        // A drag starts beyond the threshold and ends with Escape, which changes nothing.
        QSignalSpy dragged(chip, &BlockChip::dragStarted);
        QTimer escape;
        connect(&escape, &QTimer::timeout, this,
                [&] { QTest::keyClick(fixture.window.windowHandle(), Qt::Key_Escape); });
        escape.start(10);
        const QPoint centre = chip->rect().center();
        QTest::mousePress(chip, Qt::LeftButton, Qt::NoModifier, centre);
        QMouseEvent move(QEvent::MouseMove, centre + QPoint(40, 40), chip->mapToGlobal(centre + QPoint(40, 40)),
                         Qt::LeftButton, Qt::LeftButton, Qt::NoModifier);
        QApplication::sendEvent(chip, &move);
        escape.stop();
        QCOMPARE(dragged.count(), 1);
        QVERIFY(fixture.document().selection() == (Block{Op::W, 2, 7, 0})); // what is pressed is shown in the inspector
        QList<QAction*> offered;
        QTimer::singleShot(0, chip, [&offered] {
            if (QWidget* menu = QApplication::activePopupWidget()) {
                offered = menu->actions();
                menu->close();
            }
        });
        QTest::keyClick(chip, Qt::Key_F10, Qt::ShiftModifier);
        QCOMPARE(offered, chip->actions());
        fixture.window.activateWindow();
        QVERIFY(QTest::qWaitForWindowActive(&fixture.window));
        QCOMPARE(unplacedBlocks(fixture.document().design().schedule).size(), std::size_t(1));

        QTest::keyClick(&fixture.window, Qt::Key_N);
        QVERIFY(unplacedBlocks(fixture.document().design().schedule).empty());
        QVERIFY(fixture.document().selection() == (Block{Op::W, 2, 7, 0}));
        QVERIFY(!fixture.firstChip());
        fixture.document().undoStack()->undo();
        fixture.document().undoStack()->undo();
        QCOMPARE(fixture.document().design(), before);
    }

    void theTrayCompletesTheRestAsOneStep()
    {
        Fixture fixture;
        fixture.document().apply(UnplaceBlocks{{{Op::W, 0, 7, 0}, {Op::W, 1, 7, 0}, {Op::W, 3, 6, 0}}});
        const int index = fixture.document().undoStack()->index();
        fixture.window.windowActions().completeRest->trigger();
        QVERIFY(unplacedBlocks(fixture.document().design().schedule).empty());
        QCOMPARE(fixture.document().undoStack()->index(), index + 1);
        QVERIFY(!hasErrors(fixture.document().diagnostics()));
    }

    void aFamilyIsSwitchedByClickAndUndone()
    {
        Fixture fixture;
        const Design before = fixture.document().design();
        FamilyList& list = fixture.window.families();
        std::size_t gpipe = 0;
        while (pipewright::families()[gpipe].name != "gpipe")
            ++gpipe;
        QTRY_VERIFY_WITH_TIMEOUT(list.estimates()[gpipe].has_value(), 60000);
        QTreeWidgetItem* item = list.row(gpipe);
        list.list()->scrollToItem(item);
        QTest::mouseClick(list.list()->viewport(), Qt::LeftButton, Qt::NoModifier,
                          list.list()->visualItemRect(item).center());
        QCOMPARE(fixture.document().design().schedule.family, std::string("gpipe"));
        QCOMPARE(fixture.document().undoStack()->index(), 1);
        // What was promised beside the name is what it gives.
        QTRY_VERIFY_WITH_TIMEOUT(list.estimates()[gpipe].has_value(), 60000);
        QCOMPARE(fixture.document().prediction()->metrics.rateMakespan, list.estimates()[gpipe]->bubble);
        // Once it is no longer what the family makes, its row says what it is, and both when asked.
        fixture.document().apply(PinBlock{{Op::F, 0, 1, 0}, 500'000'000});
        const double bubble = fixture.document().prediction()->metrics.rateMakespan;
        QVERIFY(bubble > list.estimates()[gpipe]->bubble + 0.01);
        QCOMPARE(item->text(1), percentText(bubble));
        QVERIFY2(item->toolTip(0).contains(percentText(list.estimates()[gpipe]->bubble)), qPrintable(item->toolTip(0)));
        fixture.document().undoStack()->undo();
        QCOMPARE(item->text(1), percentText(list.estimates()[gpipe]->bubble));
        QTest::mouseClick(fixture.window.topBar().undoButton(), Qt::LeftButton);
        QCOMPARE(fixture.document().design(), before);
    }

    void theInspectorExplainsAndItsFieldsEdit()
    {
        Fixture fixture;
        const Block block{Op::I, 1, 0, 0};
        fixture.document().select(block);
        Inspector& inspector = fixture.window.inspector();
        QVERIFY2(inspector.why().contains(QLatin1String("I2.0")), qPrintable(inspector.why()));
        QVERIFY(!inspector.facts().value(QStringLiteral("duration")).isEmpty());
        QVERIFY(!inspector.facts().value(QStringLiteral("sends to")).isEmpty());

        auto* pin = inspector.findChild<QLineEdit*>();
        for (QLineEdit* edit : inspector.findChildren<QLineEdit*>()) {
            if (edit->accessibleName() == QLatin1String("Earliest start"))
                pin = edit;
        }
        pin->setFocus();
        QTest::keyClicks(pin, QStringLiteral("900ms"));
        QTest::keyClick(pin, Qt::Key_Return);
        QCOMPARE(fixture.document().design().schedule.pins, (std::vector<Pin>{{block, 900'000'000}}));
        QVERIFY(inspector.why().contains(QLatin1String("pinned")));
        pin->clear();
        QTest::keyClick(pin, Qt::Key_Return);
        QVERIFY(fixture.document().design().schedule.pins.empty());

        fixture.document().select(Block{Op::W, 2, 3, 0});
        const Position before = find(fixture.document().design().schedule, {Op::W, 2, 3, 0});
        auto* position = inspector.findChild<QSpinBox*>();
        QCOMPARE(position->value(), before.index + 1);
        QTest::keyClick(position, Qt::Key_Up);
        QCOMPARE(find(fixture.document().design().schedule, {Op::W, 2, 3, 0}).index, before.index + 1);
        QCOMPARE(position->value(), before.index + 2);
        QTest::keyClick(position, Qt::Key_Down);
        QCOMPARE(find(fixture.document().design().schedule, {Op::W, 2, 3, 0}).index, before.index);

        // The stage to another device, and the warm-up of its device.
        const auto field = [&inspector](const char* name) {
            for (QSpinBox* spin : inspector.findChildren<QSpinBox*>())
                if (spin->accessibleName() == QLatin1String(name))
                    return spin;
            return static_cast<QSpinBox*>(nullptr);
        };
        const Design design = fixture.document().design();
        QSpinBox* device = field("Device of the stage");
        QCOMPARE(device->value(), 2);
        QTest::keyClick(device, Qt::Key_Down);
        QCOMPARE(find(fixture.document().design().schedule, {Op::F, 2, 0, 0}).device, 1);
        QCOMPARE(device->value(), 1);
        fixture.document().undoStack()->undo();
        QCOMPARE(device->value(), 2);
        QSpinBox* warm = field("Warm-up of the device");
        const int forwards = warm->value();
        QTest::keyClick(warm, Qt::Key_Down);
        QCOMPARE(warm->value(), forwards - 1);
        QCOMPARE(fixture.document().undoStack()->undoText(),
                 QStringLiteral("Warm-up of %1 on %2").arg(forwards - 1).arg(deviceLabel(design, 2)));
        fixture.document().undoStack()->undo();
        QCOMPARE(fixture.document().design(), design);
    }

    void theLastEditIsShownByDevice()
    {
        Fixture fixture;
        const EditDifferences& differences = fixture.window.differences();
        const QString gpu = deviceLabel(fixture.document().design(), 0);
        QVERIFY(differences.value(gpu, EditDifferences::Idle).isEmpty());
        const Metrics before = fixture.document().prediction()->metrics;
        fixture.document().apply(PinBlock{{Op::F, 0, 1, 0}, before.makespan});
        const Metrics after = fixture.document().prediction()->metrics;
        QVERIFY(after.devices[0].idle > before.devices[0].idle);
        const QString expected = QStringLiteral("0.46 → 1.982\u00a0s"); // in one unit
        QCOMPARE(differences.value(gpu, EditDifferences::Idle), expected);
        const QString peaks[] = {sizeText(before.devices[0].peakBytes), sizeText(after.devices[0].peakBytes)};
        QCOMPARE(differences.value(gpu, EditDifferences::Peak),
                 peaks[0] == peaks[1] ? peaks[1] : pairText(peaks[0], peaks[1]));
        fixture.document().undoStack()->undo();
        QVERIFY(differences.value(gpu, EditDifferences::Idle).isEmpty());
        fixture.document().undoStack()->redo();
        QCOMPARE(differences.value(gpu, EditDifferences::Idle), expected);
    }

    void aDragInALargeDesignShowsTheSameNumbersAsInASmallOne()
    {
        // What is moved and how often is counted in the compiled Program; a large design's drag has only times.
        const auto shownWhileDragging = [](double largeFrom) {
            Fixture fixture;
            TimelineView& view = fixture.window.timeline();
            view.setLargeFrom(largeFrom);
            const Block held{Op::W, 1, 0, 0};
            const QPoint from = view.rectOfBlock(held).center();
            const auto mouse = [&view](QEvent::Type type, QPoint at, Qt::MouseButton button, Qt::MouseButtons buttons) {
                QMouseEvent event(type, at, view.viewport()->mapToGlobal(at), button, buttons, Qt::AltModifier);
                QApplication::sendEvent(view.viewport(), &event);
            };
            mouse(QEvent::MouseButtonPress, from, Qt::LeftButton, Qt::LeftButton);
            for (int x = from.x(); x < view.axis().right() && !view.preview(); x += 10)
                mouse(QEvent::MouseMove, QPoint(x, from.y()), Qt::NoButton, Qt::LeftButton);
            QStringList shown;
            if (view.preview()) {
                shown << QString::fromStdString(view.preview()->program.label(0));
                for (const char* name : {"step", "bubble", "peak", "throughput", "moved"})
                    shown << shownNumber(fixture.window, name);
                const EditDifferences& differences = fixture.window.differences();
                // Not the peaks: during the drag of a large design they are approximate.
                shown << differences.value(deviceLabel(fixture.document().design(), 1), EditDifferences::Idle);
                shown << differences.summary();
            }
            return shown;
        };
        const QStringList small = shownWhileDragging(1e9);
        QVERIFY(small.size() == 8 && !small.contains(QString()));
        QCOMPARE(shownWhileDragging(0), small);
    }

    void theDifferencesKeepTheirRowsOverIllegalPlaces()
    {
        Fixture fixture;
        TimelineView& view = fixture.window.timeline();
        const EditDifferences& differences = fixture.window.differences();
        const QPoint from = view.rectOfBlock({Op::F, 3, 7, 0}).center();
        const auto mouse = [&view](QEvent::Type type, QPoint at, Qt::MouseButton button, Qt::MouseButtons buttons) {
            QMouseEvent event(type, at, view.viewport()->mapToGlobal(at), button, buttons, Qt::AltModifier);
            QApplication::sendEvent(view.viewport(), &event);
        };
        mouse(QEvent::MouseButtonPress, from, Qt::LeftButton, Qt::LeftButton);
        mouse(QEvent::MouseMove, QPoint(static_cast<int>(view.axis().right()) - 2, from.y()), Qt::NoButton,
              Qt::LeftButton);
        QVERIFY(view.isPreviewing() && !view.preview()); // behind its own backward block
        QVERIFY(!differences.summary().isEmpty());
        QTest::keyClick(view.viewport(), Qt::Key_Escape);
        QVERIFY(!view.isPreviewing());
        QVERIFY(differences.summary().isEmpty());
        mouse(QEvent::MouseButtonRelease, from, Qt::LeftButton, Qt::NoButton);
    }

    void filesAreSavedAndOpenedAgain()
    {
        Fixture fixture;
        fixture.document().apply(UnplaceBlocks{{{Op::W, 0, 7, 0}}});
        const QString path = fixture.folder.filePath(QStringLiteral("a.json"));
        QVERIFY(fixture.window.files().saveTo(path));
        QVERIFY(!fixture.window.isWindowModified());
        const Design saved = fixture.document().design();
        fixture.document().reset(exampleDesign());
        QVERIFY(fixture.window.files().openFile(path));
        QCOMPARE(fixture.document().design(), saved);
    }

    void theThemeIsSwitchedAndRemembered()
    {
        Fixture fixture;
        fixture.window.windowActions().theme->trigger();
        QVERIFY(!Theme::of(fixture.window).isDark);
        QCOMPARE(
            QSettings(fixture.options().settingsFile, QSettings::IniFormat).value(QStringLiteral("theme")).toString(),
            QStringLiteral("light"));
        fixture.window.windowActions().theme->trigger();
        QVERIFY(Theme::of(fixture.window).isDark);
    }

    void aBlockIsFoundByName()
    {
        Fixture fixture;
        QTest::keyClick(&fixture.window, Qt::Key_Slash);
        QLineEdit* field = fixture.window.topBar().findField();
        QTest::keyClicks(field, QStringLiteral("f2.5"));
        QTest::keyClick(field, Qt::Key_Return);
        QVERIFY(fixture.document().selection() == (Block{Op::F, 2, 5, 0}));
    }

    void everyControlHasAnAccessibleName()
    {
        Fixture fixture;
        for (QWidget* widget : fixture.window.findChildren<QWidget*>()) {
            if (!widget->isVisible() || !(widget->focusPolicy() & Qt::TabFocus)
                || widget->objectName().startsWith(QLatin1String("qt_")))
                continue;
            const auto* button = qobject_cast<QAbstractButton*>(widget);
            const bool isNamed = !widget->accessibleName().isEmpty() || (button && !button->text().isEmpty());
            QVERIFY2(isNamed, qPrintable(QStringLiteral("%1 in %2")
                                             .arg(widget->metaObject()->className(),
                                                  widget->parentWidget()->metaObject()->className())));
        }
    }
};

PIPEWRIGHT_TEST(TestMainWindow, QApplication)
#include "tst_mainwindow.moc"
