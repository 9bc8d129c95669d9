// SPDX-License-Identifier: GPL-3.0-or-later
// How long tokens take to experts on the same node and on others, by hand; and combined 1F1B, which hides it.
#include "core/design/designbuilder.h"
#include "core/design/membertimes.h"
#include "core/design/redesign.h"
#include "core/files/designfile.h"
#include "core/model/transformer.h"
#include "core/predict/predict.h"
#include "core/presets/presets.h"
#include "errorof.h"
#include "testmain.h"

#include <QTest>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

using namespace pipewright;
using test::errorOf;

namespace {

constexpr double network = 50e9, inNode = 450e9, networkLatency = 15e-6, inNodeLatency = 10e-6; // of h100-nodes

Layer mixtralLayer(const Parallelism& parallel)
{
    ModelShape shape = PresetLibrary().model("mixtral-8x7b");
    shape.parallel = parallel;
    return makeWorkload(shape, Optimizer::AdamW, "a test").layers.at(1);
}

/// Seconds to send tokens to experts and back.
double secondsThereAndBack(const Parallelism& parallel)
{
    Cluster cluster = PresetLibrary().cluster("h100-nodes", 1, parallel.devicesPerStage());
    cluster.devices[0].rates = nullptr;
    return MemberTimes(cluster, parallel).exchanges(mixtralLayer(parallel), GroupAxis::Expert).forward;
}

/// Bytes of all copies of tokens that a member sends, the one that stays included.
double copiesOf(const Parallelism& parallel)
{
    const ModelShape shape = PresetLibrary().model("mixtral-8x7b");
    return static_cast<double>(shape.tokens()) / (parallel.sequence ? parallel.tensor : 1) * 2 * shape.hidden * 2;
}

bool isNear(double found, double expected)
{
    return std::abs(found - expected) <= 1e-9 * std::abs(expected);
}

/// All choices of `count` of the numbers given.
std::vector<std::vector<int>> choices(const std::vector<int>& of, int count)
{
    if (count == 0)
        return {{}};
    std::vector<std::vector<int>> all;
    for (std::size_t first = 0; first < of.size(); ++first)
        for (std::vector<int> rest : choices({of.begin() + std::ptrdiff_t(first) + 1, of.end()}, count - 1)) {
            rest.insert(rest.begin(), of[first]);
            all.push_back(std::move(rest));
        }
    return all;
}

/// TokenRouting::otherNodes() by going through every choice of groups and experts.
double otherNodesByCounting(const TokenRouting& routing, int nodes)
{
    std::vector<int> groups;
    for (int group = 0; group < routing.groups; ++group)
        groups.push_back(group);
    const int perGroup = routing.experts / routing.groups, perNode = routing.experts / nodes;
    double visited = 0, tokens = 0;
    for (const std::vector<int>& chosen : choices(groups, routing.groupsPerToken)) {
        std::vector<int> reachable;
        for (const int group : chosen)
            for (int expert = 0; expert < perGroup; ++expert)
                reachable.push_back(group * perGroup + expert);
        for (const std::vector<int>& experts : choices(reachable, routing.perToken)) {
            std::set<int> on;
            for (const int expert : experts)
                on.insert(expert / perNode);
            visited += static_cast<double>(on.size());
            ++tokens;
        }
    }
    return visited / tokens * (nodes - 1) / nodes; // each node is as often the token's own
}

Design mixtral(const char* family, const Parallelism& parallel)
{
    DesignRequest request;
    request.family = family;
    request.devices = 4;
    request.microbatches = 16;
    request.chunks = 2;
    request.model = "mixtral-8x7b";
    request.cluster = "h100-nodes";
    request.parallel = parallel;
    request.efficiency = 0.5; // the data sheets by hand, not what was measured
    return makeDesign(request);
}

} // namespace

class ExpertExchangeTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    // All on one node: each of 8 sends seven eighths of its copies over the node's links, to all at the same time.
    void onOneNode()
    {
        const Parallelism parallel{.expert = 8, .data = 8};
        QVERIFY(isNear(secondsThereAndBack(parallel), 2 * (inNodeLatency + copiesOf(parallel) * 7 / 8 / inNode)));
    }

    // Two tensor-parallel members each: four of the eight copies of the pipeline stand on a node.
    void whatStaysOnANodeDoesNotTakeTheNetwork()
    {
        const Parallelism parallel{.tensor = 2, .sequence = true, .expert = 8, .data = 8};
        const double between = networkLatency + copiesOf(parallel) * 4 / 8 / network,
                     inside = inNodeLatency + copiesOf(parallel) * 3 / 8 / inNode;
        QVERIFY(between > inside);
        QVERIFY(isNear(secondsThereAndBack(parallel), 2 * between));
    }

    // A token goes to the other node if one of its two experts is there: 1 - (4 of 8 and then 3 of 7).
    void aTokenGoesOnceToEachNode()
    {
        Parallelism parallel{.tensor = 2, .sequence = true, .expert = 8, .data = 8};
        parallel.nodeDispatch = true;
        const double other = 1 - 4. / 8 * 3 / 7;
        const double between = networkLatency + copiesOf(parallel) / 2 * other / network;
        QVERIFY(isNear(secondsThereAndBack(parallel), 2 * between));
        const Parallelism alone{.expert = 8, .data = 8}, aloneOnce{.expert = 8, .data = 8, .nodeDispatch = true};
        QVERIFY(isNear(secondsThereAndBack(alone), secondsThereAndBack(aloneOnce))); // one node
    }

    void nodesOfATokenAreCounted_data()
    {
        QTest::addColumn<int>("experts");
        QTest::addColumn<int>("perToken");
        QTest::addColumn<int>("groups");
        QTest::addColumn<int>("groupsPerToken");
        QTest::addColumn<int>("nodes");
        QTest::newRow("no groups") << 8 << 2 << 1 << 1 << 4;
        QTest::newRow("a group on each node") << 12 << 3 << 4 << 2 << 4;
        QTest::newRow("two groups on each node") << 12 << 3 << 4 << 2 << 2;
        QTest::newRow("a group over two nodes") << 16 << 3 << 4 << 2 << 8;
        QTest::newRow("every expert") << 4 << 4 << 1 << 1 << 2;
        QTest::newRow("one node") << 8 << 2 << 1 << 1 << 1;
    }

    void nodesOfATokenAreCounted()
    {
        QFETCH(int, experts);
        QFETCH(int, perToken);
        QFETCH(int, groups);
        QFETCH(int, groupsPerToken);
        QFETCH(int, nodes);
        const TokenRouting routing{experts, perToken, groups, groupsPerToken};
        const double found = routing.otherNodes(nodes), counted = otherNodesByCounting(routing, nodes);
        QVERIFY2(std::abs(found - counted) < 1e-9, qPrintable(QString("%1 for %2").arg(found).arg(counted)));
    }

    // DeepSeek-V3: 8 of 256 experts, of 4 of 8 groups, each group on a node (arXiv 2412.19437, section 3.2.2: "at most
    // 4 nodes").
    void deepSeekVisitsFewNodes()
    {
        const double others = TokenRouting{256, 8, 8, 4}.otherNodes(8);
        QVERIFY(others > 3 && others < 4 * 7 / 8.);
    }

    void combinedBlocksHideTheExchange()
    {
        const Parallelism parallel{.tensor = 2, .sequence = true, .expert = 8, .data = 8};
        const Design apart = mixtral("interleaved-1f1b", parallel), combined = mixtral("combined-1f1b", parallel);
        QVERIFY(apart.costs == combined.costs);
        const Nanoseconds before = predict(apart).metrics.makespan, after = predict(combined).metrics.makespan;
        QVERIFY2(after < before, qPrintable(QString("%1 of %2").arg(after).arg(before)));
        // No more than all exchanges of a device can be hidden.
        Nanoseconds exchanged = 0;
        for (std::size_t stage = 0; stage < apart.costs.stages.size(); stage += 4)
            for (const Op op : {Op::F, Op::B})
                for (const BlockPart& part : apart.costs.stages[stage].parts[indexOf(op)])
                    exchanged += part.stream == PartStream::Communication ? 16 * part.time : 0;
        QVERIFY(before - after < exchanged);
    }

    void filesAndOptionsSayIt()
    {
        const Parallelism parallel{.tensor = 2, .sequence = true, .expert = 8, .data = 8, .nodeDispatch = true};
        const Design design = mixtral("1f1b-v", {.expert = 2, .data = 2, .nodeDispatch = true});
        QVERIFY(designFromJson(designToJson(design), "a test") == design);
        QVERIFY(withParallelism(mixtral("interleaved-1f1b", {}), parallel) == mixtral("interleaved-1f1b", parallel));
        QVERIFY(errorOf([] {
                    mixtral("interleaved-1f1b", {.data = 2, .nodeDispatch = true});
                }).find("no devices share out experts")
                != std::string::npos);
    }
};

PIPEWRIGHT_TEST(ExpertExchangeTest, NoApplication)
#include "tst_expertexchange.moc"
