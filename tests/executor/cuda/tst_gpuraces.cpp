// SPDX-License-Identifier: GPL-3.0-or-later
// That the thread sanitizer, under which the CUDA plugin runs on stand-in GPUs, finds what it is there for: races of
// the plugin's host code, and of streams that nothing orders. Each is planted in a process of its own, which it ends.
#include "executor/cuda/standingpus.h"
#include "sanitized.h"
#include "testmain.h"

#include <QCoreApplication>
#include <QProcess>
#include <QProcessEnvironment>
#include <QTest>

#include <thread>

using namespace pipewright;

namespace {
constexpr const char* planting = "PIPEWRIGHT_PLANTED_RACE";
}

class TestGpuRaces : public QObject {
    Q_OBJECT

private slots:
    void initTestCase()
    {
        NEEDS_STAND_IN_GPUS;
        if (!threadSanitized)
            QSKIP("only the thread sanitizer sees races");
    }

    void plantedRacesAreFound_data()
    {
        QTest::addColumn<QByteArray>("race");
        QTest::addColumn<QByteArray>("found"); ///< where
        QTest::addRow("of the plugin's host code") << QByteArray("recorder") << QByteArray("plugin/recorder.cpp");
        QTest::addRow("of streams that nothing orders") << QByteArray("streams") << QByteArray("Stream::run");
    }
    void plantedRacesAreFound()
    {
        QFETCH(QByteArray, race);
        QFETCH(QByteArray, found);
        QProcess other;
        QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
        environment.insert(planting, race);
        if (race == "streams")
            environment.insert("PIPEWRIGHT_STANDIN_FAIL", "nowait:1"); // no stream waits for an event
        other.setProcessEnvironment(environment);
        other.setProcessChannelMode(QProcess::MergedChannels);
        other.start(QCoreApplication::applicationFilePath(), {"race"});
        QVERIFY(other.waitForFinished(120'000));
        const QByteArray said = other.readAll();
        QVERIFY2(said.contains("ThreadSanitizer: data race") && said.contains(found), said.constData());
    }

    /// What the other process does.
    void race()
    {
        const QByteArray planted = qgetenv(planting);
        if (planted.isEmpty())
            QSKIP("plantedRacesAreFound() starts it");
        if (planted == "streams") {
            run(test::smallGpt("1f1b"), test::onStandInGpus(CudaTransport::Copy));
            return;
        }
        // Of its recorder the plugin expects that one thread starts it.
        const std::string cupti = test::standInLibrary("CUPTI");
        const auto start = [&cupti] { test::standInTable().startActivities(cupti.c_str()); };
        test::standInTable();
        std::thread second(start);
        start();
        second.join();
    }
};

PIPEWRIGHT_TEST(TestGpuRaces, QCoreApplication)
#include "tst_gpuraces.moc"
