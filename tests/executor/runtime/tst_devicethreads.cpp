// SPDX-License-Identifier: GPL-3.0-or-later
// Devices in threads of their own: none waits for one that failed, or that never began.
#include "core/base/diagnostic.h"
#include "errorof.h"
#include "executor/runtime/devicethreads.h"
#include "fewthreads.h"
#include "testmain.h"

#include <QTest>

#include <atomic>
#include <thread>

using namespace pipewright;
using namespace pipewright::test;

class TestDeviceThreads : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void allDevicesRunAtOnce()
    {
        std::atomic<int> here{0};
        onDeviceThreads(
            4,
            [&](std::size_t) {
                ++here;
                while (here < 4)
                    std::this_thread::yield();
            },
            [](std::size_t) {});
        QCOMPARE(here.load(), 4);
    }

    void theFirstFailureIsToldAndTheOthersAreLetGo()
    {
        std::atomic<bool> over{false};
        const std::string error = errorOf([&] {
            onDeviceThreads(
                3,
                [&](std::size_t device) {
                    if (device == 1)
                        throw Error("device 1", "fell");
                    while (!over)
                        std::this_thread::yield();
                },
                [&](std::size_t) { over = true; });
        });
        QCOMPARE(error, std::string("device 1: error: fell"));
    }

    void aThreadThatCannotBeStartedIsToldAndTheOthersAreLetGo()
    {
        if (!canLimitThreads)
            QSKIP("a sanitizer takes the address space");
        std::atomic<int> missing{0};
        std::string error;
        {
            const FewThreads few;
            error = errorOf([&] {
                onDeviceThreads(
                    4,
                    [&](std::size_t) {
                        while (missing < 3)
                            std::this_thread::yield();
                    },
                    [&](std::size_t) { ++missing; });
            });
        }
        QCOMPARE(missing.load(), 3);
        QVERIFY2(error.find("device 1: error: its thread cannot be started") != std::string::npos, error.c_str());
    }
};

PIPEWRIGHT_TEST(TestDeviceThreads, QCoreApplication)
#include "tst_devicethreads.moc"
