// SPDX-License-Identifier: GPL-3.0-or-later
// What is suggested must be true, legal, repeatable, and there when an improvement is known to exist.
#include "core/families/family.h"
#include "core/predict/suggestions.h"
#include "core/schedule/edits.h"
#include "makers/designs.h"
#include "sanitized.h"
#include "testmain.h"

#include <QTest>

using namespace pipewright;
using namespace pipewright::test;

namespace {

Design unitFamily(const char* family, int devices = 4, int microbatches = 8)
{
    return unitDesign(familySchedule(family, devices, microbatches));
}

Bytes peakOf(const Prediction& prediction)
{
    Bytes peak = 0;
    for (const DeviceMetrics& device : prediction.metrics.devices)
        peak = std::max(peak, device.peakBytes);
    return peak;
}

/// W0.0 runs on device 0 when device 1 could already have had F0.1: one move repairs it.
Design oneBadMove()
{
    return unitDesign(
        schedule(2, {0, 1}, {"F0.0 F0.1 I0.0 W0.0 I0.1 W0.1", "F1.0 I1.0 W1.0 F1.1 I1.1 W1.1"}, BackwardStyle::Split));
}

} // namespace

class SuggestionsTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void everySuggestionIsWorthWhatItSays()
    {
        for (const char* family : {"1f1b", "zb-h1", "gpipe", "interleaved-1f1b"}) {
            const Design design = unitFamily(family);
            const Prediction base = predict(design);
            for (const char* name : {"F0.0", "F2.1", "F3.7"}) {
                for (const Suggestion& s : suggestEdits(design, block(name))) {
                    Design edited = design;
                    edited.schedule = s.schedule;
                    const Prediction after = predict(edited);
                    QCOMPARE(s.makespan, after.metrics.makespan - base.metrics.makespan);
                    QCOMPARE(s.peakBytes, peakOf(after) - peakOf(base));
                    QVERIFY(s.makespan < 0 || s.peakBytes < 0 || s.peakActivations < 0);
                    QVERIFY(!s.moves.empty());
                }
            }
        }
    }

    void parametersThatAreFreedAfterVisitsCanBeHeld()
    {
        Design design = unitFamily("interleaved-1f1b");
        design.schedule.zero = {.level = 3, .reshard = {false, {4}}, .prefetch = 0};
        for (StageCosts& stage : design.costs.stages) {
            stage.gather = 4 * stage.forward;
            stage.gatheredParameters = 1000;
        }
        const Prediction base = predict(design);
        const auto holding = [&]() -> std::optional<Suggestion> {
            for (const Suggestion& s : suggestEdits(design, block("F4.1"), {.most = 100}))
                if (s.moves.empty())
                    return s;
            return std::nullopt;
        };
        const std::optional<Suggestion> held = holding();
        QVERIFY(held && held->makespan < 0);
        for (int stage = 0; stage < design.schedule.stages(); ++stage)
            QVERIFY(!held->schedule.zero.reshard.of(stage));
        Design edited = design;
        edited.schedule = held->schedule;
        const Prediction after = predict(edited);
        QCOMPARE(held->makespan, after.metrics.makespan - base.metrics.makespan);
        QCOMPARE(held->peakBytes, peakOf(after) - peakOf(base));
        design.schedule.zero.reshard = {};
        QVERIFY(!holding());                       // they are
        design.schedule.zero.reshard = {true, {}}; // other devices would gather as before
        const std::optional<Suggestion> all = holding();
        QVERIFY(all && all->makespan < 0 && !all->schedule.zero.reshard.any());
    }

    void theMovesLeadToTheScheduleTheyComeWith()
    {
        const Design design = oneBadMove();
        const auto suggestions = suggestEdits(design, block("F1.1"));
        QVERIFY(!suggestions.empty());
        for (const Suggestion& s : suggestions) {
            Schedule step = design.schedule;
            for (const BlockMove& move : s.moves) {
                const Position at = find(step, move.neighbour);
                QCOMPARE(at.device, move.device);
                EditResult edit = moveBlock(step, move.block, move.before ? at.index : at.index + 1);
                QVERIFY(edit.legal());
                step = std::move(edit.schedule);
            }
            QVERIFY(step == s.schedule);
        }
    }

    void aWeightGradientInTheWayIsMovedOutOfIt()
    {
        const Design design = oneBadMove();
        const auto suggestions = suggestEdits(design, block("F1.1"));
        QVERIFY(!suggestions.empty());
        QVERIFY(suggestions.front().makespan < 0);
        const BlockMove& first = suggestions.front().moves.front();
        QVERIFY2(first.block == block("W1.0") || first.block == block("F1.1"), toString(first.block).c_str());
        QCOMPARE(first.device, 1);
    }

    void aSpoiltScheduleIsRepaired()
    {
        Design design = unitFamily("zb-h1");
        const Nanoseconds good = predict(design).metrics.makespan;
        const int last = static_cast<int>(design.schedule.order[1].size());
        const EditResult spoilt =
            moveBlock(design.schedule, block("I1.2"), find(design.schedule, block("I1.2")).index + 4);
        QVERIFY(spoilt.legal() && last > 0);
        design.schedule = spoilt.schedule;
        const Nanoseconds bad = predict(design).metrics.makespan;
        QVERIFY(bad > good);
        const auto suggestions = suggestEdits(design, block("I1.2"));
        QVERIFY(!suggestions.empty());
        QVERIFY(bad + suggestions.front().makespan <= good);
    }

    void memoryIsSavedWhereTheStepDoesNotSuffer()
    {
        // On one device the second forward can wait for the first backward, and nothing takes longer.
        Design design;
        design.schedule = schedule(2, {0}, {"F0.0 F0.1 B0.0 B0.1"});
        design.costs = unitCosts(1);
        const auto suggestions = suggestEdits(design, block("F0.1"));
        QVERIFY(!suggestions.empty());
        QVERIFY(std::any_of(suggestions.begin(), suggestions.end(), [](const Suggestion& s) {
            return s.makespan == 0 && s.peakBytes < 0 && s.peakActivations < 0;
        }));
    }

    void theBestComesFirstAndNoMoreThanAskedFor()
    {
        const Design design = unitFamily("1f1b", 4, 12);
        SuggestionLimits limits;
        limits.most = 2;
        const auto suggestions = suggestEdits(design, block("B2.3"), limits);
        QVERIFY(suggestions.size() <= 2);
        for (const Suggestion& s : suggestions)
            QVERIFY(s.makespan >= suggestions.front().makespan);
    }

    void nothingIsSuggestedThatOverflowsADevice()
    {
        Design design = unitFamily("1f1b", 4, 8);
        const Prediction base = predict(design);
        for (const DeviceMetrics& device : base.metrics.devices)
            design.cluster.devices.push_back({.name = "small", .memory = device.peakBytes});
        for (const Suggestion& s : suggestEdits(design, block("F1.3"))) {
            Design edited = design;
            edited.schedule = s.schedule;
            const Prediction after = predict(edited);
            for (std::size_t d = 0; d < after.metrics.devices.size(); ++d)
                QVERIFY(after.metrics.devices[d].peakBytes <= design.cluster.devices[d].memory);
        }
    }

    void microbatchesMovedAlikeToTheSameEndAreOneSuggestion()
    {
        const Design design = presetDesign("gpt-14.6b");
        bool several = false;
        for (int stage = 0; stage < 4; ++stage)
            for (const Op op : {Op::I, Op::F})
                for (const int microbatch : {0, 4, 7}) {
                    if (sanitized && microbatch != 4)
                        continue;
                    const std::vector<Suggestion> found = suggestEdits(design, {op, stage, microbatch, 0});
                    several = several || found.size() > 1;
                    for (std::size_t i = 0; i < found.size(); ++i)
                        for (std::size_t k = i + 1; k < found.size(); ++k) {
                            BlockMove first = found[i].moves.front(), second = found[k].moves.front();
                            first.block.microbatch = second.block.microbatch = 0;
                            QVERIFY2(!(first == second) || found[i].moves.size() > 1 || found[k].moves.size() > 1
                                         || found[i].makespan != found[k].makespan
                                         || found[i].peakBytes != found[k].peakBytes,
                                     (toString(found[i].moves.front().block) + " and "
                                      + toString(found[k].moves.front().block) + " behind or before "
                                      + toString(first.neighbour))
                                         .c_str());
                        }
                }
        QVERIFY(several);
    }

    void theSameQuestionHasTheSameAnswer()
    {
        const Design design = unitFamily("1f1b");
        const auto a = suggestEdits(design, block("F1.3")), b = suggestEdits(design, block("F1.3"));
        QCOMPARE(a.size(), b.size());
        for (std::size_t i = 0; i < a.size(); ++i)
            QVERIFY(a[i].schedule == b[i].schedule && a[i].moves == b[i].moves);
    }

    void cancellingEndsItAtOnceAndEmpty()
    {
        int asked = 0;
        const auto suggestions = suggestEdits(unitFamily("1f1b"), block("F1.3"), {}, [&asked] { return ++asked > 5; });
        QVERIFY(suggestions.empty());
        QCOMPARE(asked, 6);
    }

    void workIsBoundedByThePredictionsAllowed()
    {
        int asked = 0;
        SuggestionLimits limits;
        limits.work = 1;
        suggestEdits(unitFamily("1f1b"), block("F1.3"), limits, [&asked] { return ++asked > 10'000; });
        QVERIFY2(asked <= 40, std::to_string(asked).c_str());
    }

    void aScheduleThatCannotRunOrABlockInTheTrayIsNoError()
    {
        Design stuck = oneBadMove();
        std::swap(stuck.schedule.order[0][0], stuck.schedule.order[0][2]);
        QVERIFY(suggestEdits(stuck, block("F1.1")).empty());
        Design part = oneBadMove();
        part.schedule.order[1].pop_back();
        suggestEdits(part, block("W1.1"));
        Design empty = oneBadMove();
        for (auto& lane : empty.schedule.order)
            lane.clear();
        QVERIFY(suggestEdits(empty, block("F0.0")).empty());
    }
};

PIPEWRIGHT_TEST(SuggestionsTest, NoApplication)
#include "tst_suggestions.moc"
