/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One operation on tensors of a shared stage, apart from the large ones of operations.h: what is read, what is written
 * and the sizes, as plain as C, so that it passes the table of the CUDA plugin as it is. tensoritems.h says what each
 * operation computes. */
#pragma once

#include <stdint.h>

typedef struct PipewrightTensorCall {
    int32_t operation;  /* pipewright::kernels::TensorOperation */
    float number;       /* of Scale */
    int64_t size[6];    /* what each means: tensoritems.h */
    const float* in[5]; /* null: not used */
    float* out;
    float* scratch; /* of Route: zeros, one per group and expert */
    int32_t* whole; /* of WholeNumbers instead of `out`; of FeatureBag the features, which are read */
} PipewrightTensorCall;
