// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/workload/activationmemory.h"

namespace pipewright {

namespace {

struct Dimensions {
    double s, b, h, a, layers, vocabulary;
    explicit Dimensions(const ModelShape& shape)
        : s(static_cast<double>(shape.sequence)), b(static_cast<double>(shape.microbatchSize)),
          h(static_cast<double>(shape.hidden)), a(shape.heads), layers(shape.layers),
          vocabulary(static_cast<double>(shape.vocabulary))
    {
    }
};

} // namespace

double activationBytesPerLayer(const ModelShape& shape, ActivationMode mode, int tensorParallel)
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

double firstStageActivationBytes(const ModelShape& shape, ActivationMode mode, int tensorParallel, int devices,
                                 int chunks)
{
    const double interleaved = chunks > 1 ? 1 + (devices - 1.0) / (static_cast<double>(devices) * chunks) : 1;
    return activationBytesPerLayer(shape, mode, tensorParallel) * shape.layers * interleaved;
}

double stateBytesPerDevice(const ModelShape& shape, int bytesPerParameter, int tensorParallel, int devices)
{
    const Dimensions d(shape);
    return bytesPerParameter * 12 * d.layers * d.h * d.h / (static_cast<double>(tensorParallel) * devices);
}

double iterationFlops(const ModelShape& shape, double batch, Recompute recompute)
{
    const Dimensions d(shape);
    const double core = d.s / (6 * d.h);
    const double head = d.vocabulary / (12 * d.h * d.layers);
    const double layers = batch * d.layers * d.s * d.h * d.h;
    switch (recompute) {
    case Recompute::None: break;
    case Recompute::Selective: return 72 * layers * (1 + 2 * core + head);
    case Recompute::Full: return 96 * layers * (1 + core + 0.75 * head);
    }
    return 72 * layers * (1 + core + head);
}

double utilization(double flops, double seconds, double devices, double peakFlops)
{
    return flops / (seconds * devices * peakFlops);
}

} // namespace pipewright
