// SPDX-License-Identifier: GPL-3.0-or-later
// Searches in large schedules and under little memory: a short schedule with its middle repeated, and windows that are
// put in every order; both notice a cancel.
#include "core/design/designbuilder.h"
#include "core/search/periodic.h"
#include "core/search/search.h"
#include "core/search/worker.h"
#include "makers/designs.h"
#include "testmain.h"

#include <QTest>

#include <algorithm>

using namespace pipewright;

namespace {

} // namespace

class SearchRepetitionTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void fewIsFarLessAndDividesTheRest()
    {
        QCOMPARE(fewMicrobatches(20, 4), 0); // no gain
        for (const int microbatches : {24, 47, 64, 255, 1024}) {
            const int few = fewMicrobatches(microbatches, 4);
            QVERIFY(few >= 12 && few < 24 && few < microbatches);
            QCOMPARE((microbatches - few) % 12, 0);
        }
    }

    void repeatedSchedulesKeepMemoryAndPace_data()
    {
        QTest::addColumn<QString>("family");
        QTest::newRow("linear") << "zb-h1";
        QTest::newRow("full backward") << "1f1b";
        QTest::newRow("v") << "v-zb";
    }

    /// A published order of few, repeated, is as the same family of many: a device's work more per microbatch.
    void repeatedSchedulesKeepMemoryAndPace()
    {
        QFETCH(QString, family);
        const int few = 16, many = 40;
        const Design base = test::timedDesign(family.toStdString(), 4, many, 5, 6, 4, {}),
                     small = test::timedDesign(family.toStdString(), 4, few, 5, 6, 4, {});
        const SearchModel model(base, {std::nullopt, 3.0}), smallModel(small, {std::nullopt, 3.0});
        const Lanes lanes = *smallModel.lanesOf(small.schedule);
        LaneTimes smallTimes(smallModel), times(model);
        QVERIFY(smallTimes.run(lanes));
        const Nanoseconds span = smallTimes.value(lanes, SearchObjective::Span), work = 15'000'000LL * (many - few);
        int made = 0;
        for (int at = 4; at < 12; ++at) {
            const auto longer = repeated(smallModel, lanes, smallTimes.starts(), model, span * at / 16, 1);
            if (!longer)
                continue;
            QVERIFY(lanesAllowed(model, *longer));
            QVERIFY(times.run(*longer)); // complete, and nothing waits for itself
            for (std::size_t d = 0; d < lanes.size(); ++d)
                QCOMPARE(lanePeak(model, (*longer)[d]), lanePeak(smallModel, lanes[d]));
            made += times.value(*longer, SearchObjective::Span) == span + work;
        }
        QVERIFY(made > 0);
        QVERIFY(!repeated(smallModel, lanes, smallTimes.starts(), model, span * 2, 1));
        QVERIFY(!repeated(smallModel, lanes, smallTimes.starts(), model, span / 2, 5)); // 24 are not so many fives
    }

    void scarceMemoryAndManyMicrobatches()
    {
        SearchOptions given;
        given.objective = SearchObjective::Span;
        given.limit.factor = 0.75;
        given.timeLimit = std::chrono::milliseconds(0);
        given.rounds = 4;
        const Design base = test::timedDesign("zb-h1", 8, 128, 5, 6, 4, {});
        const SearchResult result = search(base, given);
        QVERIFY(std::any_of(result.history.begin(), result.history.end(),
                            [](const SearchPoint& p) { return p.source == "repetition"; }));
        Design found = base;
        found.schedule = result.schedule;
        QVERIFY(lanesAllowed(SearchModel(base, given.limit), *SearchModel(base, given.limit).lanesOf(found.schedule)));
    }

    /// Where memory is scarce, moving single blocks gets stuck.
    void windowsFindWhatSingleMovesDoNot()
    {
        const Design base = test::timedDesign("zb-h1", 8, 16, 5, 6, 4, {});
        const SearchModel model(base, {std::nullopt, 0.75});
        PolicyRunner rules(model);
        Lanes lanes = *rules.run(rules.initial(1, 0));
        std::mt19937_64 random(1);
        LaneSearch single(model, SearchObjective::Span);
        const Nanoseconds stuck = single.improve(lanes, 4'000, random, [] { return false; });
        QVERIFY(WindowSearch(model, SearchObjective::Span).improve(lanes, 60'000, random, [] { return false; })
                < stuck);
        QVERIFY(lanesAllowed(model, lanes));
    }

    /// With millions of blocks the tables alone take seconds to make.
    void aStopIsHeededBeforeAnyTableIsMade()
    {
        const Design base = test::timedDesign("zb-h1", 4, 16, 5, 6, 4, {});
        const SearchModel model(base, {});
        const SearchOptions options;
        Incumbent incumbent(base, model, options, 0);
        incumbent.offerGiven();
        SearchWorker worker(base, model, options, incumbent, 0);
        worker.run([] { return true; });
        QCOMPARE(incumbent.history().size(), std::size_t{1}); // the given order, which is predicted always
        QCOMPARE(worker.work(), std::int64_t{0});
    }

    /// A cancel is noticed within so much work, counted in tasks: in the largest size that the search promises, a few
    /// milliseconds.
    void aCancelIsNoticedSoon()
    {
        const Design base = test::timedDesign("zb-h1", 32, 256, 5, 6, 4, {});
        SearchOptions given;
        given.objective = SearchObjective::Span;
        given.limit.factor = 1;
        const SearchModel model(base, given.limit);
        const auto tasks = static_cast<std::int64_t>(model.tasks.size());
        std::int64_t last = 0, longest = 0;
        const auto asked = [&](std::int64_t work) {
            longest = std::max(longest, work - last);
            return last = work;
        };
        Incumbent incumbent(base, model, given, 0);
        SearchWorker worker(base, model, given, incumbent, 0);
        worker.run([&] { return asked(worker.work()) > 6 * tasks; });
        QVERIFY(last > 6 * tasks);
        std::mt19937_64 random(1);
        Lanes lanes = incumbent.lanes();
        last = 0;
        LaneSearch single(model, given.objective);
        single.improve(lanes, 1'000, random, [&] { return asked(single.work()) > 6 * tasks; });
        QVERIFY(last > 6 * tasks);
        last = 0;
        WindowSearch windows(model, given.objective);
        windows.improve(lanes, 1'000'000, random, [&] { return asked(windows.work()) > 6 * tasks; });
        QVERIFY(last > 6 * tasks);
        QVERIFY2(longest <= tasksBetweenStops + 3 * tasks, qPrintable(QString::number(longest)));
        // The one family that tries thousands of orders asks too.
        FamilyParameters adaptive = test::sized(8, 64);
        adaptive.forward = 5;
        adaptive.inputGrad = 6;
        adaptive.weightGrad = 4;
        int questions = 0;
        adaptive.stop = [&] { return ++questions > 3; };
        QVERIFY(makeSchedule("v-auto", adaptive).blocks() == 3 * 16 * 64);
        QCOMPARE(questions, 4); // between the forms
    }
};

PIPEWRIGHT_TEST(SearchRepetitionTest, NoApplication)
#include "tst_searchrepetition.moc"
