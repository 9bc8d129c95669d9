// SPDX-License-Identifier: GPL-3.0-or-later
// When a stalled run may be ended before its deadline: only when no device can go on any more.
#include "executor/runtime/barrier.h"
#include "executor/runtime/stall.h"
#include "makers/tinydesigns.h"
#include "testmain.h"

#include <QTest>

#include <atomic>
#include <future>
#include <optional>
#include <thread>

using namespace pipewright;

namespace {

using State = ActorStatus::State;

ActorStatus in(State state, bool ready = false)
{
    return {.state = state, .instruction = 0, .transfer = 0, .ready = ready};
}

bool certain(std::vector<ActorStatus> actors)
{
    return cannotGoOn({std::move(actors), {}});
}

} // namespace

class TestStall : public QObject {
    Q_OBJECT

private slots:
    void allWaitingIsADeadlock()
    {
        QVERIFY(certain({in(State::WaitsForArrival), in(State::WaitsForSend)}));
        QVERIFY(certain({in(State::WaitsForArrival), in(State::Done)}));
        QVERIFY(certain({in(State::WaitsForArrival), in(State::Dead)}));
        QVERIFY(certain({in(State::Failed), in(State::Done)}));
    }

    void aDeviceThatCanStillActKeepsTheRunGoing()
    {
        QVERIFY(!certain({in(State::WaitsForArrival), in(State::Running)}));
        QVERIFY(!certain({in(State::WaitsForArrival), in(State::Stalled)}));
        QVERIFY(!certain({in(State::WaitsForArrival), in(State::Idle)}));                  // has not begun the step yet
        QVERIFY(!certain({in(State::WaitsForArrival), in(State::WaitsForArrival, true)})); // about to wake up
    }

    void devicesThatAreAllDoneAreNoStall() { QVERIFY(!certain({in(State::Done), in(State::Done)})); }

    void theLastToArriveAtABarrierDoesNotWait()
    {
        Barrier barrier(2);
        const std::atomic<bool> stopped{false};
        std::promise<std::uint64_t> first;
        std::thread early([&] {
            const auto latest = barrier.arriveAndWait(5, stopped, [&](std::uint64_t round) { first.set_value(round); });
            QCOMPARE(latest, std::optional<Nanoseconds>(7));
        });
        QCOMPARE(first.get_future().get(), std::uint64_t(0));
        // Were it said of this one too, all would wait for a moment, and the run would be ended.
        const auto latest =
            barrier.arriveAndWait(7, stopped, [](std::uint64_t) { QFAIL("the last has nobody to wait for"); });
        early.join();
        QCOMPARE(latest, std::optional<Nanoseconds>(7));
        QCOMPARE(barrier.rounds(), std::uint64_t(1));
    }

    void everyInstructionHasAName()
    {
        const Program program = tiny::compiled(tiny::tied());
        bool sends = false, receives = false, reduces = false;
        for (std::uint32_t i = 0; i < program.devices[0].instructions.size(); ++i) {
            const std::string name = describeInstruction(program, 0, i);
            QVERIFY(!name.empty());
            sends = sends || name == "send of F0.0 from device 0 to device 1";
            receives = receives || name.find("receive of B1.0") == 0 || name.find("receive of I1.0") == 0;
            reduces = reduces || name.find("reduce") == 0;
        }
        QVERIFY(sends && receives && reduces);
    }
};

PIPEWRIGHT_TEST(TestStall, QCoreApplication)
#include "tst_stall.moc"
