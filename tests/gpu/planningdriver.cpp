// SPDX-License-Identifier: GPL-3.0-or-later
// A driver for who only plans: it takes every compiled kernel, finds whatever is asked for in it, and has no GPU to run
// it on. cuDNN asks a driver for that even where plans are for a GPU that is not there.
namespace {

constexpr int success = 0, noDevice = 100, notSupported = 801;
char anything;

} // namespace

#define PIPEWRIGHT_REFUSED(name)                                                                                       \
    int name()                                                                                                         \
    {                                                                                                                  \
        return notSupported;                                                                                           \
    }

extern "C" {

int cuInit(unsigned)
{
    return noDevice;
}
int cuDriverGetVersion(int* version)
{
    *version = 13000;
    return success;
}
int cuDeviceGetCount(int* count)
{
    *count = 0;
    return success;
}
int cuGetErrorString(int, const char** text)
{
    *text = "there is no GPU";
    return success;
}
int cuLibraryLoadData(void** library, const void*, void*, void*, unsigned, void*, void*, unsigned)
{
    *library = &anything;
    return success;
}
int cuLibraryGetKernel(void** kernel, void*, const char*)
{
    *kernel = &anything;
    return success;
}
int cuLibraryUnload(void*)
{
    return success;
}
// cuDNN wants to find them.
PIPEWRIGHT_REFUSED(cuCtxGetCurrent)
PIPEWRIGHT_REFUSED(cuCtxGetLimit)
PIPEWRIGHT_REFUSED(cuCtxPopCurrent)
PIPEWRIGHT_REFUSED(cuCtxPushCurrent)
PIPEWRIGHT_REFUSED(cuDeviceGet)
PIPEWRIGHT_REFUSED(cuGetErrorName)
PIPEWRIGHT_REFUSED(cuKernelGetAttribute)
PIPEWRIGHT_REFUSED(cuKernelSetAttribute)
PIPEWRIGHT_REFUSED(cuLaunchCooperativeKernel)
PIPEWRIGHT_REFUSED(cuLaunchKernel)
PIPEWRIGHT_REFUSED(cuLaunchKernelEx)
PIPEWRIGHT_REFUSED(cuLibraryLoadFromFile)
PIPEWRIGHT_REFUSED(cuLinkAddData)
PIPEWRIGHT_REFUSED(cuLinkComplete)
PIPEWRIGHT_REFUSED(cuLinkCreate)
PIPEWRIGHT_REFUSED(cuLinkDestroy)
PIPEWRIGHT_REFUSED(cuOccupancyMaxPotentialClusterSize)
PIPEWRIGHT_REFUSED(cuStreamGetCtx)

} // extern "C"
