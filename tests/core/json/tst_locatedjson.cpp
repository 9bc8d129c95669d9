// SPDX-License-Identifier: GPL-3.0-or-later
// Documents of people who mean no good, or of other programs, are read or refused in a moment.
#include "core/json/locatedjson.h"
#include "core/json/objectreader.h"
#include "testmain.h"

#include <QElapsedTimer>
#include <QTest>
#include <fmt/format.h>

#include <cstdint>

using namespace pipewright;

class TestLocatedJson : public QObject {
    Q_OBJECT

private slots:
    void linesAreThoseAnEditorShows()
    {
        const LocatedJson document =
            parseLocatedJson("{\"a\": 1,\n\"b/c\": [\n  1,\n  2\n],\r\n\"d\":\n{\"e~\": 5\n}}", "x");
        QCOMPARE(document.lineOf("/a"), 1);
        QCOMPARE(document.lineOf("/b~1c"), 2);
        QCOMPARE(document.lineOf("/b~1c/0"), 3);
        QCOMPARE(document.lineOf("/b~1c/1"), 4);
        QCOMPARE(document.lineOf("/d"), 7);
        QCOMPARE(document.lineOf("/d/e~0"), 7);
        QCOMPARE(document.lineOf("/d/nothing/there"), 7);
        QCOMPARE(document.placeOf("/nothing"), std::string("x:1"));
    }

    void membersStandAsTheTextHasThem()
    {
        const auto document = parseLocatedJson(R"({"z": {"b": 18446744073709551615, "a": -9223372036854775808},
                                                   "a~/": [1, "x"], "": null})",
                                               "x");
        QCOMPARE(document.value.dump(),
                 std::string(R"({"z":{"b":18446744073709551615,"a":-9223372036854775808},"a~/":[1,"x"],"":null})"));
        QCOMPARE(document.value["z"]["b"].get<std::uint64_t>(), UINT64_MAX);
    }

    void faultsOfTextsAreNamed_data()
    {
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("what");
        QTest::newRow("a key twice") << R"({"a": {"b": 1, "c": [{"b": 2}], "b": 3}})"
                                     << R"(the key "b" stands twice)";
        QTest::newRow("too deep") << QString(1 << 20, '[') << "nested more than 64 levels deep";
        QTest::newRow("no number") << R"({"a": NaN})"
                                   << "invalid literal";
        QTest::newRow("infinite") << R"({"a": -Infinity})"
                                  << "invalid number";
        QTest::newRow("past the largest number") << R"({"a": 1e999})"
                                                 << "number overflow";
        QTest::newRow("cut off") << R"({"a": )"
                                 << "unexpected end of input";
    }
    void faultsOfTextsAreNamed()
    {
        QFETCH(const QString, text);
        QFETCH(const QString, what);
        try {
            parseLocatedJson("\n" + text.toStdString(), "x");
            QFAIL("accepted");
        } catch (const Error& error) {
            QVERIFY2(QString(error.what()).contains("x:2: error: ") && QString(error.what()).contains(what),
                     error.what());
        }
    }

    /// Looking every new key up among those before it would take minutes here.
    void manyMembersAreReadAndRefusedInAMoment()
    {
        std::string text = "{\"known\": 1";
        for (int i = 0; i < 300'000; ++i)
            text += fmt::format(",\"key{}\":{}", i, i);
        QElapsedTimer timer;
        timer.start();
        const LocatedJson document = parseLocatedJson(text + "}", "x");
        QCOMPARE(document.value.size(), std::size_t(300'001));
        QVERIFY_THROWS_EXCEPTION(Error, parseLocatedJson(text + ",\"known\": 2}", "x"));
        Diagnostics faults;
        ObjectReader reader(document, document.value, "", faults);
        int known = 0;
        reader.read("known", known, 0, 1);
        reader.finish();
        QCOMPARE(faults.size(), std::size_t(32));
        QCOMPARE(faults[1].what, std::string("unknown key \"key1\"")); // by name, not by place
        QCOMPARE(faults[2].what, std::string("unknown key \"key10\""));
        QVERIFY2(timer.elapsed() < 60'000, "more than in proportion to the text");
    }
};

PIPEWRIGHT_TEST(TestLocatedJson, NoApplication)
#include "tst_locatedjson.moc"
