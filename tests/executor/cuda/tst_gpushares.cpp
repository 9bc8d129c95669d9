// SPDX-License-Identifier: GPL-3.0-or-later
// Which device gets which GPU or slice of one, from the list of GPUs alone.
#include "executor/cuda/gpushares.h"
#include "makers/faults.h"
#include "testmain.h"

#include <QTest>

using namespace pipewright;

namespace {

#define CONTAINS(text, part) QVERIFY2((text).find(part) != std::string::npos, (text).c_str())

} // namespace

class TestGpuShares : public QObject {
    Q_OBJECT

private slots:
    void devicesAreSpreadOverGpusAndSlices()
    {
        const PipewrightCudaDevice gpu{"", 0, 132, 9, 0, 3, ""};
        const auto one = gpuSharesFor({}, 4, {gpu});
        QCOMPARE(one, std::vector<GpuShare>(4, {0, 32}));
        QCOMPARE(gpuSharesFor({}, 2, {gpu, gpu}), (std::vector<GpuShare>{{0, 0}, {1, 0}}));
        QCOMPARE(gpuSharesFor({}, 3, {gpu, gpu}), (std::vector<GpuShare>{{0, 64}, {1, 0}, {0, 64}}));
        QCOMPARE(gpuSharesFor({{0, 100}, {0, 32}}, 2, {gpu}), (std::vector<GpuShare>{{0, 100}, {0, 32}}));
        CONTAINS(test::faultOf([&] {
                     gpuSharesFor({{0, 100}, {0, 33}}, 2, {gpu});
                 }),
                 "devices 0, 1 want 100 + 33 multiprocessors of GPU 0, which has 132 (give them at most 64 each");
        CONTAINS(test::faultOf([&] { gpuSharesFor({{1, 0}}, 1, {gpu}); }), "device 0 is to run on GPU 1");
        CONTAINS(test::faultOf([&] { gpuSharesFor({{0, 0}}, 2, {gpu}); }), "says where 1 devices run");
    }

    /// Slices of 100 and 32 are 132, but the GPU is cut in eights: only the driver can say.
    void whatAMappingWantsTooMuchIsKnownFromTheListOfGpus()
    {
        const PipewrightCudaDevice hopper{"", 0, 132, 9, 0, 3, ""}, ampere{"", 0, 108, 8, 0, 3, ""};
        QVERIFY(whyNotPlaced({}, 4, {hopper}).empty());
        QVERIFY(whyNotPlaced({{0, 64}, {0, 64}}, 2, {hopper}).empty());
        QVERIFY(whyNotPlaced({{0, 54}, {0, 54}}, 2, {ampere}).empty()); // in twos
        const Diagnostics doubt = whyNotPlaced({{0, 100}, {0, 32}}, 2, {hopper});
        QCOMPARE(doubt.size(), std::size_t{1});
        QVERIFY(doubt.front().severity == Severity::Warning);
        CONTAINS(doubt.front().what, "cut in steps of 8: that takes 136 of its 132");
        const Diagnostics all = whyNotPlaced({{0, 200}, {1, 80}, {1, 60}, {3, 0}}, 4, {hopper, ampere});
        QCOMPARE(all.size(), std::size_t{3});
        QCOMPARE(all[0].where, std::string("cluster.gpus[3]"));
        CONTAINS(all[1].what, "device 0 wants 200 multiprocessors of GPU 0, which has 132");
        CONTAINS(all[1].hint, "give it at most 128");
        CONTAINS(all[2].what, "devices 1, 2 want 80 + 60 multiprocessors of GPU 1, which has 108");
        CONTAINS(all[2].hint, "at most 54 each");
    }
};

PIPEWRIGHT_TEST(TestGpuShares, NoApplication)
#include "tst_gpushares.moc"
