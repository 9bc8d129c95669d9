// SPDX-License-Identifier: GPL-3.0-or-later
// Stages that groups of devices hold together: what the pipeline sees of them.
#include "core/design/newdesign.h"
#include "core/design/redesign.h"
#include "core/design/stagecosts.h"
#include "core/files/designfile.h"
#include "core/model/transformer.h"
#include "core/predict/predict.h"
#include "core/presets/presets.h"
#include "core/search/partition.h"
#include "core/sharding/collectivefit.h"
#include "core/sharding/sharedstage.h"
#include "core/sharding/tensorgraphs.h"
#include "makers/models.h"
#include "testmain.h"

#include <QTest>

#include <cmath>
#include <stop_token>

using namespace pipewright;
using namespace pipewright::sharding;

namespace {

Workload small(int layers = 4)
{
    return test::workloadOf(test::gptShape(layers, 64, 4, 96, 16, 6));
}

DeviceSpec single(double rate, Bytes memory = 0)
{
    return {"device", memory, rate, 0, 1};
}

DeviceSpec group(std::vector<DeviceSpec> members, double bandwidth = 1e12, Nanoseconds latency = 0)
{
    Cluster cluster;
    cluster.name = "group";
    cluster.devices = std::move(members);
    cluster.link = {"wire", latency, bandwidth};
    return asOneDevice(std::move(cluster));
}

Cluster lanes(std::vector<DeviceSpec> devices)
{
    Cluster cluster;
    cluster.devices = std::move(devices);
    cluster.link = {"wire", 1000, 1e10};
    return cluster;
}

double ratio(Nanoseconds a, Nanoseconds b)
{
    return static_cast<double>(a) / static_cast<double>(b);
}

QString text(const Error& error)
{
    return QString::fromStdString(toString(error.diagnostics()));
}

} // namespace

class ShardingGroupsTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    /// A group of one is the device itself, as far as the two formulas of work agree.
    void aGroupOfOneIsItsDevice()
    {
        const Workload workload = small();
        const Costs alone = formulaCosts(workload, {3, 3}, lanes({single(1e9), single(1e9)}), {0, 1});
        const Costs shared =
            formulaCosts(workload, {3, 3}, lanes({group({single(1e9)}), group({single(1e9)})}), {0, 1});
        for (std::size_t s = 0; s < 2; ++s) {
            StageCosts a = alone.stages[s], b = shared.stages[s];
            QVERIFY2(std::abs(ratio(b.forward, a.forward) - 1) < 0.05,
                     qPrintable(QString::number(ratio(b.forward, a.forward))));
            QVERIFY(std::abs(ratio(b.backward, a.backward) - 1) < 0.05);
            for (const auto time : {&StageCosts::forward, &StageCosts::inputGrad, &StageCosts::weightGrad,
                                    &StageCosts::backward, &StageCosts::recompute, &StageCosts::update})
                b.*time = a.*time;
            QVERIFY(a == b); // every byte
        }
    }

    /// Rates 2 : 1 over a link that costs nothing: at best three halves as fast as the fast one alone.
    void membersShareTheWork()
    {
        const Workload workload = small();
        const Costs fast = formulaCosts(workload, {6}, lanes({group({single(2e9)})}), {0});
        const Costs both = formulaCosts(workload, {6}, lanes({group({single(2e9), single(1e9)})}), {0});
        const double faster =
            ratio(fast.stages[0].forward + fast.stages[0].backward, both.stages[0].forward + both.stages[0].backward);
        QVERIFY2(faster > 1.3 && faster < 1.5 + 1e-6, qPrintable(QString::number(faster)));
        QVERIFY(both.stages[0].parameters <= fast.stages[0].parameters);
        QVERIFY(both.stages[0].savedUntilInputGrad < fast.stages[0].savedUntilInputGrad);
    }

    void aPlanIsFoundOnceForAllUnlessItsSearchWasStopped()
    {
        const Workload workload = small();
        const DeviceSpec unlike = group({single(3e9), single(2e9)}, 1e9, 1000);
        std::stop_source stopped;
        stopped.request_stop();
        SharedStages first, second, third;
        const SharedStage& best = first.plan(workload, 1, 2, unlike, {}, stopped.get_token());
        const SharedStage& whole = second.plan(workload, 1, 2, unlike);
        QVERIFY(&whole != &best);
        QVERIFY(&third.plan(workload, 1, 2, unlike) == &whole);
        QVERIFY(&first.plan(workload, 1, 2, unlike) == &best); // which knows its own
    }

    void costsAreThoseOfTheProgram_data()
    {
        QTest::addColumn<double>("slow");
        QTest::newRow("alike") << 2e9;
        QTest::newRow("unlike") << 1e9;
    }

    /// The costs are the program's, pass by pass; but members wait for each other at its collectives only, where the
    /// program's own cost has them wait at every instruction.
    void costsAreThoseOfTheProgram()
    {
        QFETCH(double, slow);
        const Workload workload = small();
        const DeviceSpec lane = group({single(2e9), single(slow)}, 1e9, 1000);
        SharedStages known;
        const SharedStage& stage = known.plan(workload, 1, 2, lane);
        const CostParts parts = costParts(stage.plan.program, stage.machine, stage.plan.ratios);
        const Costs costs = formulaCosts(workload, {1, 2, 3}, lanes({lane}), {0, 0, 0});
        const auto compare = [slow](Nanoseconds ours, double program) {
            const double nanoseconds = program * 1e9, off = double(ours) - nanoseconds;
            QVERIFY2(off <= 1 && off > (slow == 2e9 ? -1 : -0.1 * nanoseconds),
                     qPrintable(QString("%1 %2").arg(ours).arg(nanoseconds)));
        };
        compare(costs.stages[1].forward, parts.forward);
        compare(costs.stages[1].inputGrad, parts.inputGrad);
        compare(costs.stages[1].weightGrad, parts.weightGrad);
        QVERIFY(std::abs(parts.forward + parts.inputGrad + parts.weightGrad - stage.plan.cost)
                < 1e-9 * stage.plan.cost);
        QVERIFY(&known.plan(workload, 2, 2, lane) == &stage); // two layers in the middle are like two others
    }

    /// What an earlier stage sent wants its gradient back whole: used whole, every device has only a part of it.
    void whatWasReceivedGetsItsGradient()
    {
        const TensorGraph graph = stageGraph(small().shape, {4, 4, 8}, {1, 1, false, false});
        QVERIFY(graph.check().empty());
        QCOMPARE(graph.node(0).leaf, Leaf::Received);
        QCOMPARE(QString::fromStdString(graph.node(graph.loss()).name), QString("hand_over"));
        const Theory theory(graph, machineOf(*group({single(1), single(1)}).group), {{0.5, 0.5}});
        for (const Step& load : theory.loadsOf(0)) {
            QCOMPARE(load.charges.size(), std::size_t(load.to.kind == RelationKind::Identity));
            for (const Charge& charge : load.charges)
                QVERIFY(charge.pass == Pass::InputGrad && charge.bytes == graph.bytesOf(0));
        }
    }

    void theFullestMemberCounts()
    {
        const Workload workload = small();
        // The slow device holds less of everything that is cut, but its memory is a tenth.
        const DeviceSpec lane = group({single(2e9, Bytes(1) << 30), single(1e9, (Bytes(1) << 30) / 10)});
        QCOMPARE(lane.memory, (Bytes(1) << 30) / 10);
        SharedStages known;
        const SharedStage& stage = known.plan(workload, 0, 6, lane);
        const std::vector<double> bytes = memoryOf(stage.plan.program, stage.plan.ratios);
        QVERIFY(devicesOverfull(bytes, stage.machine).empty());
        const Costs costs = formulaCosts(workload, {6}, lanes({lane}), {0});
        const StageCosts& held = costs.stages[0];
        const double shown = double(held.parameters + held.gradients + held.optimizerState);
        double fullest = 0; // in terms of the smallest memory
        for (std::size_t d = 0; d < 2; ++d)
            fullest = std::max(fullest, bytes[d] / stage.machine.memory[d]);
        QVERIFY(shown + double(held.savedUntilInputGrad) > 0.5 * fullest * double(lane.memory));
        QVERIFY(shown <= test::parameterElements(stage.graph) * stage.graph.stateBytesPerParameter);
    }

    void theSchedulerSeesOneStage()
    {
        NewDesign choice;
        choice.workload = small();
        choice.cluster = lanes({group({single(2e9), single(1e9)}), single(1e9)});
        choice.family = "1f1b";
        choice.microbatches = 4;
        const Design design = designFromModel(choice);
        QCOMPARE(design.schedule.devices(), 2);
        const Prediction prediction = predict(design);
        QVERIFY(prediction.metrics.makespan > 0);
        const Design back = designFromJson(designToJson(design), "x.json");
        QVERIFY(back == design);
        QCOMPARE(back.cluster.devices[0].group->devices.size(), std::size_t(2));
        const Design even = withCluster(design, lanes({single(1e9), single(1e9)}));
        QVERIFY(even.costs.stages[0].forward > design.costs.stages[0].forward);
    }

    /// Three times the rate, about three times the layers.
    void uneven()
    {
        NewDesign choice;
        choice.workload = small(8);
        choice.cluster = lanes({group({single(2e9), single(1e9)}), single(1e9)});
        choice.family = "1f1b";
        choice.microbatches = 4;
        const Design design = designFromModel(choice);
        PartitionOptions options;
        options.search.timeLimit = std::chrono::seconds(30); // it ends by itself, with its proof
        const PartitionResult found = searchPartition(design, options);
        QVERIFY2(found.design.layersPerStage[0] >= found.design.layersPerStage[1] + 2,
                 qPrintable(QString::number(found.design.layersPerStage[0])));
        QVERIFY(predict(found.design).metrics.makespan < predict(design).metrics.makespan);
    }

    void faultsSayWhichMember_data()
    {
        QTest::addColumn<QString>("what");
        QTest::addColumn<QString>("expected");
        QTest::newRow("rate of zero") << "rate"
                                      << "cluster.devices.1.group.devices.1.peak_flops";
        QTest::newRow("memory") << "memory"
                                << "cluster.devices.1.group.devices.";
        QTest::newRow("absurd link") << "link"
                                     << "cluster.devices.1.group.link.bandwidth";
    }

    void faultsSayWhichMember()
    {
        QFETCH(QString, what);
        QFETCH(QString, expected);
        DeviceSpec lane = group(
            {single(1e9, what == "memory" ? 1000 : 0), single(what == "rate" ? 0 : 1e9, what == "memory" ? 1000 : 0)},
            what == "link" ? 1e30 : 1e9);
        try {
            (void)formulaCosts(small(), {3, 3}, lanes({single(1e9), lane}), {0, 1});
            QFAIL("nothing was wrong with it");
        } catch (const Error& error) {
            QVERIFY2(text(error).contains(expected), qPrintable(text(error)));
        }
    }

    void presetsHoldGroups()
    {
        const Cluster cluster = PresetLibrary().cluster("host-mixed");
        QCOMPARE(cluster.devices.size(), std::size_t(2));
        QCOMPARE(cluster.devices[1].group->devices.size(), std::size_t(2));
        const Design design = [&] {
            NewDesign choice;
            choice.workload = small();
            choice.cluster = cluster;
            return designFromModel(choice);
        }();
        std::string nested = designToJson(design);
        // A group within a group is refused, with its line.
        const std::string inner = R"("devices": [
          {"name": "inner", "group": {"devices": [{"name": "a"}]}},)";
        const auto at = nested.find("\"devices\": [", nested.find("\"group\""));
        QVERIFY(at != std::string::npos);
        nested.replace(at, sizeof("\"devices\": [") - 1, inner);
        try {
            (void)designFromJson(nested, "x.json");
            QFAIL("it was read");
        } catch (const Error& error) {
            QVERIFY2(text(error).contains("a group within a group"), qPrintable(text(error)));
        }
    }

    /// Times made by the formula give its numbers back, whatever sizes and skews they were made for.
    void measuredCollectivesAreFitted()
    {
        for (int kind = 0; kind < collectiveKinds; ++kind) {
            std::vector<CollectiveSample> samples;
            Cluster truth;
            truth.collectives[static_cast<Collective>(kind)] = {30'000, 2e8};
            for (const double bytes : {1e3, 1e5, 1e7})
                for (const double skew : {1.0, 1.5, 3.0}) {
                    samples.push_back({static_cast<Collective>(kind), bytes, skew, 0});
                    samples.back().seconds = fittedSeconds(truth, samples.back(), 3);
                }
            const CollectiveSpec found = fitted(static_cast<Collective>(kind), samples, 3);
            QVERIFY(std::abs(double(found.latency) - 30'000) < 1);
            QVERIFY(std::abs(found.bandwidth / 2e8 - 1) < 1e-6);
        }
        // Neither becomes negative.
        const std::vector<CollectiveSample> falling{{Collective::AllReduce, 1e3, 1, 2e-3},
                                                    {Collective::AllReduce, 1e6, 1, 1e-3}};
        const CollectiveSpec flat = fitted(Collective::AllReduce, falling, 2);
        QVERIFY(flat.latency > 0 && flat.bandwidth == 0);
        const std::vector<CollectiveSample> steep{{Collective::AllReduce, 1e3, 1, 1e-6},
                                                  {Collective::AllReduce, 1e6, 1, 1}};
        QCOMPARE(fitted(Collective::AllReduce, steep, 2).latency, Nanoseconds(0));
        QVERIFY_THROWS_EXCEPTION(Error, fitted(Collective::AllToAll, steep, 2));
    }
};

PIPEWRIGHT_TEST(ShardingGroupsTest, NoApplication)
#include "tst_shardinggroups.moc"
