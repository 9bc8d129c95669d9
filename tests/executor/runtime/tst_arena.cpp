// SPDX-License-Identifier: GPL-3.0-or-later
// Memory planning: buffers that live together never overlap, freed places are reused, and the meter that checks it.
#include "core/base/diagnostic.h"
#include "executor/runtime/arena.h"
#include "executor/runtime/memorymeter.h"
#include "makers/tinydesigns.h"
#include "testmain.h"

#include <QTest>

#include <random>

using namespace pipewright;

namespace {

/// The most bytes that live at one instruction, each rounded up as the arena does.
Bytes peakOf(const Program& program, const std::vector<BufferLife>& lives, std::uint32_t instructions)
{
    Bytes peak = 0;
    for (std::uint32_t i = 0; i < instructions; ++i) {
        Bytes live = 0;
        for (const BufferLife& life : lives) {
            if (life.begin <= i && i <= life.end)
                live += (program.buffers[life.buffer].bytes + 63) / 64 * 64;
        }
        peak = std::max(peak, live);
    }
    return peak;
}

void checkPlan(const Program& program, const std::vector<BufferLife>& lives, const ArenaPlan& plan)
{
    QCOMPARE(plan.offsets.size(), lives.size());
    for (std::size_t a = 0; a < lives.size(); ++a) {
        const Bytes endOfA = plan.offsets[a] + program.buffers[lives[a].buffer].bytes;
        QCOMPARE(plan.offsets[a] % ArenaPlan::alignment, Bytes{0});
        QVERIFY(endOfA <= plan.bytes);
        for (std::size_t b = a + 1; b < lives.size(); ++b) {
            const bool together = lives[a].begin <= lives[b].end && lives[b].begin <= lives[a].end;
            const Bytes endOfB = plan.offsets[b] + program.buffers[lives[b].buffer].bytes;
            if (together)
                QVERIFY(endOfA <= plan.offsets[b] || endOfB <= plan.offsets[a]);
        }
    }
}

} // namespace

class TestArena : public QObject {
    Q_OBJECT

private slots:
    void buffersThatLiveTogetherNeverOverlap()
    {
        for (const tiny::Named& named : tiny::all) {
            const Program program = tiny::compiled(named.make());
            for (int d = 0; d < static_cast<int>(program.devices.size()); ++d) {
                const auto lives = lifetimes(program, d);
                QVERIFY(!lives.empty());
                checkPlan(program, lives, planArena(program, lives));
            }
        }
    }

    void randomLivesAreToldApartAndTheArenaStaysNearThePeak()
    {
        std::mt19937 random(7);
        for (int round = 0; round < 20; ++round) {
            Program program;
            std::vector<BufferLife> lives;
            for (std::uint32_t i = 0; i < 150; ++i) {
                program.buffers.push_back({.bytes = static_cast<Bytes>(random() % 5000), .device = 0});
                lives.push_back({i, i, i + static_cast<std::uint32_t>(random() % 40)});
            }
            const ArenaPlan plan = planArena(program, lives);
            checkPlan(program, lives, plan);
            const Bytes peak = peakOf(program, lives, 200);
            QVERIFY(plan.bytes >= peak);
            QVERIFY2(plan.bytes <= peak * 3 / 2, qPrintable(QString("%1 for %2").arg(plan.bytes).arg(peak)));
        }
    }

    void equalBuffersReuseFreedPlacesExactly()
    {
        const Program program = tiny::compiled(tiny::make({0}, 4, {"F0.0 B0.0 F0.1 B0.1 F0.2 B0.2 F0.3 B0.3"}));
        const auto lives = lifetimes(program, 0);
        QCOMPARE(planArena(program, lives).bytes,
                 peakOf(program, lives, static_cast<std::uint32_t>(program.devices[0].instructions.size())));
    }

    void workspaceLivesDuringItsInstructionOnly()
    {
        const Program program = tiny::compiled(tiny::gpipe());
        for (const BufferLife& life : lifetimes(program, 1))
            QCOMPARE(life.transient(), program.buffers[life.buffer].kind == BufferKind::Workspace);
    }

    void freeingTwiceIsRefused()
    {
        Program program = tiny::compiled(tiny::gpipe());
        auto& list = program.devices[0].instructions;
        const auto free = std::find_if(list.begin(), list.end(),
                                       [](const Instruction& i) { return i.kind == InstructionKind::Free; });
        list.insert(free, *free);
        QVERIFY_THROWS_EXCEPTION(Error, lifetimes(program, 0));
    }

    void theMeterCountsThePeakAndPoisonsWhatIsReleased()
    {
        std::vector<std::byte> memory(256);
        const Region a{memory.data(), 100}, b{memory.data() + 128, 50};
        MemoryMeter meter(0, true, 4);
        meter.addPersistent(1000);
        meter.acquire(1, a);
        meter.acquire(2, b);
        meter.release(1, a);
        QCOMPARE(meter.live(), Bytes{1050});
        QCOMPARE(meter.peak(), Bytes{1150});
        QVERIFY(memory[0] == std::byte{0xff} && memory[99] == std::byte{0xff} && memory[100] == std::byte{0});
        QVERIFY_THROWS_EXCEPTION(Error, meter.expectOnlyPersistent());
        meter.release(2, b);
        meter.expectOnlyPersistent();
    }

    void theMeterRefusesOverlapsAndDoubleReleases()
    {
        std::vector<std::byte> memory(256);
        MemoryMeter meter(0, true, 4);
        meter.acquire(1, {memory.data(), 100});
        QVERIFY_THROWS_EXCEPTION(Error, meter.acquire(2, Region{memory.data() + 99, 10}));
        QVERIFY_THROWS_EXCEPTION(Error, meter.acquire(1, Region{memory.data() + 128, 10}));
        meter.release(1, {memory.data(), 100});
        QVERIFY_THROWS_EXCEPTION(Error, meter.release(1, Region{memory.data(), 100}));
    }
};

PIPEWRIGHT_TEST(TestArena, QCoreApplication)
#include "tst_arena.moc"
