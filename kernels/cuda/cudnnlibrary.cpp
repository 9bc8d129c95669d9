// SPDX-License-Identifier: GPL-3.0-or-later
// The frontend could open the library itself, and a second CUDA runtime with it, each by a name without a folder. Then
// a file planted where the loader looks first would run.
#include "kernels/cuda/cudnnlibrary.h"

#include <cudnn.h>
#include <dlfcn.h>
#include <mutex>
#include <nvrtc.h>

namespace pipewright::kernels::cuda {

namespace {

#define PIPEWRIGHT_CUDNN(use)                                                                                          \
    use(cudnnGetVersion) use(cudnnGetErrorString) use(cudnnGetLastErrorString) use(cudnnCreate) use(cudnnDestroy)      \
        use(cudnnSetStream) use(cudnnGetStream) use(cudnnBackendCreateDescriptor) use(cudnnBackendDestroyDescriptor)   \
            use(cudnnBackendFinalize) use(cudnnBackendGetAttribute) use(cudnnBackendSetAttribute)                      \
                use(cudnnBackendExecute) use(cudnnCreateFilterDescriptor) use(cudnnDestroyFilterDescriptor)            \
                    use(cudnnSetFilterNdDescriptor) use(cudnnReorderFilterAndBias)

struct Cudnn {
#define PIPEWRIGHT_DECLARE(name) decltype(&::name) name = nullptr;
    PIPEWRIGHT_CUDNN(PIPEWRIGHT_DECLARE)
#undef PIPEWRIGHT_DECLARE
};

Cudnn cudnn; ///< global, since C functions have no object
std::mutex opening;
std::string openPath;

} // namespace

std::string openCudnn(const std::string& path)
{
    const std::lock_guard lock(opening);
    if (path == openPath)
        return {};
    if (!openPath.empty())
        return "another cuDNN is in use already: " + openPath;
    if (path.empty() || path.front() != '/')
        return path + " is not an absolute path";
    void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return dlerror();
    Cudnn found;
#define PIPEWRIGHT_LOAD(name)                                                                                          \
    if (found.name = reinterpret_cast<decltype(found.name)>(dlsym(library, #name)); !found.name)                       \
        return path + " has no " #name;
    PIPEWRIGHT_CUDNN(PIPEWRIGHT_LOAD)
#undef PIPEWRIGHT_LOAD
    // Another major version may have other semantics than the header.
    if (const std::size_t version = found.cudnnGetVersion(); version / 10000 != CUDNN_MAJOR)
        return path + " is of version " + std::to_string(version) + ", and this program is made for "
               + std::to_string(CUDNN_MAJOR);
    cudnn = found;
    openPath = path;
    return {};
}

std::string cudnnVersion()
{
    const std::size_t version = cudnn.cudnnGetVersion();
    return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "."
           + std::to_string(version % 100);
}

} // namespace pipewright::kernels::cuda

using pipewright::kernels::cuda::cudnn;

// As <cudnn.h> declares them.
size_t cudnnGetVersion()
{
    return cudnn.cudnnGetVersion();
}
const char* cudnnGetErrorString(cudnnStatus_t status)
{
    return cudnn.cudnnGetErrorString(status);
}
void cudnnGetLastErrorString(char* message, size_t size)
{
    cudnn.cudnnGetLastErrorString(message, size);
}
cudnnStatus_t cudnnCreate(cudnnHandle_t* handle)
{
    return cudnn.cudnnCreate(handle);
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle)
{
    return cudnn.cudnnDestroy(handle);
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream)
{
    return cudnn.cudnnSetStream(handle, stream);
}
cudnnStatus_t cudnnGetStream(cudnnHandle_t handle, cudaStream_t* stream)
{
    return cudnn.cudnnGetStream(handle, stream);
}
cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t* descriptor)
{
    return cudnn.cudnnBackendCreateDescriptor(type, descriptor);
}
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor)
{
    return cudnn.cudnnBackendDestroyDescriptor(descriptor);
}
cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor)
{
    return cudnn.cudnnBackendFinalize(descriptor);
}
cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t requested, int64_t* count,
                                       void* elements)
{
    return cudnn.cudnnBackendGetAttribute(descriptor, name, type, requested, count, elements);
}
cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count, const void* elements)
{
    return cudnn.cudnnBackendSetAttribute(descriptor, name, type, count, elements);
}
cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                  cudnnBackendDescriptor_t operands)
{
    return cudnn.cudnnBackendExecute(handle, plan, operands);
}
cudnnStatus_t cudnnCreateFilterDescriptor(cudnnFilterDescriptor_t* descriptor)
{
    return cudnn.cudnnCreateFilterDescriptor(descriptor);
}
cudnnStatus_t cudnnDestroyFilterDescriptor(cudnnFilterDescriptor_t descriptor)
{
    return cudnn.cudnnDestroyFilterDescriptor(descriptor);
}
cudnnStatus_t cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t descriptor, cudnnDataType_t type,
                                         cudnnTensorFormat_t format, int dimensions, const int sizes[])
{
    return cudnn.cudnnSetFilterNdDescriptor(descriptor, type, format, dimensions, sizes);
}
cudnnStatus_t cudnnReorderFilterAndBias(cudnnHandle_t handle, const cudnnFilterDescriptor_t filter,
                                        cudnnReorderType_t reorder, const void* filterData, void* reorderedFilter,
                                        int reorderBias, const void* biasData, void* reorderedBias)
{
    return cudnn.cudnnReorderFilterAndBias(handle, filter, reorder, filterData, reorderedFilter, reorderBias, biasData,
                                           reorderedBias);
}

// The frontend compiles its own kernels for norms, which are not used here. These stubs report that there is no
// compiler.
nvrtcResult nvrtcCreateProgram(nvrtcProgram*, const char*, const char*, int, const char* const*, const char* const*)
{
    return NVRTC_ERROR_INTERNAL_ERROR;
}
nvrtcResult nvrtcDestroyProgram(nvrtcProgram*)
{
    return NVRTC_ERROR_INTERNAL_ERROR;
}
nvrtcResult nvrtcCompileProgram(nvrtcProgram, int, const char* const*)
{
    return NVRTC_ERROR_INTERNAL_ERROR;
}
nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram, size_t*)
{
    return NVRTC_ERROR_INTERNAL_ERROR;
}
nvrtcResult nvrtcGetProgramLog(nvrtcProgram, char*)
{
    return NVRTC_ERROR_INTERNAL_ERROR;
}
nvrtcResult nvrtcGetCUBINSize(nvrtcProgram, size_t*)
{
    return NVRTC_ERROR_INTERNAL_ERROR;
}
nvrtcResult nvrtcGetCUBIN(nvrtcProgram, char*)
{
    return NVRTC_ERROR_INTERNAL_ERROR;
}
