// SPDX-License-Identifier: GPL-3.0-or-later
// Stages held by groups, as a person uses them: predict and run count and list every member.
#include "app/program.h"
#include "testmain.h"

#include <QTest>

using namespace pipewright::test;

class GroupCommandsTest : public QObject {
    Q_OBJECT

private:
    Workplace m_work;

private Q_SLOTS:
    void predictAndRunListEveryMember_data()
    {
        QTest::addColumn<QString>("family");
        for (const char* family : {"1f1b", "zb-h1", "interleaved-1f1b", "v-half"})
            QTest::newRow(family) << family;
    }
    void predictAndRunListEveryMember()
    {
        QFETCH(QString, family);
        const QString name = family + ".json";
        QCOMPARE(m_work
                     .run("new " + family
                          + " --devices 2 --microbatches 4 --model byte-gpt-small --cluster host-mixed -o " + name)
                     .code,
                 0);
        const QJsonObject predicted = m_work.run("predict " + name + " --json").json();
        QCOMPARE(predicted["devices"].toInt(), 4);
        QCOMPARE(predicted["groups"].toObject()["count"].toInt(), 2);
        QJsonArray groups, peaks;
        for (const QJsonValue device : predicted["per_device"].toArray()) {
            groups.append(device["group"]);
            peaks.append(device["peak_bytes"]);
        }
        QCOMPARE(groups, (QJsonArray{0, 0, 1, 1}));

        const Outcome outcome = m_work.run("run " + name + " --backend host --steps 2 --json -o " + family + ".db");
        QVERIFY2(outcome.code == 0, qPrintable(outcome.errors));
        const QJsonObject run = outcome.json();
        QCOMPARE(run["maths"].toString(), "training");
        QCOMPARE(run["devices"].toInt(), 4);
        QCOMPARE(run["group"].toArray(), groups);
        QCOMPARE(run["peak_bytes"].toArray(), peaks); // allocated, by run; predicted, by predict
        QCOMPARE(run["allocated_bytes"].toArray(), run["predicted_allocated_bytes"].toArray());
        const QJsonObject check = run["gradient_check"].toObject();
        QCOMPARE(check["reference"].toString(), "sequential");
        QVERIFY(check["max_relative_error"].toDouble() <= check["within"].toDouble());

        // The trace is the groups', and says nothing of GPUs.
        const Outcome explained = m_work.run("explain " + family + ".db");
        QVERIFY2(explained.code == 0, qPrintable(explained.errors));
        QVERIFY2(!explained.output.contains("GPU"), qPrintable(explained.output));
    }

    void theVirtualClockTakesWhatIsPredicted()
    {
        QCOMPARE(
            m_work.run("new zb-h1 --devices 2 --microbatches 6 --model byte-gpt-small --cluster host-mixed -o v.json")
                .code,
            0);
        const QJsonObject predicted = m_work.run("predict v.json --json").json();
        const Outcome outcome =
            m_work.run("run v.json --backend host --maths timed --clock virtual --steps 1 --json -o v.db");
        QVERIFY2(outcome.code == 0, qPrintable(outcome.errors));
        QCOMPARE(outcome.json()["step_ns"].toArray().first().toInteger(), predicted["makespan_ns"].toInteger());
    }

    void aMemberThatDiesIsNamedByThoseWhoWait()
    {
        QCOMPARE(
            m_work.run("new 1f1b --devices 2 --microbatches 4 --model byte-gpt-small --cluster host-mixed -o f.json")
                .code,
            0);
        const Outcome died = m_work.run("run f.json --backend host --steps 1 --inject dies:3:0:2 -o f.db");
        QVERIFY(died.code != 0);
        QVERIFY2(died.errors.contains("device 3: error: stopped at instruction 2"), qPrintable(died.errors));
        const Outcome none = m_work.run("run f.json --backend host --steps 1 --inject dies:4:0:2 -o g.db");
        QCOMPARE(none.code, 2);
        QVERIFY2(none.errors.contains("they count from 0 to 3"), qPrintable(none.errors));
    }

    void whatGroupsDoNotTrainIsSaidByCheckAndRun()
    {
        // The head of byte-gpt is its embedding.
        QCOMPARE(
            m_work.run("new 1f1b --devices 2 --microbatches 4 --model byte-gpt --cluster host-mixed -o tied.json").code,
            0);
        const Outcome outcome = m_work.run("run tied.json --backend host --maths training --steps 1 -o tied.db");
        QVERIFY(outcome.code != 0);
        QVERIFY2(outcome.errors.contains("\"tied_head\": false"), qPrintable(outcome.errors));
        const Outcome timed = m_work.run("run tied.json --backend host --steps 1 -o timed.db --json");
        QVERIFY2(timed.code == 0, qPrintable(timed.errors));
        QCOMPARE(timed.json()["maths"].toString(), "timed");
    }
};

PIPEWRIGHT_TEST(GroupCommandsTest, QCoreApplication)
#include "tst_groupcommands.moc"
