// SPDX-License-Identifier: GPL-3.0-or-later
// Runs of designs whose stages are held by groups on stand-in GPUs: their members train on streams, with collectives
// by copies and by NCCL, as they do on the host's threads.
#include "core/design/redesign.h"
#include "core/design/stageplans.h"
#include "core/predict/predict.h"
#include "errorof.h"
#include "executor/cuda/standingpus.h"
#include "executor/run/grouprun.h"
#include "makers/groups.h"
#include "makers/recordedstep.h"
#include "sanitized.h"
#include "testmain.h"
#include "traces/store/tracereader.h"

#include <QFile>
#include <QTemporaryDir>
#include <QTest>

#include <algorithm>
#include <set>

using namespace pipewright;
using namespace pipewright::test;

class GroupGpusTest : public QObject {
    Q_OBJECT

    static constexpr int microbatches = threadSanitized ? 2 : 4;

private Q_SLOTS:
    void initTestCase() { NEEDS_STAND_IN_GPUS; }
    void init() { forgetStandIns(); }
    /// Nothing that NVIDIA's documentation forbids, and nothing kept.
    void cleanup()
    {
        const StandInReports report = standInReport();
        QVERIFY2(report.faults().isEmpty(), qPrintable(report.faults()));
    }

    void membersTrainAsOnTheHost_data()
    {
        QTest::addColumn<QString>("family");
        QTest::addColumn<QString>("model");
        QTest::addColumn<int>("transport");
        QTest::addColumn<int>("members"); ///< of the second group
        int number = 3;                   // under the thread sanitizer NCCL and graphs are among what is left
        const auto row = [&number](const char* family, const char* model, CudaTransport transport, int members) {
            if (leftOut(number++))
                return;
            QTest::addRow("%s, %s, %s, %d", family, model, std::string(nameOf(transport)).c_str(), members)
                << family << model << static_cast<int>(transport) << members;
        };
        row("1f1b", "gpt", CudaTransport::Copy, 2);
        row("1f1b", "gpt", CudaTransport::Nccl, 2);
        row("zb-h1", "gpt", CudaTransport::Automatic, 2);
        row("interleaved-1f1b", "gpt", CudaTransport::Nccl, 2);
        row("v-half", "gpt", CudaTransport::Automatic, 2);
        row("chimera", "tied", CudaTransport::Nccl, 2);
        row("1f1b", "tied", CudaTransport::Copy, 3); // members on GPUs 2, 3 and, as the first of all, 0
        row("zb-h1", "experts", CudaTransport::Nccl, 2);
        row("1f1b", "mlp", CudaTransport::Automatic, 2);
        row("gpipe", "offloads", CudaTransport::Automatic, 2);
        row("zb-h1", "recomputes", CudaTransport::Automatic, 1);
        row("gpipe", "three copies", CudaTransport::Nccl, 4); // of one group of two
    }
    void membersTrainAsOnTheHost()
    {
        QFETCH(QString, family);
        QFETCH(QString, model);
        QFETCH(int, transport);
        QFETCH(int, members);
        const int layers = fewestLayers(family.toStdString());
        ModelShape shape = model == "experts" ? groupExperts(layers)
                           : model == "mlp"   ? groupMlp(layers)
                                              : groupShape(layers);
        shape.tiedHead = model == "tied";
        Design design =
            groupDesign(family.toStdString(), {{1e9, 5e8}, std::vector<double>(members, 1e9)}, microbatches, shape);
        if (model == "three copies") {
            design = copiesOf(groupDesign(family.toStdString(), {{1e9, 5e8}}, 2, shape), 3);
            design.schedule.zero.level = 1;
        }
        const auto stages = static_cast<std::size_t>(design.schedule.stages());
        if (model == "recomputes")
            design = withRecompute(design, std::vector<Recompute>(stages, Recompute::Block));
        if (model == "offloads") {
            design.costs.hostLink = LinkCosts{1000, 1e12};
            design = withOffload(design, std::vector<bool>(stages, true));
        }
        RunOptions host;
        host.steps = 2;
        const RunResult threads = run(design, host);

        const QTemporaryDir folder;
        const bool kernels = QLatin1String(QTest::currentDataTag()) == QLatin1String("1f1b, gpt, nccl, 2");
        RunOptions options = onStandInGpus();
        options.createBackend = [transport, kernels](int devices) {
            CudaSetup setup = standInSetup(devices);
            setup.transport = static_cast<CudaTransport>(transport);
            if (kernels)
                setup.cupti = standInLibrary("CUPTI");
            return createCudaBackend(countingTable(), setup);
        };
        options.trace = folder.filePath("run.db").toStdString();
        collectivesAsked = 0;
        const RunResult result = run(design, options);
        const bool byNccl = static_cast<CudaTransport>(transport) != CudaTransport::Copy;
        QCOMPARE(collectivesAsked > 0, byNccl);
        QCOMPARE(result.maths, std::string("training"));
        QCOMPARE(result.devices, 2 + members);
        QCOMPARE(result.groups, threads.groups);
        QVERIFY2(result.gradients && result.gradients->holds(), result.gradients->worst.c_str());
        // Where tokens went came from the GPUs.
        QCOMPARE(result.gradients->routing.tokens, model == "experts" ? 4 * shape.layers * shape.tokens() : 0);
        QCOMPARE(result.gradients->routing.unexplained, 0);
        QVERIFY(nearlyEqual(result.losses, threads.losses));
        QCOMPARE(result.peakBytes, result.predictedPeakBytes);
        for (std::size_t d = 0; d < result.heldBytes.size(); ++d)
            QCOMPARE(result.heldBytes[d], result.memory[d].total());

        const TraceReader reader(options.trace);
        QVERIFY(reader.complete());
        const Program program = predict(reader.design()).program;
        QCOMPARE(taskWithoutTimes(reader, program, 1), std::string());
        QCOMPARE(reader.holdsKernels(), kernels);
        const GpuWork work = reader.gpuWork(program, 1);
        if (kernels) { // which tell what GPUs did of what
            QVERIFY(!work.empty());
            for (const GpuWork::Slice& kernel : work.slices)
                QVERIFY(kernel.gpu < 4 && work.names[kernel.name].find("part ") == std::string::npos);
            return;
        }
        // The first group's members, and what they do together, lie under its blocks.
        std::set<std::string> names;
        for (const GpuWork::Slice& slice : work.slices)
            if (program.tasks[slice.task].device == 0)
                names.insert(work.names[slice.name]);
        QVERIFY(std::any_of(names.begin(), names.end(),
                            [](const std::string& name) { return name.starts_with("part 1 of "); }));
        QVERIFY(std::any_of(names.begin(), names.end(), [](const std::string& name) {
            return name.starts_with("all_") || name.starts_with("reduce_") || name.starts_with("grouped_");
        }));
    }

    void membersAreCapturedAsGraphsToTheSameBits_data()
    {
        QTest::addColumn<QString>("family");
        QTest::addColumn<QString>("model");
        int number = 1; // the thread sanitizer has the experts
        const auto row = [&number](const char* family, const char* model) {
            if (!leftOut(number++))
                QTest::addRow("%s, %s", family, model) << family << model;
        };
        row("1f1b", "gpt");
        row("interleaved-1f1b", "recomputes");
        row("zb-h1", "megatron-sequence");
        row("zb-h1", "experts");
        row("1f1b", "tied");
    }
    /// Every part of a block, and every collective of each member, is one graph, captured in the second step with what
    /// NCCL does in it, and launched from then on.
    void membersAreCapturedAsGraphsToTheSameBits()
    {
        QFETCH(QString, family);
        QFETCH(QString, model);
        const int layers = fewestLayers(family.toStdString());
        ModelShape shape = model == "experts" ? groupExperts(layers) : groupShape(layers);
        shape.tiedHead = model == "tied";
        Design design = groupDesign(family.toStdString(), {{1e9, 5e8}, {1e9, 1e9}}, 2, shape);
        if (model == "megatron-sequence")
            design = withStrategy(design, sharding::Strategy::MegatronSequence);
        if (model == "recomputes")
            design = withRecompute(
                design, std::vector<Recompute>(static_cast<std::size_t>(design.schedule.stages()), Recompute::Block));
        const QTemporaryDir folder;
        std::vector<QByteArray> dumps;
        for (const bool graphs : {false, true}) {
            forgetStandIns();
            RunOptions options = onStandInGpus();
            options.steps = 3;
            options.createBackend = [](int devices) {
                return createCudaBackend(standInTable(), standInSetup(devices));
            };
            options.dump = folder.filePath(graphs ? "graphs" : "streams").toStdString();
            options.runtime.captureBlocks = graphs;
            const RunResult result = run(design, options);
            QVERIFY2(result.gradients && result.gradients->holds(), result.gradients->worst.c_str());
            QCOMPARE(result.peakBytes, result.predictedPeakBytes);
            QFile dump(QString::fromStdString(options.dump));
            QVERIFY(dump.open(QIODevice::ReadOnly));
            dumps.push_back(dump.readAll());
            const GroupRun members(design, true);
            double captured = 0;
            for (const Task& task : members.members.program.tasks)
                captured += task.kind == TaskKind::Compute      ? 1
                            : task.kind == TaskKind::Collective ? task.memberCount()
                                                                : 0;
            QCOMPARE(standInReport().counted("graph launches"), graphs ? 2 * captured : 0.0);
        }
        QVERIFY(!dumps[0].isEmpty());
        QVERIFY(dumps[0] == dumps[1]);
    }

    void whatCannotBeCapturedIsRefused()
    {
        Design design = groupDesign("1f1b", {{1e9, 5e8}, {1e9}}, microbatches, groupShape(2));
        RunOptions options = onStandInGpus(CudaTransport::Copy);
        options.runtime.captureBlocks = true;
        const std::string why = errorOf([&] { run(design, options); });
        QVERIFY2(why.find("--graphs: error: the 2 members of device 0 copy from each other") != std::string::npos,
                 why.c_str());
        // Where a design says that members share a GPU it is known before.
        RunMeans means{"cuda", RunOptions::Maths::Training, false, true, true};
        QVERIFY(checkForBackend(design, means).found.empty());
        Cluster members = *design.cluster.devices[0].group;
        members.gpus = {{2, 8}, {2, 8}};
        design.cluster.devices[0].group = std::make_shared<const Cluster>(members);
        design.cluster.gpus = {{0, 0}, {1, 0}};
        const BackendCheck check = checkForBackend(design, means);
        QVERIFY(!check.trains && hasErrors(check.found));
        QCOMPARE(check.found.front().where, std::string("--graphs"));
        // Of a group of one nothing is done together.
        const Design alone = groupDesign("1f1b", {{1e9}, {1e9}}, microbatches, groupShape(2));
        RunOptions copies = onStandInGpus(CudaTransport::Copy);
        copies.runtime.captureBlocks = true;
        QVERIFY(run(alone, copies).gradients->holds());
    }

    void aMemberThatFailsEndsTheOthersAmidGraphs()
    {
        RunOptions options = onStandInGpus();
        options.steps = 3;
        options.createBackend = [](int devices) { return createCudaBackend(standInTable(), standInSetup(devices)); };
        options.runtime.captureBlocks = true;
        options.runtime.faults = {{.kind = Fault::Kind::Throws, .device = 1, .step = 2, .instruction = 6}};
        const std::string why = errorOf([&] {
            run(groupDesign("1f1b", {{1e9, 5e8}, {1e9, 1e9}}, microbatches, groupShape(2)), options);
        });
        QVERIFY2(why.find("an injected fault made its maths fail") != std::string::npos, why.c_str());
    }

    void aMemberThatFailsEndsTheOthers_data()
    {
        QTest::addColumn<int>("transport");
        for (const CudaTransport transport : cudaTransports)
            QTest::newRow(std::string(nameOf(transport)).c_str()) << static_cast<int>(transport);
    }
    void aMemberThatFailsEndsTheOthers()
    {
        QFETCH(int, transport);
        const Design design = groupDesign("1f1b", {{1e9, 5e8}, {1e9, 1e9}}, microbatches, groupShape(2));
        RunOptions options = onStandInGpus(static_cast<CudaTransport>(transport));
        options.runtime.faults = {{.kind = Fault::Kind::Throws, .device = 1, .instruction = 2}};
        const std::string why = errorOf([&] { run(design, options); });
        QVERIFY2(why.find("an injected fault made its maths fail") != std::string::npos, why.c_str());
    }

    void timesOfMembersPassOnGpusToo()
    {
        const Design design = groupDesign("zb-h1", {{1e9, 5e8}, {1e9, 1e9}}, microbatches, groupShape(2));
        RunOptions options = onStandInGpus();
        options.maths = RunOptions::Maths::Timed;
        const RunResult result = run(design, options);
        QCOMPARE(result.devices, 4);
        QCOMPARE(result.peakBytes, result.predictedPeakBytes);
        const Nanoseconds predicted = predictMembers(GroupRun(design, false).members).metrics.makespan;
        QVERIFY(result.stepTimes.back() >= predicted);
    }

    void placesOfMembersAreTheirGroups()
    {
        Design design = groupDesign("1f1b", {{1e9, 5e8}, {1e9}}, microbatches, groupShape(2));
        const RunMeans means{"cuda", RunOptions::Maths::Training, false, true};
        QVERIFY(gpusOfRun(design, means).empty());
        design.cluster.gpus = {{0, 0}, {1, 0}};
        const auto said = [&] { return errorOf([&] { gpusOfRun(design, means); }); };
        QVERIFY2(said().starts_with("cluster.devices[0].group: error: its place on GPUs is not said"), said().c_str());
        Cluster members = *design.cluster.devices[0].group;
        members.gpus = {{2, 0}, {3, 0}};
        design.cluster.devices[0].group = std::make_shared<const Cluster>(members);
        QCOMPARE(gpusOfRun(design, means), (std::vector<GpuShare>{{2, 0}, {3, 0}, {1, 0}}));
        design.cluster.gpus.clear();
        QVERIFY2(said().starts_with("cluster.devices[1]: error: its place on GPUs is not said"), said().c_str());
    }
};

PIPEWRIGHT_TEST(GroupGpusTest, NoApplication)
#include "tst_groupgpus.moc"
