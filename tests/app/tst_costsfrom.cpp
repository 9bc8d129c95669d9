// SPDX-License-Identifier: GPL-3.0-or-later
// The loop that a person goes through: record one schedule, carry its costs to others, run those. Three devices of
// different pace, with gaps of the host before their blocks, under the virtual clock, which keeps time as sleeping
// blocks would. With blocks that really sleep: tests/bench/costsfrom.py.
#include "app/program.h"
#include "core/design/designbuilder.h"
#include "core/design/redesign.h"
#include "core/files/designfile.h"
#include "core/predict/predict.h"
#include "testmain.h"
#include "traces/import/kineto.h"

#include <QTest>

using namespace pipewright;
using namespace pipewright::test;

class TestCostsFrom : public QObject {
    Q_OBJECT

private:
    Workplace m_work;
    static constexpr Nanoseconds usualGap = 200'000;

    /// What the machine really does under a family.
    void writeTruth(const char* family, double pace = 1)
    {
        DesignRequest request;
        request.family = family;
        request.devices = 3;
        request.microbatches = 6;
        request.cluster = "host";
        Design design = makeDesign(request);
        Cluster cluster = design.cluster;
        cluster.devices[0].efficiency *= 0.7;
        cluster.devices[2].efficiency *= 0.85;
        for (DeviceSpec& device : cluster.devices)
            device.efficiency *= pace;
        design = withCluster(design, cluster);
        // Before a block some hundredths of what it takes, different on every device and for every operation.
        design.costs.hostGaps.assign(3, {});
        for (int d = 0; d < 3; ++d)
            for (const Op op : allOps)
                design.costs.hostGaps[static_cast<std::size_t>(d)].before[indexOf(op)] =
                    usualGap * (2 + d) / 2 + usualGap / 7 * static_cast<Nanoseconds>(indexOf(op));
        writeDesign(design, m_work.path(QString("true ") + family + ".json").replace(' ', '-').toStdString(), true);
    }

    double runOf(const QString& family)
    {
        const Outcome run = m_work.run("run true-" + family
                                       + ".json --backend host --maths timed --clock virtual "
                                         "--steps 2 --force --json -o "
                                       + family + ".db");
        return run.code != 0 ? -1 : run.json()["step_ns"].toArray().last().toDouble();
    }

private Q_SLOTS:
    void oneRunPredictsTheOtherSchedules_data()
    {
        QTest::addColumn<QString>("recorded");
        for (const char* family : {"1f1b", "zb-h1", "interleaved-1f1b"})
            QTest::newRow(family) << family;
    }

    void oneRunPredictsTheOtherSchedules()
    {
        QFETCH(QString, recorded);
        struct Known {
            const char* family;
            double measured, predicted;
        };
        std::vector<Known> known;
        for (const char* family : {"gpipe", "1f1b", "eager-1f1b", "interleaved-1f1b", "looped-bfs", "zb-h1", "zb-h2",
                                   "zb-v", "v-half", "v-min"}) {
            writeTruth(family);
            known.push_back({family, runOf(family), 0});
            QVERIFY2(known.back().measured > 0, family);
        }
        for (Known& each : known) {
            const Outcome outcome =
                m_work.run(QString("predict %1 --costs-from %2.db --json").arg(each.family, recorded));
            QVERIFY2(outcome.code == 0, qPrintable(outcome.errors));
            each.predicted = outcome.json()["makespan_ns"].toDouble();
            const double error = each.predicted / each.measured - 1;
            QVERIFY2(std::abs(error) < 0.015, qPrintable(QString("%1: %2").arg(each.family).arg(error)));
        }
        for (const Known& a : known)
            for (const Known& b : known)
                if (a.measured < 0.99 * b.measured)
                    QVERIFY2(a.predicted < b.predicted, qPrintable(QString("%1, %2").arg(a.family, b.family)));
    }

    void whatIsEstimatedIsSaid()
    {
        writeTruth("1f1b");
        QVERIFY(runOf("1f1b") > 0);
        const Outcome calibrated = m_work.run("calibrate true-1f1b.json 1f1b.db --force -o known.json");
        QVERIFY2(calibrated.output.contains("split estimated, not measured: I and W"), qPrintable(calibrated.output));
        QVERIFY(m_work.run("predict known.json").output.contains("estimated, not measured: I and W"));

        const Outcome made = m_work.run("new interleaved-1f1b --costs-from known.json --force -o other.json");
        QVERIFY2(made.output.contains("estimated, not measured: F, B, I and W"), qPrintable(made.output));
        QVERIFY2(made.output.contains("links 0 -> 2 and 2 -> 0"), qPrintable(made.output));
        QCOMPARE(m_work.run("check other.json").code, 0);

        // One stage, one device each: nothing but the split is an estimate.
        const QString search = "search known.json --backward either --threads 1 --rounds 1 --force -o best.json";
        const QString costs =
            "F and B measured, the host's gaps before F and B measured, I and W estimated, the host's "
            "gaps before I and W estimated";
        const Outcome found = m_work.run(search);
        QVERIFY2(found.output.contains("for these costs: " + costs), qPrintable(found.output + found.errors));
        QCOMPARE(m_work.run(search + " --json").json()["costs"].toString(), costs);
        const QString given = "search true-1f1b.json --costs-from known.json --backward split --threads 1 --rounds 1 "
                              "--force -o best.json";
        QVERIFY(m_work.run(given).output.contains("for these costs: " + costs));
    }

    void gapsOfTheHostAreShown()
    {
        writeTruth("1f1b");
        QVERIFY(runOf("1f1b") > 0);
        const Outcome calibrated = m_work.run("calibrate true-1f1b.json 1f1b.db --force -o gaps.json");
        for (const char* part : {"half within", "host before F on device 1", "host before B on device 2", "link 0 -> 1",
                                 "medians over 1 step", "so this prediction is off by"})
            QVERIFY2(calibrated.output.contains(part), qPrintable(calibrated.output));
        const QJsonObject json = m_work.run("calibrate true-1f1b.json 1f1b.db --force -o gaps.json --json").json();
        QVERIFY(!json["host_gaps"].toArray().isEmpty() && !json["links"].toArray().isEmpty());
        for (const char* list : {"fits", "links", "host_gaps"})
            for (const QJsonValue each : json[list].toArray())
                QVERIFY(each["samples"].toInt() > 0 && each["median_ns"].toInt() >= 0
                        && each["spread_ns"].toInt() == 0);
        for (const char* command : {"predict gaps.json", "check gaps.json"})
            QVERIFY2(m_work.run(command).output.contains("the host takes"), command);
        const QJsonObject predicted = m_work.run("predict gaps.json --json").json();
        QCOMPARE(predicted["costs"]["host_gaps"].toArray().size(), 3);
        QVERIFY(predicted["per_device"][0]["host_ns"].toInt() > 0);
        QCOMPARE(m_work.run("new 1f1b --devices 3 --microbatches 6 --force -o none.json").code, 0);
        for (const char* command : {"predict none.json", "check none.json"})
            QVERIFY2(!m_work.run(command).output.contains("host takes"), command);
        // The search counts them, and says so.
        const Outcome search = m_work.run("search gaps.json --threads 1 --rounds 1 --force -o best.json");
        QVERIFY2(search.output.contains("the host's gaps before F and B measured"), qPrintable(search.output));
    }

    /// What the machine does differently the second time is no error of the prediction.
    void aSecondRunIsSetBesideTheFirst()
    {
        writeTruth("1f1b");
        QVERIFY(runOf("1f1b") > 0);
        QCOMPARE(m_work.run("calibrate true-1f1b.json 1f1b.db --force -o known.json").code, 0);
        QFile::remove(m_work.path("first.db"));
        QVERIFY(QFile::copy(m_work.path("1f1b.db"), m_work.path("first.db")));
        writeTruth("1f1b", 0.9);
        QVERIFY(runOf("1f1b") > 0);
        const Outcome asked = m_work.run("compare known.json first.db");
        QVERIFY2(asked.output.contains("--first-run"), qPrintable(asked.output));
        const Outcome both = m_work.run("compare known.json 1f1b.db --first-run first.db");
        QVERIFY2(both.output.contains("from run to run"), qPrintable(both.output));
        const QJsonObject json = m_work.run("compare known.json 1f1b.db --first-run first.db --json").json();
        QVERIFY(std::abs(json["run_to_run"]["error_against_first"].toDouble()) < 1e-6);
        QVERIFY(json["run_to_run"]["change"].toDouble() > 0.08);
        QVERIFY(json["makespan"]["error"].toDouble() < -0.08);
        QCOMPARE(m_work.run("compare known.json 1f1b.db --first-run nothing.db").code, 2);
    }

    /// A trace of PyTorch's profiler does not say which design it recorded: it is named beside it.
    void costsOfAnImportedTraceAreOfTheDesignThatIsNamed()
    {
        QCOMPARE(m_work.run("new 1f1b --devices 2 --microbatches 4 -o recorded.json").code, 0);
        const Design design = readDesign(m_work.path("recorded.json").toStdString());
        Design slower = design; // what the machine really does
        for (StageCosts& stage : slower.costs.stages)
            for (const Op op : allOps)
                stage.*timeField(op) *= 3;
        const Prediction prediction = predict(slower);
        QString files;
        for (int rank = 0; rank < 2; ++rank) {
            const QString name = QStringLiteral("rank%1.json").arg(rank);
            files += name + " ";
            m_work.write(name, QByteArray::fromStdString(kineto(prediction.program, prediction.timeline, rank, 2, 3,
                                                                2 * prediction.metrics.makespan, true)));
        }
        QCOMPARE(m_work.run("import " + files + "-o imported.db").code, 0);
        QCOMPARE(m_work.run("new gpipe --devices 2 --microbatches 4 -o wanted.json").code, 0);

        const Outcome unnamed = m_work.run("predict gpipe --costs-from imported.db");
        QCOMPARE(unnamed.code, 2);
        QVERIFY2(unnamed.errors.contains("--costs-of DESIGN"), qPrintable(unnamed.errors));
        const QString known = " --costs-from imported.db --costs-of recorded.json ";
        const QString made = "new gpipe" + known + "--force -o known.json";
        QVERIFY2(m_work.run(made).code == 0, qPrintable(m_work.run(made).errors));
        const auto forward = [&](const char* file) {
            return readDesign(m_work.path(file).toStdString()).costs.stages[0].forward;
        };
        QVERIFY(std::abs(forward("known.json") - 3 * design.costs.stages[0].forward) < 2'000); // printed in us
        const double plain =
            m_work.run("predict gpipe --devices 2 --microbatches 4 --json").json()["makespan_ns"].toDouble();
        for (const QString& command : {"predict gpipe" + known + "--json", "predict wanted.json" + known + "--json"}) {
            const Outcome outcome = m_work.run(command);
            QVERIFY2(outcome.code == 0, qPrintable(outcome.errors));
            QVERIFY(outcome.json()["makespan_ns"].toDouble() > 2.5 * plain);
            QVERIFY(outcome.json()["costs"].toObject()["source"].toString().startsWith("measured: imported.db"));
        }
        const Outcome found =
            m_work.run("search wanted.json" + known + "--threads 1 --rounds 1 --force -o best.json --json");
        QVERIFY2(found.code == 0, qPrintable(found.errors));
        QVERIFY(found.json()["best_ns"].toDouble() > 2.5 * plain);

        // A design that did not run, a name without a trace, and one beside a design.
        QCOMPARE(m_work.run("predict gpipe --costs-from imported.db --costs-of wanted.json").code, 2);
        QCOMPARE(m_work.run("predict gpipe --costs-of recorded.json").code, 2);
        QVERIFY(
            m_work.run("search wanted.json --costs-of recorded.json -o x.json").errors.contains("--costs-from TRACE"));
        const Outcome twice = m_work.run("predict gpipe --costs-from wanted.json --costs-of recorded.json");
        QVERIFY2(twice.code == 2 && twice.errors.contains("is no trace"), qPrintable(twice.errors));
    }

    /// Links that carried one size keep the design's bandwidth, and every command that takes the costs says so.
    void whatARecordingCannotTellIsSaid()
    {
        QCOMPARE(m_work.run("new 1f1b --devices 3 --microbatches 6 --cluster host --force -o true-1f1b.json").code, 0);
        QVERIFY(runOf("1f1b") > 0);
        for (const char* words :
             {"predict gpipe --costs-from 1f1b.db", "new gpipe --costs-from 1f1b.db --force -o other.json",
              "search true-1f1b.json --costs-from 1f1b.db --threads 1 --rounds 1 --force -o best.json"})
            QVERIFY2(m_work.run(words).errors.contains("1f1b.db: note: links"), words);
        const Outcome calibrated = m_work.run("calibrate true-1f1b.json 1f1b.db --force -o known.json");
        QVERIFY2(calibrated.output.contains("all sizes are alike"), qPrintable(calibrated.output));
    }

    /// Layers three times as slow on one stage, or a device that is: one recording of one stage each cannot tell.
    void bothEndsOfAnUnevenRecordingAreGiven()
    {
        const auto write = [&](const char* family, const QString& name, const std::vector<int>& paceOfLayer) {
            DesignRequest request;
            request.family = family;
            request.devices = 4;
            request.microbatches = 8;
            Design design = makeDesign(request);
            std::size_t layer = 0;
            for (std::size_t s = 0; s < design.costs.stages.size(); ++s) {
                Nanoseconds sum = 0;
                for (int i = 0; i < design.layersPerStage[s]; ++i)
                    sum += 500'000 * paceOfLayer[layer++];
                for (const Op op : {Op::F, Op::I, Op::W})
                    design.costs.stages[s].*timeField(op) = sum;
                design.costs.stages[s].backward = 2 * sum;
            }
            writeDesign(design, m_work.path(name).toStdString(), true);
            return static_cast<double>(predict(design).metrics.makespan);
        };
        const std::vector<int> pace{1, 1, 1, 1, 1, 3, 3, 1, 1, 1};
        write("1f1b", "true-1f1b.json", pace);
        QVERIFY(runOf("1f1b") > 0);
        const double happens = write("interleaved-1f1b", "true-interleaved-1f1b.json", pace);
        const Outcome predicted = m_work.run("predict interleaved-1f1b --costs-from 1f1b.db --json");
        const QJsonObject ends = predicted.json()["uneven"].toObject();
        QCOMPARE(ends["assumed"].toString(), QString("devices"));
        const double devices = ends["makespan_ns"]["devices"].toDouble(),
                     layers = ends["makespan_ns"]["layers"].toDouble();
        QCOMPARE(predicted.json()["makespan_ns"].toDouble(), devices);
        QVERIFY2(devices > 1.1 * happens && std::abs(layers / happens - 1) < 0.06,
                 qPrintable(QString("%1 %2 %3").arg(devices).arg(layers).arg(happens)));
        QVERIFY2(predicted.errors.contains("if the layers are; assumed: the devices"), qPrintable(predicted.errors));
        const Outcome made = m_work.run("new interleaved-1f1b --costs-from 1f1b.db --force -o other.json --json");
        QCOMPARE(made.json()["uneven"].toObject()["makespan_ns"], ends["makespan_ns"]);
        const Outcome chosen = m_work.run("predict interleaved-1f1b --costs-from 1f1b.db --uneven layers --json");
        QCOMPARE(chosen.json()["makespan_ns"].toDouble(), layers);
        QVERIFY(!chosen.json().contains("uneven") && !chosen.errors.contains("assumed"));
        QVERIFY(!m_work.run("predict gpipe --costs-from 1f1b.db --json").json().contains("uneven"));
        QCOMPARE(m_work.run("predict gpipe --costs-from 1f1b.db --uneven layer").code, 2);
        QCOMPARE(m_work.run("predict gpipe --devices 2 --microbatches 2 --uneven layers").code, 2);
    }

    void whatElseIsCarriedOverIsSaid()
    {
        QCOMPARE(m_work
                     .run("new 1f1b --devices 2 --microbatches 4 --model llama-3-8b --cluster h200-node --recompute "
                          "full --host-link 25GB --offload 0 --force -o saves.json")
                     .code,
                 0);
        const Outcome kept = m_work.run("new zb-h1 --costs-from saves.json --force -o stays.json");
        QVERIFY2(kept.errors.contains("recomputation stays: full")
                     && kept.errors.contains("offload stays: 1 of 2 stages"),
                 qPrintable(kept.errors));
        QCOMPARE(m_work.run("check stays.json").code, 0);
        const Outcome left =
            m_work.run("new zb-h1 --costs-from saves.json --recompute none --offload none --force -o left.json");
        QVERIFY2(left.errors.contains("recomputation (full) is left out")
                     && left.errors.contains("offload is left out"),
                 qPrintable(left.errors));
        const Outcome trained = m_work.run("predict pipedream --costs-from saves.json");
        QVERIFY2(trained.errors.contains("SGD with momentum in place of AdamW"), qPrintable(trained.errors));
        const Outcome ranked = m_work.run("predict saves.json --families");
        QVERIFY2(ranked.output.contains("with SGD with momentum in place of AdamW: "), qPrintable(ranked.output));
    }

    void everyFamilyIsRankedOverTheCostsOfARun()
    {
        writeTruth("1f1b");
        QVERIFY(runOf("1f1b") > 0);
        const Outcome ranked = m_work.run("predict gpipe --costs-from 1f1b.db --families --json");
        QVERIFY2(ranked.code == 0, qPrintable(ranked.errors));
        QVERIFY(ranked.json()["costs"].toObject()["source"].toString().startsWith("measured: 1f1b.db"));
        int compared = 0;
        double last = 0;
        for (const QJsonValue entry : ranked.json()["families"].toArray()) {
            if (!entry["reason"].isUndefined())
                continue;
            QVERIFY(entry["makespan_ns"].toDouble() >= last);
            last = entry["makespan_ns"].toDouble();
            const QString family = entry["family"].toString();
            if (family != "1f1b" && family != "gpipe" && family != "zb-h1")
                continue;
            const Outcome one = m_work.run("predict " + family + " --costs-from 1f1b.db --json");
            QCOMPARE(entry["makespan_ns"].toDouble(), one.json()["makespan_ns"].toDouble());
            ++compared;
        }
        QCOMPARE(compared, 3);
    }

    void stagesThatWereNotMeasuredKeepTheDesignsCosts()
    {
        QCOMPARE(m_work.run("new 1f1b --devices 2 --microbatches 4 --force -o whole.json").code, 0);
        const Design design = readDesign(m_work.path("whole.json").toStdString());
        const Prediction prediction = predict(design);
        m_work.write("half.json", QByteArray::fromStdString(kineto(prediction.program, prediction.timeline, 1, 2, 2,
                                                                   2 * prediction.metrics.makespan, true)));
        QCOMPARE(m_work.run("import half.json -o half.db").code, 0);
        const QString calibrate = "calibrate whole.json half.db --force -o kept.json";
        const Outcome refused = m_work.run(calibrate);
        QCOMPARE(refused.code, 2);
        QVERIFY2(refused.errors.contains("stage 0") && refused.errors.contains("--keep-unmeasured"),
                 qPrintable(refused.errors));
        QVERIFY(m_work.read("kept.json").isEmpty());
        const Outcome kept = m_work.run(calibrate + " --keep-unmeasured");
        QVERIFY2(kept.code == 0 && kept.output.contains("not in the traces, the design's costs stay: stage 0"),
                 qPrintable(kept.output + kept.errors));
        const QJsonObject json = m_work.run(calibrate + " --keep-unmeasured --json").json();
        QCOMPARE(json["unmeasured_stages"].toArray(), QJsonArray{0});
        const Design after = readDesign(m_work.path("kept.json").toStdString());
        QCOMPARE(after.costs.originOf(Op::F, 0), design.costs.originOf(Op::F, 0));
        QCOMPARE(after.costs.originOf(Op::F, 1), CostOrigin::Measured);
    }

    void aCalibrationCanBeOfSomeSteps()
    {
        writeTruth("1f1b");
        QCOMPARE(m_work.run("run true-1f1b.json --backend host --maths timed --clock virtual --steps 6 -o six.db").code,
                 0);
        const QString calibrate = "calibrate true-1f1b.json six.db --force -o some.json --json --steps ";
        QCOMPARE(m_work.run(calibrate + "3-5").json()["steps"].toArray()[0].toObject()["count"].toInt(), 3);
        const QJsonObject one = m_work.run(calibrate + "2").json();
        QCOMPARE(one["steps"].toArray()[0].toObject()["count"].toInt(), 1);
        QCOMPARE(one["source"].toString(), QString("measured: six.db (step 2)"));
        const Outcome beyond = m_work.run(calibrate + "6-9");
        QVERIFY2(beyond.code == 2 && beyond.errors.contains("its finished steps are 0 to 5"),
                 qPrintable(beyond.errors));
        for (const char* wrong : {"5-3", "a", "3-", "-3", "1-2-3"})
            QVERIFY2(m_work.run(calibrate + wrong).code == 2, wrong);
    }

    void costsOfAnotherModelAreRefused()
    {
        writeTruth("1f1b");
        const Outcome model = m_work.run("new zb-h1 --model llama-3-8b --costs-from true-1f1b.json -o never.json");
        QCOMPARE(model.code, 2);
        QVERIFY2(model.errors.contains("the design is of llama-3-8b"), qPrintable(model.errors));
        const Outcome longer = m_work.run("new zb-h1 --sequence 32 --costs-from true-1f1b.json -o never.json");
        QCOMPARE(longer.code, 2);
        QVERIFY2(longer.errors.contains("its costs are of byte-gpt"), qPrintable(longer.errors));
        const Outcome times = m_work.run("new zb-h1 --forward 1ms --costs-from true-1f1b.json -o never.json");
        QCOMPARE(times.code, 2);
        QVERIFY(times.errors.contains("given too"));
        QCOMPARE(m_work.run("new 1f1b --devices 3 --microbatches 6 --model llama-3-8b -o large.json").code, 0);
        const Outcome search = m_work.run("search large.json --costs-from true-1f1b.json -o never.json");
        QCOMPARE(search.code, 2);
        QVERIFY(search.errors.contains("and the design is of llama-3-8b"));
        QVERIFY(m_work.read("never.json").isEmpty());
    }

    void anEditedCutIsRefused()
    {
        QCOMPARE(m_work.run("new 1f1b --devices 2 --microbatches 4 -o cut.json").code, 0);
        QCOMPARE(m_work.run("check cut.json").code, 0);
        QByteArray text = m_work.read("cut.json");
        const qsizetype at = text.indexOf("\"layers_per_stage\"");
        const qsizetype begin = text.indexOf('[', at), end = text.indexOf(']', begin);
        text.replace(begin, end + 1 - begin, "[1, 9]");
        m_work.write("cut.json", text);
        const Outcome outcome = m_work.run("check cut.json");
        QCOMPARE(outcome.code, 1);
        QVERIFY2(outcome.errors.contains("layers_per_stage") && outcome.errors.contains("--layers-per-stage"),
                 qPrintable(outcome.errors));
    }
};

PIPEWRIGHT_TEST(TestCostsFrom, QCoreApplication)
#include "tst_costsfrom.moc"
