// SPDX-License-Identifier: GPL-3.0-or-later
// The search for orders: bounds that nothing beats, known optima found and proved, and agreement with trying
// every order where there are few.
#include "core/predict/predict.h"
#include "core/program/compile.h"
#include "core/search/bounds.h"
#include "core/search/constraintsearch.h"
#include "core/search/pareto.h"
#include "core/search/partsproof.h"
#include "core/search/search.h"
#include "core/search/searchmodel.h"
#include "core/search/windowsearch.h"
#include "errorof.h"
#include "everyorder.h"
#include "makers/designs.h"
#include "testmain.h"

#include <QTest>

#include <algorithm>
#include <random>
#include <stop_token>

using namespace pipewright;
using namespace pipewright::test;

class SearchTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void theKnownOptimaAreFoundAndProved_data()
    {
        QTest::addColumn<QList<int>>("numbers"); // devices, microbatches, F, I, W, microbatches in memory
        QTest::addColumn<int>("span");
        // Optima that integer programming and constraint programming agree on, and lower bounds that are met.
        QTest::newRow("4 devices, 4 microbatches") << QList<int>{4, 4, 1, 1, 1, 4} << 15;
        QTest::newRow("equal times, 1x") << QList<int>{4, 8, 1, 1, 1, 4} << 27;
        QTest::newRow("equal times, no bubble") << QList<int>{4, 8, 1, 1, 1, 7} << 24;
        QTest::newRow("5/6/4, 1x") << QList<int>{4, 8, 5, 6, 4, 4} << 141;
        QTest::newRow("5/6/4, 1.75x") << QList<int>{4, 8, 5, 6, 4, 7} << 129;
        QTest::newRow("12 microbatches") << QList<int>{4, 12, 5, 6, 4, 4} << 201;
        QTest::newRow("8 devices, no bubble") << QList<int>{8, 16, 1, 1, 1, 15} << 48;
        QTest::newRow("8 devices, 10/10/9") << QList<int>{8, 16, 10, 10, 9, 15} << 478;
        QTest::newRow("8 devices, 24 microbatches") << QList<int>{8, 24, 5, 6, 4, 8} << 409;
    }

    void theKnownOptimaAreFoundAndProved()
    {
        QFETCH(QList<int>, numbers);
        QFETCH(int, span);
        const Design base = timedDesign("zb-h1", numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]);
        const SearchResult result = search(base, options(SearchObjective::Span, double(numbers[5]) / numbers[0], 40));
        QCOMPARE(result.value, span * 1'000'000LL);
        QCOMPARE(result.bound.value, result.value);
        QVERIFY(result.proved);
        Design found = base;
        found.schedule = result.schedule;
        const Metrics metrics = predict(found).metrics;
        QCOMPARE(metrics.span, result.value);
        for (const DeviceMetrics& device : metrics.devices)
            QVERIFY(device.peakActivations <= numbers[5]);
    }

    /// Before the search itself stand passes over all blocks; of millions, each takes a good part of a second.
    void aSearchThatIsToEndDoesNotLookAtEveryBlock()
    {
        const Design base = timedDesign("1f1b", 8, 8192, 1, 1, 1);
        int looks = 0, bounds = 0;
        const SearchModel model(base, {}, {}, Patience([&] { ++looks; }));
        QCOMPARE(looks, int((8 * 8192 + 2 * model.tasks.size()) >> 16)); // passes over forwards, and twice over all
        QVERIFY(!lowerBounds(model, SearchObjective::Span, Patience([&] { ++bounds; })).empty());
        QVERIFY(bounds >= 2);

        std::stop_source stop;
        SearchOptions wanted = options(SearchObjective::Span, 1, 1);
        wanted.stop = stop.get_token();
        stop.request_stop();
        const std::string error = errorOf([&] { search(base, wanted); });
        QVERIFY2(error.find("cancelled before its first schedule") != std::string::npos, error.c_str());
    }

    void underNoiseTheScheduleThatSuffersLeastIsReturned()
    {
        Design base = timedDesign("1f1b", 4, 8, 5, 6, 4);
        base.schedule = makeSchedule("zb-h1", sized(4, 8));
        SearchOptions wanted = options(SearchObjective::Makespan, 1.5, 4);
        const SearchResult plain = search(base, wanted);
        QCOMPARE(plain.noisy, StepSpread{});
        wanted.noise = SpreadOptions{.block = 0.2, .device = 0.1, .samples = 100};
        const auto p95Of = [&](const Schedule& schedule) {
            return spreadOfStep(compile(schedule, base.costs), base.costs, *wanted.noise).p95;
        };
        const SearchResult shortest = search(base, wanted);
        QCOMPARE(shortest.value, plain.value);
        QCOMPARE(shortest.noisy.p95, p95Of(shortest.schedule));
        wanted.by = RankBy::P95;
        const SearchResult calm = search(base, wanted);
        QCOMPARE(calm.noisy.p95, p95Of(calm.schedule));
        QVERIFY(calm.noisy.p95 <= shortest.noisy.p95);
        QVERIFY(calm.noisy.p95 <= p95Of(base.schedule));
        Design found = base;
        found.schedule = calm.schedule;
        QCOMPARE(predict(found).metrics.makespan, calm.value);
        QVERIFY(calm.value >= shortest.value && (calm.value == shortest.value || !calm.proved));
    }

    /// Controllable memory, appendix E: with k chunks of memory no V of n microbatches runs in less than 6n + 6p - 3k
    /// - 1.
    void theBoundOfTheVIsThePublishedOne()
    {
        for (const int p : {2, 4, 6, 9})
            for (int k = p; k <= 2 * p; ++k) {
                const int n = 4 * p;
                const Design base = timedDesign("v-zb", p, n, 2, 2, 2); // two chunks of one unit each
                const SearchModel model(base, {std::nullopt, k / (2.0 * p)});
                const Nanoseconds unit = 1'000'000;
                QCOMPARE(lowerBounds(model, SearchObjective::Span).front().value,
                         unit * (6 * n + std::max(0, 6 * p - 1 - 3 * k)));
            }
    }

    void noFamilyBeatsABound()
    {
        std::mt19937 random(7);
        const auto below = [&](int count) { return static_cast<int>(random() % static_cast<unsigned>(count)); };
        int compared = 0;
        for (const Family& family : families())
            for (int trial = 0; trial < 12; ++trial) {
                const int devices = 2 + below(5), microbatches = 1 + below(14);
                const FamilyParameters parameters = sized(devices, microbatches);
                if (hasErrors(family.check(parameters)))
                    continue;
                Design design;
                design.schedule = makeSchedule(family.name, parameters);
                const Schedule& schedule = design.schedule;
                if (family.updates || schedule.replicas() > 1 || schedule.sequencePieces > 1
                    || !schedule.overlaps.empty())
                    continue;
                design.costs = evenCosts({}, schedule);
                for (StageCosts& stage : design.costs.stages) {
                    stage.forward = below(50);
                    stage.inputGrad = below(50);
                    stage.weightGrad = below(50);
                    stage.backward = stage.inputGrad + stage.weightGrad;
                    stage.update = below(9);
                    stage.savedUntilInputGrad = below(7);
                    stage.savedUntilWeightGrad = below(7);
                    stage.savedFromInputGrad = below(4);
                    stage.sparedByBackward = below(4);
                    stage.workspaceForward = below(3);
                    stage.workspaceBackward = below(5);
                }
                if (trial % 2 == 0)
                    for (int m = 0; m < schedule.microbatches; ++m)
                        design.costs.microbatches.push_back({0.5 + 0.1 * below(10), 0.5 + 0.1 * below(10)});
                design.costs.link.latency = below(20);
                for (int d = 0; trial % 3 == 0 && d < schedule.devices(); ++d)
                    design.costs.hostGaps.push_back({{below(9), below(9), below(9), below(9), below(9), below(9)}, {}});
                const Metrics metrics = predict(design).metrics;
                // Under exactly the memory that it uses, per device …
                MemoryLimit limit;
                design.cluster.devices.resize(static_cast<std::size_t>(schedule.devices()));
                for (std::size_t d = 0; d < design.cluster.devices.size(); ++d)
                    design.cluster.devices[d].memory = std::max<Bytes>(1, metrics.devices[d].peakBytes);
                const SearchModel model(design, limit);
                QVERIFY(lowerBounds(model, SearchObjective::Span).front().value <= metrics.span);
                QVERIFY(lowerBounds(model, SearchObjective::Makespan).front().value <= metrics.makespan);
                // … it is possible, and the search says so.
                QVERIFY(whyImpossible(model, limit).empty());
                const auto lanes = model.lanesOf(schedule);
                QVERIFY(lanes && lanesAllowed(model, *lanes));
                LaneTimes times(model);
                QVERIFY(times.run(*lanes));
                QCOMPARE(times.value(*lanes, SearchObjective::Span), metrics.span);
                QCOMPARE(times.value(*lanes, SearchObjective::Makespan), metrics.makespan);
                ++compared;
            }
        QVERIFY(compared > 80);
    }

    void itAgreesWithTryingEveryOrder()
    {
        std::mt19937 random(11);
        int locked = 0, limited = 0;
        std::int64_t most = 0;
        for (int trial = 0; trial < 150; ++trial) {
            Design base = smallDesign(random);
            SearchOptions given = options(trial % 2 == 0 ? SearchObjective::Span : SearchObjective::Makespan, 1, 6);
            given.limit.factor = (1 + static_cast<int>(random() % 4)) * 0.5;
            given.seed = static_cast<std::uint64_t>(trial);
            if (trial % 3 == 0)
                for (const std::vector<Block>& lane : base.schedule.order)
                    for (const Block& block : lane)
                        if (random() % 3 == 0)
                            given.locked.push_back(block);
            if (trial % 5 == 0)
                base.schedule.pins.push_back({base.schedule.order[0][random() % base.schedule.order[0].size()], 7});
            const SearchModel model(base, given.limit, given.locked);
            const Nanoseconds best = EveryOrder(model, given.objective).best();
            if (best == SearchModel::noCapacity) {
                QVERIFY_THROWS_EXCEPTION(Error, search(base, given));
                continue;
            }
            const SearchResult result = search(base, given);
            QCOMPARE(result.value, best);
            QVERIFY(lowerBounds(model, given.objective).front().value <= best);
            QVERIFY(result.proved);
            QCOMPARE(result.bound.value, best);
            most = std::max(most, base.schedule.blocks());
            locked += !given.locked.empty();
            limited += !lanesAllowed(SearchModel(base, {std::nullopt, *given.limit.factor / 2}),
                                     *model.lanesOf(result.schedule));
        }
        QVERIFY(locked > 5);
        QVERIFY(limited > 5);
        QCOMPARE(most, 14);
    }

    void constraintProgrammingAgreesWithTryingEveryOrder()
    {
        std::mt19937 random(5);
        int compared = 0, proved = 0;
        for (int trial = 0; trial < 150; ++trial) {
            Design base = smallDesign(random);
            base.costs.microbatches.clear(); // it wants microbatches that are alike
            const SearchObjective objective = trial % 2 == 0 ? SearchObjective::Span : SearchObjective::Makespan;
            const SearchOptions given = options(objective, (1 + static_cast<int>(random() % 4)) * 0.5, 1);
            const SearchModel model(base, given.limit);
            const auto first = model.lanesOf(base.schedule);
            if (!first || !lanesAllowed(model, *first))
                continue;
            Incumbent incumbent(base, model, given, 0);
            const auto constraints = makeConstraintSearch(model, given, incumbent);
            if (!constraints)
                QSKIP("built without Gecode");
            ByDevice<Bytes> room = model.capacity;
            QVERIFY(incumbent.offer(*first, 0, "one after the other", room) != Offered::Refused);
            for (int slice = 0; slice < 1000 && constraints->resume([] { return false; }); ++slice) {
            }
            const Nanoseconds best = EveryOrder(model, objective).best();
            QCOMPARE(incumbent.best(), best);
            QVERIFY(incumbent.bound() <= best);
            proved += incumbent.proved();
            ++compared;
        }
        QVERIFY(compared > 80);
        QCOMPARE(proved, compared);
    }

    /// Of parts of two microbatches, so that there are several in what can be tried.
    void noOrderIsShorterThanItsParts()
    {
        std::mt19937 random(17);
        int compared = 0, met = 0;
        for (int trial = 0; trial < 120; ++trial) {
            Design base;
            do
                base = smallDesign(random);
            while (base.schedule.microbatches < 3);
            base.costs.microbatches.clear();
            if (trial % 3 == 0) // alike, but not of the size that the costs are of
                base.costs.microbatches.assign(static_cast<std::size_t>(base.schedule.microbatches), {0.5, 0.5});
            const SearchObjective objective = trial % 2 == 0 ? SearchObjective::Span : SearchObjective::Makespan;
            const SearchOptions given = options(objective, (1 + static_cast<int>(random() % 3)) * 0.5, 1);
            const SearchModel model(base, given.limit);
            const auto first = model.lanesOf(base.schedule);
            if (!first || !lanesAllowed(model, *first))
                continue;
            Incumbent incumbent(base, model, given, 0);
            ByDevice<Bytes> room = model.capacity;
            QVERIFY(incumbent.offer(*first, 0, "one after the other", room) != Offered::Refused);
            ProofByParts parts(base, model, given, incumbent, 2);
            while (parts.resume([] { return false; })) {
            }
            if (incumbent.bound() == 0)
                continue;
            const Nanoseconds best = EveryOrder(model, objective).best();
            QVERIFY(incumbent.bound() <= best);
            met += incumbent.bound() == best;
            ++compared;
        }
        if (compared == 0)
            QSKIP("built without Gecode");
        QVERIFY2(compared > 40 && met > 5, qPrintable(QString("%1, %2 met").arg(compared).arg(met)));
    }

    void partsProveMoreThanCountedBounds()
    {
        const Design base = timedDesign("zb-h1", 4, 16, 5, 6, 4);
        const SearchOptions given = options(SearchObjective::Span, 0.5, 1);
        const SearchModel model(base, given.limit);
        const SearchResult known = search(base, given);
        Incumbent incumbent(base, model, given, 0);
        ByDevice<Bytes> room = model.capacity;
        QVERIFY(incumbent.offer(*model.lanesOf(known.schedule), known.value, "known", room) == Offered::Taken);
        ProofByParts parts(base, model, given, incumbent, 7);
        while (parts.resume([] { return false; })) {
        }
        if (incumbent.bound() == 0)
            QSKIP("built without Gecode");
        QVERIFY2(incumbent.bound() <= known.value
                     && incumbent.bound() > lowerBounds(model, given.objective).front().value,
                 qPrintable(QString("%1, found %2, counted %3")
                                .arg(incumbent.bound())
                                .arg(known.value)
                                .arg(lowerBounds(model, given.objective).front().value)));
    }

    /// Above every counted bound, and with too many blocks to try all orders.
    void constraintProgrammingProvesWhatTheBoundsDoNot_data()
    {
        QTest::addColumn<QList<int>>("numbers"); // devices, microbatches, F, I, W, microbatches in memory
        QTest::addColumn<int>("span");
        QTest::newRow("3 in memory") << QList<int>{4, 8, 5, 6, 4, 3} << 163;
        QTest::newRow("equal times") << QList<int>{4, 8, 1, 1, 1, 3} << 31;
        QTest::newRow("2 in memory") << QList<int>{4, 8, 5, 6, 4, 2} << 215;
        QTest::newRow("144 blocks") << QList<int>{4, 12, 5, 6, 4, 3} << 236;
    }

    void constraintProgrammingProvesWhatTheBoundsDoNot()
    {
        QFETCH(QList<int>, numbers);
        QFETCH(int, span);
        const Design base = timedDesign("zb-h1", numbers[0], numbers[1], numbers[2], numbers[3], numbers[4]);
        const SearchOptions given = options(SearchObjective::Span, double(numbers[5]) / numbers[0], 400);
        const SearchModel model(base, given.limit);
        QVERIFY(lowerBounds(model, given.objective).front().value < span * 1'000'000LL);
        Incumbent unused(base, model, given, 0);
        if (!makeConstraintSearch(model, given, unused))
            QSKIP("built without Gecode");
        const SearchResult result = search(base, given);
        QCOMPARE(result.value, span * 1'000'000LL);
        QVERIFY(result.proved);
    }

    void windowsGetSmallDesignsToTheirBest()
    {
        std::mt19937 random(3);
        int compared = 0, reached = 0;
        for (int trial = 0; trial < 60; ++trial) {
            const Design base = smallDesign(random);
            const SearchObjective objective = trial % 2 == 0 ? SearchObjective::Span : SearchObjective::Makespan;
            std::vector<Block> locked;
            if (trial % 3 == 0)
                std::copy_if(base.schedule.order[0].begin(), base.schedule.order[0].end(), std::back_inserter(locked),
                             [&](const Block&) { return random() % 3 == 0; });
            const SearchModel model(base, {std::nullopt, (1 + static_cast<int>(random() % 4)) * 0.5}, locked);
            auto lanes = model.lanesOf(base.schedule);
            LaneTimes times(model);
            if (!lanes || !lanesAllowed(model, *lanes) || !times.run(*lanes))
                continue;
            const Nanoseconds before = times.value(*lanes, objective);
            std::mt19937_64 own(static_cast<std::uint64_t>(trial));
            const Nanoseconds value = WindowSearch(model, objective).improve(*lanes, 8'000, own, [] { return false; });
            QVERIFY(value <= before);
            QVERIFY(lanesAllowed(model, *lanes) && times.run(*lanes));
            QCOMPARE(times.value(*lanes, objective), value);
            const Nanoseconds best = EveryOrder(model, objective).best();
            QVERIFY(value >= best);
            reached += value == best, ++compared;
        }
        QVERIFY2(compared > 30 && reached * 10 >= compared * 8,
                 qPrintable(QString("%1 of %2").arg(reached).arg(compared)));
    }

    void lockedBlocksKeepTheirOrder()
    {
        const Design base = timedDesign("gpipe", 3, 5, 3, 4, 2);
        SearchOptions given = options(SearchObjective::Makespan, 5, 6);
        for (const Block& block : base.schedule.order[1])
            if (block.microbatch % 2 == 0)
                given.locked.push_back(block);
        const SearchResult result = search(base, given);
        const auto kept = [&](const Schedule& schedule) {
            std::vector<Block> blocks;
            for (const Block& block : schedule.order[1])
                if (block.microbatch % 2 == 0)
                    blocks.push_back(block);
            return blocks;
        };
        QVERIFY(kept(result.schedule) == kept(base.schedule));
        QVERIFY(result.value <= predict(base).metrics.makespan);
    }

    void oneThreadAndASeedGiveOneResult()
    {
        const Design base = timedDesign("zb-h1", 4, 9, 7, 5, 3, 400);
        const SearchOptions given = options(SearchObjective::Makespan, 1.25, 4);
        QVERIFY(search(base, given).schedule == search(base, given).schedule);
    }

    void aLimitInBytesHoldsForEverythingOnTheDevice()
    {
        Design base = timedDesign("1f1b", 3, 3, 2, 2, 2);
        for (StageCosts& stage : base.costs.stages) {
            stage.output = 300;
            stage.workspaceForward = 150;
            stage.parameters = 5000;
        }
        SearchOptions given = options(SearchObjective::Makespan, 1, 1);
        given.limit = {Bytes{8200}, std::nullopt};
        QVERIFY(predict(base).metrics.devices[0].peakBytes > 8200);
        const SearchResult result = search(base, given);
        Design found = base;
        found.schedule = result.schedule;
        for (const DeviceMetrics& device : predict(found).metrics.devices)
            QVERIFY(device.peakBytes <= 8200);
    }

    void impossibleLimitsAreExplained()
    {
        Design base = timedDesign("1f1b", 4, 8, 2, 2, 2);
        base.costs.stages[2].parameters = 5000;
        SearchOptions given = options(SearchObjective::Makespan, 1, 1);
        given.limit = {Bytes{5500}, std::nullopt};
        try {
            search(base, given);
            QFAIL("a limit below the weights was accepted");
        } catch (const Error& error) {
            QCOMPARE(error.diagnostics().size(), std::size_t{1}); // the device that is too full, and no other
            QCOMPARE(error.diagnostics().front().where, std::string("device 2"));
            QVERIFY(error.diagnostics().front().what.find("it needs at least") == 0);
        }
        QVERIFY_THROWS_EXCEPTION(Error, search(base, options(SearchObjective::Span, 0.1, 1)));
        const Design twoWays = timedDesign("chimera", 4, 8, 2, 2, 2);
        QVERIFY_THROWS_EXCEPTION(Error, search(twoWays, options(SearchObjective::Span, 1, 1)));
    }

    void locksThatKeepTooMuchAreNamed()
    {
        const Design base = timedDesign("gpipe", 2, 6, 2, 2, 2);        // every forward before every backward
        SearchOptions given = options(SearchObjective::Makespan, 1, 2); // two microbatches in memory
        const std::vector<Block>& lane = base.schedule.order[1];
        given.locked = {lane[0], lane[1], lane[3], lane[6], lane[7], lane[9]}; // F and B of 0, 1 and 3
        try {
            search(base, given);
            QFAIL("locks that keep three microbatches at one time were accepted");
        } catch (const Error& error) {
            QCOMPARE(error.diagnostics().size(), std::size_t{1});
            QCOMPARE(error.diagnostics().front().where, std::string("device 1"));
            QVERIFY(error.diagnostics().front().what.find("F1.0, F1.1, F1.3") != std::string::npos);
        }
        // Without the locks of any one of them it is possible.
        for (std::size_t without = 0; without < 3; ++without) {
            SearchOptions fewer = given;
            std::erase_if(fewer.locked,
                          [&](const Block& block) { return block.microbatch == given.locked[without].microbatch; });
            QCOMPARE(fewer.locked.size(), std::size_t{4});
            QVERIFY(search(base, fewer).value > 0);
        }
    }

    void moreMemoryNeverCostsTime()
    {
        const Design base = timedDesign("zb-h1", 4, 8, 5, 6, 4);
        const std::vector<ParetoPoint> front = searchFrontOf(base, options(SearchObjective::Span, 1, 1), 0.1, 2, 6);
        QCOMPARE(front.size(), std::size_t{6});
        QVERIFY(!front.front().result && !front.front().reason.empty());
        for (std::size_t i = 2; i < front.size(); ++i)
            QVERIFY(front[i].result && front[i].result->value <= front[i - 1].result->value);
        QVERIFY(front.back().onFront);
    }
};

PIPEWRIGHT_TEST(SearchTest, NoApplication)
#include "tst_search.moc"
