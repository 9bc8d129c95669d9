// SPDX-License-Identifier: GPL-3.0-or-later
// The commands as a person or a script uses them: the real program in a process of its own.
#include "app/program.h"
#include "testmain.h"

#include <QFileInfo>
#include <QTemporaryDir>
#include <QTest>

using namespace pipewright::test;

class TestCommands : public QObject {
    Q_OBJECT

private:
    Workplace m_work;

private Q_SLOTS:
    void everyCommandHasHelp()
    {
        for (const char* command :
             {"", "new", "predict", "check", "run", "compare", "calibrate", "render", "devices", "explain", "query",
              "search", "export", "import", "experiment", "shard", "profile", "plan"}) {
            const Outcome outcome = m_work.run(QString(command) + " --help");
            QCOMPARE(outcome.code, 0);
            QVERIFY(outcome.output.contains("Usage"));
        }
    }

    /// The rules themselves are tried in core (tst_optionrules).
    void everyOptionOfADesignHasARule()
    {
        const QString help = m_work.run("new --help").output;
        const QString design = help.mid(help.indexOf("[Option Group: Design]"));
        QRegularExpression option("^    (--[a-z-]+) ?(\\S*)", QRegularExpression::MultilineOption);
        int tried = 0;
        for (auto match = option.globalMatch(design); match.hasNext(); ++tried) {
            const QRegularExpressionMatch found = match.next();
            const QString values = found.captured(2);
            const QString value = values.contains("none|")    ? "none"
                                  : values.contains('|')      ? values.section('|', 0, 0).replace("FACTORx", "1x")
                                  : values.startsWith("SIZE") ? "1MiB"
                                  : values == "T"             ? "1ms"
                                                              : "1";
            const Outcome outcome = m_work.run("predict 1f1b --devices 2 --microbatches 2 " + found.captured(1) + ' '
                                               + (values.isEmpty() ? QString() : value));
            QVERIFY2(!outcome.errors.contains("is not known to change a design"), qPrintable(outcome.errors));
        }
        QVERIFY2(tried > 45, qPrintable(QString::number(tried)));
    }

    void badUsageIsExitCodeTwo_data()
    {
        QTest::addColumn<QString>("words");
        QTest::addColumn<QString>("message");
        QTest::newRow("a module without PyTorch") << "run a.json --backend host --steps 1 -o a.db --module m.py:build"
                                                  << "--module: error: is for PyTorch's ranks";
        QTest::newRow("PyTorch without a module") << "run a.json --backend torch --steps 1 -o a.db"
                                                  << "--module: error: is missing";
        QTest::newRow("PyTorch with another backend's option")
            << "run a.json --backend torch --steps 1 -o a.db --module m.py:build --clock virtual"
            << "--clock: error: is for the built-in backends";
        QTest::newRow("an unknown command") << "frobnicate"
                                            << "neither a command nor a file";
        QTest::newRow("an unknown option") << "predict 1f1b --devices 2 --microbatches 2 --colour red"
                                           << "--colour";
        QTest::newRow("an unknown family") << "predict 2f2b --devices 2 --microbatches 2"
                                           << "families:";
        QTest::newRow("no devices") << "predict 1f1b --microbatches 2"
                                    << "--devices";
        QTest::newRow("zero devices") << "predict 1f1b --devices 0 --microbatches 2"
                                      << "--devices";
        QTest::newRow("a million microbatches") << "predict 1f1b --devices 2 --microbatches 1000000"
                                                << "--microbatches";
        QTest::newRow("a million microbatches in a file") << "new 1f1b --devices 2 --microbatches 1000000 -o m.json"
                                                          << "--microbatches";
        QTest::newRow("a time without unit") << "predict 1f1b --devices 2 --microbatches 2 --forward 3"
                                             << "--forward";
        QTest::newRow("a negative time") << "predict 1f1b --devices 2 --microbatches 2 --transfer=-3ms"
                                         << "--transfer";
        QTest::newRow("a size without unit") << "predict 1f1b --devices 2 --microbatches 2 --saved 5"
                                             << "--saved";
        QTest::newRow("part larger than all")
            << "predict 1f1b --devices 2 --microbatches 2 --saved 5B --saved-for-weight-grad 6B"
            << "--saved-for-weight-grad";
        QTest::newRow("no factor") << "predict 1f1b --devices 2 --microbatches 2 --memory-limit 2"
                                   << "--memory-limit";
        QTest::newRow("a limit of a fixed order")
            << "predict 1f1b --devices 2 --microbatches 2 --memory-limit 2x"
            << "--memory-limit: error: changes nothing of 1F1B: its order is fixed, whatever the memory (leave it out";
        QTest::newRow("bytes of a fixed order") << "predict 1f1b --devices 2 --microbatches 2 --memory-limit 2GiB"
                                                << "--memory-limit: error: changes nothing of 1F1B";
        QTest::newRow("a limit that nothing fits into")
            << "predict zb-auto --devices 8 --microbatches 8 --model llama-3-8b --memory-limit 20GiB"
            << "no schedule of zb-auto keeps every device within 20GiB: device 0 holds 23.4 GiB";
        QTest::newRow("groups of no interleaving") << "predict gpipe --devices 2 --microbatches 4 --group 2"
                                                   << "--group: error: changes nothing of GPipe";
        QTest::newRow("a factor of no pairs") << "predict 1f1b --devices 2 --microbatches 4 --overlap-factor 0.5"
                                              << "--overlap-factor: error: changes nothing of 1F1B";
        QTest::newRow("one time beside a formula")
            << "predict 1f1b --devices 2 --microbatches 4 --model llama-3-8b --forward 5ms"
            << "one is given beside a formula, which would give the others";
        QTest::newRow("no output") << "new 1f1b --devices 2 --microbatches 2"
                                   << "--output";
        QTest::newRow("no such file") << "check nowhere.json"
                                      << "nowhere.json";
        QTest::newRow("no such model") << "predict 1f1b --devices 2 --microbatches 2 --model gpt-17"
                                       << "gpt-17";
        QTest::newRow("degrees without a model") << "predict 1f1b --devices 2 --microbatches 2 --tensor-parallel 2"
                                                 << "--model";
        QTest::newRow("a degree that divides nothing")
            << "predict 1f1b --devices 2 --microbatches 2 --model llama-3-8b --tensor-parallel 3"
            << "32 heads cannot be shared out over 3 members";
        QTest::newRow("a precision nobody knows")
            << "predict 1f1b --devices 2 --microbatches 2 --model llama-3-8b --precision fp9"
            << "--precision: error: \"fp9\" is not known (use one of fp32, bf16, fp8, fp8-parameters, nvfp4, "
               "nvfp4-parameters)";
        QTest::newRow("a precision without a model") << "predict 1f1b --devices 2 --microbatches 2 --precision fp8"
                                                     << "--precision: error: says what a model";
        QTest::newRow("a precision that the device does not have")
            << "predict 1f1b --devices 2 --microbatches 2 --model llama-3-8b --cluster a100-nodes --precision fp8"
            << "has no products in fp8";
        QTest::newRow("a framework nobody knows")
            << "predict 1f1b --devices 2 --microbatches 2 --model llama-3-8b --framework megatrom"
            << "--framework: error: \"megatrom\" is not known (use one of none, megatron, torchtitan, deepspeed)";
        QTest::newRow("a framework on a cluster's own groups")
            << "predict 1f1b --devices 2 --microbatches 2 --model byte-gpt-small --cluster host-mixed "
               "--framework megatron"
            << "what frameworks keep besides is not known of a cluster's own groups of devices";
        QTest::newRow("a framework without a model")
            << "predict 1f1b --devices 2 --microbatches 2 --saved 1MiB --framework megatron"
            << "--framework: error: keeps more of a model";
        QTest::newRow("a recomputation nobody knows")
            << "predict 1f1b --devices 2 --microbatches 2 --model llama-3-8b --recompute some"
            << "use none, selective, full, every:4 (layers), block or block-selective, or one for some stages: "
               "full:0-2,5";
        QTest::newRow("an offload nobody knows")
            << "predict 1f1b --devices 2 --microbatches 2 --model llama-3-8b --cluster h100-node --offload some"
            << "use none, auto, or stages such as 0-2,5";
        QTest::newRow("an offload of no stage")
            << "predict 1f1b --devices 2 --microbatches 2 --model llama-3-8b --cluster h100-node --offload 2"
            << "stages are numbered 0 to 1";
        QTest::newRow("an offload without a link") << "predict 1f1b --devices 2 --microbatches 2 --offload 0"
                                                   << "--host-link 25GB";
        QTest::newRow("a link that moves nothing") << "predict 1f1b --devices 2 --microbatches 2 --host-link 0B"
                                                   << "moves nothing";
        QTest::newRow("replicas of updates") << "predict pipedream-2bw --devices 4 --microbatches 8 --replicas 2"
                                             << "updates its stages amid the step";
        QTest::newRow("shares of one replica") << "predict 1f1b --devices 6 --microbatches 6 --shard-optimizer"
                                               << "make the design with --replicas N";
        QTest::newRow("replicas of no whole devices") << "predict 1f1b --devices 5 --microbatches 8 --replicas 2"
                                                      << "use multiples";
        QTest::newRow("more devices than a node has")
            << "predict 1f1b --devices 16 --microbatches 16 --model llama-3-8b --cluster h200-node"
            << "h200-node has 8 devices, and 16 are needed";
        QTest::newRow("groups that a node has no room for")
            << "predict 1f1b --devices 4 --microbatches 8 --model llama-3-8b --cluster h200-node --tensor-parallel 4"
            << "16 are needed: 4 for each of 4";
        QTest::newRow("more devices than nodes")
            << "predict 1f1b --devices 8 --microbatches 8 --model llama-3-8b --cluster h100-nodes --data-parallel 513"
            << "4104 devices are needed";
        QTest::newRow("family options beside a file") << "predict made.json --devices 2"
                                                      << "--devices";
        QTest::newRow("a picture of no kind") << "render made.json -o picture.bmp"
                                              << ".svg, .pdf, .png or .html";
        QTest::newRow("a backend that is off") << "run made.json --backend cuda --steps 1 -o x.db"
                                               << "cuda";
        QTest::newRow("a backend nobody knows") << "run made.json --backend abacus --steps 1 -o x.db"
                                                << "host, cuda, mpi";
        QTest::newRow("no steps") << "run made.json --backend host --steps 0 -o x.db"
                                  << "--steps";
        QTest::newRow("a fault on no device") << "run made.json --backend host --steps 1 -o x.db --inject dies:9:0:0"
                                              << "there is no device 9";
        QTest::newRow("a fault in no step") << "run made.json --backend host --steps 1 -o x.db --inject dies:1:1:0"
                                            << "there is no step 1";
        QTest::newRow("a fault at no instruction")
            << "run made.json --backend host --steps 1 -o x.db --inject dies:1:0:99"
            << "there is no instruction of device 1 99";
        QTest::newRow("a scale beyond all times")
            << "run made.json --backend host --steps 1 -o x.db --synthetic --time-scale 1e308"
            << "a time scale of 1e+308 makes";
        for (const char* option : {"-o x.csv", "--curves loss", "--table x.csv", "--database x.db", "--steps 3",
                                   "--seeds 2", "--module x.py:build", "--backend torch"})
            QTest::newRow(option) << QString("experiment made.json --toy chain ") + option
                                  << "has no meaning for a toy";
        QTest::newRow("curves of no picture") << "experiment made.json --curves loss -o x.csv"
                                              << "none is written";
        QTest::newRow("accuracy of built-in models") << "experiment made.json --curves accuracy -o x.svg"
                                                     << "at the end only, on validation data";
        QTest::newRow("an option of training") << "experiment made.json --costs --learning-rate 1"
                                               << "--costs only predicts";
        QTest::newRow("an option of toys") << "experiment made.json --start 2"
                                           << "is of toys only";
        QTest::newRow("a trace that is none") << "compare made.json made.json"
                                              << "no Pipewright trace";
        QTest::newRow("a trace that is missing") << "compare made.json nowhere.db"
                                                 << "nowhere.db";
    }

    void badUsageIsExitCodeTwo()
    {
        QFETCH(QString, words);
        QFETCH(QString, message);
        m_work.run("new 1f1b --devices 2 --microbatches 2 -o made.json");
        const Outcome outcome = m_work.run(words);
        QCOMPARE(outcome.code, 2);
        QVERIFY2(outcome.errors.contains(message), qPrintable(outcome.errors));
        QCOMPARE(outcome.output, QString());
    }

    void aNewDesignThatWillNotTrainSaysSo()
    {
        const QString why = "every token looks at the whole sequence, so its pieces cannot follow one another";
        const Outcome cut = m_work.run("new seq1f1b --devices 2 --microbatches 4 --model bert-large -o cut.json");
        QCOMPARE(cut.code, 0);
        QVERIFY2(cut.errors.contains("note: ") && cut.errors.contains(why), qPrintable(cut.errors));
        QVERIFY2(cut.errors.contains("such as 1f1b"), qPrintable(cut.errors));
        const Outcome checked = m_work.run("check cut.json --for host");
        QVERIFY2((checked.output + checked.errors).contains(why), qPrintable(checked.output + checked.errors));
        QCOMPARE(m_work.run("new 1f1b --devices 2 --microbatches 4 --model bert-large -o whole.json").errors,
                 QString());
    }

    void filesAreReplacedOnlyByForce()
    {
        const QString make = "new 1f1b --devices 2 --microbatches 2 -o kept.json";
        QCOMPARE(m_work.run(make).code, 0);
        const QByteArray before = m_work.read("kept.json");
        const QString other = QString(make).replace("1f1b", "gpipe");
        const Outcome refused = m_work.run(other);
        QCOMPARE(refused.code, 2);
        QVERIFY(refused.errors.contains("--force"));
        QCOMPARE(m_work.read("kept.json"), before);
        QCOMPARE(m_work.run(other + " --force").code, 0);
        QVERIFY(m_work.read("kept.json") != before);
        QCOMPARE(m_work.run("render kept.json -o kept.svg").code, 0);
        QCOMPARE(m_work.run("render kept.json -o kept.svg").code, 2);
        QCOMPARE(m_work.run("render kept.json -o kept.svg --force").code, 0);
        QVERIFY(m_work.read("kept.svg").startsWith("<"));
    }

    void devicesSaysWhyWhatIsOffIsOff()
    {
        const QJsonObject object = m_work.run("devices --json").json();
        QVERIFY(object["host"]["available"].toBool());
        QVERIFY(object["host"]["threads"].toInt() >= 1);
        QVERIFY(object["host"]["memory_bytes"].toInteger() > 1 << 20);
        QVERIFY(object["mpi"]["available"].toBool());
        if (!object["cuda"]["available"].toBool())
            QVERIFY(!object["cuda"]["reason"].toString().isEmpty());
    }

    void withoutAScreenTheDesignerSaysSo()
    {
        const Outcome outcome = m_work.run("", {"DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"});
        QCOMPARE(outcome.code, 2);
        QVERIFY(outcome.errors.contains("pipewright --help"));
    }

    /// The program with stand-ins for driver and plugin beside it, and with none.
    void devicesSaysInItsJsonWhichGpusThereAre()
    {
        const QString standIns = QFileInfo(PIPEWRIGHT_PROGRAM).absolutePath() + "/../tests/standins/";
        const QTemporaryDir folder;
        const auto bring = [&](const QString& from, const char* name) {
            return QFile::copy(from, folder.filePath(name));
        };
        if (!bring(standIns + "driver_good.so", "libcuda.so.1")
            || !bring(standIns + "plugin_good.so", "pipewright_cuda13.so"))
            QSKIP("the stand-ins are not built");
        QVERIFY(bring(PIPEWRIGHT_PROGRAM, "pipewright"));
        QProcess process;
        QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
        environment.insert("LD_LIBRARY_PATH", folder.path() + ":" + environment.value("LD_LIBRARY_PATH"));
        process.setProcessEnvironment(environment);
        process.start(folder.filePath("pipewright"), {"devices", "--json"});
        const QJsonObject cuda = Workplace::finish(process).json()["cuda"].toObject();
        QVERIFY(cuda["available"].toBool());
        QVERIFY(!cuda.contains("reason"));
        QCOMPARE(cuda["plugin"].toString(), folder.filePath("pipewright_cuda13.so"));
        QCOMPARE(cuda["driver_version"].toInt(), 13000);
        QCOMPARE(cuda["gpus"].toArray().size(), 1);
        const QJsonObject gpu = cuda["gpus"].toArray()[0].toObject();
        QCOMPARE(gpu["name"].toString(), "pretended GPU");
        QCOMPARE(gpu["memory_bytes"].toInteger(), qint64(1) << 30);
        QCOMPARE(gpu["multiprocessors"].toInt(), 0);
        QCOMPARE(gpu["compute_capability"].toString(), "0.0");
        for (const char* library : {"cuBLASLt", "NCCL", "CUPTI"})
            QVERIFY2(cuda["libraries"].toObject().contains(library), library); // a path, or null
        // A design's mapping is held against them: that GPU has no multiprocessors to cut.
        QCOMPARE(m_work.run("new gpipe --devices 2 --microbatches 2 --cluster h200-node -o placed.json").code, 0);
        QJsonObject design = QJsonDocument::fromJson(m_work.read("placed.json")).object();
        QJsonObject cluster = design["cluster"].toObject();
        const auto devicesOf = [&](const QJsonArray& gpus) {
            cluster["gpus"] = gpus;
            design["cluster"] = cluster;
            m_work.write("placed.json", QJsonDocument(design).toJson());
            process.start(folder.filePath("pipewright"), {"devices", m_work.path("placed.json"), "--json"});
            return Workplace::finish(process);
        };
        const QJsonObject whole{{"gpu", 0}}, slice{{"gpu", 0}, {"multiprocessors", 8}};
        const Outcome fits = devicesOf({whole, whole}), refused = devicesOf({whole, slice});
        QCOMPARE(fits.code, 0);
        QVERIFY(fits.json()["cuda"].toObject()["design_fits"].toBool());
        QCOMPARE(refused.code, 1);
        QVERIFY(!refused.json()["cuda"].toObject()["design_fits"].toBool(true));
        QVERIFY2(refused.errors.contains("device 1 wants 8 multiprocessors of GPU 0, which has 0"),
                 qPrintable(refused.errors));
        QVERIFY(refused.errors.contains("placed.json: error: cluster.gpus"));
        // Where no GPU can be used, it says so of the design, too.
        const bool usable = m_work.run("devices --json").json()["cuda"].toObject()["available"].toBool();
        const Outcome here = m_work.run("devices placed.json");
        QCOMPARE(here.output.contains("not checked, as there is no GPU here"), !usable);
        // Without the plugin the reason stands in their place.
        QVERIFY(QFile::remove(folder.filePath("pipewright_cuda13.so")));
        process.start(folder.filePath("pipewright"), {"devices", "--json"});
        const QJsonObject without = Workplace::finish(process).json()["cuda"].toObject();
        QVERIFY(!without["available"].toBool());
        QVERIFY(without["reason"].toString().contains("plugin"));
        QVERIFY(!without.contains("gpus"));
    }

    void thisMachineIsMeasuredIntoAClusterThatDesignsUse()
    {
        const Outcome measured = m_work.run("devices --measure --devices 2 -o mine.json --json");
        QVERIFY2(measured.code == 0, qPrintable(measured.errors));
        QCOMPARE(measured.json()["devices"].toArray().size(), 2);
        QVERIFY(measured.json()["devices"].toArray()[0].toObject()["flops_alone"].toDouble() > 0);
        QVERIFY(measured.json()["links"].toArray()[0].toObject()["latency_ns"].toDouble() > 0);
        QVERIFY(measured.json()["crowding"].isNull());
        const Outcome made =
            m_work.run("new 1f1b --model byte-gpt --cluster mine.json --devices 2 --microbatches 4 -o on-mine.json");
        QVERIFY2(made.code == 0, qPrintable(made.errors));
        QCOMPARE(m_work.run("predict on-mine.json").code, 0);
        QVERIFY(m_work.read("on-mine.json").contains("\"host memory, measured\""));
        QCOMPARE(m_work.run("devices --measure --devices 2 -o mine.json").code, 2); // it exists
        for (const char* wrong : {"devices --measure", "devices -o mine.json", "devices --measure -o mine.txt",
                                  "devices --measure --backend mpi -o other.json", "devices --devices 2",
                                  "devices --operations", "devices on-mine.json --measure -o other.json",
                                  "devices --measure --operations --backend torch -o other.json"})
            QVERIFY2(m_work.run(wrong).code == 2, wrong);
    }

    void theShapesOfADesignAreMeasuredAndItsPredictionSaysSo()
    {
        QCOMPARE(m_work.run("new 1f1b --model byte-gpt-small --devices 2 --microbatches 4 -o small.json").code, 0);
        const Outcome measured = m_work.run("devices small.json --measure --operations -o rated.json --json");
        QVERIFY2(measured.code == 0, qPrintable(measured.errors));
        const QJsonObject operations = measured.json()["operations"].toObject();
        QCOMPARE(operations["file"].toString(), QString("rated.rates.json"));
        QVERIFY(operations["shapes"].toInt() > 10);
        QVERIFY(operations["left_out"].toArray().isEmpty());
        const Outcome made = m_work.run(
            "new 1f1b --model byte-gpt-small --cluster rated.json --devices 2 --microbatches 4 -o on-rated.json");
        QVERIFY2(made.code == 0, qPrintable(made.errors));
        const Outcome predicted = m_work.run("predict on-rated.json");
        QVERIFY2(predicted.output.contains("rates: 100 % of shapes that were measured"), qPrintable(predicted.output));
        QVERIFY(predicted.output.contains("measured by pipewright devices --measure --operations"));
        const QJsonObject costs = m_work.run("predict on-rated.json --json").json()["costs"].toObject();
        QVERIFY(costs["rates_from"].toArray()[0].toObject()["name"].toString().endsWith("/rated.rates.json"));
        QVERIFY(costs["error"].isNull()); // no run was compared with these rates
        // Neither file is replaced without being asked.
        const Outcome again = m_work.run("devices small.json --measure --operations -o rated.json");
        QCOMPARE(again.code, 2);
        QVERIFY2(again.errors.contains("rated.rates.json"), qPrintable(again.errors));
    }
};

PIPEWRIGHT_TEST(TestCommands, QCoreApplication)
#include "tst_commands.moc"
