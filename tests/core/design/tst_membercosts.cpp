// SPDX-License-Identifier: GPL-3.0-or-later
// What a member's blocks cost beyond FLOPs: narrow matrices, exchanges beside computing, and other nodes than a
// preset's.
#include "core/design/redesign.h"
#include "core/design/stagecosts.h"
#include "core/files/designfile.h"
#include "core/predict/predict.h"
#include "makers/clusters.h"
#include "makers/designs.h"
#include "testmain.h"

#include <QTest>

#include <cmath>

using namespace pipewright;

namespace {

DesignRequest request(const Parallelism& parallel)
{
    DesignRequest r = test::requestFor("1f1b", 4, 8);
    r.model = "megatron-22b";
    r.cluster = "a100-nodes";
    r.parallel = parallel;
    return r;
}

/// Without exchanges, of which links would be a part.
Cluster withoutLinks(Cluster cluster)
{
    cluster.link = {"none", 0, 0};
    cluster.nodes = {};
    return cluster;
}

} // namespace

class MemberCostsTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    /// By hand: a GPT layer of width h has weight matrices of 3 h x h, h x h, 4 h x h and h x 4 h; on one of t tensor
    /// parallel members their narrower sides are min(h, 3 h / t), h / t and twice min(h, 4 h / t).
    void narrowMatricesTakeLonger_data()
    {
        QTest::addColumn<int>("members");
        QTest::addColumn<double>("perFlops"); // FLOPs per width over FLOPs, times h
        QTest::newRow("whole") << 1 << 1.0;
        QTest::newRow("over 8") << 8 << (3.0 / 12) * (8.0 / 3) + (1.0 / 12) * 8 + (8.0 / 12) * 2;
    }
    void narrowMatricesTakeLonger()
    {
        QFETCH(int, members);
        QFETCH(double, perFlops);
        const Design design = makeDesign(request({members, members > 1}));
        const auto& layers = design.workload->layers;
        const auto block = std::find_if(layers.begin(), layers.end(),
                                        [](const Layer& layer) { return layer.kind == LayerKind::Transformer; });
        QVERIFY(block != layers.end());
        const auto h = double(design.workload->shape.hidden);
        const double products = block->weightGradFlops; // those with weights, and no others
        QVERIFY(std::abs(block->forwardFlopsPerWidth * h / products / perFlops - 1) < 1e-9);
        QCOMPARE(block->weightGradFlopsPerWidth, block->forwardFlopsPerWidth);

        const Design plain = test::withHalfRateWidth(withCluster(design, withoutLinks(design.cluster)), 0);
        const Design narrow = test::withHalfRateWidth(plain, 1000);
        // A stage in the middle, of whole layers only.
        const double times = double(narrow.costs.stages[1].weightGrad) / double(plain.costs.stages[1].weightGrad);
        QVERIFY2(std::abs(times - (1 + 1000 / h * perFlops)) < 1e-6, qPrintable(QString::number(times)));
        QVERIFY(QString::fromStdString(narrow.costs.source).contains("half of that at width 1000"));
    }

    void ratesAreGivenByNumber()
    {
        DesignRequest r = request({8, true});
        r.efficiency = 0.8;
        r.halfRateWidth = 1400;
        const Design design = makeDesign(r);
        QCOMPARE(design.cluster.devices.front().efficiency, 0.8);
        QCOMPARE(design.cluster.devices.back().halfRateWidth, 1400.0);
        r.efficiency = 1.2;
        QVERIFY_THROWS_EXCEPTION(Error, makeDesign(r));
        r.efficiency = 1;
        r.halfRateWidth = -1;
        QVERIFY_THROWS_EXCEPTION(Error, makeDesign(r));
    }

    void aDesignKeepsItsDevicesHalfRateWidth()
    {
        const Design design = test::withHalfRateWidth(makeDesign(request({8, true})), 1070);
        const Design again = designFromJson(designToJson(design), "again.json");
        QCOMPARE(again.cluster.devices.front().halfRateWidth, 1070.0);
        QVERIFY(again.cluster == design.cluster);
    }

    /// No more is hidden than there is computing to hide it behind, and of each exchange no more than the share.
    void exchangesOverlapAsFarAsThereIsComputing()
    {
        Parallelism parallel{8, true, 1, 1, 2};
        const Design none = makeDesign(request(parallel));
        parallel.overlap = 0.5;
        const Design half = makeDesign(request(parallel));
        parallel.overlap = 1;
        const Design all = makeDesign(request(parallel));
        const Design without = makeDesign([&] {
            DesignRequest r = request(parallel);
            r.parallel->overlap = 0;
            return r;
        }());
        QCOMPARE(without.costs.stages, none.costs.stages);
        const Cluster silent = withoutLinks(none.cluster);
        const Design computing = withCluster(none, silent);
        for (std::size_t s = 0; s < none.costs.stages.size(); ++s) {
            const StageCosts &whole = none.costs.stages[s], &alone = computing.costs.stages[s];
            QVERIFY(whole.forward > alone.forward && whole.reduceGradients > 0 && alone.reduceGradients == 0);
            QVERIFY(std::abs(half.costs.stages[s].forward - (whole.forward + alone.forward) / 2) <= 1);
            QVERIFY(std::abs(half.costs.stages[s].reduceGradients - whole.reduceGradients / 2) <= 1);
            QCOMPARE(all.costs.stages[s].forward, alone.forward);
            QCOMPARE(all.costs.stages[s].inputGrad, alone.inputGrad);
        }
        // Over a wire so thin that exchanges outlast all computing, what is hidden is the computing itself.
        Cluster thin = none.cluster;
        thin.link.bandwidth = 1e8;
        thin.nodes.network.bandwidth = 1e8;
        const Design slow = withCluster(none, thin), slowAll = withCluster(all, thin);
        for (std::size_t s = 0; s < none.costs.stages.size(); ++s) {
            const Nanoseconds hidden = slow.costs.stages[s].forward - slowAll.costs.stages[s].forward;
            QVERIFY(std::abs(hidden - computing.costs.stages[s].forward) <= 2);
        }
        const Design again = designFromJson(designToJson(half), "again.json");
        QCOMPARE(again.workload->shape.parallel.overlap, 0.5);
    }

    void whatCannotOverlapIsRefused()
    {
        const auto refused = [](const Parallelism& parallel) {
            try {
                (void)makeDesign(request(parallel));
            } catch (const Error& error) {
                return QString::fromUtf8(error.what());
            }
            return QString();
        };
        Parallelism parallel{8, true};
        parallel.overlap = 1.5;
        QVERIFY(refused(parallel).contains("no share of the exchanges"));
        parallel = {};
        parallel.overlap = 0.5;
        QVERIFY(refused(parallel).contains("no devices exchange anything"));
    }

    void nodesAreChangedByNumber()
    {
        DesignRequest r = request({2, true, 1, 1, 4});
        const Design preset = makeDesign(r);
        r.nodes.count = 16;
        r.nodes.devices = 4;
        r.nodes.cards = 1;
        r.nodes.perSwitch = 2;
        r.nodes.oversubscription = 4.0;
        const Design changed = makeDesign(r);
        const Nodes& nodes = changed.cluster.nodes;
        QCOMPARE(nodes.count, 16);
        QCOMPARE(nodes.devices, 4);
        QCOMPARE(nodes.cards, 1);
        QCOMPARE(nodes.perSwitch, 2);
        QCOMPARE(nodes.oversubscription, 4.0);
        QVERIFY(nodes.network == preset.cluster.nodes.network);
        // Four devices share one card, and half of what two nodes send leaves their switch.
        QVERIFY(changed.costs.stages[1].reduceGradients > preset.costs.stages[1].reduceGradients);
        QVERIFY(predict(changed).metrics.makespan > predict(preset).metrics.makespan);
    }

    void nodesThatCannotBeAreRefused_data()
    {
        QTest::addColumn<int>("field");
        QTest::addColumn<QString>("says");
        QTest::newRow("none") << 0 << "--nodes: error: 0 is out of range";
        QTest::newRow("cards") << 1 << "--cards-per-node: error: 0 is out of range";
        QTest::newRow("oversubscription") << 2 << "--oversubscription: error: 0.5 is out of range";
        QTest::newRow("too few") << 3 << "1 nodes of 8 have 8";
        QTest::newRow("a cluster without nodes") << 4 << "is not made of nodes";
        QTest::newRow("no cluster") << 5 << "and none is given";
    }
    void nodesThatCannotBeAreRefused()
    {
        QFETCH(int, field);
        QFETCH(QString, says);
        DesignRequest r = request({8, true});
        switch (field) {
        case 0: r.nodes.count = 0; break;
        case 1: r.nodes.cards = 0; break;
        case 2: r.nodes.oversubscription = 0.5; break;
        case 3: r.nodes.count = 1; break;
        case 4:
            r.cluster = "a100-node";
            r.parallel.reset();
            r.nodes.count = 2;
            break;
        default: r.cluster.reset(); r.nodes.count = 2;
        }
        try {
            (void)makeDesign(r);
            QFAIL("it was made");
        } catch (const Error& error) {
            QVERIFY2(QString::fromUtf8(error.what()).contains(says), error.what());
        }
    }
};

PIPEWRIGHT_TEST(MemberCostsTest, NoApplication)
#include "tst_membercosts.moc"
