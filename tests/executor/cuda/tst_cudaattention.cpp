// SPDX-License-Identifier: GPL-3.0-or-later
// Who computes attention, and what is set aside for it, on stand-in GPUs, where there is no cuDNN.
#include "executor/cuda/cudaattention.h"
#include "executor/cuda/cudabackend.h"
#include "executor/cuda/standingpus.h"
#include "executor/run/run.h"
#include "testmain.h"

#include <QTest>

#include <atomic>

using namespace pipewright;

using test::smallGpt;
using test::standInTable;

class TestCudaAttention : public QObject {
    Q_OBJECT

private slots:
    void initTestCase() { NEEDS_STAND_IN_GPUS; }
    void init() { test::forgetStandIns(); }
    void cleanup()
    {
        const test::StandInReports report = test::standInReport();
        QVERIFY2(report.faults().isEmpty(), qPrintable(report.faults()));
    }

    void roomForCudnnIsPredictedAndAllocated_data()
    {
        QTest::addColumn<int>("attention");
        QTest::addColumn<qint64>("wanted"); // by cuDNN, of 8 GiB
        QTest::addColumn<qint64>("given");
        const qint64 mebi = 1 << 20;
        const int automatic = int(CudaAttention::Automatic);
        QTest::newRow("as much as products have") << automatic << 256 * mebi / 256 << qint64(0);
        QTest::newRow("more") << automatic << 100 * mebi + 1 << 68 * mebi + 256;
        QTest::newRow("too much unasked") << automatic << 600 * mebi << qint64(0);
        QTest::newRow("whatever it wants") << int(CudaAttention::Cudnn) << 600 * mebi << 568 * mebi;
        QTest::newRow("none") << int(CudaAttention::Own) << 100 * mebi << qint64(0);
    }
    /// No cuDNN is here: what it would say it wants.
    void roomForCudnnIsPredictedAndAllocated()
    {
        QFETCH(int, attention);
        QFETCH(qint64, wanted);
        QFETCH(qint64, given);
        static std::int64_t workspace;
        static std::atomic<int> asked;
        workspace = wanted;
        asked = 0;
        PipewrightCudaTable table = standInTable();
        table.attentionWorkspace = [](std::int32_t, void*, const char* library, const void* shape, std::int64_t bytes,
                                      std::int64_t* needed) {
            const auto& of = *static_cast<const kernels::GroupedAttentionShape*>(shape);
            asked += std::string_view(library) == "/lib/libcudnn.so.9" && of.length == 4 && of.heads == 2
                     && bytes == sizeof of;
            *needed = workspace;
            return 0;
        };
        table.createMaths = [](std::int32_t device, void* stream, const PipewrightMathsSetup* setup, void** maths) {
            PipewrightMathsSetup own = *setup; // else the first block fails, and rightly so
            own.attention = PIPEWRIGHT_ATTENTION_OWN;
            return standInTable().createMaths(device, stream, &own, maths);
        };
        ModelShape shape = smallGpt("1f1b").workload->shape;
        shape.dataType = DataType::Bf16;
        shape.attention = AttentionMemory::Streamed;
        RunOptions options;
        options.backend = "cuda";
        options.steps = 2;
        options.createBackend = [&](int devices) {
            CudaSetup setup = test::standInSetup(devices, 2);
            setup.attention = static_cast<CudaAttention>(attention);
            setup.cudnn = "/lib/libcudnn.so.9";
            return createCudaBackend(table, setup);
        };
        const RunResult result = run(test::tinyDesign("1f1b", 2, 2, shape), options);
        QVERIFY(result.gradients->holds());
        QCOMPARE(asked, attention == int(CudaAttention::Own) ? 0 : 2); // a device each
        for (int d = 0; d < 2; ++d) {
            QCOMPARE(result.memory[d].maths, PIPEWRIGHT_MATHS_WORKSPACE + given);
            QCOMPARE(result.heldBytes[d], result.memory[d].total());
        }
    }

    void whoComputesAttentionIsHeldTo()
    {
        for (const CudaAttention attention : cudaAttentions)
            QCOMPARE(cudaAttentionNamed(nameOf(attention)), attention);
        QVERIFY_THROWS_EXCEPTION(Error, cudaAttentionNamed("somebody"));
        CudaSetup setup = test::standInSetup(2, 2);
        setup.attention = CudaAttention::Cudnn; // and no library
        QVERIFY_THROWS_EXCEPTION(Error, createCudaBackend(standInTable(), setup));
        PipewrightCudaTable older = standInTable();
        older.deviceInfo = [](std::int32_t device, PipewrightCudaDevice* info) {
            const int code = standInTable().deviceInfo(device, info);
            info->major = 7;
            return code;
        };
        setup.cudnn = "/lib/libcudnn.so.9";
        createCudaBackend(standInTable(), setup);
        QVERIFY_THROWS_EXCEPTION(Error, createCudaBackend(older, setup));
    }
};

PIPEWRIGHT_TEST(TestCudaAttention, QCoreApplication)
#include "tst_cudaattention.moc"
