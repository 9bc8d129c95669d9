// SPDX-License-Identifier: GPL-3.0-or-later
// What `predict` says: published tables, bubbles, buses, noise, models and groups, by the real program.
#include "app/program.h"
#include "testmain.h"

#include <QTest>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

using namespace pipewright::test;

class TestPredictCommand : public QObject {
    Q_OBJECT

private:
    Workplace m_work;

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
        const QJsonObject object = m_work.predicted(design);
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
        const QJsonObject object = m_work.predicted(design);
        QCOMPARE(object["makespan_ns"].toInteger(), makespan * 1'000'000LL);
        const QJsonArray devices = object["per_device"].toArray();
        QCOMPARE(devices.size(), peaks.size());
        for (int device = 0; device < peaks.size(); ++device)
            QCOMPARE(devices.at(device).toObject()["peak_activations"].toDouble(), peaks[device]);
    }

    void predictPrintsTheKeysOfTheContract()
    {
        const QJsonObject object = m_work.predicted("zb-h1 --devices 8 --microbatches 24");
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
        QCOMPARE(
            object["per_device"].toArray().at(0).toObject().keys(),
            (QStringList{"busy_ns", "device", "idle_ns", "peak_activations", "peak_by_kind", "peak_bytes", "span_ns"}));
        const QJsonArray path = object["critical_path"].toArray();
        QCOMPARE(path.at(0).toObject()["block"].toString(), "F0.0");
        for (const auto& step : path)
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
        const QJsonObject object = m_work.predicted("uneven.json");
        const double span = object["span_ns"].toDouble(), ideal = object["ideal_ns"].toDouble();
        double work = 0;
        for (const QJsonValue device : object["per_device"].toArray())
            if (device["span_ns"].toDouble() == span)
                work = device["busy_ns"].toDouble();
        const QJsonValue bubble = object["bubble"];
        QVERIFY(std::abs(bubble["rate_papers"].toDouble() - (span - ideal) / span) < 1e-12);
        QVERIFY(std::abs(bubble["rate_span"].toDouble() - (span - work) / span) < 1e-12);
        QVERIFY(bubble["rate_span"].toDouble() > bubble["rate_papers"].toDouble() + 0.1);
        const QString text = m_work.run("predict uneven.json").output;
        for (const auto& [formula, name] :
             {std::pair("(span − its work) / span", "rate_span"), std::pair("(span − ideal) / span", "rate_papers")}) {
            const QString line = text.mid(text.indexOf(QString::fromUtf8(formula))).section('\n', 0, 0);
            const QString value = QString::number(100 * bubble[QLatin1String(name)].toDouble(), 'f', 2);
            QVERIFY2(line.contains(value) && line.contains(QLatin1String(name)), qPrintable(text));
        }
    }

    /// The update of a short sequence takes most of the step.
    void theBubbleOfTheMakespanIsTheIdleTimeOfTheTable()
    {
        for (const char* design : {"zb-v --devices 2 --microbatches 8 --model deepseek-v3 --sequence 256 "
                                   "--cluster h200-node",
                                   "pipedream --devices 4 --microbatches 8 --model llama-3-8b --cluster h200-node",
                                   "1f1b --devices 4 --microbatches 8"}) {
            const QJsonObject object = m_work.predicted(design);
            double idle = 0;
            const QJsonArray devices = object["per_device"].toArray();
            for (const QJsonValue device : devices)
                idle += device["idle_ns"].toDouble();
            const double rate = object["bubble"]["rate_makespan"].toDouble();
            QVERIFY2(std::abs(rate - idle / (double(devices.size()) * object["makespan_ns"].toDouble())) < 1e-12,
                     qPrintable(QString("%1: %2").arg(design).arg(rate)));
        }
        const QString text = m_work.run("predict 1f1b --devices 2 --microbatches 2").output;
        for (const char* words : {"rate_makespan  blocks and updates are work", "ratio_ideal    as Megatron"})
            QVERIFY2(text.contains(words), qPrintable(text));
    }

    void aSharedBusSaysHowItServes()
    {
        QCOMPARE(m_work.run("new 1f1b --devices 4 --microbatches 8 --transfer 100us -o bus.json").code, 0);
        const auto texts = [&] {
            const Outcome check = m_work.run("check bus.json");
            return m_work.run("predict bus.json").output + check.output + check.errors;
        };
        QVERIFY(!texts().contains("first served"));
        QVERIFY(!m_work.predicted("bus.json").contains("buses"));
        editCosts("bus.json", [](QJsonObject& costs) {
            QJsonObject link = costs["link"].toObject();
            link["bus"] = "switch";
            costs["link"] = link;
        });
        QCOMPARE(texts().count("first ready, first served"), 2);
        QCOMPARE(QJsonValue(m_work.predicted("bus.json"))["buses"]["names"].toString(), "switch");
    }

    void noiseGivesAMedianAndATail()
    {
        const QString design = "zb-h1 --devices 4 --microbatches 8 ";
        QVERIFY(!m_work.predicted(design).contains("spread"));
        const QJsonObject noisy = m_work.predicted(design + "--spread 5%");
        const QJsonValue spread = noisy["spread"];
        QVERIFY(spread["median_ns"].toInteger() > noisy["makespan_ns"].toInteger());
        QVERIFY(spread["p95_ns"].toInteger() > spread["median_ns"].toInteger());
        QCOMPARE(spread["samples"].toInt(), 400);
        QCOMPARE(m_work.predicted(design + "--spread 0.05"), noisy);
        QVERIFY(m_work.predicted(design + "--spread 5% --seed 2")["spread"] != spread);
        QVERIFY(QJsonValue(m_work.predicted(design + "--device-spread 5%"))["spread"]["p95_ns"].toInteger()
                > spread["p95_ns"].toInteger());
        QVERIFY(m_work.run("predict " + design + "--spread 5%").output.contains("95th percentile"));
        for (const char* wrong : {"--spread 5kg", "--spread 300%", "--spread -1%", "--spread nan", "--samples 0",
                                  "--families --by p95", "--families --by luck"})
            QCOMPARE(m_work.run("predict " + design + wrong).code, 2);
    }

    /// From a run to the slow step of another schedule: what was measured of the blocks goes along.
    void noiseCanBeWhatWasMeasured()
    {
        QCOMPARE(m_work.run("new 1f1b --devices 2 --microbatches 4 -o plain.json").code, 0);
        const Outcome unknown = m_work.run("predict plain.json --spread measured");
        QVERIFY2(unknown.code != 0 && unknown.errors.contains("calibrate"), qPrintable(unknown.errors));
        editCosts("plain.json", [](QJsonObject& costs) {
            QJsonArray stages = costs["stages"].toArray();
            for (int s = 0; s < stages.size(); ++s) {
                QJsonObject stage = stages[s].toObject();
                stage["spread"] = QJsonObject{{"forward", 0.2}, {"backward", 0.2}};
                stages[s] = stage;
            }
            costs["stages"] = stages;
        });
        const QJsonObject measured = m_work.predicted("plain.json --spread measured")["spread"].toObject();
        const QJsonObject stated = m_work.predicted("plain.json --spread 20%")["spread"].toObject();
        QCOMPARE(measured["p95_ns"], stated["p95_ns"]);
        QCOMPARE(measured["measured"].toBool(), true);
        QVERIFY(m_work.run("predict plain.json --spread measured").output.contains("blocks as measured"));
        QCOMPARE(m_work.run("new gpipe --costs-from plain.json --devices 2 --microbatches 4 -o other.json").code, 0);
        QVERIFY(QJsonValue(m_work.predicted("other.json --spread measured"))["spread"]["p95_ns"].toInteger()
                > m_work.predicted("other.json")["makespan_ns"].toInteger());
    }

    void familiesAreRankedByTheTail()
    {
        const QString design = "1f1b --devices 4 --microbatches 8 --families ";
        const auto times = [&](const QString& words, const char* key) {
            std::vector<qint64> found;
            for (const QJsonValue entry : m_work.predicted(design + words)["families"].toArray())
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
            return m_work.predicted(design + sizes)["per_device"]
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
        QCOMPARE(m_work.predicted("same.json"), m_work.predicted(design));
        QCOMPARE(m_work.run("check same.json").code, 0);
    }

    void aModelPresetBringsItsOwnTimes()
    {
        const QJsonObject object =
            m_work.predicted("1f1b --devices 8 --microbatches 16 --model llama-3-8b --cluster h100-node");
        QVERIFY(object["makespan_ns"].toInteger() > 0);
        QVERIFY(object["per_device"].toArray().at(0).toObject()["peak_bytes"].toInteger() > 1LL << 30);
        const QJsonObject faster = m_work.predicted("1f1b --devices 8 --microbatches 16 --model llama-3-8b "
                                                    "--forward 1ns --input-grad 1ms --weight-grad 1ms");
        QVERIFY(faster["ideal_ns"].toInteger() > 0);
        QVERIFY(faster["ideal_ns"].toInteger() < object["ideal_ns"].toInteger());
    }

    /// 30 layers, embedding and head on 32 stages (arXiv 2405.15362).
    void embeddingAndHeadMayStandAlone()
    {
        const QString ones = QStringList(QList<QString>(32, "1")).join(',');
        const QJsonObject object =
            m_work.predicted("v-half --devices 16 --microbatches 32 --model gpt-9.6b --layers-per-stage " + ones);
        QCOMPARE(object["stages"].toInt(), 32);
        QCOMPARE(object["per_device"].toArray().at(8).toObject()["peak_activations"].toDouble(), 9.0);
    }

    void aLayoutOfMegatronSaysTheLayersPerStage()
    {
        const QString llama = "1f1b --devices 4 --microbatches 8 --model llama-3-8b --cluster h100-node "
                              "--layers-per-stage ";
        const QJsonObject numbers = m_work.predicted(llama + "7,9,9,7");
        for (const char* layout : {"Et*7|(t*9|)*2t*7L", "t*7|(t*9|)*2,t*7", "Et*7|t*9|t*9|t*7,mL"})
            QCOMPARE(m_work.predicted(llama + layout), numbers);
        const Outcome wrong = m_work.run("predict " + llama + "Et*7|t*9|t*9|Lt*7");
        QVERIFY2(wrong.code == 2 && wrong.errors.contains("--layers-per-stage")
                     && wrong.errors.contains("a loss (L) before another layer"),
                 qPrintable(wrong.errors));
        QCOMPARE(m_work.run("predict " + llama + "7,,9,9").code, 2);
    }

    void howTransfersRunCanBeStated()
    {
        const QString family = "interleaved-1f1b --devices 4 --microbatches 8 --chunks 2 --transfer 200us";
        const auto step = [&](const QString& words) {
            return m_work.predicted(family + words)["makespan_ns"].toInteger();
        };
        QCOMPARE(step(" --communication overlapped"), step(""));
        QVERIFY(step(" --communication one-stream") > step(""));
        QVERIFY(step(" --communication blocking") > step(" --communication one-stream"));
        QCOMPARE(m_work.predicted(family + " --communication one-stream")["communication"].toString(),
                 QString("one-stream"));
        QCOMPARE(m_work.run("predict " + family + " --communication two-streams").code, 2);
    }

    void groupsOfDevicesArePredictedAndNotRun()
    {
        const QString model = "1f1b --devices 4 --microbatches 8 --model llama-3-8b --cluster h100-nodes";
        const QJsonObject alone = m_work.predicted(model);
        const QJsonObject group = m_work.predicted(model
                                                   + " --tensor-parallel 4 --sequence-parallel --context-parallel 2 "
                                                     "--data-parallel 3 --recompute block");
        QCOMPARE(group["devices"].toInt(), 32);
        QCOMPARE(group["parallel"].toObject()["devices_in_all"].toInt(), 96);
        const QJsonArray devices = group["per_device"].toArray();
        QCOMPARE(devices.size(), 32);
        QCOMPARE(devices.at(15).toObject()["device"].toInt(), 15);
        QCOMPARE(devices.at(15).toObject()["group"].toInt(), 1);
        QCOMPARE(devices.at(8).toObject()["peak_bytes"], devices.at(15).toObject()["peak_bytes"]);
        QVERIFY(group["makespan_ns"].toInteger() < alone["makespan_ns"].toInteger() / 3);
        QVERIFY(group["tokens_per_second"].toDouble() > 9 * alone["tokens_per_second"].toDouble());
        QVERIFY(group["model_flops_utilization"].toDouble() < alone["model_flops_utilization"].toDouble());
        QVERIFY(!alone.contains("parallel"));
        // What they exchange runs beside computing, and other nodes have other cards to share.
        const QString degrees = " --tensor-parallel 4 --sequence-parallel --context-parallel 2 --data-parallel 3";
        const QJsonObject plain = m_work.predicted(model + degrees);
        const QJsonObject hidden = m_work.predicted(model + degrees + " --overlap-exchanges 0.5");
        QCOMPARE(hidden["parallel"].toObject()["overlap"].toDouble(), 0.5);
        QVERIFY(hidden["makespan_ns"].toInteger() < plain["makespan_ns"].toInteger());
        const QJsonObject thin = m_work.predicted(
            model + degrees + " --nodes 12 --cards-per-node 1 --nodes-per-switch 2 --oversubscription 4");
        QVERIFY(thin["makespan_ns"].toInteger() > plain["makespan_ns"].toInteger());
        const QJsonObject narrow = m_work.predicted(model + degrees + " --efficiency 0.5 --half-rate-width 1400");
        QVERIFY(narrow["makespan_ns"].toInteger() > plain["makespan_ns"].toInteger());
        const Outcome few = m_work.run("predict " + model + degrees + " --nodes 11");
        QCOMPARE(few.code, 2);
        QVERIFY2(few.errors.contains("96 devices are needed, and 11 nodes of 8 have 88"), qPrintable(few.errors));

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
        // Recomputation leaves one device to a stage, and trains.
        QCOMPARE(
            m_work.run("new 1f1b --devices 2 --microbatches 2 --model byte-gpt --recompute block:0 -o again.json").code,
            0);
        const QJsonObject again = m_work.run("predict again.json --json").json();
        QCOMPARE(again["blocks"].toInt(), 10);
        QCOMPARE(again["recompute"].toArray(), (QJsonArray{"block", "none"}));
        const Outcome run = m_work.run("run again.json --backend host --steps 1 -o again.db --json");
        QCOMPARE(run.json()["gradient_check"].toObject()["bit_equal"].toBool(), true);
        QCOMPARE(run.json()["peak_bytes"], run.json()["predicted_peak_bytes"]);
    }

    void overlappedPairsSayWhetherTheirLengthIsComputed()
    {
        const auto pairsOf = [this](const QString& words) {
            return m_work.predicted(words)["overlapped_pairs"].toString();
        };
        const QString experts = "dualpipe-v --devices 4 --microbatches 10 --model mixtral-8x7b --cluster h200-nodes "
                                "--expert-parallel 8 --data-parallel 8";
        QVERIFY2(pairsOf(experts).endsWith("computed from their parts in the shortest order"),
                 qPrintable(pairsOf(experts)));
        QVERIFY(pairsOf(experts + " --overlap-factor 0.8").endsWith("assumed: 0.8 times the sum of the two blocks"));
        QVERIFY(pairsOf("dualpipe-v --devices 4 --microbatches 10").contains("assumed: 1 times"));
        QVERIFY(pairsOf("1f1b --devices 4 --microbatches 10").isEmpty());
        QVERIFY(m_work.run("predict " + experts).output.contains("overlapped pairs: "));
    }

    void stagesOffloadFromTheCommandLine()
    {
        const QString design = "new gpipe --devices 2 --microbatches 6 --model byte-gpt --cluster host ";
        QCOMPARE(m_work.run(design + "-o kept.json").code, 0);
        QCOMPARE(m_work.run(design + "--offload 0 -o offload.json").code, 0);
        const QJsonObject kept = m_work.run("predict kept.json --json").json(),
                          with = m_work.run("predict offload.json --json").json();
        QCOMPARE(with["offload"].toArray(), (QJsonArray{true, false}));
        QVERIFY(with["offloads"].toInt() > 0);
        const auto peakOf = [](const QJsonObject& of, const char* key) {
            return of["per_device"].toArray()[0].toObject()[key].toInteger();
        };
        QVERIFY(peakOf(with, "peak_bytes") < peakOf(kept, "peak_bytes"));
        QVERIFY(peakOf(with, "host_peak_bytes") > 0);
        QVERIFY(m_work.run("predict offload.json").output.contains("stages 0 offload"));
        // Kept in the file, checked, run.
        QCOMPARE(m_work.run("check offload.json --for host").code, 0);
        QCOMPARE(m_work.run("check offload.json --for mpi").code, 0);
        const Outcome run = m_work.run("run offload.json --backend host --steps 2 -o offload.db --json");
        QVERIFY2(run.code == 0, qPrintable(run.errors));
        QCOMPARE(run.json()["gradient_check"].toObject()["bit_equal"].toBool(), true);
        QCOMPARE(run.json()["peak_bytes"], run.json()["predicted_peak_bytes"]);
        QCOMPARE(run.json()["host_bytes"], run.json()["predicted_host_bytes"]);
        QCOMPARE(run.json()["allocated_bytes"], run.json()["predicted_allocated_bytes"]);
        const Outcome told = m_work.run("run offload.json --backend host --steps 1 -o told.db");
        QVERIFY2(told.output.contains("device 0 offloaded up to "), qPrintable(told.output));
        // The copies are in the trace and in what is exported of it.
        for (const char* words : {"compare offload.json offload.db", "explain offload.db",
                                  "calibrate offload.json offload.db --busy-machine -o calibrated.json",
                                  "export offload.json --to chrome -o offload.trace.json",
                                  "export offload.json --to perfetto -o offload.pftrace"}) {
            const Outcome outcome = m_work.run(words);
            QVERIFY2(outcome.code == 0, qPrintable(outcome.errors));
        }
        QVERIFY(m_work.read("offload.trace.json").contains("F0.0 to host memory"));
        const Outcome other = m_work.run("export offload.json --to pytorch-csv -o offload.csv");
        QVERIFY2(other.code != 0 && other.errors.contains("save_on_cpu"), qPrintable(other.errors));
        const qint64 limit = (peakOf(with, "peak_bytes") + peakOf(kept, "peak_bytes")) / 2;
        const Outcome searched = m_work.run("search kept.json --offload auto --time-limit 3s --json -o searched.json "
                                            "--memory-limit "
                                            + QString::number(limit) + "B");
        QVERIFY2(searched.code == 0, qPrintable(searched.errors));
        QVERIFY(peakOf(m_work.run("predict searched.json --json").json(), "peak_bytes") <= limit);
        const QJsonArray curve = searched.json()["curve"].toArray();
        QVERIFY(curve.size() > 1 && curve.first()["share"].toDouble() == 0);
        QVERIFY(curve.last()["share"].toDouble() > 0);
        QVERIFY(curve.last()["peak_bytes"].toDouble() <= curve.first()["peak_bytes"].toDouble());
        const Outcome plain = m_work.run("search offload.json --time-limit 1s -o again.json --force");
        QVERIFY2(plain.code != 0 && plain.errors.contains("--offload auto"), qPrintable(plain.errors));
        const Outcome automatic = m_work.run(design + "--offload auto -o auto.json");
        QVERIFY2(automatic.code == 0 && automatic.errors.contains("--offload auto"), qPrintable(automatic.errors));
    }

    /// Of long schedules the buffers take much longer to plan than the step to predict.
    void whatARunWouldAllocateIsCountedOrItIsSaidWhyNot()
    {
        const QString design = "predict 1f1b --devices 2 --microbatches %1 --json";
        const QJsonObject usual = m_work.run(design.arg(4)).json();
        QCOMPARE(usual["predicted_allocated_bytes"].toArray().size(), 2);
        QVERIFY(!usual.contains("not_allocated"));
        const QJsonObject large = m_work.run(design.arg(30'000)).json();
        QVERIFY(large["not_allocated"].toString().contains("--for host"));
        QVERIFY(!large.contains("predicted_allocated_bytes"));
        const Outcome unknown = m_work.run(design.arg(4) + " --for abacus");
        QVERIFY2(unknown.code == 2 && unknown.errors.contains("is no backend"), qPrintable(unknown.errors));
    }
};

PIPEWRIGHT_TEST(TestPredictCommand, QCoreApplication)
#include "tst_predictcommand.moc"
