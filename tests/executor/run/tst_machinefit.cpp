// SPDX-License-Identifier: GPL-3.0-or-later
// Whether a design fits a machine, and with what it would.
#include "core/base/units.h"
#include "executor/run/machinefit.h"
#include "testmain.h"

#include <QTest>

using namespace pipewright;

namespace {

constexpr Bytes gib = Bytes{1} << 30;

PipewrightCudaDevice gpuOf(Bytes memory)
{
    PipewrightCudaDevice gpu{};
    gpu.memory = memory;
    return gpu;
}

} // namespace

class TestMachineFit : public QObject {
    Q_OBJECT

private Q_SLOTS:
    void devicesOfTheHostShareItsMemory()
    {
        const std::vector<Bytes> peaks(4, 5 * gib);
        QVERIFY(whyTooLarge({}, peaks, "host", {20 * gib}).empty());
        const Diagnostics why = whyTooLarge({}, peaks, "host", {16 * gib});
        QCOMPARE(why.size(), std::size_t(1));
        QVERIFY(why.front().severity == Severity::Error);
        QCOMPARE(why.front().what,
                 "4 devices would hold " + formatSize(20 * gib) + ", and it has " + formatSize(16 * gib));
        QVERIFY(!why.front().hint.empty());
        QVERIFY(whyTooLarge({}, peaks, "host", {}).empty()); // nobody knows
        QVERIFY(whyTooLarge({}, peaks, "host", {16 * gib}, 0.5).empty());
    }

    void processesMayHaveOtherMachines()
    {
        const Diagnostics why = whyTooLarge({}, std::vector<Bytes>(4, 5 * gib), "mpi", {16 * gib});
        QCOMPARE(why.size(), std::size_t(1));
        QVERIFY(why.front().severity == Severity::Warning);
    }

    void everyGpuIsAskedForItsOwnDevices()
    {
        Design design;
        const MachineMemory machine{1000 * gib, {gpuOf(24 * gib), gpuOf(80 * gib)}};
        const std::vector<Bytes> peaks{20 * gib, 30 * gib};
        QVERIFY(whyTooLarge(design, peaks, "cuda", machine).empty()); // one each, in order
        const std::vector<Bytes> more{20 * gib, 30 * gib, 10 * gib};
        const Diagnostics why = whyTooLarge(design, more, "cuda", machine); // the third is on GPU 0 again
        QCOMPARE(why.size(), std::size_t(1));
        QCOMPARE(why.front().where, std::string("GPU 0"));
        design.cluster.gpus = {{1, 0}, {1, 0}, {1, 0}};
        QVERIFY(whyTooLarge(design, more, "cuda", machine).empty());
        QVERIFY(whyTooLarge(design, more, "cuda", {1 * gib, {}}).empty()); // no GPU is known: others say so
    }

    void theScaleLeavesHalfOfTheMemory()
    {
        const std::vector<Bytes> peaks(4, 75 * gib);
        QCOMPARE(memoryScaleThatFits({}, peaks, "host", {400 * gib}), 1.0);
        QCOMPARE(memoryScaleThatFits({}, peaks, "host", {62 * gib}), 0.1);
        QCOMPARE(memoryScaleThatFits({}, peaks, "host", {16 * gib}), 0.01);
    }
};

PIPEWRIGHT_TEST(TestMachineFit, NoApplication)
#include "tst_machinefit.moc"
