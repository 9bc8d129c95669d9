// SPDX-License-Identifier: GPL-3.0-or-later
// The numbers of a range against a plain count over all tasks and samples, and of the whole step against Metrics.
#include "core/families/family.h"
#include "core/predict/predict.h"
#include "core/predict/rangestatistics.h"
#include "makers/designs.h"
#include "testmain.h"

#include <QTest>

#include <random>

using namespace pipewright;
using namespace pipewright::test;

namespace {

bool operator==(const IdleCauses& a, const IdleCauses& b)
{
    return a.warmUp == b.warmUp && a.waitActivation == b.waitActivation && a.waitGradient == b.waitGradient
           && a.transfer == b.transfer && a.copies == b.copies && a.coolDown == b.coolDown && a.host == b.host
           && a.other == b.other;
}

IdleCauses operator+(const IdleCauses& a, const IdleCauses& b)
{
    return {a.warmUp + b.warmUp,
            a.waitActivation + b.waitActivation,
            a.waitGradient + b.waitGradient,
            a.transfer + b.transfer,
            a.copies + b.copies,
            a.coolDown + b.coolDown,
            a.host + b.host,
            a.other + b.other};
}

/// Busy time, time by operation and peak of a device, from every task and every sample.
RangeStatistics::Device counted(const Program& program, const Timeline& timeline, int device, Nanoseconds from,
                                Nanoseconds to)
{
    RangeStatistics::Device result;
    std::vector<std::pair<Nanoseconds, Nanoseconds>> parts;
    for (TaskId t = 0; t < program.tasks.size(); ++t) {
        const Task& task = program.tasks[t];
        const Nanoseconds start = std::max(timeline.start[t], from), end = std::min(timeline.end[t], to);
        if (timeline.start[t] == notRun || task.device != device || start >= end
            || (task.kind != TaskKind::Compute && !isUpdate(task.kind)))
            continue;
        result.perOp[indexOf(isUpdate(task.kind) ? Op::U : task.op)] += end - start;
        parts.emplace_back(start, end);
    }
    std::sort(parts.begin(), parts.end());
    Nanoseconds until = from;
    for (const auto& [start, end] : parts) {
        result.busy += std::max<Nanoseconds>(0, end - std::max(until, start));
        until = std::max(until, end);
    }
    const std::vector<MemorySample>& samples = timeline.memory[static_cast<std::size_t>(device)];
    for (std::size_t i = 0; i < samples.size(); ++i)
        if (samples[i].time < to && (i + 1 == samples.size() || samples[i + 1].time > from))
            result.peak = std::max(result.peak, std::optional(samples[i].bytes));
    return result;
}

} // namespace

class RangeStatisticsTest : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void aRangeIsWhatAPlainCountOfItSays_data()
    {
        QTest::addColumn<QString>("family");
        QTest::addColumn<bool>("recorded");
        for (const char* family : {"1f1b", "zb-h1", "zb-v", "dualpipe", "interleaved-1f1b", "pipedream"})
            for (const bool recorded : {false, true})
                QTest::addRow("%s %s", family, recorded ? "recorded" : "predicted") << family << recorded;
    }

    void aRangeIsWhatAPlainCountOfItSays()
    {
        QFETCH(QString, family);
        QFETCH(bool, recorded);
        std::mt19937 random(11);
        Prediction prediction = predict(unroundDesign(family.toUtf8(), 4, 40));
        const Program& program = prediction.program;
        Timeline& timeline = prediction.timeline;
        if (recorded) // by another clock, and some of it is not there
            for (TaskId t = 0; t < program.tasks.size(); ++t) {
                const bool lost = program.tasks[t].kind == TaskKind::Compute && random() % 17 == 0;
                timeline.start[t] = lost ? notRun : timeline.start[t] + 5'000'000;
                timeline.end[t] += 5'000'000;
            }
        const Nanoseconds end = *std::max_element(timeline.end.begin(), timeline.end.end());
        const RangeIndex index(program, timeline, timeline.memory);
        std::uniform_int_distribution<Nanoseconds> anywhere(-1'000'000, end + 1'000'000);
        for (int round = 0; round < 300; ++round) {
            Nanoseconds from = anywhere(random), to = round % 3 == 0 ? from + 500'000 : anywhere(random);
            if (from > to)
                std::swap(from, to);
            const RangeStatistics found = index.between(from, to);
            QVERIFY(found.from <= found.to && found.to <= end);
            if (found.length() > 0)
                QVERIFY(found.from >= from && found.to <= to);
            const Nanoseconds amid = found.from + found.length() / 3;
            const RangeStatistics first = index.between(found.from, amid), second = index.between(amid, found.to);
            for (int d = 0; d < 4; ++d) {
                const auto at = static_cast<std::size_t>(d);
                const RangeStatistics::Device& device = found.devices[at];
                const RangeStatistics::Device plain = counted(program, timeline, d, found.from, found.to);
                QCOMPARE(device.busy, plain.busy);
                QVERIFY(device.perOp == plain.perOp);
                if (found.length() > 0)
                    QVERIFY(device.peak == plain.peak);
                QCOMPARE(device.busy + device.causes.sum(), found.length());
                QVERIFY(first.devices[at].causes + second.devices[at].causes == device.causes);
            }
        }
    }

    void theWholeStepHasTheNumbersOfItsMetrics_data()
    {
        QTest::addColumn<QString>("family");
        for (const Family& family : families())
            QTest::addRow("%s", family.name.data())
                << QString::fromUtf8(family.name.data(), static_cast<qsizetype>(family.name.size()));
    }

    void theWholeStepHasTheNumbersOfItsMetrics()
    {
        QFETCH(QString, family);
        const Prediction prediction = predict(unroundDesign(family.toUtf8(), 4, 16));
        const RangeStatistics all = RangeIndex(prediction.program, prediction.timeline, prediction.timeline.memory)
                                        .between(0, prediction.metrics.makespan);
        QCOMPARE(all.length(), prediction.metrics.makespan);
        for (std::size_t d = 0; d < 4; ++d) {
            const RangeStatistics::Device& device = all.devices[d];
            QCOMPARE(device.busy, prediction.metrics.devices[d].busy);
            QVERIFY(device.causes == prediction.metrics.idleCauses[d]);
            QCOMPARE(device.peak.value(), prediction.metrics.devices[d].peakBytes);
        }
        const RangeStatistics::Device total = all.total();
        QCOMPARE(total.peak.value(), prediction.metrics.devices[static_cast<std::size_t>(all.fullest())].peakBytes);
        QVERIFY(std::abs(all.busyShare() - static_cast<double>(total.busy) / (4.0 * double(all.length()))) < 1e-12);
    }

    void aGapIsSplitWhereItsCauseChanges()
    {
        // Stage 1 waits 10 ms for F0.0 (warm-up), computes, then waits for the next activation: computed and sent.
        const Prediction prediction = predict(familyDesign("gpipe", 2, 2));
        const RangeIndex index(prediction.program, prediction.timeline, prediction.timeline.memory);
        constexpr Nanoseconds ms = 1'000'000;
        const RangeStatistics warmUp = index.between(4 * ms, 9 * ms);
        QCOMPARE(warmUp.devices[1].causes.warmUp, 5 * ms);
        QCOMPARE(warmUp.devices[0].busy, 5 * ms);
        QCOMPARE(warmUp.devices[0].perOp[indexOf(Op::F)], 5 * ms);
        // Device 0 has its forwards behind it at 20 ms, and waits for a gradient that is computed, then on its way.
        const TaskId gradient = [&] {
            for (TaskId t = 0;; ++t)
                if (prediction.program.tasks[t].kind == TaskKind::Transfer && prediction.program.tasks[t].device == 1)
                    return t;
        }();
        const Nanoseconds sent = prediction.timeline.start[gradient], there = prediction.timeline.end[gradient];
        QVERIFY(there > sent && sent > 21 * ms);
        const RangeStatistics amid = index.between(sent - 2 * ms, there);
        QCOMPARE(amid.devices[0].causes.waitGradient, 2 * ms);
        QCOMPARE(amid.devices[0].causes.transfer, there - sent);
        const RangeStatistics onlySent = index.between(sent, there);
        QCOMPARE(onlySent.devices[0].causes.transfer, there - sent);
        QCOMPARE(onlySent.devices[0].causes.sum(), there - sent);
        QCOMPARE(onlySent.busyShare(0), 0.0);
    }

    void anEmptyRangeSaysNothing()
    {
        const Prediction prediction = predict(familyDesign());
        const RangeIndex index(prediction.program, prediction.timeline, prediction.timeline.memory);
        for (const auto& [from, to] : {std::pair<Nanoseconds, Nanoseconds>{5, 5}, {9, 3}, {1LL << 60, 1LL << 61}}) {
            const RangeStatistics none = index.between(from, to);
            QCOMPARE(none.length(), 0);
            QCOMPARE(none.busyShare(), 0.0);
            QCOMPARE(none.fullest(), -1);
            QVERIFY(!none.total().peak);
        }
    }
};

PIPEWRIGHT_TEST(RangeStatisticsTest, NoApplication)
#include "tst_rangestatistics.moc"
