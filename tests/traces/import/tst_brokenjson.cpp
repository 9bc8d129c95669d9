// SPDX-License-Identifier: GPL-3.0-or-later
// Chrome JSON that is broken in the middle: what is broken costs itself, and truncation is said of files that end
// early.
#include "errorof.h"
#include "testmain.h"
#include "traces/import/chromejson.h"
#include "traces/import/jsonevents.h"

#include <QElapsedTimer>
#include <QTest>

using namespace pipewright;
using namespace pipewright::test;

namespace {

constexpr int kernels = 1000, damaged = 100; ///< the damaged one is event 101

std::string kernel(int number)
{
    const std::string text = std::to_string(number);
    return R"({"ph": "X", "cat": "kernel", "name": "gemm)" + text + R"(", "pid": 0, "tid": 7, "ts": )" + text
           + R"(0, "dur": 5, "args": {"device": 0, "stream": 7, "grid": [1, 2], "correlation": )" + text + "}}";
}

/// A trace whose event 101 is `event`.
std::string traceWith(const std::string& event, bool bare, const std::string& between = ",\n")
{
    std::string text = bare ? "[" : R"({"schemaVersion": 1, "traceEvents": [)";
    for (int i = 0; i < kernels; ++i)
        text += (i == 0 ? "" : between) + (i == damaged ? event : kernel(i));
    return text + (bare ? "]" : R"(], "baseTimeNanoseconds": 1700000000000000000})");
}

std::string replaced(std::string text, const std::string& part, const std::string& by)
{
    return text.replace(text.find(part), part.size(), by);
}

TraceData importText(const std::string& text)
{
    return importChromeJson(*bytesOf(text), "trace.json");
}

std::int64_t countOf(const TraceData& data, const std::string& reason)
{
    const auto found = data.report.entries().find(reason);
    return found == data.report.entries().end() ? 0 : found->second.count;
}

} // namespace

class TestBrokenJson : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void aBrokenEventInTheMiddleCostsThatEvent_data()
    {
        QTest::addColumn<QString>("event");
        QTest::addColumn<QString>("reason");
        QTest::addColumn<int>("kept"); ///< of the kernels
        const auto row = [](const char* name, const std::string& event, int kept = kernels - 1,
                            const char* reason = "events that are no JSON") {
            QTest::newRow(name) << QString::fromStdString(event) << reason << kept;
        };
        const std::string good = kernel(damaged);
        row("a closing quote is missing", replaced(good, "gemm100\"", "gemm100"));
        row("an opening quote is missing", replaced(good, "\"gemm100", "gemm100"));
        row("a quote is too many", replaced(good, "gemm", "ge\"mm"));
        row("a quote is escaped", replaced(good, "gemm100\"", "gemm100\\\""));
        row("the last quote is missing", replaced(good, "correlation\": 100}}", "correlation\": \"100}}"));
        row("the last bracket is missing", good.substr(0, good.size() - 1));
        row("both last brackets are missing", good.substr(0, good.size() - 2));
        row("a list is not closed", replaced(good, "2]", "2"));
        row("a list is closed twice", replaced(good, "2]", "2]]"));
        row("a list is closed as an object", replaced(good, "2]", "2}"));
        row("an object is not opened", replaced(good, "{\"device", "\"device"));
        row("it ends amid a name", good.substr(0, good.find("mm100")));
        row("it ends amid a number", good.substr(0, good.find("5, \"args")));
        row("another event begins within it", good.substr(0, good.find("mm100")) + good, kernels);
        row("its first bracket is missing", good.substr(1), kernels - 1, "list members that are no events");
        row("a bracket follows it", good + "}", kernels, "brackets between events, which close nothing");
        row("a bracket of lists follows it", good + "]", kernels, "brackets between events, which close nothing");
        row("a colon is missing", replaced(good, "\"cat\":", "\"cat\""));
    }

    void aBrokenEventInTheMiddleCostsThatEvent()
    {
        QFETCH(QString, event);
        QFETCH(QString, reason);
        QFETCH(int, kept);
        for (const bool bare : {false, true})
            for (const char* between : {",\n", ",", " , "}) {
                const TraceData data = importText(traceWith(event.toStdString(), bare, between));
                const std::string told = toString(data.report.diagnostics("t"));
                QVERIFY2(std::ssize(data.activities) == kept, told.c_str());
                QVERIFY2(countOf(data, reason.toStdString()) == 1, told.c_str());
                QVERIFY2(told.find("end of the file") == std::string::npos && told.find("ends") == std::string::npos,
                         told.c_str());
                QVERIFY2(data.report.entries().begin()->second.example.starts_with("event 101, at byte "),
                         told.c_str());
                QCOMPARE(data.originEpochNs, std::int64_t{bare ? 0 : 1'700'000'000'000'000'000});
            }
    }

    void severalBrokenEventsAreCounted()
    {
        const std::string broken = replaced(kernel(damaged), "gemm100\"", "gemm100");
        const TraceData data = importText(traceWith(broken + "," + broken + "," + broken, false));
        QCOMPARE(std::ssize(data.activities), kernels - 1);
        QCOMPARE(countOf(data, "events that are no JSON"), std::int64_t{3});
        QCOMPARE(data.report.read, std::int64_t{kernels + 2});
        QVERIFY(data.report.entries().begin()->second.example.starts_with("event 101, at byte "));
    }

    void aBrokenLastEventLeavesWhatFollowsTheList()
    {
        const std::string last = kernel(1), list = R"({"traceEvents": [)" + kernel(0) + ",";
        const std::string more = R"(], "deviceProperties": [{"id": 0}], "baseTimeNanoseconds": 1700000000000000000})";
        const TraceData data = importText(list + replaced(last, "gemm1\"", "gemm1") + more);
        QCOMPARE(data.activities.size(), std::size_t{1});
        QCOMPARE(countOf(data, "events that are no JSON"), std::int64_t{1});
        QCOMPARE(data.report.entries().size(), std::size_t{1});
    }

    void truncationIsSaidWhereTheFileEndsEarly_data()
    {
        QTest::addColumn<QString>("end");
        QTest::addColumn<QString>("reason");
        const char* const cut = "events that the end of the file cuts";
        const std::string last = kernel(1);
        QTest::newRow("amid a name") << QString::fromStdString(last.substr(0, last.find("mm1"))) << cut;
        QTest::newRow("amid a list") << QString::fromStdString(last.substr(0, last.find("2]"))) << cut;
        QTest::newRow("behind a list") << QString::fromStdString(last.substr(0, last.find("2]") + 2)) << cut;
        QTest::newRow("behind an event") << QString::fromStdString(last) << "the file ends within its list of events";
    }

    void truncationIsSaidWhereTheFileEndsEarly()
    {
        QFETCH(QString, end);
        QFETCH(QString, reason);
        const TraceData data = importText(R"({"traceEvents": [)" + kernel(0) + "," + end.toStdString());
        QVERIFY2(countOf(data, reason.toStdString()) == 1, toString(data.report.diagnostics("t")).c_str());
    }

    void aLongStretchThatIsNoJsonIsAnErrorWithItsPlaceAndShare()
    {
        const std::string filler(3 * JsonEvents::largestEvent, 'x');
        const std::string error = errorOf([&] { importText(traceWith(filler, false)); });
        QVERIFY2(error.find("% of the file is no JSON, from byte ") != std::string::npos, error.c_str());
        QVERIFY2(error.find("95.") != std::string::npos, error.c_str());
    }

    void brokenTextOfManyBracketsIsReadInTimeThatGrowsWithIt()
    {
        for (const char* const piece : {R"(,{"a":[1)", R"(,{"ph":1)", R"(,{"ph":"X","b":[{"ph":"X")", R"(,{"a":"\")"}) {
            std::string text = R"({"traceEvents": [)" + kernel(0);
            while (text.size() < 4 * JsonEvents::largestEvent)
                text += piece;
            QElapsedTimer timer;
            timer.start();
            const std::string error = errorOf([&] { importText(text); });
            QVERIFY2(timer.elapsed() < 20'000, piece); // a search of each bracket to the limit would take hours
            QVERIFY2(error.find("no JSON") != std::string::npos || error.empty(), error.c_str());
        }
    }
};

PIPEWRIGHT_TEST(TestBrokenJson, QCoreApplication)
#include "tst_brokenjson.moc"
