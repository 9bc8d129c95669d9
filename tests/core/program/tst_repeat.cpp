// SPDX-License-Identifier: GPL-3.0-or-later
// A long schedule is compiled from a short one where it repeats itself: the Program must be the one that compiling
// block by block gives, and so must the diagnostics be.
#include "core/families/family.h"
#include "core/program/compile.h"
#include "core/program/repeat.h"
#include "core/schedule/ordergraph.h"
#include "core/schedule/steadystate.h"
#include "makers/costs.h"
#include "makers/schedules.h"
#include "sanitized.h"
#include "testmain.h"

#include <QTest>

#include <algorithm>
#include <map>
#include <random>

using namespace pipewright;
using namespace pipewright::test;

namespace {

constexpr int devices = 4, microbatches = 4'100;

enum CostKind { Bare, Kept, Sent, Uneven, Blocking, OneStream, Bus, costKinds };
const char* const costNames[] = {"times alone",   "with memory",        "with transfers",
                                 "uneven stages", "blocking transfers", "one stream of transfers",
                                 "a shared link"};

Costs costsOf(CostKind kind, const Schedule& schedule)
{
    if (kind == Bare)
        return evenCosts({}, schedule);
    Costs costs = unitCosts(schedule.stages());
    if (kind >= Sent)
        costs.link = {300, 1e9, kind == Bus ? "wire" : ""};
    if (kind == Uneven)
        for (std::size_t s = 0; s < costs.stages.size(); ++s)
            costs.stages[s].forward += static_cast<Nanoseconds>(s * 37 % 100) * 10;
    if (kind == Blocking)
        costs.communication = Communication::Blocking;
    if (kind == OneStream)
        costs.communication = Communication::OneStream;
    return costs;
}

/// A pin keeps compile() from looking for repetitions, and at time 0 changes nothing.
Program blockByBlock(Schedule schedule, const Costs& costs, const Dataflow& dataflow = {},
                     const CompileOptions& options = {})
{
    schedule.pins.push_back({schedule.order.front().front(), 0});
    return compile(schedule, costs, dataflow, options);
}

/// Made once: some search.
const Schedule& familyOf(const QString& name)
{
    static std::map<QString, Schedule> made;
    const auto [schedule, first] = made.try_emplace(name);
    if (first)
        for (const Family& family : families())
            if (family.name == name.toStdString())
                schedule->second = makeSchedule(family.name, possibleParameters(family, devices, microbatches));
    return schedule->second;
}

/// From so many of its repetitions; nothing when they do not repeat themselves.
std::optional<Program> fromRepetitions(const Schedule& schedule, const Costs& costs, const SteadyState& steady,
                                       int repetitions)
{
    const ShortenedSchedule shortened = shorten(schedule, steady, repetitions);
    const Program program = compile(shortened.schedule, costs);
    std::vector<Nanoseconds> end(program.tasks.size(), 0), start, free(shortened.schedule.order.size(), 0);
    std::vector<std::vector<Nanoseconds>> starts(shortened.schedule.order.size());
    for (TaskId t = 0; t < program.tasks.size(); ++t) { // without transfer times: as the compiler orders blocks
        const Task& task = program.tasks[t];
        const auto d = static_cast<std::size_t>(task.device);
        Nanoseconds at = program.afterData[t] == none ? 0 : end[program.afterData[t]];
        if (task.kind == TaskKind::Compute) {
            at = std::max(at, free[d]);
            starts[d].push_back(at);
            free[d] = end[t] = at + costs.duration(task.op, task.stage);
        } else {
            end[t] = at;
        }
    }
    for (const auto& ofDevice : starts)
        start.insert(start.end(), ofDevice.begin(), ofDevice.end());
    return repeatSteadyState(program, shortened, start);
}

} // namespace

class RepeatTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void everyFamilyIsAsCompiledBlockByBlock_data()
    {
        QTest::addColumn<QString>("family");
        QTest::addColumn<int>("kind");
        int number = 0;
        for (const Family& family : families()) {
            ++number;
            for (int kind = 0; kind < costKinds; ++kind) {
                if (addressSanitized && (number + kind) % 3 != 0)
                    continue;
                QTest::addRow("%s, %s", std::string(family.name).c_str(), costNames[kind])
                    << QString::fromStdString(std::string(family.name)) << kind;
            }
        }
    }

    void everyFamilyIsAsCompiledBlockByBlock()
    {
        QFETCH(QString, family);
        QFETCH(int, kind);
        const Schedule schedule = familyOf(family);
        const Costs costs = costsOf(static_cast<CostKind>(kind), schedule);
        QVERIFY(compile(schedule, costs) == blockByBlock(schedule, costs));
    }

    void longSchedulesAreFoundToRepeat_data()
    {
        QTest::addColumn<QString>("family");
        QTest::addColumn<int>("microbatchesOfARepetition");
        QTest::newRow("1f1b") << "1f1b" << 1;
        QTest::newRow("eager-1f1b") << "eager-1f1b" << 1;
        QTest::newRow("zb-h1") << "zb-h1" << 1;
        QTest::newRow("zb-h2") << "zb-h2" << 1;
        QTest::newRow("zb-v") << "zb-v" << 1;
        QTest::newRow("v-half") << "v-half" << 1;
        QTest::newRow("v-min") << "v-min" << 1;
        QTest::newRow("1f1b-v") << "1f1b-v" << 1;
        QTest::newRow("interleaved-1f1b") << "interleaved-1f1b" << devices;
        QTest::newRow("hanayo") << "hanayo" << devices;
        QTest::newRow("seq1f1b") << "seq1f1b" << 4;
    }

    void longSchedulesAreFoundToRepeat()
    {
        QFETCH(QString, family);
        QFETCH(int, microbatchesOfARepetition);
        const Schedule schedule = familyOf(family);
        const auto steady = findSteadyState(schedule);
        QVERIFY(steady.has_value());
        QCOMPARE(steady->microbatches, microbatchesOfARepetition);
        QCOMPARE_GT(steady->repetitions * steady->microbatches, microbatches * 9 / 10);
        const Costs costs = costsOf(Kept, schedule);
        const Program whole = blockByBlock(schedule, costs);
        for (const int together : {1, 3}) {
            const SteadyState state = takenTogether(*steady, together);
            const auto program = fromRepetitions(schedule, costs, state, 3 * state.inFlight + 6);
            QVERIFY(program.has_value());
            QVERIFY(*program == whole);
        }
        QVERIFY(!fromRepetitions(schedule, costs, *steady, 2)); // what is live at the end is older
    }

    /// Some microbatches take longer.
    void startsThatRepeatThemselvesAreFound()
    {
        const Schedule& schedule = familyOf("1f1b");
        const auto steady = findSteadyState(schedule);
        QVERIFY(steady.has_value());
        const ShortenedSchedule shortened = shorten(schedule, *steady, 60);
        Diagnostics diagnostics;
        const OrderGraph graph(shortened.schedule, {}, false, diagnostics);
        QVERIFY(diagnostics.empty());
        const auto found = [&](auto duration) {
            const OrderRun run = runOrder(
                graph, {}, [&](BlockIndex i) { return Nanoseconds{duration(graph.blocks[i])}; },
                [](BlockIndex, BlockIndex) { return Nanoseconds{0}; });
            return repetitionsOfStarts(graph, shortened.steady, run.start, true);
        };
        QCOMPARE(found([](const Block&) { return 100; }), 1);
        QCOMPARE(found([](const Block& b) { return b.microbatch % 2 == 0 ? 100 : 130; }), 2);
        QCOMPARE(found([](const Block& b) { return b.microbatch % 5 == 0 ? 100 : 130; }), 5);
        QCOMPARE(found([](const Block& b) { return 100 + b.microbatch; }), 0);
        const int amid = shortened.schedule.microbatches / 2; // it is made up for before the end
        QCOMPARE(found([amid](const Block& b) { return b.microbatch == amid ? 130 : 100; }), 1);
    }

    void overlappedPairsRepeatThemselves()
    {
        const Schedule schedule = familyOf("dualpipe-v");
        const auto steady = findSteadyState(schedule);
        QVERIFY(steady.has_value());
        const ShortenedSchedule shortened = shorten(schedule, *steady, 20);
        QCOMPARE(shortened.schedule.microbatches, microbatches - shortened.leftOut * steady->microbatches);
        QVERIFY(validate(shortened.schedule).empty());
        QVERIFY(!shortened.schedule.overlaps.empty());
        QCOMPARE_LT(shortened.schedule.overlaps.size(), schedule.overlaps.size());
    }

    void aChangedScheduleIsAsCompiledBlockByBlock_data()
    {
        QTest::addColumn<int>("seed");
        for (int seed = 0; seed < 12; ++seed)
            QTest::addRow("%d", seed) << seed;
    }

    /// Neighbours changed places somewhere, at the ends too.
    void aChangedScheduleIsAsCompiledBlockByBlock()
    {
        QFETCH(int, seed);
        std::mt19937 random(static_cast<unsigned>(seed));
        Schedule schedule = familyOf(seed % 2 == 0 ? "zb-h1" : "v-half");
        schedule.firstStageMaySplit = true;
        schedule.family = "custom";
        const Costs costs = costsOf(static_cast<CostKind>(seed % costKinds), schedule);
        auto& order = schedule.order[random() % schedule.order.size()];
        std::size_t at = seed % 3 == 0   ? random() % 40
                         : seed % 3 == 1 ? order.size() - 2 - random() % 40
                                         : random() % (order.size() - 1);
        const auto changes = [&] { return order[at].op == Op::W && order[at + 1].op != Op::W; };
        while (!changes())
            at = (at + 1) % (order.size() - 1);
        std::swap(order[at], order[at + 1]);
        QVERIFY(compile(schedule, costs) == blockByBlock(schedule, costs));
    }

    void otherConnectionsAreAsCompiledBlockByBlock_data()
    {
        QTest::addColumn<QString>("family");
        QTest::addRow("full backwards, which hand two gradients to one block") << "1f1b";
        QTest::addRow("split backwards") << "zb-h1";
    }

    void otherConnectionsAreAsCompiledBlockByBlock()
    {
        QFETCH(QString, family);
        const Schedule& schedule = familyOf(family);
        const Costs costs = costsOf(Sent, schedule);
        Dataflow dataflow;
        dataflow.skips = {{0, 2, 40}, {0, 3, 40}};
        QVERIFY(compile(schedule, costs, dataflow) == blockByBlock(schedule, costs, dataflow));
        dataflow.shared = {{0, 3, 500}};
        for (const bool commuted : {true, false})
            for (const int sends : {1, 2, 5})
                QVERIFY(compile(schedule, costs, dataflow, {commuted, sends})
                        == blockByBlock(schedule, costs, dataflow, {commuted, sends}));
    }

    void sendsThatNobodyWaitsForYetAreAsCompiledBlockByBlock_data()
    {
        QTest::addColumn<int>("sends");
        for (const int sends : {1, 2, 3, 4, 8, 40})
            QTest::addRow("%d under way", sends) << sends;
    }

    /// Until so many are, sent buffers become more from repetition to repetition; those of no bytes can be seen by
    /// their number alone. With one microbatch at a time the orders repeat themselves from their first block.
    void sendsThatNobodyWaitsForYetAreAsCompiledBlockByBlock()
    {
        QFETCH(int, sends);
        FamilyParameters parameters = sized(2, 6'000);
        parameters.memoryLimit = 0.5;
        parameters.forward = 1;
        parameters.inputGrad = parameters.weightGrad = 1'000'000;
        const Schedule schedule = makeSchedule("zb-auto", parameters);
        DeviceWorth worth;
        worth.forward = 1;
        worth.inputGrad = worth.weightGrad = 1'000'000;
        Costs costs = uniformCosts(worth, schedule.stages(), schedule.chunks());
        costs.link.latency = 103;
        CompileOptions options;
        options.outstandingSends = sends;
        QVERIFY(findSteadyState(schedule));
        Schedule unknown = schedule;
        unknown.shardedStates = true; // on no list, as a field that somebody adds
        QVERIFY(!findSteadyState(unknown));
        QVERIFY(compile(schedule, costs, {}, options) == blockByBlock(schedule, costs, {}, options));
    }

    void microbatchesOfTheirOwnTimeDoNotRepeatThemselves()
    {
        const Schedule schedule = familyOf("1f1b");
        Costs costs = costsOf(Kept, schedule);
        costs.microbatches.resize(microbatches);
        costs.microbatches[microbatches / 2].time = 3;
        QVERIFY(compile(schedule, costs) == blockByBlock(schedule, costs));
    }

    void versionsOfWeightsDoNotRepeatThemselves()
    {
        Schedule schedule = familyOf("1f1b");
        for (int stage = 0; stage < schedule.stages(); ++stage)
            schedule.order[stage].push_back({Op::U, stage, microbatches - 1});
        Costs costs = costsOf(Kept, schedule);
        for (StageCosts& stage : costs.stages)
            stage.update = 500;
        const Program program = compile(schedule, costs);
        QCOMPARE(program.weights.size(), program.tasks.size());
        QVERIFY(program == blockByBlock(schedule, costs));
    }

    void blocksThatTakeNoTimeDoNotRepeatThemselves()
    {
        const Schedule& schedule = familyOf("zb-v");
        Costs costs = costsOf(Kept, schedule);
        for (std::size_t stage = 0; stage < costs.stages.size(); stage += 2)
            costs.stages[stage].weightGrad = 0;
        QVERIFY(compile(schedule, costs) == blockByBlock(schedule, costs));
    }

    void whatIsMissingMayBe()
    {
        Schedule schedule = familyOf("zb-h1");
        const Costs costs = costsOf(Kept, schedule);
        auto& order = schedule.order[1];
        order.erase(order.begin() + static_cast<std::ptrdiff_t>(order.size() / 3));
        QVERIFY(compile(schedule, costs, {}, {.allowMissing = true})
                == blockByBlock(schedule, costs, {}, {.allowMissing = true}));
    }

    void faultsAreNamedWhereTheyAre_data()
    {
        QTest::addColumn<int>("device");
        QTest::addColumn<int>("fault");
        const char* const faults[] = {"missing",          "twice",         "elsewhere",
                                      "waits for itself", "unknown stage", "unknown microbatch"};
        for (int device = 0; device < devices; ++device)
            for (int fault = 0; fault < 6; ++fault)
                QTest::addRow("device %d, %s", device, faults[fault]) << device << fault;
    }

    void faultsAreNamedWhereTheyAre()
    {
        QFETCH(int, device);
        QFETCH(int, fault);
        Schedule schedule = familyOf("1f1b");
        const Costs costs = costsOf(Kept, schedule);
        auto& order = schedule.order[device];
        const auto middle = order.begin() + static_cast<std::ptrdiff_t>(order.size() / 2 - 3);
        switch (fault) {
        case 0: order.erase(middle); break;
        case 1: order.insert(middle, *middle); break;
        case 2: middle->stage = (device + 1) % devices; break;
        case 3: {
            const auto backward = std::find_if(middle, order.end(), [](const Block& b) { return b.op == Op::B; });
            const auto forward = std::find_if(order.begin(), order.end(), [&](const Block& b) {
                return b.op == Op::F && b.microbatch == backward->microbatch;
            });
            std::iter_swap(forward, backward);
            break;
        }
        case 4: middle->stage = devices; break;
        case 5: middle->microbatch = microbatches; break;
        }
        const auto diagnosticsOf = [](const auto& work) {
            try {
                work();
            } catch (const Error& error) {
                return error.diagnostics();
            }
            return Diagnostics{};
        };
        const Diagnostics named = diagnosticsOf([&] { (void)compile(schedule, costs); });
        const Diagnostics expected = diagnosticsOf([&] { (void)blockByBlock(schedule, costs); });
        QVERIFY(!named.empty());
        QVERIFY(named == expected);
    }

    void aFaultInEveryRepetitionIsNamedToo()
    {
        Schedule schedule = familyOf("1f1b");
        for (Block& block : schedule.order[2])
            if (block.op == Op::B)
                block.op = Op::I;
        QVERIFY_THROWS_EXCEPTION(Error, compile(schedule, costsOf(Kept, schedule)));
    }

    void overlapsThatDoNotStandTogetherAreNamed()
    {
        Schedule schedule = familyOf("dualpipe-v");
        const Costs costs = costsOf(Kept, schedule);
        schedule.overlaps[schedule.overlaps.size() / 2].second.microbatch -= 1;
        QVERIFY_THROWS_EXCEPTION(Error, compile(schedule, costs));
    }

    void shortSchedulesAreCompiledBlockByBlock()
    {
        FamilyParameters parameters = sized(devices, 64);
        QVERIFY(!findSteadyState(makeSchedule("1f1b", parameters)));
        QVERIFY(!findSteadyState(Schedule{}));
    }
};

PIPEWRIGHT_TEST(RepeatTest, NoApplication)
#include "tst_repeat.moc"
