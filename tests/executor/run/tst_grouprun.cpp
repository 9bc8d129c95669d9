// SPDX-License-Identifier: GPL-3.0-or-later
// Whole runs of designs whose stages are held by groups: every member runs, the trace is the groups', with the members'
// parts under its blocks.
#include "core/base/textfile.h"
#include "core/design/redesign.h"
#include "core/design/stageplans.h"
#include "core/predict/predict.h"
#include "core/program/compile.h"
#include "core/program/transferorder.h"
#include "executor/run/backendcheck.h"
#include "executor/run/gradientcheck.h"
#include "executor/run/grouprun.h"
#include "executor/run/run.h"
#include "executor/run/safetensorsfile.h"
#include "makers/groups.h"
#include "makers/rankedrun.h"
#include "makers/recordedstep.h"
#include "sanitized.h"
#include "testmain.h"
#include "traces/analysis/blockkernels.h"
#include "traces/store/tracereader.h"

#include <QTemporaryDir>
#include <QTest>

#include <algorithm>
#include <map>

using namespace pipewright;
using namespace pipewright::test;

class GroupRunTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void allMembersTrainAndTheTraceIsTheGroups_data()
    {
        QTest::addColumn<QString>("family");
        for (const char* family : {"1f1b", "zb-h1", "interleaved-1f1b", "v-half", "seq1f1b", "pipedream", "pipeoptim"})
            QTest::newRow(family) << family;
        QTest::newRow("what is kept leaves") << "gpipe";
    }
    void allMembersTrainAndTheTraceIsTheGroups()
    {
        QFETCH(QString, family);
        const QTemporaryDir folder;
        Design design = groupDesign(family.toStdString(), {{1e9, 5e8}, {1e9, 1e9}}, 4, groupShape(sanitized ? 4 : 6));
        if (family == "gpipe") {
            design.costs.hostLink = LinkCosts{1000, 1e12};
            design = withOffload(design, std::vector<bool>(2, true));
        }
        RunOptions options;
        options.steps = 2;
        options.trace = folder.filePath("run.db").toStdString();
        const RunResult result = run(design, options);
        QCOMPARE(result.maths, std::string("training"));
        QCOMPARE(result.devices, 4);
        QCOMPARE(result.groups, (std::vector<int>{0, 0, 1, 1}));
        QCOMPARE(result.peakBytes, result.predictedPeakBytes);
        QCOMPARE(result.hostBytes, result.predictedHostBytes);
        QCOMPARE(result.hostBytes.empty(), family != "gpipe");
        QVERIFY(result.gradients && result.gradients->holds());
        QVERIFY(result.losses.back() < 6 && result.losses.back() > 4); // ln 256 is 5.5
        QVERIFY(QString::fromStdString(result.toJson()).contains("\"group\":[0,0,1,1]"));

        const TraceReader reader(options.trace);
        QVERIFY(reader.complete());
        const Design recorded = reader.design();
        const Program program = compile(recorded.schedule, recorded.costs, recorded.dataflow);
        QCOMPARE(program.devices.size(), std::size_t{2});
        QCOMPARE(taskWithoutTimes(reader, program, 1), std::string());
        // Memory is that of each group's fullest member, as the recorded design says.
        for (std::size_t group = 0; group < 2; ++group)
            QCOMPARE(reader.peakBytes()[group], std::max(result.peakBytes[2 * group], result.peakBytes[2 * group + 1]));
        QVERIFY(reader.holdsGpuWork() && !reader.holdsKernels()); // nothing is said of GPUs
        QVERIFY(!kernelTotals(reader, program, 1));
        const GpuWork parts = reader.gpuWork(program, 1);
        QVERIFY(!parts.empty());
    }

    void predictionIsOfMembersAndTheVirtualClockAgrees()
    {
        const Design design = groupDesign("zb-h1", {{1e9, 5e8}, {1e9, 1e9, 4e8}}, 6);
        const Prediction members = predictMembers(GroupRun(design, false).members);
        QCOMPARE(members.metrics.devices.size(), std::size_t{5});
        const Prediction groups = predict(design);
        QVERIFY(members.metrics.makespan <= groups.metrics.makespan + 100);
        RunOptions options;
        options.maths = RunOptions::Maths::Timed;
        options.clock = RunOptions::Clock::Virtual;
        const RunResult result = run(design, options);
        QCOMPARE(result.stepTimes.front(), members.metrics.makespan);
    }

    void whatIsStatedOfTransfersRunsAsPredicted_data()
    {
        QTest::addColumn<QByteArray>("first");
        QTest::addColumn<QByteArray>("second");
        QTest::addColumn<bool>("narrow");
        QTest::addColumn<bool>("blocks");
        const auto row = [](const char* name, const char* first, const char* second, bool narrow, bool blocks) {
            QTest::newRow(name) << QByteArray(first) << QByteArray(second) << narrow << blocks;
        };
        row("in an order of its own", "F0.2 to 1", "F0.1 to 1", false, false);
        row("and blocks", "F0.2 to 1", "F0.1 to 1", false, true);
        row("behind a collective", "F0.2 collective 0", "F0.1 to 1", false, false);
        row("before the sums of weight gradients", "B1.3 to 0", "B1.3 collective 99", false, false);
        row("before the sums of weight gradients, and blocks", "B1.3 to 0", "B1.3 collective 99", false, true);
        row("before the sums of weight gradients, bf16", "B1.3 to 0", "B1.3 collective 99", true, false);
    }
    void whatIsStatedOfTransfersRunsAsPredicted()
    {
        QFETCH(QByteArray, first);
        QFETCH(QByteArray, second);
        QFETCH(bool, narrow);
        QFETCH(bool, blocks);
        ModelShape shape = groupShape();
        if (narrow)
            shape.dataType = DataType::Bf16;
        Design design = withStrategy(groupDesign("gpipe", {{1e9, 5e8}, {1e9, 1e9}}, 4, shape),
                                     first.contains("collective") ? sharding::Strategy::Megatron
                                                                  : sharding::Strategy::DataParallel);
        const RunResult before = run(design, {});
        TransferPrecedence pair{*parseTransfer(first.toStdString()), *parseTransfer(second.toStdString())};
        if (pair.second.isCollective()) // its block's last
            pair.second.collective =
                static_cast<std::int32_t>(groupStages(design).stages[1].passes[indexOf(Op::B)].collectives.size()) - 1;
        design.costs.communication = blocks ? Communication::Blocking : Communication::Overlapped;
        const Nanoseconds unstated = predictMembers(GroupRun(design, false).members).metrics.makespan;
        design.schedule.transferOrder = {pair};
        RunOptions options;
        options.maths = RunOptions::Maths::Timed;
        options.clock = RunOptions::Clock::Virtual;
        const Nanoseconds took = run(design, options).stepTimes.front();
        QCOMPARE(took, predictMembers(GroupRun(design, false).members).metrics.makespan);
        // What waits for a later block than its own is late, and what is sent early shortens the way back.
        if (!blocks && !pair.first.isCollective())
            QVERIFY(pair.second.isCollective() ? took < unstated : took > unstated);
        const QTemporaryDir folder;
        const auto wasHeld = [&](const std::string& trace) { // what nothing but the order holds up may still be late
            const TraceReader reader(trace);
            const Program program = predict(reader.design()).program;
            const Timeline timeline = reader.timeline(program, 0);
            const auto startOf = [&](const Transfer& transfer) {
                for (TaskId t = 0; t < program.tasks.size(); ++t)
                    if (program.tasks[t].kind == TaskKind::Transfer && nameOf(program, t) == transfer)
                        return timeline.start[t];
                return notRun;
            };
            if (!pair.first.isCollective())
                return pair.second.isCollective() || startOf(pair.first) <= startOf(pair.second);
            const GpuWork parts = reader.gpuWork(program, 0);
            const auto collective = std::find_if(parts.slices.begin(), parts.slices.end(), [&](const auto& slice) {
                return slice.task != none && program.tasks[slice.task].block() == pair.first.producer
                       && !parts.names[slice.name].starts_with("part ");
            });
            return collective != parts.slices.end() && collective->start < startOf(pair.second);
        };
        options = {};
        options.runtime.checkMemory = true;
        options.trace = folder.filePath("threads.db").toStdString();
        const RunResult trained = run(design, options);
        QCOMPARE(trained.maths, std::string("training"));
        QVERIFY(trained.gradients->holds());
        QCOMPARE(trained.losses, before.losses);
        QCOMPARE(trained.gradients->maxRelativeError, before.gradients->maxRelativeError);
        QCOMPARE(trained.peakBytes, trained.predictedPeakBytes);
        QVERIFY(wasHeld(options.trace));
        options.trace = folder.filePath("ranks.db").toStdString();
        options.backend = "mpi";
        const auto [all, failures] = onRanks(design, options, devicesOfRun(design, meansOf(options)));
        QCOMPARE(failures, std::vector<std::string>(4));
        QCOMPARE(all.losses, before.losses);
        QCOMPARE(all.peakBytes, all.predictedPeakBytes);
        QVERIFY(wasHeld(options.trace));
    }

    void membersThatAreProcessesTrainToTheBitsOfThreads_data()
    {
        QTest::addColumn<QString>("family");
        QTest::addColumn<QString>("plan");
        QTest::newRow("1f1b") << "1f1b"
                              << "hap";
        QTest::newRow("1f1b, bf16") << "1f1b"
                                    << "hap";
        QTest::newRow("zb-h1, cut rows and columns") << "zb-h1"
                                                     << "megatron";
        QTest::newRow("v-half") << "v-half"
                                << "even";
        QTest::newRow("experts") << "zb-h1"
                                 << "hap";
        QTest::newRow("two replicas") << "chimera"
                                      << "data-parallel";
        QTest::newRow("pieces of sequences") << "seq1f1b"
                                             << "megatron";
        QTest::newRow("updates amid the step") << "pipedream"
                                               << "hap";
        QTest::newRow("updates amid the step, bf16") << "pipeoptim"
                                                     << "megatron";
        QTest::newRow("pieces of sequences, bf16") << "seq1f1b"
                                                   << "hap";
        for (const char* copies : {"three copies", "three copies that share the optimizer's state",
                                   "three copies that share the optimizer's state, bf16"})
            if (!threadSanitized || QByteArrayView(copies).endsWith("bf16"))
                QTest::newRow(copies) << "gpipe"
                                      << "hap";
    }
    void membersThatAreProcessesTrainToTheBitsOfThreads()
    {
        QFETCH(QString, family);
        QFETCH(QString, plan);
        const QString tag = QTest::currentDataTag();
        ModelShape shape = tag == "experts" ? groupExperts() : groupShape(4);
        shape.tiedHead = tag != "experts" && !tag.startsWith("updates");
        if (tag.endsWith(QLatin1String("bf16")))
            shape.dataType = DataType::Bf16;
        const bool copies = tag.startsWith("three copies");
        Design design = copies ? copiesOf(groupDesign(family.toStdString(), {{1e9, 5e8}}, 2, shape), 3)
                               : groupDesign(family.toStdString(), {{1e9, 5e8}, {1e9, 1e9}}, 4, shape);
        design = withStrategy(design, *sharding::strategyNamed(plan.toStdString()));
        design.schedule.zero.level = tag.contains("share") ? 1 : 0;
        RunOptions options;
        options.steps = copies ? 4 : 2;
        options.runtime.checkMemory = true;
        const QTemporaryDir folder;
        const auto dumpOf = [&folder](const char* of) { return folder.filePath(of).toStdString(); };
        options.dump = dumpOf("threads.safetensors");
        const RunResult threads = run(design, options);
        options.dump = dumpOf("ranks.safetensors");
        options.trace = folder.filePath("ranks.db").toStdString();
        options.backend = "mpi";
        const int processes = devicesOfRun(design, meansOf(options));
        QCOMPARE(processes, copies ? 6 : 4);
        const auto [all, failures] = onRanks(design, options, processes);
        QCOMPARE(failures, std::vector<std::string>(std::size_t(processes)));
        QCOMPARE(all.losses, threads.losses); // sums are made in the order of the members, there as here
        QVERIFY(all.gradients && all.gradients->holds());
        QCOMPARE(all.gradients->maxRelativeError, threads.gradients->maxRelativeError);
        // Which experts tokens visited came from every process.
        QCOMPARE(all.gradients->routing.tokens, tag == "experts" ? 4 * shape.layers * shape.tokens() : 0);
        QCOMPARE(all.gradients->routing.unexplained, 0);
        QCOMPARE(all.groups, threads.groups);
        QCOMPARE(all.peakBytes, all.predictedPeakBytes);
        for (std::size_t d = 0; d < std::size_t(processes); ++d)
            QCOMPARE(all.heldBytes[d], all.memory[d].total());
        QVERIFY(readTextFile(options.dump) == readTextFile(dumpOf("threads.safetensors")));
        const TraceReader reader(options.trace);
        QVERIFY(reader.complete());
        const Program program = predict(reader.design()).program;
        QCOMPARE(taskWithoutTimes(reader, program, 1), std::string());
        QVERIFY(!reader.holdsKernels());
        QVERIFY(!reader.gpuWork(program, 1).empty()); // parts and collectives of the members
    }

    void membersThatAreProcessesTakeTheirTimesToo()
    {
        const Design design = groupDesign("zb-h1", {{1e9, 5e8}, {1e9, 1e9, 4e8}}, 4);
        const QTemporaryDir folder;
        RunOptions options;
        options.maths = RunOptions::Maths::Timed;
        options.trace = folder.filePath("threads.db").toStdString();
        const RunResult threads = run(design, options);
        // Which parts and collectives were recorded of which block.
        const auto parts = [](const std::string& trace) {
            const TraceReader reader(trace);
            const Program program = predict(reader.design()).program;
            const GpuWork work = reader.gpuWork(program, 0);
            std::vector<std::pair<std::string, std::string>> found;
            for (const GpuWork::Slice& slice : work.slices)
                found.emplace_back(program.label(slice.task), work.names[slice.name]);
            std::sort(found.begin(), found.end());
            return found;
        };
        const auto ofThreads = parts(options.trace);
        QVERIFY(!ofThreads.empty());
        options.trace = folder.filePath("ranks.db").toStdString();
        options.backend = "mpi";
        QCOMPARE(devicesOfRun(design, meansOf(options)), 5);
        QVERIFY(checkForBackend(design, meansOf(options)).found.empty());
        const auto [all, failures] = onRanks(design, options, 5);
        QCOMPARE(failures, std::vector<std::string>(5));
        QCOMPARE(all.maths, std::string("timed"));
        QCOMPARE(all.groups, threads.groups);
        QCOMPARE(all.peakBytes, threads.predictedPeakBytes);
        QVERIFY(parts(options.trace) == ofThreads);
    }

    void whatIsWrittenIsWhatSingleDevicesWrite_data()
    {
        QTest::addColumn<bool>("narrow");
        if (!threadSanitized)
            QTest::newRow("fp32") << false;
        QTest::newRow("bf16") << true;
    }
    void whatIsWrittenIsWhatSingleDevicesWrite()
    {
        QFETCH(bool, narrow);
        const double bound = narrow ? bf16GradientBound : fp32GradientBound;
        const QTemporaryDir folder;
        ModelShape shape = llamaShape(4);
        shape.microbatchSize = 4;
        shape.vocabulary = 256;
        shape.tiedHead = true;
        shape.dataType = narrow ? DataType::Bf16 : DataType::Fp32;
        const Design groups = groupDesign("1f1b", {{1e9, 5e8}, {1e9, 1e9}}, 4, shape);
        const Design single = tinyDesign("1f1b", 2, 4, shape);
        const auto file = [&folder](const char* name) { return folder.filePath(name).toStdString(); };
        const auto once = [&](const Design& design, std::string dump, std::string saved, std::string weights) {
            RunOptions options;
            options.steps = 2;
            options.dump = std::move(dump);
            options.saveWeights = std::move(saved);
            options.weights = std::move(weights);
            return run(design, options).losses;
        };
        const auto compare = [&](const std::string& ours, const std::string& theirs) {
            const SafetensorsFile our = SafetensorsFile::open(ours), their = SafetensorsFile::open(theirs);
            auto names = their.names();
            std::erase(names, "probabilities"); // of groups no member has them whole
            QCOMPARE(our.names(), names);
            for (const std::string& name : our.names()) {
                if (name == "inputs" || name == "targets") // whole numbers
                    continue;
                GradientCheck check{.bitEqual = true, .within = bound};
                addTensor(check, name, our.values(name), their.values(name));
                QVERIFY2(check.holds(), qPrintable(QString("%1 %2").arg(name.c_str()).arg(check.maxRelativeError)));
                QVERIFY2(check.bitEqual || !name.starts_with("parameters.first"), name.c_str());
            }
        };
        once(groups, file("groups-1"), file("weights-1"), {});
        once(single, file("single-1"), file("weights-2"), {});
        QVERIFY(SafetensorsFile::open(file("single-1")).has("probabilities"));
        compare(file("groups-1"), file("single-1"));
        compare(file("weights-1"), file("weights-2"));
        const std::vector<double> ours = once(groups, file("groups-2"), file("weights-3"), file("weights-1")),
                                  theirs = once(single, file("single-2"), file("weights-4"), file("weights-1"));
        QVERIFY(std::abs(ours.back() - theirs.back()) < bound / 10 * theirs.back());
        compare(file("groups-2"), file("single-2"));
    }

    void aProcessThatFailsEndsTheOthersAmidACollective()
    {
        const Design design = groupDesign("1f1b", {{1e9, 5e8}, {1e9, 1e9}}, 4);
        RunOptions options;
        options.steps = 1;
        options.backend = "mpi";
        options.runtime.faults = {{.kind = Fault::Kind::Throws, .device = 1, .instruction = 2}};
        const std::vector<std::string> failures = onRanks(design, options, 4).failures;
        for (const std::string& failure : failures)
            QVERIFY2(failure.find("an injected fault made its maths fail") != std::string::npos, failure.c_str());
    }

    void membersTrainOnEveryBackend()
    {
        const Design design = groupDesign("1f1b", {{1e9, 5e8}, {1e9}}, 4);
        for (const auto& [backend, gpus] : {std::pair{"host", false}, {"mpi", false}, {"mpi", true}, {"cuda", true}}) {
            const RunMeans means{backend, RunOptions::Maths::Training, false, gpus};
            QVERIFY(checkForBackend(design, means).trains);
            QCOMPARE(devicesOfRun(design, means), 3);
        }
        const RunMeans timed{"mpi", RunOptions::Maths::Timed, false, true};
        QCOMPARE(devicesOfRun(design, timed), 2);
        const Diagnostics found = checkForBackend(design, timed).found;
        QVERIFY(!hasErrors(found));
        QVERIFY(QString::fromStdString(found.front().what).contains("every group as one device"));
    }

    void blocksThatOnlyTakeTheirTimeAreNoGraphs()
    {
        const Design design = groupDesign("1f1b", {{1e9, 5e8}, {1e9}}, 4);
        RunMeans means{"cuda", RunOptions::Maths::Training, false, true, true};
        QVERIFY(checkForBackend(design, means).found.empty());
        means.maths = RunOptions::Maths::Timed;
        const Diagnostics found = checkForBackend(design, means).found;
        QVERIFY(!hasErrors(found));
        QCOMPARE(found.front().where, std::string("--graphs"));
    }

    void whatGroupsDoNotTrainIsSaidBeforehand()
    {
        ModelShape shape = groupShape();
        shape.dropout = true;
        const Diagnostics why = whyNotTrainable(groupDesign("1f1b", {{1e9, 5e8}, {1e9}}, 4, shape));
        QVERIFY(!why.empty());
        QCOMPARE(why.front().where, std::string("model.dropout"));
        QVERIFY2(QString::fromStdString(why.front().what).contains("dropout"), why.front().what.c_str());
        QVERIFY(!why.front().hint.empty());
        QVERIFY(whyNotTrainable(groupDesign("1f1b", {{1e9, 5e8}, {1e9}}, 4, groupExperts())).empty());
        const Diagnostics amid = whyNotTrainable(groupDesign("pipedream", {{1e9, 5e8}, {1e9}}, 4, groupExperts()));
        QCOMPARE(amid.size(), std::size_t{1});
        QCOMPARE(amid.front().where, std::string("model.experts"));
    }
};

PIPEWRIGHT_TEST(GroupRunTest, NoApplication)
#include "tst_grouprun.moc"
