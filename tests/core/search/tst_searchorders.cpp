// SPDX-License-Identifier: GPL-3.0-or-later
// What the search finds and proves against all orders of small random designs, as the predictor sees them. Every run
// has new designs; a failure names the seed of its design: set PIPEWRIGHT_SEED to it to run that one alone.
#include "core/design/redesign.h"
#include "core/families/family.h"
#include "core/schedule/weightplan.h"
#include "core/search/bounds.h"
#include "core/search/constraintsearch.h"
#include "core/search/incumbent.h"
#include "core/search/modelled.h"
#include "core/search/offloadsearch.h"
#include "core/search/partsproof.h"
#include "errorof.h"
#include "makers/groups.h"
#include "predictedorders.h"
#include "sanitized.h"
#include "testmain.h"

#include <QTest>

#include <random>
#include <stop_token>

using namespace pipewright;
using namespace pipewright::test;

namespace {

/// Lanes as text: "F0.0 B0.0".
std::vector<std::vector<Block>> ordersOf(const std::vector<QString>& lanes)
{
    std::vector<std::vector<Block>> order;
    for (const QString& lane : lanes) {
        order.emplace_back();
        for (const QString& block : lane.split(' '))
            order.back().push_back(*parseBlock(block.toStdString()));
    }
    return order;
}

constexpr std::size_t mostOrders = 3'000;
constexpr int randomDesigns = sanitized ? 60 : 250;

/// The seed of the first design, and whether it is the only one.
std::pair<unsigned, bool> firstSeed()
{
    bool given = false;
    const int seed = qEnvironmentVariableIntValue("PIPEWRIGHT_SEED", &given);
    return {given ? static_cast<unsigned>(seed) : std::random_device()() & 0x7fff'ffff, given};
}

Nanoseconds valueOf(const Metrics& metrics, SearchObjective objective)
{
    return objective == SearchObjective::Span ? metrics.span : metrics.makespan;
}

/// The shortest order of all, and any.
struct Known {
    std::vector<PredictedOrder> orders; ///< that can run
    std::optional<Nanoseconds> best;    ///< of those that keep the limit
};

std::optional<Known> knownOf(SearchedDesign& random)
{
    random.make();
    Known known;
    const auto keep = [&](const PredictedOrder& order) { known.orders.push_back(order); };
    if (!eachPredictedOrder(random.design, random.options.locked, mostOrders, keep) || known.orders.empty())
        return std::nullopt;
    const auto any = [&] { return known.orders[static_cast<std::size_t>(random.below(std::ssize(known.orders)))]; };
    random.limitMemory(any().metrics);
    random.design.schedule = any().schedule; // the given order
    random.design.schedule.firstStageMaySplit = random.below(2) == 0;
    if (hasErrors(validate(random.design.schedule, random.design.dataflow.skips)))
        random.design.schedule.firstStageMaySplit = true; // it does
    for (PredictedOrder& order : known.orders) {
        if (random.options.limit.factor) {
            Design one = random.design; // its bytes are other ones by now
            one.schedule = order.schedule;
            order.metrics = predict(one).metrics;
        }
        const Nanoseconds value = valueOf(order.metrics, random.options.objective);
        if (keepsLimit(random.design, order.metrics, random.options.limit))
            known.best = std::min(known.best.value_or(value), value);
    }
    return known;
}

/// What constraint programming proves by itself, of the whole and by parts of two microbatches.
std::vector<SearchBound> boundsByConstraints(const SearchedDesign& random)
{
    constexpr int mostSlices = 40;
    std::vector<SearchBound> bounds;
    const SearchModel model(random.design, random.options.limit, random.options.locked);
    const auto prove = [&](const auto& make) {
        Incumbent incumbent(random.design, model, random.options, 0);
        incumbent.offerGiven();
        const auto proof = make(incumbent);
        for (int slice = 0; proof && slice < mostSlices && proof->resume([] { return false; }); ++slice) {
        }
        bounds.push_back({incumbent.bound(), 0, "exhausted", incumbent.exhausted()});
    };
    prove([&](Incumbent& incumbent) { return makeConstraintSearch(model, random.options, incumbent); });
    prove([&](Incumbent& incumbent) {
        return std::make_unique<ProofByParts>(random.design, model, random.options, incumbent, 2);
    });
    return bounds;
}

/// What is wrong with the search of this design; empty: nothing.
QString faultOf(SearchedDesign& random, const Known& known)
{
    const auto us = [](Nanoseconds value) { return QString::number(value); };
    const Metrics given = predict(random.design).metrics;
    SearchResult result;
    const std::string error = errorOf([&] { result = search(random.design, random.options); });
    if (!known.best || !error.empty())
        return known.best ? QString("nothing was found, and %1 ns is possible: %2")
                                .arg(us(*known.best), QString::fromStdString(error))
               : error.empty() ? QString("something was found, and no order fits")
                               : QString();
    Design found = random.design;
    found.schedule = result.schedule;
    const Metrics metrics = predict(found).metrics;
    if (valueOf(metrics, random.options.objective) != result.value)
        return QString("%1 ns, predicted %2").arg(us(result.value), us(valueOf(metrics, random.options.objective)));
    if (!keepsLimit(found, metrics, random.options.limit))
        return "what was found does not fit";
    if (keepsLimit(random.design, given, random.options.limit)
        && (result.value > valueOf(given, random.options.objective) || result.history.front().source != "as it was"))
        return QString("%1 ns, worse than the given order's %2")
            .arg(us(result.value), us(valueOf(given, random.options.objective)));
    std::vector<SearchBound> bounds = boundsByConstraints(random);
    bounds.insert(bounds.end(), result.bounds.begin(), result.bounds.end());
    bounds.push_back(result.bound);
    for (const SearchBound& bound : bounds)
        if (bound.value > *known.best)
            return QString("a bound of %1 ns, and %2 is possible: %3")
                .arg(us(bound.value), us(*known.best), QString::fromStdString(bound.why));
    if (!result.unproved.empty())
        return QString("unproved: %1").arg(QString::fromStdString(result.unproved));
    if (!result.proved || result.value != *known.best)
        return QString("%1 ns%2, and %3 is possible")
            .arg(us(result.value), result.proved ? ", proved" : ", not proved", us(*known.best));
    return {};
}

/// ZB-H1 on two devices that make everything again; in its own order it takes 61 us.
Design recomputingDesign()
{
    Design design;
    Schedule& schedule = design.schedule;
    schedule.family = "zb-h1";
    schedule.microbatches = 2;
    schedule.deviceOfStage = {0, 1};
    schedule.recompute = {Recompute::Block, Recompute::Block};
    schedule.backward = BackwardStyle::Split;
    schedule.order = ordersOf({"F0.0 F0.1 R0.0 I0.0 W0.0 R0.1 I0.1 W0.1", "F1.0 R1.0 I1.0 F1.1 R1.1 I1.1 W1.0 W1.1"});
    design.costs = uniformCosts({}, 2, 1);
    const std::array<std::array<Nanoseconds, 4>, 2> times{{{2, 8, 8, 8}, {7, 4, 2, 8}}}; // F, I, W, R in us
    for (std::size_t s = 0; s < times.size(); ++s) {
        StageCosts& stage = design.costs.stages[s];
        stage.forward = times[s][0] * 1'000, stage.inputGrad = times[s][1] * 1'000;
        stage.weightGrad = times[s][2] * 1'000, stage.recompute = times[s][3] * 1'000;
        stage.backward = stage.inputGrad + stage.weightGrad;
        stage.recomputedUntilWeightGrad = 1024;
    }
    design.cluster.devices.resize(2);
    return design;
}

SearchOptions quick()
{
    SearchOptions options;
    options.timeLimit = std::chrono::milliseconds(0);
    options.rounds = 2;
    return options;
}

} // namespace

class SearchOrdersTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void nothingIsProvedThatAnyOrderBeats()
    {
        auto [seed, one] = firstSeed();
        std::array<int, SearchedDesign::features> seen{};
        for (int made = 0; made < (one ? 1 : randomDesigns); ++seed) {
            SearchedDesign random(seed);
            const std::optional<Known> known = knownOf(random);
            if (!known && one)
                QSKIP("this seed gives no design");
            if (!known)
                continue;
            ++made;
            for (int f = 0; f < SearchedDesign::features; ++f)
                seen[static_cast<std::size_t>(f)] += random.has(static_cast<SearchedFeature>(f));
            const QString fault = faultOf(random, *known);
            QVERIFY2(fault.isEmpty(), qPrintable(QString("PIPEWRIGHT_SEED=%1: %2").arg(seed).arg(fault)));
        }
        for (int f = 0; !one && f < SearchedDesign::features; ++f)
            QVERIFY2(seen[static_cast<std::size_t>(f)] > 0, qPrintable(QString("feature %1 was not seen").arg(f)));
    }

    /// A gather holds the step's first block up, so that a pinned block waits less long behind it.
    void gathersBeforePinnedBlocksAreNotForgotten()
    {
        SearchedDesign random(720515827);
        const std::optional<Known> known = knownOf(random);
        QVERIFY(known && random.design.schedule.zero.sharesParameters() && random.design.schedule.pins.size() == 2);
        const QString fault = faultOf(random, *known);
        QVERIFY2(fault.isEmpty(), qPrintable(fault));
    }

    void aRecomputeMayRunAwayFromItsBackward()
    {
        const Design design = recomputingDesign();
        QCOMPARE(predict(design).metrics.makespan, 61'000);
        const SearchResult result = search(design, quick());
        QCOMPARE(result.value, 56'000);
        QVERIFY(result.proved);
        for (const SearchBound& bound : result.bounds)
            QVERIFY2(bound.value <= 56'000, bound.why.c_str());
    }

    void aBetterDesignThanTheSearchWouldFindIsReturnedAsItWas()
    {
        Design better = recomputingDesign();
        better.schedule.order =
            ordersOf({"F0.1 R0.1 F0.0 R0.0 I0.1 W0.1 I0.0 W0.0", "F1.1 R1.1 I1.1 F1.0 R1.0 I1.0 W1.0 W1.1"});
        QCOMPARE(predict(better).metrics.makespan, 56'000);
        SearchOptions stopped = quick();
        std::stop_source stop;
        stop.request_stop();
        stopped.stop = stop.get_token();
        QVERIFY(search(better, stopped).schedule == better.schedule); // before anything is looked for
        const SearchResult result = search(better, quick());
        QCOMPARE(result.value, 56'000);
        QCOMPARE(result.history.size(), std::size_t{1});
        QCOMPARE(result.history.front().source, std::string("as it was"));
        QVERIFY(result.schedule == better.schedule);
    }

    /// 1F1B-V with three devices, a real model and full recomputation: 8.7 % below the best order that has each
    /// recompute right before its backward.
    void recomputesOfAModelFillTheWaitForGradients()
    {
        NewDesign choice;
        const PresetLibrary presets;
        choice.workload = presets.workload("qwen2.5-7b");
        choice.cluster = presets.cluster("h200-node", 3);
        choice.family = "1f1b-v";
        choice.microbatches = 3;
        const Design base = designFromModel(choice);
        const Design design = withRecompute(base, std::vector<Recompute>(base.costs.stages.size(), Recompute::Block));
        const SearchResult result = search(design, quick());
        Design found = design;
        found.schedule = result.schedule;
        QCOMPARE(predict(found).metrics.makespan, result.value);
        QVERIFY2(result.value < predict(design).metrics.makespan * 92 / 100, qPrintable(QString::number(result.value)));
    }

    void withoutALimitNoReasonSpeaksOfMemory()
    {
        std::mt19937 random(3);
        for (int trial = 0; trial < 40; ++trial) {
            SearchedDesign made(random());
            made.make();
            for (const SearchBound& bound : lowerBounds(SearchModel(made.design, {}), made.options.objective))
                QVERIFY2(bound.why.find("memory") == std::string::npos, bound.why.c_str());
        }
    }

    /// What is wrong with a design is no deadlock of one of its orders.
    void onlyADeadlockRefusesAnOrder()
    {
        Design design = recomputingDesign();
        const Transfer first{{Op::F, 0, 0, 0}, 1}, second{{Op::F, 0, 1, 0}, 1};
        design.schedule.transferOrder = {
            {second, first}}; // deadlocks where F1.0 is before F1.1 and F0.1 waits for I1.0
        QVERIFY(search(design, quick()).value > 0);
        Transfer collective{{Op::F, 0, 0, 0}, 0, 0}, another{{Op::F, 0, 1, 0}, 0, 0};
        design.schedule.transferOrder = {{collective, another}};
        const std::string error = errorOf([&] { search(design, quick()); });
        QVERIFY2(error.find("both collectives") != std::string::npos, error.c_str());
    }

    /// Also a field that is not on the list, as one that somebody adds.
    void whatTheSearchDoesNotPlaceIsRefused()
    {
        Design design = recomputingDesign();
        design.schedule.shardedStates = true;
        std::string error = errorOf([&] { SearchModel(design, {}); });
        QVERIFY2(error.find("states what the search does not place") != std::string::npos, error.c_str());
        design = recomputingDesign();
        design.schedule.offload = {true};
        error = errorOf([&] { SearchModel(design, {}); });
        QVERIFY2(error.find("none of it left the device") != std::string::npos, error.c_str());
    }

    void whatTheSearchDoesNotCountIsNotProved()
    {
        Design design = recomputingDesign();
        QCOMPARE(whyNotProved(design), std::string());
        design.schedule.zero.level = 1; // of copies that are only counted: the stages' costs know
        QCOMPARE(whyNotProved(design), std::string());
        design.schedule.zero.level = 3;
        QCOMPARE(whyNotProved(design), std::string());
        design.schedule.shardedStates = true;
        QVERIFY(whyNotProved(design).find("the schedule states") != std::string::npos);
        design.schedule.shardedStates = false;
        design.cluster.devices[0] = groupDevice({1e9, 2e9});
        QVERIFY(whyNotProved(design).find("groups") != std::string::npos);
        const SearchResult result = search(design, quick());
        QVERIFY(result.value == result.bound.value && !result.proved && !result.unproved.empty());
        for (const Family& family : families()) {
            if (hasErrors(family.check(sized(4, 8))))
                continue;
            Design own;
            own.schedule = makeSchedule(family.name, sized(4, 8));
            own.costs = evenCosts({}, own.schedule);
            const bool searched = own.schedule.replicas() == 1 && own.schedule.sequencePieces == 1
                                  && own.schedule.overlaps.empty() && !hasUpdates(own.schedule);
            QVERIFY2(!searched || whyNotProved(own).empty(), family.name.data());
        }
    }

    /// Copies to the host only make blocks wait, so what is proved without them holds for every choice of stages too.
    void offloadIsNeverWorseThanGivenAndNeverBelowItsBound()
    {
        constexpr int designs = 15;
        constexpr std::size_t fewOrders = 200;
        auto [seed, one] = firstSeed();
        for (int made = 0; made < (one ? 1 : designs); ++seed) {
            SearchedDesign random(seed);
            random.make();
            random.design.schedule.transferOrder.clear(); // does not go with offload
            random.design.costs.hostLink = LinkCosts{random.below(3), random.below(2) == 0 ? 1e9 : 3e9};
            const int stages = random.design.schedule.stages();
            std::vector<PredictedOrder> orders;
            const auto choiceOf = [&](int number) {
                std::vector<bool> offload;
                for (int s = 0; s < stages; ++s)
                    offload.push_back((number >> s & 1) != 0);
                return withOffload(random.design, offload);
            };
            Nanoseconds least = SearchModel::noCapacity;
            bool few = true;
            for (int number = 0; few && number < 1 << stages; ++number)
                few = eachPredictedOrder(choiceOf(number), {}, fewOrders, [&](const PredictedOrder& order) {
                    least = std::min(least, order.metrics.makespan);
                    orders.push_back(order);
                });
            if (!few && one)
                QSKIP("this seed gives too many orders");
            if (!few || orders.empty())
                continue;
            ++made;
            const PredictedOrder& given = orders[static_cast<std::size_t>(random.below(std::ssize(orders)))];
            random.design.schedule = given.schedule;
            SearchOptions options = quick();
            Bytes most = 0;
            for (const DeviceMetrics& device : given.metrics.devices)
                most = std::max(most, device.peakBytes);
            options.limit.bytes = std::max<Bytes>(1, most);
            OffloadSearchResult found;
            const std::string error = errorOf([&] { found = searchWithOffload(random.design, options); });
            QVERIFY2(error.empty(),
                     qPrintable(QString("PIPEWRIGHT_SEED=%1: %2").arg(seed).arg(QString::fromStdString(error))));
            const QString told = QString("PIPEWRIGHT_SEED=%1: %2 ns, given %3, least %4, bound %5")
                                     .arg(seed)
                                     .arg(found.value)
                                     .arg(given.metrics.makespan)
                                     .arg(least)
                                     .arg(found.bound);
            const Metrics metrics = predict(found.design).metrics;
            QVERIFY2(metrics.makespan == found.value && keepsLimit(found.design, metrics, options.limit),
                     qPrintable(told));
            QVERIFY2(found.value <= given.metrics.makespan && found.value >= least && found.bound <= least,
                     qPrintable(told));
        }
    }
};

PIPEWRIGHT_TEST(SearchOrdersTest, NoApplication)
#include "tst_searchorders.moc"
