// SPDX-License-Identifier: GPL-3.0-or-later
// What every backend must do, whatever it is made of.
#include "core/base/diagnostic.h"
#include "executor/runtime/conformancebackends.h"
#include "executor/runtime/steadyclock.h"
#include "testmain.h"

#include <QTest>

#include <atomic>
#include <cstring>
#include <thread>

using namespace pipewright;

class TestBackendConformance : public QObject {
    Q_OBJECT

private slots:
    void memoryIsAlignedAndWritable_data() { rows(); }
    void memoryIsAlignedAndWritable()
    {
        QFETCH(int, backend);
        const auto tested = backends[backend].create(2);
        QCOMPARE(tested->devices(), 2);
        for (const Bytes bytes : {Bytes{0}, Bytes{1}, Bytes{4097}}) {
            const Piece piece(*tested, 1, bytes, 0x5a);
            QCOMPARE(piece.region.bytes, bytes);
            QCOMPARE(reinterpret_cast<std::uintptr_t>(piece.region.data) % 64, std::uintptr_t{0});
            QVERIFY(piece.holds(0x5a));
        }
    }

    void capabilitiesAreTrue_data() { rows(); }
    void capabilitiesAreTrue()
    {
        QFETCH(int, backend);
        const auto tested = backends[backend].create(2);
        for (int d = 0; d < 2; ++d) {
            Device& device = tested->device(d);
            QVERIFY(!device.name().empty());
            // These tests touch the memory of all, but only where the backend says so may its users.
            QCOMPARE(device.capabilities().hostAddressable, tested->name() != "cuda");
            const auto stream = device.createStream();
            QCOMPARE(device.createStopwatch(*stream, 1) != nullptr, tested->name() == "cuda");
            // Without anything that runs by itself, a copy is over when the second call returns.
            QCOMPARE(device.capabilities().asynchronous, std::string(backends[backend].name) != "host");
        }
    }

    void whatADeviceHoldsIsToldBeforehandAndCounted_data() { rows(); }
    void whatADeviceHoldsIsToldBeforehandAndCounted()
    {
        QFETCH(int, backend);
        const auto tested = backends[backend].create(2);
        const auto held = [&](int device) { return tested->device(device).heldBytes(); };
        for (int d = 0; d < 2; ++d) {
            QCOMPARE(held(d), 0);
            const auto memory = tested->device(d).allocate(1000);
            QCOMPARE(held(d), 1000);
        }
        const auto stream = tested->device(1).createStream();
        const auto maths = tested->device(1).createOperations(*stream),
                   more = tested->device(1).createOperations(*stream);
        const Bytes room = tested->device(1).capabilities().workspaceBytes;
        QCOMPARE(held(1), room); // all of a device work in one
        for (const int stored : {0, 3}) {
            const LinkOptions options{.storedSends = stored, .slotBytes = 100, .postings = 4};
            const LinkMemory told = tested->linkMemory(0, 1, options);
            QVERIFY(backends[backend].stores && stored > 0 ? told.sender >= 300 : told.sender == 0);
            const auto link = tested->createLink(0, 1, options);
            QCOMPARE(held(0), told.sender);
            QCOMPARE(held(1), room + told.receiver);
        }
        QCOMPARE(held(0), 0);
        QCOMPARE(held(1), room);
    }

    void whatIsIssuedHappensInOrderAndTheStopwatchKnowsWhen_data() { rows(); }
    void whatIsIssuedHappensInOrderAndTheStopwatchKnowsWhen()
    {
        QFETCH(int, backend);
        const auto tested = backends[backend].create(2);
        Device& device = tested->device(1);
        const auto stream = device.createStream();
        const auto operations = device.createOperations(*stream);
        const auto stopwatch = device.createStopwatch(*stream, 2);
        const Piece piece(*tested, 1, 400, 0);
        const std::span<float> values(reinterpret_cast<float*>(piece.region.data), 50), more = {values.data() + 50, 50};
        std::vector<float> given(50, 2.0f), back(50);
        device.write(*stream, {piece.region.data, 200}, given.data());
        const Nanoseconds before = steadyNow();
        if (stopwatch)
            stopwatch->mark(0);
        operations->run(kernels::Fill{more, 0.5f});
        for (int i = 0; i < 100; ++i)
            operations->run(kernels::Add{values, more});
        if (stopwatch)
            stopwatch->mark(1);
        device.read(*stream, {piece.region.data, 200}, back.data());
        for (const float value : back)
            QCOMPARE(value, 52.0f);
        if (stopwatch) {
            QVERIFY(stopwatch->passed(0) && stopwatch->passed(1));
            QVERIFY(stopwatch->at(0) <= stopwatch->at(1));
            const Nanoseconds slack = 1'000'000'000; // however long comparing the clocks was interrupted
            QVERIFY(stopwatch->at(0) >= before - slack && stopwatch->at(1) <= steadyNow() + slack);
        }
    }

    void whatAnotherDeviceHoldsIsFetchedInTheOrderOfTheStream_data() { rows(); }
    void whatAnotherDeviceHoldsIsFetchedInTheOrderOfTheStream()
    {
        QFETCH(int, backend);
        const auto tested = backends[backend].create(2);
        Device &here = tested->device(1), &there = tested->device(0);
        const auto stream = here.createStream();
        const auto operations = here.createOperations(*stream);
        const Piece held(*tested, 0, 200, 0), mine(*tested, 1, 200, 0);
        std::vector<float> given(50, 3.0f), back(50);
        const auto writing = there.createStream();
        there.write(*writing, held.region, given.data());
        const std::span<float> values(reinterpret_cast<float*>(mine.region.data), 50);
        operations->run(kernels::Fill{values, 1});
        here.fetch(*stream, mine.region, there, held.region);
        kernels::TensorCall twice{};
        twice.operation = kernels::TensorOperation::Scale;
        twice.number = 2;
        twice.size[0] = 50;
        twice.in[0] = twice.out = values.data();
        operations->run(twice);
        here.read(*stream, mine.region, back.data());
        QCOMPARE(back, std::vector<float>(50, 6.0f));
        QVERIFY(here.reaches(here));
    }

    void anAbsurdAllocationIsAnErrorThatNamesTheDevice_data() { rows(); }
    void anAbsurdAllocationIsAnErrorThatNamesTheDevice()
    {
        QFETCH(int, backend);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
        QSKIP("sanitizers abort on absurd allocations");
#endif
        const auto tested = backends[backend].create(2);
        try {
            tested->device(1).allocate(Bytes{1} << 60);
            QFAIL("allocated an exbibyte");
        } catch (const Error& error) {
            QCOMPARE(error.diagnostics().front().where, std::string("device 1"));
        }
    }

    void nothingMovesBeforeBothSidesArePosted_data()
    {
        rows();
    }
    void nothingMovesBeforeBothSidesArePosted()
    {
        QFETCH(int, backend);
        for (const bool sendFirst : {true, false}) {
            Pair pair(backend, {.storedSends = 0, .slotBytes = 0, .postings = 4});
            Piece source(*pair.backend, 0, 100, 1), destination(*pair.backend, 1, 100, 2);
            const auto sent = pair.event(0), arrived = pair.event(1);
            const auto send = [&] { return pair.link->send(*pair.streams[0], {7, {&source.region, 1}, sent.get()}); };
            const auto receive = [&] {
                return pair.link->receive(*pair.streams[1], {7, {&destination.region, 1}, arrived.get()});
            };
            QCOMPARE(sendFirst ? send().task : receive().task, none);
            watchQuietly(*pair.backend);
            QVERIFY(!sent->complete() && !arrived->complete());
            QVERIFY(destination.holds(2));
            sendFirst ? receive() : send();
            QVERIFY(pair.waited(0, *sent) && pair.waited(1, *arrived));
            QVERIFY(destination.holds(1));
        }
    }

    void slotsFreeTheSourceBeforeTheReceive_data()
    {
        rows();
    }
    void slotsFreeTheSourceBeforeTheReceive()
    {
        QFETCH(int, backend);
        if (!backends[backend].stores)
            QSKIP("this backend's links only rendezvous, at the speed they have");
        Pair pair(backend, {.storedSends = 1, .slotBytes = 100, .postings = 4});
        Piece first(*pair.backend, 0, 100, 1), second(*pair.backend, 0, 100, 2);
        Piece firstTo(*pair.backend, 1, 100, 9), secondTo(*pair.backend, 1, 100, 9);
        const auto sent1 = pair.event(0), sent2 = pair.event(0), arrived1 = pair.event(1), arrived2 = pair.event(1);
        pair.link->send(*pair.streams[0], {1, {&first.region, 1}, sent1.get()});
        QVERIFY(pair.waited(0, *sent1)); // stored: it may be overwritten
        std::memset(first.region.data, 0xee, 100);
        pair.link->send(*pair.streams[0], {2, {&second.region, 1}, sent2.get()});
        QVERIFY(!sent2->complete()); // no slot left: it stays posted
        pair.link->receive(*pair.streams[1], {1, {&firstTo.region, 1}, arrived1.get()});
        pair.link->receive(*pair.streams[1], {2, {&secondTo.region, 1}, arrived2.get()});
        QVERIFY(pair.waited(1, *arrived1) && pair.waited(1, *arrived2) && pair.waited(0, *sent2));
        QVERIFY(firstTo.holds(1));
        QVERIFY(secondTo.holds(2));
    }

    void aTransferLargerThanASlotStaysWithTheSender_data()
    {
        rows();
    }
    void aTransferLargerThanASlotStaysWithTheSender()
    {
        QFETCH(int, backend);
        Pair pair(backend, {.storedSends = 2, .slotBytes = 10, .postings = 4});
        Piece source(*pair.backend, 0, 100, 1);
        const auto sent = pair.event(0);
        pair.link->send(*pair.streams[0], {1, {&source.region, 1}, sent.get()});
        QVERIFY(!sent->complete());
    }

    void severalRegionsTravelTogether_data()
    {
        rows();
    }
    void severalRegionsTravelTogether()
    {
        QFETCH(int, backend);
        for (const int eager : {0, 1}) {
            Pair pair(backend, {.storedSends = eager, .slotBytes = 64, .postings = 4});
            Piece a(*pair.backend, 0, 30, 1), b(*pair.backend, 0, 34, 2), toA(*pair.backend, 1, 30, 0),
                toB(*pair.backend, 1, 34, 0);
            const std::vector<Region> from{a.region, b.region}, to{toA.region, toB.region};
            const auto sent = pair.event(0), arrived = pair.event(1);
            pair.link->send(*pair.streams[0], {1, from, sent.get()});
            pair.link->receive(*pair.streams[1], {1, to, arrived.get()});
            QVERIFY(pair.waited(1, *arrived) && pair.waited(0, *sent)); // what is sent stays until it is
            QVERIFY(toA.holds(1) && toB.holds(2));
        }
    }

    void aWrongOrderIsStuckAndSaysSo_data()
    {
        rows();
    }
    void aWrongOrderIsStuckAndSaysSo()
    {
        QFETCH(int, backend);
        for (const int eager : {0, 2}) {
            Pair pair(backend, {.storedSends = eager, .slotBytes = 100, .postings = 4});
            Piece source(*pair.backend, 0, 100, 1), destination(*pair.backend, 1, 100, 2);
            const auto sent1 = pair.event(0), sent2 = pair.event(0), arrived1 = pair.event(1), arrived2 = pair.event(1);
            pair.link->send(*pair.streams[0], {1, {&source.region, 1}, sent1.get()});
            pair.link->send(*pair.streams[0], {2, {&source.region, 1}, sent2.get()});
            pair.link->receive(*pair.streams[1], {2, {&destination.region, 1}, arrived2.get()});
            pair.link->receive(*pair.streams[1], {1, {&destination.region, 1}, arrived1.get()});
            QTRY_VERIFY_WITH_TIMEOUT(pair.link->heads().mismatch, patience);
            watchQuietly(*pair.backend);
            if (eager > 0 && backends[backend].stores) // both are; what is sent stays until it is
                QVERIFY(pair.waited(0, *sent1) && pair.waited(0, *sent2));
            QVERIFY(!arrived1->complete() && !arrived2->complete());
            QVERIFY(destination.holds(2));
            const Link::Heads heads = pair.link->heads();
            QCOMPARE(heads.send, TaskId{1});
            QCOMPARE(heads.receive, TaskId{2});
        }
    }

    void sizesMustAgree_data()
    {
        rows();
    }
    void sizesMustAgree()
    {
        QFETCH(int, backend);
        Pair pair(backend, {.storedSends = 0, .slotBytes = 0, .postings = 4});
        Piece source(*pair.backend, 0, 100, 1), destination(*pair.backend, 1, 99, 2);
        const auto sent = pair.event(0), arrived = pair.event(1);
        pair.link->send(*pair.streams[0], {1, {&source.region, 1}, sent.get()});
        pair.link->receive(*pair.streams[1], {1, {&destination.region, 1}, arrived.get()});
        QTRY_VERIFY_WITH_TIMEOUT(pair.link->heads().mismatch, patience);
        QVERIFY(!arrived->complete());
    }

    void anEmptyTransferArrives_data()
    {
        rows();
    }
    void anEmptyTransferArrives()
    {
        QFETCH(int, backend);
        Pair pair(backend, {.storedSends = 0, .slotBytes = 0, .postings = 4});
        const Region nothing{};
        const auto sent = pair.event(0), arrived = pair.event(1);
        pair.link->receive(*pair.streams[1], {1, {&nothing, 1}, arrived.get()});
        pair.link->send(*pair.streams[0], {1, {&nothing, 1}, sent.get()});
        QVERIFY(pair.waited(1, *arrived) && pair.waited(0, *sent));
    }

    void eventsAndLinksCanBeUsedAgain_data()
    {
        rows();
    }
    void eventsAndLinksCanBeUsedAgain()
    {
        QFETCH(int, backend);
        Pair pair(backend, {.storedSends = 1, .slotBytes = 100, .postings = 1});
        Piece source(*pair.backend, 0, 100, 0), destination(*pair.backend, 1, 100, 0);
        const auto sent = pair.event(0), arrived = pair.event(1);
        for (int step = 1; step < 5; ++step) {
            std::memset(source.region.data, step, 100);
            pair.link->send(*pair.streams[0], {1, {&source.region, 1}, sent.get()});
            pair.link->receive(*pair.streams[1], {1, {&destination.region, 1}, arrived.get()});
            QVERIFY(pair.waited(1, *arrived) && pair.waited(0, *sent));
            QVERIFY(destination.holds(step));
            pair.link->reset();
            sent->reset();
            arrived->reset();
            QVERIFY(!sent->complete() && !arrived->complete());
        }
    }

    void aWaitCanBeInterruptedFromOutside_data()
    {
        rows();
    }
    void aWaitCanBeInterruptedFromOutside()
    {
        QFETCH(int, backend);
        Pair pair(backend, {});
        const auto never = pair.event(1);
        std::atomic<bool> result{true};
        std::thread waiting([&] { result = pair.streams[1]->wait(*never); });
        pair.streams[1]->interrupt();
        waiting.join();
        QVERIFY(!result);
        QVERIFY(!pair.streams[1]->synchronize());
        pair.streams[1]->resume();
        QVERIFY(pair.streams[1]->synchronize());
    }

    void aSlowLinkDeliversNoEarlierThanItsTime_data()
    {
        rows();
    }
    void aSlowLinkDeliversNoEarlierThanItsTime()
    {
        QFETCH(int, backend);
        if (!backends[backend].stores)
            QSKIP("this backend's links only rendezvous, at the speed they have");
        for (const int eager : {0, 1}) {
            Pair pair(backend, {.storedSends = eager, .slotBytes = 100, .postings = 4});
            Piece source(*pair.backend, 0, 100, 1), destination(*pair.backend, 1, 100, 2);
            const auto sent = pair.event(0), arrived = pair.event(1);
            const Nanoseconds slow = 5'000'000;
            const Nanoseconds before =
                steadyNow(); // not by the copy's record: two GPUs' clocks are compared, not equal
            pair.link->send(*pair.streams[0], {1, {&source.region, 1}, sent.get(), slow});
            Copied copied = pair.link->receive(*pair.streams[1], {1, {&destination.region, 1}, arrived.get(), slow});
            QVERIFY(pair.waited(1, *arrived));
            QVERIFY(steadyNow() - before >= slow);
            QVERIFY(pair.waited(0, *sent));
            copied = pair.theCopy(copied);
            QCOMPARE(copied.task, TaskId{1});
        }
    }

    void aBlockingTransferHoldsTheSenderAsLong_data()
    {
        rows();
    }
    void aBlockingTransferHoldsTheSenderAsLong()
    {
        QFETCH(int, backend);
        if (!backends[backend].stores)
            QSKIP("this backend's links only rendezvous, at the speed they have");
        for (const bool senderFirst : {true, false}) {
            Pair pair(backend, {.postings = 4});
            Piece source(*pair.backend, 0, 100, 1), destination(*pair.backend, 1, 100, 2);
            const auto sent = pair.event(0), arrived = pair.event(1);
            const Nanoseconds slow = 5'000'000;
            const Posting from{1, {&source.region, 1}, sent.get(), slow, true},
                to{1, {&destination.region, 1}, arrived.get(), slow, true};
            Copied copied;
            const Nanoseconds before = steadyNow();
            if (senderFirst) {
                pair.link->send(*pair.streams[0], from);
                copied = pair.link->receive(*pair.streams[1], to);
            } else {
                pair.link->receive(*pair.streams[1], to);
                copied = pair.link->send(*pair.streams[0], from);
            }
            QVERIFY(pair.waited(0, *sent));
            QVERIFY(pair.waited(1, *arrived));
            copied = pair.theCopy(copied);
            QCOMPARE(copied.task, TaskId{1});
            QVERIFY(steadyNow() - before >= slow);
        }
    }

    void twoThreadsExchangeManyTransfersInOrder_data()
    {
        rows();
    }
    void twoThreadsExchangeManyTransfersInOrder()
    {
        QFETCH(int, backend);
        constexpr std::size_t count = 2000;
        for (const int eager : {0, 1, 3}) {
            Pair pair(backend, {.storedSends = eager, .slotBytes = 64, .postings = count});
            Piece source(*pair.backend, 0, 64 * count, 0), destination(*pair.backend, 1, 64 * count, 0xff);
            std::vector<std::unique_ptr<Event>> sent, arrived;
            std::vector<Region> from, to;
            for (std::size_t i = 0; i < count; ++i) {
                sent.push_back(pair.event(0));
                arrived.push_back(pair.event(1));
                from.push_back({source.region.data + 64 * i, 64});
                to.push_back({destination.region.data + 64 * i, 64});
            }
            std::thread sender([&] {
                for (std::size_t i = 0; i < count; ++i) {
                    std::memset(from[i].data, static_cast<int>(i % 251), 64);
                    pair.link->send(*pair.streams[0], {static_cast<TaskId>(i), {&from[i], 1}, sent[i].get()});
                    if (i >= 2)
                        pair.waited(0, *sent[i - 2]);
                }
                pair.waited(0, *sent[count - 2]);
                pair.waited(0, *sent[count - 1]);
            });
            bool right = true;
            for (std::size_t i = 0; i < count; ++i) {
                pair.link->receive(*pair.streams[1], {static_cast<TaskId>(i), {&to[i], 1}, arrived[i].get()});
                right = pair.waited(1, *arrived[i]) && right;
                right = right && to[i].data[0] == std::byte(i % 251) && to[i].data[63] == std::byte(i % 251);
            }
            sender.join();
            QVERIFY(right);
        }
    }

private:
    static void rows()
    {
        QTest::addColumn<int>("backend");
        for (int i = 0; i < backendsHere(); ++i)
            QTest::addRow("%s", backends[i].name) << i;
    }
};

PIPEWRIGHT_TEST(TestBackendConformance, QCoreApplication)
#include "tst_backend_conformance.moc"
