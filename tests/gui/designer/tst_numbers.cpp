// SPDX-License-Identifier: GPL-3.0-or-later
// The numbers on screen, read as a screen reader does, against what the program answers about the same design:
// `predict`, `check` and `compare`, each with --json. A number may differ from its text by rounding alone.
#include "gui/designer/numbersfixture.h"
#include "gui/designer/sideswitch.h"
#include "gui/timeline/timelineview.h"
#include "gui/trace/recordedruns.h"
#include "gui/widgets/theme.h"
#include "makers/groups.h"
#include "testmain.h"

#include <QApplication>
#include <QFile>
#include <QTabWidget>
#include <QTest>

#include <cmath>

using namespace pipewright;
using namespace pipewright::testing;

namespace {

struct Made {
    const char* name;
    QStringList words; ///< of `new`
};

const Made madeDesigns[] = {
    {"one that fits",
     {"zb-h1", "--model", "llama-3-8b", "--cluster", "h200-node", "--devices", "4", "--microbatches", "8"}},
    {"over memory",
     {"gpipe", "--model", "qwen3-32b", "--cluster", "h200-node", "--devices", "8", "--microbatches", "64"}},
    {"64 devices",
     {"1f1b", "--model", "llama-3-70b", "--cluster", "h200-nodes", "--devices", "64", "--microbatches", "64"}},
    {"ZeRO-3",
     {"1f1b", "--model", "llama-3-8b", "--cluster", "h200-node", "--devices", "4", "--microbatches", "8", "--replicas",
      "2", "--zero", "3"}},
    {"interleaved",
     {"interleaved-1f1b", "--model", "llama-3-8b", "--cluster", "h100-node", "--devices", "4", "--microbatches", "8",
      "--chunks", "2"}},
    {"both directions",
     {"dualpipe", "--model", "qwen2.5-7b", "--cluster", "h200-node", "--devices", "4", "--microbatches", "8"}},
    {"recomputation",
     {"1f1b", "--model", "llama-3-8b", "--cluster", "h100-node", "--devices", "4", "--microbatches", "8", "--recompute",
      "full"}},
    {"tensor parallel",
     {"zb-v", "--model", "llama-3-70b", "--cluster", "h200-nodes", "--devices", "4", "--microbatches", "8",
      "--tensor-parallel", "8"}},
    {"no model", {"1f1b", "--devices", "4", "--microbatches", "8", "--forward", "3ms", "--transfer", "1ms"}},
    {"updates amid the run", {"pipedream", "--devices", "3", "--microbatches", "6"}},
};

} // namespace

class TestNumbers : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void init() { Theme::dark().apply(*qApp); }

    void roundingIsAllThatIsForgiven()
    {
        QVERIFY(says(QStringLiteral("2.27\u00a0s"), 2'269'972'623));
        QVERIFY(!says(QStringLiteral("2.27\u00a0s"), 2'276'000'000));
        QVERIFY(says(QStringLiteral("89.7 GiB"), 96'288'874'496));
        QVERIFY(!says(QStringLiteral("89.8 GiB"), 96'288'874'496));
        QVERIFY(says(QStringLiteral("28,871\u00a0tok/s"), 28870.83));
        QVERIFY(says(QStringLiteral("22.7\u00a0%"), 0.22712));
        QVERIFY(!says(QStringLiteral("–"), 0));
        QVERIFY(!says(QString(), 0));
    }

    void whatIsMadeShowsItsPrediction_data()
    {
        QTest::addColumn<QStringList>("words");
        for (const Made& made : madeDesigns)
            QTest::newRow(made.name) << made.words;
    }

    void whatIsMadeShowsItsPrediction()
    {
        QFETCH(QStringList, words);
        NumbersFixture fixture;
        const QString made = fixture.folder.filePath(QStringLiteral("made.json"));
        const json written = answerOf(QStringList{QStringLiteral("new")} + words
                                      + QStringList{QStringLiteral("-o"), made, QStringLiteral("--json")});
        QVERIFY(written.is_object());
        fixture.document().open(made);
        fixture.agreesWithTheProgram();
    }

    /// The check itself: an answer that is changed at one place is found at that place, and at no other.
    void aWrongNumberIsFoundWhereItIs()
    {
        NumbersFixture fixture;
        QVERIFY(fixture.settles());
        QVERIFY(QTest::qWaitForWindowExposed(&fixture.window));
        const json predicted = fixture.predicted(), checked = fixture.checked();
        QVERIFY(fixture.isChecked());
        QCOMPARE(fixture.faults(predicted, checked).join(QLatin1Char('\n')), QString());

        const auto placesWith = [&](const char* pointer, double factor) {
            json changed = predicted;
            json& value = changed[json::json_pointer(pointer)];
            if (value.is_number_integer())
                value = std::llround(value.get<double>() * factor);
            else
                value = value.get<double>() * factor;
            QStringList places;
            for (const QString& fault : fixture.faults(changed, checked))
                places << fault.section(QLatin1Char(':'), 0, 0);
            return places.join(QStringLiteral(", "));
        };
        const QString fullest = deviceLabel(fixture.document().design(), fixture.window.memory().device());
        QCOMPARE(fullest, QStringLiteral("GPU 3")); // so GPU 1 has not the highest peak
        QCOMPARE(placesWith("/tokens_per_second", 1.001), QStringLiteral("throughput"));
        QCOMPARE(placesWith("/bubble/rate_makespan", 1.01), QStringLiteral("bubble"));
        QCOMPARE(placesWith("/model_flops_utilization", 1.01), QStringLiteral("MFU"));
        QCOMPARE(placesWith("/per_device/1/idle_ns", 0.99), QStringLiteral("idle of GPU 1"));
        QCOMPARE(placesWith("/per_device/1/peak_bytes", 0.99), QStringLiteral("peak of GPU 1"));
        QCOMPARE(placesWith("/per_device/3/peak_by_kind/activations", 0.99), QStringLiteral("memory of activations"));
        QCOMPARE(placesWith("/transfers", 0.9), QStringLiteral("transfers"));
        // These two are shown in more than one place.
        QCOMPARE(placesWith("/per_device/3/peak_bytes", 1.01), QStringLiteral("peak of GPU 3, highest peak, status"));
        QVERIFY(placesWith("/makespan_ns", 1.01).startsWith(QStringLiteral("step, idle of GPU 0")));
        json invalid = checked;
        invalid["valid"] = false;
        QCOMPARE(fixture.faults(predicted, invalid).size(), 1);
        QVERIFY(fixture.faults(predicted, invalid).front().startsWith(QStringLiteral("status: ")));
    }

    void frozenLayersHaveNeitherGradientsNorState()
    {
        NumbersFixture fixture;
        const QString table = fixture.folder.filePath(QStringLiteral("frozen.csv")),
                      made = fixture.folder.filePath(QStringLiteral("made.json"));
        QFile file(table);
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write("layer,forward,input_grad,weight_grad,saved,parameters,output,frozen\n");
        for (int layer = 0; layer < 4; ++layer)
            file.write(QStringLiteral("block%1,10ms,11ms,%2,256MiB,512MiB,32MiB,%3\n")
                           .arg(layer)
                           .arg(layer < 2 ? QStringLiteral("0ms") : QStringLiteral("9ms"),
                                layer < 2 ? QStringLiteral("512MiB") : QStringLiteral("0MiB"))
                           .toUtf8());
        file.close();
        const json written =
            answerOf({QStringLiteral("new"), QStringLiteral("1f1b"), QStringLiteral("--model"), table,
                      QStringLiteral("--cluster"), QStringLiteral("h100-node"), QStringLiteral("--devices"),
                      QStringLiteral("4"), QStringLiteral("--microbatches"), QStringLiteral("8"), QStringLiteral("-o"),
                      made, QStringLiteral("--json")});
        QVERIFY(written.is_object());
        fixture.document().open(made);
        const json predicted = fixture.predicted();
        const json &frozen = predicted["per_device"][0]["peak_by_kind"],
                   &trained = predicted["per_device"][3]["peak_by_kind"];
        QVERIFY2(frozen["optimizer"].get<double>() == 0 && trained["optimizer"].get<double>() > 0,
                 predicted["per_device"].dump().c_str());
        fixture.agreesWithTheProgram();
    }

    void groupsShowTheirMembers()
    {
        NumbersFixture fixture;
        fixture.document().reset(test::groupDesign("1f1b", {{1e9, 5e8}, {2e9, 1e9}}, 4));
        QVERIFY(fixture.settles());
        const json predicted = fixture.predicted(); // of the members; the lanes are the groups
        QVERIFY(predicted.is_object());
        const QStringList texts = fixture.texts();
        SAYS(valueOf(texts, QStringLiteral("members: ")), predicted["makespan_ns"].get<double>());
        std::vector<double> peaks(2);
        for (const json& member : predicted["per_device"]) {
            double& peak = peaks[member["group"].get<std::size_t>()];
            peak = std::max(peak, member["peak_bytes"].get<double>());
        }
        for (std::size_t group = 0; group < peaks.size(); ++group) {
            const QString name = deviceLabel(fixture.document().design(), int(group));
            SAYS(fixture.laneOf(texts, name).section(QStringLiteral("peak "), 1).section(QLatin1Char(','), 0, 0),
                 peaks[group]);
        }
        const std::size_t fullest = peaks[1] > peaks[0] ? 1 : 0;
        SAYS(valueOf(texts, QStringLiteral("Peak · %1: ").arg(deviceLabel(fixture.document().design(), int(fullest)))),
             peaks[fullest]);
    }

    void anEditShowsWhatItChanges()
    {
        NumbersFixture fixture;
        const json before = fixture.predicted();
        QVERIFY(!hasErrors(fixture.document().apply(PinBlock{{Op::F, 0, 1, 0}, 300'000'000})));
        const json after = fixture.predicted();
        fixture.agreesWithTheProgram();
        const QStringList texts = fixture.texts();
        const auto number = [](const json& of, const char* name) { return of[name].get<double>(); };
        // The second text that begins so is the change.
        const auto change = [&texts](const QString& name) {
            QStringList found;
            for (const QString& text : texts)
                if (text.startsWith(name))
                    found << text.mid(name.size());
            return found.size() > 1 ? found[1] : QString();
        };
        SAYS(change(QStringLiteral("Step: ")), number(after, "makespan_ns") / number(before, "makespan_ns") - 1);
        SAYS(change(QStringLiteral("Bubble: ")),
             after["bubble"]["rate_makespan"].get<double>() - before["bubble"]["rate_makespan"].get<double>());
        int listed = 0;
        for (std::size_t d = 0; d < after["per_device"].size(); ++d) {
            const QString name = deviceLabel(fixture.document().design(), int(d));
            const QString idle = valueOf(texts, name + QStringLiteral(", idle: "));
            if (idle.isEmpty())
                continue;
            ++listed;
            const QString last = idle.section(QStringLiteral(" → "), -1);
            SAYS(last, after["per_device"][d]["idle_ns"].get<double>());
            QString first = idle.section(QStringLiteral(" → "), 0, 0);
            if (!first.contains(QChar(0x00A0)))
                first += QLatin1Char(' ') + last.section(QChar(0x00A0), -1);
            SAYS(first, before["per_device"][d]["idle_ns"].get<double>());
            const QString peak = valueOf(texts, name + QStringLiteral(", peak: ")).section(QStringLiteral(" → "), -1);
            SAYS(peak, after["per_device"][d]["peak_bytes"].get<double>());
        }
        QVERIFY(listed > 0);
    }

    void anImportedScheduleShowsItsPrediction()
    {
        NumbersFixture fixture;
        const QString csv = fixture.folder.filePath(QStringLiteral("schedule.csv")),
                      imported = fixture.folder.filePath(QStringLiteral("imported.json"));
        (void)fixture.predicted(); // writes the design
        const json exported =
            answerOf({QStringLiteral("export"), fixture.file, QStringLiteral("--to"), QStringLiteral("pytorch-csv"),
                      QStringLiteral("-o"), csv, QStringLiteral("--json")});
        QVERIFY(exported.is_object());
        const json taken =
            answerOf({QStringLiteral("import"), csv, QStringLiteral("-o"), imported, QStringLiteral("--json")});
        QVERIFY(taken.is_object());
        fixture.document().open(imported);
        fixture.agreesWithTheProgram();
    }

    void anOverlaidRunShowsItsComparison()
    {
        NumbersFixture fixture;
        const QString trace = fixture.folder.filePath(QStringLiteral("run.db"));
        recordSlowDevice(fixture.document(), trace, 2, {1.0, 1.3, 1.5});
        fixture.document().setOverlay(trace);
        (void)fixture.predicted();
        const json compared = answerOf({QStringLiteral("compare"), fixture.file, trace, QStringLiteral("--json")});
        QVERIFY(compared.is_object());
        const auto measured = compared["makespan"]["measured_ns"].get<double>();
        const auto predicted = compared["makespan"]["predicted_ns"].get<double>();
        fixture.document().setSide(Side::Measured);
        QStringList texts = fixture.texts();
        SAYS(valueOf(texts, QStringLiteral("Step: ")), measured);
        fixture.document().setSide(Side::Both);
        texts = fixture.texts();
        const QString pair = valueOf(texts, QStringLiteral("Step: "));
        SAYS(pair.section(QStringLiteral(" → "), 1), measured);
        QString first = pair.section(QStringLiteral(" → "), 0, 0);
        if (!first.contains(QChar(0x00A0)))
            first += QLatin1Char(' ') + pair.section(QChar(0x00A0), -1);
        SAYS(first, predicted);
        fixture.window.answers().setCurrentIndex(1); // what the run says
        SAYS(valueOf(fixture.texts(), QStringLiteral("difference: ")), measured / predicted - 1);
        fixture.document().setSide(Side::Predicted);
        fixture.agreesWithTheProgram();
    }
};

PIPEWRIGHT_TEST(TestNumbers, QApplication)

#include "tst_numbers.moc"
