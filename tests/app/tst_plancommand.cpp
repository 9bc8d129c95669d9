// SPDX-License-Identifier: GPL-3.0-or-later
// `plan`: the list in JSON and on the terminal, a design per plan, pins, reasons.
#include "app/program.h"
#include "testmain.h"

#include <QTest>

using namespace pipewright::test;

class TestPlanCommand : public QObject {
    Q_OBJECT

private:
    Workplace m_work;
    const QString m_command =
        "plan --model llama-3-8b --cluster h100-nodes --devices 8 --batch 16 --families 1f1b,zb-v "
        "--pin microbatch_size=1 --top 3 --progress none";

private Q_SLOTS:
    void everyPlanIsADesignThatPredictsTheSame()
    {
        const QJsonObject result = m_work.run(m_command + " --json -o plans").json();
        QVERIFY(result["complete"].toBool());
        QVERIFY(result["considered"].toInteger() > result["predicted"].toInteger());
        const QJsonArray plans = result["plans"].toArray();
        QVERIFY(plans.size() >= 3);
        qint64 last = 0;
        for (const QJsonValue value : plans) {
            const QJsonObject plan = value.toObject();
            QVERIFY(plan["step_ns"].toInteger() >= last);
            last = plan["step_ns"].toInteger();
            QCOMPARE(plan["tensor"].toInt() * plan["context"].toInt() * plan["pipeline"].toInt() * plan["data"].toInt(),
                     8);
            QCOMPARE(plan["microbatches"].toInt() * plan["microbatch_size"].toInt() * plan["data"].toInt(), 16);
            const QJsonObject predicted = m_work.run("predict " + plan["design"].toString() + " --json").json();
            QCOMPARE(predicted["makespan_ns"].toInteger(), last);
            qint64 peak = 0;
            for (const QJsonValue device : predicted["per_device"].toArray())
                peak = std::max(peak, device.toObject()["peak_bytes"].toInteger());
            QCOMPARE(plan["peak_bytes"].toInteger(), peak);
            qint64 sum = 0;
            for (const QJsonValue bytes : plan["peak_by_kind"].toObject())
                sum += bytes.toInteger();
            QCOMPARE(sum, peak);
        }
        for (const QJsonValue index : result["frontier"].toArray())
            QVERIFY(index.toInt() < plans.size());
        // Designs are not replaced in silence.
        QCOMPARE(m_work.run(m_command + " -o plans").code, 2);
        QCOMPARE(m_work.run(m_command + " -o plans --force").code, 0);
    }

    void theTextSaysWhatIsBestAndWhatItIsAbout()
    {
        const Outcome outcome = m_work.run(m_command + " --spread 0.05");
        QCOMPARE(outcome.code, 0);
        for (const char* part : {"tok/s/device", "95 % within", "degrees", "* on the frontier", "% of the step is work",
                                 "plans of 8 devices and 16 sequences", "complete: by these costs"})
            QVERIFY2(outcome.output.contains(part), qPrintable(QString(part) + "\nin\n" + outcome.output));
    }

    void aDimensionCanBeAskedAbout()
    {
        const Outcome some = m_work.run(m_command + " --why tensor=8");
        QVERIFY2(some.output.contains("the best with tensor=8:") && some.output.contains("over the best of all"),
                 qPrintable(some.output));
        const Outcome none =
            m_work.run("plan --model llama-3-8b --cluster h100-nodes --devices 64 --batch 64 "
                       "--families 1f1b --pin microbatch_size=1 --top 1 --progress none --why tensor=64");
        QVERIFY2(none.output.contains("no plan has tensor=64:")
                     && none.output.contains("32 heads cannot be shared out over 64 members"),
                 qPrintable(none.output));
    }

    void expertsFoldOverOtherDevicesWhereThatIsPinned()
    {
        const QString command =
            "plan --model mixtral-8x7b --cluster h100-nodes --devices 16 --batch 16 --families 1f1b "
            "--top 2 --progress none --pin microbatch_size=1,tensor=4,expert=8,data=2,";
        const QJsonArray folded = m_work.run(command + "folded_experts=yes --json").json()["plans"].toArray();
        QVERIFY(!folded.isEmpty());
        for (const QJsonValue plan : folded)
            QVERIFY(plan["folded_experts"].toBool() && plan["expert"].toInt() == 8);
        QVERIFY(m_work.run(command + "folded_experts=yes")
                    .output.contains("tensor 4, expert 8 folded, pipeline 2, data 2"));
        QVERIFY(m_work.run(command + "folded_experts=no --json").json()["plans"].toArray().isEmpty());
        const Outcome dense = m_work.run(m_command + " --node-dispatch");
        QCOMPARE(dense.code, 2);
        QVERIFY2(dense.errors.contains("the model has no experts"), qPrintable(dense.errors));
        QCOMPARE(m_work.run(command + "folded_experts=8").code, 2);
        const auto step = [&](const char* spread) {
            const QString asked = command + "folded_experts=yes --json --expert-spread " + spread;
            return m_work.run(asked).json()["plans"][0]["step_ns"].toInteger();
        };
        QVERIFY(step("1") > 0 && step("1.5") > step("1"));
        QCOMPARE(m_work.run(command + "folded_experts=yes --expert-spread 0.5").code, 2);
        QVERIFY(m_work.run(m_command + " --expert-spread 2").errors.contains("the model has no experts"));
    }

    void aChangeIsAnsweredByTheDifferenceOfTwoLists()
    {
        const QJsonObject both = m_work.run(m_command + " --json --what-if devices=4").json();
        const QJsonObject answer = both["what_if"].toObject();
        QCOMPARE(answer["changes"].toString(), "devices=4");
        const QJsonObject four =
            m_work.run(QString(m_command).replace("--devices 8", "--devices 4") + " --json").json();
        QCOMPARE(answer["list"].toObject()["plans"], four["plans"]);
        QCOMPARE(answer["step_ns"].toObject()["before"], both["plans"][0]["step_ns"]);
        QCOMPARE(answer["step_ns"].toObject()["after"], four["plans"][0]["step_ns"]);
        QCOMPARE(answer["moves"][0]["after"]["place"].toInt(-1), 0);
        const Outcome slow = m_work.run(m_command + " --what-if slow_node=10%,cluster=h200-nodes");
        for (const char* part :
             {"what if slow_node=10%,cluster=h200-nodes:", "the best step: ", "tokens a second of all devices: "})
            QVERIFY2(slow.output.contains(part), qPrintable(slow.output));
        for (const char* wrong : {"devices=none", "devices", "devices=", "heads=3", "slow_node=2", "slow_node=100%",
                                  "cluster=nowhere", "cluster=h100-node,slow_node=10%"})
            QCOMPARE(m_work.run(m_command + " --what-if " + wrong).code, 2);
    }

    void theFirstIsRefinedWhenAsked()
    {
        const QString command = QString(m_command).replace("size=1", "size=1,pipeline=4,recompute=full");
        const QJsonObject result = m_work.run(command + " --refine 2s --json -o refined").json();
        const QJsonObject refined = result["refined"].toObject();
        QCOMPARE(refined["before_ns"], result["plans"][0]["step_ns"]);
        QVERIFY(refined["step_ns"].toInteger() < refined["before_ns"].toInteger());
        QVERIFY(!refined["proved"].toBool(true) && !refined["changes"].toArray().isEmpty());
        QCOMPARE(m_work.run("predict " + refined["design"].toString() + " --json").json()["makespan_ns"],
                 refined["step_ns"]);
        QVERIFY(m_work.run(command + " --refine 1s").output.contains("1, refined, not proved: "));
        QCOMPARE(m_work.run(command + " --refine soon").code, 2);
    }

    void anInterruptedPlanGoesOn()
    {
        const QString command = QString(m_command).remove(" --families 1f1b,zb-v") + " --json ";
        const QJsonObject whole = m_work.run(command).json();
        QVERIFY(whole["complete"].toBool() && whole["frontier_complete"].toBool());
        const auto withoutDesigns = [](const QJsonObject& result) {
            QJsonArray plans;
            for (const QJsonValue value : result["plans"].toArray()) {
                QJsonObject plan = value.toObject();
                plan.remove("design");
                plans.append(plan);
            }
            return plans;
        };
        // Killed as soon as there is a state; then out of time at once; then to the end.
        const std::unique_ptr<QProcess> killed = m_work.start(command + "-o killed");
        QVERIFY(QTest::qWaitFor([&] { return QFile::exists(m_work.path("killed/plan-state.json")); }, 60'000));
        killed->kill();
        killed->waitForFinished();
        const Outcome late = m_work.run(command + "-o killed --resume --time-limit 1ms");
        if (late.code == 0) // some plans were predicted before
            QVERIFY(!late.json()["complete"].toBool());
        QVERIFY(QFile::exists(m_work.path("killed/plan-state.json")));
        QVERIFY(m_work.run(command + "-o killed").errors.contains("--resume goes on"));
        QVERIFY(m_work.run(QString(command).replace("--batch 16", "--batch 32") + "-o killed --resume")
                    .errors.contains("batch was 16, and is 32"));
        const QJsonObject resumed = m_work.run(command + "-o killed --resume").json();
        QVERIFY(resumed["complete"].toBool());
        QCOMPARE(withoutDesigns(resumed), withoutDesigns(whole));
        QCOMPARE(resumed["frontier"], whole["frontier"]);
        QVERIFY(!QFile::exists(m_work.path("killed/plan-state.json")));
        for (const QJsonValue plan : resumed["plans"].toArray())
            QVERIFY(QFile::exists(m_work.path(plan["design"].toString())));
        // There is nothing to go on with any more, or not yet, or not here.
        QVERIFY(m_work.run(command + "-o killed --resume").errors.contains("holds no plan that was interrupted"));
        QVERIFY(m_work.run(command + "--resume").errors.contains("name it with -o"));
        const Outcome anew = m_work.run(command + "-o anew --resume");
        QVERIFY(anew.errors.contains("begins anew"));
        QCOMPARE(withoutDesigns(anew.json()), withoutDesigns(whole));
    }

    void noPlanIsAFinding()
    {
        const Outcome outcome = m_work.run(m_command + " --memory-limit 1MiB");
        QCOMPARE(outcome.code, 1);
        QVERIFY2(outcome.errors.contains("no plan is possible, mostly: memory"), qPrintable(outcome.errors));
        QCOMPARE(m_work.run("plan --model no-model --cluster h100-nodes --devices 8 --batch 8").code, 2);
        QCOMPARE(m_work.run("plan --model llama-3-8b --cluster nowhere --devices 8 --batch 8").code, 2);
        QCOMPARE(m_work.run("plan --model llama-3-8b --cluster h100-nodes --devices 0 --batch 8").code, 2);
        QCOMPARE(m_work.run(m_command + " --pin heads=3").code, 2);
    }
};

PIPEWRIGHT_TEST(TestPlanCommand, QCoreApplication)
#include "tst_plancommand.moc"
