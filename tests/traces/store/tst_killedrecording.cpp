// SPDX-License-Identifier: GPL-3.0-or-later
// A recording whose process is killed opens with everything that was committed, and says that it is incomplete.
#include "testmain.h"
#include "traces/store/recording.h"
#include "traces/store/tracereader.h"

#include <QTest>

#include <csignal>
#include <random>
#include <sys/wait.h>
#include <unistd.h>

using namespace pipewright;
using namespace pipewright::test;

class TestKilledRecording : public QObject {
    Q_OBJECT

private:
    Folder m_folder;

    /// Records steps without end and says after each commit, through the pipe, that there is one more.
    [[noreturn]] static void recordForEver(const std::string& path, const Design& design, const Prediction& prediction,
                                           int pipe)
    {
        TraceWriter writer(path, design, prediction.program, smallHeader());
        for (int step = 0;; ++step) {
            const Nanoseconds origin = step * prediction.metrics.makespan;
            writer.append(recordsOf(prediction.program, prediction.timeline, step, origin));
            writer.append(StepRecord{step, origin, origin + prediction.metrics.makespan, 0.5});
            writer.commit();
            const char committed = 'c';
            if (::write(pipe, &committed, 1) != 1)
                ::_exit(1);
        }
    }

private Q_SLOTS:
    void everythingCommittedSurvivesAKillAtAnyMoment()
    {
        const Design design = smallDesign("1f1b", 2, 8);
        const Prediction prediction = predict(design);
        std::mt19937 random(42);
        for (int round = 0; round < 50; ++round) {
            const std::string path = m_folder / ("killed" + std::to_string(round) + ".db").c_str();
            int ends[2];
            QVERIFY(::pipe(ends) == 0);
            const pid_t child = ::fork();
            QVERIFY(child >= 0);
            if (child == 0) {
                ::close(ends[0]);
                recordForEver(path, design, prediction, ends[1]);
            }
            ::close(ends[1]);
            // Some commits, then a little of the way to the next one.
            const int wanted = 1 + static_cast<int>(random() % 12);
            char byte = 0;
            int committed = 0;
            while (committed < wanted && ::read(ends[0], &byte, 1) == 1)
                ++committed;
            ::usleep(random() % 700);
            ::kill(child, SIGKILL);
            int status = 0;
            QCOMPARE(::waitpid(child, &status, 0), child);
            QVERIFY(WIFSIGNALED(status));
            while (::read(ends[0], &byte, 1) == 1)
                ++committed;
            ::close(ends[0]);

            const TraceReader reader(path);
            QVERIFY(!reader.complete());
            const auto steps = static_cast<int>(reader.steps().size());
            // The last commit may have been done without having been told.
            QVERIFY2(steps == committed || steps == committed + 1,
                     qPrintable(QString("%1 of %2").arg(steps).arg(committed)));
            for (int step = 0; step < steps; ++step) {
                const Timeline timeline = reader.timeline(prediction.program, step);
                QCOMPARE(timeline.start, prediction.timeline.start);
                QCOMPARE(timeline.end, prediction.timeline.end);
            }
            QVERIFY(reader.design() == design);
            const std::string said = toString(reader.whatMayBeMissing());
            QVERIFY2(said.find("holds " + std::to_string(steps) + " finished step") != std::string::npos, said.c_str());
            QVERIFY(said.find("dropped records may be missing") != std::string::npos);
            const std::string copy = path + ".copy";
            QVERIFY(QFile::copy(path.c_str(), copy.c_str()));
            QVERIFY(said.find("belongs beside it") == std::string::npos);
            const std::string saidOfCopy = toString(TraceReader(copy).whatMayBeMissing());
            QVERIFY2(saidOfCopy.find(".copy-wal, with what was recorded last, belongs beside it") != std::string::npos,
                     saidOfCopy.c_str());
            for (const char* ending : {"", "-wal", "-shm"})
                ::unlink((path + ending).c_str());
        }
    }
};

PIPEWRIGHT_TEST(TestKilledRecording, QCoreApplication)
#include "tst_killedrecording.moc"
