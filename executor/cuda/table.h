// SPDX-License-Identifier: GPL-3.0-or-later
// The seam between the program, which needs no NVIDIA library, and the CUDA plugin, which is opened at run
// time: one exported C function that returns a table of C functions. Version and size come first and never
// move, so that a plugin of another build is told apart before anything else of it is used. Every call that can
// fail returns 0 or a CUDA error number, and lastError() says in words what it was.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { PIPEWRIGHT_CUDA_ABI = 1 };
#define PIPEWRIGHT_CUDA_ENTRY "pipewrightCudaTable"

typedef struct PipewrightCudaDevice {
    char name[128];
    int64_t memory; /* bytes */
    int32_t multiprocessors;
    int32_t major, minor; /* compute capability */
    int32_t copyEngines;
} PipewrightCudaDevice;

typedef struct PipewrightCudaTable {
    uint32_t abi;                   /* PIPEWRIGHT_CUDA_ABI of the plugin's build */
    uint32_t size;                  /* sizeof(PipewrightCudaTable) there */
    const char* (*buildInfo)(void); /* "CUDA 13.0, sm_90" */
    const char* (*lastError)(void); /* of the calling thread; never null */
    int (*deviceCount)(int32_t* count);
    int (*deviceInfo)(int32_t device, PipewrightCudaDevice* info);
    int (*allocate)(int32_t device, int64_t bytes, void** data);
    int (*release)(int32_t device, void* data);
    int (*createStream)(int32_t device, void** stream);
    int (*destroyStream)(void* stream);
    int (*streamDone)(void* stream, int32_t* done); /* asks, does not wait */
    int (*createEvent)(int32_t device, void** event);
    int (*destroyEvent)(void* event);
    int (*recordEvent)(void* event, void* stream);
    int (*eventDone)(void* event, int32_t* done);
    int (*streamWaits)(void* stream, void* event);
    int (*elapsed)(void* from, void* to, float* milliseconds);
    /* Between any two places, host memory included; ordered on the stream. */
    int (*copy)(void* to, int32_t toDevice, const void* from, int32_t fromDevice, int64_t bytes, void* stream);
} PipewrightCudaTable;

typedef const PipewrightCudaTable* (*PipewrightCudaEntry)(void);

#ifdef __cplusplus
}
#endif
