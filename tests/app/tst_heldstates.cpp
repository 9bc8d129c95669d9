// SPDX-License-Identifier: GPL-3.0-or-later
// What devices hold besides activations, as `predict` says it: what a framework keeps, and what copies share out.
#include "app/program.h"
#include "testmain.h"

#include <QTest>

#include <cmath>

using namespace pipewright::test;

class TestHeldStates : public QObject {
    Q_OBJECT

private:
    Workplace m_work;

private Q_SLOTS:
    /// Its name stands for properties, which the design states, and no backend allocates them.
    void whatAFrameworkKeepsIsPredictedAndNotRun()
    {
        const QString model = "1f1b --devices 2 --microbatches 4 --model byte-gpt";
        QCOMPARE(m_work.run("new " + model + " -o plain.json --force").code, 0);
        QCOMPARE(m_work.run("new " + model + " --framework megatron -o framework.json --force").code, 0);
        const QJsonObject plain = m_work.run("predict plain.json --json").json(),
                          kept = m_work.run("predict framework.json --json").json();
        QVERIFY(!plain.contains("framework"));
        QCOMPARE(kept["framework"].toObject()["name"].toString(), QString("megatron"));
        QVERIFY(kept["framework"].toObject()["keeps"].toArray().contains("a vocabulary padded to multiples of 128"));
        for (const QJsonValue of : kept["per_device"].toArray()) {
            const QJsonObject device = of.toObject(), kinds = device["peak_by_kind"].toObject();
            qint64 sum = 0;
            for (const QJsonValue bytes : kinds)
                sum += bytes.toInteger();
            QCOMPARE(sum, device["peak_bytes"].toInteger());
            QVERIFY(kinds["framework"].toInteger() > 64 << 20);
            QCOMPARE(device["reserved_bytes"].toInteger(), qRound64(double(sum) / 0.94));
        }
        QVERIFY(!plain["per_device"].toArray()[0].toObject().contains("reserved_bytes"));
        // The option changes a file's design; the file states each property.
        QCOMPARE(m_work.run("predict plain.json --framework megatron --json").json()["per_device"], kept["per_device"]);
        QCOMPARE(m_work.run("predict framework.json --framework none --json").json()["per_device"],
                 plain["per_device"]);
        const QString text = QString::fromUtf8(m_work.read("framework.json"));
        QVERIFY2(text.contains("\"gradient_placeholders\": true"), qPrintable(text));
        QVERIFY(m_work.run("predict framework.json").output.contains("memory as megatron keeps it: "));
        for (const char* how : {"", " --maths timed", " --maths training"}) {
            const Outcome run =
                m_work.run("run framework.json --backend host --steps 1 -o framework.db" + QString(how));
            QCOMPARE(run.code, 2);
            QCOMPARE(run.errors.count("no run here allocates it"), 1);
        }
        const Outcome run =
            m_work.run("run framework.json --backend host --steps 1 --scale framework=none -o framework.db --json");
        QVERIFY2(run.code == 0, qPrintable(run.errors));
        QCOMPARE(run.json()["peak_bytes"], run.json()["predicted_peak_bytes"]);
    }

    /// All its layers of experts are parts of one block, before the model is made smaller.
    void aPublishedMixtureIsPredictedOnOneDevice()
    {
        const QJsonObject whole = m_work
                                      .run("predict 1f1b --devices 1 --microbatches 4 --model deepseek-v2 "
                                           "--expert-parallel 8 --data-parallel 8 --zero 1 --framework megatron "
                                           "--scale layers=4 --json")
                                      .json();
        QCOMPARE(whole["blocks"].toInt(), 8);
        const double gibibytes = whole["per_device"].toArray()[0].toObject()["peak_bytes"].toDouble() / double(1 << 30);
        QVERIFY(std::abs(gibibytes / 45.63 - 1) < 0.01); // Megatron-LM on B200, measured
    }

    /// What is gathered has a kind of its own; the exchanges are counted, and what does not fit is refused.
    void statesAreSharedOutUpToTheLevel()
    {
        const QString model = "predict interleaved-1f1b --devices 2 --chunks 3 --microbatches 4 --model llama-3-8b "
                              "--cluster h100-nodes --data-parallel 4 --json";
        const auto firstPeak = [](const QJsonObject& of) { return of["per_device"].toArray()[0].toObject(); };
        const QJsonObject whole = m_work.run(model).json();
        QVERIFY(!whole.contains("zero"));
        qint64 last = firstPeak(whole)["peak_bytes"].toInteger();
        for (const QString level : {" --zero 1", " --zero 2 --reduce each",
                                    " --zero 3 --reduce each --reshard always "
                                    "--prefetch 0"}) {
            const QJsonObject shared = m_work.run(model + level).json();
            const qint64 peak = firstPeak(shared)["peak_bytes"].toInteger();
            QVERIFY2(peak < last, qPrintable(level));
            last = peak;
            QCOMPARE(shared["zero"].toObject()["level"].toInt(), level.mid(8, 1).toInt());
            QCOMPARE(firstPeak(shared)["peak_by_kind"].toObject()["gathered"].toInteger() > 0, level.contains("3"));
            QCOMPARE(shared["zero"].toObject()["gradient_sums"].toInt(), level.contains("each") ? 6 * 4 : 6);
        }
        const Outcome unused = m_work.run(model + " --zero 2 --reshard always");
        QCOMPARE(unused.code, 2);
        QVERIFY2(unused.errors.contains("--zero 3"), qPrintable(unused.errors));
        QCOMPARE(m_work.run("new" + model.mid(7, model.size() - 14) + " --zero 3 -o three.json").code, 0);
        // A search counts the gathers of every order that it takes.
        const Outcome search = m_work.run("search three.json --time-limit 1s -o found.json");
        QVERIFY2(search.code == 0, qPrintable(search.errors));
        const QString makespan = "makespan_ns";
        const qint64 given = m_work.run("predict three.json --json").json()[makespan].toInteger(),
                     found = m_work.run("predict found.json --json").json()[makespan].toInteger();
        QVERIFY(found > 0 && found <= given);
    }

    /// Copies that are drawn share them out too, and those gathers are transfers.
    void drawnReplicasShareThemOut()
    {
        const QString replicas =
            " 1f1b --devices 4 --microbatches 8 --replicas 2 --model llama-3-8b --cluster h100-nodes";
        const auto held = [&](const QString& level) {
            const QJsonObject shared = m_work.run("predict" + replicas + level + " --json").json();
            const QJsonObject bytes = shared["per_device"].toArray()[0].toObject()["peak_by_kind"].toObject();
            return std::tuple(shared["zero"].toObject()["gathers"].toInt(), bytes["optimizer"].toInteger(),
                              bytes["weights"].toInteger());
        };
        const auto [none, state, weights] = held("");
        QCOMPARE(held(" --zero 2"), std::tuple(0, state / 2, weights));
        QCOMPARE(held(" --zero 3"), std::tuple(4, state / 2, weights / 2));
        for (const QString refused : {" --zero 2 --reduce each", " --zero 3 --data-parallel 2"}) {
            const Outcome outcome = m_work.run("new" + replicas + refused + " -o no.json");
            QCOMPARE(outcome.code, 2);
            QVERIFY2(outcome.errors.contains("--zero"), qPrintable(outcome.errors));
        }
    }
};

PIPEWRIGHT_TEST(TestHeldStates, QCoreApplication)
#include "tst_heldstates.moc"
