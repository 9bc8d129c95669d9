// SPDX-License-Identifier: GPL-3.0-or-later
// The program with its real CUDA plugin on stand-in GPUs: correct gradients, the same losses for every placement and
// way of issuing work, no violation of NVIDIA's documentation, no leaked resources. Nothing here ran on a GPU.
#include "standin/libraries/standinmachine.h"
#include "testmain.h"
#include "testpaths.h"

#include <QRegularExpression>
#include <QTest>

#include <cmath>

using namespace pipewright;
using namespace pipewright::test;

namespace {

/// The scenarios that tests/gpu.sh trains on real GPUs: families with options; @ means a model with a separate head.
QStringList scenariosOfTheDay()
{
    QFile file(PIPEWRIGHT_SOURCE_DIR "/tests/gpu.sh");
    if (!file.open(QIODevice::ReadOnly))
        return {};
    static const QRegularExpression list("local cases=\\(([^)]*)\\)"), scenario("\"([^\"]*)\""),
        stored("local stored=\"([^\"]*)\"");
    const QString script = QString::fromUtf8(file.readAll());
    const QString listed = list.match(script).captured(1).replace("$stored", stored.match(script).captured(1));
    QStringList all;
    for (auto each = scenario.globalMatch(listed); each.hasNext();)
        all << each.next().captured(1);
    return all;
}

} // namespace

class TestStandInRuns : public QObject {
    Q_OBJECT

    std::map<QString, QJsonArray> m_losses; ///< of runs that add up the same numbers in the same order

private Q_SLOTS:
    void gradientsAreRightAndLossesEqual_data()
    {
        QTest::addColumn<QString>("family");
        QTest::addColumn<int>("devices");
        QTest::addColumn<QStringList>("ways"); // GPUs, then options
        QTest::addColumn<QString>("model");
        // Each scenario runs on slices of one GPU, with two devices per GPU, with one GPU per device, and with spare
        // GPUs; with NCCL only where each device has its own GPU. Where weights are updated within a step, the
        // reference is an emulation with the same reads.
        const QStringList scenarios = scenariosOfTheDay();
        QVERIFY2(scenarios.size() >= 20, "the list of tests/gpu.sh is not found");
        for (const QString& scenario : scenarios) {
            QString model = scenario.contains('@') ? "byte-gpt-small" : "byte-gpt";
            QStringList options = scenario.split(' '), ways;
            const QString family = options.takeFirst();
            options.removeOne("@");
            for (const QString& option : std::as_const(options))
                if (option.startsWith("--model="))
                    model = option.section('=', 1);
            options.removeOne("--model=" + model);
            for (const char* gpus : {"1", "2", "4", "8"})
                if (gpus[0] >= '4' || !options.contains("nccl"))
                    ways << (QStringList{gpus} + options).join(' ');
            QTest::addRow("%s", qPrintable(scenario)) << family << 4 << ways << model;
        }
        // More scenarios.
        QTest::newRow("two slices as graphs") << "zb-v" << 2 << QStringList{"1 --graphs"} << "byte-gpt";
        QTest::newRow("interleaved as graphs") << "interleaved-1f1b" << 2 << QStringList{"2 --graphs"} << "byte-gpt";
        QTest::newRow("halves by NCCL") << "zb-h1" << 4 << QStringList{"4 --link nccl"} << "byte-gpt";
        QTest::newRow("versions as graphs") << "pipedream-2bw" << 2 << QStringList{"2 --graphs"} << "byte-gpt-small";
        QTest::newRow("wide") << "1f1b" << 2 << QStringList{"2"} << "wide";
        QTest::newRow("eight") << "1f1b" << 8 << QStringList{"8", "8 --link nccl"} << "deep";
    }
    void gradientsAreRightAndLossesEqual()
    {
        QFETCH(QString, family);
        QFETCH(int, devices);
        QFETCH(QStringList, ways);
        QFETCH(QString, model);
        const bool halved = family == "interleaved-1f1b" || family == "zb-v"; // two stages on each device
        for (const QString& way : std::as_const(ways)) {
            StandInMachine machine(way.section(' ', 0, 0).toInt());
            machine.set("SEED", QString::number(ways.indexOf(way) + 1));
            QVERIFY(model == "wide"   ? machine.wideModel("model.json")
                    : model == "deep" ? machine.deepModel("model.json")
                                      : machine.tinyModel("model.json", model, halved ? 2 * devices - 2 : devices));
            QVERIFY(machine.make(family, devices, "--sequence 4 --microbatch-size 1 --model model.json"));
            const StandInOutcome ran = machine.run(onGpus + (devices == 8 ? "1 " : "2 ") + way.section(' ', 1));
            const QString why = whyNotRight(ran);
            QVERIFY2(why.isEmpty(), qPrintable(way + ": " + why));
            // The same losses for every placement, way of issuing and link; these families also add up in the same
            // order as 1f1b.
            const bool alike = family == "gpipe" || family == "zb-h1";
            QJsonArray& losses = m_losses[QString("%1, %2 on %3%4")
                                              .arg(model, alike ? "1f1b" : family)
                                              .arg(devices)
                                              .arg(way.contains("--bf16")           ? " with factors in bf16"
                                                   : way.contains("data_type=bf16") ? " in bf16"
                                                                                    : "")];
            if (losses.isEmpty())
                losses = ran.json["loss"].toArray();
            QVERIFY(!losses.isEmpty());
            QCOMPARE(ran.json["loss"].toArray(), losses);
            // Things that must not happen.
            QCOMPARE(ran.counted("copies between GPUs through the host"), 0.0);
            QCOMPARE(ran.counted("products chosen for other multiprocessors"), 0.0);
            QVERIFY(ran.counted("products") > 0);
            // Products do not depend on where a schedule places tensors; with pieces of two tokens nothing is aligned.
            if (family != "seq1f1b")
                QCOMPARE(ran.counted("products for an alignment of 16"), ran.counted("products"));
            QCOMPARE(ran.counted("cudaGetDevice"), 0.0);
            QVERIFY(ran.counted("cudaSetDevice") < ran.counted("cudaEventCreate") + 100); // not for each operation
        }
    }

    void modelsOfTodayTrain_data()
    {
        QTest::addColumn<QString>("model");
        QTest::addColumn<QString>("family");
        QTest::addColumn<QString>("way");
        const QString decoders = PIPEWRIGHT_SOURCE_DIR "/tests/torch/models/",
                      encoders = PIPEWRIGHT_SOURCE_DIR "/tests/torch/encoders/";
        QTest::newRow("Llama") << decoders + "llama.json"
                               << "1f1b"
                               << "2 --graphs";
        QTest::newRow("Qwen 3") << decoders + "qwen3.json"
                                << "zb-h1"
                                << "1";
        QTest::newRow("Gemma 2") << decoders + "gemma2.json"
                                 << "zb-v"
                                 << "2";
        QTest::newRow("Gemma 3") << decoders + "gemma3.json"
                                 << "1f1b"
                                 << "2";
        QTest::newRow("Mixtral") << decoders + "mixtral.json"
                                 << "zb-h1"
                                 << "2 --graphs";
        QTest::newRow("DeepSeek-V3") << decoders + "deepseek-v3.json"
                                     << "v-half"
                                     << "2";
        QTest::newRow("GPT-OSS") << decoders + "gpt-oss.json"
                                 << "1f1b"
                                 << "2";
        QTest::newRow("Llama in pieces") << decoders + "llama.json"
                                         << "seq1f1b"
                                         << "2";
        QTest::newRow("Llama in bf16") << decoders + "llama.json"
                                       << "zb-h1"
                                       << "2 bf16";
        QTest::newRow("GPT in bf16") << PIPEWRIGHT_SOURCE_DIR "/resources/models/byte-gpt-small.json"
                                     << "1f1b"
                                     << "2 bf16";
        QTest::newRow("Llama in bf16, predicted weights") << decoders + "llama.json"
                                                          << "pipeoptim"
                                                          << "2 bf16";
        QTest::newRow("Llama in pieces in bf16") << decoders + "llama.json"
                                                 << "seq1f1b"
                                                 << "2 bf16";
        QTest::newRow("Mixtral in bf16") << decoders + "mixtral.json"
                                         << "1f1b"
                                         << "2 bf16";
        QTest::newRow("BERT") << encoders + "bert.json"
                              << "1f1b"
                              << "2";
        QTest::newRow("ViT") << encoders + "vit.json"
                             << "1f1b"
                             << "2";
    }
    void modelsOfTodayTrain()
    {
        QFETCH(QString, model);
        QFETCH(QString, family);
        QFETCH(QString, way);
        const StandInMachine machine(way.section(' ', 0, 0).toInt());
        const bool picture = model.endsWith("vit.json"), bf16 = way.endsWith(" bf16"),
                   hasExperts = model.contains(QRegularExpression("mixtral|deepseek|gpt-oss"));
        // A token whose scores for two experts are nearly equal may choose another expert than on the host, whose sums
        // are rounded differently. Without following these choices, the reference's gradients would differ by more than
        // rounding.
        if (bf16) {
            model = machine.inBf16(model);
            way.chop(5);
        }
        QVERIFY(machine.make(family, 2,
                             "--microbatch-size 1 --model " + model
                                 + (picture ? "" : " --sequence 8"))); // the sequence length of pictures is fixed
        const StandInOutcome ran = machine.run(onGpus + "2 " + way.section(' ', 1));
        const QString why = whyNotRight(ran);
        QVERIFY2(why.isEmpty(), qPrintable(why));
        const QJsonObject routing = ran.json["gradient_check"].toObject()["routing"].toObject();
        QCOMPARE(routing.isEmpty(), !hasExperts);
        if (hasExperts) // such a token depends on every rounding; tst_gradientcheck has one
            QVERIFY2(routing["tokens"].toInt() > 0
                         && (routing["otherwise"].toInt() > 0) == ran.errors.contains("score alike up to rounding"),
                     qPrintable(ran.errors));
        if (bf16 && !hasExperts)
            QCOMPARE(ran.counted("products of bf16 factors"), ran.counted("products"));
        // Each of its kernels is of a known kind.
        for (const auto& each : machine.run("explain trace.db --json").json["kernels"].toObject()["groups"].toArray())
            QVERIFY2(each.toObject()["group"].toString() != "other", qPrintable(model));
        // As on the host, whose sums have another order.
        const StandInOutcome host =
            machine.run("run design.json --backend host --json --progress none --steps 2 -o h.db");
        QCOMPARE(host.code, 0);
        for (int step = 0; step < 2; ++step) {
            const double loss = ran.json["loss"].toArray()[step].toDouble(),
                         there = host.json["loss"].toArray()[step].toDouble();
            QVERIFY2(std::abs(loss - there) < (bf16 ? 1e-2 : 1e-4) * there,
                     qPrintable(QString("%1, not %2").arg(loss).arg(there)));
        }
    }

    void whatIsOffloadedComesBack()
    {
        QJsonArray losses;
        for (const char* way : {"1", "2", "2 --graphs"}) {
            const StandInMachine machine(way[0] - '0');
            QVERIFY(machine.design("gpipe", 2, "--model byte-gpt-small --host-link 25GB --offload 0-1"));
            const StandInOutcome ran = machine.run(onGpus + "2" + QString::fromLatin1(way + 1));
            const QString why = whyNotRight(ran);
            QVERIFY2(why.isEmpty(), qPrintable(way + (": " + why)));
            QCOMPARE(ran.json["host_bytes"], ran.json["predicted_host_bytes"]);
            QVERIFY(ran.json["host_bytes"].toArray()[0].toDouble() > 0);
            if (losses.isEmpty())
                losses = ran.json["loss"].toArray();
            QCOMPARE(ran.json["loss"].toArray(), losses);
        }
    }

    void olderGpusAreCutInTheirOwnSteps()
    {
        StandInMachine machine;
        machine.set("CAPABILITY", "8.0").set("MULTIPROCESSORS", "108");
        QVERIFY(machine.design("1f1b", 2));
        QFile file(machine.path("design.json"));
        QVERIFY(file.open(QIODevice::ReadOnly));
        QJsonObject design = QJsonDocument::fromJson(file.readAll()).object();
        file.close();
        QJsonObject cluster = design["cluster"].toObject();
        // Not a multiple of the smallest group size, 4: larger groups are needed.
        const QJsonObject half{{"gpu", 0}, {"multiprocessors", 54}};
        cluster["gpus"] = QJsonArray{half, half};
        design["cluster"] = cluster;
        QVERIFY(file.open(QIODevice::WriteOnly) && file.write(QJsonDocument(design).toJson()) > 0);
        file.close();
        const StandInOutcome ran = machine.run(onGpus + "2");
        const QString why = whyNotRight(ran);
        QVERIFY2(why.isEmpty(), qPrintable(why));
        QCOMPARE(ran.most("green contexts"), 2.0);
    }

    void theDriverDecidesWhichPluginRuns_data()
    {
        QTest::addColumn<int>("driver");
        QTest::addColumn<QString>("major");
        QTest::addColumn<bool>("slices");
        QTest::newRow("R535") << 12020 << "12" << false;
        QTest::newRow("R570") << 12080 << "12" << true;
        QTest::newRow("R580") << 13000 << "13" << true;
    }
    /// A driver of CUDA 12 runs no plugin built with CUDA 13; the plugin for CUDA 12 also runs on drivers older than
    /// its own toolkit.
    void theDriverDecidesWhichPluginRuns()
    {
        QFETCH(int, driver);
        QFETCH(QString, major);
        QFETCH(bool, slices);
        StandInMachine two(2), one(1);
        for (StandInMachine* machine : {&two, &one})
            machine->set("DRIVER", QString::number(driver));
        const QJsonObject cuda = two.run("devices --json --python /nowhere").json["cuda"].toObject();
        QVERIFY2(cuda["available"].toBool(), qPrintable(cuda["reason"].toString()));
        QVERIFY(cuda["plugin"].toString().endsWith("/pipewright_cuda" + major + ".so"));
        for (const char* library : {"cuBLASLt", "CUPTI"})
            QVERIFY2(cuda["libraries"].toObject()[library].toString().endsWith(".so." + major), library);
        if (major == "13")
            return; // covered by all other tests
        QVERIFY(two.design("1f1b", 2) && one.design("1f1b", 2));
        if (!slices) {
            const StandInOutcome ran = two.run(onGpus + "2 --graphs");
            const QString why = whyNotRight(ran);
            QVERIFY2(why.isEmpty(), qPrintable(why));
            QVERIFY(ran.counted("products") > 0 && ran.counted("activity records") > 0);
            QVERIFY(ran.namesLike("kernels without a label: ").size() <= 1);
            QVERIFY2(ran.errors.contains("it records every call of the runtime"), qPrintable(ran.errors));
            const StandInOutcome spun = two.run(onGpus + "1 --maths synthetic");
            QVERIFY2(spun.code == 0 && spun.faults().isEmpty(), qPrintable(spun.errors + spun.faults()));
        }
        const StandInOutcome cut = one.run(onGpus + "1 --no-gradient-check --record blocks");
        QCOMPARE(cut.code, slices ? 0 : 2);
        QVERIFY2(cut.faults().isEmpty(), qPrintable(cut.faults()));
        QCOMPARE(cut.most("green contexts"), slices ? 2.0 : 0.0);
        QCOMPARE(cut.counted("activity records"), 0.0);
        QVERIFY2(slices || cut.errors.contains("slices of a GPU need 12.5 (R555 or later)"), qPrintable(cut.errors));
    }

    /// More streams than connections make slices wait for each other.
    void everyStreamHasAConnectionOfItsOwn()
    {
        const StandInMachine machine(1);
        QVERIFY(machine.design("1f1b", 4));
        const StandInOutcome ran = machine.run(onGpus + "2 --no-gradient-check");
        QVERIFY2(ran.code == 0, qPrintable(ran.errors));
        // Per device: its own stream and one for work between steps; one for each of 6 links; one for the clock.
        QCOMPARE(ran.most("streams of GPU 0"), 4 + 4 + 6 + 1.0);
        QVERIFY(ran.most("connections") >= ran.most("streams of GPU 0"));
    }

    void aProcessForEachGpu_data()
    {
        QTest::addColumn<QString>("family");
        QTest::addColumn<int>("gpus");
        QTest::addColumn<QString>("model");
        QTest::newRow("1f1b") << "1f1b" << 2 << "deep.json";
        QTest::newRow("chimera") << "chimera" << 4 << "deep.json";
        QTest::newRow("eight") << "1f1b" << 8 << "deep.json";
        QTest::newRow("experts") << "1f1b" << 2 << PIPEWRIGHT_SOURCE_DIR "/tests/torch/models/mixtral.json";
    }
    void aProcessForEachGpu()
    {
        QFETCH(QString, family);
        QFETCH(int, gpus);
        QFETCH(QString, model);
        const StandInMachine machine(gpus);
        QVERIFY(machine.deepModel("deep.json"));
        QVERIFY(machine.design(family, gpus, "--model " + model));
        const StandInOutcome threads = machine.run(onGpus + "2");
        const QString words = "run design.json --backend mpi --device cuda --steps 2 --json --progress none --force "
                              "-o ranks.db --deadline ";
        const StandInOutcome ran = machine.run(words + "30s");
        const QString why = whyNotRight(ran);
        QVERIFY2(why.isEmpty(), qPrintable(why));
        QCOMPARE(ran.json["loss"].toArray(), threads.json["loss"].toArray());
        QCOMPARE(ran.most("communicators") > 0, true);
        QVERIFY(ran.reports.size() >= std::size_t(gpus)); // one for each process
        // The trace has the activities of every rank's GPU, with their blocks.
        const QJsonObject kernels = machine.run("explain ranks.db --json").json["kernels"].toObject();
        QVERIFY(kernels["blocks"].toInt() >= 2 * 4 * gpus);
        QCOMPARE(kernels["blocks_without_kernels"].toInt(-1), 0);
        // Choices of experts were collected from every rank.
        const QJsonObject routing = ran.json["gradient_check"].toObject()["routing"].toObject();
        QCOMPARE(routing["tokens"].toInt(), model == "deep.json" ? 0 : 4 * 4 * 8); // layers, microbatches, tokens
        QCOMPARE(routing["unexplained"].toInt(), 0);
        if (gpus == 8)
            return;
        // When a rank dies the others end too, and the message names it.
        const StandInOutcome died = machine.run(words + "10s --inject killed:1:1:3", 60);
        QCOMPARE(died.code, 2);
        QVERIFY2(died.errors.contains("the process of device 1 (rank 1"), qPrintable(died.errors));
        QVERIFY2(died.faults().isEmpty(), qPrintable(died.faults()));
    }

    void stagesAreSharded_data()
    {
        QTest::addColumn<QString>("model");
        QTest::addColumn<QString>("link");
        QTest::newRow("copies") << "mlp"
                                << "copy";
        QTest::newRow("NCCL") << "mlp"
                              << "nccl";
        QTest::newRow("transformer, copies") << "transformer"
                                             << "copy";
        QTest::newRow("transformer, NCCL") << "transformer"
                                           << "nccl";
        QTest::newRow("experts") << "experts"
                                 << "nccl";
    }
    void stagesAreSharded()
    {
        QFETCH(QString, model);
        QFETCH(QString, link);
        const StandInMachine machine(2);
        QFile from(PIPEWRIGHT_SOURCE_DIR "/resources/experiments/mixed-speed/" + model + ".json"),
            to(machine.path("small.json"));
        QVERIFY(from.open(QIODevice::ReadOnly) && to.open(QIODevice::WriteOnly));
        QJsonObject design = QJsonDocument::fromJson(from.readAll()).object();
        if (design.contains("model")) {
            QJsonObject shape = design["model"].toObject();
            for (const auto& [size, value] : {std::pair{"layers", 1},
                                              {"hidden", 16},
                                              {"ffn", 32},
                                              {"vocabulary", 32},
                                              {"sequence", 4},
                                              {"expert_ffn", 16}})
                if (shape.contains(size))
                    shape[size] = value;
            design["model"] = shape;
        }
        QVERIFY(to.write(QJsonDocument(design).toJson()) > 0);
        to.close();
        const StandInOutcome ran = machine.run("shard small.json --run --steps 1 --backend cuda --json --link " + link);
        QVERIFY2(ran.code == 0, qPrintable(ran.errors));
        const QJsonObject compared = ran.json["run"].isObject() ? ran.json["run"].toObject() : ran.json;
        QVERIFY(compared["gradient_error"].toDouble(1) < 1e-3);
        QVERIFY(std::abs(compared["loss"].toDouble(1) - compared["reference_loss"].toDouble()) < 1e-3);
        QVERIFY2(ran.faults().isEmpty(), qPrintable(ran.faults()));
        // Peer access is enabled whichever side uses a link first.
        QCOMPARE(ran.counted("copies between GPUs through the host"), 0.0);
        QCOMPARE(ran.counted("copies between GPUs") > 0, link == "copy");
    }

    void whatFailsIsNamedAndGivenBack_data()
    {
        QTest::addColumn<QString>("fault");
        QTest::addColumn<QString>("options");
        QTest::addColumn<QString>("said");
        const QString plain = "2 ";
        QTest::newRow("no memory") << "allocate:5" << plain << "cudaErrorMemoryAllocation: out of memory";
        QTest::newRow("no memory for a stage") << "allocate:2" << plain << "out of memory";
        QTest::newRow("a launch") << "launch:40" << plain << "cudaErrorLaunchOutOfResources";
        QTest::newRow("a launch in a graph") << "launch:400"
                                             << "2 --graphs "
                                             << "cannot compute";
        QTest::newRow("a product") << "product:7" << plain << "cuBLASLt cannot multiply 8 x 48 by 48 x 48";
        QTest::newRow("a GPU") << "lost:300" << plain << "cudaErrorECCUncorrectable";
        QTest::newRow("a slice") << "green:2"
                                 << "1 "
                                 << "cuGreenCtxCreate: out of memory";
        QTest::newRow("NCCL's network") << "nccl:13"
                                        << "2 --link nccl --deadline 3s "
                                        << "no device has made progress";
        QTest::newRow("NCCL's first transfer") << "nccl:1"
                                               << "2 --link nccl --deadline 3s "
                                               << "the deadline has passed";
    }
    void whatFailsIsNamedAndGivenBack()
    {
        QFETCH(QString, fault);
        QFETCH(QString, options);
        QFETCH(QString, said);
        StandInMachine machine(options.section(' ', 0, 0).toInt());
        QVERIFY(machine.design("1f1b", 2));
        const StandInOutcome ran = machine.set("FAIL", fault).run(onGpus + "2 " + options.section(' ', 1), 60);
        QCOMPARE(ran.code, 2);
        QVERIFY2(ran.errors.contains(said), qPrintable(ran.errors));
        // Memory of a lost GPU, or of a transfer that never ends, cannot be freed.
        if (!fault.startsWith("lost") && fault != "nccl:1")
            QVERIFY2(ran.faults().isEmpty(), qPrintable(ran.faults()));
        for (const QJsonObject& report : ran.reports) {
            const QByteArray broken = QJsonDocument(report["broken"].toArray()).toJson();
            QVERIFY2(report["broken"].toArray().isEmpty(), broken.constData());
        }
    }

    void aGpuWithoutRoomIsNamedBeforeTheRun()
    {
        StandInMachine machine(2);
        QVERIFY(machine.design("1f1b", 2));
        const StandInOutcome ran = machine.set("MEMORY", "33554432").run(onGpus + "2");
        QCOMPARE(ran.code, 2);
        QVERIFY2(ran.errors.contains("would hold") && ran.errors.contains("32 MiB"), qPrintable(ran.errors));
        QCOMPARE(ran.counted("kernels"), 0.0);
    }

    void gpusThatDoNotReachEachOtherCopyThroughTheHost()
    {
        StandInMachine machine(2);
        machine.set("PEERS", "0");
        QVERIFY(machine.design("1f1b", 2));
        const StandInOutcome ran = machine.run(onGpus + "2");
        const QString why = whyNotRight(ran);
        QVERIFY2(why.isEmpty(), qPrintable(why));
        QVERIFY(ran.counted("copies between GPUs through the host") > 0);
    }
};

PIPEWRIGHT_TEST(TestStandInRuns, QCoreApplication)
#include "tst_standinruns.moc"
