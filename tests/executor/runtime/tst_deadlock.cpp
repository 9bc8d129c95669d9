// SPDX-License-Identifier: GPL-3.0-or-later
// The deadlock checker and the runtime agree. In random schedules, sends and receives are moved at random: what the
// checker accepts finishes over rendezvous links with the right result, and what it rejects hangs and ends with a
// message that says who waits for whom.
#include "checksumwork.h"
#include "core/program/deadlock.h"
#include "executor/host/hostbackend.h"
#include "executor/runtime/runtime.h"
#include "makers/tinydesigns.h"
#include "sanitized.h"
#include "testmain.h"

#include <QTest>

#include <random>

using namespace pipewright;

namespace {

constexpr std::uint64_t schedules = threadSanitized ? 150 : addressSanitized ? 400 : 1000;

class Random {
public:
    explicit Random(std::uint64_t seed) : m_engine(seed) {}
    int upTo(int most) { return static_cast<int>(m_engine() % static_cast<std::uint64_t>(most + 1)); }
    int between(int least, int most) { return least + upTo(most - least); }

private:
    std::mt19937_64 m_engine;
};

/// Any placement, and any order that respects the dependencies: at every turn a block that could run now.
tiny::Case randomSchedule(Random& random)
{
    const int devices = random.between(2, 4), stages = random.between(devices, devices + 2);
    const int microbatches = random.between(1, 4);
    const bool split = random.upTo(2) == 0;
    std::vector<int> placement;
    for (int s = 0; s < stages; ++s)
        placement.push_back(s < devices ? s : random.upTo(devices - 1));
    std::shuffle(placement.begin(), placement.end(), std::mt19937_64(static_cast<std::uint64_t>(random.upTo(1 << 20))));
    tiny::Case result = tiny::make(placement, microbatches, std::vector<std::string>(static_cast<std::size_t>(devices)),
                                   split ? BackwardStyle::Split : BackwardStyle::Full);

    const Op backward = split ? Op::I : Op::B;
    std::vector<Block> ready;
    for (int m = 0; m < microbatches; ++m)
        ready.push_back(result.schedule.block(Op::F, 0, m));
    while (!ready.empty()) {
        const auto chosen = ready.begin() + random.upTo(static_cast<int>(ready.size()) - 1);
        const Block block = *chosen;
        ready.erase(chosen);
        result.schedule.order[placement[block.stage]].push_back(block);
        const auto add = [&](Op op, int stage) { ready.push_back(result.schedule.block(op, stage, block.microbatch)); };
        if (block.op == Op::F)
            block.stage + 1 < stages ? add(Op::F, block.stage + 1) : add(backward, block.stage);
        if (block.op == backward && block.stage > 0)
            add(backward, block.stage - 1);
        if (block.op == Op::I)
            add(Op::W, block.stage);
    }
    return result;
}

bool isTransfer(const Instruction& instruction)
{
    return instruction.kind == InstructionKind::Send || instruction.kind == InstructionKind::Receive;
}

bool shares(std::span<const BufferId> buffers, BufferId buffer)
{
    return std::find(buffers.begin(), buffers.end(), buffer) != buffers.end();
}

/// A send stays behind the block that makes its value, and both sides before the end of their buffer: the
/// rest is order, which is what is tested.
bool mayPass(const Program& program, const Instruction& moved, const Instruction& other)
{
    if (other.kind == InstructionKind::Free) {
        const auto own = moved.kind == InstructionKind::Send ? program.reads(moved.task) : program.writes(moved.task);
        return other.task != moved.task && !shares(own, other.buffer);
    }
    if (moved.kind != InstructionKind::Send || isTransfer(other))
        return true;
    for (const BufferId buffer : program.reads(moved.task))
        if (shares(program.writes(other.task), buffer))
            return false;
    return true;
}

void moveTransfers(Program& program, Random& random)
{
    for (int moves = random.upTo(4); moves > 0; --moves) {
        auto& list = program.devices[random.upTo(static_cast<int>(program.devices.size()) - 1)].instructions;
        std::vector<std::size_t> transfers;
        for (std::size_t i = 0; i < list.size(); ++i)
            if (isTransfer(list[i]))
                transfers.push_back(i);
        if (transfers.empty())
            continue;
        std::size_t at = transfers[random.upTo(static_cast<int>(transfers.size()) - 1)];
        const bool later = random.upTo(1) == 1;
        for (int steps = random.between(1, 8); steps > 0; --steps) {
            if (later ? at + 1 >= list.size() : at == 0)
                break;
            const std::size_t next = later ? at + 1 : at - 1;
            if (!mayPass(program, list[at], list[next]))
                break;
            std::swap(list[at], list[next]);
            at = next;
        }
    }
}

/// Empty when it finished.
std::string hangOf(const Program& program, std::vector<std::byte>& result)
{
    const auto backend = createHostBackend(static_cast<int>(program.devices.size()));
    test::ChecksumWork work;
    Runtime runtime(program, *backend, work, nullptr,
                    {.eagerSlots = 0, .deadline = 5'000'000'000, .watchInterval = 1'000'000, .checkMemory = true});
    try {
        runtime.runStep(0);
    } catch (const Error& error) {
        return error.what();
    }
    result = work.result();
    return {};
}

} // namespace

class TestDeadlock : public QObject {
    Q_OBJECT

private slots:
    void checkerAndRendezvousAgreeOnRandomSchedules()
    {
        int accepted = 0, rejected = 0;
        for (std::uint64_t seed = 1; seed <= schedules; ++seed) {
            Random random(seed);
            const tiny::Case which = randomSchedule(random);
            Program program = tiny::compiled(which, random.between(1, 4));
            std::vector<std::byte> expected, result;
            const std::string untouched = hangOf(program, expected);
            QVERIFY2(untouched.empty(), qPrintable(QString("seed %1: %2").arg(seed).arg(untouched.c_str())));

            program.communication = random.upTo(1) == 1 ? Communication::Blocking : Communication::Overlapped;
            moveTransfers(program, random);
            const Diagnostics verdict = checkDeadlock(program, program.communication);
            const std::string hang = hangOf(program, result);
            const QByteArray context = QByteArray("seed ") + QByteArray::number(static_cast<qulonglong>(seed))
                                       + ": checker: " + (verdict.empty() ? "accepts" : verdict.front().what.c_str())
                                       + "; run: " + hang.c_str();
            QVERIFY2(verdict.empty() == hang.empty(), context.constData());
            if (hang.empty()) {
                ++accepted;
                QVERIFY2(result == expected, context.constData());
                continue;
            }
            ++rejected;
            QVERIFY2(hang.find("no device can go on") != std::string::npos, context.constData());
            QVERIFY2(hang.find(" waits for ") != std::string::npos
                         || hang.find(" waits until device ") != std::string::npos,
                     context.constData());
        }
        // Both answers must have been tried often.
        QVERIFY2(accepted >= int(schedules / 5) && rejected >= int(schedules / 5),
                 qPrintable(QString("%1 accepted, %2 rejected").arg(accepted).arg(rejected)));
    }
};

PIPEWRIGHT_TEST(TestDeadlock, QCoreApplication)
#include "tst_deadlock.moc"
