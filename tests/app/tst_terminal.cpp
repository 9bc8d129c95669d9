// SPDX-License-Identifier: GPL-3.0-or-later
// What the program says: an answer that is lost is no success, and no name from a file commands the terminal.
#include "app/program.h"
#include "testmain.h"

#include <QTest>

using namespace pipewright::test;

class TestTerminal : public QObject {
    Q_OBJECT

private:
    Workplace m_work;

    /// The least address space (KiB) in which the program reaches its own first line. With less, the loader and the
    /// initialisers of libraries (libQt6Gui's) end it with a signal of their own, in a window of some 300 KiB.
    int leastMemory()
    {
        int kib = 80'000;
        while (kib < 1'000'000 && m_work.shell(QString("ulimit -v %1; \"$pipewright\" --version").arg(kib)).code != 0)
            kib += 2'000;
        return kib;
    }

    static void addCommands()
    {
        QTest::addColumn<QString>("words");
        for (const char* words :
             {"--version", "predict --help", "predict d.json", "predict d.json --json", "check d.json", "devices",
              "new gpipe --devices 2 --microbatches 2 -o new.json --force", "compare d.json t.db", "explain t.db",
              "query t.db --schema", "calibrate d.json t.db --busy-machine -o c.json --force",
              "run d.json --backend host --maths timed --steps 1 -o r.db --force"})
            QTest::newRow(words) << words;
    }

private Q_SLOTS:
    void initTestCase()
    {
        QCOMPARE(m_work.run("new 1f1b --devices 2 --microbatches 2 -o d.json").code, 0);
        QCOMPARE(m_work.run("run d.json --backend host --maths timed --steps 2 -o t.db").code, 0);
    }

    void aLostAnswerIsNoSuccess_data() { addCommands(); }
    void aLostAnswerIsNoSuccess()
    {
        QFETCH(QString, words);
        QCOMPARE(m_work.run(words).code, 0);
        for (const char* lost : {" >/dev/full", " >&-"}) {
            const Outcome outcome = m_work.shell("\"$pipewright\" " + words + lost);
            QCOMPARE(outcome.code, 2);
            QVERIFY2(outcome.errors.contains("could not all be written"), qPrintable(outcome.errors));
        }
    }

    void closedStandardOutputIsNotTheNextFile()
    {
        QCOMPARE(m_work.shell("\"$pipewright\" new 1f1b --devices 2 --microbatches 2 -o closed.json >&- 2>&-").code, 2);
        QCOMPARE(m_work.read("closed.json").left(1), "{");
        QCOMPARE(m_work.run("check closed.json").code, 0);
    }

    void lostProgressEndsNoRun()
    {
        const Outcome outcome = m_work.shell("\"$pipewright\" run d.json --backend host --maths timed --steps 3 "
                                             "-o progress.db --json --progress json 2>/dev/full");
        QCOMPARE(outcome.code, 2);
        QCOMPARE(outcome.json()["step_ns"].toArray().size(), 3);
    }

    /// Somebody looks at the first line, as with head, or the pager ends: the training does not.
    void whoeverStopsToReadEndsNoRun()
    {
        const Outcome outcome =
            m_work.shell("{ \"$pipewright\" run d.json --backend host --steps 20 -o unread.db --json "
                         "--progress json 2>&1 >unread.json; echo $? >code; } | head -1");
        QCOMPARE(m_work.read("code").trimmed(), "2");
        QVERIFY(outcome.output.contains("\"step\""));
        QCOMPARE(QJsonDocument::fromJson(m_work.read("unread.json")).object()["step_ns"].toArray().size(), 20);
    }

    void namesCommandNoTerminal()
    {
        QCOMPARE(m_work.run("new 1f1b --devices 2 --microbatches 2 --name called -o named.json").code, 0);
        QByteArray design = m_work.read("named.json");
        design.replace("\"called\"", "\"a\\u001b[2Jb\\u009bc\"");
        m_work.write("\x1b[7mescape.json", design);
        QString all;
        const QString file = QString::fromLatin1("\x1b[7mescape.json");
        QCOMPARE(m_work.run("run " + file + " --backend host --maths timed --steps 1 -o \x1bt.db").code, 0);
        for (const char* words :
             {"predict %1", "check %1", "render %1 -o \x1b[5m.svg", "check %1x", "\x1b[31m", "predict %1 --\x1b[31m",
              "new 1f1b --devices 2 --microbatches 2 -o \x1bn.json", "explain \x1bt.db", "compare %1 \x1bt.db",
              "calibrate %1 \x1bt.db --busy-machine -o \x1b"
              "c.json",
              "shard %1", "predict %1 --json", "query \x1bt.db --schema"}) {
            const Outcome outcome = m_work.run(QString::fromLatin1(words).replace("%1", file));
            all += outcome.output + outcome.errors;
            for (const QChar character : outcome.output + outcome.errors)
                QVERIFY2(character.isPrint() || character == u'\n' || character == u'\t', words);
        }
        QVERIFY(all.contains("\\u001b[2J") && all.contains("\\u009b") && all.contains("\\u001b[7mescape.json"));
        const Outcome query = m_work.shell("\"$pipewright\" query t.db \"SELECT char(27, 155, 13) || 'x' AS name\"");
        QCOMPARE(query.output, QString("name\n\\u001b\\u009b\\u000dx\n"));
        const Outcome json = m_work.shell("\"$pipewright\" query t.db \"SELECT char(27, 155) AS name\" --json");
        QVERIFY(!json.output.contains(QChar(0x9b)));
        QCOMPARE(json.json()["rows"].toArray()[0].toArray()[0].toString(), QString(QChar(0x1b)) + QChar(0x9b));
    }

    void aLimitOfFileSizesIsTold()
    {
        const Outcome outcome =
            m_work.shell("ulimit -f 1; \"$pipewright\" new 1f1b --devices 8 --microbatches 64 -o large.json");
        QCOMPARE(outcome.code, 2);
        QVERIFY2(outcome.errors.contains("File too large"), qPrintable(outcome.errors));
        QVERIFY(m_work.read("large.json").isEmpty());

        const Outcome run =
            m_work.shell("ulimit -f 128; \"$pipewright\" run d.json --backend host --maths timed --clock "
                         "virtual --steps 2000 -o large.db --json");
        QCOMPARE(run.code, 2);
        QVERIFY2(run.errors.contains("ulimit -f"), qPrintable(run.errors));
        QCOMPARE(run.json()["step_ns"].toArray().size(), 2000); // the numbers are not lost with the trace
    }

    /// The design is not to blame.
    void anExportThatCannotBeWrittenNamesTheFile()
    {
        QCOMPARE(m_work.run("new 1f1b --devices 8 --microbatches 64 -o exported.json --force").code, 0);
        const Outcome outcome =
            m_work.shell("ulimit -f 1; \"$pipewright\" export exported.json --to chrome -o exported-trace.json");
        QCOMPARE(outcome.code, 2);
        QVERIFY2(outcome.errors.contains("exported-trace.json: error: cannot be written"), qPrintable(outcome.errors));
        QVERIFY(m_work.read("exported-trace.json").isEmpty());
    }

    void flagsTakeNoValues()
    {
        for (const char* words : {"predict exported.json --json=1us", "new 1f1b --devices 2 --microbatches 2 -o f.json "
                                                                      "--force=no"})
            QCOMPARE(m_work.run(words).code, 2);
    }

    void aPictureWithoutThreadsIsRefused()
    {
        if (!m_work.run("render --help").output.contains("png"))
            QSKIP("this build makes no PNG");
        // No stack of that size fits into the memory, so no thread can be started.
        const Outcome outcome = m_work.shell("ulimit -s 4000000; ulimit -v 3000000; timeout -k 1 100 \"$pipewright\" "
                                             "render exported.json -o threads.png");
        QVERIFY2(outcome.code == 0 || outcome.code == 2, qPrintable(QString::number(outcome.code)));
        QVERIFY2(outcome.code == 0 || outcome.errors.contains("thread"), qPrintable(outcome.errors));
    }

    void whatNeverEndsIsReadToAStatedLength()
    {
        const Outcome outcome = m_work.shell("exec timeout -k 1 100 \"$pipewright\" check /dev/zero");
        QCOMPARE(outcome.code, 2);
        QVERIFY2(outcome.errors.contains("goes on after 1 GiB"), qPrintable(outcome.errors));
    }

    /// Each of its threads wants memory for its stack, and each buffer its bytes.
    void aRunWithoutMemoryOrThreadsEndsWithASentence()
    {
        QCOMPARE(m_work.run("new 1f1b --devices 16 --microbatches 16 --saved 4MiB -o many.json --force").code, 0);
        bool refused = false;
        const int least = leastMemory();
        for (int kib = least; kib <= least + 500'000; kib += 50'000) {
            const Outcome outcome = m_work.shell(
                QString("ulimit -v %1; timeout -k 1 60 \"$pipewright\" run many.json --backend host --maths timed "
                        "--steps 1 -o many.db --force; exit $?")
                    .arg(kib));
            QVERIFY2(outcome.code == 0 || outcome.code == 1 || outcome.code == 2,
                     qPrintable(QString("%1 KiB: %2 %3").arg(kib).arg(outcome.code).arg(outcome.errors)));
            QVERIFY2(outcome.code == 0 || outcome.errors.contains("error: "), qPrintable(outcome.errors));
            refused = refused || outcome.code == 1 || outcome.code == 2;
        }
        QVERIFY(refused);
    }

    void aCommandEndsWhereMemoryIsShort()
    {
        QCOMPARE(m_work.run("new 1f1b --devices 2 --microbatches 4 -o short.json --force").code, 0);
        const int least = leastMemory();
        QVERIFY(least < 1'000'000);
        for (const char* command : {"predict short.json", "render short.json -o short.pdf --force"})
            for (int kib = least; kib <= least + 270'000; kib += kib < least + 50'000 ? 5'000 : 30'000) {
                const Outcome outcome = m_work.shell(
                    QString("ulimit -v %1; timeout -k 1 100 \"$pipewright\" %2; exit $?").arg(kib).arg(command));
                QVERIFY2(outcome.code >= 0 && outcome.code != 124 && outcome.code < 128,
                         qPrintable(QString("%1 KiB: %2 %3").arg(kib).arg(outcome.code).arg(outcome.errors)));
            }
    }

    void aFileThatASignalCutsShortIsRemoved()
    {
        QCOMPARE(m_work.run("new 1f1b --devices 32 --microbatches 2048 -o long.json --force").code, 0);
        for (const char* signal : {"TERM", "HUP"}) {
            const Outcome outcome =
                m_work.shell(QString("\"$pipewright\" export long.json --to perfetto -o cut.pft --force & "
                                     "for i in $(seq 2000); do ls cut.pft.unfinished-* >/dev/null 2>&1 && break; "
                                     "sleep 0.005; done; kill -%1 $!; wait $!; echo ended $?; ls cut.pft.unfinished-*")
                                 .arg(signal));
            QVERIFY2(!outcome.output.contains("unfinished"), qPrintable(outcome.output));
            QVERIFY2(outcome.output.contains("ended 143") || outcome.output.contains("ended 129"),
                     qPrintable(outcome.output + outcome.errors));
        }
    }
};

PIPEWRIGHT_TEST(TestTerminal, QCoreApplication)
#include "tst_terminal.moc"
