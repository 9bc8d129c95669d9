// SPDX-License-Identifier: GPL-3.0-or-later
// A trace that is lost amid the run: it is told while the run goes on, and the run's numbers are whole.
#include "executor/run/run.h"
#include "makers/designs.h"
#include "testmain.h"
#include "traces/store/tracereader.h"

#include <QTemporaryDir>
#include <QTest>

#include <nlohmann/json.hpp>

#include <condition_variable>
#include <csignal>
#include <filesystem>
#include <mutex>

#include <sys/resource.h>

using namespace pipewright;

namespace {

constexpr int steps = 6, lossAfter = 3;

/// What a run tells amid its steps.
class Told {
public:
    void tell(const Diagnostics& now)
    {
        const std::lock_guard lock(m_mutex);
        m_all.insert(m_all.end(), now.begin(), now.end());
        m_came.notify_all();
    }
    bool waitForOne()
    {
        std::unique_lock lock(m_mutex);
        return m_came.wait_for(lock, std::chrono::seconds(60), [this] { return !m_all.empty(); });
    }
    Diagnostics all()
    {
        const std::lock_guard lock(m_mutex);
        return m_all;
    }

private:
    std::mutex m_mutex;
    std::condition_variable m_came;
    Diagnostics m_all;
};

/// No file may become larger than so many bytes; the limit that was before at the end.
class FileSizeLimit {
public:
    FileSizeLimit()
    {
        std::signal(SIGXFSZ, SIG_IGN);
        ::getrlimit(RLIMIT_FSIZE, &m_before);
    }
    ~FileSizeLimit() { ::setrlimit(RLIMIT_FSIZE, &m_before); }
    void set(rlim_t bytes) const
    {
        const rlimit limit{bytes, m_before.rlim_max};
        ::setrlimit(RLIMIT_FSIZE, &limit);
    }

private:
    rlimit m_before{};
};

} // namespace

class TestRunTrace : public QObject {
    Q_OBJECT

private:
    QTemporaryDir m_folder;

    /// Runs with `lose` after some steps, and goes on when the loss was told, which `wasTold` says.
    RunResult runLosing(const std::function<void()>& lose, Told& told, bool& wasTold)
    {
        RunOptions options;
        options.steps = steps;
        options.maths = RunOptions::Maths::Timed;
        options.trace = m_folder.filePath("lost.db").toStdString();
        options.overwriteTrace = true;
        options.tell = [&](const Diagnostics& now) { told.tell(now); };
        options.progress = [&](const RunProgress& now) {
            if (now.step == lossAfter) {
                QTest::qWait(50); // for the records to be written; without, there are fewer
                lose();
            }
            if (now.step == lossAfter + 1)
                wasTold = told.waitForOne();
        };
        return run(test::evenDesign({.transfer = 1000, .saved = 4096}, test::familySchedule("1f1b", 2, 4)), options);
    }

private Q_SLOTS:
    void aTraceThatIsRemovedIsToldAtOnceAndTheRunIsDone_data()
    {
        QTest::addColumn<bool>("moved");
        QTest::newRow("removed") << false;
        QTest::newRow("moved away") << true;
    }
    void aTraceThatIsRemovedIsToldAtOnceAndTheRunIsDone()
    {
        QFETCH(bool, moved);
        Told told;
        bool wasTold = false;
        const std::string path = m_folder.filePath("lost.db").toStdString();
        const RunResult result = runLosing(
            [&] { moved ? std::filesystem::rename(path, path + ".moved") : (void)std::filesystem::remove(path); }, told,
            wasTold);
        QVERIFY(wasTold); // before the run went on
        const Diagnostics all = told.all();
        QCOMPARE(all.size(), std::size_t{1});
        QCOMPARE(all[0].where, path);
        QVERIFY2(all[0].what.find("was removed, moved or replaced") != std::string::npos, all[0].what.c_str());
        QVERIFY2(all[0].what.find("the run goes on without it") != std::string::npos, all[0].what.c_str());
        QCOMPARE(result.stepTimes.size(), std::size_t{steps});
        QVERIFY(result.droppedRecords > 0);
        const auto report = nlohmann::json::parse(result.toJson());
        QVERIFY(report.at("trace_fault").get<std::string>().find("was removed") != std::string::npos);
        QVERIFY(!std::filesystem::exists(path));
    }

    void aFullDiskIsToldAtOnceAndTheRunIsDone()
    {
        Told told;
        bool wasTold = false;
        RunResult result;
        {
            const FileSizeLimit limit;
            result = runLosing([&] { limit.set(100); }, told, wasTold);
        }
        QVERIFY(wasTold);
        const Diagnostics all = told.all();
        QCOMPARE(all.size(), std::size_t{1});
        QVERIFY2(all[0].what.find("cannot write the trace") != std::string::npos, all[0].what.c_str());
        QVERIFY2(all[0].what.find("it holds") != std::string::npos, all[0].what.c_str());
        QCOMPARE(result.stepTimes.size(), std::size_t{steps});
        QVERIFY(result.droppedRecords > 0);
        const TraceReader reader(result.trace); // what it holds is as many steps as were told
        const std::string held = reader.steps().empty() ? "no step" : std::to_string(reader.steps().size()) + " step";
        QVERIFY2(all[0].what.find(held) != std::string::npos, all[0].what.c_str());
        QVERIFY(!reader.complete());
    }

    void aWholeTraceHasNoFault()
    {
        Told told;
        bool wasTold = true;
        const RunResult result = runLosing([&] { told.tell({{}}); }, told, wasTold);
        QCOMPARE(told.all().size(), std::size_t{1});
        QVERIFY(result.traceFault.empty());
        QVERIFY(!nlohmann::json::parse(result.toJson()).contains("trace_fault"));
        QVERIFY(TraceReader(result.trace).complete());
    }
};

PIPEWRIGHT_TEST(TestRunTrace, QCoreApplication)
#include "tst_runtrace.moc"
