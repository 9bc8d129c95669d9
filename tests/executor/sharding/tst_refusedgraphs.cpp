// SPDX-License-Identifier: GPL-3.0-or-later
// Graphs that have no mathematics, or whose tensors do not fit what their operations read.
#include "executor/sharding/shardingrun.h"
#include "testmain.h"

#include <QTest>

#include <cmath>

using namespace pipewright;
using namespace pipewright::sharding;

class RefusedGraphsTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void whatHasNoMathsIsRefused()
    {
        TensorGraph graph;
        graph.add("loss", "sum", {graph.add("t", "transpose", {graph.addInput("x", {2, 3})})});
        QVERIFY_THROWS_EXCEPTION(Error, runSingle(graph, randomLeaves(graph, 1)));
    }

    /// The kernels would read beside the tensors.
    void headsThatDoNotFitAreRefused_data()
    {
        QTest::addColumn<int>("keys"); // columns
        QTest::addColumn<int>("heads");
        QTest::addColumn<int>("keyHeads");
        QTest::addColumn<int>("gains");
        QTest::addColumn<bool>("turned");
        QTest::addColumn<bool>("fits");
        QTest::newRow("they fit") << 12 << 4 << 2 << 6 << true << true;
        QTest::newRow("keys of another size") << 8 << 4 << 2 << 6 << false << false;
        QTest::newRow("shared unevenly") << 16 << 3 << 2 << 8 << false << false;
        QTest::newRow("odd heads that are turned") << 6 << 8 << 2 << 3 << true << false;
        QTest::newRow("too few gains") << 12 << 4 << 2 << 5 << false << false;
    }
    void headsThatDoNotFitAreRefused()
    {
        QFETCH(int, keys);
        QFETCH(int, heads);
        QFETCH(int, keyHeads);
        QFETCH(int, gains);
        QFETCH(bool, turned);
        QFETCH(bool, fits);
        TensorGraph graph;
        const int q = graph.addInput("q", {2, 5, 24}), k = graph.addInput("k", {2, 5, keys}),
                  v = graph.addInput("v", {2, 5, keys});
        const int normed = graph.add("n", "head_norm", {q, graph.addParameter("g", {gains})}, {{"heads", heads}});
        Attributes attributes{{"heads", heads}, {"key_value_heads", keyHeads}};
        if (turned)
            attributes["rotary_base"] = 100;
        graph.add("loss", "sum", {graph.add("a", "attention", {normed, k, v}, attributes)});
        if (fits)
            QVERIFY(std::isfinite(runSingle(graph, randomLeaves(graph, 1)).loss));
        else
            QVERIFY_THROWS_EXCEPTION(Error, runSingle(graph, randomLeaves(graph, 1)));
    }

    void latentHeadsThatDoNotFitAreRefused_data()
    {
        QTest::addColumn<int>("querySize");
        QTest::addColumn<int>("turned");
        QTest::addColumn<bool>("fits");
        QTest::newRow("they fit") << 6 << 4 << true;
        QTest::newRow("queries of another size") << 100 << 4 << false;
        QTest::newRow("more turned than there is") << 6 << 8 << false;
        QTest::newRow("an odd part is turned") << 6 << 3 << false;
    }
    void latentHeadsThatDoNotFitAreRefused()
    {
        QFETCH(int, querySize);
        QFETCH(int, turned);
        QFETCH(bool, fits);
        TensorGraph graph;
        const int q = graph.addInput("q", {2, 5, 24}), k = graph.addInput("k", {2, 5, 24}),
                  v = graph.addInput("v", {2, 5, 12});
        graph.add(
            "loss", "sum",
            {graph.add("a", "latent_attention", {q, k, v},
                       {{"heads", 4}, {"query_size", querySize}, {"rotary_size", turned}, {"rotary_base", 100}})});
        if (fits)
            QVERIFY(std::isfinite(runSingle(graph, randomLeaves(graph, 1)).loss));
        else
            QVERIFY_THROWS_EXCEPTION(Error, runSingle(graph, randomLeaves(graph, 1)));
    }

    /// Here too they would read beside the tensors.
    void routersThatCannotChooseSoManyAreRefused_data()
    {
        QTest::addColumn<double>("groups");
        QTest::addColumn<double>("visited");
        QTest::addColumn<double>("experts"); // that a token chooses
        QTest::addColumn<bool>("fits");
        QTest::newRow("they fit") << 3.0 << 2.0 << 4.0 << true;
        QTest::newRow("groups of unlike sizes") << 4.0 << 2.0 << 2.0 << false;
        QTest::newRow("more groups than experts") << 12.0 << 1.0 << 1.0 << false;
        QTest::newRow("more groups than there are") << 3.0 << 4.0 << 2.0 << false;
        QTest::newRow("more experts than the groups have") << 3.0 << 2.0 << 5.0 << false;
        QTest::newRow("more experts than there are") << 1.0 << 1.0 << 7.0 << false;
    }
    void routersThatCannotChooseSoManyAreRefused()
    {
        QFETCH(double, groups);
        QFETCH(double, visited);
        QFETCH(double, experts);
        QFETCH(bool, fits);
        TensorGraph graph;
        const int logits = graph.addParameter("l", {2, 5, 6});
        graph.add("loss", "sum",
                  {graph.add("r", "route", {logits},
                             {{"top_k", experts},
                              {"capacity", 4},
                              {"groups", groups},
                              {"groups_per_token", visited},
                              {"sigmoid", 1}})});
        if (fits)
            QVERIFY(std::isfinite(runSingle(graph, randomLeaves(graph, 1)).loss));
        else
            QVERIFY_THROWS_EXCEPTION(Error, runSingle(graph, randomLeaves(graph, 1)));
    }

    void linearBiasesLookBack()
    {
        TensorGraph graph;
        const int q = graph.addInput("q", {2, 5, 24});
        graph.add("loss", "sum",
                  {graph.add("a", "attention", {q, q, q},
                             {{"heads", 4}, {"key_value_heads", 4}, {"linear_biases", 1}, {"bidirectional", 1}})});
        QVERIFY_THROWS_EXCEPTION(Error, runSingle(graph, randomLeaves(graph, 1)));
    }

    void tablesWithOtherRowsAreRefused_data()
    {
        QTest::addColumn<QString>("operation");
        QTest::addColumn<int>("rows");
        QTest::addColumn<bool>("fits");
        QTest::newRow("positions") << "positions" << 5 << true;
        QTest::newRow("more positions") << "positions" << 8 << false;
        QTest::newRow("segments") << "segments" << 2 << true;
        QTest::newRow("one segment") << "segments" << 1 << false;
        QTest::newRow("three segments") << "segments" << 3 << false;
    }
    void tablesWithOtherRowsAreRefused()
    {
        QFETCH(QString, operation);
        QFETCH(int, rows);
        QFETCH(bool, fits);
        TensorGraph graph;
        const int x = graph.addInput("x", {2, 5, 4});
        graph.add("loss", "sum",
                  {graph.add("t", operation.toStdString(), {x, graph.addParameter("table", {rows, 4})})});
        if (fits)
            QVERIFY(std::isfinite(runSingle(graph, randomLeaves(graph, 1)).loss));
        else
            QVERIFY_THROWS_EXCEPTION(Error, runSingle(graph, randomLeaves(graph, 1)));
    }
};

PIPEWRIGHT_TEST(RefusedGraphsTest, NoApplication)
#include "tst_refusedgraphs.moc"
