// SPDX-License-Identifier: GPL-3.0-or-later
// What is named as an input and is none: every command says so at once.
#include "app/program.h"
#include "testmain.h"

#include <QTest>

#include <sys/stat.h>

using namespace pipewright::test;

class TestInputs : public QObject {
    Q_OBJECT

private:
    Workplace m_work;

private Q_SLOTS:
    void initTestCase()
    {
        QCOMPARE(m_work.run("new 1f1b --devices 2 --microbatches 2 --model byte-gpt-small --sequence 8 -o d.json").code,
                 0);
        QCOMPARE(m_work.run("run d.json --backend host --maths timed --clock virtual --steps 1 -o t.db").code, 0);
        for (const char* name : {"p", "p.json", "p.db", "p.csv", "p.u16", "p.safetensors", "p.py"})
            QCOMPARE(::mkfifo(m_work.path(name).toUtf8().constData(), 0600), 0);
    }

    void aPipeWithoutAWriterIsRefusedByEveryCommand_data()
    {
        QTest::addColumn<QString>("words");
        for (const char* words : {"check p.json",
                                  "predict p.json",
                                  "predict d.json --costs-from p.db",
                                  "new 1f1b --devices 2 --microbatches 2 --model p.json -o x",
                                  "new 1f1b --devices 2 --microbatches 2 --model p.csv -o x",
                                  "new 1f1b --devices 2 --microbatches 2 --cluster p.json -o x",
                                  "run p.json --backend host --steps 1 -o x",
                                  "run d.json --backend host --steps 1 --data p -o x",
                                  "run d.json --backend host --steps 1 --data p.u16 -o x",
                                  "run d.json --backend host --steps 1 --weights p.safetensors -o x",
                                  "run d.json --backend torch --steps 1 --python true --module p.py:build -o x",
                                  "profile --torch p.py:build --python true -o x.json",
                                  "experiment p.json --steps 1",
                                  "experiment d.json --steps 1 --data p",
                                  "experiment d.json --steps 1 --backend torch --python true --module p.py:build",
                                  "compare p.json t.db",
                                  "compare d.json p.db",
                                  "explain p.db",
                                  "explain t.db --design p.json",
                                  "explain t.db --order p.json",
                                  "query p.db --schema",
                                  "calibrate p.json t.db -o x",
                                  "calibrate d.json p.db -o x",
                                  "render p.json -o x.svg",
                                  "render d.json --trace p.db -o x.svg",
                                  "export p.json --to chrome -o x",
                                  "export p.db --to chrome -o x",
                                  "export d.json --trace p.db --to chrome -o x",
                                  "import p -o x",
                                  "import p.json -o x",
                                  "import p.csv -o x",
                                  "search p.json --time-limit 1s -o x",
                                  "search d.json --costs-from p.db --time-limit 1s -o x",
                                  "shard p.json"})
            QTest::newRow(words) << words;
    }
    void aPipeWithoutAWriterIsRefusedByEveryCommand()
    {
        QFETCH(QString, words);
        // For ever, were it waited for.
        const Outcome outcome = m_work.shell("exec timeout -k 1 60 \"$pipewright\" " + words);
        QCOMPARE(outcome.code, 2);
        QVERIFY2(outcome.errors.contains("not a regular file") || outcome.errors.contains("not a file"),
                 qPrintable(outcome.errors));
    }

    void whatAnotherProgramWritesIsRead()
    {
        const Outcome outcome = m_work.shell("cat d.json | \"$pipewright\" predict /dev/stdin --json");
        QVERIFY2(outcome.code == 0, qPrintable(outcome.errors));
        QVERIFY(!outcome.json().isEmpty());
    }
};

PIPEWRIGHT_TEST(TestInputs, QCoreApplication)
#include "tst_inputs.moc"
