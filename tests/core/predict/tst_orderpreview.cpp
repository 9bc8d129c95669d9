// SPDX-License-Identifier: GPL-3.0-or-later
// The preview of another order against what compiling that order gives.
#include "core/families/family.h"
#include "core/predict/orderpreview.h"
#include "core/schedule/edits.h"
#include "makers/designs.h"
#include "testmain.h"

#include <QTest>

#include <map>
#include <numeric>
#include <random>

using namespace pipewright;

namespace {

Design designOf(const char* family, int devices, int microbatches, bool uneven)
{
    Design design = test::unroundDesign(family, devices, microbatches);
    for (std::size_t s = 0; s < design.costs.stages.size(); ++s) {
        StageCosts& stage = design.costs.stages[s];
        stage.workspaceInputGrad = 5 << 20;
        if (uneven) {
            stage.forward += static_cast<Nanoseconds>(s * 77'003 % 400'009);
            stage.weightGrad += static_cast<Nanoseconds>(s * 31'013 % 300'007);
        }
    }
    for (int d = 0; uneven && d < devices; ++d) {
        design.costs.hostGaps.emplace_back();
        for (const Op op : allOps)
            design.costs.hostGaps.back().before[indexOf(op)] = 1'000 * (d + 1) + 777 * static_cast<int>(indexOf(op));
    }
    return design;
}

std::vector<std::uint32_t> moved(std::size_t size, std::size_t from, std::size_t to)
{
    std::vector<std::uint32_t> positions(size);
    std::iota(positions.begin(), positions.end(), 0u);
    const auto at = [&](std::size_t i) { return positions.begin() + static_cast<std::ptrdiff_t>(i); };
    if (to > from)
        std::rotate(at(from), at(from + 1), at(to + 1));
    else
        std::rotate(at(to), at(from), at(from + 1));
    return positions;
}

/// Compiled from scratch; nothing when it cannot run.
std::optional<Prediction> compiled(const Design& design, int device, const std::vector<std::uint32_t>& positions,
                                   Diagnostics* why)
{
    Design edited = design;
    std::vector<Block>& order = edited.schedule.order[device];
    for (std::size_t i = 0; i < positions.size(); ++i)
        order[i] = design.schedule.order[device][positions[i]];
    dropBrokenOverlaps(edited.schedule);
    try {
        return predictPlaced(edited);
    } catch (const Error& error) {
        *why = error.diagnostics();
        return std::nullopt;
    }
}

using Times = std::map<std::string, std::pair<Nanoseconds, Nanoseconds>>;
Times timesOf(const Prediction& prediction)
{
    Times times;
    for (TaskId t = 0; t < prediction.program.tasks.size(); ++t)
        times[prediction.program.label(t)] = {prediction.timeline.start[t], prediction.timeline.end[t]};
    return times;
}

bool sameNumbers(const Metrics& a, const Metrics& b)
{
    bool same = a.makespan == b.makespan && a.span == b.span && a.ideal == b.ideal && a.rateMakespan == b.rateMakespan
                && a.rateSpan == b.rateSpan && a.devices.size() == b.devices.size();
    for (std::size_t d = 0; same && d < a.devices.size(); ++d)
        same = a.devices[d].busy == b.devices[d].busy && a.devices[d].idle == b.devices[d].idle
               && a.devices[d].span == b.devices[d].span && a.devices[d].peakActivations == b.devices[d].peakActivations
               && a.idleCauses[d].warmUp == b.idleCauses[d].warmUp
               && a.idleCauses[d].waitGradient == b.idleCauses[d].waitGradient
               && a.idleCauses[d].host == b.idleCauses[d].host
               && a.idleCauses[d].waitActivation == b.idleCauses[d].waitActivation
               && a.idleCauses[d].transfer == b.idleCauses[d].transfer
               && a.idleCauses[d].coolDown == b.idleCauses[d].coolDown;
    return same;
}

} // namespace

class OrderPreviewTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void extraDependenciesAreFoundInWhateverOrderTheyAreAskedFor()
    {
        Program program;
        std::mt19937 random(3);
        for (TaskId task = 0; task < 300; ++task)
            for (auto more = random() % 8; more > 5; --more) // mostly none, at most two
                program.extraDependencies.push_back({task, task, 0});
        for (const std::size_t count : {program.extraDependencies.size(), std::size_t(1), std::size_t(0)}) {
            program.extraDependencies.resize(count);
            ExtraCursor cursor(program);
            for (int round = 0; round < 2000; ++round) {
                const auto task = static_cast<TaskId>(round < 1000 ? round % 310 : int(random() % 310));
                const auto found = cursor.of(task);
                QVERIFY(std::all_of(found.begin(), found.end(), [&](const auto& extra) { return extra.task == task; }));
                QCOMPARE(std::ssize(found),
                         std::count_if(program.extraDependencies.begin(), program.extraDependencies.end(),
                                       [&](const auto& extra) { return extra.task == task; }));
            }
        }
    }

    void everyMoveGivesTheTimesNumbersAndRefusalsOfCompilingIt_data()
    {
        QTest::addColumn<QString>("family");
        QTest::addColumn<int>("devices");
        QTest::addColumn<bool>("uneven");
        for (const char* family :
             {"gpipe", "1f1b", "interleaved-1f1b", "zb-h1", "zb-v", "chimera", "dualpipe", "dualpipe-v"}) {
            QTest::newRow(family) << QString::fromLatin1(family) << 4 << false;
            QTest::addRow("%s, uneven stages", family) << QString::fromLatin1(family) << 4 << true;
        }
    }
    void everyMoveGivesTheTimesNumbersAndRefusalsOfCompilingIt()
    {
        QFETCH(QString, family);
        QFETCH(int, devices);
        QFETCH(bool, uneven);
        const Design design = designOf(family.toLatin1().constData(), devices,
                                       family.startsWith(QLatin1String("dualpipe")) ? 20 : 8, uneven);
        const Prediction present = predictPlaced(design);
        OrderPreview preview(design, present);
        QVERIFY(preview.possible());
        std::mt19937 random(7);
        int legal = 0, illegal = 0;
        for (int round = 0; round < 300; ++round) {
            const int device = static_cast<int>(random() % static_cast<unsigned>(devices));
            const std::size_t size = design.schedule.order[device].size();
            std::vector<std::uint32_t> positions = moved(size, random() % size, random() % size);
            if (round % 5 == 0) { // several at once
                const std::size_t from = random() % size, to = std::min(size, from + 4);
                std::shuffle(positions.begin() + static_cast<std::ptrdiff_t>(from),
                             positions.begin() + static_cast<std::ptrdiff_t>(to), random);
            }
            Diagnostics faults, why;
            const std::optional<Prediction> expected = compiled(design, device, positions, &faults);
            const Prediction* got = preview.evaluate(device, positions, &why);
            QCOMPARE(got != nullptr, expected.has_value());
            if (!got) {
                ++illegal;
                QVERIFY(hasErrors(why));
                QVERIFY(!why.front().what.empty() && !why.front().hint.empty());
                continue;
            }
            ++legal;
            QVERIFY(timesOf(*got) == timesOf(*expected));
            QVERIFY(sameNumbers(got->metrics, expected->metrics));
            for (std::size_t d = 0; d < got->metrics.devices.size(); ++d) {
                // Outputs and gradients may arrive some blocks earlier or later; all else is the same.
                const Bytes off = std::abs(got->metrics.devices[d].peakBytes - expected->metrics.devices[d].peakBytes);
                QVERIFY2(off <= 8 * design.costs.stages[0].output, qPrintable(QString::number(off)));
            }
        }
        QVERIFY(legal > 20 && illegal > 20);
    }

    void aPairThatIsPartedAndJoinedAgainIsAsBefore()
    {
        const Design design = designOf("dualpipe", 4, 20, true);
        const Prediction present = predictPlaced(design);
        QVERIFY(!present.program.overlaps.empty());
        OrderPreview preview(design, present);
        const std::size_t size = design.schedule.order[1].size();
        int parted = 0;
        for (const Overlap& pair : design.schedule.overlaps) {
            const Position first = find(design.schedule, pair.first);
            const auto at = static_cast<std::size_t>(first.index);
            if (first.device != 1 || at + 2 >= size)
                continue;
            // The block behind the pair goes between the two.
            if (const Prediction* apart = preview.evaluate(1, moved(size, at + 2, at + 1))) {
                ++parted;
                QVERIFY(apart->program.overlaps.size() < present.program.overlaps.size());
            }
            const Prediction* same = preview.evaluate(1, moved(size, 0, 0));
            QVERIFY(same != nullptr);
            QCOMPARE(same->timeline.start, present.timeline.start);
            QCOMPARE(same->timeline.end, present.timeline.end);
            QCOMPARE(same->program.overlaps.size(), present.program.overlaps.size());
            QVERIFY(same->timeline.memory[1] == present.timeline.memory[1]);
            QVERIFY(sameNumbers(same->metrics, present.metrics));
        }
        QVERIFY(parted > 0);
    }

    void thePresentOrderGivesThePresentPrediction()
    {
        const Design design = designOf("zb-h1", 4, 8, true);
        const Prediction present = predictPlaced(design);
        OrderPreview preview(design, present);
        const std::size_t size = design.schedule.order[1].size();
        QVERIFY(preview.evaluate(1, moved(size, 3, 4)) != nullptr);
        const Prediction* same = preview.evaluate(1, moved(size, 3, 3));
        QVERIFY(same != nullptr);
        QCOMPARE(same->timeline.start, present.timeline.start);
        QCOMPARE(same->timeline.end, present.timeline.end);
        QVERIFY(same->timeline.memory[1] == present.timeline.memory[1]);
        QCOMPARE(same->metrics.devices[1].peakBytes, present.metrics.devices[1].peakBytes);
    }

    void theLegalRangeOfABlockIsWhatTryingEveryPlaceFinds_data()
    {
        QTest::addColumn<QString>("family");
        QTest::addColumn<bool>("maySplit");
        for (const char* family : {"1f1b", "interleaved-1f1b", "zb-h1", "zb-v"})
            QTest::newRow(family) << QString::fromLatin1(family) << true;
        QTest::newRow("the first stage's halves are joined") << QStringLiteral("zb-h1") << false;
    }
    void theLegalRangeOfABlockIsWhatTryingEveryPlaceFinds()
    {
        QFETCH(QString, family);
        QFETCH(bool, maySplit);
        Design design = designOf(family.toLatin1().constData(), 4, 8, true);
        design.schedule.firstStageMaySplit = maySplit;
        // Whether a block that goes from one place to another parts two others that are joined.
        const auto parts = [&](int device, std::size_t from, std::size_t to) {
            const std::vector<Block>& lane = design.schedule.order[device];
            const std::size_t behind = to > from ? to + 1 : to;
            return !maySplit && to != from && behind > 0 && behind < lane.size() && behind - 1 != from
                   && lane[behind - 1].op == Op::I && lane[behind - 1].stage == 0;
        };
        const Prediction present = predictPlaced(design);
        OrderPreview preview(design, present);
        for (int device = 0; device < 4; ++device) {
            const std::size_t size = design.schedule.order[device].size();
            for (std::size_t from = 0; from < size; ++from) {
                const OrderPreview::Range range = preview.legalRange(device, static_cast<int>(from));
                for (std::size_t to = 0; to < size; ++to) {
                    const bool inside = range.first <= static_cast<int>(to) && static_cast<int>(to) <= range.last
                                        && !parts(device, from, to);
                    QVERIFY2((preview.evaluate(device, moved(size, from, to)) != nullptr) == inside,
                             qPrintable(QStringLiteral("device %1, %2 to %3").arg(device).arg(from).arg(to)));
                }
            }
        }
    }

    void skipConnectionsAndPinsHold()
    {
        Design design = designOf("1f1b", 4, 6, true);
        design.dataflow.skips = {{0, 2, 1 << 20}, {0, 3, 1 << 20}};
        design.schedule.pins = {{{Op::F, 1, 2, 0}, 9'000'000}, {{Op::B, 2, 1, 0}, 19'000'000}};
        Prediction unknown = predictPlaced(design);
        unknown.program.shardedStates = true; // on no list of what it previews, as a field that somebody adds
        QVERIFY(!OrderPreview(design, unknown).possible());
        const Prediction present = predictPlaced(design);
        OrderPreview preview(design, present);
        QVERIFY(preview.possible());
        std::mt19937 random(3);
        int legal = 0;
        for (int round = 0; round < 200; ++round) {
            const int device = static_cast<int>(random() % 4);
            const std::size_t size = design.schedule.order[device].size();
            const std::vector<std::uint32_t> positions = moved(size, random() % size, random() % size);
            Diagnostics faults;
            const std::optional<Prediction> expected = compiled(design, device, positions, &faults);
            const Prediction* got = preview.evaluate(device, positions);
            QCOMPARE(got != nullptr, expected.has_value());
            if (got) {
                ++legal;
                QVERIFY(timesOf(*got) == timesOf(*expected));
            }
        }
        QVERIFY(legal > 10);
    }
};

PIPEWRIGHT_TEST(OrderPreviewTest, NoApplication)
#include "tst_orderpreview.moc"
