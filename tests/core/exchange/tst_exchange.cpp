// SPDX-License-Identifier: GPL-3.0-or-later
// The other formats: what torchtitan, Automodel and Megatron get, what is read of the zero-bubble tools'
// lines, and the Chrome trace event by event.
#include "core/design/designbuilder.h"
#include "core/exchange/chrometrace.h"
#include "core/exchange/exampleexports.h"
#include "core/exchange/exchange.h"
#include "core/exchange/megatronlayout.h"
#include "core/exchange/saillines.h"
#include "core/families/family.h"
#include "core/model/transformer.h"
#include "core/predict/predict.h"
#include "makers/designs.h"
#include "makers/groups.h"
#include "testmain.h"

#include <nlohmann/json.hpp>

#include <QProcess>
#include <QRegularExpression>
#include <QStandardPaths>
#include <QTemporaryDir>
#include <QTest>

using namespace pipewright;
using namespace pipewright::test;

namespace {

QString sailMessage(const char* text)
{
    try {
        importSailLines(text, "zb.txt");
    } catch (const Error& error) {
        return QString::fromStdString(error.what());
    }
    return {};
}

} // namespace

class TstExchange : public QObject {
    Q_OBJECT

private slots:
    void everyFormatIsFoundByItsName()
    {
        for (const ExportFormat& format : exportFormats())
            QCOMPARE(exportFormat(format.name).title, format.title);
        QVERIFY_THROWS_EXCEPTION(Error, exportFormat("csv"));
        ImportOptions options;
        options.format = "nothing";
        QVERIFY_THROWS_EXCEPTION(Error, importDesign("0F0,0B0\n", "s", options));
    }

    void theKindOfAnImportedFileIsFoundOut()
    {
        const auto order = schedule(1, {0}, {"F0.0 I0.0 W0.0"}).order;
        QVERIFY(importDesign("0F0,0I0,0W0\n", "s").design.schedule.order == order);
        QVERIFY(importDesign("F0 B0 W0\n", "s").design.schedule.order == order);
    }

    void torchtitanGetsItsNumbersAndModules()
    {
        const Design design = withModel(exampleDesign("1f1b", 2, 8), {3, 4}, 5);
        const QString text = textOf(design, "torchtitan");
        for (const char* line :
             {"RANKS = 2", "MICROBATCHES = 8", "SEQUENCES_PER_MICROBATCH = 2", "SCHEDULE_CSV = \"demo.csv\"",
              "    put(parallelism, \"PipelineScheduleMulti\", \"pipeline_parallel_schedule\")",
              "    [\"tok_embeddings\", \"layers.0\", \"layers.1\"],",
              "    [\"layers.2\", \"layers.3\", \"layers.4\", \"norm\", \"lm_head\"],"})
            QVERIFY2(text.split('\n').contains(line), qPrintable(QString(line) + "\nin\n" + text));
        QVERIFY(!warns(design, "torchtitan", "puts stage"));
    }

    void torchtitanSharesOutAndRecomputesAsTheDesignDoes()
    {
        Design design = withModel(exampleDesign("1f1b", 2, 8), {3, 4}, 5);
        const auto has = [&](const char* line) { return textOf(design, "torchtitan").contains(line); };
        QVERIFY(!has("data_parallel") && has("put(config, None, \"activation_checkpoint\")"));
        design.workload->shape.parallel.data = 4;
        QVERIFY(has("put(parallelism, 1, \"data_parallel_shard_degree\")")
                && has("put(parallelism, 4, \"data_parallel_replicate_degree\")"));
        design.schedule.zero.level = 1;
        QVERIFY(warns(design, "torchtitan", "shares out no optimizer state alone"));
        design.schedule.zero.level = 3;
        QVERIFY(has("put(parallelism, 4, \"data_parallel_shard_degree\")")
                && has("put(parallelism, 1, \"data_parallel_replicate_degree\")"));
        QVERIFY(!warns(design, "torchtitan", "says nothing of"));
        design.schedule.zero.reduce = Zero::Reduce::Each;
        QVERIFY(warns(design, "torchtitan", "sums gradients over the copies once"));
        design.schedule.zero.reshard = {true, {}};
        design.schedule.zero.prefetch = 0;
        QVERIFY(!warns(design, "torchtitan", "PyTorch keeps")); // the one stage of a rank is what it needs next
        Design chunks = withModel(exampleDesign("interleaved-1f1b", 2, 8), {2, 2, 2, 1}, 5);
        chunks.workload->shape.parallel.data = 4;
        chunks.schedule.zero = design.schedule.zero;
        QVERIFY(warns(chunks, "torchtitan", "PyTorch keeps 3 stages of a rank gathered"));
        design.schedule.recompute = {Recompute::Full, Recompute::Full};
        QVERIFY(has("put(config, FullAC.Config(), \"activation_checkpoint\")"));
        QVERIFY(!warns(design, "torchtitan", "recomputes"));
        design.schedule.recompute = {Recompute::Full, Recompute::Selective};
        QVERIFY(!has("activation_checkpoint") && warns(design, "torchtitan", "recomputes"));
    }

    void torchtitansFileSetsTheFieldsThatAVersionHasAndNamesTheOneItLacks()
    {
        const QString python = QStandardPaths::findExecutable("python3");
        if (python.isEmpty())
            QSKIP("python3 is not installed");
        QTemporaryDir folder;
        const auto write = [&](const QString& name, const QString& content) {
            QFile file(folder.filePath(name));
            QVERIFY(file.open(QIODevice::WriteOnly) && file.write(content.toUtf8()) >= 0);
        };
        write("plan.py", textOf(withModel(exampleDesign("1f1b", 2, 8), {3, 4}, 5), "torchtitan"));
        write("torchtitan.py", "__version__ = '9.9'\n");
        write("check.py", R"(from types import SimpleNamespace as Part
from plan import with_schedule
PIPELINE = dict(pipeline_parallel_degree=1, pipeline_parallel_schedule='', pipeline_parallel_schedule_csv='')
def changed(parallelism, **training):
    config = with_schedule(Part(training=Part(**training), parallelism=Part(**PIPELINE, **parallelism),
                                activation_checkpoint='its own'))
    assert config.activation_checkpoint is None
    return {**vars(config.training), **vars(config.parallelism)}
released = changed(dict(pipeline_parallel_microbatch_size=1, module_fqns_per_model_part=None), local_batch_size=1)
assert released['local_batch_size'] == 16 and released['pipeline_parallel_microbatch_size'] == 2, released
assert released['module_fqns_per_model_part'][1][-1] == 'lm_head' and released['pipeline_parallel_degree'] == 2, released
newer = changed(dict(num_pp_microbatches=1, pipeline_parallel_module_fqns_per_model_part=None),
                num_tokens_per_microbatch_per_dp_rank=1, max_context_length=100)
assert newer['num_pp_microbatches'] == 8 and newer['num_tokens_per_microbatch_per_dp_rank'] == 200, newer
assert newer['pipeline_parallel_schedule_csv'] == 'demo.csv' and 'local_batch_size' not in newer, newer
try:
    changed(dict(pipeline_parallel_microbatch_size=1), local_batch_size=1)
except ValueError as error:
    print(error)
)");
        QProcess run;
        run.setWorkingDirectory(folder.path());
        run.start(python, {"check.py"});
        QVERIFY(run.waitForFinished());
        QVERIFY2(run.exitCode() == 0, run.readAllStandardError().constData());
        QCOMPARE(QString(run.readAllStandardOutput()).trimmed(),
                 QString("torchtitan 9.9 has no field pipeline_parallel_module_fqns_per_model_part or "
                         "module_fqns_per_model_part in its SimpleNamespace: this file was written for 0.3.0"));
    }

    void automodelGetsTheSameWithItsOwnNames()
    {
        const QString text = textOf(withModel(exampleDesign("1f1b", 2, 8), {3, 4}, 5), "automodel");
        for (const char* line :
             {"  pp_size: 2", "  pp_schedule_csv: \"demo.csv\"", "  pp_batch_size: 16  # 8 microbatches",
              "    - [\"model.layers.2\", \"model.layers.3\", \"model.layers.4\", \"model.norm\", \"lm_head\"]"})
            QVERIFY2(text.split('\n').contains(line), qPrintable(QString(line) + "\nin\n" + text));
    }

    void whatAToolHasNoWordForIsRefusedInItsName()
    {
        for (const auto& [format, tool] : {std::pair("torchtitan", "torchtitan"), std::pair("automodel", "Automodel"),
                                           std::pair("jaxpp", "JaxPP"), std::pair("megatron-layout", "Megatron-LM")})
            try {
                textOf(exampleDesign("chimera", 4, 8), format);
                QFAIL(format);
            } catch (const Error& error) {
                QVERIFY2(QString(error.what()).contains(QString("%1 has no word").arg(tool)), error.what());
            }
    }

    void aPlacementThatIsNoLoopIsWarnedAbout()
    {
        const Design v = designOf(schedule(1, {0, 1, 1, 0}, {"F0.0 F3.0 B3.0 B0.0", "F1.0 F2.0 B2.0 B1.0"}));
        QVERIFY(warns(v, "torchtitan", "torchtitan puts stage 2 on rank 0, the design on device 1"));
        QVERIFY(textOf(v, "torchtitan").contains("MODULES_OF_STAGE = None"));
        QVERIFY(!warns(exampleDesign("interleaved-1f1b", 4, 8, 2), "torchtitan", "puts stage"));
    }

    void aNameCannotBreakOutOfAComment()
    {
        Design design = exampleDesign("1f1b", 2, 4);
        design.name = "x\n[training]\"\"\"\\";
        QVERIFY(textOf(design, "torchtitan").startsWith("# Pipewright: x [training]"));
        QVERIFY(textOf(design, "jaxpp")
                    .startsWith(
                        "\"\"\"Pipewright schedule x [training]    : 2 stages on 2 actors, 4 microbatches.\"\"\"\n"));
    }

    void layoutsAreReadAsMegatronReadsThem()
    {
        const auto stages = parseMegatronLayout("Et*3|(tt|)*29,m|L", "layout");
        QCOMPARE(stages.size(), std::size_t{32});
        QCOMPARE(stages[0], std::string("Ettt"));
        for (int i = 1; i < 30; ++i)
            QCOMPARE(stages[i], std::string("tt"));
        QCOMPARE(stages[30], std::string("m"));
        QCOMPARE(stages[31], std::string("L"));
        QCOMPARE(megatronLayoutText(stages), std::string("Et*3|(tt|)*29m|L"));
        QVERIFY((parseMegatronLayout("(|tt)*2,tL", "l") == std::vector<std::string>{"", "tt", "tttL"}));
        QVERIFY((parseMegatronLayout("E(t*2|)*2|L", "l") == std::vector<std::string>{"Ett", "tt", "", "L"}));
    }

    void layoutsGiveTheLayersOfEveryStage()
    {
        Diagnostics notes;
        QVERIFY((layersOfLayout("Et*3|(tt|)*3,tL", "l", notes) == std::vector<int>{4, 2, 2, 2, 2}));
        QVERIFY((layersOfLayout("tt|t", "l", notes) == std::vector<int>{2, 1}));
        QVERIFY(notes.empty());
        // Megatron's own example for DeepSeek-V3; no model here has a layer of multi-token prediction.
        const std::vector<int> large = layersOfLayout("Et*3|(tt|)*29,m|L", "l", notes);
        QCOMPARE(large.size(), std::size_t{32});
        QVERIFY(large[0] == 4 && large[29] == 2 && large[30] == 0 && large[31] == 1);
        QCOMPARE(notes.size(), std::size_t{1});
        QVERIFY2(notes[0].what.find("1 of multi-token prediction (m) is left out") == 0, notes[0].what.c_str());
        for (const char* wrong : {"tE|tL", "EEt|L", "Et|Lt", "Et|LL", "x", "E(t|L"})
            QVERIFY_THROWS_EXCEPTION(Error, layersOfLayout(wrong, "l", notes));
    }

    void layoutsThatAreNoneAreRefused_data()
    {
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("message");
        const auto row = [](const char* text, const char* message) {
            QTest::newRow(message) << QString(text) << QString(message);
        };
        row("Ett|xL", "layout: error: character 5: \"x\" is not part of a layout");
        row("E(tt|", "the bracket is not closed");
        row("E(tt|)L", "a group is not empty and is followed by *");
        row("E()*3", "a group is not empty");
        row("E((t)*2)*3", "a group inside a group");
        row("Et*|L", "a number from 1 on is expected after *");
        row("Et*0|L", "a number from 1 on is expected");
        row("(t*60000|)*60000", "more than 65536");
        row("*3", "\"*\" is not part of a layout");
        row("|||", "the layout has no layer");
        row("", "the layout has no layer");
    }
    void layoutsThatAreNoneAreRefused()
    {
        QFETCH(QString, text);
        QFETCH(QString, message);
        try {
            parseMegatronLayout(text.toStdString(), "layout");
            QFAIL("accepted");
        } catch (const Error& error) {
            QVERIFY2(QString(error.what()).contains(message), error.what());
        }
    }

    void everyPartitionReadsBackAsItself()
    {
        std::uint32_t state = 7;
        const auto next = [&](std::uint32_t below) { return (state = state * 1664525 + 1013904223) / 65536 % below; };
        for (int round = 0; round < 500; ++round) {
            std::vector<std::string> stages(1 + next(12));
            for (std::string& stage : stages)
                stage = std::string(next(4), 't');
            stages.front().insert(0, "E");
            stages.back() += 'L';
            QVERIFY2(parseMegatronLayout(megatronLayoutText(stages), "l") == stages,
                     megatronLayoutText(stages).c_str());
        }
    }

    void aDesignsPartitionBecomesALayout()
    {
        const Design design = withModel(exampleDesign("interleaved-1f1b", 2, 4, 4), {2, 2, 2, 2, 2, 2, 2, 1}, 13);
        QCOMPARE(textOf(design, "megatron-layout"),
                 QString("--pipeline-model-parallel-size 2\n--pipeline-model-parallel-layout \"Et|(tt|)*6L\"\n"
                         "--microbatch-group-size-per-virtual-pipeline-stage 2\n"));
        QVERIFY(exportFormat("megatron-layout").write(design, {}).diagnostics.empty());
        QVERIFY_THROWS_EXCEPTION(Error, megatronLayout(exampleDesign("1f1b", 2, 4)));
    }

    void anOrderThatMegatronWouldNotRunIsWarnedAbout()
    {
        QVERIFY(megatronOrder(exampleDesign("1f1b", 4, 8).schedule) == MegatronOrder{});
        QVERIFY(megatronOrder(exampleDesign("interleaved-1f1b", 4, 8, 2).schedule) == (MegatronOrder{4, false}));
        QVERIFY(megatronOrder(exampleDesign("combined-1f1b", 4, 8, 2).schedule) == (MegatronOrder{4, true}));
        QVERIFY(megatronOrder(exampleDesign("combined-1f1b", 1, 8, 1).schedule) == (MegatronOrder{0, true}));
        QVERIFY(!megatronOrder(exampleDesign("combined-1f1b", 4, 8, 1).schedule));
        for (const char* other : {"gpipe", "eager-1f1b", "zb-h1", "looped-bfs"})
            QVERIFY2(!megatronOrder(exampleDesign(other, 4, 8).schedule), other);
        QVERIFY(warns(withModel(exampleDesign("zb-h1", 2, 4), {3, 4}, 5), "megatron-layout",
                      "the order is not Megatron's 1F1B"));
        Schedule moved = exampleDesign("1f1b", 2, 4).schedule;
        std::swap(moved.order[0][1], moved.order[0][2]);
        QVERIFY(!megatronOrder(moved));
    }

    void sailLinesWithOneStagePerDevice()
    {
        const Imported i = importSailLines("F0 F1 B0 W0 B1 W1\nF0,B0,F1,W0,B1,W1\n", "zb.txt");
        QVERIFY(i.design.schedule.order
                == schedule(2, {0, 1}, {"F0.0 F0.1 I0.0 W0.0 I0.1 W0.1", "F1.0 I1.0 F1.1 W1.0 I1.1 W1.1"}).order);
        QVERIFY(importSailLines("F0 BW0\n", "zb.txt").design.schedule.order == schedule(1, {0}, {"F0.0 B0.0"}).order);
    }

    void sailLinesInAVKnowWhoseBackwardComesFirst()
    {
        // B of the second chunk, as the tools print it.
        const Imported upper = importSailLines("F0 f0 B0 W0 b0 w0\nF0 f0 B0 W0 b0 w0\n", "zb.txt");
        const std::vector<std::string> lanes = {"F0.0 F3.0 I3.0 W3.0 I0.0 W0.0", "F1.0 F2.0 I2.0 W2.0 I1.0 W1.0"};
        QVERIFY(upper.design.schedule.order == schedule(1, {0, 1, 1, 0}, lanes).order);
        QVERIFY((upper.design.schedule.deviceOfStage == std::vector<int>{0, 1, 1, 0}));
        // b of the second chunk.
        const Imported lower = importSailLines("F0 f0 b0 w0 B0 W0\nF0 f0 b0 w0 B0 W0\n", "zb.txt");
        QVERIFY(lower.design.schedule.order == upper.design.schedule.order);
    }

    void badSailCellsAreNamedByLineAndCell()
    {
        QVERIFY(sailMessage("F0 X0\n").contains("zb.txt:1: error: cell 2, \"X0\": unknown pass \"X\""));
        QVERIFY(sailMessage("F0 B0 W0\nF0 B W0\n")
                    .contains("zb.txt:2: error: cell 2, \"B\": a microbatch number is expected"));
        QVERIFY(sailMessage("F0x\n").contains("cell 1, \"F0x\""));
        QVERIFY(sailMessage("F70000 B0\n").contains("microbatch number too large"));
        QVERIFY(sailMessage("F0 F0 B0 W0\n").contains("cell 2 (F0.0): the same block is placed twice"));
        QVERIFY(sailMessage("F0 B0\n").contains("missing block W0.0"));
        QVERIFY(sailMessage("").contains("there is no block"));
        QVERIFY(sailMessage("F0 f0 B0 W0 b0\n").contains("zb.txt:1: error: missing block W0.0"));
    }

    void chromeTraceHasEveryTaskOnceWithExactTimes()
    {
        Design design = exampleDesign("zb-h1", 4, 8);
        design.costs.link.latency = 123;
        design.costs.stages[1].forward = 1'234'567;
        const Prediction prediction = predict(design);
        const std::string text = joined(
            [&](const Pieces& to) { chromeTrace(prediction.program, prediction.timeline, design.name, nullptr, to); });
        const auto json = nlohmann::json::parse(text);
        QCOMPARE(json["otherData"]["title"].get<std::string>(), design.name);
        std::size_t slices = 0, starts = 0, steps = 0, finishes = 0, counters = 0, processes = 0;
        std::map<std::pair<int, int>, double> busyUntil;
        for (const auto& event : json["traceEvents"]) {
            const std::string phase = event["ph"];
            starts += phase == "s";
            steps += phase == "t";
            finishes += phase == "f";
            counters += phase == "C";
            processes += phase == "M" && event["name"] == "process_name";
            if (phase != "X")
                continue;
            ++slices;
            const auto id = event["args"]["task"].get<std::size_t>();
            QCOMPARE(std::llround(event["ts"].get<double>() * 1000), prediction.timeline.start[id]);
            QCOMPARE(std::llround(event["dur"].get<double>() * 1000),
                     prediction.timeline.end[id] - prediction.timeline.start[id]);
        }
        QCOMPARE(slices, prediction.program.tasks.size());
        const auto transfers = static_cast<std::size_t>(prediction.program.transferCount());
        QVERIFY(starts == transfers && steps == transfers && finishes == transfers);
        std::size_t samples = 0;
        for (const auto& curve : prediction.timeline.memory)
            samples += curve.size();
        QCOMPARE(counters, samples);
        QCOMPARE(processes, std::size_t{4});
        // Three decimals, always: nothing passes through a double.
        const QRegularExpression times("\"(ts|dur)\":(?!\\d+\\.\\d{3}[,}])");
        QVERIFY(!times.match(QString::fromStdString(text)).hasMatch());
        QVERIFY(text.find("\"dur\":1234.567") != std::string::npos);
    }

    void slicesOfOneThreadNeverOverlapInAChromeTrace()
    {
        Design design = exampleDesign("gpipe", 4, 16);
        design.costs.link.latency = 2500; // longer than a forward: several transfers are under way at once
        const Prediction prediction = predict(design);
        const auto json = nlohmann::json::parse(
            joined([&](const Pieces& to) { chromeTrace(prediction.program, prediction.timeline, "", nullptr, to); }));
        std::map<std::pair<int, int>, std::vector<std::pair<double, double>>> threads;
        for (const auto& event : json["traceEvents"])
            if (event["ph"] == "X")
                threads[{event["pid"], event["tid"]}].emplace_back(event["ts"], event["ts"].get<double>()
                                                                                    + event["dur"].get<double>());
        QVERIFY(threads.count({1, 2})); // a second thread for transfers was needed
        for (auto& [thread, slices] : threads) {
            std::sort(slices.begin(), slices.end());
            for (std::size_t i = 1; i < slices.size(); ++i)
                QVERIFY(slices[i].first >= slices[i - 1].second - 1e-6);
        }
    }

    void tasksThatWereNotRunAreLeftOutOfAChromeTrace()
    {
        Prediction prediction = predict(exampleDesign("1f1b", 2, 2));
        const TaskId gone = static_cast<TaskId>(prediction.program.tasks.size() / 2);
        prediction.timeline.start[gone] = prediction.timeline.end[gone] = notRun;
        const auto json = nlohmann::json::parse(
            joined([&](const Pieces& to) { chromeTrace(prediction.program, prediction.timeline, "x", nullptr, to); }));
        std::size_t slices = 0;
        for (const auto& event : json["traceEvents"])
            slices += event["ph"] == "X";
        QCOMPARE(slices, prediction.program.tasks.size() - 1);
    }

    void sharedParametersOfAModelThatStandsInAreNobodys()
    {
        DesignRequest request;
        request.family = "1f1b";
        request.devices = 2;
        request.microbatches = 2;
        QVERIFY(!warns(makeDesign(request), "pytorch-csv", "shared parameters"));
        request.model = "gpt-1.5b";
        QVERIFY(warns(makeDesign(request), "pytorch-csv", "shared parameters"));
    }

    void whatIsLeftOutIsSaid()
    {
        Design design = exampleDesign("1f1b", 2, 2);
        design.schedule.pins.push_back({{Op::F, 0, 1}, 5000});
        design.dataflow.shared.push_back({0, 1, 16});
        for (const char* format : {"pytorch-csv", "pytorch-comms-csv", "torchtitan", "automodel", "jaxpp"}) {
            QVERIFY2(warns(design, format, "pinned start times"), format);
            QVERIFY2(warns(design, format, "shared parameters"), format);
        }
        QVERIFY(!warns(design, "pytorch-csv", "says nothing of"));
        QVERIFY(warns(groupDesign("1f1b", {{1e9, 5e8}, {1e9}}, 4), "pytorch-csv", "says nothing of groups"));
        Design copies = exampleDesign("1f1b", 2, 2);
        copies.schedule = withReplicas(copies.schedule, 2);
        copies.schedule.zero.level = 1;
        QVERIFY(warns(copies, "pytorch-csv", "says nothing of the states that copies share out (ZeRO 1)"));
        Design pairs = exampleDesign("dualpipe-v", 2, 4);
        statePartOrder(pairs.schedule, pairs.schedule.overlaps.front(), {false, true});
        QVERIFY(warns(pairs, "jaxpp", "the order of overlapped blocks' parts"));
    }

    /// A field that is not on the list, as one that somebody adds, is not exported in silence.
    void whatIsNotOnTheListIsNotExported()
    {
        for (const Family& family : families())
            if (!hasErrors(family.check(sized(4, 8))))
                QVERIFY2(isNamedInExports(exampleDesign(family.name.data(), 4, 8)), family.name.data());
        Design design = exampleDesign("1f1b", 2, 2);
        design.schedule.shardedStates = true;
        QVERIFY(!isNamedInExports(design));
    }
};

PIPEWRIGHT_TEST(TstExchange, NoApplication)
#include "tst_exchange.moc"
