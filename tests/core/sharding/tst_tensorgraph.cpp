// SPDX-License-Identifier: GPL-3.0-or-later
// Tensor graphs: shapes from signatures, files, models as graphs, and the table of rules itself.
#include "core/files/tensorgraphfile.h"
#include "core/model/modelgraph.h"
#include "core/model/transformer.h"
#include "core/presets/presets.h"
#include "core/sharding/machine.h"
#include "core/sharding/tensorgraphs.h"
#include "core/sharding/theory.h"
#include "makers/faults.h"
#include "testmain.h"

#include <QTest>

#include <cmath>
#include <set>

using namespace pipewright;
using namespace pipewright::sharding;

namespace {

const std::string oneLayer = R"({
  "pipewright": 1,
  "name": "one layer",
  "graph": [
    {"name": "x", "op": "input", "shape": [6, 4]},
    {"name": "w", "op": "parameter", "shape": [8, 4]},
    {"name": "y", "op": "linear", "of": ["x", "w"]},
    {"name": "loss", "op": "sum", "of": ["y"]}
  ],
  "bytes_per_element": 1,
  "cluster": {
    "name": "two speeds",
    "devices": [
      {"name": "fast", "peak_flops": 2, "efficiency": 1},
      {"name": "slow", "peak_flops": 1, "efficiency": 1, "memory": "1KiB"}
    ],
    "link": {"name": "wire", "latency": "2us", "bandwidth": 10},
    "collectives": {"all_gather": {"latency": "1us", "bandwidth": 7}},
    "grouped_collectives": false
  }
})";

std::string replaced(std::string text, std::string_view from, std::string_view to)
{
    const std::size_t at = text.find(from);
    return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

QString faultOf(const std::string& text)
{
    try {
        graphFileFromJson(text, "g.json");
    } catch (const Error& error) {
        return QString::fromStdString(error.what());
    }
    return "none";
}

} // namespace

class ShardingGraphTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void everyRuleSpeaksOfItsOperation()
    {
        std::set<std::pair<int, std::string_view>> seen;
        for (const SharingRule& rule : sharingRules()) {
            QVERIFY2(rule.operation >= 0, rule.text.data());
            QVERIFY2(seen.emplace(rule.operation, rule.text).second, rule.text.data());
            const Operation& operation = operations()[rule.operation];
            QCOMPARE(rule.operands.size(), operation.operands.size());
            const auto fits = [](const RuleToken& token, const OperandForm& form) {
                return token.need != Need::Split || form.letters.find(token.letter) != std::string::npos;
            };
            for (std::size_t i = 0; i < rule.operands.size(); ++i)
                QVERIFY2(fits(rule.operands[i], operation.operands[i]), rule.text.data());
            QVERIFY2(fits(rule.result, operation.result), rule.text.data());
            QVERIFY2(rule.result.need != Need::Split || rule.split != 0, rule.text.data());
        }
        // Whatever is not shared out can always be done by everyone.
        for (int op = 0; op < static_cast<int>(operations().size()); ++op)
            QVERIFY2(std::any_of(sharingRules().begin(), sharingRules().end(),
                                 [op](const SharingRule& rule) {
                                     return rule.operation == op && rule.split == 0
                                            && rule.result.need == Need::Identity;
                                 }),
                     operations()[static_cast<std::size_t>(op)].name.data());
    }

    void shapesFollowFromSignatures()
    {
        TensorGraph graph;
        const int x = graph.addInput("x", {2, 6, 4});
        const int w = graph.addParameter("w", {8, 4});
        const int y = graph.add("y", "linear", {x, w, graph.addParameter("b", {8})});
        QCOMPARE(graph.node(y).shape, Shape({2, 6, 8}));
        QCOMPARE(forwardFlops(graph, y), 2. * 2 * 6 * 4 * 8);
        const int routed = graph.add("routed", "route", {y}, {{"top_k", 2}, {"capacity", 3}});
        QCOMPARE(graph.node(routed).shape, Shape({2, 6, 8, 3}));
        QCOMPARE(graph.node(graph.add("sent", "dispatch", {routed, x})).shape, Shape({2, 8, 3, 4}));
        QVERIFY_THROWS_EXCEPTION(Error, graph.add("bad", "linear", {y, w}));
        QVERIFY_THROWS_EXCEPTION(Error, graph.add("y", "gelu", {y}));
        QVERIFY_THROWS_EXCEPTION(Error, graph.add("z", "attention", {y, y, y}, {{"heads", 3}}));
        QVERIFY_THROWS_EXCEPTION(Error, graph.add("z", "attention", {y, y, y}));
        const int mixed = graph.add("z", "attention", {y, y, y}, {{"heads", 4}, {"key_value_heads", 2}});
        QCOMPARE(graph.node(mixed).shape, Shape({2, 6, 8}));
        constexpr double whole = 4. * 2 * 6 * 6 * 8;
        QCOMPARE(forwardFlops(graph, mixed), whole / 2); // a causal mask
        QCOMPARE(backwardFlops(graph, mixed), 2.5 * whole / 2);
        const int stored = graph.add("s", "attention", {y, y, y}, {{"heads", 4}, {"stored", 1}});
        QCOMPARE(forwardFlops(graph, stored), whole);
        QCOMPARE(backwardFlops(graph, stored), 2 * whole);
        const int both = graph.add("both", "attention", {y, y, y}, {{"heads", 4}, {"bidirectional", 1}});
        QCOMPARE(forwardFlops(graph, both), whole);
        QVERIFY(hasErrors(graph.check())); // the last is no loss
    }

    void sizesThatFollowFromOperands()
    {
        TensorGraph graph;
        const int patches = graph.addInput("patches", {2, 4, 8});
        QCOMPARE(graph.node(graph.add("t", "class_token", {patches, graph.addParameter("c", {8})})).shape,
                 Shape({2, 5, 8}));
        const int own = graph.addInput("own", {2, 5, 12}), shared = graph.addInput("shared", {2, 5, 3});
        QCOMPARE(graph.node(graph.add("k", "join_keys", {own, shared}, {{"heads", 4}})).shape, Shape({2, 5, 24}));
        QVERIFY_THROWS_EXCEPTION(Error, graph.add("j", "join_keys", {own, shared}, {{"heads", 5}}));
    }

    void headsAreNotCutThrough()
    {
        TensorGraph graph;
        const int x = graph.addInput("x", {2, 6, 12});
        const auto project = [&](const char* name) {
            return graph.add(name, "linear", {x, graph.addParameter(std::string(name) + ".w", {12, 12})});
        };
        const int q = project("q"), k = project("k"), v = project("v");
        graph.add("loss", "sum", {graph.add("a", "attention", {q, k, v}, {{"heads", 3}})});
        Cluster cluster;
        cluster.devices.assign(2, {"device", 0, 1, 0, 1});
        const Machine machine = machineOf(cluster);
        const Theory theory(graph, machine, {{0.5, 0.5}});
        QCOMPARE(theory.parts(q, 2), 3);
        QCOMPARE(theory.parts(graph.find("q.w"), 0), 3);
        QCOMPARE(theory.parts(x, 2), 12);
        QCOMPARE(theory.parts(q, 0), 2);
    }

    void filesAreReadAndWritten()
    {
        const GraphFile file = graphFileFromJson(oneLayer, "g.json");
        QCOMPARE(file.graph.size(), 4);
        QCOMPARE(file.graph.bytesPerElement, 1);
        QCOMPARE(file.cluster.collectives.at(Collective::AllGather), (CollectiveSpec{1000, 7}));
        QVERIFY(!file.cluster.groupedCollectives);
        const GraphFile again = graphFileFromJson(graphFileToJson(file), "again.json");
        QVERIFY(again.graph == file.graph);
        QVERIFY(again.cluster == file.cluster);
        GraphFile model =
            graphFileFromJson(R"({"pipewright": 1, "model": "byte-gpt", "segments": 2, "cluster": "host"})", "m.json");
        QVERIFY(model.graph.segments() == 2 && model.cluster.devices.size() == 4);
        const GraphFile written = graphFileFromJson(graphFileToJson(model), "written.json");
        QCOMPARE(written.graph.size(), model.graph.size());
        for (int t = 0; t < model.graph.size(); ++t) { // a file has the nodes, without the parts of layers they are
            const Node &one = written.graph.node(t), &other = model.graph.node(t);
            QVERIFY(one.name == other.name && one.leaf == other.leaf && one.operation == other.operation
                    && one.operands == other.operands && one.shape == other.shape && one.attributes == other.attributes
                    && one.segment == other.segment);
        }
    }

    void faultsNameLineAndRemedy_data()
    {
        QTest::addColumn<QString>("from");
        QTest::addColumn<QString>("to");
        QTest::addColumn<QString>("expected");
        QTest::newRow("operation") << "\"linear\""
                                   << "\"linaer\""
                                   << "g.json:7: error: the operation \"linaer\" is unknown (did you mean \"linear\"?)";
        QTest::newRow("strange operation")
            << "\"linear\""
            << "\"convolution\""
            << "g.json:7: error: the operation \"convolution\" is unknown (known: input, received, parameter, linear";
        QTest::newRow("operand") << "[\"x\", \"w\"]"
                                 << "[\"x\", \"v\"]"
                                 << "g.json:7: error: no node before this one is named \"v\"";
        QTest::newRow("shape")
            << "[8, 4]"
            << "[8, 5]"
            << "g.json:7: error: y: dimension 1 of w is 5, but the same dimension of another operand is 4";
        QTest::newRow("zero") << "[8, 4]"
                              << "[8, 0]"
                              << "g.json:6: error: \"shape\" contains 0";
        QTest::newRow("twice") << "\"name\": \"w\""
                               << "\"name\": \"x\""
                               << "g.json:6: error: x: two nodes have this name";
        QTest::newRow("operands") << "[\"x\", \"w\"]"
                                  << "[\"x\"]"
                                  << "g.json:7: error: y: linear is given 1 operands (it takes 2 or 3)";
        QTest::newRow("no loss") << "\"op\": \"sum\""
                                 << "\"op\": \"gelu\""
                                 << "g.json:8: error: loss: the last node has the shape [6, 8]";
        QTest::newRow("key") << "\"bytes_per_element\""
                             << "\"bytes_per_elemnt\""
                             << "did you mean \"bytes_per_element\"?";
        QTest::newRow("collective") << "\"all_gather\""
                                    << "\"all_gathers\""
                                    << "did you mean \"all_gather\"?";
        QTest::newRow("unused") << "[\"y\"]"
                                << "[\"x\"]"
                                << "error: y: nothing uses this tensor";
    }

    void faultsNameLineAndRemedy()
    {
        QFETCH(QString, from);
        QFETCH(QString, to);
        QFETCH(QString, expected);
        const QString fault = faultOf(replaced(oneLayer, from.toStdString(), to.toStdString()));
        QVERIFY2(fault.contains(expected), qPrintable(fault));
    }

    void sequencesInPiecesHaveNoWholeGraph()
    {
        ModelShape shape;
        shape.sequencePieces = 2;
        QVERIFY(pipewright::test::faultOf([&] { transformerGraph(shape, {}); }).find("whole sequences")
                != std::string::npos);
    }

    void otherFilesAreRefused()
    {
        QVERIFY(faultOf("{}").contains("no design and no graph"));
        QVERIFY(faultOf("[1]").contains("no design and no graph"));
        QVERIFY(faultOf(R"({"pipewright": 1, "cluster": "host"})").contains("nothing to share out"));
        QVERIFY(faultOf(R"({"pipewright": 1, "model": "no-such", "cluster": "host"})").contains("no preset"));
        QVERIFY(faultOf(R"({"pipewright": 1, "mlp": {"batch": 3, "widths": [4]}, "cluster": "host"})")
                    .contains("give the width"));
    }

    void machinesThatCannotBeMeantAreRefused()
    {
        const auto fault = [](std::string_view from, std::string_view to) {
            const GraphFile file = graphFileFromJson(replaced(oneLayer, from, to), "g.json");
            try {
                machineOf(file.cluster);
            } catch (const Error& error) {
                return QString::fromStdString(toString(file.locate(error.diagnostics())));
            }
            return QString("none");
        };
        QCOMPARE(fault("", ""), QString("none"));
        QVERIFY2(fault("\"peak_flops\": 1", "\"peak_flops\": 0")
                     .contains("g.json:15: error: device 1 (slow) has a rate of zero"),
                 qPrintable(fault("\"peak_flops\": 1", "\"peak_flops\": 0")));
        QVERIFY(fault("\"bandwidth\": 10", "\"bandwidth\": 1e30").contains("g.json:17: error: a link of 1e+30"));
        QVERIFY(fault("\"2us\"", "\"2min\"").contains("g.json:17: error: a latency of"));
        QVERIFY(fault("\"bandwidth\": 7", "\"bandwidth\": 1e300").contains("g.json:18"));
    }

    /// Collectives that were not measured are rings.
    void ringsFollowFromTheSlowestLink()
    {
        Cluster cluster;
        cluster.devices.assign(4, {"device", 0, 1, 0, 1});
        cluster.link = {"fast", 1000, 100};
        cluster.linkOfPair[{1, 2}] = {"slow", 3000, 50};
        const Machine machine = machineOf(cluster);
        QVERIFY(std::abs(machine[Collective::AllGather].latency - 9e-6) < 1e-15);
        QCOMPARE(machine[Collective::AllGather].bandwidth, 50. * 4 / 3);
        QCOMPARE(machine[Collective::AllReduce].bandwidth, 50. * 4 / 6);
    }

    void modelsAreGraphs_data()
    {
        QTest::addColumn<QString>("model");
        for (const char* model :
             {"byte-gpt", "byte-mlp", "llama-3-8b", "mixtral-8x7b", "qwen3-30b-a3b", "bert-large", "gpt-3-175b"})
            QTest::newRow(model) << model;
    }

    /// Work and parameters are those that the rest of the program counts.
    void modelsAreGraphs()
    {
        QFETCH(QString, model);
        const Workload workload = PresetLibrary().workload(model.toStdString());
        const TensorGraph graph = transformerGraph(workload.shape, workload.state);
        QVERIFY(graph.check().empty());
        double flops = 0, counted = 0;
        for (int node = 0; node < graph.size(); ++node)
            flops += forwardFlops(graph, node);
        for (const Layer& layer : workload.layers)
            counted += layer.forwardFlops;
        QVERIFY2(std::abs(flops / counted - 1) < 0.02, qPrintable(QString("%1 instead of %2").arg(flops).arg(counted)));
        QVERIFY2(std::abs(test::parameterElements(graph) / double(parameterCount(workload)) - 1) < 0.01,
                 qPrintable(QString::number(test::parameterElements(graph))));
    }
};

PIPEWRIGHT_TEST(ShardingGraphTest, NoApplication)
#include "tst_tensorgraph.moc"
