// SPDX-License-Identifier: GPL-3.0-or-later
// What is said for every combination of driver and plugin, present, missing, old or broken; with stand-ins, so
// that it is the same on every machine.
#include "executor/cuda/libraryplaces.h"
#include "executor/cuda/loader.h"
#include "testmain.h"

#include <QDir>
#include <QFile>
#include <QTemporaryDir>
#include <QTest>

#ifdef PIPEWRIGHT_CUPTI
#include "executor/cuda/plugin/cuptirecords.h"

#include <cstring>
#endif

using namespace pipewright;

namespace {

std::string standIn(const QString& name)
{
    return name.isEmpty() ? std::string("/nowhere/libcuda.so.1")
                          : QString("%1/%2.so").arg(PIPEWRIGHT_STAND_INS, name).toStdString();
}

#ifdef PIPEWRIGHT_CUPTI
/// A buffer as CUPTI fills them: records of different sizes, one behind the other.
class RawBuffer {
public:
    template<typename Record>
    RawBuffer& add(CUpti_ActivityKind kind, Record record)
    {
        record.kind = kind;
        const std::size_t at = m_bytes.size();
        m_bytes.resize(at + sizeof record);
        std::memcpy(m_bytes.data() + at, &record, sizeof record);
        return *this;
    }
    plugin::CuptiRecords::Buffer buffer() { return {m_bytes.data(), m_bytes.size()}; }

private:
    std::vector<std::uint8_t> m_bytes;
};

std::size_t sizeOf(CUpti_ActivityKind kind)
{
    switch (kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: return sizeof(CUpti_ActivityKernel10);
    case CUPTI_ACTIVITY_KIND_MEMCPY: return sizeof(CUpti_ActivityMemcpy6);
    case CUPTI_ACTIVITY_KIND_MEMCPY2: return sizeof(CUpti_ActivityMemcpyPtoP4);
    case CUPTI_ACTIVITY_KIND_MEMSET: return sizeof(CUpti_ActivityMemset4);
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION: return sizeof(CUpti_ActivitySynchronization2);
    case CUPTI_ACTIVITY_KIND_OVERHEAD: return sizeof(CUpti_ActivityOverhead3);
    case CUPTI_ACTIVITY_KIND_MEMORY2: return sizeof(CUpti_ActivityMemory4);
    case CUPTI_ACTIVITY_KIND_CONTEXT: return sizeof(CUpti_ActivityContext3);
    case CUPTI_ACTIVITY_KIND_RUNTIME: return sizeof(CUpti_ActivityAPI);
    default: return sizeof(CUpti_ActivityExternalCorrelation);
    }
}

CUptiResult nextRecord(std::uint8_t* buffer, std::size_t bytes, CUpti_Activity** record)
{
    std::uint8_t* next = *record ? reinterpret_cast<std::uint8_t*>(*record) + sizeOf((*record)->kind) : buffer;
    if (next >= buffer + bytes)
        return CUPTI_ERROR_MAX_LIMIT_REACHED;
    *record = reinterpret_cast<CUpti_Activity*>(next);
    return CUPTI_SUCCESS;
}

template<typename Record>
Record timed(std::uint64_t start, std::uint64_t end, std::uint32_t correlation)
{
    Record record{};
    record.start = start;
    record.end = end;
    record.correlationId = correlation;
    return record;
}

CUpti_ActivityExternalCorrelation label(std::uint32_t correlation, std::uint64_t block,
                                        CUpti_ExternalCorrelationKind kind = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0)
{
    CUpti_ActivityExternalCorrelation record{};
    record.externalKind = kind;
    record.externalId = block;
    record.correlationId = correlation;
    return record;
}
#endif

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
                                    << "plugin_twelve"
                                    << "the NVIDIA driver is for CUDA 11.8, and 12.0 is needed";
        QTest::newRow("driver for an older CUDA") << "driver_twelve"
                                                  << "plugin_twelve"
                                                  << "";
        QTest::newRow("driver for an older CUDA than the plugin")
            << "driver_twelve"
            << "plugin_good"
            << "for CUDA 12.4, and the plugin of this installation for 13.0: install a newer driver (R580 or later), "
               "or "
               "build with a toolkit of CUDA 12 too";
        QTest::newRow("plugin for an older CUDA") << "driver_good"
                                                  << "plugin_twelve"
                                                  << "";
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
        QTest::newRow("plugin of an old version")
            << "driver_good"
            << "plugin_old"
            << "it is of version 0, and this program is of version " + QString::number(PIPEWRIGHT_CUDA_ABI);
        QTest::newRow("plugin of another build") << "driver_good"
                                                 << "plugin_short"
                                                 << "they are of different builds";
        QTest::newRow("plugin with a hole") << "driver_good"
                                            << "plugin_hole"
                                            << "function 19 of its table is missing";
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
        QCOMPARE(status.driverVersion, driver == "driver_twelve" ? 12040 : 13000);
        QCOMPARE(status.libraries.size(), std::size_t{4});
        for (const CudaLibrary& library : status.libraries)
            QCOMPARE(QString::fromStdString(library.file).section('.', -1),
                     library.name == "NCCL"      ? "2"
                     : library.name == "cuDNN"   ? "9"
                     : plugin.contains("twelve") ? "12"
                                                 : "13"); // by the plugin, which may be older than the driver
    }

    void aFileThatIsNoLibraryIsSaidToBeNone()
    {
        const QTemporaryDir folder;
        QFile file(folder.filePath("pipewright_cuda13.so"));
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write("not at all");
        file.close();
        const CudaStatus status =
            probeCuda({.driver = standIn("driver_good"), .plugin = file.fileName().toStdString()});
        QVERIFY2(status.reason.find("is no shared library") != std::string::npos, status.reason.c_str());
    }

    void onlyAbsolutePathsAreOpened()
    {
        const auto reasonOf = [](const CudaSearch& search) { return probeCuda(search).reason; };
        const auto refuses = [](const std::string& reason) {
            return reason.find("not an absolute path") != std::string::npos;
        };
        const std::string driver = standIn("driver_good"), plugin = standIn("plugin_good");
        // From the folder of the stand-ins each of them would open.
        const QString before = QDir::currentPath();
        QVERIFY(QDir::setCurrent(PIPEWRIGHT_STAND_INS));
        QVERIFY(refuses(reasonOf({.driver = "./driver_good.so", .plugin = standIn("plugin_good")})));
        QVERIFY(refuses(reasonOf({.driver = standIn("driver_good"), .plugin = "plugin_good.so"})));
        QVERIFY(refuses(reasonOf({.driver = driver, .plugin = plugin, .folders = {"."}})));
        QVERIFY(refuses(reasonOf({.driver = driver, .plugin = plugin, .folders = {""}})));
        // A name without a folder is looked for by the system, and not here.
        const std::string bare = reasonOf({.driver = "driver_good.so", .plugin = standIn("plugin_good")});
        QVERIFY2(bare.find("no NVIDIA driver was found") != std::string::npos, bare.c_str());
        qputenv("CUDA_WHEELS", "wheels");
        const std::string wheels = reasonOf({.driver = standIn("driver_good"), .plugin = standIn("plugin_good")});
        qunsetenv("CUDA_WHEELS");
        QVERIFY(QDir::setCurrent(before));
        QVERIFY2(refuses(wheels) && wheels.find("CUDA_WHEELS") != std::string::npos, wheels.c_str());
    }

    void theLoadersPathCountsWhereItIsAbsolute()
    {
        const QTemporaryDir folder;
        QFile file(folder.filePath("libcupti.so.13"));
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.close();
        const QString before = QDir::currentPath();
        const QByteArray path = qgetenv("LD_LIBRARY_PATH");
        QVERIFY(QDir::setCurrent(folder.path()));
        for (const QByteArray& entries : {QByteArray(":."), folder.path().toUtf8()}) {
            qputenv("LD_LIBRARY_PATH", entries);
            for (const CudaLibrary& library : findCudaLibraries(13, {}))
                if (library.name == "CUPTI")
                    QCOMPARE(library.path == file.fileName().toStdString(), entries != ":.");
            for (const CudaLibrary& library : findCudaLibraries(13, {"."}))
                QVERIFY(library.path.empty() || library.path.front() == '/');
        }
        path.isNull() ? qunsetenv("LD_LIBRARY_PATH") : qputenv("LD_LIBRARY_PATH", path);
        QVERIFY(QDir::setCurrent(before));
    }

    void eachLibraryIsLookedForAlone()
    {
        const QTemporaryDir folder;
        QFile file(folder.filePath("libnccl.so.2"));
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.close();
        for (const CudaLibrary& library : findCudaLibraries(13, {folder.path().toStdString()}))
            if (library.name == "NCCL")
                QCOMPARE(library.path, file.fileName().toStdString()); // the named folder comes first
    }

    /// PyTorch brings the libraries, so whoever has it has them.
    void theActivePythonsPackagesAreLookedAt()
    {
        const QTemporaryDir prefix;
        const QString folder = prefix.filePath("lib/python3.11/site-packages/nvidia/madeup/lib");
        QVERIFY(QDir().mkpath(folder));
        QFile file(folder + "/libmadeup.so.1");
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.close();
        QCOMPARE(whereLibraryIs("libmadeup.so.1", "madeup", {}), std::string());
        const QByteArray before = qgetenv("VIRTUAL_ENV"), path = qgetenv("PATH");
        qputenv("VIRTUAL_ENV", prefix.path().toUtf8());
        QCOMPARE(whereLibraryIs("libmadeup.so.1", "madeup", {}), file.fileName().toStdString());
        before.isNull() ? qunsetenv("VIRTUAL_ENV") : qputenv("VIRTUAL_ENV", before);
        // Without a variable, by the interpreter that would run.
        QVERIFY(QDir().mkpath(prefix.filePath("bin")));
        QVERIFY(QFile::link("/bin/sh", prefix.filePath("bin/python3")));
        qputenv("PATH", prefix.filePath("bin").toUtf8() + ":" + path);
        QCOMPARE(whereLibraryIs("libmadeup.so.1", "madeup", {}), file.fileName().toStdString());
        qputenv("PATH", path);
    }

    /// The packages of CUDA 12 lie in folders of their own, those of 13 in one.
    void packagesOfBothVersionsAreFound()
    {
        const QTemporaryDir wheels;
        const auto bring = [&](const QString& file) {
            QFile made(wheels.filePath("nvidia/" + file));
            return QDir().mkpath(QFileInfo(made).path()) && made.open(QIODevice::WriteOnly);
        };
        QVERIFY(bring("cublas/lib/libcublasLt.so.12") && bring("cuda_cupti/lib/libcupti.so.12"));
        QVERIFY(bring("cu13/lib/libcublasLt.so.13") && bring("cu13/lib/libcupti.so.13"));
        QVERIFY(bring("cudnn/lib/libcudnn.so.9")); // of both in the same folder
        qputenv("CUDA_WHEELS", wheels.path().toUtf8());
        for (const int major : {12, 13})
            for (const CudaLibrary& library : findCudaLibraries(major, {}))
                if (library.name != "NCCL") // or where this machine has its toolkit
                    QVERIFY2(library.path.ends_with(library.file), library.path.c_str());
        qunsetenv("CUDA_WHEELS");
    }

    void theLoadersCacheIsRead()
    {
        if (!QFile::exists("/etc/ld.so.cache"))
            QSKIP("this machine's loader has no cache");
        const std::string found = inLoaderCache("libc.so.6");
        QVERIFY2(found.ends_with("/libc.so.6") && QFile::exists(QString::fromStdString(found)), found.c_str());
        QCOMPARE(inLoaderCache("libmadeup.so.1"), std::string());
        // Cut off anywhere, it is no cache, and nothing is read beyond its end.
        QFile whole("/etc/ld.so.cache");
        QVERIFY(whole.open(QIODevice::ReadOnly));
        const QByteArray bytes = whole.readAll();
        const QTemporaryDir folder;
        for (const qsizetype length : {qsizetype{0}, qsizetype{20}, qsizetype{47}, qsizetype{48}, bytes.size() / 4}) {
            QFile part(folder.filePath("cache"));
            QVERIFY(part.open(QIODevice::WriteOnly) && part.write(bytes.left(length)) == length);
            part.close();
            QCOMPARE(inLoaderCache("libmadeup.so.1", part.fileName().toStdString()), std::string());
        }
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

    void rawRecordsBecomeActivitiesOfTheirBlocks()
    {
#ifdef PIPEWRIGHT_CUPTI
        auto kernel = timed<CUpti_ActivityKernel10>(2000, 3000, 7);
        kernel.name = "gemm";
        kernel.deviceId = 1;
        kernel.contextId = 3;
        kernel.streamId = 13;
        kernel.graphNodeId = 0x100000002;
        auto copy = timed<CUpti_ActivityMemcpyPtoP4>(1500, 1800, 8);
        copy.bytes = 4096;
        copy.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_PTOP;
        copy.srcDeviceId = 0;
        copy.dstDeviceId = 1;
        auto overhead = timed<CUpti_ActivityOverhead3>(900, 950, 0);
        overhead.overheadKind = CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH;
        static int details = 0, released = 0; // the reader gives them back, once
        overhead.overheadData = &details;
        released = 0;
        CUpti_ActivityMemory4 memory{};
        memory.memoryOperationType = CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE;
        memory.timestamp = 4000;
        memory.bytes = 512;
        // The GPU's own buffers overflowed: no time, and an end before its start.
        const auto timeless = timed<CUpti_ActivityKernel10>(0, 0, 7);
        const auto backwards = timed<CUpti_ActivityMemset4>(50, 40, 7);
        // Of the calls one launched the kernel, the other asked whether an event is done.
        auto launch = timed<CUpti_ActivityAPI>(960, 990, 7), query = timed<CUpti_ActivityAPI>(995, 996, 11);
        launch.threadId = 4711;
        RawBuffer first, second;
        first.add(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, kernel)
            .add(CUPTI_ACTIVITY_KIND_RUNTIME, query)
            .add(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, timeless)
            .add(CUPTI_ACTIVITY_KIND_MEMSET, backwards)
            .add(CUPTI_ACTIVITY_KIND_MEMORY2, memory);
        // What the kernel belongs to comes in a later buffer, of another thread.
        second.add(CUPTI_ACTIVITY_KIND_OVERHEAD, overhead)
            .add(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, label(7, 42))
            .add(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, label(8, 99, CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1))
            .add(CUPTI_ACTIVITY_KIND_RUNTIME, launch)
            .add(CUPTI_ACTIVITY_KIND_MEMCPY2, copy);
        plugin::CuptiRecords records(
            nextRecord,
            [](CUpti_CallbackDomain domain, uint32_t, const char** name) {
                *name = domain == CUPTI_CB_DOMAIN_RUNTIME_API ? "cudaLaunchKernel" : "cuLaunchKernel";
                return CUPTI_SUCCESS;
            },
            [](void* data) { released += data == &details; });
        std::vector<PipewrightGpuActivity> activities;
        records.read({first.buffer(), second.buffer()}, activities);
        QCOMPARE(records.malformed(), 1);
        QCOMPARE(records.untimed(), 1);
        QCOMPARE(activities.size(), std::size_t{5}); // by start
        QCOMPARE(activities[1].kind, int(PIPEWRIGHT_GPU_CALL));
        QCOMPARE(activities[1].correlation, activities[3].correlation); // what joins it to its kernel
        QCOMPARE(activities[1].block, 42);
        QCOMPARE(activities[1].thread, 4711);
        QCOMPARE(std::string(activities[1].name), std::string("cudaLaunchKernel"));
        activities.erase(activities.begin() + 1);
        QCOMPARE(activities[0].kind, int(PIPEWRIGHT_GPU_OVERHEAD));
        QCOMPARE(released, 1);
        QCOMPARE(activities[0].block, -1);
        QCOMPARE(activities[1].bytes, 4096);
        QCOMPARE(activities[1].device, 0);
        QCOMPARE(activities[1].toDevice, 1);
        QCOMPARE(activities[1].block, -1); // labelled by somebody else
        QCOMPARE(std::string(activities[2].name), std::string("gemm"));
        QCOMPARE(activities[2].block, 42);
        QCOMPARE(activities[2].device, 1);
        QCOMPARE(activities[2].stream, 13);
        QCOMPARE(activities[2].graphNode, 0x100000002u);
        QCOMPARE(activities[3].bytes, -512);

        // A kernel that is over later than its launch was reported still finds its block.
        RawBuffer third;
        third.add(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, timed<CUpti_ActivityKernel10>(5000, 5100, 7));
        activities.clear();
        records.read({third.buffer()}, activities);
        QCOMPARE(activities.front().block, 42);
#else
        QSKIP("built without CUPTI's header");
#endif
    }

    /// Green contexts of a GPU number their streams alike.
    void streamsOfTwoContextsAreTwo()
    {
#ifdef PIPEWRIGHT_CUPTI
        RawBuffer buffer;
        for (const std::uint32_t context : {65u, 66u, 65u}) {
            auto kernel = timed<CUpti_ActivityKernel10>(1000, 2000, 1);
            kernel.contextId = context;
            kernel.streamId = 13;
            buffer.add(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, kernel);
        }
        plugin::CuptiRecords records(nextRecord);
        std::vector<PipewrightGpuActivity> activities;
        records.read({buffer.buffer()}, activities);
        QCOMPARE(activities.size(), std::size_t{3});
        QCOMPARE(activities[0].stream, 13);
        QVERIFY(activities[1].stream != 13);
        QCOMPARE(activities[2].stream, 13);
#else
        QSKIP("built without CUPTI's header");
#endif
    }
};

PIPEWRIGHT_TEST(TestCudaLoader, QCoreApplication)
#include "tst_cudaloader.moc"
