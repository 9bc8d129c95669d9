// SPDX-License-Identifier: GPL-3.0-or-later
// Timelines as SVG: well-formed, bounded in size, with letters, textures, memory and a measurement laid over.
#include "core/base/diagnostic.h"
#include "core/exchange/laneblocks.h"
#include "core/exchange/picturescenes.h"
#include "core/exchange/svgwriter.h"
#include "core/exchange/timelinepicture.h"
#include "testmain.h"

#include <QTest>

#include <algorithm>

using namespace pipewright;
using namespace pipewright::test;

class TestPicture : public QObject {
    Q_OBJECT

private slots:
    void thePictureIsWellFormedAndUsesOnlyPlainShapes()
    {
        const Scene scene = chains(3, 4, 1'000'000, 1'500'000);
        for (const bool dark : {false, true}) {
            PictureOptions options;
            options.colours = dark ? PictureColours::Dark : PictureColours::Light;
            const std::string svg = timelineSvg(panelOf(scene), options);
            bool wellFormed = false;
            const auto elements = elementsOf(svg, &wellFormed);
            QVERIFY(wellFormed);
            for (const auto& [name, count] : elements)
                QVERIFY2(QStringList({"svg", "title", "rect", "path", "line", "text"}).contains(name),
                         qPrintable(name));
            QVERIFY(svg.find(dark ? "#15171c" : "#f4f5f8") != std::string::npos);
            QVERIFY(svg.find(">device 2<") != std::string::npos);
            QVERIFY(svg.find(">10 ms<") != std::string::npos);
            QVERIFY(svg.find(">4 microbatches<") == std::string::npos
                    && svg.find("4 microbatches") != std::string::npos);
        }
    }

    void everyVisibleBlockCarriesItsLetter()
    {
        const Scene scene = chains(2, 4, 1'000'000, 1'000'000);
        const std::string svg = timelineSvg(panelOf(scene));
        QCOMPARE(occurrences(svg, ">F</text>"), 2 * 4 + 1); // and the legend's
        QCOMPARE(occurrences(svg, ">I</text>"), 2 * 4 + 1);
        QCOMPARE(occurrences(svg, ">W</text>"), 0);
    }

    void namesAreEscaped()
    {
        Scene scene = chains(1, 1, 5, 5);
        scene.design.name = "<b> & \"quotes\"\n\x1b\xef\xbf\xbe\xef\xbf\xbf\xff";
        bool wellFormed = false;
        elementsOf(timelineSvg(panelOf(scene)), &wellFormed);
        QVERIFY(wellFormed);
    }

    /// Painters take minutes over them.
    void longNamesAreCutWhereTheyArePainted()
    {
        Scene scene = chains(1, 1, 5, 5);
        scene.design.name = std::string(100'000, 'x');
        const std::string svg = timelineSvg(panelOf(scene));
        std::size_t longest = 0;
        for (std::size_t at = svg.find("<text"); at != std::string::npos; at = svg.find("<text", at + 1))
            longest = std::max(longest, svg.find("</text>", at) - at);
        QVERIFY(longest > 300 && longest < 600);
    }

    void aMeasurementIsFilledAndThePredictionIsDashed()
    {
        Scene scene = chains(1, 2, 1'000'000, 1'000'000);
        Timeline measured = scene.prediction.timeline;
        // The second forward takes 20 % longer, everything after it is later but not slower.
        measured.end[2] += 200'000;
        measured.start[3] += 200'000;
        measured.end[3] += 200'000;
        PictureOptions options;
        PicturePanel panel = panelOf(scene);
        panel.measured = &measured;
        panel.measuredSource = "run 7";
        const std::string svg = timelineSvg(panel, options);
        QCOMPARE(occurrences(svg, "stroke-dasharray"), 2); // of the lane, and the legend's
        QCOMPARE(occurrences(svg, "fill=\"#c8392b\""), 1 + 1);
        QVERIFY(svg.find("4 ms predicted, 4.2 ms measured (+5.0 %)") != std::string::npos);
        QVERIFY(svg.find("run 7") != std::string::npos);
        options.spread = 0.25;
        QCOMPARE(occurrences(timelineSvg(panel, options), "fill=\"#c8392b\""), 1);

        measured.start[3] = notRun; // a record that was lost is simply not drawn
        QCOMPARE(occurrences(timelineSvg(panel, options), ">I</text>"), 1 + 1);
        measured.start.pop_back();
        QVERIFY_THROWS_EXCEPTION(Error, timelineSvg(panel, options));
    }

    void memoryIsDrawnWhereItIsKnown()
    {
        Scene scene = chains(2, 2, 1'000, 1'000);
        QVERIFY(timelineSvg(panelOf(scene)).find("MEMORY") == std::string::npos);
        scene.prediction.program.devices[1].peakBytes = Bytes(90) << 30;
        scene.prediction.timeline.memory = {{{0, 0}}, {{0, Bytes(10) << 30}, {1'000, Bytes(90) << 30}, {4'000, 0}}};
        scene.design.cluster.devices.assign(2, DeviceSpec{"H100", Bytes(80) << 30, 1, 1, 0.5});
        const std::string svg = timelineSvg(panelOf(scene));
        QVERIFY(svg.find("MEMORY") != std::string::npos);
        QVERIFY(svg.find("90 / 80 GiB") != std::string::npos);
        QCOMPARE(occurrences(svg, "stroke=\"#c8392b\""), 2 + 1); // the limit, on both, and the legend's
    }

    /// Whatever the highest number of bytes, a round one at most nine tenths of the axis is marked.
    void theAxisOfMemoryHasAMark()
    {
        for (const auto& [peak, mark] :
             {std::pair{Bytes(1'000) << 20, "500 MiB"}, std::pair{Bytes(1) << 30, "500 MiB"},
              std::pair{Bytes(1'100) << 20, "1 GiB"}, std::pair{Bytes(90) << 30, "50 GiB"}}) {
            Scene scene = chains(1, 2, 1'000, 1'000);
            scene.prediction.program.devices[0].peakBytes = peak;
            scene.prediction.timeline.memory = {{{0, peak}, {4'000, 0}}};
            const std::string svg = timelineSvg(panelOf(scene));
            const std::size_t words = svg.find(">" + std::string(mark) + "<");
            QVERIFY2(words != std::string::npos, mark);
            // It ends left of the plot, and no curve goes through it.
            const std::string element = svg.substr(svg.rfind("<text", words), words - svg.rfind("<text", words));
            QVERIFY2(element.find("text-anchor=\"end\"") != std::string::npos, element.c_str());
        }
    }

    void theSizeIsBoundedByPixelsNotByBlocks()
    {
        const Scene scene = chains(16, 6'250, 1'000, 2'000); // 200,000 blocks
        const std::string svg = timelineSvg(panelOf(scene));
        QVERIFY2(svg.size() < 1'500'000, qPrintable(QString::number(svg.size())));
        bool wellFormed = false;
        elementsOf(svg, &wellFormed);
        QVERIFY(wellFormed);
        const Scene wide = chains(300, 1, 1'000, 1'000);
        QVERIFY(timelineSvg(panelOf(wide)).find("and 172 more devices") != std::string::npos);
    }

    void narrowBlocksBecomeRunsOfTheColourThatFillsThePixel()
    {
        const Scene scene = chains(1, 1'000, 100, 300);
        const TimeScale scale{0, 100, 0, 400'000}; // ten microbatches per pixel
        const auto lanes = lanesOf(scene.prediction.program, scene.prediction.timeline, scale, 1);
        QCOMPARE(lanes[0].shapes.size(), std::size_t(1));
        QCOMPARE(lanes[0].shapes[0].task, none);
        QCOMPARE(lanes[0].shapes[0].colour, int(Op::I));
        QVERIFY(std::abs(lanes[0].shapes[0].from) < 1e-9 && std::abs(lanes[0].shapes[0].to - 100) < 1e-9);
        QVERIFY(lanes[0].idle.empty());
    }

    void wideBlocksStayThemselvesAndIdleTimeIsKept()
    {
        Scene scene = chains(1, 2, 100, 100);
        for (std::size_t id = 2; id < 4; ++id) {
            scene.prediction.timeline.start[id] += 200;
            scene.prediction.timeline.end[id] += 200;
        }
        const TimeScale scale{10, 60, 0, 600};
        const auto lanes = lanesOf(scene.prediction.program, scene.prediction.timeline, scale, 1);
        QCOMPARE(lanes[0].shapes.size(), std::size_t(4));
        QCOMPARE(lanes[0].shapes[2].task, TaskId(2));
        QCOMPARE(lanes[0].shapes[2].from, 50.0);
        QCOMPARE(lanes[0].idle.size(), std::size_t(1));
        QCOMPARE(lanes[0].idle[0].first, 30.0);
        QCOMPARE(lanes[0].idle[0].second, 50.0);
    }

    void hatchingStaysInsideItsRectangle()
    {
        const Rectangle area{10, 20, 33, 17};
        for (const bool rising : {true, false}) {
            QString data = QString::fromStdString(hatch(area, 8, rising));
            const QStringList points = data.replace('L', 'M').split('M', Qt::SkipEmptyParts);
            QVERIFY(points.size() >= 8 && points.size() % 2 == 0);
            for (const QString& point : points) {
                const QStringList xy = point.split(' ');
                QVERIFY(xy[0].toDouble() >= 10 && xy[0].toDouble() <= 43);
                QVERIFY2(xy[1].toDouble() >= 20 && xy[1].toDouble() <= 37, qPrintable(point));
            }
        }
    }

    void numbersAreShort()
    {
        std::string text;
        for (const double value : {1.0, 1.5, 1.25, -0.333, 1e-9, 1400.0})
            appendNumber(text += ' ', value);
        QCOMPARE(text, std::string(" 1 1.5 1.25 -0.33 0 1400"));
    }

    void impossibleWidthsAreRefused()
    {
        const Scene scene = chains(1, 1, 5, 5);
        PictureOptions options;
        options.width = 10;
        QVERIFY_THROWS_EXCEPTION(Error, timelineSvg(panelOf(scene), options));
    }
};

PIPEWRIGHT_TEST(TestPicture, NoApplication)
#include "tst_picture.moc"
