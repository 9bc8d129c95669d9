// SPDX-License-Identifier: GPL-3.0-or-later
// The commands as a person or a script uses them: the real program in a process of its own.
#include "app/program.h"
#include "testmain.h"

#include <QFileInfo>
#include <QTemporaryDir>
#include <QTest>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

using namespace pipewright::test;

class TestCommands : public QObject {
    Q_OBJECT

private:
    Workplace m_work;

    QJsonObject predictInline(const QString& words)
    {
        const Outcome outcome = m_work.run("predict " + words + " --json");
        if (outcome.code != 0)
            qWarning("%s", qPrintable(outcome.errors));
        return outcome.json();
    }

    void editCosts(const QString& file, const std::function<void(QJsonObject&)>& change)
    {
        QJsonObject design = QJsonDocument::fromJson(m_work.read(file)).object();
        QJsonObject costs = design["costs"].toObject();
        change(costs);
        design["costs"] = costs;
        m_work.write(file, QJsonDocument(design).toJson());
    }

private Q_SLOTS:
    void publishedBubbleRatesAreReproduced_data()
    {
        QTest::addColumn<QString>("design");
        QTest::addColumn<double>("rate");
        // arXiv 2401.10241, tables 5 and 9: F, B and W of one device's worth of layers, c between devices.
        const QString small24 = " --devices 8 --microbatches 24 --forward 18.522ms --input-grad 18.086ms "
                                "--weight-grad 9.337ms --transfer 0.601ms";
        const QString small64 = " --devices 8 --microbatches 64 --forward 18.546ms --input-grad 18.097ms "
                                "--weight-grad 9.321ms --transfer 762us";
        const QString large24 = " --devices 8 --microbatches 24 --forward 29.718ms --input-grad 29.444ms "
                                "--weight-grad 19.927ms --transfer 527us";
        QTest::newRow("1.5B m=24 1F1B") << "1f1b" + small24 << 0.2431;
        QTest::newRow("1.5B m=24 ZB-H1") << "zb-h1" + small24 << 0.1585;
        QTest::newRow("1.5B m=24 ZB-H2") << "zb-h2" + small24 << 0.1083;
        QTest::newRow("1.5B m=64 1F1B") << "1f1b" + small64 << 0.1240;
        QTest::newRow("1.5B m=64 ZB-H1") << "zb-h1" + small64 << 0.0674;
        QTest::newRow("1.5B m=64 ZB-H2") << "zb-h2" + small64 << 0.0444;
        QTest::newRow("6.2B m=24 1F1B") << "1f1b" + large24 << 0.2347;
        QTest::newRow("6.2B m=24 ZB-H1") << "zb-h1" + large24 << 0.1323;
        QTest::newRow("6.2B m=24 ZB-H2") << "zb-h2" + large24 << 0.0698;
        // Table 8: per chunk of a V-shaped pipeline, hence two of them make a linear stage.
        const QString chunks = " --devices 16 --microbatches 48 --forward 28814us --input-grad 28760us "
                               "--weight-grad 19352us --transfer 1610us";
        QTest::newRow("p=16 1F1B") << "1f1b" + chunks << 0.2668;
        QTest::newRow("p=16 ZB-H1") << "zb-h1" + chunks << 0.1536;
        QTest::newRow("p=16 ZB-H2") << "zb-h2" + chunks << 0.0823;
    }

    void publishedBubbleRatesAreReproduced()
    {
        QFETCH(QString, design);
        QFETCH(double, rate);
        const QJsonObject object = predictInline(design);
        const double found = object["bubble"]["rate_span"].toDouble();
        QCOMPARE(std::round(found * 10'000) / 10'000, rate);
    }

    void unitPassesGiveTheKnownMakespansAndPeaks_data()
    {
        QTest::addColumn<QString>("design");
        QTest::addColumn<int>("makespan"); // milliseconds
        QTest::addColumn<QList<double>>("peaks");
        const QString eight = " --devices 4 --microbatches 8";
        QTest::newRow("GPipe") << "gpipe" + eight << 33 << QList<double>{8, 8, 8, 8};
        QTest::newRow("1F1B") << "1f1b" + eight << 33 << QList<double>{4, 3, 2, 1};
        QTest::newRow("eager 1F1B") << "eager-1f1b" + eight << 33 << QList<double>{7, 5, 3, 1};
        QTest::newRow("interleaved") << "interleaved-1f1b" + eight + " --chunks 2 --per-chunk" << 57
                                     << QList<double>{5.5, 4.5, 3.5, 2.5};
        QTest::newRow("looped BFS") << "looped-bfs" + eight + " --chunks 2 --per-chunk" << 57
                                    << QList<double>{8, 8, 8, 8};
        QTest::newRow("ZB-H1") << "zb-h1" + eight << 27 << QList<double>{4, 4, 4, 4};
        QTest::newRow("ZB-H2") << "zb-h2" + eight << 27 << QList<double>{7, 7, 7, 7};
        QTest::newRow("1F1B m=12") << "1f1b --devices 4 --microbatches 12" << 45 << QList<double>{4, 3, 2, 1};
    }

    void unitPassesGiveTheKnownMakespansAndPeaks()
    {
        QFETCH(QString, design);
        QFETCH(int, makespan);
        QFETCH(QList<double>, peaks);
        const QJsonObject object = predictInline(design);
        QCOMPARE(object["makespan_ns"].toInteger(), makespan * 1'000'000LL);
        const QJsonArray devices = object["per_device"].toArray();
        QCOMPARE(devices.size(), peaks.size());
        for (int device = 0; device < peaks.size(); ++device)
            QCOMPARE(devices.at(device).toObject()["peak_activations"].toDouble(), peaks[device]);
    }

    void predictPrintsTheKeysOfTheContract()
    {
        const QJsonObject object = predictInline("zb-h1 --devices 8 --microbatches 24");
        QCOMPARE(object["family"].toString(), "zb-h1");
        QCOMPARE(object["devices"].toInt(), 8);
        QCOMPARE(object["stages"].toInt(), 8);
        QCOMPARE(object["microbatches"].toInt(), 24);
        QCOMPARE(object["blocks"].toInt(), 576);
        QCOMPARE(object["transfers"].toInt(), 336);
        for (const char* key : {"makespan_ns", "span_ns", "ideal_ns"})
            QVERIFY2(object[key].isDouble(), key);
        QCOMPARE(object["bubble"].toObject().keys(),
                 (QStringList{"rate_makespan", "rate_papers", "rate_span", "ratio_ideal"}));
        QCOMPARE(object["per_device"].toArray().at(0).toObject().keys(),
                 (QStringList{"busy_ns", "device", "idle_ns", "peak_activations", "peak_bytes", "span_ns"}));
        const QJsonArray path = object["critical_path"].toArray();
        QCOMPARE(path.at(0).toObject()["block"].toString(), "F0.0");
        for (const QJsonValue& step : path)
            QVERIFY(
                QRegularExpression("^[FBIW][0-9]+\\.[0-9]+$").match(step.toObject()["block"].toString()).hasMatch());
    }

    void unevenStagesHaveTheBubblesThatTheirFormulasGive()
    {
        QCOMPARE(m_work.run("new 1f1b --devices 4 --microbatches 8 -o uneven.json").code, 0);
        editCosts("uneven.json", [](QJsonObject& costs) {
            QJsonArray stages = costs["stages"].toArray();
            for (int s = 0; s < stages.size(); ++s) {
                QJsonObject stage = stages[s].toObject();
                stage["forward"] = QString("%1ms").arg(1 + 3 * s);
                stages[s] = stage;
            }
            costs["stages"] = stages;
        });
        const QJsonObject object = predictInline("uneven.json");
        const double span = object["span_ns"].toDouble(), ideal = object["ideal_ns"].toDouble();
        double work = 0;
        for (const QJsonValue& device : object["per_device"].toArray())
            if (device["span_ns"].toDouble() == span)
                work = device["busy_ns"].toDouble();
        const QJsonValue bubble = object["bubble"];
        QVERIFY(std::abs(bubble["rate_papers"].toDouble() - (span - ideal) / span) < 1e-12);
        QVERIFY(std::abs(bubble["rate_span"].toDouble() - (span - work) / span) < 1e-12);
        QVERIFY(bubble["rate_span"].toDouble() > bubble["rate_papers"].toDouble() + 0.1);
        const QString text = m_work.run("predict uneven.json").output;
        for (const auto& [formula, name] :
             {std::pair("(span - its work) / span", "rate_span"), std::pair("(span - ideal) / span", "rate_papers")}) {
            const QString line = text.mid(text.indexOf(formula)).section('\n', 0, 0);
            const QString value = QString::number(100 * bubble[QLatin1String(name)].toDouble(), 'f', 2);
            QVERIFY2(line.contains(value) && line.endsWith(QLatin1String(name)), qPrintable(text));
        }
    }

    void aSharedBusSaysHowItServes()
    {
        QCOMPARE(m_work.run("new 1f1b --devices 4 --microbatches 8 --transfer 100us -o bus.json").code, 0);
        const auto texts = [&] {
            const Outcome check = m_work.run("check bus.json");
            return m_work.run("predict bus.json").output + check.output + check.errors;
        };
        QVERIFY(!texts().contains("first served"));
        QVERIFY(!predictInline("bus.json").contains("buses"));
        editCosts("bus.json", [](QJsonObject& costs) {
            QJsonObject link = costs["link"].toObject();
            link["bus"] = "switch";
            costs["link"] = link;
        });
        QCOMPARE(texts().count("first ready, first served"), 2);
        QCOMPARE(QJsonValue(predictInline("bus.json"))["buses"]["names"].toString(), "switch");
    }

    void noiseGivesAMedianAndATail()
    {
        const QString design = "zb-h1 --devices 4 --microbatches 8 ";
        QVERIFY(!predictInline(design).contains("spread"));
        const QJsonObject noisy = predictInline(design + "--spread 5%");
        const QJsonValue spread = noisy["spread"];
        QVERIFY(spread["median_ns"].toInteger() > noisy["makespan_ns"].toInteger());
        QVERIFY(spread["p95_ns"].toInteger() > spread["median_ns"].toInteger());
        QCOMPARE(spread["samples"].toInt(), 400);
        QCOMPARE(predictInline(design + "--spread 0.05"), noisy);
        QVERIFY(predictInline(design + "--spread 5% --seed 2")["spread"] != spread);
        QVERIFY(QJsonValue(predictInline(design + "--device-spread 5%"))["spread"]["p95_ns"].toInteger()
                > spread["p95_ns"].toInteger());
        QVERIFY(m_work.run("predict " + design + "--spread 5%").output.contains("95th percentile"));
        for (const char* wrong : {"--spread 5kg", "--spread 300%", "--spread -1%", "--spread nan", "--samples 0",
                                  "--families --by p95", "--families --by luck"})
            QCOMPARE(m_work.run("predict " + design + wrong).code, 2);
    }

    void familiesAreRankedByTheTail()
    {
        const QString design = "1f1b --devices 4 --microbatches 8 --families ";
        const auto times = [&](const QString& words, const char* key) {
            std::vector<qint64> found;
            for (const QJsonValue& entry : predictInline(design + words)["families"].toArray())
                if (entry["reason"].isUndefined())
                    found.push_back(
                        (QLatin1String(key) == QLatin1String("makespan_ns") ? entry[key] : entry["spread"][key])
                            .toInteger());
            return found;
        };
        for (const auto& [words, key] :
             {std::pair("", "makespan_ns"), std::pair("--spread 10% --by median", "median_ns"),
              std::pair("--spread 10% --by p95", "p95_ns")}) {
            const std::vector<qint64> found = times(words, key);
            QVERIFY2(found.size() > 10, words);
            QVERIFY2(std::is_sorted(found.begin(), found.end()), words);
        }
        QVERIFY(m_work.run("predict " + design + "--spread 10% --by p95").output.contains("95th percentile"));
    }

    void givenBytesCountPerDevice()
    {
        const QString sizes = " --saved 8MiB --saved-for-weight-grad 3MiB";
        const auto peak = [&](const QString& design, int device) {
            return predictInline(design + sizes)["per_device"]
                .toArray()
                .at(device)
                .toObject()["peak_bytes"]
                .toInteger();
        };
        QCOMPARE(peak("1f1b --devices 4 --microbatches 8", 0), 4 * 8LL << 20);
        QCOMPARE(peak("1f1b --devices 4 --microbatches 8", 3), 8LL << 20);
        // A chunk keeps half: 11 chunks are live on device 0.
        QCOMPARE(peak("interleaved-1f1b --devices 4 --microbatches 8 --chunks 2", 0), 11 * 4LL << 20);
    }

    void aDesignIsTheSameInlineAndInAFile()
    {
        const QString design = "1f1b --devices 4 --microbatches 6 --forward 3ms --transfer 100us";
        QCOMPARE(m_work.run("new " + design + " -o same.json").code, 0);
        QCOMPARE(predictInline("same.json"), predictInline(design));
        QCOMPARE(m_work.run("check same.json").code, 0);
    }

    void aModelPresetBringsItsOwnTimes()
    {
        const QJsonObject object =
            predictInline("1f1b --devices 8 --microbatches 16 --model llama-3-8b --cluster h100-node");
        QVERIFY(object["makespan_ns"].toInteger() > 0);
        QVERIFY(object["per_device"].toArray().at(0).toObject()["peak_bytes"].toInteger() > 1LL << 30);
        const QJsonObject faster = predictInline("1f1b --devices 8 --microbatches 16 --model llama-3-8b --forward 1ns");
        QVERIFY(faster["ideal_ns"].toInteger() > 0);
        QVERIFY(faster["ideal_ns"].toInteger() < object["ideal_ns"].toInteger());
    }

    /// 30 layers, embedding and head on 32 stages (arXiv 2405.15362).
    void embeddingAndHeadMayStandAlone()
    {
        const QString ones = QStringList(QList<QString>(32, "1")).join(',');
        const QJsonObject object =
            predictInline("v-half --devices 16 --microbatches 32 --model gpt-9.6b --layers-per-stage " + ones);
        QCOMPARE(object["stages"].toInt(), 32);
        QCOMPARE(object["per_device"].toArray().at(8).toObject()["peak_activations"].toDouble(), 9.0);
    }

    void groupsOfDevicesArePredictedAndNotRun()
    {
        const QString model = "1f1b --devices 4 --microbatches 8 --model llama-3-8b --cluster h100-nodes";
        const QJsonObject alone = predictInline(model);
        const QJsonObject group = predictInline(model
                                                + " --tensor-parallel 4 --sequence-parallel --context-parallel 2 "
                                                  "--data-parallel 3 --recompute selective");
        QCOMPARE(group["devices"].toInt(), 32);
        QCOMPARE(group["parallel"].toObject()["devices_in_all"].toInt(), 96);
        const QJsonArray devices = group["per_device"].toArray();
        QCOMPARE(devices.size(), 32);
        QCOMPARE(devices.at(15).toObject()["device"].toInt(), 15);
        QCOMPARE(devices.at(15).toObject()["group"].toInt(), 1);
        QCOMPARE(devices.at(8).toObject()["peak_bytes"], devices.at(15).toObject()["peak_bytes"]);
        QVERIFY(group["makespan_ns"].toInteger() < alone["makespan_ns"].toInteger() / 4);
        QVERIFY(group["tokens_per_second"].toDouble() > 12 * alone["tokens_per_second"].toDouble());
        QVERIFY(group["model_flops_utilization"].toDouble() < alone["model_flops_utilization"].toDouble());
        QVERIFY(!alone.contains("parallel"));

        // A model that trains here, and one whose blocks could be timed: neither is run on fewer devices than it has.
        for (const char* of : {"byte-gpt", "llama-3-8b"}) {
            const QString degrees = " --tensor-parallel 2 -o group.json --force";
            QCOMPARE(m_work.run("new 1f1b --devices 2 --microbatches 2 --model " + QString(of) + degrees).code, 0);
            QCOMPARE(m_work.run("predict group.json --json").json()["devices"].toInt(), 4);
            for (const char* how : {"", " --synthetic"}) {
                const Outcome run = m_work.run("run group.json --backend host --steps 1 -o group.db" + QString(how));
                QCOMPARE(run.code, 2);
                QVERIFY2(run.errors.contains("a stage stands for 2 devices (tensor 2)"), qPrintable(run.errors));
            }
        }
        // Recomputation alone leaves one device to a stage; it is not trained.
        QCOMPARE(
            m_work.run("new 1f1b --devices 2 --microbatches 2 --model byte-gpt --recompute full -o again.json").code,
            0);
        const Outcome run = m_work.run("run again.json --backend host --steps 1 -o again.db");
        QVERIFY2((run.output + run.errors).contains("full recomputation"), qPrintable(run.output + run.errors));
    }

    void everyCommandHasHelp()
    {
        for (const char* command :
             {"", "new", "predict", "check", "run", "compare", "calibrate", "render", "devices"}) {
            const Outcome outcome = m_work.run(QString(command) + " --help");
            QCOMPARE(outcome.code, 0);
            QVERIFY(outcome.output.contains("Usage"));
        }
    }

    void badUsageIsExitCodeTwo_data()
    {
        QTest::addColumn<QString>("words");
        QTest::addColumn<QString>("message");
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
        QTest::newRow("a recomputation nobody knows")
            << "predict 1f1b --devices 2 --microbatches 2 --model llama-3-8b --recompute some"
            << "none|selective|full";
        QTest::newRow("more devices than nodes")
            << "predict 1f1b --devices 8 --microbatches 8 --model llama-3-8b --cluster h100-nodes --data-parallel 513"
            << "4104 devices are needed";
        QTest::newRow("family options beside a file") << "predict made.json --devices 2"
                                                      << "--devices";
        QTest::newRow("a picture of no kind") << "render made.json -o picture.gif"
                                              << ".svg or .png";
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
        for (const char* option : {"-o x.csv", "--table x.csv", "--database x.db", "--steps 3", "--seeds 2"})
            QTest::newRow(option) << QString("experiment made.json --toy chain ") + option
                                  << "has no meaning for a toy";
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

    void noVariableMakesARunWriteAFile()
    {
        m_work.run("new 1f1b --devices 2 --microbatches 2 -o own.json --force");
        const QByteArray before = m_work.read("own.json");
        for (const char* words : {"run own.json --backend host --maths timed --steps 1 -o verdict.db --force",
                                  "run nowhere.json --backend mpi --steps 1 -o verdict.db --force"})
            for (const char* file : {"own.json", "new-file"})
                m_work.shell(
                    QString("PIPEWRIGHT_VERDICT=%1 OMPI_COMM_WORLD_RANK=0 \"$pipewright\" %2").arg(file, words));
        QCOMPARE(m_work.read("own.json"), before);
        QVERIFY(!QFile::exists(m_work.path("new-file")));
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
        for (const char* backend : {"cuda", "mpi"})
            if (!object[backend]["available"].toBool())
                QVERIFY2(!object[backend]["reason"].toString().isEmpty(), backend);
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
            || !bring(standIns + "plugin_good.so", "pipewright_cuda.so"))
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
        QCOMPARE(cuda["plugin"].toString(), folder.filePath("pipewright_cuda.so"));
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
        QVERIFY(QFile::remove(folder.filePath("pipewright_cuda.so")));
        process.start(folder.filePath("pipewright"), {"devices", "--json"});
        const QJsonObject without = Workplace::finish(process).json()["cuda"].toObject();
        QVERIFY(!without["available"].toBool());
        QVERIFY(without["reason"].toString().contains("plugin"));
        QVERIFY(!without.contains("gpus"));
    }
};

PIPEWRIGHT_TEST(TestCommands, QCoreApplication)
#include "tst_commands.moc"
