// SPDX-License-Identifier: GPL-3.0-or-later
// The real CUDA plugin in a test's own process, on four stand-in GPUs (tests/standin): for CudaBackend and all code
// above it. Where the toolkit's headers are missing, and under the address sanitizer, there is no such plugin, and what
// needs it is skipped. CUPTI is used once per process, so runs here are not recorded by it unless a test asks.
#pragma once

#include "executor/cuda/cudabackend.h"
#include "executor/cuda/loader.h"
#include "executor/run/run.h"
#include "makers/models.h"
#include "sanitized.h"
#include "standin/libraries/standinreport.h"
#include "testpaths.h"

#include <QTest>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <dlfcn.h>
#include <string>
#include <string_view>
#include <vector>

namespace pipewright::test {

/// False: the toolkit's headers were not found, or the address sanitizer is on.
inline constexpr bool hasStandInGpus = !std::string_view(PIPEWRIGHT_STANDIN_GPUS).empty();
#define NEEDS_STAND_IN_GPUS                                                                                            \
    if (!test::hasStandInGpus)                                                                                         \
    QSKIP("no stand-in GPUs: under the address sanitizer, or the CUDA toolkit's headers were not found")

/// Set before main(), because Qt Test's watchdog reads the environment in a thread of its own.
inline const bool standInEnvironment = [] {
    setenv("PIPEWRIGHT_STANDIN_GPUS", "4", 1);
    setenv("PIPEWRIGHT_STANDIN_DELAY", "20", 1); // microseconds
    setDriverEnvironment();
    return true;
}();

inline const CudaStatus& standInStatus()
{
    static const CudaStatus only = [] {
        const std::string folder = PIPEWRIGHT_STANDIN_GPUS;
        return probeCuda({.driver = folder + "/lib/libcuda.so.1",
                          .plugin = folder + "/bin/pipewright_cuda13.so",
                          .folders = {folder + "/lib"}});
    }();
    return only;
}

inline const PipewrightCudaTable& standInTable()
{
    if (!standInStatus().table)
        throw Error("stand-in GPUs", standInStatus().reason);
    return *standInStatus().table;
}

inline std::string standInLibrary(std::string_view name)
{
    for (const CudaLibrary& library : standInStatus().libraries)
        if (library.name == name)
            return library.path;
    return {};
}

/// Device d on GPU d modulo `gpus`.
inline CudaSetup standInSetup(int devices, int gpus = 4)
{
    CudaSetup setup;
    for (int d = 0; d < devices; ++d)
        setup.devices.push_back({d % gpus, 0});
    setup.cublasLt = standInLibrary("cuBLASLt");
    setup.nccl = standInLibrary("NCCL");
    return setup;
}

/// A minimal model, since a stand-in runs the threads of a GPU one after the other.
inline Design smallGpt(std::string_view family, int devices = 2, int microbatches = 2)
{
    // The thread sanitizer is slow for every layer: only as many layers as the family has stages.
    const bool pairs = !threadSanitized || family == "zb-v" || family == "interleaved-1f1b";
    ModelShape shape = gptShape(pairs ? 2 * devices : devices, 16, 2, 256, 4, 1);
    shape.ffn = 16;
    shape.tiedHead = !findFamily(family)->updates;
    return tinyDesign(family, devices, microbatches, shape);
}

/// Two steps on two GPUs.
inline RunOptions onStandInGpus(CudaTransport transport = CudaTransport::Automatic,
                                const PipewrightCudaTable& table = standInTable())
{
    RunOptions options;
    options.backend = "cuda";
    options.steps = 2;
    options.createBackend = [transport, &table](int devices) {
        CudaSetup setup = standInSetup(devices, 2);
        setup.transport = transport;
        return createCudaBackend(table, setup);
    };
    return options;
}

/// A function of the stand-in driver itself.
template<typename Function>
Function* ofStandInDriver(const char* name)
{
    void* driver = dlopen(PIPEWRIGHT_STANDIN_GPUS "/lib/libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    return driver ? reinterpret_cast<Function*>(dlsym(driver, name)) : nullptr;
}

/// The report of this process, since its start or the last forgetStandIns().
inline StandInReports standInReport()
{
    StandInReports report;
    if (const auto text = ofStandInDriver<const char*()>("standinReport"))
        report.reports.push_back(QJsonDocument::fromJson(text()).object());
    return report;
}
inline void forgetStandIns()
{
    standInTable(); // opened
    ofStandInDriver<void()>("standinForget")();
}

/// Whether the kernels' losses equal the host's, with a relative error up to 1e-4: the order of the sums differs.
inline bool nearlyEqual(const std::vector<double>& some, const std::vector<double>& others)
{
    return std::equal(some.begin(), some.end(), others.begin(), others.end(),
                      [](double a, double b) { return std::abs(a - b) <= 1e-4 * std::abs(b); });
}

/// Number of collectives that the backend has requested through countingTable(), without NCCL's warm-up.
inline std::atomic<int> collectivesAsked{0};
inline const PipewrightCudaTable& countingTable()
{
    static const PipewrightCudaTable table = [] {
        PipewrightCudaTable made = standInTable();
        made.ncclAllReduce = [](void* member, const float* from, float* to, std::int64_t count, void* on) {
            ++collectivesAsked;
            return standInTable().ncclAllReduce(member, from, to, count, on);
        };
        made.ncclAllGather = [](void* member, const float* from, float* to, std::int64_t count, void* on) {
            ++collectivesAsked;
            return standInTable().ncclAllGather(member, from, to, count, on);
        };
        made.ncclReduceScatter = [](void* member, const float* from, float* to, std::int64_t count, void* on) {
            ++collectivesAsked;
            return standInTable().ncclReduceScatter(member, from, to, count, on);
        };
        return made;
    }();
    return table;
}

/// The same plugin, but GPU 1 never joins the NCCL connection.
inline const PipewrightCudaTable& tableWithoutGpu1InNccl()
{
    static char absent = 0;
    static const PipewrightCudaTable table = [] {
        PipewrightCudaTable made = standInTable();
        made.ncclJoin = [](std::int32_t device, const std::uint8_t* name, std::int32_t rank, std::int32_t ranks,
                           std::int32_t multiprocessors, void** member) {
            return device == 1 ? (*member = &absent, 0)
                               : standInTable().ncclJoin(device, name, rank, ranks, multiprocessors, member);
        };
        made.ncclJoined = [](void* member, std::int32_t* joined) {
            return member == &absent ? (*joined = 0, 0) : standInTable().ncclJoined(member, joined);
        };
        made.ncclAbort = [](void* member) { return member == &absent ? 0 : standInTable().ncclAbort(member); };
        made.ncclClose = [](void* member) { return member == &absent ? 0 : standInTable().ncclClose(member); };
        return made;
    }();
    return table;
}

} // namespace pipewright::test
