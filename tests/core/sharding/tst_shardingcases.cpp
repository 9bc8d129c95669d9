// SPDX-License-Identifier: GPL-3.0-or-later
// Hand-solved cases: one element is one byte, links move one byte a second, and rates are in FLOP/s, so that
// costs are small whole numbers of seconds.
#include "core/model/mlpgraph.h"
#include "core/model/modelgraph.h"
#include "core/sharding/shardingplan.h"
#include "core/sharding/shards.h"
#include "testmain.h"

#include <QTest>

#include <cmath>

using namespace pipewright;
using namespace pipewright::sharding;

namespace {

Cluster clusterOf(const std::vector<double>& rates, double bandwidth = 1, bool grouped = false)
{
    Cluster cluster;
    for (const double rate : rates)
        cluster.devices.push_back({"device", 0, rate, 0, 1});
    for (int kind = 0; kind < collectiveKinds; ++kind)
        cluster.collectives[static_cast<Collective>(kind)] = {0, bandwidth};
    cluster.groupedCollectives = grouped;
    return cluster;
}

TensorGraph chain(std::int64_t batch, std::vector<std::int64_t> widths)
{
    TensorGraph graph = mlpGraph({batch, std::move(widths), {}, false});
    graph.bytesPerElement = graph.stateBytesPerParameter = 1;
    return graph;
}

/// What is computed and communicated, in order: "y1 = linear(x, w1) -> Gather(0)".
QStringList steps(const ShardingProgram& program, const TensorGraph& graph)
{
    QStringList list;
    for (const ShardingInstruction& instruction : program.instructions)
        list << QString::fromStdString(actionText(instruction, graph) + " -> " + toString(instruction.after.relation));
    return list;
}

RatioProblem weighing(double work, std::vector<double> rates, double volume)
{
    RatioProblem problem;
    problem.devices = static_cast<int>(rates.size());
    RatioProblem::Term compute, communicate;
    for (int d = 0; d < problem.devices; ++d) {
        compute.lines.push_back({0, work / rates[d], d, 0});
        communicate.lines.push_back({0, problem.devices * volume, d, 0});
    }
    problem.terms = {compute};
    if (volume > 0)
        problem.terms.push_back(communicate);
    return problem;
}

void compareShares(const std::vector<double>& found, const std::vector<double>& expected)
{
    QCOMPARE(found.size(), expected.size());
    for (std::size_t d = 0; d < found.size(); ++d)
        QVERIFY2(std::abs(found[d] - expected[d]) < 1e-12,
                 qPrintable(QString("share %1 is %2").arg(d).arg(found[d], 0, 'g', 17)));
}

#define COMPARE_SECONDS(found, expected)                                                                               \
    QVERIFY2(std::abs((found) - (expected)) < 1e-9 * (1 + std::abs(expected)),                                         \
             qPrintable(QString::number(found, 'g', 15)))

} // namespace

class ShardingCasesTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void sharesFollowRates()
    {
        const auto solved = [](std::vector<double> rates, const std::vector<double>& expected, double time) {
            const RatioProblem problem = weighing(12, std::move(rates), 0);
            const auto ratios = bestRatios(problem);
            QVERIFY(ratios);
            compareShares(ratios->front(), expected);
            COMPARE_SECONDS(valueOf(problem, *ratios), time);
        };
        solved({2, 1}, {2. / 3, 1. / 3}, 4);
        solved({3, 2, 1}, {1. / 2, 1. / 3, 1. / 6}, 2);
        solved({1, 1, 1, 1}, {0.25, 0.25, 0.25, 0.25}, 3);
        const RatioProblem problem = weighing(12, {2, 1}, 0);
        COMPARE_SECONDS(valueOf(problem, {{0.5, 0.5}}), 6.0);
    }

    void paddedCommunicationPullsSharesToEven_data()
    {
        QTest::addColumn<double>("volume");
        QTest::addColumn<double>("low");
        QTest::addColumn<double>("high");
        QTest::addColumn<double>("time");
        QTest::newRow("0") << 0. << 2. / 3 << 2. / 3 << 4.;
        QTest::newRow("3") << 3. << 2. / 3 << 2. / 3 << 8.;
        QTest::newRow("6") << 6. << 0.5 << 2. / 3 << 12.;
        QTest::newRow("8") << 8. << 0.5 << 0.5 << 14.;
        QTest::newRow("12") << 12. << 0.5 << 0.5 << 18.;
    }

    void paddedCommunicationPullsSharesToEven()
    {
        QFETCH(double, volume);
        QFETCH(double, low);
        QFETCH(double, high);
        QFETCH(double, time);
        const RatioProblem problem = weighing(12, {2, 1}, volume);
        const auto ratios = bestRatios(problem);
        QVERIFY(ratios);
        QVERIFY(ratios->front()[0] > low - 1e-12 && ratios->front()[0] < high + 1e-12);
        COMPARE_SECONDS(valueOf(problem, *ratios), time);
    }

    /// All-gather of 3 bytes beside work of 12: 8 + a padded, 7 + 2a grouped.
    void groupedBroadcastsArePreferredWhileTheirLatenciesAreSmall()
    {
        for (const double latency : {0.5, 0.999, 1.001, 2.0}) {
            Cluster cluster = clusterOf({2, 1}, 1, true);
            for (auto& [kind, spec] : cluster.collectives)
                spec.latency = static_cast<Nanoseconds>(latency * 1e9);
            const Machine machine = machineOf(cluster);
            Charge gather;
            gather.segment = 0;
            gather.bytes = 3;
            const Charge chosen =
                cheaperOf(Collective::AllGather, Collective::GroupedBroadcast, gather, machine, {{2. / 3, 1. / 3}});
            QCOMPARE(chosen.collective == Collective::GroupedBroadcast, latency < 1);
            COMPARE_SECONDS(seconds(chosen, machine, {{2. / 3, 1. / 3}}), std::min(4 + latency, 3 + 2 * latency));
        }
    }

    void oneLinearLayerIsCutByOutputs()
    {
        const TensorGraph graph = chain(6, {4, 8});
        const Machine machine = machineOf(clusterOf({2, 1}));
        const ShardingPlan plan = planSharding(graph, machine);
        COMPARE_SECONDS(plan.cost, 384.0);
        compareShares(plan.ratios.front(), {2. / 3, 1. / 3});
        QVERIFY(plan.proved);
        QCOMPARE(steps(plan.program, graph),
                 QStringList({"x: load -> Identity", "w1: load -> Gather(0)", "y1 = linear(x, w1) -> Gather(1)",
                              "loss = sum(y1) -> Reduce"}));
        PlanOptions even;
        even.ratios = {{0.5, 0.5}};
        COMPARE_SECONDS(planSharding(graph, machine, even).cost, 576.0);
        const std::vector<Alternative> common = commonStrategies(graph, machine, {});
        const auto parallel = std::find_if(common.begin(), common.end(), [](const Alternative& one) {
            return one.strategy == Strategy::DataParallel;
        });
        QVERIFY(parallel != common.end());
        COMPARE_SECONDS(parallel->cost, 416.0);
    }

    void twoLayersWithoutReductionSplitsAreDataParallel()
    {
        const TensorGraph graph = chain(6, {4, 8, 4});
        const Machine machine = machineOf(clusterOf({2, 1}));
        PlanOptions options;
        options.rules = RuleSet::Published;
        const ShardingPlan plan = planSharding(graph, machine, options);
        COMPARE_SECONDS(plan.cost, 832.0);
        const CostParts parts = costParts(plan.program, machine, plan.ratios);
        COMPARE_SECONDS(parts.compute, 768.0);
        COMPARE_SECONDS(parts.communication, 64.0);
        QCOMPARE(steps(plan.program, graph),
                 QStringList({"x: load -> Gather(0)", "w1: load -> Identity", "y1 = linear(x, w1) -> Gather(0)",
                              "w2: load -> Identity", "y2 = linear(y1, w2) -> Gather(0)", "loss = sum(y2) -> Reduce"}));
        options.ratios = {{2. / 3, 1. / 3}};
        const auto others = runnersUp(graph, machine, plan, options, 12);
        const auto costs = [&others](double cost) {
            return std::any_of(others.begin(), others.end(),
                               [cost](const Alternative& a) { return std::abs(a.cost - cost) < 1e-9; });
        };
        QVERIFY(costs(896)); // both layers by outputs, an all-gather between them
        QVERIFY(costs(928)); // an all-to-all between outputs and rows
        options.ratios = {{0.5, 0.5}};
        COMPARE_SECONDS(planSharding(graph, machine, options).cost, 1216.0);
    }

    void withReductionSplitsTheyAreAColumnAndARow()
    {
        const TensorGraph graph = chain(6, {4, 8, 4});
        const ShardingPlan plan = planSharding(graph, machineOf(clusterOf({2, 1})));
        COMPARE_SECONDS(plan.cost, 768.0);
        QCOMPARE(steps(plan.program, graph),
                 QStringList({"x: load -> Identity", "w1: load -> Gather(0)", "y1 = linear(x, w1) -> Gather(1)",
                              "w2: load -> Gather(1)", "y2 = linear(y1, w2) -> Reduce", "loss = sum(y2) -> Reduce"}));
    }

    /// A weight of 30 x 30 and three rows: 240 to gather against 900 to reduce, and 3600 more work at rates of 2 and 1.
    void factorsAreGatheredWhereComputingIsCheap()
    {
        TensorGraph graph = chain(3, {30, 30});
        for (const double rate : {1.0, 1000.0}) {
            const Machine machine = machineOf(clusterOf({2 * rate, rate}));
            const Theory theory(graph, machine, {{2. / 3, 1. / 3}});
            double reduced = 0, gathered = 0;
            for (const Triple& triple : theory.triplesOf(graph.find("y1"))) {
                const SharingRule& rule = sharingRules()[static_cast<std::size_t>(triple.rule)];
                if (rule.split == '*')
                    (rule.factors() ? gathered : reduced) =
                        seconds(triple.charges, machine, theory.ratios()) + (rule.factors() ? 0 : 900);
            }
            COMPARE_SECONDS(gathered - reduced, 240 + 3600 / rate - 900);
        }
        // In a chain that has to be data parallel, factors win where the machine computes fast.
        const Machine fast = machineOf(clusterOf({2000, 1000}));
        Theory theory(graph, fast, {{2. / 3, 1. / 3}});
        theory.restrict(graph.find("y1"), [](const Triple& triple) {
            return triple.result.kind == RelationKind::Gather && triple.result.dim == 0;
        });
        const auto result = synthesise(theory);
        COMPARE_SECONDS(result.programs.front().cost, 5.4 + 243.6);
        Theory slow(graph, machineOf(clusterOf({2, 1})), {{2. / 3, 1. / 3}});
        slow.restrict(graph.find("y1"), [](const Triple& triple) {
            return triple.result.kind == RelationKind::Gather && triple.result.dim == 0;
        });
        COMPARE_SECONDS(synthesise(slow).programs.front().cost, 5400.0 + 900.0);
    }

    void lengthsAreRoundedByDeficit()
    {
        using Lengths = std::vector<std::int64_t>;
        const auto rounded = [](std::int64_t length, std::vector<double> shares) {
            return shardLengths(length, shares);
        };
        QCOMPARE(rounded(10, {2. / 3, 1. / 3}), Lengths({7, 3}));
        QCOMPARE(rounded(32, {2. / 3, 1. / 3}), Lengths({21, 11}));
        QCOMPARE(rounded(7, {0.5, 0.5}), Lengths({3, 4}));
        QCOMPARE(rounded(8, {0.55, 0.25, 0.2}), Lengths({4, 2, 2}));
        QCOMPARE(rounded(100, {0.4, 0.35, 0.25}), Lengths({40, 35, 25}));
        QCOMPARE(rounded(2048, {0.327452, 0.327452, 0.172548, 0.172548}), Lengths({671, 671, 353, 353}));
        QCOMPARE(rounded(1, {0.9, 0.1}), Lengths({1, 1}));
        QCOMPARE(rounded(2, {0.9, 0.05, 0.05}), Lengths({2, 0, 0}));
    }

    void mixedGenerationsGetTheirSharesByRate()
    {
        const double v100 = 3.858755e12, p100 = 2.149251e12;
        const auto eight = machineOf(clusterOf({v100, v100, p100, p100, p100, p100, p100, p100})).proportional();
        QVERIFY(std::abs(eight.front() - 0.187200) < 1e-6 && std::abs(eight.back() - 0.104267) < 1e-6);
        const auto four = machineOf(clusterOf({v100, v100, p100, p100})).proportional();
        QVERIFY(std::abs(four.front() - 0.321134) < 1e-6 && std::abs(four.back() - 0.178866) < 1e-6);
    }

    void takingTurnsStopsWhenNothingGetsCheaper()
    {
        const TensorGraph graph = chain(6, {4, 8, 4});
        PlanOptions options;
        options.rules = RuleSet::Published;
        const ShardingPlan plan = planSharding(graph, machineOf(clusterOf({2, 1})), options);
        QCOMPARE(plan.rounds.front().start, std::string("proportional"));
        COMPARE_SECONDS(plan.rounds.front().searched, 832.0);
        COMPARE_SECONDS(plan.rounds.front().improved, 832.0); // the linear program leaves 2/3, 1/3 as they are
        compareShares(plan.ratios.front(), {2. / 3, 1. / 3});
        COMPARE_SECONDS(costOf(plan.program, machineOf(clusterOf({2, 1})), plan.ratios), plan.cost);
    }

    void threeDevicesShareAChain()
    {
        const TensorGraph graph = chain(12, {6, 12, 6});
        const ShardingPlan plan = planSharding(graph, machineOf(clusterOf({3, 2, 1})));
        compareShares(plan.ratios.front(), {1. / 2, 1. / 3, 1. / 6});
        COMPARE_SECONDS(plan.cost, 2 * 6. * 12 * 6 * 12 / 6);
    }

    /// R1 with a memory row: device 0 may hold no more than half of what is cut.
    void memoryRowsLimitShares()
    {
        RatioProblem problem = weighing(12, {2, 1}, 0);
        problem.memory.push_back({0, 10, {100}, 60});
        auto ratios = bestRatios(problem);
        QVERIFY(ratios);
        compareShares(ratios->front(), {0.5, 0.5});
        COMPARE_SECONDS(valueOf(problem, *ratios), 6.0);
        problem.memory.push_back({1, 10, {100}, 50});
        QVERIFY(!bestRatios(problem)); // 0.5 + 0.4 < 1
        problem.memory.back().limit = 60;
        QVERIFY(bestRatios(problem));
        problem.memory.back().whole = 61;
        QVERIFY(!bestRatios(problem));
    }

    /// Where a device cannot hold whole weights with their state, they are cut, as far as they have to be.
    void memoryDecidesBetweenPrograms()
    {
        TensorGraph graph = chain(6, {4, 8, 4});
        graph.stateBytesPerParameter = 4;
        Cluster cluster = clusterOf({2, 1});
        PlanOptions options;
        options.rules = RuleSet::Published;
        options.ratios = {{2. / 3, 1. / 3}};
        const auto dataParallel = planSharding(graph, machineOf(cluster), options);
        // x 24, y1 48 and y2 24 are cut; the loss and 64 weights of four bytes are on each device.
        compareShares(dataParallel.memory, {64 + 256 + 1, 32 + 256 + 1});
        const auto costWith = [&](Bytes memory) {
            cluster.devices[0].memory = memory;
            const ShardingPlan plan = planSharding(graph, machineOf(cluster), options);
            return plan.proved && plan.memory[0] <= double(memory) ? plan.cost : 0;
        };
        COMPARE_SECONDS(costWith(321), 832.0);
        // One weight stored in pieces: gathered forward, reduce-scattered backward, 2 · 2 · 2/3 · 32 instead of 32.
        COMPARE_SECONDS(costWith(320), 832 - 32 + 256. / 3);
        COMPARE_SECONDS(costWith(300), 896.0); // both by outputs, 24 + 2/3 (128 + 128 + 48 + 24) + 48 + 1 = 291.67
        QVERIFY_THROWS_EXCEPTION(Error, costWith(250));
        // With ratios free, a smaller share makes room for the same program: 257 + 96 b <= 300.
        options.ratios.reset();
        cluster.devices[0].memory = 300;
        const ShardingPlan plan = planSharding(graph, machineOf(cluster), options);
        QVERIFY(plan.cost <= 896 && plan.memory[0] <= 300 * (1 + 1e-9));
        cluster.devices[0].memory = cluster.devices[1].memory = 20;
        QVERIFY_THROWS_EXCEPTION(Error, planSharding(graph, machineOf(cluster), options));
    }
};

PIPEWRIGHT_TEST(ShardingCasesTest, NoApplication)
#include "tst_shardingcases.moc"
