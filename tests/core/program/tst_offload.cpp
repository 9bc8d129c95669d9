// SPDX-License-Identifier: GPL-3.0-or-later
// What stages offload leaves and comes back, in time and once; where there is no time it stays.
#include "core/base/offload.h"
#include "core/design/redesign.h"
#include "core/predict/offloadedstages.h"
#include "core/predict/predict.h"
#include "core/program/compile.h"
#include "core/program/deadlock.h"
#include "core/search/offloadsearch.h"
#include "lifetimes.h"
#include "makers/designs.h"
#include "testmain.h"

#include <QTest>

using namespace pipewright;

namespace {

/// A millisecond and a mebibyte per forward of a stage; the host's link moves `perSecond` bytes.
Design offloading(const std::string& family, double perSecond, int devices = 4, int microbatches = 8)
{
    Design design = test::evenDesign({.transfer = 1000, .saved = 1 << 20, .savedForWeightGrad = 1 << 19},
                                     test::possibleSchedule(family, devices, microbatches));
    design.costs.hostLink = LinkCosts{0, perSecond};
    return withOffload(design, std::vector<bool>(static_cast<std::size_t>(design.schedule.stages()), true));
}

std::int64_t countOf(const Program& program, TaskKind kind)
{
    return std::count_if(program.tasks.begin(), program.tasks.end(),
                         [kind](const Task& task) { return task.kind == kind; });
}

constexpr double fast = 1e12, oneForwardPerCopy = 1048576e3, slow = 1e6;

} // namespace

class OffloadTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void everyFamilyFreesWhatItOffloads_data()
    {
        QTest::addColumn<QByteArray>("family");
        for (const Family& family : families())
            QTest::newRow(family.name.data()) << QByteArray(family.name.data());
    }
    void everyFamilyFreesWhatItOffloads()
    {
        QFETCH(QByteArray, family);
        const Design design = offloading(family.toStdString(), oneForwardPerCopy);
        const Program program = compile(design.schedule, design.costs, design.dataflow);
        QVERIFY(countOf(program, TaskKind::Offload) > 0);
        QCOMPARE(countOf(program, TaskKind::Offload), countOf(program, TaskKind::Reload));
        const QString fault = test::checkLifetimes(program);
        QVERIFY2(fault.isEmpty(), qPrintable(fault));
        QVERIFY(checkDeadlock(program, Communication::Overlapped).empty());
        Bytes onHost = 0;
        for (const Program::Device& device : program.devices)
            onHost += device.hostPeakBytes;
        QVERIFY(onHost > 0);
    }

    // What an earlier piece kept may be for its W alone; then no other block has to wait until it is back.
    void blocksWaitForWhatTheyReadAlone()
    {
        Design design = offloading("seq1f1b", fast);
        for (StageCosts& stage : design.costs.stages)
            stage.savedUntilInputGrad = 0;
        const Program program = compile(design.schedule, design.costs, design.dataflow);
        QVERIFY(countOf(program, TaskKind::Reload) > 0);
        int waits = 0;
        const auto check = [&](TaskId task, TaskId after) {
            if (after == none || program.tasks[task].kind != TaskKind::Compute
                || program.tasks[after].kind != TaskKind::Reload)
                return;
            ++waits;
            const auto reads = program.reads(task), back = program.writes(after);
            QVERIFY2(std::any_of(reads.begin(), reads.end(),
                                 [&](BufferId b) { return std::find(back.begin(), back.end(), b) != back.end(); }),
                     program.label(task).c_str());
        };
        for (TaskId t = 0; t < program.tasks.size(); ++t)
            check(t, program.afterData[t]);
        for (const Program::ExtraDependency& each : program.extraDependencies)
            check(each.task, each.after);
        QVERIFY(waits > 0);
    }

    /// The forwards of later pieces read what the earlier ones kept, and the backward of the last piece reads all of
    /// it.
    void piecesLeaveBehindTheLastForwardAndAreBackBeforeTheFirstBackward()
    {
        const Design design = offloading("seq1f1b", fast);
        const Prediction prediction = predict(design);
        const Program& program = prediction.program;
        const int pieces = design.schedule.sequencePieces;
        QVERIFY(pieces > 1);
        std::int64_t seen = 0;
        for (TaskId t = 0; t < program.tasks.size(); ++t) {
            const Task& copy = program.tasks[t];
            if (!isHostCopy(copy.kind))
                continue;
            ++seen;
            for (TaskId b = 0; b < program.tasks.size(); ++b) {
                const Task& block = program.tasks[b];
                if (block.kind != TaskKind::Compute || block.stage != copy.stage
                    || block.microbatch() / pieces != copy.microbatch() / pieces)
                    continue;
                const bool forward = block.op == Op::F;
                if (copy.kind == TaskKind::Offload ? forward : !forward && block.microbatch() >= copy.microbatch())
                    QVERIFY2(forward ? prediction.timeline.end[b] <= prediction.timeline.start[t]
                                     : prediction.timeline.end[t] <= prediction.timeline.start[b],
                             (program.label(t) + " and " + program.label(b)).c_str());
            }
        }
        QVERIFY(seen > 0);
        const QString fault = test::checkLifetimes(program);
        QVERIFY2(fault.isEmpty(), qPrintable(fault));
    }

    void aFastLinkCostsNoTimeAndHalvesTheMemory()
    {
        const Design with = offloading("gpipe", fast);
        const Prediction kept = predict(withOffload(with, std::vector<bool>{})), offloaded = predict(with);
        QCOMPARE(offloaded.metrics.makespan, kept.metrics.makespan);
        for (std::size_t d = 0; d < kept.metrics.devices.size(); ++d)
            QVERIFY2(2 * offloaded.metrics.devices[d].peakBytes < kept.metrics.devices[d].peakBytes,
                     qPrintable(QString::number(d)));
    }

    void whatHasNoTimeStays()
    {
        // The last stage's backward follows its forward; nothing can leave in between.
        const Design design = offloading("1f1b", fast);
        const Program program = compile(design.schedule, design.costs, design.dataflow);
        for (const Task& task : program.tasks)
            QVERIFY(task.kind != TaskKind::Offload || task.stage != 3);
        const Design late = offloading("1f1b", slow);
        QCOMPARE(countOf(compile(late.schedule, late.costs, late.dataflow), TaskKind::Offload), std::int64_t{0});
    }

    void itComesBackAsLateAsIsInTime()
    {
        const Design design = offloading("gpipe", oneForwardPerCopy);
        const Prediction prediction = predict(design);
        const Program& program = prediction.program;
        for (TaskId t = 0; t < program.tasks.size(); ++t) {
            if (program.tasks[t].kind != TaskKind::Reload)
                continue;
            const auto backward = std::find_if(program.tasks.begin(), program.tasks.end(), [&](const Task& other) {
                return other.kind == TaskKind::Compute && isBackward(other.op) && other.stage == program.tasks[t].stage
                       && other.microbatch() == program.tasks[t].microbatch();
            });
            const auto start = prediction.timeline.start[static_cast<std::size_t>(backward - program.tasks.begin())];
            QVERIFY(prediction.timeline.end[t] <= start);
            // A copy takes half a backward, and begins at the end of a block.
            std::int64_t meanwhile = 0;
            for (TaskId b = 0; b < program.tasks.size(); ++b)
                meanwhile += program.tasks[b].kind == TaskKind::Compute
                             && program.tasks[b].device == program.tasks[t].device
                             && prediction.timeline.start[b] >= prediction.timeline.start[t]
                             && prediction.timeline.start[b] < start;
            QVERIFY2(meanwhile <= 1, program.label(t).c_str());
        }
    }

    void whatItCannotBeCombinedWithIsRefused()
    {
        const auto fault = [](const Design& design) {
            try {
                (void)compile(design.schedule, design.costs, design.dataflow);
            } catch (const Error& error) {
                return error.diagnostics().front().where + ": " + error.diagnostics().front().what;
            }
            return std::string();
        };
        Design design = offloading("1f1b", fast);
        design.costs.hostLink.reset();
        QVERIFY(fault(design).starts_with("schedule.offload: "));
        QVERIFY_THROWS_EXCEPTION(Error, withOffload(design, std::vector<bool>(4, true)));
        design = offloading("1f1b", fast);
        design.schedule.offload.pop_back();
        QVERIFY(fault(design).starts_with("schedule.offload: "));
    }

    void stagesAreChosenForFreeAndThenForRoom()
    {
        Design design = withOffload(offloading("gpipe", fast), std::vector<bool>{});
        const OffloadedStages free = chooseOffloadedStages(design);
        QCOMPARE(textOf(free.forFree), std::string("0-3"));
        QCOMPARE(free.after, free.before);
        QVERIFY(free.fits);
        // Copies that take longer than a forward hold the forwards up: nobody does that without need.
        design.costs.hostLink->bytesPerSecond = oneForwardPerCopy / 3;
        const OffloadedStages none = chooseOffloadedStages(design);
        QCOMPARE(textOf(none.forFree), std::string());
        design.cluster.devices.assign(4, DeviceSpec{.name = "small", .memory = 7 << 20});
        const OffloadedStages needed = chooseOffloadedStages(design);
        QVERIFY(!textOf(needed.forRoom).empty());
        QVERIFY(needed.fits);
        QVERIFY(needed.after > needed.before);
        for (const Bytes peak : needed.peaks)
            QVERIFY(peak <= 7 << 20);
        design.cluster.devices.assign(4, DeviceSpec{.name = "tiny", .memory = 1});
        QVERIFY(!chooseOffloadedStages(design).fits);
    }

    void ordersAreSearchedWithWhatLeaves()
    {
        Design design = withOffload(offloading("1f1b", fast), std::vector<bool>{});
        SearchOptions options;
        options.rounds = 2;
        options.timeLimit = std::chrono::milliseconds(0);
        options.limit.bytes = predict(design).metrics.devices[0].peakBytes * 4 / 5;
        const Nanoseconds kept = search(design, options).value; // fewer microbatches in flight, and a longer step
        const OffloadSearchResult found = searchWithOffload(design, options);
        QVERIFY(!textOf(found.design.schedule.offload).empty());
        const Prediction prediction = predict(found.design);
        QCOMPARE(prediction.metrics.makespan, found.value);
        QVERIFY(found.value >= found.bound);
        QVERIFY2(found.value < kept, qPrintable(QString("%1 and %2").arg(found.value).arg(kept)));
        for (const DeviceMetrics& device : prediction.metrics.devices)
            QVERIFY(device.peakBytes <= *options.limit.bytes);
        QVERIFY_THROWS_EXCEPTION(Error, search(found.design, options)); // says how to search it
        options.limit.bytes = 1;
        QVERIFY_THROWS_EXCEPTION(Error, searchWithOffload(design, options));
        options.limit = {.bytes = std::nullopt, .factor = 1.5};
        QVERIFY_THROWS_EXCEPTION(Error, searchWithOffload(design, options));
    }

    void anotherFamilyOffloadsToo()
    {
        const Design design = offloading("1f1b", fast);
        QCOMPARE(withFamily(design, *findFamily("zb-h1"), {}).schedule.offload, design.schedule.offload);
        for (const char* family : {"seq1f1b", "pipedream-2bw"})
            QCOMPARE(withFamily(design, *findFamily(family), {}).schedule.offload, design.schedule.offload);
    }

    void choicesAreReadAsWritten()
    {
        QCOMPARE(parseOffload("none", "x"), OffloadChoice{});
        QCOMPARE(parseOffload("auto", "x").kind, OffloadChoice::Kind::Auto);
        QCOMPARE(parseOffload("0-2,5", "x").stages, (StageRanges{{0, 2}, {5, 5}}));
        for (const char* text : {"", "all", "2-1", "1,", "-1", "1-"})
            QVERIFY_THROWS_EXCEPTION(Error, parseOffload(text, "x"));
        QVERIFY_THROWS_EXCEPTION(Error, stagesIn({{0, 4}}, 4, "x"));
        QCOMPARE(textOf(std::vector<bool>{true, true, false, true}), std::string("0-1, 3"));
    }
};

PIPEWRIGHT_TEST(OffloadTest, NoApplication)
#include "tst_offload.moc"
