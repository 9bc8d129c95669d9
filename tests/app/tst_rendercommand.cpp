// SPDX-License-Identifier: GPL-3.0-or-later
// Pictures from the command line: formats by the file's ending, sizes, several designs, traces, and refusals.
#include "app/program.h"
#include "testmain.h"

#include <QTest>
#include <QXmlStreamReader>

using namespace pipewright::test;

namespace {

bool isWellFormed(const QByteArray& xml)
{
    QXmlStreamReader reader(xml);
    while (!reader.atEnd())
        reader.readNext();
    return !reader.hasError();
}

/// The first number of a chunk, of four bytes.
int numberIn(const QByteArray& png, const char* chunk)
{
    const auto at = png.indexOf(chunk) + 4;
    int value = 0;
    for (int i = 0; i < 4 && at + i < png.size(); ++i)
        value = value << 8 | static_cast<unsigned char>(png[at + i]);
    return value;
}

} // namespace

class TestRenderCommand : public QObject {
    Q_OBJECT

private:
    Workplace m_work;

private Q_SLOTS:
    void initTestCase()
    {
        QCOMPARE(m_work.run("new zb-h1 --devices 2 --microbatches 4 -o zb.json").code, 0);
        QCOMPARE(m_work.run("new gpipe --devices 2 --microbatches 4 -o gpipe.json").code, 0);
        QCOMPARE(m_work.run("run zb.json --backend host --synthetic --steps 2 -o zb.db").code, 0);
    }

    void onePictureInEveryFormat()
    {
        for (const char* ending : {"svg", "pdf", "png", "html"}) {
            const QString name = QStringLiteral("a.") + ending;
            const Outcome outcome =
                m_work.run("render zb.json --width 8.5cm --font-size 8pt --json -o " + name, {"QT_QPA_PLATFORM"});
            QVERIFY2(outcome.code == 0, qPrintable(outcome.errors));
            QCOMPARE(outcome.json()["picture"].toString(), name);
            QVERIFY(!m_work.read(name).isEmpty());
        }
        const QByteArray svg = m_work.read("a.svg");
        QVERIFY(isWellFormed(svg));
        QVERIFY(svg.contains("width=\"8.5cm\""));
        const QByteArray pdf = m_work.read("a.pdf");
        QVERIFY(pdf.startsWith("%PDF-") && pdf.trimmed().endsWith("%%EOF"));
        QVERIFY(pdf.contains("/MediaBox [0 0 241"));           // 8.5 cm in points of 1/72 inch
        QCOMPARE(numberIn(m_work.read("a.png"), "IHDR"), 643); // 192 dots per inch
        QCOMPARE(numberIn(m_work.read("a.png"), "pHYs"), 7559);
        QVERIFY(m_work.read("a.html").startsWith("<!DOCTYPE html>"));
        QCOMPARE(m_work.run("render zb.json --width 8.5cm --resolution 600 --force -o a.png").code, 0);
        QCOMPARE(numberIn(m_work.read("a.png"), "IHDR"), 2008);
    }

    void paperIsWhiteAndAScreenIsNot()
    {
        QCOMPARE(m_work.run("render zb.json --colours grey -o grey.svg").code, 0);
        QVERIFY(!m_work.read("grey.svg").contains("#5aa9e6"));
        QCOMPARE(m_work.run("render zb.json --dark -o dark.svg").code, 0);
        QVERIFY(m_work.read("dark.svg").contains("#15171c"));
        QCOMPARE(m_work.run("render zb.json --colours paper -o paper.svg").code, 0);
        QVERIFY(!m_work.read("paper.svg").contains("#f4f5f8"));
    }

    void severalDesignsAndTheirRuns()
    {
        const Outcome outcome = m_work.run("render gpipe.json zb.json --trace - --trace zb.db --measured under "
                                           "--title before --title after --json -o both.svg");
        QVERIFY2(outcome.code == 0, qPrintable(outcome.errors));
        QCOMPARE(outcome.json()["designs"].toArray().size(), 2);
        QCOMPARE(outcome.json()["measured"].toBool(), true);
        const QByteArray svg = m_work.read("both.svg");
        QVERIFY(isWellFormed(svg));
        for (const char* title : {">before<", ">after, predicted<", ">after, measured<"})
            QVERIFY2(svg.contains(title), title);
        QVERIFY(!svg.contains(">before, "));
        // A trace before its design, as it was always written.
        QCOMPARE(m_work.run("render --trace zb.db zb.json -o one.svg").code, 0);
        QVERIFY(m_work.read("one.svg").contains("measured ("));
        QCOMPARE(m_work.run("render zb.json --without axes,legend --without numbers -o bare.svg").code, 0);
        QVERIFY(!m_work.read("bare.svg").contains(">makespan<"));
    }

    void whatCannotBeIsRefusedWithAReason_data()
    {
        QTest::addColumn<QString>("words");
        QTest::addColumn<QString>("message");
        QTest::newRow("no length") << "--width wide"
                                   << "such as 8.5cm";
        QTest::newRow("no width") << "--width 0cm"
                                  << "--width";
        QTest::newRow("too narrow") << "--width 2cm"
                                    << "24 times the font";
        QTest::newRow("an odd colour") << "--colours pink"
                                       << "light, dark, paper, grey";
        QTest::newRow("two looks") << "--colours grey --dark"
                                   << "leave one of the two out";
        QTest::newRow("nowhere") << "--measured above"
                                 << "over, under, beside, alone";
        QTest::newRow("no such part") << "--without legends"
                                      << "memory, axes, legend, titles and numbers";
        QTest::newRow("dots of a vector") << "--resolution 300"
                                          << "only a .png";
        QTest::newRow("time of a still") << "--duration 3s"
                                         << "only an animation";
        QTest::newRow("too many traces") << "--trace zb.db --trace zb.db"
                                         << "2 for 1 design file";
    }

    void whatCannotBeIsRefusedWithAReason()
    {
        QFETCH(QString, words);
        QFETCH(QString, message);
        const Outcome outcome = m_work.run("render zb.json -o refused.svg " + words);
        QCOMPARE(outcome.code, 2);
        QVERIFY2(outcome.errors.contains(message), qPrintable(outcome.errors));
        QVERIFY(m_work.read("refused.svg").isEmpty());
    }
};

PIPEWRIGHT_TEST(TestRenderCommand, NoApplication)
#include "tst_rendercommand.moc"
