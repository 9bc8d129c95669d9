// SPDX-License-Identifier: GPL-3.0-or-later
// Parts of overlapped pairs on two threads of a device: in order, at the same time, and as long as predicted.
#include "executor/runtime/partedpairs.h"

#include "core/predict/predict.h"
#include "core/program/compile.h"
#include "executor/runtime/timedwork.h"
#include "makers/pairdesigns.h"
#include "testmain.h"

#include <QTest>

#include <atomic>
#include <mutex>
#include <stdexcept>
#include <thread>

using namespace pipewright;

namespace {

struct Pairs {
    Design design = test::partedDesign();
    Program program = compile(design.schedule, design.costs, design.dataflow);
    std::map<TaskId, PairTimes::Plan> plans = partedPairs(program, design.costs);
};

} // namespace

class PartedPairsTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void everyPairHasThePlanThatIsPredicted()
    {
        const Pairs pairs;
        const std::vector<Nanoseconds> predicted = taskDurations(pairs.program, pairs.design.costs);
        QCOMPARE(pairs.plans.size(), pairs.program.overlaps.size());
        for (const Program::Overlap& pair : pairs.program.overlaps)
            QCOMPARE(pairs.plans.at(pair.first).length, predicted[pair.first]);
    }

    void partsRunInTheOrderOfTheirStreamsAndBehindWhatTheyAwait()
    {
        const Pairs pairs;
        for (const auto& [task, plan] : pairs.plans) {
            struct Mark {
                std::size_t block, part;
                bool begins;
            };
            std::vector<Mark> marks;
            std::mutex mutex;
            std::set<std::thread::id> threads;
            runParts(plan, [&](std::size_t block, std::size_t part) {
                const auto mark = [&](bool begins) {
                    const std::lock_guard lock(mutex);
                    marks.push_back({block, part, begins});
                    threads.insert(std::this_thread::get_id());
                };
                mark(true);
                std::this_thread::yield();
                mark(false);
            });
            QCOMPARE(marks.size(), 2 * (plan.parts[0].size() + plan.parts[1].size()));
            QCOMPARE(threads.size(), std::size_t{2});
            const auto placeOf = [&](std::size_t block, std::size_t part, bool begins) {
                return std::find_if(
                           marks.begin(), marks.end(),
                           [&](const Mark& m) { return m.block == block && m.part == part && m.begins == begins; })
                       - marks.begin();
            };
            // On each stream in the order of issue, one at a time.
            std::array<std::size_t, 2> next{};
            std::array<std::ptrdiff_t, 2> ended{-1, -1};
            for (const bool second : plan.order) {
                const std::size_t part = next[second]++;
                const auto stream = static_cast<std::size_t>(plan.parts[second][part].stream);
                QVERIFY(placeOf(second, part, true) > ended[stream]);
                ended[stream] = placeOf(second, part, false);
                for (std::size_t before = 0; before < part; ++before)
                    if (plan.parts[second][before].awaited)
                        QVERIFY(placeOf(second, before, false) < placeOf(second, part, true));
            }
        }
    }

    /// Each waits for the other to have begun: one after the other they would never end.
    void theTwoStreamsRunAtTheSameTime()
    {
        PairTimes::Plan plan;
        plan.parts = {std::vector<BlockPart>{{"compute", 1, PartStream::Compute, true}},
                      std::vector<BlockPart>{{"send", 1, PartStream::Communication, true}}};
        plan.order = {false, true};
        std::atomic<int> begun{0};
        runParts(plan, [&](std::size_t, std::size_t) {
            ++begun;
            while (begun != 2)
                std::this_thread::yield();
        });
        QCOMPARE(begun.load(), 2);
    }

    void aPartThatFailsEndsThePair()
    {
        const Pairs pairs;
        const PairTimes::Plan& plan = pairs.plans.begin()->second;
        int done = 0;
        QVERIFY_THROWS_EXCEPTION(std::runtime_error, runParts(plan, [&](std::size_t block, std::size_t) {
                                     if (block == 0)
                                         throw std::runtime_error("a fault");
                                     ++done;
                                 }));
        QVERIFY(done < static_cast<int>(plan.parts[1].size()) + 1);
    }

    void theSecondOfAPairEndsWithTheFirst()
    {
        const Pairs pairs;
        TimedWork work(workTimes(pairs.program, pairs.design.costs), TimedWork::Pace::Sleep);
        work.runOnTwoStreams(pairs.program, pairs.plans);
        for (const Program::Overlap& pair : pairs.program.overlaps) {
            QVERIFY(work.endsWithFirst(pair.second));
            QVERIFY(!work.endsWithFirst(pair.first));
        }
    }
};

PIPEWRIGHT_TEST(PartedPairsTest, NoApplication)
#include "tst_partedpairs.moc"
