// SPDX-License-Identifier: GPL-3.0-or-later
// The interface between the program, which needs no NVIDIA library, and the CUDA plugin, which is opened at run time:
// one exported C function that returns a table of C functions. Version and size come first and never move, so that a
// plugin of another build is recognised before anything else of it is used. Every call that can fail returns 0 or an
// error number; lastError() returns its message.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { PIPEWRIGHT_CUDA_ABI = 18, PIPEWRIGHT_NCCL_NAME = 128 };
#define PIPEWRIGHT_CUDA_ENTRY "pipewrightCudaTable"

typedef struct PipewrightCudaDevice {
    char name[128];
    int64_t memory; /* bytes */
    int32_t multiprocessors;
    int32_t major, minor; /* compute capability */
    int32_t copyEngines;
    char
        busId[32]; /* where it is plugged in: no other GPU of the machine has the same, whatever number it is seen by */
} PipewrightCudaDevice;

/* What a recorder on the GPU saw; times are of steadyNow(). */
enum PipewrightGpuActivityKind {
    PIPEWRIGHT_GPU_KERNEL = 0,
    PIPEWRIGHT_GPU_COPY = 1,
    PIPEWRIGHT_GPU_SET = 2,
    PIPEWRIGHT_GPU_OVERHEAD = 3, /* of the recorder itself */
    PIPEWRIGHT_GPU_MEMORY = 4,   /* allocated (bytes > 0) or released (bytes < 0) at `start` */
    PIPEWRIGHT_GPU_CALL = 5,     /* a launch by the host; the launched activity has the same correlation */
};
typedef struct PipewrightGpuActivity {
    int64_t start, end;
    int64_t block; /* the number given to beginBlock(); -1: outside of every block */
    int64_t bytes; /* copied, set or allocated; -1: does not apply */
    uint64_t graphNode;
    uint32_t correlation;
    int32_t kind;
    int32_t device, stream; /* -1: none */
    int32_t copyKind;       /* as CUPTI numbers them; 10: from GPU to GPU */
    int32_t toDevice;       /* of a copy between GPUs; else -1 */
    int64_t thread;         /* of a call: who made it; else -1 */
    const char* name;       /* valid during the call; never null */
} PipewrightGpuActivity;
typedef void (*PipewrightGpuActivities)(void* context, const PipewrightGpuActivity* activities, int32_t count);

/* The workspace of a stage's maths: 32 MiB for cuBLASLt, as NVIDIA advises on Hopper, and a number for each row: the
 * losses of a cross entropy, or mean and scale of half as many rows of a layer norm at a time. Attention by cuDNN has
 * the first part too, and may need it to be larger. */
enum {
    PIPEWRIGHT_PRODUCT_WORKSPACE = 32 << 20,
    PIPEWRIGHT_MATHS_ROWS = 1 << 18,
    PIPEWRIGHT_MATHS_WORKSPACE = PIPEWRIGHT_PRODUCT_WORKSPACE + 4 * PIPEWRIGHT_MATHS_ROWS
};

/* Which kernels compute attention of bf16 operands. */
enum PipewrightAttention {
    PIPEWRIGHT_ATTENTION_OWN = 0,   /* kernels of our own */
    PIPEWRIGHT_ATTENTION_AUTO = 1,  /* cuDNN, if it supports the shape and its workspace suffices */
    PIPEWRIGHT_ATTENTION_CUDNN = 2, /* cuDNN, otherwise it is a failure */
};
typedef struct PipewrightMathsSetup {
    const char *cublasLt, *cudnn; /* the libraries' files; null: kernels of our own */
    int32_t bfloat16;             /* factors of fp32 products are rounded to it */
    int32_t attention;
    void* workspace;        /* of the device; the caller keeps it until destroyMaths() */
    int64_t workspaceBytes; /* at least PIPEWRIGHT_MATHS_WORKSPACE */
} PipewrightMathsSetup;

typedef struct PipewrightCudaTable {
    uint32_t abi;     /* PIPEWRIGHT_CUDA_ABI of the plugin's build */
    uint32_t size;    /* sizeof(PipewrightCudaTable) there */
    uint32_t toolkit; /* CUDART_VERSION there: 12090, 13000; no driver of an older major version runs it */
    const char* (*buildInfo)(void); /* "CUDA 13.0" */
    const char* (*lastError)(void); /* of the calling thread; never null */
    int (*deviceCount)(int32_t* count);
    int (*deviceInfo)(int32_t device, PipewrightCudaDevice* info);
    int (*allocate)(int32_t device, int64_t bytes, void** data);
    int (*release)(int32_t device, void* data);
    /* Memory of the host that copy engines reach by themselves, for copies beside what a device computes. */
    int (*allocateHost)(int64_t bytes, void** data);
    int (*releaseHost)(void* data);
    /* Cuts a GPU's multiprocessors into slices of at least the wanted sizes; `granted` says what each got. */
    int (*createSlices)(int32_t device, const int32_t* wanted, int32_t count, int32_t* granted, void** slices);
    int (*destroySlice)(void* slice);
    int (*createStream)(int32_t device, void* slice, void** stream); /* slice null: the whole GPU */
    int (*destroyStream)(void* stream);
    int (*streamDone)(void* stream, int32_t* done); /* asks, does not wait */
    int (*createEvent)(int32_t device, void** event);
    int (*destroyEvent)(void* event);
    int (*recordEvent)(void* event, void* stream);
    int (*eventDone)(void* event, int32_t* done);
    int (*streamWaits)(void* stream, void* event);
    int (*elapsed)(void* from, void* to, float* milliseconds);
    /* Between any two places, host memory (device -1) included; ordered on the stream. */
    int (*copy)(void* to, int32_t toDevice, const void* from, int32_t fromDevice, int64_t bytes, void* stream);
    int (*enablePeer)(int32_t from, int32_t to,
                      int32_t* direct); /* whether the two reach each other without the host */

    /* Keep a stream busy: spin() for a time, spinFrom() until a time after stamp() wrote the clock to `place`. */
    int (*spin)(int32_t device, void* stream, int64_t nanoseconds);
    int (*stamp)(int32_t device, void* stream, void* place);
    int (*spinFrom)(int32_t device, void* stream, const void* place, int64_t nanoseconds);

    /* Work issued on the stream between the two calls is captured, not run. */
    int (*beginCapture)(void* stream);
    int (*endCapture)(void* stream, void** graph);
    int (*launchGraph)(int32_t device, void* graph, void* stream); /* from any thread */
    int (*destroyGraph)(void* graph);

    /* Work that the calling thread issues between the two calls belongs to the block: an NVTX range, a CUPTI label. */
    int (*beginBlock)(const char* label, int64_t block);
    int (*endBlock)(void);

    /* CUPTI, from that file. One session per process. `take` is called by flushActivities alone. */
    int (*startActivities)(const char* library);
    /* After the start: what this CUPTI cannot do; null: nothing is missing. */
    const char* (*recorderNote)(void);
    /* `dropped`: lost records; `untimed`: records without times. */
    int (*flushActivities)(PipewrightGpuActivities take, void* context, int64_t* dropped, int64_t* untimed);
    int (*stopActivities)(void);

    /* NCCL, from that file. A communicator per directed pair, warmed up; its two ends belong to their GPU's thread.
     * Calls that wait for others give up after `deadline` nanoseconds. */
    int (*ncclOpen)(const char* library);
    int (*ncclConnect)(int32_t from, int32_t to, int64_t deadline, void** sender, void** receiver);
    int (*ncclSend)(void* sender, const void* data, int64_t bytes, void* stream);
    int (*ncclReceive)(void* receiver, void* data, int64_t bytes, void* stream);
    int (*ncclGroup)(int32_t begin); /* 1 begins a group of calls that are issued as one, 0 ends it */
    /* A communicator of many, of which each process joins the ranks of its own GPUs: with the name that one of them
       made and told the others. Only begins; ncclJoined() asks, without waiting, whether all have come, and until it
       says so the member can only be closed. */
    int (*ncclName)(uint8_t name[PIPEWRIGHT_NCCL_NAME]);
    int (*ncclJoin)(int32_t device, const uint8_t name[PIPEWRIGHT_NCCL_NAME], int32_t rank, int32_t ranks,
                    int32_t multiprocessors, void** member); /* most for a transfer; 0: NCCL decides */
    int (*ncclJoined)(void* member, int32_t* joined);
    /* Call once for this process's members when all have joined: NCCL connects at the first use of a kind of
     * collective, which would else be timed. Not `all`: only the all-reduce is used. Members that were not warmed up
     * within the deadline are aborted. */
    int (*ncclWarmUp)(void* const* members, int32_t count, int32_t all, int64_t deadline);
    int (*ncclAllReduce)(void* member, const float* from, float* to, int64_t count, void* stream);
    int (*ncclAllGather)(void* member, const float* from, float* to, int64_t countOfEach, void* stream);
    int (*ncclReduceScatter)(void* member, const float* from, float* to, int64_t countOfEach, void* stream);
    int (*ncclBroadcast)(void* member, float* data, int64_t count, int32_t root, void* stream);
    int (*ncclReduce)(void* member, const float* from, float* to, int64_t count, int32_t root, void* stream);
    int (*ncclSendTo)(void* member, int32_t rank, const void* data, int64_t bytes, void* stream);
    int (*ncclReceiveFrom)(void* member, int32_t rank, void* data, int64_t bytes, void* stream);
    int (*ncclAbort)(void* end); /* from any thread: ends what is in flight; ncclClose() is still needed */
    int (*ncclClose)(void* end);

    /* Maths in device memory, in the order of the stream. `operation` is one of kernels/calls.h, `call` its struct of
       so many bytes, which is read before compute() returns; `stored` says which operands lie in bf16
       (kernels/operands.h). */
    int (*createMaths)(int32_t device, void* stream, const PipewrightMathsSetup* setup, void** maths);
    int (*destroyMaths)(void* maths);
    int (*compute)(void* maths, int32_t operation, const void* call, int64_t bytes, uint32_t stored);
    /* Where the last compute() needed extra steps; null: nowhere. Valid until the next compute(). */
    const char* (*mathsNote)(void* maths);
    /* Likewise: which kernels computed attention; each note once. */
    const char* (*attentionNote)(void* maths);
    /* What the larger of both passes of such attention wants of the workspace's first part: of a
     * kernels::GroupedAttentionShape of so many bytes. 0: cuDNN does neither. */
    int (*attentionWorkspace)(int32_t device, void* stream, const char* cudnn, const void* shape, int64_t bytes,
                              int64_t* workspace);
} PipewrightCudaTable;

typedef const PipewrightCudaTable* (*PipewrightCudaEntry)(void);

#ifdef __cplusplus
}
#endif
