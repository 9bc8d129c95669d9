// SPDX-License-Identifier: GPL-3.0-or-later
// Injected faults: the run ends within its deadline, names the device at fault, and what was recorded until then can
// be read.
#include "core/predict/predict.h"
#include "executor/host/hostbackend.h"
#include "executor/run/run.h"
#include "executor/runtime/faultspec.h"
#include "executor/runtime/steadyclock.h"
#include "makers/designs.h"
#include "makers/faults.h"
#include "testmain.h"
#include "traces/store/tracereader.h"

#include <QTemporaryDir>
#include <QTest>

using namespace pipewright;

namespace {

Design timedDesign()
{
    return test::evenDesign({.forward = 200'000,
                             .inputGrad = 200'000,
                             .weightGrad = 200'000,
                             .transfer = 1000,
                             .saved = 4096,
                             .savedForWeightGrad = 2048},
                            test::familySchedule("1f1b", 3, 6));
}

} // namespace

class TestFaults : public QObject {
    Q_OBJECT

private slots:
    void everyFaultEndsTheRunNamesTheCulpritAndLeavesATrace_data()
    {
        QTest::addColumn<QString>("fault");
        QTest::addColumn<QString>("culprit");
        QTest::newRow("a device dies") << "dies:1:2:4"
                                       << "device 1: error: stopped at instruction 4";
        QTest::newRow("an actor throws") << "throws:1:2:4"
                                         << "device 1: error: an injected fault made its maths fail";
        QTest::newRow("a device hangs") << "stalls:2:2:4"
                                        << "device 2: error: hangs at instruction 4";
        QTest::newRow("memory runs out") << "out-of-memory:0:2:4"
                                         << "device 0: error: could not allocate";
        QTest::newRow("a link stalls") << "link-stalls:0:2:4"
                                       << "not carried by the link from device 0 to device 1";
    }
    void everyFaultEndsTheRunNamesTheCulpritAndLeavesATrace()
    {
        QFETCH(QString, fault);
        QFETCH(QString, culprit);
        const QTemporaryDir folder;
        const Design design = timedDesign();
        RunOptions options;
        options.steps = 5;
        options.maths = RunOptions::Maths::Timed;
        options.runtime.deadline = 300'000'000;
        options.runtime.faults = {parseFault(fault.toStdString(), "--inject")};
        options.trace = folder.filePath("broken.db").toStdString();
        const Nanoseconds before = steadyNow();
        const QString text = QString::fromStdString(test::faultOf([&] { run(design, options); }));
        QVERIFY2(text.contains("step 2: error:"), qPrintable(text));
        QVERIFY2(text.contains(culprit), qPrintable(text));
        // Far more than the deadline and the two whole steps take, far less than for ever.
        QVERIFY(steadyNow() - before < 60'000'000'000);

        const TraceReader reader(options.trace);
        QVERIFY(!reader.complete());
        QCOMPARE(reader.steps().size(), std::size_t{2});
        const Program program = predict(reader.design()).program;
        const Timeline whole = reader.timeline(program, 1);
        for (TaskId task = 0; task < program.tasks.size(); ++task)
            QVERIFY(whole.start[task] != notRun);
    }

    void memoryThatADeviceHasNotIsRefusedByName()
    {
        const auto backend = createHostBackend(2, 10'000);
        const auto first = backend->device(1).allocate(6000);
        const QString text = QString::fromStdString(test::faultOf([&] { backend->device(1).allocate(6000); }));
        QVERIFY2(text.contains("device 1: error: cannot allocate"), qPrintable(text));
        QVERIFY2(text.contains("4000"), qPrintable(text)); // what is left
        backend->device(0).allocate(6000); // each device has its own, and gives back what it no longer holds
        backend->device(0).allocate(6000);
    }

    void aRunThatDoesNotFitSaysWhichDeviceAndLeavesNothing()
    {
        const QTemporaryDir folder;
        RunOptions options;
        options.steps = 1;
        options.maths = RunOptions::Maths::Timed;
        options.runtime.deviceMemory = 10'000; // device 0 of three holds three microbatches of 4 KiB
        options.trace = folder.filePath("never.db").toStdString();
        const QString text = QString::fromStdString(test::faultOf([&] { run(timedDesign(), options); }));
        QVERIFY2(text.contains("device 0: error: would hold 12 KiB, and may hold 9.77 KiB"), qPrintable(text));
        QVERIFY(QDir(folder.path()).isEmpty());
    }

    void faultsAreReadFromText()
    {
        const Fault slow = parseFault("slows:3:1:17:5ms", "--inject");
        QVERIFY(slow.kind == Fault::Kind::Slows);
        QCOMPARE(slow.device, 3);
        QCOMPARE(slow.step, 1);
        QCOMPARE(slow.instruction, 17u);
        QCOMPARE(slow.delay, Nanoseconds{5'000'000});
        for (const char* bad :
             {"", "dies", "dies:0:0", "dies:0:0:0:1ms", "sleeps:0:0:0", "dies:-1:0:0", "dies:x:0:0", "slows:0:0:0"})
            QVERIFY2(test::faultOf([&] { parseFault(bad, "--inject"); }).find("is no fault") != std::string::npos, bad);
    }
};

PIPEWRIGHT_TEST(TestFaults, QCoreApplication)
#include "tst_faults.moc"
