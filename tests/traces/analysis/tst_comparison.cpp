// SPDX-License-Identifier: GPL-3.0-or-later
// Prediction against measurement: errors, typical steps, notes, and the report.
#include "testmain.h"
#include "traces/analysis/comparison.h"
#include "traces/analysis/explanation.h"
#include "traces/analysis/gapreasons.h"
#include "traces/analysis/replay.h"
#include "traces/export/report.h"
#include "traces/store/recording.h"

#include <QFile>
#include <QTest>

using namespace pipewright;
using namespace pipewright::test;

class TestComparison : public QObject {
    Q_OBJECT

private:
    Prediction m_prediction = predict(smallDesign());

    std::vector<Bytes> predictedPeaks() const
    {
        std::vector<Bytes> peaks;
        for (const Program::Device& device : m_prediction.program.devices)
            peaks.push_back(device.peakBytes);
        return peaks;
    }

    TaskId idOf(const std::string& label) const
    {
        for (TaskId id = 0; id < m_prediction.program.tasks.size(); ++id)
            if (m_prediction.program.label(id) == label)
                return id;
        return none;
    }

    /// A recording of steps, each longer by a factor than predicted.
    std::string recorded(const Folder& folder, const std::vector<double>& factors) const
    {
        const std::string path = folder / "run.db";
        TraceWriter writer(path, smallDesign(), m_prediction.program, smallHeader());
        for (std::size_t step = 0; step < factors.size(); ++step) {
            Timeline ran = m_prediction.timeline;
            for (auto* times : {&ran.start, &ran.end})
                for (Nanoseconds& time : *times)
                    time = static_cast<Nanoseconds>(double(time) * factors[step]);
            const auto origin = static_cast<Nanoseconds>(step) * 1'000'000'000;
            writer.append(recordsOf(m_prediction.program, ran, int(step), origin));
            writer.append(StepRecord{int(step), origin, origin + ran.end[idOf("B0.3")], 1.0});
        }
        writer.commit();
        writer.finish(predictedPeaks(), 0, "{}");
        return path;
    }

private Q_SLOTS:
    void stepsVaryAndHaveATypicalOne()
    {
        const Folder folder;
        const TraceReader trace(recorded(folder, {9, 1, 3, 2, 2, 2}));
        const StepLengths lengths = stepLengths(trace.steps());
        const Nanoseconds one = m_prediction.timeline.end[idOf("B0.3")];
        QCOMPARE(lengths.steps, std::int64_t{5}); // the first does not count
        QCOMPARE(lengths.shortest, one);
        QCOMPARE(lengths.median, 2 * one);
        QCOMPARE(lengths.longest, 3 * one);
        QCOMPARE(lengths.spread, one); // of five, the tenth part is the first and the ninth tenth the fourth
        const StepVariation variation = stepVariation(trace, m_prediction.program);
        for (TaskId t = 0; t < m_prediction.program.tasks.size(); ++t) {
            QCOMPARE(variation.typical.start[t], 2 * m_prediction.timeline.start[t]);
            QCOMPARE(variation.typical.end[t], 2 * m_prediction.timeline.end[t]);
            QCOMPARE(variation.spread[t], m_prediction.timeline.end[t] - m_prediction.timeline.start[t]);
        }
    }

    void aReportHoldsPictureNumbersCausesAndNotes()
    {
        const Folder folder;
        const std::string path = recorded(folder, {2, 2});
        const TraceReader trace(path);
        const Timeline measured = trace.timeline(m_prediction.program, 1);
        const std::vector<TraceNote> notes{{100, 200, 1, "a < b & \xff"}};
        const std::string html = runReport(smallDesign(), m_prediction, trace, path, {measured, "step 1", 1}, notes);
        for (const char* part : {"<!DOCTYPE html>", "<svg", "</svg>", "run.db, step 1", "a &lt; b &amp; \xef\xbf\xbd",
                                 "slower blocks on device 0", "Critical path", "<td>+100.0 %</td>"})
            QVERIFY2(html.find(part) != std::string::npos, part);
        QCOMPARE(html.find("http://www.w3.org/2000/svg"), html.find("http")); // nothing is fetched from anywhere
        QCOMPARE(html.find("src="), std::string::npos);
    }

    void notesLieBesideTheTrace()
    {
        const Folder folder;
        const std::string path = folder / "run.db";
        QVERIFY(readNotes(path).empty());
        const std::vector<TraceNote> notes{{30, 40, 2, "later step"}, {10, 20, -1, "whole \"trace\""}};
        writeNotes(path, notes);
        const std::vector<TraceNote> read = readNotes(path);
        QCOMPARE(read.size(), 2u);
        QVERIFY(read[0] == notes[1] && read[1] == notes[0]);
        for (const char* wrong : {"nothing", "{}", R"({"notes": [{"start_ns": 5, "end_ns": 1, "text": "x"}]})",
                                  R"({"notes": [{"start_ns": "1", "end_ns": 1, "text": "x"}]})"}) {
            QFile file(QString::fromStdString(notesPath(path)));
            QVERIFY(file.open(QIODevice::WriteOnly | QIODevice::Truncate));
            file.write(wrong);
            file.close();
            QVERIFY2(errorOf([&] { readNotes(path); }).find("notes.json") != std::string::npos, wrong);
        }
        writeNotes(path, {});
        QVERIFY(readNotes(path).empty());
    }

    void aMeasurementThatIsThePredictionHasNoError()
    {
        const Comparison c =
            compare(m_prediction.program, m_prediction.timeline, m_prediction.timeline, predictedPeaks());
        QCOMPARE(c.makespanError, 0.0);
        QCOMPARE(c.matched, m_prediction.program.computeCount());
        QCOMPARE(c.unmatched, std::int64_t{0});
        QCOMPARE(c.startError.p95, 0.0);
        QCOMPARE(c.durationError.p95, 0.0);
        for (const Comparison::Device& device : c.devices) {
            QCOMPARE(device.busyError, 0.0);
            QCOMPARE(device.peakError.value(), 0.0);
        }
    }

    void memoryThatWasNotRecordedIsNotZero()
    {
        const auto devicesFor = [&](const std::vector<Bytes>& peaks) {
            return compare(m_prediction.program, m_prediction.timeline, m_prediction.timeline, peaks).devices;
        };
        const std::vector<Bytes> peaks = predictedPeaks();
        QVERIFY(peaks[0] > 0);
        const auto one = devicesFor({0, peaks[1]}), none = devicesFor({});
        QVERIFY(!one[0].measuredPeak && !one[0].peakError);
        QVERIFY(one[1].measuredPeak == peaks[1] && one[1].peakError == 0.0);
        QVERIFY(!none[0].measuredPeak && !none[1].measuredPeak);
    }

    void errorsAreRelativeToTheMeasurement()
    {
        Timeline measured = m_prediction.timeline;
        for (auto* times : {&measured.start, &measured.end})
            for (Nanoseconds& time : *times)
                time *= 2;
        auto peaks = predictedPeaks();
        peaks[0] *= 4;
        const Comparison c = compare(m_prediction.program, m_prediction.timeline, measured, peaks);
        QCOMPARE(c.measuredMakespan, 2 * c.predictedMakespan);
        QCOMPARE(c.makespanError, -0.5);
        QCOMPARE(c.devices[0].busyError, -0.5);
        QCOMPARE(c.devices[0].peakError.value(), -0.75);
        QCOMPARE(c.durationError.median, 0.5);
        QVERIFY(c.startError.p95 <= 0.5 && c.startError.p95 > 0.25); // of the measured makespan
    }

    void aStepThatBeginsLateIsNotAnError()
    {
        Timeline measured = m_prediction.timeline;
        for (auto* times : {&measured.start, &measured.end})
            for (Nanoseconds& time : *times)
                time += 12'345;
        const Comparison c = compare(m_prediction.program, m_prediction.timeline, measured, predictedPeaks());
        QCOMPARE(c.makespanError, 0.0);
        QCOMPARE(c.startError.p95, 0.0);
    }

    void theBlockThatExplainsMostComesFirst()
    {
        Timeline measured = m_prediction.timeline;
        const TaskId slow = idOf("B1.2"), fast = idOf("F0.3");
        QVERIFY(slow != none && fast != none);
        measured.end[slow] += 700'000;
        measured.end[fast] -= 300'000;
        const Comparison c = compare(m_prediction.program, m_prediction.timeline, measured, predictedPeaks());
        QCOMPARE(c.blocks[0].task, slow);
        QCOMPARE(c.blocks[0].contribution, Nanoseconds{700'000});
        QCOMPARE(c.blocks[1].task, fast);
        QCOMPARE(c.blocks[1].contribution, Nanoseconds{-300'000});
        QCOMPARE(c.durationError.median, 0.0);
    }

    void theCriticalPathCountsNoTimeTwice()
    {
        // Ranges that reach over the wait of the next block overlap it.
        Timeline measured = m_prediction.timeline;
        for (TaskId id = 0; id < measured.end.size(); ++id)
            if (m_prediction.program.tasks[id].kind == TaskKind::Compute && measured.start[id] > 100'000)
                measured.start[id] -= 100'000;
        const Explanation e = explain(m_prediction.program, smallDesign().costs, m_prediction.timeline, measured);
        QVERIFY(e.path.waiting >= 0);
        const TaskId first = e.criticalPath.front(), last = e.criticalPath.back();
        QCOMPARE(e.path.computing + e.path.transferring + e.path.waiting, measured.end[last] - measured.start[first]);
    }

    void theGapsOfADeviceAddUpToItsIdleTimeAndSayWhatTheyWaitedFor()
    {
        // One block of stage 1 takes longer, and everything behind it follows as it must.
        const Program& program = m_prediction.program;
        std::vector<Nanoseconds> durations;
        for (TaskId id = 0; id < program.tasks.size(); ++id)
            durations.push_back(m_prediction.timeline.end[id] - m_prediction.timeline.start[id]);
        const Replay replay(program, m_prediction.timeline, durations);
        std::vector<Nanoseconds> longer = replay.duration;
        const TaskId slow = idOf("B1.2");
        longer[slow] += 700'000;
        const Timeline measured = replay.run(longer, replay.lag);
        const Explanation e = explain(program, smallDesign().costs, m_prediction.timeline, measured);
        std::vector<Nanoseconds> idle(e.devices.size(), 0);
        bool waitsForTheSlowOne = false;
        for (const IdleGap& gap : e.gaps) {
            const Nanoseconds parts =
                gap.warmUp + gap.lateData + gap.transfer + gap.hostGap + gap.memoryWait + gap.coolDown;
            QCOMPARE(parts, gap.end - gap.start);
            idle[gap.device] += parts;
            const GapReasons reasons = reasonsOf(program, m_prediction.timeline, e, gap);
            if (reasons.producer == slow) {
                waitsForTheSlowOne = true;
                QCOMPARE(reasons.producerLonger, Nanoseconds{700'000});
                QVERIFY(reasons.transfer != none && !reasons.linkBusy);
            }
            if (gap.before != none)
                QVERIFY(gapBefore(e, gap.device, gap.before) == &gap);
        }
        QVERIFY(waitsForTheSlowOne);
        for (std::size_t d = 0; d < e.devices.size(); ++d)
            QCOMPARE(idle[d] + e.devices[d].computing, e.measured);
        QVERIFY(e.completed.start == measured.start);
    }

    void blocksThatWereNotMeasuredAreCounted()
    {
        Timeline measured = m_prediction.timeline;
        const TaskId lost = idOf("F1.0");
        measured.start[lost] = measured.end[lost] = notRun;
        const Comparison c = compare(m_prediction.program, m_prediction.timeline, measured, predictedPeaks());
        QCOMPARE(c.unmatched, std::int64_t{1});
        QCOMPARE(c.matched, m_prediction.program.computeCount() - 1);
    }
};

PIPEWRIGHT_TEST(TestComparison, QCoreApplication)
#include "tst_comparison.moc"
