// SPDX-License-Identifier: GPL-3.0-or-later
// bf16 and fused epilogues, with the real CUDA plugin on stand-in GPUs: the same losses for every schedule, bounds of
// gradients, and notes for everything that is done differently. Nothing here ran on a GPU.
#include "standin/libraries/standinmachine.h"
#include "testmain.h"
#include "testpaths.h"

#include <QTest>

using namespace pipewright;
using namespace pipewright::test;

class TestStandInPrecision : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void lossesInBf16AreTheSameForEverySchedule_data()
    {
        QTest::addColumn<QString>("model");
        QTest::newRow("GPT") << PIPEWRIGHT_SOURCE_DIR "/resources/models/byte-gpt-small.json";
        QTest::newRow("Llama") << PIPEWRIGHT_SOURCE_DIR "/tests/torch/models/llama.json";
    }
    void lossesInBf16AreTheSameForEverySchedule()
    {
        QFETCH(QString, model);
        QJsonArray losses;
        for (const char* way : {"1 1f1b", "2 1f1b --graphs", "2 zb-h1", "2 zb-v", "1 gpipe --recompute full",
                                "1 gpipe --recompute block"}) {
            const QStringList words = QString(way).split(' ');
            const StandInMachine machine(words[0].toInt());
            QVERIFY(machine.make(words[1], 2,
                                 "--microbatch-size 1 --sequence 8 --model " + machine.inBf16(model)
                                     + (words.contains("--recompute") ? " --recompute " + words.last() : QString())));
            const StandInOutcome ran = machine.run(onGpus + "2" + (words.contains("--graphs") ? " --graphs" : ""));
            const QString why = whyNotRight(ran);
            QVERIFY2(why.isEmpty(), qPrintable(way + (": " + why)));
            if (losses.isEmpty())
                losses = ran.json["loss"].toArray();
            QCOMPARE(losses.size(), 2);
            QCOMPARE(ran.json["loss"].toArray(), losses);
            // Products do not depend on where a schedule places tensors.
            QCOMPARE(ran.counted("products for an alignment of 16"), ran.counted("products"));
            QCOMPARE(ran.counted("products of bf16 factors"), ran.counted("products"));
        }
    }

    /// A newer GPU neither holds nor predicts the memory that an older GPU needs for fp32 copies.
    void bf16ArithmeticNeedsNoRoomForCopies()
    {
        std::map<QString, double> peaks;
        for (const char* capability : {"9.0", "7.5"}) {
            StandInMachine machine(2);
            machine.set("CAPABILITY", capability);
            QVERIFY(machine.make("1f1b", 2,
                                 "--microbatch-size 1 --sequence 8 --model "
                                     + machine.inBf16(PIPEWRIGHT_SOURCE_DIR "/tests/torch/models/llama.json")));
            const StandInOutcome ran = machine.run(onGpus + "2"), said = machine.run("predict design.json --json");
            const QString why = whyNotRight(ran);
            QVERIFY2(why.isEmpty(), qPrintable(why));
            const bool widens = QString(capability) == "7.5";
            QCOMPARE(ran.errors.contains("layer by layer in fp32 copies"), widens);
            QCOMPARE(said.json["per_device"].toArray()[0].toObject()["peak_bytes"]
                         == ran.json["peak_bytes"].toArray()[0],
                     !widens);
            peaks[capability] = ran.json["peak_bytes"].toArray()[0].toDouble();
        }
        QVERIFY(peaks["9.0"] < peaks["7.5"]);
    }

    /// There is no stand-in of cuDNN: a run uses its own kernels, and says so, also in the trace.
    void aRunSaysWhoComputesAttention()
    {
        const StandInMachine machine(2);
        const QString model = machine.inBf16(PIPEWRIGHT_SOURCE_DIR "/tests/torch/models/llama.json");
        QVERIFY(machine.make("1f1b", 2, "--microbatch-size 1 --sequence 8 --model " + model));
        for (const char* who : {"", " --attention own"}) {
            const StandInOutcome ran = machine.run(onGpus + "2" + who);
            const QString why = whyNotRight(ran);
            QVERIFY2(why.isEmpty(), qPrintable(why));
            const QJsonArray said = ran.json["attention"].toArray();
            QCOMPARE(said.size(), 2); // forward and gradients
            for (const QJsonValue& each : said) {
                QVERIFY2(each.toString().contains("1 x 8 tokens, 6 heads of 16 over 2) has a kernel of its own"),
                         qPrintable(each.toString()));
                QCOMPARE(each.toString().contains("as it was asked for"), *who != 0);
                QVERIFY(ran.errors.contains(each.toString()));
            }
            QVERIFY(machine.run("query trace.db \"SELECT * FROM META\"").output.contains("has a kernel of its own"));
        }
        const auto refused = [&](const QString& words) {
            const StandInOutcome ran = machine.run(words);
            return ran.code != 0 && ran.errors.contains("--attention");
        };
        // The message differs if this machine has the library.
        const StandInOutcome wanted = machine.run(onGpus + "1 --attention cudnn");
        QVERIFY(wanted.code != 0);
        QVERIFY2(wanted.errors.contains("cuDNN was not found")
                     || wanted.errors.contains("cuDNN does not compute attention's forward"),
                 qPrintable(wanted.errors));
        QVERIFY(refused(onGpus + "1 --attention somebody"));
        QVERIFY(refused("run design.json --backend host --attention own --steps 1 -o h.db"));
        QVERIFY(machine.design("1f1b", 2)); // fp32
        QVERIFY(refused(onGpus + "1 --attention own"));
    }

    /// A library without epilogues: separate kernels do their work, and a note says so.
    void whatCannotGoWithAProductIsSaid()
    {
        for (const bool fused : {true, false}) {
            StandInMachine machine(2);
            QVERIFY(machine.design("1f1b", 2));
            if (!fused)
                machine.set("FAIL", "epilogue:1");
            const StandInOutcome ran = machine.run(onGpus + "2");
            const QString why = whyNotRight(ran);
            QVERIFY2(why.isEmpty(), qPrintable(why));
            QCOMPARE(ran.counted("products with an epilogue") > 0, fused);
            QCOMPARE(ran.errors.contains("it has a kernel of its own"), !fused);
            for (const char* what : {"a bias and GELU", "the slope of GELU", "the bias's gradient"})
                QCOMPARE(ran.errors.contains("cuBLASLt does " + QString(what) + " not with the product of"), !fused);
        }
    }

    void otherPrecisionIsHeldToAnotherBound()
    {
        const StandInMachine machine(2);
        QVERIFY(machine.design("1f1b", 2));
        const StandInOutcome ran = machine.run(onGpus + "2 --bf16");
        const QString why = whyNotRight(ran);
        QVERIFY2(why.isEmpty(), qPrintable(why));
        const double error = ran.json["gradient_check"]["max_relative_error"].toDouble();
        QVERIFY2(error > 1e-4 && error < 3e-2, qPrintable(QString::number(error)));
    }
};

PIPEWRIGHT_TEST(TestStandInPrecision, QCoreApplication)
#include "tst_standinprecision.moc"
