// SPDX-License-Identifier: GPL-3.0-or-later
// export and import as a person calls them: every format is written, a schedule comes back as it went, and bad
// input is named by file, line and cell with exit code 2.
#include "app/program.h"
#include "testmain.h"

#include <QTest>

using namespace pipewright::test;

class TestExchangeCommands : public QObject {
    Q_OBJECT

private:
    Workplace m_work;

private Q_SLOTS:
    void initTestCase() { QCOMPARE(m_work.run("new zb-h1 --devices 2 --microbatches 4 -o design.json").code, 0); }

    void everyFormatIsWritten_data()
    {
        QTest::addColumn<QString>("format");
        QTest::addColumn<QByteArray>("contains");
        QTest::newRow("pytorch-csv") << QString("pytorch-csv") << QByteArray("\n1F0,1I0,");
        QTest::newRow("pytorch-comms-csv") << QString("pytorch-comms-csv") << QByteArray("\n1UNSHARD,1RECV_F0,1F0");
        QTest::newRow("pytorch-2.14-comms-csv")
            << QString("pytorch-2.14-comms-csv") << QByteArray(",1REDUCE_GRAD,1RESHARD\n");
        QTest::newRow("pytorch-2.9-comms-csv") << QString("pytorch-2.9-comms-csv") << QByteArray(",1W3,1RESHARD\n");
        QTest::newRow("torchtitan") << QString("torchtitan") << QByteArray("SCHEDULE_CSV = \"design.csv\"");
        QTest::newRow("automodel") << QString("automodel") << QByteArray("pp_schedule_csv: \"design.csv\"");
        QTest::newRow("jaxpp") << QString("jaxpp") << QByteArray("(BaseSchedule):");
        QTest::newRow("megatron-layout") << QString("megatron-layout")
                                         << QByteArray("--pipeline-model-parallel-layout \"E");
        QTest::newRow("megatron-args") << QString("megatron-args") << QByteArray("--tensor-model-parallel-size 1\n");
        QTest::newRow("deepspeed") << QString("deepspeed") << QByteArray("\"gradient_accumulation_steps\": ");
        QTest::newRow("chrome") << QString("chrome") << QByteArray("\"traceEvents\":[");
    }

    void everyFormatIsWritten()
    {
        QFETCH(QString, format);
        QFETCH(QByteArray, contains);
        const QString command = "export design.json --to " + format + " -o out." + format;
        const Outcome outcome = m_work.run(command + " --json");
        QVERIFY2(outcome.code == 0, qPrintable(outcome.errors));
        QCOMPARE(outcome.json()["format"].toString(), format);
        QVERIFY2(m_work.read("out." + format).contains(contains), m_work.read("out." + format).left(400).constData());
        QCOMPARE(m_work.run(command).code, 2); // the file exists
        QCOMPARE(m_work.run(command + " --force").code, 0);
    }

    void aScheduleComesBackAsItWent()
    {
        for (const QString format :
             {"pytorch-csv", "pytorch-comms-csv", "pytorch-2.14-comms-csv", "pytorch-2.9-comms-csv"}) {
            QCOMPARE(m_work.run("export design.json --to " + format + " -o a.csv --force").code, 0);
            const Outcome imported = m_work.run("import a.csv -o back.json --force --json");
            QVERIFY2(imported.code == 0, qPrintable(imported.errors));
            QCOMPARE(imported.json()["blocks"].toInt(), 24);
            QCOMPARE(m_work.run("check back.json").code, 0);
            QCOMPARE(m_work.run("export back.json --to " + format + " -o b.csv --force").code, 0);
            QCOMPARE(m_work.read("b.csv"), m_work.read("a.csv"));
        }
    }

    /// Interleaved 1F1B on 8 ranks as PyTorch lowers it: receives that are posted early hold up the sends behind them.
    void theOrderOfAnImportedFileDecidesHowLongTheStepTakes()
    {
        for (const char* form : {"comms", "only"}) {
            QFile file(QString(PIPEWRIGHT_SOURCE_DIR "/tests/core/exchange/pytorch/interleaved-8x16.%1.csv").arg(form));
            QVERIFY(file.open(QIODevice::ReadOnly));
            m_work.write(QString(form) + ".csv", file.readAll());
        }
        struct Case {
            QString words;
            qint64 milliseconds;
        };
        for (const Case& each : {Case{"comms.csv", 174},
                                 {"comms.csv --transfers own", 117},
                                 {"only.csv", 117},
                                 {"only.csv --transfers pytorch", 174}}) {
            const Outcome imported = m_work.run("import " + each.words + " -o imported.json --force");
            QVERIFY2(imported.code == 0, qPrintable(imported.errors));
            QVERIFY2(
                imported.errors.contains("the step takes 174 ms; with this program's own order of transfers 117 ms"),
                qPrintable(imported.errors));
            const Outcome predicted = m_work.run("predict imported.json --json");
            QCOMPARE(predicted.json()["makespan_ns"].toInteger(), each.milliseconds * 1'000'000);
            QCOMPARE(predicted.json()["communication"].toString(), QString("one-stream"));
            QCOMPARE(m_work.run("check imported.json").code, 0);
        }
        QCOMPARE(m_work.run("import only.csv --transfers file -o x.json").code, 2);
        QCOMPARE(m_work.run("import only.csv --transfers torch -o x.json").code, 2);
        // What it runs otherwise is told before it runs.
        const Outcome host = m_work.run("check imported.json --for host");
        QVERIFY2(host.errors.contains("costs.communication") || host.output.contains("costs.communication"),
                 qPrintable(host.errors + host.output));
    }

    void anOrderThatHangsOnOneStreamIsFoundWithItsCircle()
    {
        m_work.write("hangs.csv", "0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
                                  "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n");
        const Outcome imported = m_work.run("import hangs.csv -o hangs.json");
        QVERIFY2(imported.code == 0 && imported.errors.contains("warning: ")
                     && imported.errors.contains("on one stream of each rank: the communication waits in a circle"),
                 qPrintable(imported.errors));
        const Outcome found = m_work.run("check hangs.json");
        QCOMPARE(found.code, 1);
        QVERIFY2((found.errors + found.output).contains("F0.1 from device 0 to device 1 waits for I1.0 from device 1"),
                 qPrintable(found.errors + found.output));
    }

    void badInputIsNamedByFileLineAndCell()
    {
        m_work.write("bad.csv", "0F0,0B0\n1F0,1Q0\n");
        const Outcome bad = m_work.run("import bad.csv -o x.json");
        QCOMPARE(bad.code, 2);
        QVERIFY2(bad.errors.contains("bad.csv:2: error: cell 2, \"1Q0\""), qPrintable(bad.errors));
        m_work.write("old.csv", "0F0,0BW0\n1F0,1B0,1W0\n");
        QCOMPARE(m_work.run("import old.csv -o x.json").code, 2);
        QCOMPARE(m_work.run("import old.csv --legacy-letters -o x.json").code, 0);
        QCOMPARE(m_work.run("import design.json -o y.json").code, 2);
        QCOMPARE(m_work.run("import nothing.csv -o y.json").code, 2);
        QCOMPARE(m_work.run("export design.json --to csv -o y").code, 2);
    }

    void anInvalidDesignIsAFinding()
    {
        QByteArray design = m_work.read("design.json");
        design.replace(", \"W1.3\"", "");
        m_work.write("invalid.json", design);
        const Outcome outcome = m_work.run("export invalid.json --to pytorch-csv -o z.csv");
        QCOMPARE(outcome.code, 1);
        QVERIFY2(outcome.errors.contains("W1.3"), qPrintable(outcome.errors));
    }
};

PIPEWRIGHT_TEST(TestExchangeCommands, QCoreApplication)
#include "tst_exchangecommands.moc"
