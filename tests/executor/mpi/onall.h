// SPDX-License-Identifier: GPL-3.0-or-later
// Ranks as threads of one process, each with a backend of its own, and the required behaviour of every backend when a
// rank fails.
#pragma once

#include "core/base/diagnostic.h"
#include "executor/mpi/mesh.h"
#include "executor/run/run.h"
#include "makers/localmeshes.h"
#include "traces/store/tracereader.h"

#include <QTemporaryDir>
#include <QTest>

#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace pipewright::test {

inline constexpr Nanoseconds rankDeadline = 20'000'000'000;
using Meshes = std::vector<std::unique_ptr<Mesh>>;

/// Runs `action(rank)` on a thread per rank, and returns what each threw.
template<typename Action>
std::vector<std::string> onAll(int ranks, Action action)
{
    std::vector<std::string> failures(static_cast<std::size_t>(ranks));
    std::vector<std::thread> threads;
    for (int r = 0; r < ranks; ++r)
        threads.emplace_back([&, r] {
            try {
                action(r);
            } catch (const Error& error) {
                failures[r] = error.what();
            }
        });
    for (std::thread& thread : threads)
        thread.join();
    return failures;
}

inline void faultsOfARank()
{
    QTest::addColumn<int>("kind");
    QTest::addColumn<QString>("culprit");
    QTest::newRow("dies") << static_cast<int>(Fault::Kind::Dies) << "device 1 stopped at instruction 4";
    QTest::newRow("throws") << static_cast<int>(Fault::Kind::Throws) << "device 1 failed at instruction 4";
    QTest::newRow("a link stalls") << static_cast<int>(Fault::Kind::LinkStalls) << "no device has made progress";
}

/// Whatever happens to one rank, all end, and the reporting rank names it and keeps the trace so far.
/// `backendOf`(meshes, rank) makes a rank's backend; `patience`: longer than any of its blocks.
template<typename BackendOf>
void faultsEndTheRun(const Design& design, Nanoseconds patience, BackendOf backendOf)
{
    QFETCH(int, kind);
    QFETCH(QString, culprit);
    const QTemporaryDir folder;
    RunOptions options;
    options.steps = 4;
    options.runtime.deadline = patience;
    options.runtime.faults = {{static_cast<Fault::Kind>(kind), 1, 3, 4, 0}};
    options.trace = folder.filePath("broken.db").toStdString();
    auto meshes = createLocalMeshes(3);
    const auto failures = onAll(3, [&](int r) {
        RunOptions own = options;
        own.createBackend = backendOf(meshes, r);
        run(design, own);
    });
    for (const std::string& failure : failures) {
        QVERIFY2(failure.find("step 3: error:") != std::string::npos, failure.c_str());
        QVERIFY2(failure.find("device 1") != std::string::npos, failure.c_str());
    }
    QVERIFY2(failures[0].find(culprit.toStdString()) != std::string::npos, failures[0].c_str());
    const TraceReader reader(options.trace);
    QVERIFY(!reader.complete());
    QCOMPARE(reader.steps().size(), std::size_t{3});
}

} // namespace pipewright::test
