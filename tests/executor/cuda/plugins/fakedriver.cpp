// SPDX-License-Identifier: GPL-3.0-or-later
// Stands in for the NVIDIA driver in the loader's tests: what it answers is decided when it is compiled.
extern "C" {
int cuInit(unsigned)
{
    return FAKE_INIT;
}
int cuDriverGetVersion(int* version)
{
    *version = FAKE_VERSION;
    return 0;
}
int cuDeviceGetCount(int* count)
{
    *count = FAKE_GPUS;
    return 0;
}
}
