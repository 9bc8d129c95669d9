// SPDX-License-Identifier: GPL-3.0-or-later
// CUPTI records of the program's real plugin on stand-in GPUs, and what the program reports from them: labels, groups,
// shares, the recorder's own cost, and the launches of a layer and of a block.
#include "standin/libraries/standinmachine.h"
#include "testmain.h"
#include "testpaths.h"

#include <QTest>

using namespace pipewright;
using namespace pipewright::test;

namespace {

constexpr double rounding = 2000; ///< ns per block: events give times as float milliseconds

const QString unrecorded = "run design.json --backend cuda --json --progress none --record nothing "
                           "--no-gradient-check --steps ";

QStringList groupsOf(const QJsonObject& kernels)
{
    QStringList names;
    for (const auto& each : kernels["groups"].toArray())
        names << each.toObject()["group"].toString();
    names.sort();
    return names;
}

} // namespace

class TestStandInRecords : public QObject {
    Q_OBJECT

private Q_SLOTS:
    /// The records come from the plugin and the recorder, as in a run on any GPU, not from test data.
    void kernelsOfBlocksAreExplainedAndCompared()
    {
        const StandInMachine machine(1);
        QVERIFY(machine.design("1f1b", 2));
        const StandInOutcome ran = machine.run(onGpus + "2 --no-gradient-check");
        QVERIFY2(ran.code == 0 && ran.faults().isEmpty(), qPrintable(ran.errors + ran.faults()));
        QVERIFY(ran.counted("activity records") > 1000);
        for (const QString& name : ran.namesLike("kernels without a label: "))
            QVERIFY2(name.contains("forEach") || name.contains("forLines"),
                     qPrintable(name)); // fill kernels before the first block
        // Of the calls those are recorded that launch something: a record of another costs more than the call.
        for (const char* call :
             {"cudaEventQuery", "cudaStreamQuery", "cudaEventRecord", "cudaStreamWaitEvent", "cudaEventElapsedTime"}) {
            QVERIFY2(ran.counted(call) > 0, call);
            QCOMPARE(ran.counted(QString("call records of %1").arg(call)), 0.0);
        }
        QCOMPARE(ran.counted("synchronization records"), 0.0);
        QCOMPARE(ran.counted("synchronization records of what had not happened"), 0.0);
        QVERIFY(ran.counted("call records of cudaLaunchKernel") > 0);
        QCOMPARE(ran.counted("buffers of records zeroed amid calls"), 0.0);
        // The recorder's own work is stated with the run: the buffers of the first step, as the second began.
        QVERIFY(ran.json["recorder_records"].toInt() > 0);
        QVERIFY(ran.json["recorder_ns"].toDouble() > 0);

        const QJsonObject explained = machine.run("explain trace.db --json").json;
        const QJsonObject kernels = explained["kernels"].toObject();
        QCOMPARE(kernels["blocks"].toInt(), 2 * 4 * 2 + 2); // a forward and a backward each, and the updates
        QCOMPARE(kernels["blocks_without_kernels"].toInt(), 0);
        QCOMPARE(groupsOf(kernels),
                 QStringList({"attention", "copy", "elementwise", "embedding", "loss", "norm", "product"}));
        const double events = kernels["by_events_ns"].toDouble(), first = kernels["by_kernels_ns"].toDouble(),
                     running = kernels["kernels_running_ns"].toDouble();
        QVERIFY(running > 0 && running <= first);
        QVERIFY(first <= events + 18 * rounding);
        double grouped = 0;
        for (const auto& each : kernels["groups"].toArray())
            grouped += each.toObject()["time_ns"].toDouble();
        QCOMPARE(grouped, running); // on one stream nothing overlaps
        const double bound = kernels["launch_bound_ns"].toDouble();
        QVERIFY(bound >= 0 && bound <= events);
        QVERIFY(std::abs(kernels["launch_bound"].toDouble() - bound / events) < 1e-6);
        QVERIFY(kernels["recorder_records"].toInt() <= ran.json["recorder_records"].toInt());

        // For each device: how long its GPU worked in the step, and why not longer.
        const QJsonArray gpus = explained["gpus"].toArray();
        QCOMPARE(gpus.size(), 2);
        const double step = explained["makespan"].toObject()["measured_ns"].toDouble();
        for (const auto& each : gpus) {
            double sum = each.toObject()["running_ns"].toDouble();
            QVERIFY(sum > 0);
            for (const QJsonValue part : each.toObject()["idle_ns"].toObject())
                sum += part.toDouble();
            QVERIFY(sum >= step); // more if, by the events' clock, kernels end after the last block
        }
        QCOMPARE(gpus[0].toObject()["running_ns"].toDouble() + gpus[1].toObject()["running_ns"].toDouble(), running);

        const QJsonObject compared = machine.run("compare design.json trace.db --block-time kernels --json").json;
        QCOMPARE(compared["block_time"].toString(), QStringLiteral("kernels"));
        QCOMPARE(compared["block_times"].toObject(), kernels);
        QCOMPARE(compared["blocks"].toObject()["matched"].toInt(), 2 * 4 * 2);

        const QString calibrate = "calibrate design.json trace.db --json --force --block-time ";
        const QJsonObject byKernels = machine.run(calibrate + "kernels -o kernels.json").json,
                          byEvents = machine.run(calibrate + "events -o events.json").json;
        QVERIFY(byKernels["source"].toString().contains("times of kernels"));
        for (int stage = 0; stage < 2; ++stage)
            for (const char* what : {"forward_ns", "backward_ns"}) {
                const double time = byKernels["stages"].toArray()[stage].toObject()[what].toDouble();
                QVERIFY2(time > 0, what);
                QVERIFY2(time <= byEvents["stages"].toArray()[stage].toObject()[what].toDouble() + rounding, what);
            }
        QVERIFY(machine.run("explain trace.db").output.contains("of CUPTI's own work"));
    }

    /// The GPU's owner makes the calls of NCCL, not the thread of the device that has the block.
    void kernelsOfNcclBelongToTheirTransfers()
    {
        const StandInMachine machine(2);
        QVERIFY(machine.design("1f1b", 2));
        const auto run = [&](int steps) {
            return machine.run(onGpus + QString("%1 --no-gradient-check --link nccl").arg(steps));
        };
        const StandInOutcome one = run(1), two = run(2);
        QVERIFY2(one.code == 0 && two.code == 0, qPrintable(one.errors + two.errors));
        const auto added = [&](const char* what) { return two.counted(what) - one.counted(what); };
        QVERIFY(added("kernels of NCCL") > 0);
        for (const QString& name : two.namesLike("kernels without a label: ncclDev"))
            QCOMPARE(added(qPrintable("kernels without a label: ncclDev" + name)), 0.0); // those of warming up
        const StandInOutcome found = machine.run(
            "query trace.db \"SELECT count(*) AS n FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN TASKS t USING (taskId) JOIN "
            "StringIds s ON s.id = k.shortName WHERE t.kind = 'transfer' AND s.value LIKE 'ncclDev%'\" --json");
        QCOMPARE(found.json["rows"].toArray()[0].toArray()[0].toDouble(), 2 * added("kernels of NCCL"));
    }

    void whatALayerLaunches_data()
    {
        QTest::addColumn<QString>("model");
        QTest::addColumn<bool>("bf16");
        QTest::addColumn<double>("products");
        QTest::addColumn<double>("bytes");   // of the factors and results of its products, each read or written once
        QTest::addColumn<double>("kernels"); // including products and the layer's part of the update
        // Bytes of a linear layer's products on 8 tokens: for its output, its input gradient and its weight gradient.
        struct Products {
            double forward, grads;
            double all() const { return forward + grads; }
        };
        const auto linear = [](int inputs, int outputs, int width) -> Products {
            constexpr double rows = 8;
            const double input = rows * inputs, weight = inputs * outputs, output = rows * outputs;
            // Weight gradients are always fp32.
            return {width * (input + weight + output),
                    width * (output + weight + input) + width * (input + output) + 4 * weight};
        };
        // Query, key and value are three products of the forward, and one each of their gradients.
        const auto gpt = [&](int width) {
            return 3 * linear(48, 48, width).forward + linear(48, 3 * 48, width).grads + linear(48, 48, width).all()
                   + linear(48, 192, width).all() + linear(192, 48, width).all();
        };
        const auto llama = [&](int width) {
            return linear(48, 96, width).all() + 2 * linear(48, 32, width).all() + linear(96, 48, width).all()
                   + 2 * linear(48, 80, width).all() + linear(80, 48, width).all();
        };
        const QString ofLlama = PIPEWRIGHT_SOURCE_DIR "/tests/torch/models/llama.json",
                      ofGpt = PIPEWRIGHT_SOURCE_DIR "/resources/models/byte-gpt-small.json";
        QTest::newRow("GPT") << ofGpt << false << 14.0 << gpt(4) << 38.0;
        QTest::newRow("Llama") << ofLlama << false << 21.0 << llama(4) << 43.0;
        QTest::newRow("GPT in bf16") << ofGpt << true << 14.0 << gpt(2) << 38.0;
        QTest::newRow("Llama in bf16") << ofLlama << true << 21.0 << llama(2) << 43.0;
    }
    /// Forward and backward pass of one layer, measured as what a second layer adds to a step.
    void whatALayerLaunches()
    {
        QFETCH(QString, model);
        QFETCH(bool, bf16);
        QFETCH(double, products);
        QFETCH(double, bytes);
        QFETCH(double, kernels);
        const StandInMachine machine(1);
        QVERIFY(
            machine
                .run("new 1f1b --devices 1 --microbatches 1 --microbatch-size 1 --sequence 8 -o design.json --model "
                     + (bf16 ? machine.inBf16(model) : model))
                .code
            == 0);
        const QString words = unrecorded + "1 --scale layers=";
        const StandInOutcome one = machine.run(words + "1"), two = machine.run(words + "2");
        QVERIFY2(one.code == 0 && two.code == 0, qPrintable(one.errors + two.errors));
        const auto added = [&](const char* what) { return two.counted(what) - one.counted(what); };
        QCOMPARE(added("products"), products);
        QCOMPARE(added("bytes of products"), bytes);
        QCOMPARE(added("products of bf16 factors"), bf16 ? products : 0);
        QVERIFY2(added("kernels") > products && added("kernels") <= kernels,
                 qPrintable(QString::number(added("kernels"))));
        // All work is on one stream, in the order of issue: there are no waits within a layer.
        for (const char* call : {"cudaEventRecord", "cudaStreamWaitEvent", "cudaSetDevice", "cudaMalloc"})
            QVERIFY2(added(call) == 0, call);
    }

    void whatTheHostIssuesForABlock_data()
    {
        QTest::addColumn<QString>("way");
        QTest::addColumn<bool>("records");
        QTest::addColumn<bool>("graphs");
        QTest::addColumn<int>("recordsOfTransfer");
        QTest::addColumn<int>("waitsOfTransfer");
        for (const bool records : {false, true})
            for (const bool graphs : {false, true}) {
                const auto row = [&](const char* how, int gpus, const QString& link, int recorded, int waits) {
                    QTest::addRow("%s%s%s", how, graphs ? " as graphs" : "", records ? ", recorded" : "")
                        << QString("%1 %2%3").arg(gpus).arg(link, graphs ? " --graphs" : "") << records << graphs
                        << recorded + records << waits;
                };
                row("one GPU", 1, "", 3, 4);
                row("two GPUs", 2, "", 3, 4);
                row("NCCL", 2, "--link nccl", 4, 6);
            }
    }
    /// Calls of the runtime that one more step adds, after blocks were captured in the second. A stream needs a call
    /// for each kernel, a graph one for the whole block. Of a transfer's events the sender and the receiver record one
    /// each, and wait for one each; the copy between them waits for both and records its end, or, with NCCL, both ends,
    /// each of which waits for both sides. Only a run that records marks when a block begins and ends, and a transfer
    /// begins.
    void whatTheHostIssuesForABlock()
    {
        QFETCH(QString, way);
        QFETCH(bool, records);
        QFETCH(bool, graphs);
        QFETCH(int, recordsOfTransfer);
        QFETCH(int, waitsOfTransfer);
        constexpr int devices = 2, blocks = devices * 4 * 2; // forwards and backwards of 4 microbatches
        constexpr int transfers = 4 * 2, updates = devices;
        constexpr int compared = 5; // records of a GPU's clock between two steps
        const int gpus = way.section(' ', 0, 0).toInt();
        StandInMachine machine(gpus);
        machine.set("DELAY", "0");
        QVERIFY(machine.design("1f1b", devices));
        const QString words = (records ? "run design.json --backend cuda --json --progress none --record blocks "
                                         "--no-gradient-check --force -o trace.db --steps "
                                       : unrecorded);
        const auto run = [&](int steps) {
            return machine.run(words + QString("%1 --scale layers=2 ").arg(steps) + way.section(' ', 1));
        };
        const StandInOutcome two = run(2), three = run(3);
        QVERIFY2(two.code == 0 && three.code == 0, qPrintable(two.errors + three.errors));
        const auto added = [&](const char* what) { return int(three.counted(what) - two.counted(what)); };
        const int marks = records ? devices + 2 * (blocks + updates) : 0;
        QCOMPARE(added("cudaEventRecord"), gpus * compared + marks + transfers * recordsOfTransfer);
        QCOMPARE(added("cudaStreamWaitEvent"), transfers * waitsOfTransfer);
        for (const char* call : {"cudaGetDevice", "cudaMalloc", "cudaFree", "cudaEventCreate", "cudaStreamSynchronize",
                                 "cudaEventSynchronize", "algorithms asked for"})
            QVERIFY2(added(call) == 0, call);
        QCOMPARE(added("cudaSetDevice"), gpus > 1 ? gpus : 0); // of the thread that prepares a step
        QCOMPARE(added("cudaGraphLaunch"), graphs ? blocks : 0);
        const int launches = added("cudaLaunchKernel") + added("cuLaunchKernelEx"), products = added("products");
        QCOMPARE(products > 0, !graphs);              // with graphs they were issued during capture
        QVERIFY(!graphs || launches <= 24 * devices); // of the update
        QCOMPARE(added("copies from the host") + added("copies to the host"), 3); // a step's data, and its losses
    }

    void whatRecordingAddsForALaunch_data()
    {
        QTest::addColumn<QString>("way");
        QTest::newRow("streams") << "";
        QTest::newRow("graphs") << " --graphs";
    }
    /// Records that one more step adds: of a call that launches itself, its block and the kernel; of a graph's kernels
    /// theirs alone.
    void whatRecordingAddsForALaunch()
    {
        QFETCH(QString, way);
        constexpr int devices = 2, blocks = devices * 4 * 2, transfers = 4 * 2, updates = devices;
        StandInMachine machine(1);
        QVERIFY(machine.design("1f1b", devices));
        const auto run = [&](int steps) {
            return machine.run(onGpus + QString("%1 --no-gradient-check --scale layers=2").arg(steps) + way);
        };
        const StandInOutcome two = run(2), three = run(3);
        QVERIFY2(two.code == 0 && three.code == 0, qPrintable(two.errors + three.errors));
        const auto added = [&](const char* what) { return int(three.counted(what) - two.counted(what)); };
        const int graphs = added("cudaGraphLaunch"), copies = added("cudaMemcpyAsync"), sets = added("cudaMemsetAsync");
        const int calls = added("cudaLaunchKernel") + added("cuLaunchKernelEx") + graphs + copies + sets;
        // Outside of blocks: the copies between devices, of a step's data and losses, and the zeroing of gradients.
        QCOMPARE(added("records of labels"), calls - transfers - 3 - updates);
        QCOMPARE(added("activity records"),
                 calls + added("records of labels") + added("records of what ran") + added("records of flushes"));
        QCOMPARE(graphs, way.isEmpty() ? 0 : blocks);
    }

    /// The driver copies pageable memory by a detour, and the host waits for every copy before a step.
    void aStepsDataIsOneCopyForEachDevice()
    {
        StandInMachine machine(1);
        QVERIFY(machine.design("1f1b", 3));
        const StandInOutcome two = machine.run(unrecorded + "2 --scale layers=3"),
                             three = machine.run(unrecorded + "3 --scale layers=3");
        QVERIFY2(two.code == 0 && three.code == 0, qPrintable(two.errors + three.errors));
        const auto added = [&](const char* what) { return three.counted(what) - two.counted(what); };
        QCOMPARE(added("copies from the host"), 2.0); // to the devices that embed tokens and that have the targets
        QCOMPARE(added("copies to the host"), 1.0);   // of the losses
        QCOMPARE(added("copies of pageable memory"), 0.0);
    }

    /// Events that time the copies are for a trace; without one nobody would ask for them, and they would pile up.
    void offloadingWithoutATraceMakesNoEvents()
    {
        StandInMachine machine(1);
        QVERIFY(machine.design("1f1b", 2, "--model byte-gpt-small --host-link 25GB --offload 0"));
        const StandInOutcome two = machine.run(unrecorded + "2"), three = machine.run(unrecorded + "3");
        QVERIFY2(two.code == 0 && three.code == 0, qPrintable(two.errors + three.errors));
        const auto added = [&](const char* what) { return three.counted(what) - two.counted(what); };
        QCOMPARE(added("copies from the host"), 2.0 + 4.0); // a step's data, and what the backwards of stage 0 need
        QCOMPARE(added("cudaEventCreate"), 0.0);
    }

    /// Checks that the stand-ins detect wrong stream order: without the plugin's waits for events, blocks read data
    /// that has not arrived.
    void aStreamThatDoesNotWaitIsFound()
    {
        StandInMachine machine(2);
        QVERIFY(machine.design("1f1b", 2));
        const StandInOutcome ran = machine.set("FAIL", "nowait:1").set("DELAY", "20000").run(onGpus + "1");
        QVERIFY(ran.code != 0 || !whyNotRight(ran).isEmpty());
        QVERIFY2(ran.output.contains("gradient_check") || ran.errors.contains("differ"), qPrintable(ran.errors));
    }

    /// After a failed start another profiler can subscribe, and this process can try again.
    void aRecorderThatDoesNotStartLetsGo()
    {
        StandInMachine machine(2);
        QVERIFY(machine.design("1f1b", 2));
        const StandInOutcome ran = machine.set("FAIL", "cupti:3").run(onGpus + "2");
        const QString why = whyNotRight(ran);
        QVERIFY2(why.isEmpty(), qPrintable(why));
        QVERIFY(ran.errors.contains("blocks are timed by events, without their kernels"));
        QCOMPARE(ran.json["recorder_records"].toInt(-1), 0);
    }

    void recordsWithoutATimeAreNoLostOnes()
    {
        StandInMachine machine(1);
        QVERIFY(machine.design("1f1b", 2));
        const StandInOutcome ran = machine.set("FAIL", "untimed:5").run(onGpus + "2");
        const QString why = whyNotRight(ran);
        QVERIFY2(why.isEmpty(), qPrintable(why));
        QVERIFY2(ran.errors.contains("1 records of the GPUs' recorder have no time"), qPrintable(ran.errors));
    }
};

PIPEWRIGHT_TEST(TestStandInRecords, QCoreApplication)
#include "tst_standinrecords.moc"
