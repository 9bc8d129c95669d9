// SPDX-License-Identifier: GPL-3.0-or-later
// A machine measured through a backend, and what becomes of it as a cluster. How fast this one is decides nothing.
#include "core/base/diagnostic.h"
#include "errorof.h"
#include "executor/host/hostbackend.h"
#include "executor/machine/machinemeasure.h"
#include "fewthreads.h"
#include "testmain.h"

#include <QTest>

using namespace pipewright;

namespace {

MachineMeasureOptions quick()
{
    MachineMeasureOptions options;
    options.productSize = 32;
    options.copyBytes = 4096;
    options.smallMessage = 64;
    options.largeMessage = 65'536;
    options.atLeast = 0;
    options.repetitions = 3;
    return options;
}

} // namespace

class TestMachineMeasure : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void everyDeviceAndEveryPairIsMeasured()
    {
        const auto backend = createHostBackend(4, Bytes{64} << 20);
        MachineMeasureOptions options = quick();
        std::vector<double> fractions;
        std::string last;
        options.progress = [&](double fraction, const std::string& what) {
            fractions.push_back(fraction);
            last = what;
        };
        const MachineMeasurement machine = measureMachine(*backend, options);
        QCOMPARE(machine.devices.size(), std::size_t{4});
        for (const MachineMeasurement::Device& device : machine.devices) {
            QVERIFY(device.alone > 0 && device.together > 0 && device.copying > 0);
            QCOMPARE(device.memory, Bytes{64} << 20);
            QVERIFY(!device.name.empty());
        }
        QCOMPARE(machine.pairs.size(), std::size_t{6});
        for (const MachineMeasurement::Pair& pair : machine.pairs)
            QVERIFY(pair.first < pair.second && pair.latency > 0 && pair.bandwidth > 0);
        QCOMPARE(machine.crowds.size(), std::size_t{3}); // each two pairs without a device in common
        QVERIFY(machine.crowding() > 0);
        QCOMPARE(fractions.size(), std::size_t{4 + 2 + 6 + 3});
        QVERIFY(std::is_sorted(fractions.begin(), fractions.end()) && fractions.back() < 1);
        QCOMPARE(last, std::string("messages between 0 and 3 beside those between 1 and 2"));
    }

    void aDeviceWithoutAThreadEndsTheMeasurement()
    {
        if (!test::canLimitThreads)
            QSKIP("a sanitizer takes the address space");
        const auto backend = createHostBackend(4, Bytes{1} << 20);
        MachineMeasureOptions options = quick();
        std::unique_ptr<test::FewThreads> few;
        options.progress = [&](double, const std::string& what) {
            if (what == "products on all devices together")
                few = std::make_unique<test::FewThreads>();
        };
        const std::string error = test::errorOf([&] { measureMachine(*backend, options); });
        few.reset();
        QVERIFY2(error.find("its thread cannot be started") != std::string::npos, error.c_str());
    }

    void twoDevicesSayNothingAboutWhatLinksShare()
    {
        const auto backend = createHostBackend(2);
        const MachineMeasurement machine = measureMachine(*backend, quick());
        QCOMPARE(machine.crowding(), 0.0);
        QVERIFY(!machine.linksShareAWire());
        QCOMPARE(machine.pairs.size(), std::size_t{1});
    }

    /// A look at the clock costs nothing beside it.
    void whatIsTimedGrowsUntilItTakesLongEnough()
    {
        const auto backend = createHostBackend(1, Bytes{64} << 20);
        MachineMeasureOptions options = quick();
        options.atLeast = 1'000'000'000'000; // nothing does
        options.mostProductSize = 64;
        options.mostCopyBytes = 8192;
        options.repetitions = 1;
        QCOMPARE(measureMachine(*backend, options).devices[0].productSize, 64);
        options.atLeast = 0;
        QCOMPARE(measureMachine(*backend, options).devices[0].productSize, 32);
    }

    void measuringCanBeCancelled()
    {
        const auto backend = createHostBackend(2);
        std::atomic<bool> cancel = false;
        MachineMeasureOptions options = quick();
        options.cancel = &cancel;
        int steps = 0;
        options.progress = [&](double, const std::string&) { cancel = ++steps == 3; };
        bool thrown = false;
        try {
            (void)measureMachine(*backend, options);
        } catch (const Error& error) {
            thrown = std::string(error.what()).find("cancelled") != std::string::npos;
        }
        QVERIFY(thrown);
        QCOMPARE(steps, 3);
    }

    void aDeviceWithoutTheMemoryIsAnErrorAndNoHang()
    {
        const auto backend = createHostBackend(2, 1024);
        QVERIFY_THROWS_EXCEPTION(Error, (void)measureMachine(*backend, quick()));
    }

    void theClusterHasWhatWasAchieved()
    {
        MachineMeasurement machine;
        for (int d = 0; d < 4; ++d)
            machine.devices.push_back({"thread " + std::to_string(d), 1 << 20, 100e9, d == 3 ? 40e9 : 80e9, 10e9});
        for (int a = 0; a < 4; ++a)
            for (int b = a + 1; b < 4; ++b)
                machine.pairs.push_back({a, b, 5'000, a == 2 && b == 3 ? 2e9 : 10e9, {}});
        // 0: 0 and 1; 1: 0 and 2; 2: 0 and 3; 3: 1 and 2; 4: 1 and 3; 5: 2 and 3
        machine.crowds = {{0, 5, 1.9}, {1, 4, 1.8}, {2, 3, 1.7}};
        const Cluster cluster = clusterOf(machine, "mine");
        QCOMPARE(cluster.name, std::string("mine"));
        QCOMPARE(cluster.devices[0].peakFlops * cluster.devices[0].efficiency, 80e9);
        QCOMPARE(cluster.devices[3].peakFlops * cluster.devices[3].efficiency, 40e9);
        QCOMPARE(cluster.devices[0].memoryBandwidth, 10e9);
        QCOMPARE(cluster.devices[0].memory, Bytes{1 << 20});
        QCOMPARE(cluster.link.name, std::string("host memory, measured"));
        QCOMPARE(cluster.link.latency, 5'000);
        QCOMPARE(cluster.link.bandwidth, 10e9);
        QCOMPARE(cluster.link.bus, std::string("host memory"));
        QCOMPARE(cluster.linkOfPair.size(), std::size_t{2}); // both ways between 2 and 3
        QCOMPARE(cluster.linkOfPair.at({3, 2}).bandwidth, 2e9);
        QCOMPARE(cluster.linkOfPair.at({3, 2}).bus, std::string("host memory"));
        for (MachineMeasurement::Crowd& crowd : machine.crowds)
            crowd.factor = 1.1;
        QVERIFY(clusterOf(machine, "mine").link.bus.empty());
        // Two switches, of two devices each: what goes from one to the other meets on the way.
        machine.crowds[1].factor = machine.crowds[2].factor = 2;
        machine.pairs[0].way.name = "PCIe switch";
        const Cluster switches = clusterOf(machine, "mine");
        QVERIFY(switches.link.bus.empty());
        QCOMPARE(switches.linkOfPair.at({0, 1}).name, std::string("PCIe switch, measured"));
        QVERIFY(switches.linkOfPair.at({0, 1}).bus.empty());
        QCOMPARE(switches.linkOfPair.at({0, 2}).bus, switches.linkOfPair.at({3, 1}).bus);
        QCOMPARE(switches.linkOfPair.at({0, 3}).bus, switches.linkOfPair.at({1, 2}).bus);
        QVERIFY(!switches.linkOfPair.at({0, 2}).bus.empty());
        QVERIFY(switches.linkOfPair.at({0, 2}).bus != switches.linkOfPair.at({0, 3}).bus);
    }

    /// However long messages took beside each other: what goes by NVLink is not on the PCIe bus.
    void wiresOfDifferentKindsAreNoBus()
    {
        MachineMeasurement machine;
        for (int d = 0; d < 4; ++d)
            machine.devices.push_back({"GPU " + std::to_string(d), 1 << 20, 100e9, 80e9, 10e9});
        const LinkWay nvlink{"NVLink", "NVLink"}, bridge{"PCIe host bridge", "PCIe"},
            nodes{"link between nodes", "PCIe"};
        for (int a = 0; a < 4; ++a)
            for (int b = a + 1; b < 4; ++b)
                machine.pairs.push_back({a, b, 5'000, 10e9,
                                         a / 2 == b / 2     ? nvlink
                                         : a == 0 && b == 3 ? nodes
                                                            : bridge});
        machine.crowds = {{0, 5, 1.9}, {1, 4, 1.8}, {2, 3, 1.7}};
        machine.pairs[5].way = bridge; // beside the NVLink of 0 and 1
        const Cluster cluster = clusterOf(machine, "mine");
        const auto link = [&cluster](int a, int b) {
            const auto found = cluster.linkOfPair.find({a, b});
            return found == cluster.linkOfPair.end() ? cluster.link : found->second;
        };
        QCOMPARE(link(0, 1).name, std::string("NVLink, measured"));
        QCOMPARE(link(0, 1).bus, std::string());
        QCOMPARE(link(2, 3).bus, std::string());
        QCOMPARE(link(0, 2).bus, std::string("PCIe 1"));
        QCOMPARE(link(1, 3).bus, std::string("PCIe 1"));
        QCOMPARE(link(0, 3).name, std::string("link between nodes, measured"));
        QCOMPARE(link(1, 2).bus, std::string("PCIe 2"));
        QCOMPARE(link(0, 3).bus, std::string("PCIe 2"));
    }
};

PIPEWRIGHT_TEST(TestMachineMeasure, QCoreApplication)
#include "tst_machinemeasure.moc"
