// SPDX-License-Identifier: GPL-3.0-or-later
// Pictures for a page: sizes in centimetres, several schedules on one time axis, both sides of a run, black and white,
// parts that are left out, labels that fit, and a step as an animation.
#include "core/base/diagnostic.h"
#include "core/exchange/animatedpage.h"
#include "core/exchange/picturescenes.h"
#include "testmain.h"

#include <QRegularExpression>
#include <QTest>

using namespace pipewright;
using namespace pipewright::test;

namespace {

struct Word {
    QString text;
    double x = 0, y = 0, size = 0;
    QString anchor;
    double left(double characterWidth) const
    {
        const double wide = characterWidth * size * double(text.size());
        return anchor == QLatin1String("middle") ? x - wide / 2 : anchor == QLatin1String("end") ? x - wide : x;
    }
};

struct Box {
    double x = 0, y = 0, width = 0, height = 0;
    QString fill;
};

struct Contents {
    std::vector<Word> words;
    std::vector<Box> boxes;

    explicit Contents(const std::string& svg)
    {
        QXmlStreamReader reader(QByteArray::fromStdString(svg));
        while (!reader.atEnd()) {
            if (reader.readNext() != QXmlStreamReader::StartElement)
                continue;
            const auto attribute = [&reader](const char* name) {
                return reader.attributes().value(QLatin1String(name)).toString();
            };
            const auto value = [&attribute](const char* name) { return attribute(name).toDouble(); };
            if (reader.name() == QLatin1String("rect"))
                boxes.push_back({value("x"), value("y"), value("width"), value("height"), attribute("fill")});
            else if (reader.name() == QLatin1String("text")) {
                Word word{{}, value("x"), value("y"), value("font-size"), attribute("text-anchor")};
                word.text = reader.readElementText();
                words.push_back(word);
            }
        }
    }
    const Word* find(const char* text) const
    {
        for (const Word& word : words)
            if (word.text == QLatin1String(text))
                return &word;
        return nullptr;
    }
    /// Boxes of a colour whose upper edge is between the two.
    std::vector<Box> filled(const char* colour, double from, double to) const
    {
        std::vector<Box> found;
        for (const Box& box : boxes)
            if (box.fill == QLatin1String(colour) && box.y >= from && box.y < to)
                found.push_back(box);
        return found;
    }
};

constexpr auto forwardColour = "#5aa9e6";

PictureOptions onPaper(double centimetres, double points)
{
    PictureOptions options;
    options.colours = PictureColours::Paper;
    options.width = centimetres / 2.54 * pixelsPerInch;
    options.centimetres = true;
    options.fontSize = points / 72 * pixelsPerInch;
    return options;
}

} // namespace

class TestFigures : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void theSizeIsOfThePageAndTheFontOfTheText()
    {
        const Scene scene = chains(4, 4, 1'000'000, 1'500'000);
        const Picture picture = drawPicture({panelOf(scene)}, onPaper(8.5, 8));
        QCOMPARE(sizeOf(picture.svg, "width"), QStringLiteral("8.5cm"));
        const QString height = sizeOf(picture.svg, "height");
        QVERIFY2(height.endsWith(QLatin1String("cm")), qPrintable(height));
        QVERIFY(std::abs(height.chopped(2).toDouble() - picture.height / pixelsPerInch * 2.54) < 0.01);
        // What is 11 high in the picture's own units is 8 pt on paper.
        QVERIFY(std::abs(11 * picture.zoom - 8.0 / 72 * pixelsPerInch) < 1e-9);
        bool wellFormed = false;
        elementsOf(picture.svg, &wellFormed);
        QVERIFY(wellFormed);
        // Larger letters leave less room for time: nothing is beyond the edge.
        const Picture large = drawPicture({panelOf(scene)}, onPaper(8.5, 10));
        const double right = large.width / large.zoom;
        for (const Box& box : Contents(large.svg).boxes)
            QVERIFY2(box.x >= 0 && box.x + box.width <= right + 0.01, qPrintable(QString::number(box.x)));
        for (const Rectangle& times : large.times)
            QVERIFY(times.right() <= right);
        QVERIFY_THROWS_EXCEPTION(Error, drawPicture({panelOf(scene)}, onPaper(2, 10)));
        QVERIFY_THROWS_EXCEPTION(Error, drawPicture({panelOf(scene)}, onPaper(8.5, 1)));
        QVERIFY_THROWS_EXCEPTION(Error, drawPicture({}, onPaper(8.5, 8)));
    }

    void severalSchedulesShareOneTimeAxis()
    {
        Scene slow = chains(2, 4, 2'000'000, 2'000'000), quick = chains(3, 4, 1'000'000, 1'000'000);
        slow.design.name = "slow";
        quick.design.name = "quick";
        const Picture picture = drawPicture({panelOf(slow), panelOf(quick)}, onPaper(16, 8));
        QCOMPARE(picture.times.size(), std::size_t(1));
        QCOMPARE(picture.end, Nanoseconds(16'000'000)); // of the longest
        const Contents contents(picture.svg);
        const Word* first = contents.find("slow");
        const Word* second = contents.find("quick");
        QVERIFY(first && second && first->y < second->y);
        QCOMPARE(occurrences(picture.svg, ">10 ms<"), 1); // one axis
        QCOMPARE(occurrences(picture.svg, ">device 1<"), 2);
        // Each says its own numbers.
        QVERIFY(picture.svg.find("makespan 16 ms") != std::string::npos);
        QVERIFY(picture.svg.find("makespan 8 ms") != std::string::npos);
        // A millisecond is as wide in the one as in the other, and begins at the same place.
        const auto ofSlow = contents.filled(forwardColour, first->y, second->y);
        const auto ofQuick = contents.filled(forwardColour, second->y, 1e9);
        QCOMPARE(ofSlow.size(), std::size_t(2 * 4));
        QCOMPARE(ofQuick.size(), std::size_t(3 * 4));
        QVERIFY(std::abs(ofSlow.front().x - ofQuick.front().x) < 0.02);
        QVERIFY(std::abs((ofSlow.front().width + 1) - 2 * (ofQuick.front().width + 1)) < 0.05);
    }

    void bothSidesOfARunStandUnderOrBesideEachOther()
    {
        const Scene scene = chains(1, 2, 1'000'000, 1'000'000);
        Timeline measured = scene.prediction.timeline;
        measured.end[3] += 2'000'000;
        PicturePanel panel = panelOf(scene);
        panel.measured = &measured;
        PictureOptions options = onPaper(16, 8);
        options.legend = false;
        options.measured = MeasuredPlace::Under;
        const Contents under(drawPicture({panel}, options).svg);
        const Word* predicted = under.find("chains, predicted");
        const Word* other = under.find("chains, measured");
        QVERIFY(predicted && other && predicted->y < other->y && predicted->x == other->x);
        QCOMPARE(under.filled(forwardColour, 0, 1e9).size(), std::size_t(4));

        options.measured = MeasuredPlace::Beside;
        const Picture beside = drawPicture({panel}, options);
        QCOMPARE(beside.times.size(), std::size_t(2));
        QCOMPARE(beside.times[0].width, beside.times[1].width);
        QVERIFY(beside.times[0].right() < beside.times[1].x);
        const Contents contents(beside.svg);
        QVERIFY(contents.find("chains, measured")->x > contents.find("chains, predicted")->x);
        const auto blocks = contents.filled(forwardColour, 0, 1e9);
        QCOMPARE(blocks.size(), std::size_t(4));
        // The same block at the same distance from where its column's time begins.
        QVERIFY(std::abs((blocks[0].x - beside.times[0].x) - (blocks[2].x - beside.times[1].x)) < 0.02);
        QVERIFY(beside.svg.find("makespan 4 ms") != std::string::npos);
        QVERIFY(beside.svg.find("makespan 6 ms") != std::string::npos);

        options.measured = MeasuredPlace::Alone;
        const Contents alone(drawPicture({panel}, options).svg);
        QVERIFY(alone.find("chains, measured"));
        QCOMPARE(alone.filled(forwardColour, 0, 1e9).size(), std::size_t(2));
        QVERIFY(!alone.find("predicted"));
    }

    void blackAndWhiteHasNoColourAndTellsOperationsByTexture()
    {
        const Scene scene = chains(2, 3, 1'000'000, 1'500'000);
        PictureOptions options = onPaper(16, 8);
        options.colours = PictureColours::Grey;
        const std::string svg = drawPicture({panelOf(scene)}, options).svg;
        static const QRegularExpression colour(QStringLiteral("#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})"));
        auto each = colour.globalMatch(QString::fromStdString(svg));
        QVERIFY(each.hasNext());
        while (each.hasNext()) {
            const auto match = each.next();
            QVERIFY2(match.captured(1) == match.captured(2) && match.captured(2) == match.captured(3),
                     qPrintable(match.captured()));
        }
        // I is hatched and F is plain: a hatch for each block of I, and for the legend's.
        const int lines = occurrences(svg, "stroke-opacity=\"0.75\"");
        QCOMPARE(lines, 2 * 3 + 1);
        QCOMPARE(occurrences(svg, "fill=\"#d4d4d4\""), 2 * 3 + 1);
    }

    void partsAreLeftOut()
    {
        Scene scene = chains(2, 2, 1'000'000, 1'000'000);
        scene.prediction.program.devices[1].peakBytes = Bytes(9) << 30;
        scene.prediction.timeline.memory = {{{0, 0}}, {{0, Bytes(9) << 30}, {4'000'000, 0}}};
        const PictureOptions all;
        const std::string whole = timelineSvg(panelOf(scene), all);
        const std::pair<bool PictureOptions::*, const char*> parts[] = {{&PictureOptions::memory, ">MEMORY<"},
                                                                        {&PictureOptions::axes, ">1 ms<"},
                                                                        {&PictureOptions::legend, ">input gradient<"},
                                                                        {&PictureOptions::titles, "font-size=\"15\""},
                                                                        {&PictureOptions::numbers, ">makespan<"}};
        for (const auto& [part, sign] : parts) {
            QVERIFY2(occurrences(whole, sign) > 0, sign);
            PictureOptions options;
            options.*part = false;
            const Picture picture = drawPicture({panelOf(scene)}, options);
            QVERIFY2(occurrences(picture.svg, sign) == 0, sign);
            QVERIFY2(picture.height < drawPicture({panelOf(scene)}, all).height || part == &PictureOptions::legend,
                     sign);
        }
    }

    void labelsFitTheirBlocksAndEqualBlocksSayTheSame_data()
    {
        QTest::addColumn<double>("width");
        QTest::addColumn<int>("microbatches");
        for (const double width : {8.5, 12.0, 17.0})
            for (const int microbatches : {4, 12, 24, 200})
                QTest::addRow("%g cm, %d microbatches", width, microbatches) << width << microbatches;
    }

    void labelsFitTheirBlocksAndEqualBlocksSayTheSame()
    {
        QFETCH(double, width);
        QFETCH(int, microbatches);
        const Scene scene = chains(3, microbatches, 1'000'000, 1'600'000);
        for (const double laneHeight : {0.0, 16.0, 20.0, 60.0}) {
            PictureOptions options = onPaper(width, 8);
            options.legend = options.titles = options.numbers = options.axes = false;
            options.laneHeight = laneHeight;
            const Contents contents(drawPicture({panelOf(scene)}, options).svg);
            std::map<QString, int> letters;
            for (const Word& word : contents.words) {
                if (word.text.startsWith(QLatin1String("device ")))
                    continue;
                // Inside one of the blocks, by the narrow measure of common fonts.
                const double left = word.left(0.58), right = left + 0.58 * word.size * double(word.text.size());
                const bool inside = std::any_of(contents.boxes.begin(), contents.boxes.end(), [&](const Box& box) {
                    return left >= box.x - 0.5 && right <= box.x + box.width + 0.5 && word.y <= box.y + box.height
                           && word.y - 0.7 * word.size >= box.y - 0.5 && box.width < 200;
                });
                QVERIFY2(inside,
                         qPrintable(QStringLiteral("%1 at %2 (lane %3)").arg(word.text).arg(word.x).arg(laneHeight)));
                ++letters[word.text];
            }
            for (const char* letter : {"F", "I"}) // all or none
                QVERIFY2(letters[QLatin1String(letter)] == 3 * microbatches || letters[QLatin1String(letter)] == 0,
                         letter);
            if (microbatches == 4)
                QCOMPARE(letters[QStringLiteral("F")], 3 * 4);
            if (microbatches == 200)
                QVERIFY(letters.empty() || letters[QStringLiteral("F")] == 0);
        }
    }

    void laterStagesOfADeviceArePaler()
    {
        Scene scene = chains(1, 2, 1'000'000, 1'000'000);
        scene.prediction.program.deviceOfStage = {0, 0};
        scene.prediction.program.tasks[2].stage = scene.prediction.program.tasks[3].stage = 1;
        const std::string svg = timelineSvg(panelOf(scene));
        QCOMPARE(occurrences(svg, "fill-opacity=\"0.58\""), 2 + 1); // F and I of stage 1, and the legend's
        QVERIFY(svg.find("second stage") != std::string::npos);
    }

    void aStepIsAnimatedOnAPageOfItsOwn()
    {
        Scene scene = chains(2, 2, 1'000'000, 1'000'000);
        scene.design.name = "a < b";
        const Picture picture = drawPicture({panelOf(scene)}, onPaper(16, 8));
        const std::string page = animatedPage(picture, 4);
        QVERIFY(page.starts_with("<!DOCTYPE html>"));
        QVERIFY(page.find("<title>a &lt; b</title>") != std::string::npos);
        QCOMPARE(occurrences(page, "class=\"ahead\""), 1);
        QVERIFY(page.find("end: 4000000, seconds: 4 ") != std::string::npos);
        // Nothing is fetched from anywhere.
        QCOMPARE(occurrences(page, "src="), 0);
        QCOMPARE(occurrences(page, "http"), 1); // the name of SVG
        // What is veiled is what has time: the same shapes as the picture's, and the veil over the lanes.
        bool wellFormed = false;
        const std::string svg = page.substr(page.find("<svg"), page.find("</svg>") + 6 - page.find("<svg"));
        const auto shown = elementsOf(svg, &wellFormed);
        QVERIFY(wellFormed);
        auto drawn = elementsOf(picture.svg, &wellFormed);
        drawn[QStringLiteral("rect")] += 2;
        QVERIFY(shown == drawn);
        QVERIFY_THROWS_EXCEPTION(Error, animatedPage(picture, 0));
    }
};

PIPEWRIGHT_TEST(TestFigures, NoApplication)
#include "tst_figures.moc"
