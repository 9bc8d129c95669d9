// SPDX-License-Identifier: GPL-3.0-or-later
// Panels and their parts: explanations of blocks, memory curves, bubble bars, charts, tables, labels.
#include "core/design/redesign.h"
#include "core/families/family.h"
#include "gui/designer/designer.h"
#include "gui/designer/editdifferences.h"
#include "gui/designer/mainwindowfixture.h"
#include "gui/document/familyestimates.h"
#include "gui/inspector/blockexplanation.h"
#include "gui/inspector/inspector.h"
#include "gui/inspector/suggestionlist.h"
#include "gui/memory/memorypanel.h"
#include "gui/timeline/idlebars.h"
#include "gui/timeline/timelineview.h"
#include "gui/trace/errortable.h"
#include "gui/widgets/chart.h"
#include "gui/widgets/factlist.h"
#include "gui/widgets/fields.h"
#include "gui/widgets/labels.h"
#include "gui/widgets/picture.h"
#include "gui/widgets/section.h"
#include "gui/widgets/side.h"
#include "gui/widgets/theme.h"
#include "gui/widgets/valuetable.h"
#include "gui/widgets/words.h"
#include "makers/designs.h"
#include "testmain.h"

#include <QAbstractItemModelTester>
#include <QApplication>
#include <QEnterEvent>
#include <QImage>
#include <QLabel>
#include <QMouseEvent>
#include <QSpinBox>
#include <QTemporaryDir>
#include <QTest>

#include <random>

using namespace pipewright;

class TestPanels : public QObject {
    Q_OBJECT

    /// Two microbatches through two devices of 1 ms passes, 0.5 ms per transfer: every time is known by hand.
    const Design m_twoDevices = test::evenDesign({.transfer = 500'000}, test::familySchedule("1f1b", 2, 2));

private Q_SLOTS:
    void everyFieldTakesADecimalCommaInEveryLocale()
    {
        const QLocale before;
        for (const char* name : {"C", "de_DE"}) {
            QLocale::setDefault(QLocale(QLatin1String(name)));
            ShareField share(QStringLiteral("share"), {}, nullptr);
            TimeField time(QStringLiteral("time"), {}, nullptr);
            std::optional<Nanoseconds> entered;
            connect(&time, &TimeField::entered, this, [&](std::optional<Nanoseconds> value) { entered = value; });
            for (const char* typed : {"12,5", "12.5"}) {
                share.setValue(0);
                share.selectAll();
                QTest::keyClicks(&share, QLatin1String(typed));
                QTest::keyClick(&share, Qt::Key_Return);
                QCOMPARE(share.value(), 12.5);
                QCOMPARE(share.text(), QStringLiteral("12.5\u00a0%"));
                time.setTime(std::nullopt);
                entered.reset();
                QTest::keyClicks(&time, QLatin1String(typed) + QStringLiteral(" ms"));
                QTest::keyClick(&time, Qt::Key_Return);
                QCOMPARE(entered, std::optional<Nanoseconds>(12'500'000));
            }
        }
        QLocale::setDefault(before);
    }

    void numbersCanBeSelectedUnderTheCursor()
    {
        QWidget window;
        QLabel* number = makeNumber(QStringLiteral("123.4"), TextSize::Small, &window);
        window.show();
        const QSize size = number->sizeHint();
        QVERIFY(size.width() > 20);
        QTest::mouseDClick(number, Qt::LeftButton, {}, {3, size.height() / 2});
        QVERIFY(!number->hasSelectedText());
        QEnterEvent enter(QPointF(3, 3), QPointF(3, 3), number->mapToGlobal(QPointF(3, 3)));
        QCoreApplication::sendEvent(number, &enter);
        QCOMPARE(number->sizeHint(), size); // else the panel would jump
        number->resize(size);
        QTest::mouseDClick(number, Qt::LeftButton, {}, {3, size.height() / 2});
        QVERIFY(number->hasSelectedText());
        QEvent leave(QEvent::Leave);
        QCoreApplication::sendEvent(number, &leave);
        QVERIFY2(number->hasSelectedText(), "what is selected stays, to be copied");
        QFocusEvent out(QEvent::FocusOut, Qt::MouseFocusReason);
        QCoreApplication::sendEvent(number, &out);
        QVERIFY(!number->hasSelectedText());
    }

    void aLongFactHasALineOfItsOwnAndIsNotCut()
    {
        FactList list;
        const QString source = QStringLiteral("formula: H200 SXM at 50\u00a0% of peak");
        list.setFacts({{QStringLiteral("start"), QStringLiteral("2 ms"), {}}, {QStringLiteral("source"), source, {}}});
        list.resize(249, 200); // in the narrowest panel at the right
        list.show();
        QTest::qWait(0);
        const auto find = [&](const QString& text) {
            for (QLabel* label : list.findChildren<QLabel*>())
                if (label->text() == text)
                    return label;
            return static_cast<QLabel*>(nullptr);
        };
        QLabel *name = find(QStringLiteral("source")), *value = find(source);
        QVERIFY(name && value && value->y() > name->geometry().bottom());
        QVERIFY(value->width() >= value->fontMetrics().horizontalAdvance(source));
    }

    void paragraphsAreAsHighAsLabels()
    {
        Paragraph paragraph;
        QLabel label;
        const auto same = [&](int width) { return paragraph.heightForWidth(width) == label.heightForWidth(width); };
        for (QLabel* each : {static_cast<QLabel*>(&paragraph), &label}) {
            each->setWordWrap(true);
            each->setText(QStringLiteral("one line"));
        }
        const int line = paragraph.heightForWidth(200);
        QVERIFY(same(200));
        for (QLabel* each : {static_cast<QLabel*>(&paragraph), &label})
            each->setText(QStringLiteral("some words that will not have room in a single line of that width"));
        QVERIFY(same(200) && paragraph.heightForWidth(200) > line);
        QVERIFY(same(100) && paragraph.heightForWidth(100) > paragraph.heightForWidth(200));
        for (QLabel* each : {static_cast<QLabel*>(&paragraph), &label})
            each->setFont(Theme::words(TextSize::Large));
        QVERIFY(same(200) && same(100));
    }

    void cellsFollowTheTheme()
    {
        Theme::dark().apply(*qApp);
        QWidget window;
        makePanel(&window);
        ValueTable table(QStringLiteral("values"), {QStringLiteral("name"), QStringLiteral("value")}, &window);
        window.show();
        table.setRows({{{.text = QStringLiteral("a"), .number = false}, {.text = QStringLiteral("1")}},
                       {{.text = QStringLiteral("b"), .number = false}, {.text = QStringLiteral("2"), .bad = true}}});
        const Theme& light = Theme::light();
        light.apply(*qApp);
        QCOMPARE(table.item(0, 0)->foreground().color(), light.text);
        QCOMPARE(table.item(0, 1)->foreground().color(), light.dim);
        QCOMPARE(table.item(1, 1)->foreground().color(), light.bad);
        Theme::dark().apply(*qApp);
        QCOMPARE(table.item(0, 0)->foreground().color(), Theme::dark().text);
    }

    void wordsCarryUnitsAndRealMinusSigns()
    {
        QCOMPARE(percentText(0.1137), QStringLiteral("11.4\u00a0%"));
        QCOMPARE(percentText(-0.0001), QStringLiteral("0.0\u00a0%"));
        QCOMPARE(signedPercent(-0.021), QStringLiteral("\u22122.1\u00a0%"));
        QCOMPARE(signedPercent(0.021), QStringLiteral("+2.1\u00a0%"));
        QCOMPARE(signedPercent(0), QStringLiteral("unchanged"));
        QCOMPARE(signedPercent(3.7204), QStringLiteral("+372\u00a0%"));
        QCOMPARE(durationText(18'520'000), QStringLiteral("18.52\u00a0ms"));
        QCOMPARE(durationText(5'000), QStringLiteral("5\u00a0µs"));
        QCOMPARE(durationText(99 * 60'000'000'000), QStringLiteral("99\u00a0min"));
        QCOMPARE(durationText(40'878'000'000'000), QStringLiteral("11.36\u00a0h")); // not 681.3 min
        QCOMPARE(sizeText(Bytes{141} << 30), QStringLiteral("141\u00a0GiB"));
        QCOMPARE(quantityText(exactSize(Bytes{141} << 30)), QStringLiteral("141\u00a0GiB"));
        // In a column: one unit, and decimal points below each other.
        QCOMPARE(sizeText(Bytes{58} << 30, Bytes{146} << 30), QStringLiteral("58.0\u00a0GiB"));
        QCOMPARE(signedSize(-(Bytes{64} << 20), Bytes{21} << 29), QStringLiteral("\u22120.06\u00a0GiB"));
        QCOMPARE(sizeText(17, 300), QStringLiteral("17\u00a0B"));
        // What is not nothing does not read so.
        QCOMPARE(sizeAmong(Bytes{30} << 20, Bytes{146} << 30), QStringLiteral("0.029\u00a0GiB"));
        QCOMPARE(sizeAmong(3 << 10, Bytes{146} << 30), QStringLiteral("<0.001\u00a0GiB"));
        QCOMPARE(sizeAmong(0, Bytes{146} << 30), QStringLiteral("0\u00a0GiB"));
        QCOMPARE(sizeAmong(Bytes{58} << 30, Bytes{146} << 30), QStringLiteral("58\u00a0GiB"));
        QCOMPARE(signedSizeAmong(-(Bytes{64} << 20), Bytes{21} << 29), QStringLiteral("\u22120.063\u00a0GiB"));
        // In a sentence: the larger one's unit, unless too little is left of the other.
        QCOMPARE(ofWhole(Bytes{70} << 30, Bytes{80} << 30), QStringLiteral("70 of 80\u00a0GiB"));
        QCOMPARE(ofWhole(Bytes{512} << 20, Bytes{80} << 30), QStringLiteral("0.5 of 80\u00a0GiB"));
        QCOMPARE(ofWhole(Bytes{24} << 20, Bytes{20} << 30), QStringLiteral("24 of 20,480\u00a0MiB"));
        QCOMPARE(pairOfSizes(Bytes{794} << 20, Bytes{77} << 30), QStringLiteral("0.775 → 77\u00a0GiB"));
        QCOMPARE(pairOfDurations(950'000, 1'337'000), QStringLiteral("0.95 → 1.337\u00a0ms"));
        QCOMPARE(pairOfDurations(0, 18'520'000), QStringLiteral("0 → 18.52\u00a0ms"));
        QCOMPARE(pairOfDurations(21'000, 18'520'000), QStringLiteral("21 → 18,520\u00a0µs"));
        QCOMPARE(pairOfDurations(7'200'000'000'000, 14'400'000'000'000), QStringLiteral("2 → 4\u00a0h"));
        QCOMPARE(sidedSizes(Side::Both, Bytes{1} << 30, std::nullopt), QStringLiteral("1\u00a0GiB → not recorded"));
        QCOMPARE(sidedSizes(Side::Measured, Bytes{1} << 30, Bytes{5} << 20), QStringLiteral("5\u00a0MiB"));
        QCOMPARE(durationText(2'530'000'000, 6'237'000'000), QStringLiteral("2.530\u00a0s"));
        QCOMPARE(durationText(950, 18'520), QStringLiteral("0.95\u00a0µs"));
        QCOMPARE(durationText(0, 0), QStringLiteral("0\u00a0ns"));
        // Whatever is shown can be typed again, with a comma too.
        QCOMPARE(parseDuration(typedQuantity(durationText(18'520'000)), "t"), 18'520'000);
        QCOMPARE(parseDuration(typedQuantity(QStringLiteral(" 18,52 µs ")), "t"), 18'520);
        QCOMPARE(parseSize(typedQuantity(QStringLiteral("1,5\u00a0GiB")), "s"), Bytes{3} << 29);
        QCOMPARE(signedPoints(-0.019), QStringLiteral("\u22121.9\u00a0pt"));
        QCOMPARE(signedSize(-1024), QStringLiteral("\u2212") + sizeText(1024));
        QCOMPARE(multipleText(4), QStringLiteral("4.0\u00a0×"));
        QCOMPARE(rateText(38400), QStringLiteral("38,400"));
        QCOMPARE(blockTitle({Op::I, 3, 7, 0}), QStringLiteral("Input gradient, microbatch 7"));
    }

    void idleTimeIsExplainedByTheBlockThatIsAwaited()
    {
        const Design design = m_twoDevices;
        const Prediction prediction = predict(design);
        // F1.0 waits for F0.0 (1 ms) and the way (0.5 ms).
        const auto answers = explainBlock(design, prediction, {Op::F, 1, 0, 0});
        QVERIFY(answers);
        QCOMPARE(answers->start, Nanoseconds(1'500'000));
        QCOMPARE(answers->idleBefore, Nanoseconds(1'500'000));
        QVERIFY(answers->waitsFor == (Block{Op::F, 0, 0, 0}));
        QVERIFY2(answers->why.contains(QLatin1String("F0.0")), qPrintable(answers->why));
        QVERIFY2(answers->why.contains(QLatin1String("500")), qPrintable(answers->why));
    }

    void aBlockWithoutIdleTimeSaysWhatItFollows()
    {
        const Design design = m_twoDevices;
        const Prediction prediction = predict(design);
        const auto answers = explainBlock(design, prediction, {Op::B, 1, 0, 0});
        QVERIFY(answers);
        QCOMPARE(answers->idleBefore, Nanoseconds(0));
        QVERIFY(!answers->waitsFor);
        QVERIFY2(answers->why.contains(QLatin1String("F1.0")), qPrintable(answers->why));
        QVERIFY(!explainBlock(design, prediction, {Op::W, 1, 0, 0}));
    }

    void resultsThatTravelAreListedWithTheirDevice()
    {
        const Design design = m_twoDevices;
        const Prediction prediction = predict(design);
        const auto forward = explainBlock(design, prediction, {Op::F, 0, 0, 0});
        QCOMPARE(forward->feeds.size(), std::size_t(1));
        QCOMPARE(forward->feeds[0].device, 1);
        QVERIFY(explainBlock(design, prediction, {Op::B, 0, 1, 0})->feeds.empty());
    }

    void pinsAreNamedAsTheCause()
    {
        Design design = m_twoDevices;
        design.schedule.pins.push_back({{Op::F, 0, 1, 0}, 5'000'000});
        const auto answers = explainBlock(design, predict(design), {Op::F, 0, 1, 0});
        QCOMPARE(answers->idleBefore, Nanoseconds(4'000'000));
        QVERIFY2(answers->why.contains(QLatin1String("pinned")), qPrintable(answers->why));
    }

    void theHostsGapIsACauseOfItsOwn()
    {
        Design design = m_twoDevices;
        design.costs.hostGaps.assign(2, {});
        for (HostGaps& gaps : design.costs.hostGaps)
            gaps.before.fill(70'000);
        const Prediction prediction = predict(design);
        const auto behind = explainBlock(design, prediction, {Op::B, 1, 0, 0});
        QCOMPARE(behind->idleBefore, Nanoseconds(70'000));
        QVERIFY(!behind->waitsFor); // all was there
        QVERIFY2(behind->why.contains(QLatin1String("host")), qPrintable(behind->why));
        const auto waited = explainBlock(design, prediction, {Op::F, 1, 0, 0});
        QCOMPARE(waited->idleBefore, Nanoseconds(1'570'000));
        QVERIFY(waited->waitsFor == (Block{Op::F, 0, 0, 0}));
        QVERIFY2(waited->why.contains(QLatin1String("F0.0")) && waited->why.contains(QLatin1String("host")),
                 qPrintable(waited->why));
        IdleBars bars;
        bars.show(design, &prediction, nullptr, Side::Predicted);
        double host = 0;
        for (const IdleBars::Cause& cause : bars.causes(Theme::dark()))
            for (const double share : cause.shares)
                host += cause.name == QLatin1String("host") ? share : 0;
        QVERIFY(host > 0);
    }

    void theColumnsOfACurveSayWhatIsInThem()
    {
        // Against looking at every sample.
        std::mt19937 random(7);
        for (int round = 0; round < 200; ++round) {
            std::vector<MemorySample> samples;
            Nanoseconds time = 0;
            const int count = static_cast<int>(random() % 1000) + 1;
            for (int i = 0; i < count; ++i) {
                samples.push_back({time, static_cast<Bytes>(random() % 50)});
                time += static_cast<Nanoseconds>(random() % 3 * (random() % 90));
            }
            const StepCurve curve(samples);
            const auto fullest = std::max_element(samples.begin(), samples.end(),
                                                  [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
            QCOMPARE(curve.peak(), *fullest);
            const double from = static_cast<double>(random() % 2000) - 500,
                         to = from + 1 + static_cast<double>(random() % 20'000);
            const int pixels = 1 + static_cast<int>(random() % 400);
            const std::vector<StepCurve::Column> columns = curve.columns(from, to, pixels);
            int x = 0;
            for (const StepCurve::Column& column : columns) {
                QCOMPARE(column.x, x);
                for (int i = 0; i < column.width; ++i, ++x) {
                    const double begin = from + (to - from) / pixels * x, end = from + (to - from) / pixels * (x + 1);
                    Bytes level = samples.front().bytes, low = 0, high = 0;
                    bool entered = false;
                    const auto see = [&] {
                        low = entered ? std::min(low, level) : level;
                        high = entered ? std::max(high, level) : level;
                        entered = true;
                    };
                    for (const MemorySample& sample : samples) {
                        if (static_cast<double>(sample.time) >= end)
                            break;
                        if (static_cast<double>(sample.time) >= begin && !entered)
                            see();
                        level = sample.bytes;
                        if (static_cast<double>(sample.time) >= begin)
                            see();
                    }
                    if (!entered)
                        see();
                    QCOMPARE(column.low, low);
                    QCOMPARE(column.high, high);
                    QCOMPARE(column.last, level);
                }
            }
            QCOMPARE(x, pixels);
        }
        QVERIFY(StepCurve().columns(0, 100, 10).empty());
        QVERIFY(StepCurve({{0, 5}}).columns(100, 100, 10).empty());
    }

    void aCurveOfAMillionSamplesIsPaintedAsRectanglesPerPixel()
    {
        Design design = exampleDesign();
        Prediction prediction = predict(design);
        std::vector<MemorySample>& samples = prediction.timeline.memory[0];
        samples.clear();
        for (int i = 0; i < 1'000'000; ++i)
            samples.push_back({Nanoseconds(i) * 10, i == 618'003 ? Bytes{900} : Bytes(50 * (i % 7 + i / 2500 % 5))});
        prediction.program.devices[0].persistentBytes = 0;
        design.cluster.devices[0].memory = 0;
        MemoryPanel panel;
        panel.resize(600, 200);
        panel.setAxis({0, 1e7 / 400, 100, 400});
        panel.setAll(false);
        panel.showDesign({design, &prediction});
        const QImage image = panel.grab().toImage();
        QVERIFY(panel.rectangles() > 400 && panel.rectangles() <= 2 * 400 + 2);
        // The one high sample is seen at its place and nowhere else.
        const QRgb line = Theme::of(panel).accent.rgb();
        const int high = static_cast<int>(panel.yOf(890));
        int seen = 0;
        for (int x = 100; x < 500; ++x)
            if (image.pixel(x, high) == line) {
                ++seen;
                QCOMPARE(x, static_cast<int>(std::lround(panel.xOf(6'180'030))));
            }
        QCOMPARE(seen, 1);
    }

    void theChartsPlotIsWhereItWasPut()
    {
        Chart chart;
        chart.resize(500, 200);
        chart.setPlotMargins(112, 10, 8, 20);
        QCOMPARE(chart.plotArea(), QRectF(112, 10, 380, 170));
        chart.setRange(1000, 2000, 0, 100);
        QCOMPARE(chart.xOf(1500), 302.0);
        QCOMPARE(chart.yOf(100), 10.0);
    }

    void aFamilysEstimateIsWhatSwitchingGives()
    {
        const Design base = exampleDesign();
        for (std::size_t i = 0; i < std::min<std::size_t>(families().size(), 4); ++i) {
            const FamilyEstimate estimate = FamilyEstimates::estimate(base, i, *std::make_shared<MemberPredictor>());
            if (!estimate.possible) {
                QVERIFY(!estimate.reason.isEmpty());
                continue;
            }
            const Prediction prediction = predict(withFamily(base, families()[i]));
            QCOMPARE(estimate.bubble, prediction.metrics.rateMakespan);
            QCOMPARE(estimate.makespan, prediction.metrics.makespan);
        }
    }

    void switchingFamiliesKeepsCostsWhereTheStagesStay()
    {
        Design base = m_twoDevices;
        base.costs.stages[1].forward = 7'000'000; // not what any formula gives
        base.costs.source = "measured: run.db";
        const Design gpipe = withFamily(base, *findFamily("gpipe"));
        QCOMPARE(gpipe.costs, base.costs);
        QCOMPARE(gpipe.schedule.microbatches, base.schedule.microbatches);
    }

    void theErrorModelIsAProperModel()
    {
        Document document;
        document.reset(exampleDesign());
        ErrorTableModel model(document);
        QAbstractItemModelTester tester(&model, QAbstractItemModelTester::FailureReportingMode::QtTest);
        QCOMPARE(model.rowCount(), 0);
        QVERIFY(!model.blockAt(0));
    }

    void picturesAreWrittenAtTwiceTheirSize()
    {
        QTemporaryDir folder;
        const std::string path = folder.filePath(QStringLiteral("a.png")).toStdString();
        svgToPng("<svg xmlns='http://www.w3.org/2000/svg' width='40' height='20'><rect width='40' height='20' "
                 "fill='#ff0000'/></svg>",
                 QSizeF(40, 20), path, false);
        const QImage image(QString::fromStdString(path));
        QCOMPARE(image.size(), QSize(80, 40));
        QCOMPARE(image.pixelColor(40, 20), QColor(255, 0, 0));
        QVERIFY_THROWS_EXCEPTION(Error, svgToPng("no picture", QSizeF(40, 20), path, true));
        const std::string small = "<svg xmlns='http://www.w3.org/2000/svg' width='4' height='4'/>";
        QVERIFY_THROWS_EXCEPTION(Error, svgToPng(small, QSizeF(4, 4), "/no/such/folder/a.png", false));
        svgToPng(small, QSizeF(30, 10), path, true, 300); // of the size that was asked for, whatever it says itself
        QCOMPARE(QImage(QString::fromStdString(path)).size(), QSize(94, 31));
        QCOMPARE(QImage(QString::fromStdString(path)).dotsPerMeterX(), 11811);
        QVERIFY_THROWS_EXCEPTION(Error, svgToPng(small, QSizeF(9000, 10), path, true));
    }

    void thePanelAnswersFirstAndKeepsItsFieldsFolded()
    {
        MainWindowFixture fixture;
        fixture.document().select(Block{Op::I, 1, 0, 0});
        Inspector& inspector = fixture.window.inspector();
        const auto top = [&](const QWidget& widget) { return widget.mapTo(&inspector, QPoint(0, 0)).y(); };
        QTest::qWait(0);
        // Headline and why, suggestions, this edit, facts, and then the fields.
        QVERIFY(top(fixture.window.suggestions()) > 0);
        QVERIFY(top(fixture.window.suggestions()) < top(fixture.window.differences()));
        QVERIFY(top(fixture.window.differences()) < top(inspector.facts()));
        QVERIFY(top(inspector.facts()) < top(inspector.editSection()));
        QVERIFY(top(inspector.editSection()) < top(inspector.viewSection()));
        QVERIFY(!inspector.editSection().isOpen());
        const auto field = [&](const char* name) -> QSpinBox* {
            for (QSpinBox* each : inspector.findChildren<QSpinBox*>())
                if (each->accessibleName() == QLatin1String(name))
                    return each;
            return nullptr;
        };
        QVERIFY(!field("Position in lane")->isVisible());
        inspector.editSection().setOpen(true);
        QVERIFY(field("Position in lane")->isVisible() && !field("Warm-up of the device")->isVisible());
        // Fields of a range are asked for by key, and unfold themselves.
        QVERIFY(!inspector.viewSection().isOpen());
        fixture.window.timeline().measureByNumbers();
        QVERIFY(inspector.viewSection().isOpen());
    }

    void aStageMovedToAnotherLaneIsShownThereEverywhere()
    {
        MainWindowFixture fixture;
        TimelineView& view = fixture.window.timeline();
        const Block block{Op::F, 1, 2, 0};
        const auto send = [&](QEvent::Type type, QPoint at, Qt::MouseButton button, Qt::MouseButtons buttons) {
            QMouseEvent event(type, at, view.viewport()->mapToGlobal(at), button, buttons, Qt::NoModifier);
            QApplication::sendEvent(view.viewport(), &event);
        };
        const QPoint from = view.rectOfBlock(block).center(), to(from.x(), view.rectOfLane(2).center().y());
        send(QEvent::MouseButtonPress, from, Qt::LeftButton, Qt::LeftButton);
        Inspector& inspector = fixture.window.inspector();
        const auto says = [&](const char* text) {
            for (QLabel* label : inspector.findChildren<QLabel*>())
                if (label->text() == QLatin1String(text))
                    return true;
            return false;
        };
        QVERIFY(says("stage 1 on GPU 1"));
        send(QEvent::MouseMove, to, Qt::NoButton, Qt::LeftButton);
        QVERIFY(says("stage 1 on GPU 2 when dropped"));
        QCOMPARE(fixture.window.memory().device(), 2); // not the lane that would be empty
        QTest::keyClick(&view, Qt::Key_Escape);
        QVERIFY(says("stage 1 on GPU 1"));
        QCOMPARE(fixture.window.memory().device(), 1);
        send(QEvent::MouseButtonRelease, to, Qt::LeftButton, Qt::NoButton);
        send(QEvent::MouseButtonPress, from, Qt::LeftButton, Qt::LeftButton);
        send(QEvent::MouseMove, to, Qt::NoButton, Qt::LeftButton);
        send(QEvent::MouseButtonRelease, to, Qt::LeftButton, Qt::NoButton);
        QCOMPARE(fixture.document().design().schedule.deviceOfStage[1], 2);
        QCOMPARE(fixture.document().selection(), std::optional(block));
        QSpinBox* device = nullptr;
        for (QSpinBox* field : inspector.findChildren<QSpinBox*>())
            if (field->accessibleName() == QLatin1String("Device of the stage"))
                device = field;
        QCOMPARE(device->value(), 2);
        QVERIFY(says("stage 1 on GPU 2"));
        QCOMPARE(fixture.window.memory().device(), 2);
    }
};

PIPEWRIGHT_TEST(TestPanels, QApplication)
#include "tst_panels.moc"
