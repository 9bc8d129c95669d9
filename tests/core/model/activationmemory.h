// SPDX-License-Identifier: GPL-3.0-or-later
// The published closed forms for GPT models under tensor and sequence parallelism: activation bytes per
// layer (Korthikanti et al., arXiv 2205.05198, table 2; 16-bit activations, one-byte masks) and FLOPs per
// iteration (ibid., app. A). Tests compare the layer lists with them.
#pragma once

#include "core/base/units.h"
#include "core/model/modelshape.h"

namespace pipewright {

/// How activations are spread over `t` tensor-parallel devices, and what is recomputed.
enum class ActivationMode {
    TensorParallel,            ///< sbh (10 + 24/t + 5as/(ht)); with t = 1, nothing spared: sbh (34 + 5as/h)
    SequenceParallel,          ///< sbh (34 + 5as/h) / t
    TensorParallelSelective,   ///< sbh (10 + 24/t): the attention core is recomputed
    SequenceParallelSelective, ///< 34 sbh / t
    FullRecompute,             ///< 2 sbh: only a layer's input is kept
};

/// Bytes of one layer for one microbatch on each of `tensorParallel` devices.
double activationBytesPerLayer(const ModelShape& shape, ActivationMode mode, int tensorParallel);

/// Activation bytes of the first stage of a 1F1B pipeline of `devices` x `chunks` stages: as many layers'
/// worth as the whole model has, times 1 + (p-1)/(pv) when interleaved.
double firstStageActivationBytes(const ModelShape& shape, ActivationMode mode, int tensorParallel, int devices,
                                 int chunks);

/// Parameters, gradients and optimizer state of the layers' matrices, 12 L h^2, per device at
/// `bytesPerParameter` (18 for mixed-precision Adam). The papers leave biases, norms and embedding out here.
double stateBytesPerDevice(const ModelShape& shape, int bytesPerParameter, int tensorParallel, int devices);

/// Floating-point operations of one iteration over `batch` sequences, V the vocabulary:
///   None       72 B L s h^2 (1 + s/6h + V/12hL), the model FLOPs whatever is recomputed
///   Selective  72 B L s h^2 (1 + s/3h + V/12hL)
///   Full       96 B L s h^2 (1 + s/6h + V/16hL)
double iterationFlops(const ModelShape& shape, double batch, Recompute recompute);

/// Share of `devices` x `peakFlops` that `flops` in `seconds` amount to: MFU with model FLOPs (None), HFU
/// with those of the recomputation in use.
double utilization(double flops, double seconds, double devices, double peakFlops);

struct Dimensions {
    double s, b, h, a, layers, vocabulary;
    explicit Dimensions(const ModelShape& shape)
        : s(static_cast<double>(shape.sequence)), b(static_cast<double>(shape.microbatchSize)),
          h(static_cast<double>(shape.hidden)), a(shape.heads), layers(shape.layers),
          vocabulary(static_cast<double>(shape.vocabulary))
    {
    }
};

inline double activationBytesPerLayer(const ModelShape& shape, ActivationMode mode, int tensorParallel)
{
    const Dimensions d(shape);
    const double sbh = d.s * d.b * d.h;
    const double attentionCore = 5 * d.a * d.s / d.h;
    const double t = tensorParallel;
    switch (mode) {
    case ActivationMode::TensorParallel: return sbh * (10 + 24 / t + attentionCore / t);
    case ActivationMode::SequenceParallel: return sbh * (34 + attentionCore) / t;
    case ActivationMode::TensorParallelSelective: return sbh * (10 + 24 / t);
    case ActivationMode::SequenceParallelSelective: return sbh * 34 / t;
    case ActivationMode::FullRecompute: break;
    }
    return 2 * sbh;
}

inline double firstStageActivationBytes(const ModelShape& shape, ActivationMode mode, int tensorParallel, int devices,
                                        int chunks)
{
    const double interleaved = chunks > 1 ? 1 + (devices - 1.0) / (static_cast<double>(devices) * chunks) : 1;
    return activationBytesPerLayer(shape, mode, tensorParallel) * shape.layers * interleaved;
}

inline double stateBytesPerDevice(const ModelShape& shape, int bytesPerParameter, int tensorParallel, int devices)
{
    const Dimensions d(shape);
    return bytesPerParameter * 12 * d.layers * d.h * d.h / (static_cast<double>(tensorParallel) * devices);
}

inline double iterationFlops(const ModelShape& shape, double batch, Recompute recompute)
{
    const Dimensions d(shape);
    const double core = d.s / (6 * d.h);
    const double head = d.vocabulary / (12 * d.h * d.layers);
    const double layers = batch * d.layers * d.s * d.h * d.h;
    if (recompute.coresOnly())
        return 72 * layers * (1 + 2 * core + head);
    if (recompute.readsInput())
        return 96 * layers * (1 + core + 0.75 * head);
    return 72 * layers * (1 + core + head);
}

inline double utilization(double flops, double seconds, double devices, double peakFlops)
{
    return flops / (seconds * devices * peakFlops);
}

} // namespace pipewright
