// SPDX-License-Identifier: GPL-3.0-or-later
// The windows beside the main one, the command palette, files that are dropped, pictures on paper, and the
// session that comes back.
#include "core/design/redesign.h"
#include "core/files/designfile.h"
#include "gui/buildingblock/buildingblockeditor.h"
#include "gui/buildingblock/buildingblockpreview.h"
#include "gui/compare/comparewindow.h"
#include "gui/compare/noisefields.h"
#include "gui/designer/designer.h"
#include "gui/designer/designfiles.h"
#include "gui/designer/familylist.h"
#include "gui/designer/findfield.h"
#include "gui/designer/history.h"
#include "gui/designer/mainwindow.h"
#include "gui/designer/otherwindows.h"
#include "gui/designer/picturedialog.h"
#include "gui/designer/topbar.h"
#include "gui/designer/windowactions.h"
#include "gui/inspector/inspector.h"
#include "gui/model/modelwindow.h"
#include "gui/model/profiledialog.h"
#include "gui/search/tradeoffwindow.h"
#include "gui/timeline/minimap.h"
#include "gui/timeline/timelineview.h"
#include "gui/widgets/fields.h"
#include "gui/widgets/picture.h"
#include "gui/widgets/theme.h"
#include "gui/widgets/words.h"
#include "testmain.h"
#include "testpaths.h"

#include <QAction>
#include <QApplication>
#include <QCheckBox>
#include <QComboBox>
#include <QDropEvent>
#include <QFile>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <QMenu>
#include <QMimeData>
#include <QProcess>
#include <QProcessEnvironment>
#include <QPushButton>
#include <QTemporaryDir>
#include <QTest>
#include <QTreeWidget>
#include <QUndoView>
#include <QUrl>

using namespace pipewright;

namespace {

struct WindowsFixture {
    QTemporaryDir folder;
    std::unique_ptr<MainWindow> window;

    WindowsFixture() { open(); }
    void open()
    {
        MainWindow::Options options;
        options.settingsFile = folder.filePath(QStringLiteral("settings.ini"));
        options.traceFolder = folder.filePath(QStringLiteral("runs"));
        window = std::make_unique<MainWindow>(options);
        window->document().reset(exampleDesign());
        window->resize(1400, 860);
        window->show();
        (void)QTest::qWaitForWindowActive(window.get());
    }
    Document& document() { return window->document(); }
    FindField* field() { return window->topBar().findField(); }
};

} // namespace

class TestWindows : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void init() { Theme::dark().apply(*qApp); }

    void aStageOnAnotherDeviceIsSaidInThePanelAtOnce()
    {
        WindowsFixture fixture;
        const Block block{Op::F, 1, 0, 0};
        fixture.document().select(block);
        const auto says = [&](const QString& device) {
            for (const QLabel* label : fixture.window->inspector().findChildren<QLabel*>())
                if (label->text().startsWith(QLatin1String("stage 1 ")))
                    return label->text().contains(device);
            return false;
        };
        QVERIFY(says(QStringLiteral("GPU 1")));
        QVERIFY(!hasErrors(fixture.document().apply(MoveStage{1, 2})));
        QVERIFY(fixture.document().selection() == block);
        QVERIFY(says(QStringLiteral("GPU 2")));
        fixture.document().undoStack()->undo();
        QVERIFY(says(QStringLiteral("GPU 1")));
    }

    void aFamilyMadeUnderALimitSaysWhyItsNumbersDiffer()
    {
        WindowsFixture fixture;
        std::size_t index = 0;
        while (pipewright::families()[index].name != "v-auto")
            ++index;
        const Family& family = pipewright::families()[index];
        fixture.document().replaceDesign(withFamily(fixture.document().design(), family, {{}, 0.6}),
                                         QStringLiteral("x"));
        FamilyList& list = fixture.window->families();
        QTRY_VERIFY_WITH_TIMEOUT(list.estimates()[index].has_value(), 120'000);
        const FamilyEstimate& own = *list.estimates()[index];
        QVERIFY(own.makespan != fixture.document().prediction()->metrics.makespan);
        const QTreeWidgetItem* row = list.row(index);
        QCOMPARE(row->text(1), percentText(fixture.document().prediction()->metrics.rateMakespan)); // of what is shown
        QVERIFY2(row->toolTip(0).contains(QLatin1String("memory limit")), qPrintable(row->toolTip(0)));
        QVERIFY2(row->toolTip(0).contains(durationText(own.makespan)), qPrintable(row->toolTip(0)));
    }

    void stepsUnderNoiseAreUnderOneNoiseInAllWindows()
    {
        WindowsFixture fixture;
        fixture.window->others().open<CompareWindow>();
        fixture.window->others().find<CompareWindow>()->noise().device().setValue(12);
        fixture.window->others().open<TradeOffWindow>();
        NoiseFields& other = fixture.window->others().find<TradeOffWindow>()->noise();
        QCOMPARE(other.value().device, 0.12);
        other.block().setValue(8);
        QCOMPARE(fixture.window->others().find<CompareWindow>()->noise().value().block, std::optional(0.08));
        fixture.window->others().find<TradeOffWindow>()->cancel();
    }

    void everyWindowOpensByItsShortcut()
    {
        WindowsFixture fixture;
        const auto press = [window = fixture.window.get()](const QKeySequence& keys) {
            window->activateWindow();
            (void)QTest::qWaitForWindowActive(window);
            QTest::keySequence(window, keys);
        };
        const auto isOpen = [&](const QMetaObject* type) {
            for (const QWidget* each : QApplication::topLevelWidgets())
                if (each->metaObject() == type && each->isVisible())
                    return true;
            return false;
        };
        QSet<const QMetaObject*> types;
        for (const OtherWindow& row : otherWindows()) {
            QCOMPARE(isOpen(row.type), types.contains(row.type));
            types.insert(row.type);
            press(row.shortcut);
            QVERIFY2(isOpen(row.type), row.key);
        }
        QVERIFY(types.size() >= 8);
        press(QKeySequence(Qt::CTRL | Qt::SHIFT | Qt::Key_M));
        QVERIFY(fixture.window->profileDialog() && fixture.window->profileDialog()->isVisible());
        fixture.window->others().find<TradeOffWindow>()->cancel();
    }

    /// Of a screen as small as 1024 x 640, with a window manager's frame.
    void everyWindowFitsASmallScreenAndClosesByTheSameButton()
    {
        WindowsFixture fixture;
        const WindowActions& actions = fixture.window->windowActions();
        for (std::size_t i = 0; i < otherWindows().size(); ++i)
            if (!otherWindows()[i].then)
                actions.windows[i]->trigger();
        actions.shortcuts->trigger();
        actions.profile->trigger();
        actions.picture->trigger();
        actions.diagnostics->trigger();
        QCoreApplication::processEvents(); // places for their rows
        int windows = 0;
        QSize button;
        for (const QWidget* window : QApplication::topLevelWidgets()) {
            if (!window->isVisible() || window == fixture.window.get() || window->windowType() == Qt::ToolTip)
                continue;
            ++windows;
            const QSize least = window->minimumSizeHint().expandedTo(window->minimumSize());
            const QSize room = window->screen()->availableSize() - QSize(0, 40);
            QVERIFY2(least.width() <= 1016 && least.height() <= 616, qPrintable(QStringLiteral("%1 needs %2 x %3")
                                                                                    .arg(window->windowTitle())
                                                                                    .arg(least.width())
                                                                                    .arg(least.height())));
            QVERIFY2(window->width() <= std::max(room.width(), least.width())
                         && window->height() <= std::max(room.height(), least.height()),
                     qPrintable(window->windowTitle()));
            QRect close, purpose; // what the window is for stands right of Close
            for (const auto* each : window->findChildren<QPushButton*>())
                if (each->property("closing").toBool())
                    (each->text() == QStringLiteral("Close") ? close : purpose) =
                        QRect(each->mapTo(window, QPoint()), each->size());
            if (!button.isValid())
                button = close.size();
            const QRect row = close | purpose;
            QVERIFY2(!close.isNull() && close.size() == button && (purpose.isNull() || close.right() < purpose.left())
                         && window->width() - row.right() <= 26 && window->height() - row.bottom() <= 24,
                     qPrintable(QStringLiteral("%1: %2 x %3, %4 and %5 away, others %6 x %7")
                                    .arg(window->windowTitle())
                                    .arg(close.width())
                                    .arg(close.height())
                                    .arg(window->width() - row.right())
                                    .arg(window->height() - row.bottom())
                                    .arg(button.width())
                                    .arg(button.height())));
        }
        QVERIFY(windows >= 12);
        fixture.window->others().find<TradeOffWindow>()->cancel();
    }

    void fromEveryWindowTheOthersAndUndoAreNear()
    {
        WindowsFixture fixture;
        const Design before = fixture.document().design();
        fixture.document().apply(PinBlock{{Op::F, 0, 1, 0}, 500'000'000});
        fixture.window->others().open<ModelWindow>();
        QApplication::setActiveWindow(fixture.window->others().find<ModelWindow>());
        QTest::keyClick(fixture.window->others().find<ModelWindow>(), Qt::Key_Z, Qt::ControlModifier);
        QCOMPARE(fixture.document().design(), before);
        QTest::keyClick(fixture.window->others().find<ModelWindow>(), Qt::Key_H, Qt::ControlModifier);
        QVERIFY(fixture.window->others().find<HistoryWindow>()
                && fixture.window->others().find<HistoryWindow>()->isVisible());
        fixture.window->others().open<BuildingBlockEditor>();
        QVERIFY(!fixture.window->others().find<BuildingBlockEditor>()->actions().contains(
            fixture.window->windowActions().undo));
    }

    void shortcutsAreUniqueAndEveryActionHasATip()
    {
        WindowsFixture fixture;
        // Views have the focus one at a time, so that a key may mean the like in two of them; the window's keys work in
        // all.
        QSet<QKeySequence> ofWindow, ofViews;
        for (const ShortcutList::Group& group : fixture.window->windowActions().groups()) {
            QSet<QKeySequence> ofView;
            for (const QAction* action : group.actions)
                for (const QKeySequence& key : action->shortcuts()) {
                    QSet<QKeySequence>& seen = action->shortcutContext() == Qt::WindowShortcut ? ofWindow : ofView;
                    QVERIFY2(!seen.contains(key), qPrintable(action->text() + QStringLiteral(": ") + key.toString()));
                    seen.insert(key);
                }
            ofViews += ofView;
        }
        QVERIFY(!ofViews.intersects(ofWindow));
        QVERIFY(ofWindow.size() + ofViews.size() > 40);
    }

    void tabReachesTheOverviewWhichStandsBeforeTheTimeline()
    {
        WindowsFixture fixture;
        TimelineView& timeline = fixture.window->timeline();
        timeline.setFocus();
        QTest::keyClick(&timeline, Qt::Key_Backtab, Qt::ShiftModifier);
        QVERIFY(fixture.window->minimap().hasFocus());
        QTest::keyClick(&fixture.window->minimap(), Qt::Key_Right, Qt::ControlModifier);
        const double start = timeline.axis().start;
        QVERIFY(start > 0);
        QTest::keyClick(&fixture.window->minimap(), Qt::Key_Tab);
        QVERIFY(timeline.hasFocus());
    }

    void theFieldRunsWhatIsTyped()
    {
        WindowsFixture fixture;
        QVERIFY(QTest::qWaitForWindowActive(fixture.window.get()));
        QTest::keyClick(fixture.window.get(), Qt::Key_P, Qt::ControlModifier | Qt::ShiftModifier);
        FindField* field = fixture.field();
        QVERIFY(field->hasFocus() && field->list()->isVisible());
        QVERIFY(field->list()->count() > 40);
        QTest::keyClicks(field, QStringLiteral("light"));
        QCOMPARE(field->list()->item(0)->text(), QStringLiteral("Light or dark"));
        QTest::keyClick(field, Qt::Key_Return);
        QVERIFY(!Theme::of(*fixture.window).isDark);
        QVERIFY(!field->list()->isVisible() && !field->hasFocus() && field->text().isEmpty());
    }

    void theFieldFindsFamiliesDevicesAndStages()
    {
        WindowsFixture fixture;
        QVERIFY(QTest::qWaitForWindowActive(fixture.window.get()));
        FindField* field = fixture.field();
        field->setFocus();
        QTest::keyClicks(field, QStringLiteral("gpu 2"));
        QCOMPARE(field->list()->item(0)->text(), QStringLiteral("GPU 2"));
        QTest::keyClick(field, Qt::Key_Return);
        QCOMPARE(fixture.document().design().schedule.deviceOf(fixture.document().selection().value()), 2);
        field->setFocus();
        QTest::keyClicks(field, QStringLiteral("stage 3"));
        QTest::keyClick(field, Qt::Key_Return);
        QVERIFY(fixture.document().selection() == (Block{Op::F, 3, 0, 0}));
        field->setFocus();
        QTest::keyClicks(field, QStringLiteral("gpipe"));
        QTest::keyClick(field, Qt::Key_Return);
        QCOMPARE(fixture.document().design().schedule.family, std::string("gpipe"));
    }

    void theFieldWalksAndEscapesAndRefusesWhatIsOff()
    {
        WindowsFixture fixture;
        QVERIFY(QTest::qWaitForWindowActive(fixture.window.get()));
        fixture.window->windowActions().palette->trigger();
        FindField* field = fixture.field();
        QTest::keyClick(field, Qt::Key_Down);
        QCOMPARE(field->list()->currentRow(), 1);
        QTest::keyClick(field, Qt::Key_Up);
        QTest::keyClick(field, Qt::Key_Up);
        QCOMPARE(field->list()->currentRow(), field->list()->count() - 1);
        QTest::keyClicks(field, QStringLiteral("complete the rest")); // nothing is unplaced
        QTest::keyClick(field, Qt::Key_Return);
        QVERIFY(field->list()->isVisible());
        QCOMPARE(fixture.document().undoStack()->index(), 0);
        QTest::keyClick(field, Qt::Key_Escape);
        QVERIFY(!field->list()->isVisible() && fixture.window->timeline().hasFocus());
    }

    void namesMatchByWordsBeforeLetters()
    {
        QVERIFY(matchScore(QStringLiteral("save"), QStringLiteral("Save as…"))
                > matchScore(QStringLiteral("save"), QStringLiteral("Autosave")));
        QVERIFY(matchScore(QStringLiteral("mab"), QStringLiteral("Memory against bubble…"))
                > matchScore(QStringLiteral("mab"), QStringLiteral("Remember a bad")));
        QVERIFY(matchScore(QStringLiteral("xyz"), QStringLiteral("Save")) < 0);
        QCOMPARE(matchScore({}, QStringLiteral("Save")), 0);
    }

    void theHistoryGoesBackByClick()
    {
        WindowsFixture fixture;
        const Design before = fixture.document().design();
        fixture.document().apply(PinBlock{{Op::F, 0, 1, 0}, 500'000'000});
        fixture.document().apply(PinBlock{{Op::F, 0, 2, 0}, 600'000'000});
        fixture.window->others().open<HistoryWindow>();
        QVERIFY(QTest::qWaitForWindowActive(fixture.window->others().find<HistoryWindow>()));
        QUndoView* view = fixture.window->others().find<HistoryWindow>()->view();
        QCOMPARE(view->model()->rowCount(), 3);
        QTest::mouseClick(view->viewport(), Qt::LeftButton, {}, view->visualRect(view->model()->index(0, 0)).center());
        QCOMPARE(fixture.document().design(), before);
        // A screenless platform keeps the first window active; a window manager activates this one.
        QApplication::setActiveWindow(fixture.window->others().find<HistoryWindow>());
        view->setFocus();
        QTest::keyClick(view, Qt::Key_Down);
        QCOMPARE(fixture.document().undoStack()->index(), 1);
    }

    void aDroppedFileIsOpened()
    {
        WindowsFixture fixture;
        const QString path = fixture.folder.filePath(QStringLiteral("dropped.json"));
        Design other = exampleDesign();
        other.name = "dropped";
        writeDesign(other, path.toStdString(), false);
        QMimeData data;
        data.setUrls({QUrl::fromLocalFile(path)});
        // Over the timeline, which takes blocks but no files: the window takes it.
        QWidget* target = fixture.window->timeline().viewport();
        QDragEnterEvent enter(target->rect().center(), Qt::CopyAction, &data, Qt::LeftButton, {});
        QApplication::sendEvent(target, &enter);
        QVERIFY(enter.isAccepted());
        QDropEvent drop(QPointF(fixture.window->rect().center()), Qt::CopyAction, &data, Qt::LeftButton, {});
        QApplication::sendEvent(fixture.window.get(), &drop);
        QTRY_COMPARE(fixture.document().design().name, std::string("dropped"));
        QCOMPARE(fixture.document().path(), path);
    }

    void picturesGoOnPaperAtTheirOwnSize()
    {
        WindowsFixture fixture;
        fixture.window->windowActions().picture->trigger();
        PictureDialog* dialog = fixture.window->pictureDialog();
        QVERIFY(dialog && dialog->isVisible());
        dialog->widthField().setValue(8.5);
        const QString path = fixture.folder.filePath(QStringLiteral("a.pdf"));
        QVERIFY2(dialog->saveTo(path), qPrintable(dialog->message()));
        QFile file(path);
        QVERIFY(file.open(QIODevice::ReadOnly));
        const QByteArray content = file.readAll();
        QVERIFY(content.startsWith("%PDF-"));
        QVERIFY(content.contains("/MediaBox [0 0 241")); // 8.5 cm in points of 1/72 inch
        QVERIFY(!dialog->saveTo(QStringLiteral("/no/such/folder/a.pdf")));
        QVERIFY2(dialog->message().contains(QLatin1String("folder")), qPrintable(dialog->message()));
        QVERIFY_THROWS_EXCEPTION(Error, svgToPdf("no picture", QSizeF(4, 4), path.toStdString(), true));
        QVERIFY_THROWS_EXCEPTION(Error, svgToPdf("<svg xmlns='http://www.w3.org/2000/svg' width='4' height='4'/>",
                                                 QSizeF(4, 4), "/no/such/folder/a.pdf", true));
    }

    void thePictureShowsWhatIsChosen()
    {
        WindowsFixture fixture;
        fixture.window->windowActions().picture->trigger();
        PictureDialog& dialog = *fixture.window->pictureDialog();
        const std::string& svg = dialog.picture().svg;
        const auto choose = [](QComboBox& field, const char* text) {
            field.setCurrentIndex(field.findText(QLatin1String(text)));
        };
        QVERIFY(!dialog.runField().isVisible());
        QVERIFY(svg.find("#5aa9e6") != std::string::npos);
        choose(dialog.coloursField(), "black and white");
        QVERIFY(svg.find("#5aa9e6") == std::string::npos && svg.find("<text") != std::string::npos);
        const double height = dialog.picture().height;
        for (QCheckBox* box : dialog.findChildren<QCheckBox*>())
            if (box->text() == QLatin1String("Memory"))
                box->click();
        QVERIFY(dialog.picture().height < height);
        QVERIFY(!dialog.compareField().isEnabled());
        // Schedules that are compared stand below.
        fixture.window->others().open<CompareWindow>();
        CompareWindow& compare = *fixture.window->others().find<CompareWindow>();
        compare.addKept();
        QTRY_VERIFY(!compare.isBusy());
        fixture.window->windowActions().picture->trigger();
        QTRY_VERIFY(dialog.compareField().isEnabled());
        dialog.compareField().click();
        QVERIFY(svg.find(">Kept: ") != std::string::npos);
        // An edit is drawn at once.
        const std::string before = svg;
        QVERIFY(!hasErrors(
            fixture.document().apply(UnplaceBlocks{{fixture.document().design().schedule.order[0].back()}})));
        QVERIFY(svg != before);
        // Choices are kept.
        dialog.widthField().setValue(12);
        dialog.close();
        fixture.open();
        fixture.window->windowActions().picture->trigger();
        QCOMPARE(fixture.window->pictureDialog()->widthField().value(), 12.0);
        QCOMPARE(fixture.window->pictureDialog()->coloursField().currentText(), QStringLiteral("black and white"));
    }

    void theSessionComesBackWithItsFileAndWindows()
    {
        WindowsFixture fixture;
        QVERIFY(!fixture.window->files().restore());
        const QString path = fixture.folder.filePath(QStringLiteral("mine.json"));
        QVERIFY(fixture.window->files().saveTo(path));
        fixture.window->others().open<HistoryWindow>();
        fixture.window->others().find<HistoryWindow>()->resize(377, 299);
        fixture.window->close();
        fixture.open();
        QVERIFY(fixture.window->files().restore());
        QCOMPARE(fixture.document().path(), path);
        QVERIFY(!fixture.window->others().find<HistoryWindow>());
        fixture.window->others().restore();
        QVERIFY(fixture.window->others().find<HistoryWindow>()
                && fixture.window->others().find<HistoryWindow>()->isVisible());
        QCOMPARE(fixture.window->others().find<HistoryWindow>()->size(), QSize(377, 299));
        QVERIFY(!fixture.window->others().find<ModelWindow>());
        fixture.window->close();
        QFile::remove(path);
        fixture.open();
        QVERIFY(!fixture.window->files().restore());
    }

    void aScreenThatCannotBeReachedIsSaidAndNotACrash()
    {
        QProcess process;
        QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
        environment.remove(QStringLiteral("QT_QPA_PLATFORM"));
        environment.remove(QStringLiteral("WAYLAND_DISPLAY"));
        environment.insert(QStringLiteral("DISPLAY"), QStringLiteral(":987"));
        environment.insert(QStringLiteral("QT_FORCE_STDERR_LOGGING"), QStringLiteral("1"));
        process.setProcessEnvironment(environment);
        process.start(QStringLiteral(PIPEWRIGHT_PROGRAM), {});
        QVERIFY(process.waitForFinished(60'000));
        const QString said = QString::fromUtf8(process.readAllStandardError());
        QCOMPARE(process.exitStatus(), QProcess::NormalExit);
        QCOMPARE(process.exitCode(), 2);
        QVERIFY2(said.startsWith(QLatin1String("error: the designer cannot reach a screen (DISPLAY=:987)")),
                 qPrintable(said));
        QVERIFY2(said.contains(QLatin1String("pipewright --help")) && said.count(QLatin1Char('\n')) == 1,
                 qPrintable(said));
    }
};

PIPEWRIGHT_TEST(TestWindows, QApplication)
#include "tst_windows.moc"
