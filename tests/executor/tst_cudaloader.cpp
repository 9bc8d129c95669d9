// SPDX-License-Identifier: GPL-3.0-or-later
// What is said for every combination of driver and plugin, present, missing, old or broken; with stand-ins, so
// that it is the same on every machine.
#include "executor/cuda/loader.h"

#include <QFile>
#include <QTemporaryDir>
#include <QTest>

using namespace pipewright;

namespace {

std::string standIn(const QString& name)
{
    return name.isEmpty() ? std::string("/nowhere/libcuda.so.1")
                          : QString("%1/%2.so").arg(PIPEWRIGHT_STAND_INS, name).toStdString();
}

} // namespace

class TestCudaLoader : public QObject {
    Q_OBJECT

private slots:
    void everythingMissingIsNamed_data()
    {
        QTest::addColumn<QString>("driver");
        QTest::addColumn<QString>("plugin");
        QTest::addColumn<QString>("reason"); // empty: it works
        QTest::newRow("all there") << "driver_good"
                                   << "plugin_good"
                                   << "";
        QTest::newRow("no driver") << ""
                                   << "plugin_good"
                                   << "no NVIDIA driver was found";
        QTest::newRow("no driver, no plugin") << ""
                                              << ""
                                              << "no NVIDIA driver was found";
        QTest::newRow("toolkit without driver") << "driver_stub"
                                                << "plugin_good"
                                                << "the toolkit's stand-in, not a driver";
        QTest::newRow("old driver") << "driver_old"
                                    << "plugin_good"
                                    << "the NVIDIA driver is for CUDA 12.4, and 13.0 is needed";
        QTest::newRow("driver without GPU") << "driver_nogpu"
                                            << "plugin_good"
                                            << "the driver finds no GPU";
        QTest::newRow("driver without permission") << "driver_unknown"
                                                   << "plugin_good"
                                                   << "is a GPU passed into this container?";
        QTest::newRow("driver and module differ") << "driver_mixed"
                                                  << "plugin_good"
                                                  << "driver and kernel module have different versions";
        QTest::newRow("not a driver") << "plugin_good"
                                      << "plugin_good"
                                      << "is no NVIDIA driver";
        QTest::newRow("plugin missing") << "driver_good"
                                        << "plugin_absent"
                                        << "the CUDA plugin cannot be opened";
        QTest::newRow("plugin of another program") << "driver_good"
                                                   << "plugin_foreign"
                                                   << "is no CUDA plugin of Pipewright";
        QTest::newRow("plugin of an old version") << "driver_good"
                                                  << "plugin_old"
                                                  << "it is of version 0, and this program is of version 1";
        QTest::newRow("plugin of another build") << "driver_good"
                                                 << "plugin_short"
                                                 << "they are of different builds";
        QTest::newRow("plugin with a hole") << "driver_good"
                                            << "plugin_hole"
                                            << "function 15 of its table is missing";
        QTest::newRow("plugin that finds nothing") << "driver_good"
                                                   << "plugin_nogpu"
                                                   << "finds no GPU it can use: there is none";
    }
    void everythingMissingIsNamed()
    {
        QFETCH(QString, driver);
        QFETCH(QString, plugin);
        QFETCH(QString, reason);
        const CudaStatus status = probeCuda({.driver = standIn(driver), .plugin = standIn(plugin)});
        const QString said = QString::fromStdString(status.reason);
        QCOMPARE(status.table == nullptr, !reason.isEmpty());
        QVERIFY2(reason.isEmpty() ? said.isEmpty() : said.contains(reason), qPrintable(said));
        if (!reason.isEmpty())
            return;
        QCOMPARE(status.devices.size(), std::size_t{1});
        QCOMPARE(std::string(status.devices.front().name), std::string("pretended GPU"));
        QCOMPARE(status.driverVersion, 13000);
        QCOMPARE(status.libraries.size(), std::size_t{3});
    }

    void aFileThatIsNoLibraryIsSaidToBeNone()
    {
        const QTemporaryDir folder;
        QFile file(folder.filePath("pipewright_cuda.so"));
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write("not at all");
        file.close();
        const CudaStatus status =
            probeCuda({.driver = standIn("driver_good"), .plugin = file.fileName().toStdString()});
        QVERIFY2(status.reason.find("is no shared library") != std::string::npos, status.reason.c_str());
    }

    void eachLibraryIsLookedForAlone()
    {
        const QTemporaryDir folder;
        QFile file(folder.filePath("libnccl.so.2"));
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.close();
        for (const CudaLibrary& library : findCudaLibraries({folder.path().toStdString()}))
            if (library.name == "NCCL")
                QCOMPARE(library.path, file.fileName().toStdString()); // the named folder comes first
    }

    /// Of this build, if it has one: it must open where there is neither driver nor any NVIDIA library.
    void thePluginItselfFitsAndSaysThatThereIsNoGpu()
    {
        const std::string plugin = PIPEWRIGHT_CUDA_PLUGIN;
        if (plugin.empty() || !QFile::exists(QString::fromStdString(plugin)))
            QSKIP("this build has no CUDA plugin");
        const CudaStatus status = probeCuda({.driver = "/nowhere", .plugin = plugin, .needDriver = false});
        QVERIFY(!status.buildInfo.empty()); // it opened and its table fits
        if (!status.table)
            QVERIFY2(status.reason.find("finds no GPU it can use") != std::string::npos, status.reason.c_str());
    }
};

QTEST_GUILESS_MAIN(TestCudaLoader)
#include "tst_cudaloader.moc"
