// SPDX-License-Identifier: GPL-3.0-or-later
// `devices --measure` on stand-in GPUs of several kinds of machine: rates, latencies, bandwidths, and the wires and
// buses of links, in the cluster file that designs use.
#include "standin/libraries/standinmachine.h"
#include "testmain.h"

#include <QTest>

using namespace pipewright;
using namespace pipewright::test;

class TestStandInCluster : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void theMachineIsMeasuredAsAClusterThatDesignsUse_data()
    {
        QTest::addColumn<QString>("machine"); // GPUs, whether they reach each other, and how they are connected
        QTest::addColumn<int>("devices");
        QTest::addColumn<QString>("way");
        QTest::newRow("GPUs") << "2 1 nvlink" << 2 << "NVLink";
        QTest::newRow("GPUs below a switch") << "2 1 pcie" << 2 << "PCIe switch";
        QTest::newRow("GPUs that do not reach each other") << "2 0 pcie" << 2 << "host memory";
        QTest::newRow("slices") << "1 1 pcie" << 4 << "memory of one GPU";
    }
    void theMachineIsMeasuredAsAClusterThatDesignsUse()
    {
        QFETCH(QString, machine);
        QFETCH(int, devices);
        QFETCH(QString, way);
        StandInMachine here(machine.section(' ', 0, 0).toInt());
        here.set("PEERS", machine.section(' ', 1, 1)).set("WIRES", machine.section(' ', 2));
        const QString words =
            QString("devices --measure --backend cuda --devices %1 --json --progress none -o ").arg(devices);
        const StandInOutcome measured = here.run(words + "mine.json");
        QVERIFY2(measured.code == 0, qPrintable(measured.errors));
        QVERIFY2(measured.faults().isEmpty(), qPrintable(measured.faults()));
        QCOMPARE(measured.json["devices"].toArray().size(), devices);
        for (const auto& each : measured.json["devices"].toArray()) {
            for (const char* rate : {"flops_alone", "flops_together", "copied_bytes_per_second"})
                QVERIFY2(each.toObject()[rate].toDouble() > 0, rate);
            // Slices have no memory of their own: they share the GPU's.
            QCOMPARE(each.toObject()["memory_bytes"].toDouble(), devices == 4 ? 8589934592.0 / 4 : 8589934592.0);
            QCOMPARE(each.toObject()["name"].toString().contains("32 multiprocessors"), devices == 4);
        }
        const QJsonArray links = measured.json["links"].toArray();
        QCOMPARE(links.size(), devices * (devices - 1) / 2);
        for (const auto& each : links) {
            QCOMPARE(each.toObject()["way"].toString(), way);
            QVERIFY(each.toObject()["latency_ns"].toDouble() > 0 && each.toObject()["bytes_per_second"].toDouble() > 0);
        }
        QCOMPARE(measured.json["crowds"].toArray().size(), devices == 4 ? 3 : 0);
        if (devices == 2)
            QVERIFY(links[0].toObject()["bus"].toString().isEmpty()); // no other link shares it
        // A failure during measurement is reported, and nothing hangs.
        for (const char* fault : {"allocate:7", "launch:2", "product:3"}) {
            if (devices == 4)
                break;
            const StandInOutcome failed = here.set("FAIL", fault).run(words + "other.json", 60);
            QCOMPARE(failed.code, 2);
            QVERIFY2(failed.errors.contains("GPU 0") || failed.errors.contains("GPU 1"), qPrintable(failed.errors));
            QVERIFY2(failed.faults().isEmpty(), qPrintable(failed.faults()));
            QVERIFY(!QFile::exists(here.path("other.json")));
        }
        here.set("FAIL", "");
        QVERIFY(
            here.make("1f1b", devices, "--cluster mine.json --model byte-gpt-small --sequence 8 --microbatch-size 1"));
        QFile file(here.path("design.json"));
        QVERIFY(file.open(QIODevice::ReadOnly));
        const QJsonArray gpus =
            QJsonDocument::fromJson(file.readAll()).object()["cluster"].toObject()["gpus"].toArray();
        QCOMPARE(gpus.size(), devices);
        QCOMPARE(gpus[1].toObject()["gpu"].toInt(), devices == 4 ? 0 : 1);
        if (devices == 4) {
            const StandInOutcome ran = here.run(onGpus + "1 --no-gradient-check");
            QVERIFY2(ran.code == 0 && ran.faults().isEmpty(), qPrintable(ran.errors + ran.faults()));
            QCOMPARE(ran.most("green contexts"), 4.0);
        }
    }

    void whatGpusShareIsToldApart_data()
    {
        QTest::addColumn<QString>("wires");
        QTest::addColumn<QStringList>("ways"); // 0 and 1, 0 and 2, 0 and 4
        const QString nvlink = "NVLink", bridge = "PCIe host bridge", node = "host bridges of one NUMA node";
        QTest::newRow("all by NVLink") << "nvlink" << QStringList{nvlink, nvlink, nvlink};
        QTest::newRow("pairs by NVLink") << "pairs" << QStringList{nvlink, bridge, bridge};
        QTest::newRow("switches") << "pcie" << QStringList{"PCIe switch", node, "link between NUMA nodes"};
    }
    /// In the cluster's file, which designs use.
    void whatGpusShareIsToldApart()
    {
        QFETCH(QString, wires);
        QFETCH(QStringList, ways);
        StandInMachine here(5);
        const StandInOutcome measured =
            here.set("WIRES", wires)
                .run("devices --measure --backend cuda --devices 5 --json --progress none -o mine.json");
        QVERIFY2(measured.code == 0 && measured.faults().isEmpty(), qPrintable(measured.errors + measured.faults()));
        QFile file(here.path("mine.json"));
        QVERIFY(file.open(QIODevice::ReadOnly));
        const QJsonObject cluster = QJsonDocument::fromJson(file.readAll()).object()["cluster"].toObject();
        const auto linkOf = [&cluster](int from, int to) {
            for (const auto& each : cluster["links"].toArray())
                if (each.toObject()["from"].toInt() == from && each.toObject()["to"].toInt() == to)
                    return each.toObject();
            return cluster["link"].toObject();
        };
        const int others[] = {1, 2, 4};
        for (int i = 0; i < 3; ++i)
            for (const auto& link : {linkOf(0, others[i]), linkOf(others[i], 0)})
                QCOMPARE(link["name"].toString(), ways[i] + ", measured");
        // A bus is of one kind of wire: none has NVLink and PCIe.
        for (const auto& each : measured.json["links"].toArray()) {
            const QString bus = each.toObject()["bus"].toString();
            QVERIFY2(bus.isEmpty() || bus.startsWith(each.toObject()["wire"].toString()), qPrintable(bus));
        }
    }

    /// A driver without NVML: measurements are the same, the kinds of links are unknown, and a message says so.
    void withoutNvmlWaysHaveNoNames()
    {
        StandInMachine here(2);
        const StandInOutcome measured =
            here.set("WIRES", "none")
                .run("devices --measure --backend cuda --devices 2 --json --progress none -o m.json");
        QVERIFY2(measured.code == 0, qPrintable(measured.errors));
        QVERIFY2(measured.errors.contains("what connects the GPUs is not known"), qPrintable(measured.errors));
        QCOMPARE(measured.json["links"].toArray()[0].toObject()["way"].toString(), QString("GPU to GPU"));
        QVERIFY(measured.json["links"].toArray()[0].toObject()["bytes_per_second"].toDouble() > 0);
    }
};

PIPEWRIGHT_TEST(TestStandInCluster, QCoreApplication)
#include "tst_standincluster.moc"
