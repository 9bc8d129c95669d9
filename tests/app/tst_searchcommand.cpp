// SPDX-License-Identifier: GPL-3.0-or-later
// The search command as a person or a script uses it: the real program in a process of its own.
#include "app/program.h"
#include "testmain.h"

#include <QTest>

using namespace pipewright::test;

class TestSearchCommand : public QObject {
    Q_OBJECT

private:
    Workplace m_work;

private Q_SLOTS:
    void initTestCase()
    {
        QCOMPARE(m_work
                     .run("new zb-h1 --devices 4 --microbatches 8 --forward 5ms --input-grad 6ms --weight-grad 4ms "
                          "--saved 1MiB -o base.json")
                     .code,
                 0);
    }

    void aProvedOptimumIsPrintedAndWritten()
    {
        const Outcome outcome =
            m_work.run("search base.json --memory-limit 1x --objective span --threads 1 --rounds 40 --time-limit 5min "
                       "--json -o best.json");
        QCOMPARE(outcome.code, 0);
        const QJsonObject object = outcome.json();
        QCOMPARE(object["best_ns"].toInteger(), 141'000'000LL);
        QCOMPARE(object["bound_ns"].toInteger(), 141'000'000LL);
        QCOMPARE(object["gap"].toDouble(), 0.0);
        QVERIFY(object["proved"].toBool());
        QVERIFY(!object["bound"].toObject()["why"].toString().isEmpty());
        QCOMPARE(object["history"].toArray().last().toObject()["value_ns"].toInteger(), 141'000'000LL);
        const QJsonObject predicted = m_work.run("predict best.json --json").json();
        QCOMPARE(predicted["span_ns"].toInteger(), 141'000'000LL);
        for (const QJsonValue device : predicted["per_device"].toArray())
            QVERIFY(device.toObject()["peak_activations"].toDouble() <= 4);
        const Outcome again = m_work.run("search base.json --memory-limit 1x -o best.json");
        QCOMPARE(again.code, 2);
        QVERIFY(again.errors.contains("exists already"));
    }

    void schedulesAreRankedUnderNoise()
    {
        const QString words = "search base.json --threads 1 --rounds 2 --force -o noisy.json --json ";
        const QJsonValue calm = m_work.run(words + "--spread 10% --by p95").json();
        const QJsonObject predicted = m_work.run("predict noisy.json --spread 10% --json").json();
        QVERIFY(calm["spread"]["p95_ns"].toInteger() > calm["best_ns"].toInteger());
        QCOMPARE(predicted["spread"].toObject(), calm["spread"].toObject());
        QCOMPARE(m_work.run(words + "--by p95").code, 2);
    }

    void anImpossibleLimitIsRefusedWithTheReason()
    {
        const Outcome bytes = m_work.run("search base.json --memory-limit 512KiB -o no.json");
        QCOMPARE(bytes.code, 1);
        QVERIFY2(bytes.errors.contains("it needs at least"), qPrintable(bytes.errors));
        QVERIFY(bytes.errors.contains("base.json:"));
        QCOMPARE(m_work.run("search base.json --memory-limit 0.1x -o no.json").code, 1);
        QVERIFY(m_work.read("no.json").isEmpty());
    }

    void backwardsAndRecomputationAreChosen()
    {
        const QJsonObject object =
            m_work
                .run("search base.json --backward either --recompute auto --memory-limit 1GiB --threads 1 "
                     "--rounds 2 --time-limit 5min --json -o chosen.json")
                .json();
        QCOMPARE(object["backward"].toString(), QString("split"));
        QVERIFY(object["recomputed"].isArray() && object["recomputed"].toArray().isEmpty()); // there is room for all
        QVERIFY(object["trials"].toArray().size() >= 8);
        QCOMPARE(m_work.run("predict chosen.json --json").json()["makespan_ns"].toInteger(),
                 object["best_ns"].toInteger());
    }

    /// The acceptance of searched recomputation: where 1F1B needs twice as much and more, a design is found that trains
    /// here within its prediction, which is within the limit.
    void underHalfTheMemoryOf1F1BADesignIsFoundThatRuns()
    {
        const auto greatest = [](const QJsonValue& devices) {
            double most = 0;
            for (const QJsonValue device : devices.toArray())
                most = std::max(most, device.isObject() ? device["peak_bytes"].toDouble() : device.toDouble());
            return most;
        };
        QCOMPARE(m_work
                     .run("new 1f1b --devices 4 --microbatches 8 --model byte-gpt-small --microbatch-size 8 "
                          "--sequence 128 -o usual.json")
                     .code,
                 0);
        const double half = greatest(m_work.run("predict usual.json --json").json()["per_device"]) / 2;
        const QString limit = QString::number(qint64(half) - 1) + "B";
        const Outcome kept =
            m_work.run("search usual.json --memory-limit " + limit + " --threads 1 --rounds 1 -o slow.json --json");
        QCOMPARE(kept.code, 0); // one microbatch after another
        const Outcome found = m_work.run("search usual.json --memory-limit " + limit
                                         + " --recompute auto --threads 1 --rounds 1 -o half.json --json");
        QVERIFY2(found.code == 0, qPrintable(found.errors));
        QVERIFY(!found.json()["recomputed"].toArray().isEmpty());
        QVERIFY(3 * found.json()["best_ns"].toDouble() < 2 * kept.json()["best_ns"].toDouble());
        const Outcome run = m_work.run("run half.json --backend host --steps 1 -o half.db --json");
        QVERIFY2(run.code == 0, qPrintable(run.errors));
        QCOMPARE(run.json()["gradient_check"].toObject()["bit_equal"].toBool(), true);
        QCOMPARE(run.json()["peak_bytes"], run.json()["predicted_peak_bytes"]);
        QCOMPARE(run.json()["allocated_bytes"], run.json()["predicted_allocated_bytes"]);
        QCOMPARE(greatest(run.json()["peak_bytes"]),
                 greatest(m_work.run("predict half.json --json").json()["per_device"]));
        QVERIFY(greatest(run.json()["peak_bytes"]) < half);
    }

    void badOptionsAreExplained_data()
    {
        QTest::addColumn<QString>("words");
        QTest::newRow("limit") << "--memory-limit 3";
        QTest::newRow("factor") << "--memory-limit 0x";
        QTest::newRow("objective") << "--objective beauty";
        QTest::newRow("time") << "--time-limit 0s";
        QTest::newRow("lock") << "--lock F0";
        QTest::newRow("placement") << "--placement circle";
        QTest::newRow("no model to cut") << "--partition";
        QTest::newRow("front of partitions") << "--pareto --partition --memory-limit 1x:2x";
        QTest::newRow("backward") << "--backward sideways";
        QTest::newRow("recompute") << "--recompute first";
        QTest::newRow("recompute under a factor") << "--recompute 0 --memory-limit 1x";
        QTest::newRow("recompute an unknown stage") << "--recompute 9 --memory-limit 1GiB";
        QTest::newRow("range") << "--pareto --memory-limit 2x:1x";
    }

    void badOptionsAreExplained()
    {
        QFETCH(QString, words);
        const Outcome outcome = m_work.run("search base.json " + words + " -o never.json");
        QVERIFY(outcome.code == 1 || outcome.code == 2);
        QVERIFY(outcome.errors.contains("error:"));
        QVERIFY(m_work.read("never.json").isEmpty());
    }

    void layersAndDevicesAreFoundWithTheOrder()
    {
        QCOMPARE(m_work.run("new zb-h1 --model llama-3-8b --device h200-sxm --devices 4 --microbatches 8 -o model.json")
                     .code,
                 0);
        const double even = m_work.run("predict model.json --json").json()["makespan_ns"].toDouble();
        const Outcome outcome =
            m_work.run("search model.json --partition --placement linear,v --memory-limit 2x --threads 1 --rounds 2 "
                       "--time-limit 5min --json -o cut.json");
        QCOMPARE(outcome.code, 0);
        const QJsonObject object = outcome.json();
        int layers = 0;
        for (const QJsonValue count : object["layers_per_stage"].toArray())
            layers += count.toInt();
        QCOMPARE(layers, 34); // embedding and head among them
        QVERIFY(!object["trials"].toArray().isEmpty());
        QVERIFY(object["best_ns"].toDouble() < even);
        QCOMPARE(m_work.run("check cut.json").code, 0);
        QCOMPARE(m_work.run("predict cut.json --json").json()["makespan_ns"].toDouble(), object["best_ns"].toDouble());
    }

    void layersAndBackwardsAreFoundTogether()
    {
        QCOMPARE(
            m_work.run("new 1f1b --model llama-3-8b --device h200-sxm --devices 4 --microbatches 8 -o whole.json").code,
            0);
        const Outcome outcome = m_work.run("search whole.json --partition --backward either --threads 1 --rounds 1 "
                                           "--time-limit 5min --json -o both.json");
        QVERIFY2(outcome.code == 0, qPrintable(outcome.errors));
        const QJsonObject object = outcome.json();
        QCOMPARE(object["backward"].toString(), QString("split"));
        QCOMPARE(object["trials"].toArray().size(), 2);
        for (const QJsonValue trial : object["trials"].toArray())
            QVERIFY(!trial["cuts"].toArray().isEmpty());
        QCOMPARE(object["layers_per_stage"].toArray().size(), 4);
        QCOMPARE(m_work.run("predict both.json --json").json()["makespan_ns"].toDouble(), object["best_ns"].toDouble());
        const Outcome text = m_work.run("search whole.json --partition --backward either --threads 1 --rounds 1 "
                                        "--time-limit 5min --force -o both.json");
        QVERIFY(text.output.contains("layers per stage") && text.output.contains("split"));
        const Outcome refused = m_work.run("search whole.json --partition --recompute auto -o never.json");
        QVERIFY(refused.errors.contains("search the partition first"));
    }

    void everyPointOfTheFrontIsADesign()
    {
        const Outcome outcome =
            m_work.run("search base.json --pareto --memory-limit 0.1x:2x --points 3 --rounds 2 --threads 1 "
                       "--time-limit 5min --json -o front");
        QCOMPARE(outcome.code, 0);
        const QJsonArray points = outcome.json()["points"].toArray();
        QCOMPARE(points.size(), 3);
        QVERIFY(!points[0].toObject()["reason"].toString().isEmpty());
        for (int i = 1; i < 3; ++i)
            QCOMPARE(m_work.run("check " + points[i].toObject()["design"].toString()).code, 0);
    }
};

PIPEWRIGHT_TEST(TestSearchCommand, QCoreApplication)
#include "tst_searchcommand.moc"
