// SPDX-License-Identifier: GPL-3.0-or-later
// Clusters in files of their own, which are named where a preset would be.
#include "core/base/diagnostic.h"
#include "core/base/textfile.h"
#include "core/presets/clusterfile.h"
#include "core/presets/presets.h"
#include "core/rates/operationrates.h"
#include "testmain.h"

#include <QTemporaryDir>
#include <QTest>

using namespace pipewright;

class TestClusterFile : public QObject {
    Q_OBJECT

private:
    QTemporaryDir m_folder;

    std::string write(const char* name, const std::string& text) const
    {
        const std::string path = m_folder.filePath(QString::fromUtf8(name)).toStdString();
        writeFileAtomically(path, text, true);
        return path;
    }

    static Cluster threeDevices()
    {
        Cluster cluster;
        cluster.name = "mine";
        cluster.devices.assign(3, DeviceSpec{"thread", Bytes{1} << 30, 5e10, 1e10, 0.75});
        cluster.link = {"measured", 4'321, 7.5e9, "shared"};
        cluster.linkOfPair[{0, 1}] = {"measured", 9'000, 1e9, "shared"};
        cluster.linkOfPair[{2, 0}] = {"measured", 9'000, 2e9, "shared"};
        return cluster;
    }

    static std::string faultOf(const std::string& path, int devices = 0)
    {
        try {
            (void)PresetLibrary().cluster(path, devices);
        } catch (const Error& error) {
            return error.what();
        }
        return {};
    }

private Q_SLOTS:
    void whatWasWrittenIsReadBackWhereAPresetIsNamed()
    {
        const std::string path = write("mine.json", clusterFileText(threeDevices(), "My machine", "measured"));
        QVERIFY(PresetLibrary().cluster(path) == threeDevices());
    }

    void fewerDevicesAreTheFirstOnesAndMoreAreRefused()
    {
        const std::string path = write("few.json", clusterFileText(threeDevices(), "", ""));
        const Cluster two = PresetLibrary().cluster(path, 2);
        QCOMPARE(two.devices.size(), std::size_t{2});
        QCOMPARE(two.linkOfPair.size(), std::size_t{1});
        QVERIFY(two.linkOfPair.contains({0, 1}));
        QVERIFY(faultOf(path, 4).find("it has 3 devices, and 4 are wanted") != std::string::npos);
    }

    void ratesStandBesideTheFileThatNamesThem()
    {
        const std::string table = R"({"title": "t", "origin": "o", "tables": [{"operation": "memory",
"layout": "elementwise", "peak": 1e9, "source": "s", "when": "w", "dims": [], "shapes": [[0.5]]}]})";
        const std::string rates = write("mine.rates.json", table);
        Cluster named = threeDevices();
        OperationRates only;
        only.name = "mine.rates.json";
        for (DeviceSpec& device : named.devices)
            device.rates = std::make_shared<const OperationRates>(only);
        const Cluster read = PresetLibrary().cluster(write("rated.json", clusterFileText(named, "", "")));
        QVERIFY(read.devices[0].rates && read.devices[0].rates == read.devices[2].rates); // read once
        QCOMPARE(read.devices[0].rates->name, rates); // its whole path, so that designs find it from elsewhere
        QCOMPARE(read.devices[0].rates->tables.size(), std::size_t{1});
        // From a design, or a cluster in another folder, by that path.
        QVERIFY(PresetLibrary().cluster(write("again.json", clusterFileText(read, "", ""))) == read);
        QVERIFY(QFile::remove(QString::fromStdString(rates)));
        const std::string fault = faultOf(m_folder.filePath("rated.json").toStdString());
        QVERIFY2(fault.find(rates) != std::string::npos && fault.find("leave \"rates\" out") != std::string::npos,
                 fault.c_str());
    }

    void faultsAreNamedWithTheirPlace()
    {
        QVERIFY(faultOf(write("none.json", "{}\n")).find("cluster") != std::string::npos);
        QVERIFY(faultOf(write("key.json", "{\n\"colour\": 1,\n\"cluster\": {\"name\": \"a\", \"devices\": [], "
                                          "\"link\": {}}}\n"))
                    .find("key.json:2")
                != std::string::npos);
        QVERIFY(!faultOf("nowhere.json").empty());
    }
};

PIPEWRIGHT_TEST(TestClusterFile, QCoreApplication)
#include "tst_clusterfile.moc"
