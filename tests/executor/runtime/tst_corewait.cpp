// SPDX-License-Identifier: GPL-3.0-or-later
// What threads wait for a processor core is counted, step by step.
#include "checksumwork.h"
#include "executor/host/hostbackend.h"
#include "executor/runtime/corewait.h"
#include "executor/runtime/runtime.h"
#include "makers/tinydesigns.h"
#include "testmain.h"

#include <QTest>

#include <atomic>
#include <thread>

#include <sched.h>

using namespace pipewright;

class TestCoreWait : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void initTestCase()
    {
        if (waitedForCore() < 0)
            QSKIP("this kernel does not count how long threads wait for a core");
    }

    void twoThreadsOnOneCoreWaitForEachOther()
    {
        std::atomic<bool> waited = false;
        const auto spin = [&waited] {
            const Nanoseconds before = waitedForCore();
            while (!waited.load())
                if (waitedForCore() - before > 1'000'000)
                    waited = true;
        };
        cpu_set_t before, one;
        QCOMPARE(sched_getaffinity(0, sizeof before, &before), 0);
        CPU_ZERO(&one);
        CPU_SET(static_cast<std::size_t>(sched_getcpu()), &one);
        QCOMPARE(sched_setaffinity(0, sizeof one, &one), 0); // which threads inherit
        std::thread first(spin), second(spin);
        first.join();
        second.join();
        QCOMPARE(sched_setaffinity(0, sizeof before, &before), 0);
        QVERIFY(waited);
    }

    void aStepSaysWhatItsThreadsWaited_data()
    {
        QTest::addColumn<bool>("virtualClock");
        QTest::newRow("measured") << false;
        QTest::newRow("virtual clock: nothing is measured") << true;
    }

    void aStepSaysWhatItsThreadsWaited()
    {
        QFETCH(bool, virtualClock);
        const Program program = tiny::compiled(tiny::oneForwardOneBackward());
        const auto backend = createHostBackend(static_cast<int>(program.devices.size()));
        test::ChecksumWork work;
        RuntimeOptions options{.virtualClock = virtualClock};
        if (virtualClock)
            options.durations.assign(program.tasks.size(), 1'000);
        Runtime runtime(program, *backend, work, nullptr, options);
        const Nanoseconds wait = runtime.runStep(0).coreWait;
        QVERIFY(virtualClock ? wait == -1 : wait >= 0);
    }
};

PIPEWRIGHT_TEST(TestCoreWait, QCoreApplication)
#include "tst_corewait.moc"
