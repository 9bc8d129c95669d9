// SPDX-License-Identifier: GPL-3.0-or-later
// What is said before a run of the memory that it takes is what the run then says and allocates.
#include "core/design/stagecosts.h"
#include "core/design/stagestate.h"
#include "core/json/jsonvalue.h"
#include "core/program/compile.h"
#include "executor/run/backendcheck.h"
#include "executor/run/memorycheck.h"
#include "executor/run/run.h"
#include "executor/run/runsetup.h"
#include "executor/run/trainabledesign.h"
#include "makers/designs.h"
#include "makers/groups.h"
#include "makers/models.h"
#include "makers/rankedrun.h"
#include "testmain.h"

#include <QTest>

using namespace pipewright;
using namespace pipewright::test;

namespace {

/// A V, as it is predicted: its first device holds embedding and head.
Design tiedOnOneDevice()
{
    Design design = trainableDesign(tinyGpt("zb-v", 2, 4));
    design.dataflow.shared = sharedParametersOf(*design.workload, design.layersPerStage, false);
    return design;
}

} // namespace

class MemoryCheckTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void whatIsSaidBeforehandIsWhatTheRunSaysAndAllocates_data()
    {
        QTest::addColumn<QByteArray>("design");
        QTest::addColumn<bool>("timed");
        QTest::newRow("training") << QByteArray("gpt") << false;
        QTest::newRow("timed blocks") << QByteArray("gpt") << true;
        QTest::newRow("two matrices of a tied head on one device") << QByteArray("tied") << false;
        QTest::newRow("one matrix of a tied head on one device, timed") << QByteArray("tied") << true;
        QTest::newRow("updates amid the step") << QByteArray("pipedream") << false;
        QTest::newRow("stored sends") << QByteArray("eager") << true;
        QTest::newRow("stored sends of no bytes") << QByteArray("empty") << true;
        QTest::newRow("members of groups") << QByteArray("groups") << false;
        QTest::newRow("members, timed") << QByteArray("groups") << true;
    }
    void whatIsSaidBeforehandIsWhatTheRunSaysAndAllocates()
    {
        QFETCH(QByteArray, design);
        QFETCH(bool, timed);
        const Design made = design == "groups"      ? groupDesign("zb-h1", {{1e9, 5e8}, {1e9}}, 4)
                            : design == "pipedream" ? tinyGpt("pipedream", 2, 4)
                            : design == "empty"     ? evenDesign({}, possibleSchedule("zb-h1", 4, 6))
                            : design == "tied"      ? tiedOnOneDevice()
                                                    : trainableDesign(tinyGpt("zb-h1", 4, 6));
        RunOptions options;
        if (timed)
            options.maths = RunOptions::Maths::Timed;
        if (design == "eager" || design == "empty")
            options.runtime.eagerSlots = 2;
        const MemoryCheck before = checkMemory(made, options);
        QCOMPARE(before.reason, std::string());
        const RunResult result = run(made, options);
        QVERIFY(before.memory == result.memory);
        std::vector<Bytes> totals;
        Bytes beside = 0;
        for (const HeldMemory& memory : before.memory) {
            totals.push_back(memory.total());
            beside += memory.links;
        }
        QCOMPARE(totals, result.heldBytes);
        QCOMPARE(beside > 0, design == "eager");
    }

    void trainingSaysWhereItHoldsTwoMatricesAndOneIsPredicted()
    {
        const auto said = [](const Design& design, RunOptions::Maths maths) {
            return QString::fromStdString(toString(checkForBackend(design, {"host", maths}).found));
        };
        const QString what = "one matrix in the prediction, and two here";
        const Design one = tiedOnOneDevice(), two = trainableDesign(one);
        QVERIFY2(said(one, RunOptions::Maths::Training).contains(what), "");
        QVERIFY(!said(one, RunOptions::Maths::Timed).contains(what)); // it holds what is predicted
        QVERIFY(!said(two, RunOptions::Maths::Training).contains(what));
        QVERIFY(!said(tinyGpt("1f1b", 2, 4), RunOptions::Maths::Training).contains(what));
        const std::vector<Bytes> predicted = peaksOf(compile(one.schedule, one.costs, one.dataflow)),
                                 held = peaksOf(compile(two.schedule, two.costs, two.dataflow));
        QCOMPARE(held[0] - predicted[0], sparedByOneParameter(one.schedule, one.costs, one.dataflow).bytes);
        QCOMPARE(held[1], predicted[1]);
    }

    /// Nobody starts processes to ask.
    void processesHoldWhatIsSaidOfThemToo_data()
    {
        QTest::addColumn<bool>("groups");
        QTest::newRow("members of groups") << true;
        QTest::newRow("stored sends of no bytes") << false;
    }
    void processesHoldWhatIsSaidOfThemToo()
    {
        QFETCH(bool, groups);
        const Design design =
            groups ? groupDesign("1f1b", {{1e9, 5e8}, {1e9}}, 4) : evenDesign({}, possibleSchedule("1f1b", 3, 4));
        RunOptions options;
        options.backend = "mpi";
        options.runtime.eagerSlots = groups ? 0 : 2;
        const MemoryCheck before = checkMemory(design, options);
        const auto [result, failures] = onRanks(design, options, 3);
        QCOMPARE(failures, std::vector<std::string>(3));
        QCOMPARE(before.memory.size(), std::size_t{3});
        for (std::size_t d = 0; d < 3; ++d)
            QCOMPARE(before.memory[d].total(), result.heldBytes[d]);
    }

    void aDeviceThatIsTooSmallForAllItHoldsIsNamedWithTheParts()
    {
        Design design = trainableDesign(tinyGpt("1f1b", 2, 4));
        RunOptions options;
        options.maths = RunOptions::Maths::Timed;
        options.runtime.eagerSlots = 2;
        const MemoryCheck enough = checkMemory(design, options);
        QVERIFY(enough.found.empty());
        const HeldMemory& first = enough.memory.front();
        QVERIFY(first.links > 0);
        design.cluster.devices.assign(2, DeviceSpec{"small card", first.total() - 1, 0, 0, 0.5});
        const MemoryCheck check = checkMemory(design, options);
        QVERIFY(!check.found.empty());
        QCOMPARE(check.found.front().where, std::string("device 0"));
        const std::string& what = check.found.front().what;
        QVERIFY2(what.find("of small card: ") != std::string::npos && what.find("for its links") != std::string::npos
                     && what.find("at the peak of its buffers") != std::string::npos,
                 what.c_str());
    }

    void whatDoesNotRunSaysWhyNothingIsKnown()
    {
        Design design = tinyGpt("1f1b", 2, 4);
        design.workload->shape.parallel.tensor = 2;
        RunOptions options;
        options.backend = "mpi";
        const MemoryCheck check = checkMemory(design, options);
        QVERIFY(check.memory.empty());
        QVERIFY2(check.reason.find("a stage stands for 2 devices") != std::string::npos, check.reason.c_str());
    }
};

PIPEWRIGHT_TEST(MemoryCheckTest, NoApplication)
#include "tst_memorycheck.moc"
