// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/cuda/loader.h"

#include "executor/cuda/libraryplaces.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <utility>

namespace pipewright {

namespace {

/// CUDA's major versions for which a plugin can be built. A driver runs programs of toolkits of its own or an older
/// major version ("CUDA Compatibility", "Minor Version Compatibility").
struct Toolkit {
    int major = 0;
    const char* driver = ""; ///< the first with this major version
};
constexpr std::array toolkits{Toolkit{13, "R580"}, Toolkit{12, "R525"}}; ///< newest first

std::string pluginFile(int major)
{
    return fmt::format("pipewright_cuda{}.so", major);
}

int majorOf(int version)
{
    return version / 1000;
}

std::string dotted(int version)
{
    return fmt::format("{}.{}", majorOf(version), version % 1000 / 10);
}

std::string loaderError()
{
    const char* text = dlerror();
    return text ? text : "no reason given";
}

template<typename Function>
Function* symbol(void* library, const char* name)
{
    return reinterpret_cast<Function*>(dlsym(library, name));
}

/// Empty when there is a driver that is new enough and has a GPU.
std::string whyNoDriver(const std::string& name, int& version)
{
    void* driver = dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL);
    if (!driver)
        return "no NVIDIA driver was found (" + name + ")";
    const auto initialise = symbol<int(unsigned)>(driver, "cuInit");
    const auto getVersion = symbol<int(int*)>(driver, "cuDriverGetVersion");
    const auto count = symbol<int(int*)>(driver, "cuDeviceGetCount");
    if (!initialise || !getVersion || !count)
        return name + " is no NVIDIA driver";
    if (getVersion(&version) == 0 && majorOf(version) < toolkits.back().major)
        return fmt::format("the NVIDIA driver is for CUDA {}, and {}.0 is needed: install a newer driver ({} or later)",
                           dotted(version), toolkits.back().major, toolkits.back().driver);
    if (const int code = initialise(0); code != 0)
        return code == 34    ? name + " is the toolkit's stand-in, not a driver"
               : code == 100 ? std::string("the driver finds no GPU")
               : code == 999 ? std::string("the driver cannot start (error 999): is a GPU passed into this container?")
               : code == 803 ? std::string("driver and kernel module have different versions: restart the machine")
                             : fmt::format("the driver cannot start (error {})", code);
    int gpus = 0;
    if (count(&gpus) != 0 || gpus == 0)
        return "the driver finds no GPU";
    return {};
}

/// A library is code, so one from the current folder is never opened. Names without a folder are left to the system's
/// search.
std::string whyNotOpened(const CudaSearch& search)
{
    const auto relative = [](const char* what, const std::string& path) {
        return fmt::format("{} \"{}\" is not an absolute path: begin it with /", what, path);
    };
    if (search.driver.find('/') != std::string::npos && !isAbsolute(search.driver))
        return relative("the driver", search.driver);
    if (!search.plugin.empty() && !isAbsolute(search.plugin))
        return relative("the CUDA plugin", search.plugin);
    for (const std::string& folder : search.folders)
        if (!isAbsolute(folder))
            return relative("the libraries' folder (--cuda-libraries)", folder);
    if (const char* wheels = std::getenv("CUDA_WHEELS"); wheels && *wheels && !isAbsolute(wheels))
        return relative("CUDA_WHEELS", wheels);
    return {};
}

/// The newest plugin that the driver runs. For an unknown driver (0), or if it runs none of them, the newest plugin.
std::string findPlugin(int driver)
{
    std::error_code error;
    const std::string beside = std::filesystem::read_symlink("/proc/self/exe", error).parent_path().string();
    if (!isAbsolute(beside))
        return {};
    std::string tooNew;
    for (const Toolkit& toolkit : toolkits)
        for (const std::string& folder : {beside, beside + "/../lib/pipewright", beside + "/../lib"}) {
            std::string path = folder + "/" + pluginFile(toolkit.major);
            if (!std::filesystem::exists(path, error))
                continue;
            if (driver == 0 || toolkit.major <= majorOf(driver))
                return path;
            tooNew = tooNew.empty() ? path : tooNew;
        }
    return tooNew;
}

/// A plugin that is too new is never called: its runtime would refuse each call without saying which driver is needed.
std::string whyTooNew(const PipewrightCudaTable& table, int driver)
{
    const int major = majorOf(static_cast<int>(table.toolkit));
    if (driver == 0 || major <= majorOf(driver))
        return {};
    const auto needed =
        std::find_if(toolkits.begin(), toolkits.end(), [major](const Toolkit& each) { return each.major == major; });
    return fmt::format("the NVIDIA driver is for CUDA {}, and the plugin of this installation for {}: install a newer "
                       "driver{}, or build with a toolkit of CUDA {} too",
                       dotted(driver), dotted(static_cast<int>(table.toolkit)),
                       needed == toolkits.end() ? "" : fmt::format(" ({} or later)", needed->driver), majorOf(driver));
}

bool isShared(const std::string& path)
{
    std::error_code unknown; // opening a pipe would block
    if (!std::filesystem::is_regular_file(path, unknown))
        return false;
    std::array<char, 4> magic{};
    std::ifstream file(path, std::ios::binary);
    return file.read(magic.data(), magic.size()) && magic == std::array<char, 4>{0x7f, 'E', 'L', 'F'};
}

} // namespace

std::string whyTableDoesNotFit(const PipewrightCudaTable* table)
{
    if (!table)
        return "it has no function table";
    if (table->abi != PIPEWRIGHT_CUDA_ABI)
        return fmt::format("it is of version {}, and this program is of version {}", table->abi,
                           int(PIPEWRIGHT_CUDA_ABI));
    if (table->size != sizeof(PipewrightCudaTable))
        return fmt::format("its table has {} bytes where this program's has {}: they are of different builds",
                           table->size, sizeof(PipewrightCudaTable));
    // All members after the numbers are function pointers.
    const auto* entry = reinterpret_cast<void* const*>(&table->buildInfo);
    const std::size_t count = (sizeof(PipewrightCudaTable) - offsetof(PipewrightCudaTable, buildInfo)) / sizeof(void*);
    for (std::size_t i = 0; i < count; ++i)
        if (!entry[i])
            return fmt::format("function {} of its table is missing", i);
    return {};
}

// Every pipeline device and link has a stream. Streams that share a hardware connection, of which the default is 8,
// wait for each other, even across slices (cuda.h, "GREEN CONTEXTS").
void setDriverEnvironment()
{
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
}

CudaStatus probeCuda(const CudaSearch& search)
{
    CudaStatus status;
    if (status.reason = whyNotOpened(search); !status.reason.empty())
        return status;
    const std::string noDriver = whyNoDriver(search.driver, status.driverVersion);
    status.plugin = search.plugin.empty() ? findPlugin(status.driverVersion) : search.plugin;
    if (!noDriver.empty() && search.needDriver) {
        status.reason = noDriver;
        if (status.plugin.empty())
            status.reason += ", and this installation has no CUDA plugin (pipewright_cuda*.so)";
        return status;
    }
    if (status.plugin.empty()) {
        status.reason =
            "this installation has no CUDA plugin (pipewright_cuda*.so): build where nvcc is found, or install "
            "the wheel pipewright_cuda beside the program's";
        return status;
    }
    void* plugin = dlopen(status.plugin.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!plugin) {
        const std::string why = loaderError();
        std::error_code unknown;
        status.reason = isShared(status.plugin) || !std::filesystem::exists(status.plugin, unknown)
                            ? "the CUDA plugin cannot be opened: " + why
                            : "the CUDA plugin cannot be opened: " + status.plugin + " is no shared library";
        return status;
    }
    const auto entry = reinterpret_cast<PipewrightCudaEntry>(dlsym(plugin, PIPEWRIGHT_CUDA_ENTRY));
    if (!entry) {
        status.reason = status.plugin + " is no CUDA plugin of Pipewright";
        return status;
    }
    const PipewrightCudaTable* table = entry();
    if (const std::string why = whyTableDoesNotFit(table); !why.empty()) {
        status.reason = "the CUDA plugin " + status.plugin + " does not fit: " + why;
        return status;
    }
    status.buildInfo = table->buildInfo();
    if (status.reason = whyTooNew(*table, status.driverVersion); !status.reason.empty())
        return status;
    std::int32_t count = 0;
    if (table->deviceCount(&count) != 0 || count == 0) {
        status.reason = fmt::format("the CUDA plugin finds no GPU it can use: {}", table->lastError());
        return status;
    }
    for (std::int32_t device = 0; device < count; ++device) {
        PipewrightCudaDevice info{};
        if (table->deviceInfo(device, &info) != 0) {
            status.reason = fmt::format("GPU {} cannot be used: {}", device, table->lastError());
            return status;
        }
        status.devices.push_back(info);
    }
    std::vector<std::string> folders = search.folders;
    folders.push_back(std::filesystem::path(status.plugin).parent_path().string());
    status.libraries = findCudaLibraries(majorOf(static_cast<int>(table->toolkit)), folders);
    status.table = table;
    return status;
}

std::vector<CudaLibrary> findCudaLibraries(int major, const std::vector<std::string>& folders)
{
    // From CUDA 13 on, the Python packages share one folder for the toolkit; before, each library had its own.
    const std::string one = major >= 13 ? fmt::format("cu{}", major) : std::string();
    const auto find = [&](const char* name, const char* purpose, std::string file, const std::string& wheel) {
        std::string path = whereLibraryIs(file, wheel, folders);
        return CudaLibrary{name, purpose, std::move(file), std::move(path)};
    };
    return {
        find("cuBLASLt", "fast matrix products", fmt::format("libcublasLt.so.{}", major), one.empty() ? "cublas" : one),
        find("cuDNN", "attention of bf16 values", "libcudnn.so.9", "cudnn"),
        find("NCCL", "transfers between GPUs of several processes", "libnccl.so.2", "nccl"),
        find("CUPTI", "traces of what runs on the GPU", fmt::format("libcupti.so.{}", major),
             one.empty() ? "cuda_cupti" : one)};
}

} // namespace pipewright
