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
        QTest::addColumn<QString>("options");
        for (const char* family : {"1f1b", "zb-h1", "interleaved-1f1b", "v-half"})
            QTest::newRow(family) << family << "";
        QTest::newRow("with recomputation") << "1f1b"
                                            << " --recompute block";
    }
    void predictAndRunListEveryMember()
    {
        QFETCH(QString, family);
        QFETCH(QString, options);
        const QString name = family + options.right(4) + ".json";
        QCOMPARE(m_work
                     .run("new " + family + options
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

        const Outcome outcome = m_work.run("run " + name + " --backend host --steps 2 --json -o " + name + ".db");
        QVERIFY2(outcome.code == 0, qPrintable(outcome.errors));
        const QJsonObject run = outcome.json();
        QCOMPARE(run["maths"].toString(), "training");
        QCOMPARE(run["devices"].toInt(), 4);
        QCOMPARE(run["group"].toArray(), groups);
        QCOMPARE(run["peak_bytes"].toArray(), peaks); // allocated, by run; predicted, by predict
        QCOMPARE(run["allocated_bytes"].toArray(), run["predicted_allocated_bytes"].toArray());
        const QJsonObject checked = m_work.run("check " + name + " --for host --json").json();
        for (const char* key : {"predicted_allocated_bytes", "kept_bytes"}) {
            QCOMPARE(predicted[key], run[key]);
            QCOMPARE(checked[key], run[key]);
        }
        const QJsonObject check = run["gradient_check"].toObject();
        QCOMPARE(check["reference"].toString(), "sequential");
        QVERIFY(check["max_relative_error"].toDouble() <= check["within"].toDouble());

        // A group's peak is that of its fullest member, as predicted and as measured.
        const QJsonObject compared = m_work.run("compare " + name + " " + name + ".db --json").json();
        QCOMPARE(compared["per_device"].toArray().size(), 2);
        for (const QJsonValue device : compared["per_device"].toArray()) {
            const QJsonObject peak = device["peak_bytes"].toObject();
            QVERIFY(peak["measured"].toInteger() > 0);
            QCOMPARE(peak["predicted"].toInteger(), peak["measured"].toInteger());
        }

        // The trace is the groups', and says nothing of GPUs.
        const Outcome explained = m_work.run("explain " + name + ".db");
        QVERIFY2(explained.code == 0, qPrintable(explained.errors));
        QVERIFY2(!explained.output.contains("GPU") && explained.output.contains("\nCPU 1 "),
                 qPrintable(explained.output));
    }

    void aCollectiveThatIsNotThereIsAFinding_data()
    {
        QTest::addColumn<QString>("command");
        for (const char* command : {"predict bad.json", "run bad.json --backend host --steps 1 -o bad.db"})
            QTest::newRow(command) << command;
    }
    void aCollectiveThatIsNotThereIsAFinding()
    {
        QFETCH(QString, command);
        QCOMPARE(m_work
                     .run("new 1f1b --devices 2 --microbatches 4 --model byte-gpt-small --cluster host-mixed "
                          "--plan data-parallel -o good.json --force")
                     .code,
                 0);
        QByteArray design = m_work.read("good.json");
        QVERIFY(design.contains("\"schedule\": {\n"));
        design.replace("\"schedule\": {\n",
                       "\"schedule\": {\n\"transfer_order\": [{\"transfer\": \"B1.1 collective 99\", "
                       "\"before\": \"B1.1 to 0\"}],\n");
        const qsizetype line = design.left(design.indexOf("collective 99")).count('\n') + 1;
        m_work.write("bad.json", design);
        const Outcome outcome = m_work.run(command);
        QCOMPARE(outcome.code, 1);
        QVERIFY2(outcome.errors.contains(QString("bad.json:%1").arg(line)) && outcome.errors.contains("collective"),
                 qPrintable(outcome.errors));
        QVERIFY(!QFile::exists(m_work.path("bad.db")));
    }

    void everyPlanIsPredictedAndRunsByItsName_data()
    {
        QTest::addColumn<QString>("plan");
        for (const char* plan : {"hap", "even", "proportional", "data-parallel", "data-parallel-even", "deepspeed",
                                 "tag", "megatron", "megatron-sequence"})
            QTest::newRow(plan) << plan;
    }
    void everyPlanIsPredictedAndRunsByItsName()
    {
        QFETCH(QString, plan);
        const QString name = "plan-" + plan + ".json";
        const Outcome made =
            m_work.run("new 1f1b --devices 2 --microbatches 4 --model byte-gpt-small --microbatch-size 4 "
                       "--cluster host-mixed --sharding "
                       + plan + " -o " + name);
        QVERIFY2(made.code == 0, qPrintable(made.errors));
        const QJsonObject predicted = m_work.run("predict " + name + " --json").json();
        QCOMPARE(predicted["plans"].toArray().size(), 2);
        for (const QJsonValue stage : predicted["plans"].toArray()) {
            QCOMPARE(stage.toObject()["strategy"].toString(), plan);
            QVERIFY(stage.toObject()["stated"].toBool());
            QCOMPARE(stage.toObject()["ratios"].toArray().size(), 2);
        }
        const Outcome outcome = m_work.run("run " + name + " --backend host --steps 1 --json -o plan-" + plan + ".db");
        QVERIFY2(outcome.code == 0, qPrintable(outcome.errors));
        const QJsonObject run = outcome.json();
        QCOMPARE(run["maths"].toString(), "training");
        const QJsonObject check = run["gradient_check"].toObject();
        QVERIFY(check["max_relative_error"].toDouble() <= check["within"].toDouble());
        QJsonArray peaks;
        for (const QJsonValue device : predicted["per_device"].toArray())
            peaks.append(device["peak_bytes"]);
        QCOMPARE(run["peak_bytes"].toArray(), peaks);
        QCOMPARE(run["allocated_bytes"].toArray(), run["predicted_allocated_bytes"].toArray());
    }

    void aPlanIsWrittenIntoADesign()
    {
        QCOMPARE(
            m_work.run("new 1f1b --devices 2 --microbatches 4 --model byte-gpt-small --cluster host-mixed -o free.json")
                .code,
            0);
        QVERIFY(!m_work.run("predict free.json --json").json()["plans"].toArray()[0].toObject()["stated"].toBool());
        const QJsonObject written =
            m_work.run("shard free.json --plan even --ratios 3:1 --stage 1 -o one.json --json").json();
        QCOMPARE(written["plans"].toArray().size(), 1);
        const QJsonArray plans = m_work.run("predict one.json --json").json()["plans"].toArray();
        QVERIFY(!plans[0].toObject()["stated"].toBool());
        QCOMPARE(plans[1].toObject()["ratios"].toArray(), (QJsonArray{0.75, 0.25}));
        // What is stated is what is looked at, and another plan can be tried without writing it.
        QCOMPARE(m_work.run("shard one.json --stage 1 --json").json()["ratios"].toArray()[0].toArray(),
                 (QJsonArray{0.75, 0.25}));
        QCOMPARE(m_work.run("predict one.json --sharding megatron --json")
                     .json()["plans"]
                     .toArray()[1]
                     .toObject()["strategy"],
                 QJsonValue("megatron"));
        QCOMPARE(m_work.run("run one.json --backend host --plan data-parallel-even --steps 1 -o one.db").code, 0);

        const auto refused = [&](const char* command, const char* said) {
            const Outcome outcome = m_work.run(command);
            QVERIFY2(outcome.code == 2 && outcome.errors.contains(said), qPrintable(outcome.errors));
        };
        refused("predict one.json --plan magetron", "use one of hap, even");
        refused("new 1f1b --devices 2 --microbatches 2 --plan hap -o none.json", "--sharding: error: no stage is held");
        refused("shard free.json --plan even -o free.json", "--force");
        refused("shard free.json --plan even --stage 9 -o x.json", "there is no stage 9");
        refused("shard free.json --ratios 1:1:1 -o x.json", "3 shares for 2 devices");
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
        QCOMPARE(m_work
                     .run("new 1f1b --devices 2 --microbatches 4 --model byte-gpt --cluster host-mixed --recompute "
                          "selective -o some.json")
                     .code,
                 0);
        const Outcome outcome = m_work.run("run some.json --backend host --maths training --steps 1 -o some.db");
        QVERIFY(outcome.code != 0);
        QVERIFY2(outcome.errors.contains("--recompute block"), qPrintable(outcome.errors));
        const QString family = "new cdp-v2 --layout workers --devices 2 --microbatches 4 --cluster host-mixed -o %1";
        QCOMPARE(m_work.run(family.arg("late.json")).code, 0);
        for (const auto& [design, reason] : {std::pair("some.json", "there is nothing to recompute selectively"),
                                             std::pair("late.json", "groups do not hand weights from device")}) {
            const Outcome run = m_work.run(QString("run %1 --backend host --steps 1 -o timed.db --json").arg(design));
            QVERIFY2(run.code != 0 && run.errors.contains(reason), qPrintable(run.errors));
            QVERIFY2(run.errors.contains("or --maths timed"), qPrintable(run.errors));
            QVERIFY(m_work.read("timed.db").isEmpty());
            const Outcome check = m_work.run(QString("check %1 --for host").arg(design));
            QVERIFY2(check.code == 1 && check.errors.contains(reason), qPrintable(check.errors));
            const Outcome timed = m_work.run(
                QString("run %1 --backend host --maths timed --clock virtual --steps 1 -o %1.db --json").arg(design));
            QVERIFY2(timed.code == 0, qPrintable(timed.errors));
            QCOMPARE(timed.json()["maths"].toString(), "timed");
        }
    }

    /// 4 tensor x 2 context x 4 data parallel devices have four of 128 experts each.
    void expertsFoldOverAllDevicesOfAStage()
    {
        const QString words = "interleaved-1f1b --devices 2 --chunks 2 --microbatches 4 --model qwen3-235b-a22b "
                              "--scale layers=4 --cluster h100-nodes --tensor-parallel 4 --sequence-parallel "
                              "--context-parallel 2 --expert-parallel 32 --data-parallel 4";
        const Outcome apart = m_work.run("predict " + words);
        QCOMPARE(apart.code, 2);
        QVERIFY2(apart.errors.contains("4 data-parallel copies cannot share out experts by 32")
                     && apart.errors.contains("--folded-experts"),
                 qPrintable(apart.errors));
        const QString folded = words + " --folded-experts";
        const QJsonObject parallel = m_work.predicted(folded)["parallel"].toObject();
        QCOMPARE(parallel["folded_experts"].toBool(), true);
        QCOMPARE(parallel["expert"].toInt(), 32);
        QCOMPARE(parallel["devices_in_all"].toInt(), 64);
        QVERIFY(m_work.run("predict " + folded).output.contains("expert 32 folded over tensor and context"));
        // Without --data-parallel as many copies as it takes.
        QCOMPARE(m_work.predicted(QString(folded).replace(" --data-parallel 4", "")), m_work.predicted(folded));
        QCOMPARE(m_work.run("new " + folded + " -o folded.json --force").code, 0);
        const Outcome run = m_work.run("run folded.json --backend host --steps 1 -o folded.db");
        QCOMPARE(run.code, 2);
        QVERIFY2(run.errors.contains("expert 32 folded over tensor and context"), qPrintable(run.errors));
        const Outcome unused = m_work.run("predict 1f1b --devices 2 --microbatches 4 --model mixtral-8x7b "
                                          "--cluster h100-nodes --expert-parallel 8 --folded-experts");
        QCOMPARE(unused.code, 2);
        QVERIFY2(unused.errors.contains("--folded-experts") && unused.errors.contains("changes nothing"),
                 qPrintable(unused.errors));
    }
};

PIPEWRIGHT_TEST(GroupCommandsTest, QCoreApplication)
#include "tst_groupcommands.moc"
