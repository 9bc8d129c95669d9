// SPDX-License-Identifier: GPL-3.0-or-later
#include "traces/comparison.h"
#include "traces/recording.h"

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

private Q_SLOTS:
    void aMeasurementThatIsThePredictionHasNoError()
    {
        const Comparison c = compare(m_prediction.program, m_prediction.timeline, m_prediction.timeline, predictedPeaks());
        QCOMPARE(c.makespanError, 0.0);
        QCOMPARE(c.matched, m_prediction.program.computeCount());
        QCOMPARE(c.unmatched, std::int64_t{0});
        QCOMPARE(c.startError.p95, 0.0);
        QCOMPARE(c.durationError.p95, 0.0);
        for (const Comparison::Device& device : c.devices) {
            QCOMPARE(device.busyError, 0.0);
            QCOMPARE(device.peakError, 0.0);
        }
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
        QCOMPARE(c.devices[0].peakError, -0.75);
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

QTEST_GUILESS_MAIN(TestComparison)
#include "tst_comparison.moc"
