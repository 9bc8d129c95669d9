// SPDX-License-Identifier: GPL-3.0-or-later
// The search with two threads, small enough for the thread sanitizer; what it finds is tested in tst_search.
#include "core/design/designbuilder.h"
#include "core/predict/predict.h"
#include "core/search/search.h"
#include "makers/designs.h"
#include "testmain.h"

#include <QTest>

using namespace pipewright;

namespace {

SearchOptions twoThreads(double factor, int rounds)
{
    SearchOptions options;
    options.objective = SearchObjective::Span;
    options.limit.factor = factor;
    options.timeLimit = std::chrono::milliseconds(0);
    options.rounds = rounds;
    options.threads = 2;
    return options;
}

} // namespace

class SearchThreadsTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    /// A round of each kind in both threads: the rules, both local searches, every order and constraint programming.
    void bothThreadsShareTheBestOrderAndTheProof()
    {
        const Design base = test::timedDesign("zb-h1", 2, 4, 5, 6, 4);
        SearchOptions given = twoThreads(1, 60);
        const SearchResult result = search(base, given);
        QVERIFY(result.proved);
        given.threads = 1;
        QCOMPARE(search(base, given).value, result.value);
    }

    void theResultIsConfirmedByThePredictor()
    {
        const Design base = test::timedDesign("zb-h1", 4, 8, 5, 6, 4);
        const SearchResult result = search(base, twoThreads(0.75, 1)); // no counted bound is met
        Design found = base;
        found.schedule = result.schedule;
        QCOMPARE(predict(found).metrics.span, result.value);
        QVERIFY(lanesAllowed(SearchModel(base, {std::nullopt, 0.75}),
                             *SearchModel(base, {std::nullopt, 0.75}).lanesOf(found.schedule)));
        for (std::size_t i = 1; i < result.history.size(); ++i)
            QVERIFY(result.history[i].value < result.history[i - 1].value);
    }

    /// Asked to stop from outside while both work without an end of their own.
    void bothEndWhenOneIsToldTo()
    {
        const Design base = test::timedDesign("zb-h1", 6, 12, 5, 6, 4);
        std::stop_source stop;
        SearchOptions given = twoThreads(0.5, 0);
        given.stop = stop.get_token();
        given.progress = [&](const SearchProgress& now) {
            if (now.best > 0)
                stop.request_stop();
        };
        QVERIFY(search(base, given).cancelled);
    }
};

PIPEWRIGHT_TEST(SearchThreadsTest, NoApplication)
#include "tst_searchthreads.moc"
