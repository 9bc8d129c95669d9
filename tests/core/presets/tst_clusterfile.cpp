// SPDX-License-Identifier: GPL-3.0-or-later
// Clusters in files of their own, which are named where a preset would be.
#include "core/base/diagnostic.h"
#include "core/base/textfile.h"
#include "core/presets/clusterfile.h"
#include "core/presets/presets.h"
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
