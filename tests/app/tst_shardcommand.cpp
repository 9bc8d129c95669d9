// SPDX-License-Identifier: GPL-3.0-or-later
// The shard command as a person or a script uses it: the real program in a process of its own.
#include "app/program.h"
#include "testmain.h"

#include <QTest>

using namespace pipewright::test;

class TestShardCommand : public QObject {
    Q_OBJECT

private:
    Workplace m_work;

    static QByteArray chain(const char* extra = "", const char* slow = "\"peak_flops\": 1")
    {
        return QByteArray(R"({
  "pipewright": 1,
  "mlp": {"batch": 6, "widths": [4, 8, 4]},
  "bytes_per_element": 1,
  "cluster": {
    "devices": [
      {"name": "fast", "peak_flops": 2, "efficiency": 1},
      {"name": "slow", )")
               + slow + R"(, "efficiency": 1)" + extra + R"(}
    ],
    "collectives": {
      "all_gather": {"bandwidth": 1}, "reduce_scatter": {"bandwidth": 1}, "all_reduce": {"bandwidth": 1}, "all_to_all": {"bandwidth": 1}
    },
    "grouped_collectives": false
  }
})";
    }

private Q_SLOTS:
    void initTestCase()
    {
        m_work.write("chain.json", chain());
        m_work.write("gpt.json",
                     R"({"pipewright": 1, "model": {"name": "tiny", "layers": 1, "hidden": 16, "heads": 2, "ffn": 32,
            "vocabulary": 32, "sequence": 8, "microbatch_size": 6, "data_type": "fp32"}, "cluster": {"devices": [
            {"name": "fast", "peak_flops": 2e8, "efficiency": 1}, {"name": "slow", "peak_flops": 1e8, "efficiency": 1}],
            "link": {"name": "wire", "latency": "1us", "bandwidth": 1e9}}})");
    }

    void theProgramItsRatiosAndItsRivalsArePrinted()
    {
        const QJsonObject object = m_work.run("shard chain.json --json").json();
        QCOMPARE(object["cost_ns"].toInteger(), 768'000'000'000LL);
        QVERIFY(object["proved"].toBool());
        QCOMPARE(object["gap"].toDouble(), 0.0);
        QVERIFY(qAbs(object["ratios"].toArray()[0].toArray()[0].toDouble() - 2. / 3) < 1e-12);
        QStringList actions;
        for (const QJsonValue step : object["program"].toArray())
            actions << step.toObject()["action"].toString() + ": " + step.toObject()["after"].toString();
        QVERIFY2(actions.contains("y2 = linear(y1, w2): y2 Reduce"), qPrintable(actions.join("\n")));
        QVERIFY(!object["alternatives"].toArray().isEmpty());
        for (const QJsonValue rival : object["alternatives"].toArray())
            QVERIFY(rival.toObject()["cost_ns"].toInteger() >= object["cost_ns"].toInteger());
        bool parallel = false;
        for (const QJsonValue common : object["common"].toArray())
            parallel = parallel
                       || (common.toObject()["name"].toString() == "data parallel, proportional"
                           && common.toObject()["cost_ns"].toInteger() == 832'000'000'000LL);
        QVERIFY(parallel);
        const Outcome plain = m_work.run("shard chain.json");
        QCOMPARE(plain.code, 0);
        QVERIFY(plain.output.contains("proved for these rates and links: none is cheaper"));
    }

    void ratiosCanBeGiven()
    {
        const QJsonObject object = m_work.run("shard chain.json --rules published --ratios 1:1 --json").json();
        QCOMPARE(object["cost_ns"].toInteger(), 1'216'000'000'000LL);
        QCOMPARE(m_work.run("shard chain.json --rules published --json").json()["cost_ns"].toInteger(),
                 832'000'000'000LL);
    }

    void badInputIsExplained_data()
    {
        QTest::addColumn<QByteArray>("file");
        QTest::addColumn<QString>("words");
        QTest::addColumn<int>("code");
        QTest::addColumn<QString>("expected");
        QTest::newRow("rate of zero") << chain("", "\"peak_flops\": 0") << "" << 2
                                      << "bad.json:8: error: device 1 (slow) has a rate of zero";
        QTest::newRow("memory") << chain(", \"memory\": \"20B\"") << "" << 1
                                << "bad.json:8: error: device 1 has 20 B, but";
        QTest::newRow("mistaken unit") << chain("", "\"peak_flops\": 1e-9") << "--ratios 1:1" << 2
                                       << "one step would take";
        QTest::newRow("shares") << chain() << "--ratios 1:2:3" << 2 << "3 shares for 2 devices";
        QTest::newRow("no share") << chain() << "--ratios 1:x" << 2 << "is no share";
        QTest::newRow("nothing") << chain() << "--ratios 0:0" << 2 << "add up to nothing";
        QTest::newRow("rules") << chain() << "--rules some" << 2 << "use one of all, published";
        QTest::newRow("time") << chain() << "--time-limit 0s" << 2 << "at least 1ms";
        QTest::newRow("too slow to run") << chain() << "--run" << 2 << "higher rates";
        QTest::newRow("no graph") << QByteArray("{}") << "" << 2 << "no design and no graph";
    }

    void badInputIsExplained()
    {
        QFETCH(QByteArray, file);
        QFETCH(QString, words);
        QFETCH(int, code);
        QFETCH(QString, expected);
        m_work.write("bad.json", file);
        const Outcome outcome = m_work.run("shard bad.json " + words);
        QCOMPARE(outcome.code, code);
        QVERIFY2(outcome.errors.contains(expected), qPrintable(outcome.errors));
    }

    void designsAreSharedOutWhole()
    {
        QCOMPARE(m_work.run("new gpipe --devices 2 --microbatches 4 --saved 1MiB -o plain.json").code, 0);
        const Outcome plain = m_work.run("shard plain.json");
        QCOMPARE(plain.code, 2);
        QVERIFY2(plain.errors.contains("no model"), qPrintable(plain.errors));
    }

    void itRunsAsOneDeviceWould()
    {
        const Outcome outcome = m_work.run("shard gpt.json --run --steps 2 --json");
        QVERIFY2(outcome.code == 0, qPrintable(outcome.errors));
        const QJsonObject run = outcome.json()["run"].toObject();
        QVERIFY(run["gradient_error"].toDouble() < 1e-3);
        QVERIFY(qAbs(run["loss"].toDouble() - run["reference_loss"].toDouble()) < 1e-3 * run["loss"].toDouble());
        QCOMPARE(run["step_ns"].toArray().size(), 2);
        const QJsonArray ways = run["ways"].toArray();
        QCOMPARE(ways.size(), 9); // the plan, and all that have a name
        QCOMPARE(ways[0].toObject()["name"].toString(), "plan");
        for (const QJsonValue way : ways)
            QVERIFY(way.toObject()["measured_ns"].toInteger() > 0.9 * way.toObject()["predicted_ns"].toInteger());
    }

    void itRunsOnAGpuOnlyWhereThereIsOne()
    {
        const QJsonObject cuda = m_work.run("devices --json").json()["cuda"].toObject();
        const Outcome outcome = m_work.run("shard gpt.json --run --backend cuda --steps 1 --json");
        if (cuda["available"].toBool()) {
            QVERIFY2(outcome.code == 0, qPrintable(outcome.errors));
            QCOMPARE(outcome.json()["run"].toObject()["backend"].toString(), "cuda");
        } else {
            QCOMPARE(outcome.code, 2);
            QVERIFY2(outcome.errors.contains("no GPU can be used: " + cuda["reason"].toString()),
                     qPrintable(outcome.errors));
        }
        QCOMPARE(m_work.run("shard gpt.json --backend cuda").code, 2); // with nothing to run
        QCOMPARE(m_work.run("shard gpt.json --run --backend mpi").code, 2);
        QCOMPARE(m_work.run("shard gpt.json --run --backend cuda --link wire").code, 2);
    }

    void whatIsMeasuredIsStoredWithTheCluster()
    {
        const Outcome outcome = m_work.run("shard gpt.json --calibrate measured.json --json");
        QVERIFY2(outcome.code == 0, qPrintable(outcome.errors));
        QCOMPARE(outcome.json()["rates"].toArray().size(), 2);
        QCOMPARE(outcome.json()["samples"].toArray().size(), 6 * 4 * 3);
        const QJsonObject cluster =
            QJsonDocument::fromJson(m_work.read("measured.json")).object()["cluster"].toObject();
        QCOMPARE(cluster["collectives"].toObject().size(), 6);
        QCOMPARE(m_work.run("shard measured.json --json").json()["devices"].toInt(), 2);
        QCOMPARE(m_work.run("shard gpt.json --calibrate measured.json").code, 2); // it is there already
    }

    void membersOfADesignAreMeasuredTogether()
    {
        const Outcome made = m_work.run("new 1f1b --devices 2 --microbatches 4 --model byte-gpt-small --sequence 8 "
                                        "--cluster host-mixed -o mixed.json --force");
        QVERIFY2(made.code == 0, qPrintable(made.errors));
        const Outcome outcome = m_work.run("shard mixed.json --calibrate own.json --json");
        QVERIFY2(outcome.code == 0, qPrintable(outcome.errors));
        const QJsonArray
            groups = outcome.json()["groups"].toArray(),
            devices =
                QJsonDocument::fromJson(m_work.read("own.json")).object()["cluster"].toObject()["devices"].toArray();
        QCOMPARE(groups.size(), 2);
        QCOMPARE(devices.size(), 2);
        for (int d = 0; d < 2; ++d) {
            const QJsonArray rates = groups[d].toObject()["rates"].toArray();
            const QJsonObject group = devices[d].toObject()["group"].toObject();
            QCOMPARE(rates.size(), 2);
            for (int m = 0; m < 2; ++m)
                QCOMPARE(group["devices"].toArray()[m].toObject()["peak_flops"].toDouble(), rates[m].toDouble());
            QCOMPARE(group["collectives"].toObject().size(), 6);
        }
        // What is predicted follows.
        const double before = m_work.run("predict mixed.json --json").json()["makespan_ns"].toDouble(),
                     after = m_work.run("predict own.json --json").json()["makespan_ns"].toDouble();
        QVERIFY(before > 0 && after > 0 && before != after);
        QCOMPARE(m_work.run("shard mixed.json --calibrate b.json --backend cuda").code, 2);
    }
};

PIPEWRIGHT_TEST(TestShardCommand, QCoreApplication)
#include "tst_shardcommand.moc"
