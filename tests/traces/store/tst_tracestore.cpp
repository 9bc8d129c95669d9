// SPDX-License-Identifier: GPL-3.0-or-later
// Recordings in SQLite: written while a run goes on, read meanwhile, after a kill, and refused when they do not fit.
#include "testmain.h"
#include "traces/store/recording.h"
#include "traces/store/schema.h"
#include "traces/store/tracereader.h"

#include <SQLiteCpp/SQLiteCpp.h>

#include <QFile>
#include <QTest>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>
#include <sys/wait.h>
#include <unistd.h>

using namespace pipewright;
using namespace pipewright::test;

class TestTraceStore : public QObject {
    Q_OBJECT

private:
    Folder m_folder;
    Design m_design = smallDesign();
    Prediction m_prediction = predict(m_design);

    /// Steps of growing length, each recorded as predicted and stretched by its number.
    void writeStep(TraceWriter& writer, int step) const
    {
        const Nanoseconds origin = 1'000'000'000 + 100'000'000LL * step;
        writer.append(recordsOf(m_prediction.program, m_prediction.timeline, step, origin));
        writer.append(
            std::vector<MemoryRecord>{{0, step, origin, 100}, {0, step, origin + 5, 300}, {1, step, origin, 50}});
        writer.append(StepRecord{step, origin, origin + m_prediction.metrics.makespan + 1000 * step, 0.5 / (step + 1)});
        writer.commit();
    }

    std::string write(const char* name, int steps, bool finish) const
    {
        const std::string path = m_folder / name;
        TraceWriter writer(path, m_design, m_prediction.program, smallHeader());
        writer.commit();
        for (int step = 0; step < steps; ++step)
            writeStep(writer, step);
        if (finish)
            writer.finish({1234, 5678}, 7, "{\"ok\":true}");
        return path;
    }

private Q_SLOTS:
    void whatWasWrittenIsReadBack()
    {
        const TraceReader reader(write("whole.db", 3, true));
        QVERIFY(reader.complete());
        QVERIFY(reader.design() == m_design);
        QCOMPARE(reader.header().backend, std::string("host"));
        QCOMPARE(reader.header().maths, std::string("timed"));
        QCOMPARE(reader.header().deviceNames, (std::vector<std::string>{"thread 0", "thread 1"}));
        QCOMPARE(reader.header().wallClockNs, std::int64_t{1'700'000'000'000'000'000});
        QCOMPARE(reader.droppedRecords(), std::int64_t{7});
        QCOMPARE(reader.resultJson(), std::string("{\"ok\":true}"));
        QCOMPARE(reader.peakBytes(), (std::vector<Bytes>{1234, 5678}));
        const auto steps = reader.steps();
        QCOMPARE(steps.size(), std::size_t{3});
        QCOMPARE(steps[2].loss, 0.5 / 3);
        QCOMPARE(steps[2].end - steps[2].start, m_prediction.metrics.makespan + 2000);
    }

    void theTimelineOfAStepCountsFromItsBeginning()
    {
        const TraceReader reader(write("timeline.db", 2, true));
        const Timeline timeline = reader.timeline(m_prediction.program, 1);
        QVERIFY(timeline.start == m_prediction.timeline.start);
        QVERIFY(timeline.end == m_prediction.timeline.end);
        QCOMPARE(timeline.memory.size(), std::size_t{2});
        QVERIFY((timeline.memory[0] == std::vector<MemorySample>{{0, 100}, {5, 300}}));
    }

    void tasksWithoutARecordHaveNotRun()
    {
        const std::string path = m_folder / "holes.db";
        TraceWriter writer(path, m_design, m_prediction.program, smallHeader());
        auto records = recordsOf(m_prediction.program, m_prediction.timeline, 0, 0);
        records.erase(records.begin() + 3);
        std::shuffle(records.begin(), records.end(), std::mt19937(1)); // devices record in any order
        writer.append(records);
        writer.append(StepRecord{0, 0, 1000, std::nan("")});
        writer.commit();
        const TraceReader reader(path);
        const Timeline timeline = reader.timeline(m_prediction.program, 0);
        QCOMPARE(timeline.start[3], notRun);
        QCOMPARE(timeline.end[3], notRun);
        QCOMPARE(timeline.start[4], m_prediction.timeline.start[4]);
        QVERIFY(std::isnan(reader.steps().at(0).loss));
    }

    void aReaderFollowsATraceThatGrows()
    {
        const std::string path = m_folder / "growing.db";
        TraceWriter writer(path, m_design, m_prediction.program, smallHeader());
        writer.commit();
        const TraceReader reader(path);
        QCOMPARE(reader.steps().size(), std::size_t{0});
        writeStep(writer, 0);
        QCOMPARE(reader.steps().size(), std::size_t{1});
        writer.append(StepRecord{1, 5, 6, 0.0});
        QCOMPARE(reader.steps().size(), std::size_t{1}); // not committed yet
        writer.commit();
        QCOMPARE(reader.steps().size(), std::size_t{2});
        QVERIFY(!reader.complete());
        QCOMPARE(reader.resultJson(), std::string());
        QCOMPARE(reader.peakBytes(), (std::vector<Bytes>{300, 50})); // the highest so far
        writer.finish({400, 60}, 0, "{}");
        QVERIFY(reader.complete());
        QCOMPARE(reader.peakBytes(), (std::vector<Bytes>{400, 60}));
    }

    void killingTheWriterLosesNothingCommitted()
    {
        const std::string path = m_folder / "killed.db";
        int ready[2];
        QVERIFY(pipe(ready) == 0);
        const pid_t child = fork();
        QVERIFY(child >= 0);
        if (child == 0) {
            TraceWriter writer(path, m_design, m_prediction.program, smallHeader());
            for (int step = 0; step < 5; ++step)
                writeStep(writer, step);
            // Half a step is under way, uncommitted, when the end comes.
            writer.append(recordsOf(m_prediction.program, m_prediction.timeline, 5, 0));
            const char done = 1;
            if (::write(ready[1], &done, 1) == 1)
                for (;;)
                    pause();
            _exit(1);
        }
        ::close(ready[1]);
        char done = 0;
        QCOMPARE(::read(ready[0], &done, 1), ssize_t{1});
        ::kill(child, SIGKILL);
        int status = 0;
        QCOMPARE(::waitpid(child, &status, 0), child);
        QVERIFY(WIFSIGNALED(status));

        const TraceReader reader(path);
        QVERIFY(!reader.complete());
        QCOMPARE(reader.steps().size(), std::size_t{5});
        QVERIFY(reader.timeline(m_prediction.program, 4).start == m_prediction.timeline.start);
        QVERIFY(reader.design() == m_design);
        QVERIFY(!errorOf([&] { reader.timeline(m_prediction.program, 5); }).empty());
    }

    void theMedianStepLeavesTheWarmUpOut()
    {
        QCOMPARE(TraceReader(write("one.db", 1, true)).medianStep(), 0);
        QCOMPARE(TraceReader(write("two.db", 2, true)).medianStep(), 1);
        QCOMPARE(TraceReader(write("six.db", 6, true)).medianStep(), 3);
        const TraceReader empty(write("none.db", 0, false));
        QVERIFY(errorOf([&] { empty.medianStep(); }).find("no finished step") != std::string::npos);
    }

    void anExistingFileIsNeverOverwritten()
    {
        const std::string path = write("taken.db", 1, true);
        const std::string message = errorOf([&] { TraceWriter(path, m_design, m_prediction.program, smallHeader()); });
        QVERIFY2(message.find("exists already") != std::string::npos, message.c_str());
        QCOMPARE(TraceReader(path).steps().size(), std::size_t{1});

        std::filesystem::remove(path);
        std::ofstream(path + "-wal") << "of an earlier trace";
        QVERIFY(errorOf([&] { TraceWriter(path, m_design, m_prediction.program, smallHeader()); }).find("-wal")
                != std::string::npos);
        QVERIFY(!std::filesystem::exists(path));
        std::filesystem::remove(path + "-wal");
        TraceWriter(path, m_design, m_prediction.program, smallHeader());
        QVERIFY(!std::filesystem::exists(path)); // it recorded nothing
    }

    void anOldTraceIsReplacedWhenTheNewOneBegins()
    {
        const std::string path = write("old.db", 3, false);
        std::ofstream(path + "-wal", std::ios::app) << "of a run that was killed";
        {
            TraceWriter never(path, m_design, m_prediction.program, smallHeader(), true);
            QVERIFY(std::filesystem::exists(path + "-wal"));
        }
        std::filesystem::remove(path + "-wal");
        QCOMPARE(TraceReader(path).steps().size(), std::size_t{3}); // the new one never began
        std::ofstream(path + "-wal") << "of a run that was killed";
        TraceWriter writer(path, m_design, m_prediction.program, smallHeader(), true);
        writer.commit();
        QCOMPARE(TraceReader(path).steps().size(), std::size_t{0});
        writeStep(writer, 0);
        QCOMPARE(TraceReader(path).steps().size(), std::size_t{1});
        writer.finish({1, 2}, 0, "{}");
        QVERIFY(TraceReader(path).complete());
    }

    void aTraceThatIsBeingWrittenIsNotReplaced()
    {
        const std::string path = m_folder / "busy.db";
        int ready[2];
        QVERIFY(::pipe(ready) == 0);
        const pid_t child = ::fork();
        QVERIFY(child >= 0);
        if (child == 0) {
            TraceWriter writer(path, m_design, m_prediction.program, smallHeader());
            writeStep(writer, 0);
            if (::write(ready[1], "", 1) == 1)
                for (;;)
                    ::pause();
            ::_exit(1);
        }
        ::close(ready[1]);
        char byte = 0;
        const bool isReady = ::read(ready[0], &byte, 1) == 1;
        const std::string message =
            errorOf([&] { TraceWriter(path, m_design, m_prediction.program, smallHeader(), true); });
        const std::size_t steps = isReady ? TraceReader(path).steps().size() : 0; // reading is not hindered
        ::kill(child, SIGKILL);
        int status = 0;
        QCOMPARE(::waitpid(child, &status, 0), child);
        QVERIFY2(message.find("still running") != std::string::npos, message.c_str());
        QCOMPARE(steps, std::size_t{1});
        TraceWriter writer(path, m_design, m_prediction.program, smallHeader(), true);
        writer.commit();
        QCOMPARE(TraceReader(path).steps().size(), std::size_t{0});
    }

    void whatIsNoTraceIsSaidToBeNone_data()
    {
        QTest::addColumn<QString>("kind");
        QTest::addColumn<QString>("message");
        QTest::newRow("missing") << "missing"
                                 << "there is no such trace";
        QTest::newRow("a folder") << "folder"
                                  << "not a file";
        QTest::newRow("empty") << "empty"
                               << "an empty file";
        QTest::newRow("text") << "text"
                              << "not a database";
        QTest::newRow("another program's database") << "other"
                                                    << "a database of another program";
        QTest::newRow("a newer schema") << "newer"
                                        << "schema version 3";
        QTest::newRow("cut short") << "truncated"
                                   << "cut short";
    }

    void whatIsNoTraceIsSaidToBeNone()
    {
        QFETCH(QString, kind);
        QFETCH(QString, message);
        const std::string path = m_folder / ("bad-" + kind).toUtf8().constData();
        if (kind == "folder") {
            std::filesystem::create_directory(path);
        } else if (kind == "empty") {
            std::ofstream stream(path);
        } else if (kind == "text") {
            std::ofstream(path) << std::string(5000, 'x');
        } else if (kind == "other") {
            SQLite::Database(path, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE).exec("CREATE TABLE T (a)");
        } else if (kind == "newer") {
            std::filesystem::copy_file(write("now.db", 1, true), path);
            SQLite::Database(path, SQLite::OPEN_READWRITE).exec("PRAGMA user_version = 3");
        } else if (kind == "truncated") {
            std::filesystem::copy_file(write("long.db", 20, true), path);
            std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
        }
        const std::string error = errorOf([&] { TraceReader reader(path); });
        QVERIFY2(error.find(message.toStdString()) != std::string::npos, error.c_str());
        QVERIFY(error.find(path) != std::string::npos);
    }

    void aTraceOfAnotherProgramIsRefused()
    {
        const TraceReader reader(write("mine.db", 1, true));
        const Prediction longer = predict(smallDesign("1f1b", 2, 5));
        QVERIFY(errorOf([&] { reader.timeline(longer.program, 0); }).find("of another program") != std::string::npos);
        // The same blocks in another order are another program too.
        const Prediction other = predict(smallDesign("gpipe"));
        const std::string message = errorOf([&] { reader.timeline(other.program, 0); });
        QVERIFY2(message.find("where it ran") != std::string::npos, message.c_str());
    }

    void aTraceFitsItsDesignWhateverTheCosts()
    {
        // Other costs interleave the devices differently in the global sequence; no device's order changes.
        Design design = smallDesign("zb-h1", 4, 8);
        const Prediction before = predict(design);
        const std::string path = m_folder / "costs.db";
        TraceWriter writer(path, design, before.program, smallHeader());
        writer.append(recordsOf(before.program, before.timeline, 0, 0));
        writer.append(StepRecord{0, 0, before.metrics.makespan, 0});
        writer.commit();
        design.costs.stages[1].forward = 7'000'000;
        design.costs.link.latency = 3'000'000;
        const Prediction after = predict(design);
        const Timeline timeline = TraceReader(path).timeline(after.program, 0);
        bool moved = false;
        for (TaskId id = 0; id < after.program.tasks.size(); ++id) {
            const auto label = after.program.label(id);
            moved = moved || label != before.program.label(id);
            for (TaskId other = 0; other < before.program.tasks.size(); ++other)
                if (before.program.label(other) == label)
                    QCOMPARE(timeline.start[id], before.timeline.start[other]);
        }
        QVERIFY(moved);
    }

    /// Blocking transfers hold their devices up, so it counts between which blocks they stand.
    void blockingTransfersInAnotherOrderAreAnotherProgram()
    {
        const auto ordersOf = [](const Program& program) {
            std::string text;
            for (const Program::Device& device : program.devices)
                for (const Instruction& instruction : device.instructions)
                    if (instruction.kind == InstructionKind::Compute || instruction.kind == InstructionKind::Send
                        || instruction.kind == InstructionKind::Receive)
                        text += program.label(instruction.task) + ";";
            return text;
        };
        int alike = 0, unlike = 0;
        for (const char* family : {"1f1b", "interleaved-1f1b", "zb-v", "chimera", "zb-h2"}) {
            std::vector<Design> designs;
            for (const Nanoseconds latency : {0, 300'000, 900'000, 4'000'000}) {
                designs.push_back(smallDesign(family, 4, 8));
                designs.back().costs.link.latency = latency;
                designs.back().costs.communication = Communication::Blocking;
            }
            const Prediction recorded = predict(designs.front());
            const std::string path = m_folder / (std::string("blocking ") + family + ".db").c_str();
            {
                TraceWriter writer(path, designs.front(), recorded.program, smallHeader());
                writer.append(recordsOf(recorded.program, recorded.timeline, 0, 0));
                writer.append(StepRecord{0, 0, recorded.metrics.makespan, 0});
                writer.finish({0, 0, 0, 0}, 0, "{}");
            }
            const TraceReader reader(path);
            for (const Design& design : designs) {
                const Program program = predict(design).program;
                const bool same = ordersOf(program) == ordersOf(recorded.program);
                ++(same ? alike : unlike);
                const std::string refused = errorOf([&] { reader.timeline(program, 0); });
                QVERIFY2(refused.empty() == same, refused.c_str());
            }
        }
        QVERIFY(alike > 4);
        QVERIFY(unlike > 1);
    }

    void aFinishedTraceOpensWhereNothingCanBeWritten()
    {
        if (geteuid() == 0)
            QSKIP("root may write everywhere");
        const std::string folder = m_folder / "read-only";
        std::filesystem::create_directory(folder);
        std::filesystem::copy_file(write("kept.db", 2, true), folder + "/kept #1.db");
        QFile::setPermissions(QString::fromStdString(folder), QFile::ReadOwner | QFile::ExeOwner);
        QCOMPARE(TraceReader(folder + "/kept #1.db").steps().size(), std::size_t{2});
        QFile::setPermissions(QString::fromStdString(folder), QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
    }

    void aGrowingTraceHasALogAndAFinishedOneIsASingleFile()
    {
        const auto modeOf = [](const std::string& path) {
            return SQLite::Database(path).execAndGet("PRAGMA journal_mode").getString();
        };
        QCOMPARE(modeOf(write("unfinished.db", 2, false)), std::string("wal"));
        const std::string finished = write("ended.db", 2, true);
        QCOMPARE(modeOf(finished), std::string("delete"));
        QVERIFY(!std::filesystem::exists(finished + "-wal"));
    }

    void theTablesNameWhatTheyHold()
    {
        const std::string path = write("tables.db", 2, true);
        SQLite::Database database(path);
        QCOMPARE(database.execAndGet("PRAGMA user_version").getInt(), traceschema::version);
        QCOMPARE(database.execAndGet("SELECT value FROM META WHERE name = 'schemaVersion'").getInt(),
                 traceschema::version);
        QCOMPARE(database
                     .execAndGet("SELECT label FROM TASKS WHERE kind = 'compute' AND op = 'F' AND stage = 0 "
                                 "AND microbatch = 1")
                     .getString(),
                 std::string("F0.1"));
        QCOMPARE(database.execAndGet("SELECT count(*) FROM RECORDS JOIN TASKS USING (taskId) WHERE step = 1").getInt(),
                 static_cast<int>(m_prediction.program.tasks.size()));
    }
};

PIPEWRIGHT_TEST(TestTraceStore, QCoreApplication)
#include "tst_tracestore.moc"
