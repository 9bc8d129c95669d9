// SPDX-License-Identifier: GPL-3.0-or-later
// Durations, sizes and rates as text and back, diagnostics and lists as text, and the parallel loop.
#include "core/base/diagnostic.h"
#include "core/base/formattedtext.h"
#include "core/base/parallelfor.h"
#include "core/base/units.h"
#include "core/base/utf8.h"
#include "testmain.h"

#include <QTest>

#include <rapidcheck.h>

#include <cmath>
#include <cstdint>
#include <stdexcept>

using namespace pipewright;

namespace {

bool refusesDuration(const char* text, const char* reason)
{
    try {
        parseDuration(text, "--forward");
    } catch (const Error& error) {
        const Diagnostic& first = error.diagnostics().front();
        return first.where == "--forward" && !first.hint.empty() && first.what.find(reason) != std::string::npos;
    }
    return false;
}

bool refusesSize(const char* text, const char* reason)
{
    try {
        parseSize(text, "--memory-limit");
    } catch (const Error& error) {
        const Diagnostic& first = error.diagnostics().front();
        return first.where == "--memory-limit" && !first.hint.empty() && first.what.find(reason) != std::string::npos;
    }
    return false;
}

} // namespace

class TestUnits : public QObject {
    Q_OBJECT

private slots:
    void initTestCase() { qputenv("RC_PARAMS", "seed=20241214 verbose_progress=0"); }

    void whatSomebodyWroteIsSafeToPrint_data()
    {
        QTest::addColumn<QByteArray>("text");
        QTest::addColumn<QByteArray>("printed");
        const auto row = [](const char* name, QByteArray text, QByteArray printed) {
            QTest::newRow(name) << text << printed;
        };
        row("plain", "12 ms", "\"12 ms\"");
        row("nothing", "", "\"\"");
        row("Greek", "601 µs", "\"601 µs\"");
        row("beyond the first plane", "\xf0\x9f\x9a\x82", "\"\xf0\x9f\x9a\x82\"");
        row("escape sequence", "\x1b[31mred", "\"?[31mred\"");
        row("line break", "a\nb\x7f", "\"a?b?\"");
        row("control character of Latin-1", "\xc2\x9b", "\"??\"");
        row("turned around",
            "a\xe2\x80\xae"
            "b",
            "\"a???b\"");
        row("cut short", "\xe2\x80", "\"??\"");
        row("not UTF-8", "\xff\xc0\x80", "\"???\"");
        row("a surrogate", "\xed\xa0\x80", "\"???\"");
        row("overlong", "\xe0\x80\xaf\xf0\x80\x80\xaf", "\"???????\"");
        row("40 bytes", QByteArray(40, 'x'), "\"" + QByteArray(40, 'x') + "\"");
        row("41 bytes", QByteArray(41, 'x'), "\"" + QByteArray(40, 'x') + "…\"");
        row("cut between characters", QByteArray(39, 'x') + "µs", "\"" + QByteArray(39, 'x') + "…\"");
    }

    void whatSomebodyWroteIsSafeToPrint()
    {
        QFETCH(QByteArray, text);
        QFETCH(QByteArray, printed);
        QCOMPARE(QByteArray::fromStdString(inQuotes(text.toStdString())), printed);
    }

    void controlCharactersReachNoTerminal()
    {
        const auto escaped = [](const char* text) { return QByteArray::fromStdString(escapedForTerminal(text)); };
        QCOMPARE(escaped("601 µs\tand\n\xf0\x9f\x9a\x82"), "601 µs\tand\n\xf0\x9f\x9a\x82");
        QCOMPARE(escaped("\x1b[31mred\r\x7f"), "\\u001b[31mred\\u000d\\u007f");
        QCOMPARE(escaped("\xc2\x9b"), "\\u009b");
        QCOMPARE(escaped("\xe2\x80\xae"), "\\u202e");
        QCOMPARE(escaped("\xd8\x9c"), "\\u061c");
        QCOMPARE(escaped("\xee\xb2\xa1"), "\xee\xb2\xa1"); // of a font's own, and no terminal obeys it
        QCOMPARE(escaped("\x9b\xff"), "\\x9b\\xff");
        QCOMPARE(escaped("\xed\xa0\x80"), "\\xed\\xa0\\x80");
    }

    void whatMarkupForbidsIsReplaced()
    {
        const auto escaped = [](const char* text) { return QByteArray::fromStdString(escapedForMarkup(text)); };
        QCOMPARE(escaped("<a href=\"&\">µ"), "&lt;a href=&quot;&amp;&quot;&gt;µ");
        // U+FFFE, U+FFFF, U+FDD0, U+1FFFE, an escape, a surrogate, a byte alone.
        for (const char* text : {"\xef\xbf\xbe", "\xef\xbf\xbf", "\xef\xb7\x90", "\xf0\x9f\xbf\xbe", "\x1b", "\xff"})
            QCOMPARE(escaped(text), "\xef\xbf\xbd");
        QCOMPARE(escaped("\xed\xa0\x80"), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
    }

    void durationsAreReadExactly()
    {
        QCOMPARE(parseDuration("18.522ms", ""), Nanoseconds(18'522'000));
        QCOMPARE(parseDuration("601us", ""), Nanoseconds(601'000));
        QCOMPARE(parseDuration("601µs", ""), Nanoseconds(601'000));
        QCOMPARE(parseDuration("3ns", ""), Nanoseconds(3));
        QCOMPARE(parseDuration("1.5s", ""), Nanoseconds(1'500'000'000));
        QCOMPARE(parseDuration("2min", ""), Nanoseconds(120'000'000'000));
        QCOMPARE(parseDuration("0.000001ms", ""), Nanoseconds(1));
        QCOMPARE(parseDuration("9.600000000000001ms", ""), Nanoseconds(9'600'000)); // as Python prints 3 * 3.2
        QCOMPARE(parseDuration("0.5ns", ""), Nanoseconds(1));
        QCOMPARE(parseDuration("18.52 ms", ""), Nanoseconds(18'520'000));
        QCOMPARE(parseDuration("0ms", ""), Nanoseconds(0));
        QCOMPARE(parseDuration("100.00000000000000000000000000000000000ms", ""), Nanoseconds(100'000'000));
        // Through a double this would be 8639999999999999 or 8640000000000000, not this.
        QCOMPARE(parseDuration("8639999.999999999s", ""), Nanoseconds(8'639'999'999'999'999));
        QCOMPARE(parseDuration("144000min", ""), Nanoseconds(8'640'000'000'000'000));
    }

    void whatIsNoDurationIsRefusedWithPlaceReasonAndRemedy()
    {
        QVERIFY(refusesDuration("", "not a duration"));
        QVERIFY(refusesDuration(".", "not a duration"));
        QVERIFY(refusesDuration("1.ms", "not a duration"));
        QVERIFY(refusesDuration("+1ms", "not a duration"));
        QVERIFY(refusesDuration("nan", "not a duration"));
        QVERIFY(refusesDuration("5", "no unit"));
        QVERIFY(refusesDuration("5MS", "not a unit"));
        QVERIFY(refusesDuration("1e3us", "not a unit"));
        QVERIFY(refusesDuration("1.2.3ms", "not a unit"));
        QVERIFY(refusesDuration("0x10ms", "not a unit"));
        QVERIFY(refusesDuration("3ns ", "not a unit"));
        QVERIFY(refusesDuration("-1ms", "negative"));
        QVERIFY(refusesDuration("0.4ns", "less than the smallest"));
        QVERIFY(refusesDuration("0.0000001ms", "less than the smallest"));
        QVERIFY(refusesDuration("8640000.000000001s", "larger"));
        QVERIFY(refusesDuration("99999999999999999999999999999999999999999999999s", "larger"));
        QVERIFY(refusesDuration("0.99999999999999999999999999999999999999999999999s", "more digits"));
    }

    void sizesKnowBinaryAndDecimalUnits()
    {
        QCOMPARE(parseSize("80GiB", ""), Bytes(80) << 30);
        QCOMPARE(parseSize("1.5MB", ""), Bytes(1'500'000));
        QCOMPARE(parseSize("512B", ""), Bytes(512));
        QCOMPARE(parseSize("2KiB", ""), Bytes(2'048));
        QCOMPARE(parseSize("2KB", ""), Bytes(2'000));
        QCOMPARE(parseSize("1.25TiB", ""), Bytes(5) << 38);
        QCOMPARE(parseSize("3TB", ""), Bytes(3'000'000'000'000));
        QCOMPARE(parseSize("0.1GiB", ""), Bytes(107'374'182)); // the nearest byte
        QVERIFY(refusesSize("80", "no unit"));
        QVERIFY(refusesSize("80G", "not a unit"));
        QVERIFY(refusesSize("-1B", "negative"));
        QVERIFY(refusesSize("1.5x", "not a unit"));
        QVERIFY(refusesSize("9999999999999TiB", "larger"));
    }

    void formattedValuesShowThreeOrFourDigitsAndTheirUnit()
    {
        QCOMPARE(formatDuration(0), std::string("0 ns"));
        QCOMPARE(formatDuration(999), std::string("999 ns"));
        QCOMPARE(formatDuration(601'000), std::string("601 us"));
        QCOMPARE(formatDuration(18'522'000), std::string("18.52 ms"));
        QCOMPARE(formatDuration(261'449'000), std::string("261.4 ms"));
        QCOMPARE(formatDuration(999'999), std::string("1 ms"));
        QCOMPARE(formatDuration(1'500'000'000), std::string("1.5 s"));
        QCOMPARE(formatDuration(3'600'000'000'000), std::string("60 min"));
        QCOMPARE(formatDuration(-1'500'000), std::string("-1.5 ms"));
        QCOMPARE(formatSize(0), std::string("0 B"));
        QCOMPARE(formatSize(1'023), std::string("1023 B"));
        QCOMPARE(formatSize((Bytes(688) << 30) / 10), std::string("68.8 GiB"));
        QCOMPARE(formatSize(Bytes(1'536) << 20), std::string("1.5 GiB"));
        QCOMPARE(formatSize(Bytes(1'000) << 20), std::string("1000 MiB"));
    }

    void exactTextReadsBackToTheSameValue()
    {
        QCOMPARE(exactDuration(18'522'000), std::string("18.522ms"));
        QCOMPARE(exactDuration(3), std::string("3ns"));
        QCOMPARE(exactDuration(0), std::string("0ns"));
        QCOMPARE(exactDuration(1'000'000'001), std::string("1.000000001s"));
        QCOMPARE(exactSize(Bytes(1'536) << 20), std::string("1536MiB"));
        QCOMPARE(exactSize(1'000), std::string("1000B"));
        QCOMPARE(exactSize(0), std::string("0B"));
        QVERIFY(rc::check("duration", [] {
            const auto value = *rc::gen::inRange<Nanoseconds>(0, 8'640'000'000'000'001);
            RC_ASSERT(parseDuration(exactDuration(value), "") == value);
            const Nanoseconds small = value % 2'000'000;
            RC_ASSERT(parseDuration(exactDuration(small), "") == small);
        }));
        QVERIFY(rc::check("size", [] {
            const auto value = *rc::gen::inRange<Bytes>(0, Bytes(1) << 60);
            RC_ASSERT(parseSize(exactSize(value), "") == value);
        }));
    }

    void anyTextIsEitherReadOrRefused()
    {
        QVERIFY(rc::check("no crash", [] {
            const auto text =
                *rc::gen::container<std::string>(rc::gen::elementOf(std::string("0123456789.. -+eExmunsKMGTiB")));
            try {
                RC_ASSERT(parseDuration(text, "here") >= 0);
            } catch (const Error& error) {
                RC_ASSERT(error.diagnostics().size() == 1u);
            }
            try {
                RC_ASSERT(parseSize(text, "here") >= 0);
            } catch (const Error&) {
            }
        }));
    }

    void listsAndFormattedPiecesAreText()
    {
        QCOMPARE(joined(std::vector<std::string>{}, ", "), std::string());
        QCOMPARE(joined(std::vector<std::string>{"a"}, ", "), std::string("a"));
        QCOMPARE(joined(std::vector<std::string>{"a", "", "c"}, ", "), std::string("a, , c"));
        QCOMPARE(joined(std::vector<std::string_view>{"a", "b"}, ""), std::string("ab"));
        QCOMPARE(joined(std::vector<int>{3, -2, 1}, " "), std::string("3 -2 1"));
        QCOMPARE(joined(std::vector<std::int64_t>{1LL << 40, 2}, " x "), std::string("1099511627776 x 2"));
        QCOMPARE(joined(std::vector<std::size_t>{0, 7}, "; "), std::string("0; 7"));
        std::string text = "a";
        appendFormatted(text, "{}.{:03}", 5, 7);
        appendFormatted(text, "");
        appendFormatted(text, " {{{}}}", std::string(1000, 'b'));
        QCOMPARE(text, "a5.007 {" + std::string(1000, 'b') + "}");
    }

    void parallelForDoesEverythingAndThrowsInTheCaller()
    {
        for (const std::size_t count : {0u, 1u, 2u, 5u}) {
            std::vector<int> done(count, 0);
            parallelFor(count, [&](std::size_t i) { ++done[i]; });
            QCOMPARE(done, std::vector<int>(count, 1));
        }
        for (const std::size_t faulty : {0u, 1u, 3u}) {
            std::vector<int> done(4, 0);
            QVERIFY_THROWS_EXCEPTION(Error, parallelFor(4, [&](std::size_t i) {
                                         ++done[i];
                                         if (i >= faulty)
                                             throw Error("here", "wrong");
                                     }));
            QCOMPARE(done, std::vector<int>(4, 1));
        }
    }

    void diagnosticsPrintAsPlaceSeverityFaultAndRemedy()
    {
        QCOMPARE(toString(Diagnostic{Severity::Error, "a.json:3", "is wrong", "do this"}),
                 std::string("a.json:3: error: is wrong (do this)"));
        QCOMPARE(toString(Diagnostic{Severity::Warning, "", "is odd", ""}), std::string("warning: is odd"));
        QVERIFY(!hasErrors({{Severity::Warning, "", "", ""}, {Severity::Note, "", "", ""}}));
        QVERIFY(hasErrors({{Severity::Note, "", "", ""}, {Severity::Error, "", "", ""}}));
        QCOMPARE(std::string(Error("here", "wrong").what()), std::string("here: error: wrong"));
        QCOMPARE(Error(Diagnostics{}).diagnostics().size(), std::size_t(1));
    }
};

PIPEWRIGHT_TEST(TestUnits, NoApplication)
#include "tst_units.moc"
