// SPDX-License-Identifier: GPL-3.0-or-later
// Clusters of nodes: where a pipeline's devices stand, which links follow, and what is predicted for published runs on
// up to 16,384 GPUs, kept beside their published step times in resources/experiments/published-steps.md.
#include "core/cluster/nodes.h"
#include "core/design/clusterlinks.h"
#include "core/design/redesign.h"
#include "core/files/designfile.h"
#include "core/model/transformer.h"
#include "core/predict/predict.h"
#include "core/predict/throughput.h"
#include "core/search/placement.h"
#include "makers/clusters.h"
#include "makers/designs.h"
#include "testmain.h"
#include "testpaths.h"

#include <QElapsedTimer>
#include <QFile>
#include <QTest>

#include <fmt/format.h>

#include <cmath>
#include <random>

using namespace pipewright;

namespace {

/// 4 nodes of 8 devices with two cards each, two nodes to a switch.
Cluster fourNodes()
{
    Cluster cluster;
    cluster.devices.assign(4, DeviceSpec{"GPU", 0, 1e14, 1e12, 0.5});
    cluster.link = {"inside", 5'000, 3e11};
    cluster.nodes = {8, 4, 2, {"card", 15'000, 4e10}, 2, 2};
    return cluster;
}

DesignRequest request(const char* family, int devices, int microbatches, const char* model, const char* cluster,
                      const Parallelism& parallel)
{
    DesignRequest r = test::requestFor(family, devices, microbatches);
    r.model = model;
    r.cluster = cluster;
    r.parallel = parallel;
    r.efficiency = 0.5; // by hand from data sheets, not from what was measured
    return r;
}

struct Published {
    const char* what;
    const char* model;
    const char* cluster;
    int pipeline, chunks, microbatches, sequence, microbatchSize;
    Parallelism parallel;
    Recompute recompute;
    double seconds, utilization; ///< of which the papers give one or both; 0: not published
};

/// arXiv 2205.05198, table 5 (full recomputation, then sequence parallelism with selective recomputation), and arXiv
/// 2407.21783, table 4. How many stages Llama 3 has on a device is not said; with 8 the 126 layers, embedding and head
/// are one to a stage.
const std::vector<Published>& publishedRuns()
{
    constexpr Recompute none = Recompute::None, full = Recompute::Block, selective = Recompute::BlockSelective;
    static const std::vector<Published> runs{
        {"22B, full", "megatron-22b", "a100-nodes", 1, 1, 1, 2048, 4, {8, false}, full, 1.42, 0},
        {"22B, selective", "megatron-22b", "a100-nodes", 1, 1, 1, 2048, 4, {8, true}, selective, 1.10, .415},
        {"175B, full", "megatron-175b", "a100-nodes", 8, 3, 64, 2048, 1, {8, false}, full, 18.13, 0},
        {"175B, selective", "megatron-175b", "a100-nodes", 8, 3, 64, 2048, 1, {8, true}, selective, 13.75, .514},
        {"530B, full", "megatron-530b", "a100-nodes", 35, 3, 280, 2048, 1, {8, false}, full, 49.05, 0},
        {"530B, selective", "megatron-530b", "a100-nodes", 35, 3, 280, 2048, 1, {8, true}, selective, 37.83, .56},
        {"1T, full", "megatron-1t", "a100-nodes", 64, 1, 512, 2048, 1, {8, false}, full, 94.42, 0},
        {"1T, selective", "megatron-1t", "a100-nodes", 64, 1, 512, 2048, 1, {8, true}, selective, 71.49, .563},
        {"405B, 8,192 GPUs", "llama-3.1-405b", "h100-nodes", 16, 8, 32, 8192, 1, {8, true, 1, 1, 64}, none, 0, .43},
        {"405B, 16,384 GPUs", "llama-3.1-405b", "h100-nodes", 16, 8, 16, 8192, 1, {8, true, 1, 1, 128}, none, 0, .41},
        {"405B, 131,072 tokens",
         "llama-3.1-405b",
         "h100-nodes",
         16,
         8,
         16,
         131072,
         1,
         {8, true, 16, 1, 8},
         none,
         0,
         .38},
    };
    return runs;
}

QString threw(const DesignRequest& wanted)
{
    try {
        (void)makeDesign(wanted);
    } catch (const Error& error) {
        return QString::fromUtf8(error.what());
    }
    return {};
}

/// FLOPs of the model as its masks have them, over those that count whole squares of scores.
double maskedShare(const Design& design)
{
    double masked = 0, whole = 0;
    for (const Layer& layer : wholeLayersOf(*design.workload)) {
        const double all = layer.forwardFlops + layer.inputGradFlops + layer.weightGradFlops;
        masked += all;
        whole += all;
        for (const AttentionSize& size : layer.attentions) {
            masked += 2 * size.flops() - size.backwardFlops();
            whole += 3 * size.wholeFlops() - size.flops() - size.backwardFlops();
        }
    }
    return masked / whole;
}

struct Predicted {
    double seconds = 0, utilization = 0;
    double masked = 0; ///< the same of FLOPs as the masks have them
};

Design designOf(const Published& run)
{
    DesignRequest r = request(run.chunks > 1 ? "interleaved-1f1b" : "1f1b", run.pipeline, run.microbatches, run.model,
                              run.cluster, run.parallel);
    if (run.chunks > 1)
        r.chunks = run.chunks;
    r.sequence = run.sequence;
    r.microbatchSize = run.microbatchSize;
    r.recompute = {run.recompute, {}};
    if (r.devices * run.parallel.devicesPerStage() <= 4096)
        return makeDesign(r);
    r.parallel->data = 1; // the preset ends at 512 nodes
    Design design = makeDesign(r);
    design.cluster.nodes.count = 2048;
    return withParallelism(design, run.parallel);
}

Predicted predicted(const Design& design, double efficiency)
{
    Cluster cluster = design.cluster;
    for (DeviceSpec& device : cluster.devices)
        device.efficiency = efficiency;
    const Design now = withCluster(design, cluster);
    const Nanoseconds makespan = predict(now).metrics.makespan;
    const double utilization = modelFlopsUtilization(now, makespan);
    return {double(makespan) / 1e9, utilization, utilization * maskedShare(now)};
}

/// The share of the peak rate with which this run comes out as published: a step takes a time that is not the
/// devices', and one that goes with the inverse of their rate.
double fitted(const Published& run, const Design& design)
{
    double before = 0.5, share = 0.6, secondsBefore = predicted(design, before).seconds;
    for (int i = 0; i < 4; ++i) {
        const Predicted now = predicted(design, share);
        const double wanted = run.seconds > 0 ? run.seconds : now.seconds * now.masked / run.utilization;
        const double slope = (now.seconds - secondsBefore) / (1 / share - 1 / before);
        before = share;
        secondsBefore = now.seconds;
        if (std::abs(now.seconds / wanted - 1) < 1e-7)
            break;
        share = 1 / (1 / share + (wanted - now.seconds) / slope);
    }
    return share;
}

double errorOf(const Published& run, const Predicted& found)
{
    return run.seconds > 0 ? found.seconds / run.seconds - 1 : run.utilization / found.masked - 1;
}

std::string cell(double value, int digits, const char* unit)
{
    return value > 0 ? fmt::format("{:.{}f}{}", value, digits, unit) : "";
}

/// The half-rate width with which the share that fits `known` gives the published time of `narrow` too.
double widthFitting(const Published& narrow, const Design& narrowDesign, const Published& known,
                    const Design& knownDesign)
{
    double low = 0, high = 8192;
    while (high - low > 1) {
        const double middle = (low + high) / 2;
        const double share = fitted(known, test::withHalfRateWidth(knownDesign, middle));
        const double error = errorOf(narrow, predicted(test::withHalfRateWidth(narrowDesign, middle), share));
        (error < 0 ? low : high) = middle;
    }
    return std::round(low);
}

} // namespace

class ClustersTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void devicesStandAsTheRuleSays()
    {
        const Cluster cluster = fourNodes();
        // Four stages of 8: each its own node, and 8 senders share two cards of 40 GB/s.
        const NodeLayout wide(cluster, {8, 1, 1, 4});
        QCOMPARE(wide.between(0, 1), (LinkSpec{"card", 15'000, 1e10}));
        QCOMPARE(wide.between(1, 2), (LinkSpec{"card", 15'000, 5e9})); // to the other switch, half as fast
        QCOMPARE(wide.tensorRing(), cluster.link);
        // Four stages of 4, two to a node, which queue for its cards.
        const NodeLayout narrow(cluster, {4, 1, 1, 4});
        QCOMPARE(narrow.between(0, 1), cluster.link);
        QCOMPARE(narrow.between(1, 2), (LinkSpec{"card", 15'000, 2e10, "network cards of node 0"}));
        QCOMPARE(narrow.between(2, 1), (LinkSpec{"card", 15'000, 2e10, "network cards of node 1"}));
        // A group larger than a node has slow links inside.
        QCOMPARE(NodeLayout(cluster, {16, 1, 1, 2}).tensorRing(), (LinkSpec{"card", 15'000, 1e10}));
        // Copies stand side by side: of groups of 4, two in a node and four under a switch.
        QCOMPARE(NodeLayout(cluster, {4, 1, 2, 4}).dataRing(2), cluster.link);
        QCOMPARE(NodeLayout(cluster, {4, 1, 4, 2}).dataRing(4), (LinkSpec{"card", 15'000, 1e10}));
        QCOMPARE(NodeLayout(cluster, {4, 1, 8, 1}).dataRing(8), (LinkSpec{"card", 15'000, 5e9}));
        QCOMPARE(NodeLayout(cluster, {4, 1, 8, 1}).dataRing(4, 2), (LinkSpec{"card", 15'000, 5e9}));
        QCOMPARE(NodeLayout(cluster, {2, 4, 1, 4}).contextRing(), cluster.link);
        QVERIFY_THROWS_EXCEPTION(Error, NodeLayout(cluster, {8, 1, 2, 4})); // 64 of 32
        QVERIFY_THROWS_EXCEPTION(Error, NodeLayout(Cluster{}, {1000, 1, 1000, 2}));
    }

    void pipelinesTakeTheLinksOfTheirNodes()
    {
        const Design plain = makeDesign(request("1f1b", 16, 16, "gpt-28.3b", "h100-nodes", {}));
        QCOMPARE(plain.costs.linkBetween(0, 1).bytesPerSecond, plain.cluster.link.bandwidth);
        QCOMPARE(plain.costs.linkBetween(7, 8).bytesPerSecond, 50e9);
        QCOMPARE(plain.costs.linkBetween(8, 7).bytesPerSecond, 50e9);
        QCOMPARE(plain.costs.linkBetween(8, 9).bytesPerSecond, plain.cluster.link.bandwidth);
        const Design groups = makeDesign(request("1f1b", 16, 16, "gpt-28.3b", "h100-nodes", {.tensor = 8}));
        for (int device = 1; device < 16; ++device)
            QCOMPARE(groups.costs.linkBetween(device - 1, device).bytesPerSecond, 50e9);
        // Fewer cards: as many members as share one are as much slower.
        const Design shared = makeDesign(request("1f1b", 16, 16, "gpt-28.3b", "l40s-nodes", {.tensor = 8}));
        QCOMPARE(shared.costs.linkBetween(0, 1).bytesPerSecond, 50e9 * 2 / 8);
        QVERIFY(predict(groups).metrics.makespan < predict(shared).metrics.makespan);
        QCOMPARE(designFromJson(designToJson(shared), "test"), shared);
        QVERIFY_THROWS_EXCEPTION(
            Error, makeDesign(request("1f1b", 16, 16, "gpt-28.3b", "h100-nodes", {.tensor = 8, .data = 64})));
    }

    void copiesSumTheirGradientsOverTheNetwork()
    {
        const auto summed = [](int copies) {
            const Design design =
                makeDesign(request("1f1b", 4, 8, "gpt-28.3b", "a100-nodes", {.tensor = 8, .data = copies}));
            return std::pair(double(design.costs.stages[1].reduceGradients), double(design.costs.stages[1].gradients));
        };
        const auto [alone, bytes] = summed(1);
        QCOMPARE(alone, 0.0);
        // A ring of 16 nodes: 30 hops of a sixteenth of the gradients, one card to a device.
        QVERIFY(std::abs(summed(16).first - 30 * (15'000 + bytes / 16 / 25e9 * 1e9)) < 1000);
    }

    /// A ring of 16 over two nodes, once there and once back; the members of a sequence hold the same weights.
    void contextParallelMembersSumTheirGradients()
    {
        const auto summed = [](const char* model, const Parallelism& parallel) {
            return makeDesign(request("1f1b", 4, 8, model, "h100-nodes", parallel)).costs.stages[1];
        };
        const StageCosts alone = summed("llama-3-8b", {}), sixteen = summed("llama-3-8b", {1, false, 16});
        QCOMPARE(sixteen.gradients, alone.gradients);
        const auto ring = [](double bytes, int count, double latency, double rate) {
            return 2 * (count - 1) * (latency + bytes / count / rate * 1e9);
        };
        const auto sum = [&](const StageCosts& of, int count) { return ring(double(of.gradients), count, 15e3, 50e9); };
        QVERIFY(std::abs(double(sixteen.reduceGradients) - sum(alone, 16)) < 3);
        // Over copies and members alike; inside a node over its link.
        const StageCosts both = summed("llama-3-8b", {1, false, 4, 1, 8});
        QVERIFY(std::abs(double(both.reduceGradients) - sum(alone, 32)) < 3);
        const StageCosts inside = summed("llama-3-8b", {1, false, 4});
        QVERIFY(std::abs(double(inside.reduceGradients) - ring(double(alone.gradients), 4, 10e3, 450e9)) < 3);
        // An expert is on every fourth of 8 copies, with two members each.
        const Parallelism experts{1, false, 2, 4, 8};
        const Design design = makeDesign(request("1f1b", 4, 8, "mixtral-8x7b", "h100-nodes", experts));
        const Design one = makeDesign(request("1f1b", 4, 8, "mixtral-8x7b", "h100-nodes", {1, false, 1, 4, 4}));
        double expert = 0, other = 0; // bytes of the second stage's gradients
        for (int l = design.layersPerStage[0]; l < design.layersPerStage[0] + design.layersPerStage[1]; ++l) {
            const Layer& layer = design.workload->layers[static_cast<std::size_t>(l)];
            expert += double(layer.expertParameters * design.workload->state.gradient);
            other += double((layer.parameters - layer.expertParameters) * design.workload->state.gradient);
        }
        const double wanted = ring(expert, 4, 15e3, 50e9) + ring(other, 16, 15e3, 50e9) - ring(other, 4, 10e3, 450e9);
        QVERIFY(std::abs(double(design.costs.stages[1].reduceGradients - one.costs.stages[1].reduceGradients) - wanted)
                < 5);
        const Nanoseconds step =
            predict(makeDesign(request("1f1b", 4, 8, "llama-3-8b", "h100-nodes", {1, false, 16}))).metrics.makespan;
        QVERIFY2(std::abs(double(step) / 755.5e6 - 1) < 1e-3, qPrintable(QString::number(double(step) / 1e6)));
    }

    /// The slowest way over the members, one by one, by the place of each: on nodes that are full, that pipeline
    /// devices straddle, under one switch and under several.
    void everyPairHasTheLinkOfWhereItStands()
    {
        std::mt19937 random(7);
        const auto upTo = [&](int most) { return 1 + static_cast<int>(random() % static_cast<unsigned>(most)); };
        for (int round = 0; round < 300; ++round) {
            Cluster cluster = fourNodes();
            cluster.devices.resize(static_cast<std::size_t>(upTo(12)), cluster.devices.front());
            Nodes& nodes = cluster.nodes;
            nodes.devices = upTo(8);
            nodes.count = 1000;
            nodes.cards = upTo(nodes.devices);
            nodes.perSwitch = upTo(4) - 1;
            const Parallelism parallel{upTo(4), false, upTo(2), 1, upTo(3)};
            const int members = static_cast<int>(parallel.devicesPerStage());
            Costs costs;
            takeClusterLinks(cluster, parallel, costs);
            const int devices = static_cast<int>(cluster.devices.size());
            for (int from = 0; from < devices; ++from)
                for (int to = 0; to < devices; ++to) {
                    if (from == to)
                        continue;
                    bool leaves = false, leavesSwitch = false;
                    for (int m = 0; m < members; ++m) {
                        const int a = (from * members + m) / nodes.devices, b = (to * members + m) / nodes.devices;
                        leaves = leaves || a != b;
                        leavesSwitch =
                            leavesSwitch || (nodes.perSwitch > 0 && a / nodes.perSwitch != b / nodes.perSwitch);
                    }
                    const int senders = std::min(members, nodes.devices);
                    double rate = leaves ? 4e10 * std::min(1.0, double(nodes.cards) / senders) : 3e11;
                    if (leavesSwitch)
                        rate = std::min(rate, 4e10 * nodes.cards / nodes.devices / nodes.oversubscription);
                    const LinkCosts& link = costs.linkBetween(from, to);
                    QVERIFY(std::abs(link.bytesPerSecond / rate - 1) < 1e-12);
                    QCOMPARE(link.latency, Nanoseconds(leaves ? 15'000 : 5'000));
                    const bool queues = leaves && members < nodes.devices && nodes.cards < nodes.devices;
                    QCOMPARE(!link.bus.empty(), queues);
                }
        }
    }

    /// Steps in which replicas and workers exchange over the network, worked out by hand: of the first, 4.62 s of
    /// blocks, 85 ms of updates and two rounds of 35.3 GB over cards of 50 GB/s.
    void stepsAreAsLongAsTheirLinksMakeThem_data()
    {
        QTest::addColumn<QString>("family");
        QTest::addColumn<int>("devices");
        QTest::addColumn<int>("replicas");
        QTest::addColumn<int>("microbatches");
        QTest::addColumn<QString>("model");
        QTest::addColumn<int>("perNode");
        QTest::addColumn<int>("tensor");
        QTest::addColumn<double>("milliseconds");
        QTest::newRow("each replica fills a node") << "1f1b" << 4 << 4 << 16 << "llama-3-70b" << 8 << 8 << 6113.7;
        QTest::newRow("a replica to a node") << "1f1b" << 16 << 2 << 16 << "gpt-21b" << 8 << 1 << 733.7;
        QTest::newRow("replicas across nodes") << "1f1b" << 24 << 2 << 24 << "gpt-21b" << 8 << 1 << 694.8;
        QTest::newRow("a worker to a node") << "dp" << 4 << 1 << 4 << "qwen2.5-7b" << 1 << 1 << 691.;
    }
    void stepsAreAsLongAsTheirLinksMakeThem()
    {
        QFETCH(QString, family);
        QFETCH(int, devices);
        QFETCH(int, replicas);
        QFETCH(int, microbatches);
        QFETCH(QString, model);
        QFETCH(int, perNode);
        QFETCH(int, tensor);
        QFETCH(double, milliseconds);
        DesignRequest r =
            request(qPrintable(family), devices, microbatches, qPrintable(model), "h100-nodes", {tensor, tensor > 1});
        r.replicas = replicas;
        r.layout = family == "dp" ? WorkerLayout::Workers : WorkerLayout::Pipeline;
        r.nodes.devices = perNode;
        const double predicted = double(predict(makeDesign(r)).metrics.makespan) / 1e6;
        QVERIFY2(std::abs(predicted / milliseconds - 1) < 1e-3, qPrintable(QString::number(predicted)));
        // The devices of all replicas have to stand somewhere.
        r.nodes.count = devices * tensor / perNode - 1;
        QVERIFY(r.nodes.count == 0 || threw(r).contains(QString("%1 devices are needed").arg(devices * tensor)));
    }

    /// Replica 0 stands on one node, replica 1 on two.
    void sharedGradientsAreReducedOverTheLinkOfTheTwo()
    {
        DesignRequest r = request("1f1b", 12, 12, "gpt-21b", "h100-nodes", {});
        r.replicas = 2;
        const Design design = makeDesign(r);
        const Prediction prediction = predict(design);
        std::vector<Nanoseconds> times;
        for (TaskId t = 0; t < prediction.program.tasks.size(); ++t)
            if (prediction.program.tasks[t].kind == TaskKind::Reduce)
                times.push_back(prediction.timeline.end[t] - prediction.timeline.start[t]);
        const auto bytes = double(design.dataflow.shared.front().bytes);
        QCOMPARE(times.size(), std::size_t{2});
        QVERIFY(std::abs(double(times[0]) - 2 * (10'000 + bytes / 450e9 * 1e9)) < 3);
        QVERIFY(std::abs(double(times[1]) - 2 * (15'000 + bytes / 50e9 * 1e9)) < 3);
        // Measured or given links say nothing of it: then it is stated.
        Costs other = design.costs;
        keepReduceTime(design.dataflow, design.schedule.deviceOfStage, other);
        other.setAllLinks({1'000});
        QCOMPARE(other.reduceTime(12, 23, design.dataflow.shared.front().bytes), times[0]);
    }

    void aStageThatMovesToAnotherNodeTakesItsLinks()
    {
        const Design design = makeDesign(request("1f1b", 16, 16, "gpt-28.3b", "h100-nodes", {}));
        std::vector<int> swapped = design.schedule.deviceOfStage;
        std::swap(swapped[1], swapped[9]);
        const Design moved = withPlacement(design, swapped, design.layersPerStage);
        QCOMPARE(moved.costs.linkBetween(0, 9).bytesPerSecond, 50e9);
        QCOMPARE(moved.costs.linkBetween(0, 1).bytesPerSecond, moved.cluster.link.bandwidth);
        // Times that were given keep the links of the nodes, also on more devices.
        DesignRequest given = request("1f1b", 8, 16, "gpt-28.3b", "h100-nodes", {});
        given.forward = given.inputGrad = given.weightGrad = 1'000'000;
        DesignRequest wider = test::requestFor("1f1b", 16, 16);
        wider.costsFrom = makeDesign(given);
        QCOMPARE(makeDesign(wider).costs.linkBetween(7, 8).bytesPerSecond, 50e9);
        Design unknown = design;
        unknown.costs.nodeLinks.nodeOfDevice.resize(12);
        QVERIFY_THROWS_EXCEPTION(Error, predict(unknown));
    }

    void thousandsOfDevicesArePredictedAtOnce()
    {
        QElapsedTimer timer;
        timer.start();
        DesignRequest r = request("interleaved-1f1b", 16, 128, "llama-3.1-405b", "h100-nodes", {8, true, 1, 1, 32});
        r.chunks = 8;
        const Design design = makeDesign(r);
        QCOMPARE(design.schedule.devices() * design.workload->shape.parallel.devicesPerStage(), std::int64_t(4096));
        QVERIFY(predict(design).metrics.makespan > 0);
        const qint64 groups = timer.restart();
        // And 4,096 lanes of a schedule.
        DesignRequest lanes = test::requestFor("1f1b", 4096, 32);
        lanes.saved = 1 << 20;
        QVERIFY(predict(makeDesign(lanes)).metrics.makespan > 0);
        qInfo("4,096 devices in groups: %lld ms; as lanes: %lld ms", groups, timer.elapsed());
    }

    /// Predicted thrice: with the preset's share of the peak rate, with one that fits the row of its kind of device
    /// that says so, and with one that fits the same model's other row.
    void publishedStepsStandBesideThePredicted()
    {
        const std::vector<Published>& runs = publishedRuns();
        constexpr std::size_t a100Row = 3, h100Row = 8;
        std::vector<Design> designs;
        std::vector<double> shares;
        for (const Published& run : runs) {
            designs.push_back(designOf(run));
            shares.push_back(fitted(run, designs.back()));
        }
        // Two rows of models of different width fix what width does: with it, the share that fits the one fits the
        // other too. For Llama 3's device only a share is fitted, as its rows are of one model.
        const double width = widthFitting(runs[1], designs[1], runs[a100Row], designs[a100Row]);
        std::vector<Design> wide;
        for (const Design& design : designs)
            wide.push_back(test::withHalfRateWidth(design, width));
        const double wideShares[] = {fitted(runs[a100Row], wide[a100Row]), fitted(runs[h100Row], wide[h100Row])};
        std::string table =
            "| run | devices | published | MFU | preset's 50 % | MFU | error | one fit | by width | other row |\n"
            "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n";
        for (std::size_t i = 0; i < runs.size(); ++i) {
            const Published& run = runs[i];
            const std::size_t kind = i < h100Row ? a100Row : h100Row, other = i < h100Row ? i ^ 1 : i;
            const auto error = [&](std::size_t of) {
                return of == i ? "fitted"
                               : fmt::format("{:+.1f} %", 100 * errorOf(run, predicted(designs[i], shares[of])));
            };
            const Predicted preset = predicted(designs[i], 0.5);
            const double byWidth = errorOf(run, predicted(wide[i], wideShares[i < h100Row ? 0 : 1]));
            QVERIFY2(std::abs(byWidth) < (i < h100Row ? 0.04 : 0.07), qPrintable(QString::number(byWidth)));
            const std::string wideCell = i == 1 || i == kind ? "fitted" : fmt::format("{:+.1f} %", 100 * byWidth);
            table += fmt::format("| {} | {} | {} | {} | {:.2f} s | {:.1f} % | {:+.1f} % | {} | {} | {} |\n", run.what,
                                 run.pipeline * run.parallel.devicesPerStage(), cell(run.seconds, 2, " s"),
                                 cell(100 * run.utilization, 1, " %"), preset.seconds,
                                 100 * (run.seconds > 0 ? preset.utilization : preset.masked),
                                 100 * errorOf(run, preset), error(kind), wideCell, other == i ? "" : error(other));
            if (other != i) // what a calibrated model is worth for another way to run it
                QVERIFY(std::abs(errorOf(run, predicted(designs[i], shares[other]))) < 0.03);
        }
        table +=
            fmt::format("\nFitted: {:.1f} % of an A100's peak rate, {:.1f} % of an H100's; by width {:.1f} % and "
                        "{:.1f} %, of which a matrix {:.0f} wide reaches half.\n",
                        100 * shares[a100Row], 100 * shares[h100Row], 100 * wideShares[0], 100 * wideShares[1], width);
        table += "\n| run | MFU of whole squares | error | MFU as masked | error |\n"
                 "| --- | ---: | ---: | ---: | ---: |\n";
        for (std::size_t i = h100Row; i < runs.size(); ++i) {
            const auto [seconds, squares, masked] = predicted(designs[i], 0.5);
            table += fmt::format("| {} | {:.1f} % | {:+.1f} % | {:.1f} % | {:+.1f} % |\n", runs[i].what, 100 * squares,
                                 100 * (runs[i].utilization / squares - 1), 100 * masked,
                                 100 * (runs[i].utilization / masked - 1));
        }
        QFile file(PIPEWRIGHT_SOURCE_DIR "/resources/experiments/published-steps.md");
        QVERIFY(file.open(QIODevice::ReadOnly));
        const QString text = QString::fromUtf8(file.readAll());
        const bool same = text.contains(QString::fromStdString(table));
        for (const QString& line : QString::fromStdString(same ? "" : table).split('\n'))
            qInfo("%s", qPrintable(line)); // longer than a failure's text may be
        QVERIFY2(same, "the table should be as above");
    }
};

PIPEWRIGHT_TEST(ClustersTest, NoApplication)
#include "tst_clusters.moc"
