// SPDX-License-Identifier: GPL-3.0-or-later
// Finds out, step by step, whether CUDA can be used here, and says in words what is missing at the first step that
// fails: the driver, its version, a GPU, the plugin, the plugin's version. There may be a plugin for each major version
// of CUDA: the newest that the driver runs is used. Then it looks for the libraries that single features need. The
// program links none of them, so it starts on any machine.
#pragma once

#include "executor/cuda/table.h"

#include <memory>
#include <string>
#include <vector>

namespace pipewright {

/// Where to look; tests look elsewhere. With a path that is not absolute nothing is opened, and the status says why.
struct CudaSearch {
    std::string driver = "libcuda.so.1";
    std::string plugin{};               ///< a file; empty: beside the program, then in ../lib/pipewright
    std::vector<std::string> folders{}; ///< for NVIDIA's libraries; searched first
    bool needDriver = true;             ///< false: try the plugin even without one
};

/// A library that one feature needs.
struct CudaLibrary {
    std::string name;    ///< "NCCL"
    std::string purpose; ///< "transfers between processes"
    std::string file;    ///< "libnccl.so.2"
    std::string path{};  ///< where it was found; empty: not found
};

struct CudaStatus {
    const PipewrightCudaTable* table = nullptr; ///< null: `reason` says why
    std::string reason{};
    std::string plugin{}, buildInfo{};
    int driverVersion = 0; ///< 13000 for 13.0; 0: unknown
    std::vector<PipewrightCudaDevice> devices{};
    std::vector<CudaLibrary> libraries{};
};

/// Sets what the driver reads when it starts: CUDA_DEVICE_MAX_CONNECTIONS, unless the user has set it. Call it in
/// main(), before there is a second thread: setenv() frees memory that another thread's getenv() may be reading.
void setDriverEnvironment();

/// Opens at most the driver and the plugin, and never closes them, since CUDA does not support unloading.
CudaStatus probeCuda(const CudaSearch& search = {});

/// cuBLASLt, NCCL and CUPTI for that major version of CUDA, each in `folders`, and where libraryplaces.h looks.
std::vector<CudaLibrary> findCudaLibraries(int major, const std::vector<std::string>& folders);

/// Empty when the table is exactly that of this build; otherwise why it is not.
std::string whyTableDoesNotFit(const PipewrightCudaTable* table);

} // namespace pipewright
