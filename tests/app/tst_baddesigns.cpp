// SPDX-License-Identifier: GPL-3.0-or-later
// Designs that are wrong in every way a person or a program gets them wrong: each is named by file and
// line, with an exit code, and never with a crash.
#include "app/program.h"
#include "testmain.h"

#include <QTest>

using namespace pipewright::test;

class TestBadDesigns : public QObject {
    Q_OBJECT

private:
    Workplace m_work;
    QByteArray m_good;

    int lineOf(const QByteArray& text, const QByteArray& part) const
    {
        return static_cast<int>(text.left(text.indexOf(part)).count('\n')) + 1;
    }

private Q_SLOTS:
    void initTestCase()
    {
        QCOMPARE(m_work.run("new zb-h1 --devices 2 --microbatches 2 --saved 8MiB -o good.json").code, 0);
        m_good = m_work.read("good.json");
        QCOMPARE(m_work.run("check good.json").code, 0);
    }

    void theFaultIsNamedByFileAndLine_data()
    {
        QTest::addColumn<QByteArray>("from");  // replaced …
        QTest::addColumn<QByteArray>("to");    // … by this
        QTest::addColumn<QByteArray>("place"); // text on the line that must be named
        QTest::addColumn<QString>("message");
        QTest::addColumn<int>("code");
        const auto row = [](const char* name, QByteArray from, QByteArray to, QByteArray place, QString message,
                            int code) { QTest::newRow(name) << from << to << place << message << code; };
        row("cut off", "\"costs\"", "", "", "", 2);
        row("not JSON", "{", "hello", "hello", "", 2);
        row("an unknown key", "\"backward\"", "\"backwards\"", "\"backwards\"", "backwards", 2);
        row("a number as name", "\"family\": \"zb-h1\"", "\"family\": 3", "\"family\"", "family", 2);
        row("a negative time", "\"forward\": \"1ms\"", "\"forward\": \"-1ms\"", "\"forward\": \"-1ms\"", "-1ms", 2);
        row("a time without unit", "\"forward\": \"1ms\"", "\"forward\": 1", "\"forward\": 1,", "forward", 2);
        row("a million microbatches", "\"microbatches\": 2", "\"microbatches\": 1000000", "\"microbatches\"", "1000000",
            2);
        row("no block", "\"F1.1\"", "\"hello\"", "hello", "hello", 2);
        row("a cycle", "\"F1.0\", \"I1.0\"", "\"I1.0\", \"F1.0\"", "\"I1.0\"", "I1.0", 1);
        row("a missing block", ", \"W1.1\"", "", "\"F1.0\"", "W1.1", 1);
        row("a duplicate block", "\"W1.1\"", "\"W1.1\", \"W1.1\"", "\"F1.0\"", "W1.1", 1);
        row("an unknown stage", "\"W1.1\"", "\"W7.1\"", "\"F1.0\"", "stage 7", 2);
        row("an unknown microbatch", "\"W1.1\"", "\"W1.9\"", "\"F1.0\"", "microbatch 9", 1);
        row("a block of another device", "\"W1.1\"", "\"W0.1\"", "\"F1.0\"", "W0.1", 1);
        row("a device that is not there", "\"placement\": [0, 1]", "\"placement\": [0, 5]", "\"placement\"", "device 5",
            2);
    }

    void theFaultIsNamedByFileAndLine()
    {
        QFETCH(QByteArray, from);
        QFETCH(QByteArray, to);
        QFETCH(QByteArray, place);
        QFETCH(QString, message);
        QFETCH(int, code);
        QByteArray bad = m_good;
        QVERIFY(bad.contains(from));
        bad.replace(bad.indexOf(from), from.size(), to);
        if (from == "\"costs\"")
            bad.truncate(m_good.indexOf(from));
        m_work.write("bad.json", bad);
        const Outcome outcome = m_work.run("check bad.json");
        QVERIFY2(outcome.code == code, qPrintable(QString::number(outcome.code) + ": " + outcome.errors));
        QVERIFY2(outcome.errors.contains(message), qPrintable(outcome.errors));
        const QString where =
            place.isEmpty() ? QString("bad.json:") : QString("bad.json:%1: error: ").arg(lineOf(bad, place));
        QVERIFY2(outcome.errors.contains(where), qPrintable(where + " in " + outcome.errors));
        // Every other command says the same instead of going on.
        for (const char* command : {"predict bad.json --json", "render bad.json -o bad.svg",
                                    "run bad.json --backend host --steps 1 -o bad.db"}) {
            const Outcome other = m_work.run(command);
            QCOMPARE(other.code, code);
            QCOMPARE(other.output, QString());
            QVERIFY2(other.errors.contains("bad.json:"), qPrintable(other.errors));
        }
        QVERIFY(!QFile::exists(m_work.path("bad.svg")));
        QVERIFY(!QFile::exists(m_work.path("bad.db")));
    }

    void devicesThatWaitForEachOtherAreNamed()
    {
        QByteArray bad = m_good;
        // Device 0 wants the gradient of microbatch 0 before it has done F0.1; device 1 wants F0.1 first.
        bad.replace(R"("F0.0", "F0.1", "I0.0", "W0.0")", R"("F0.0", "I0.0", "W0.0", "F0.1")");
        bad.replace(R"("F1.0", "I1.0", "F1.1", "I1.1")", R"("F1.0", "F1.1", "I1.0", "I1.1")");
        m_work.write("cycle.json", bad);
        const Outcome outcome = m_work.run("check cycle.json --json");
        QCOMPARE(outcome.code, 1);
        QVERIFY2(outcome.errors.contains("I0.0 waits for I1.0"), qPrintable(outcome.errors));
        QVERIFY2(outcome.errors.contains("F1.1 waits for F0.1"), qPrintable(outcome.errors));
        const QJsonObject object = outcome.json();
        QCOMPARE(object["valid"].toBool(true), false);
        QVERIFY(!object["diagnostics"].toArray().isEmpty());
    }

    void exceededMemoryIsAFinding()
    {
        QByteArray bad = m_good;
        bad.replace("\"memory\": \"0B\"", "\"memory\": \"10MiB\"");
        m_work.write("small.json", bad);
        const Outcome outcome = m_work.run("check small.json --json");
        QCOMPARE(outcome.code, 1);
        QVERIFY2(outcome.errors.contains("device 0") && outcome.errors.contains("16 MiB")
                     && outcome.errors.contains("10 MiB"),
                 qPrintable(outcome.errors));
        const QJsonObject crossed = outcome.json()["memory_crossed"].toArray().first().toObject();
        QCOMPARE(crossed["device"].toInt(-1), 0);
        QCOMPARE(crossed["limit_bytes"].toInteger(), 10LL << 20);
        QCOMPARE(crossed["peak_bytes"].toInteger(), 16LL << 20);
        QCOMPARE(crossed["saved_bytes"].toInteger(), 16LL << 20);
        QCOMPARE(crossed["saved_by_stage"].toArray().first()["microbatches"].toInt(), 2);
        QVERIFY2(outcome.errors.contains(crossed["during"].toString()) && !crossed["during"].toString().isEmpty(),
                 qPrintable(outcome.errors));
    }

    void anEmptyFileAndAFolderAreNoDesigns()
    {
        m_work.write("empty.json", "");
        QCOMPARE(m_work.run("check empty.json").code, 2);
        QCOMPARE(m_work.run("check .").code, 2);
        m_work.write("deep.json", QByteArray(100'000, '['));
        QCOMPARE(m_work.run("check deep.json").code, 2);
        m_work.write("binary.json", QByteArray("\0\xff\xfe{}", 5));
        QCOMPARE(m_work.run("check binary.json").code, 2);
    }
};

PIPEWRIGHT_TEST(TestBadDesigns, QCoreApplication)
#include "tst_baddesigns.moc"
