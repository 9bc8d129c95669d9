// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/cuda/gpushares.h"

#include "core/base/formattedtext.h"
#include "executor/cuda/slicesteps.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace pipewright {

namespace {

/// Checks whether all slices of one GPU fit together.
void checkSlices(int number, const PipewrightCudaDevice& gpu, const std::vector<GpuShare>& wanted, Diagnostics& why)
{
    const SliceSteps cutBy = sliceStepsOf(gpu.major);
    const int least = static_cast<int>(cutBy.least), step = static_cast<int>(cutBy.step);
    std::vector<int> devices, asked;
    int sum = 0, cut = 0;
    for (int d = 0; d < static_cast<int>(wanted.size()); ++d) {
        const GpuShare& share = wanted[d];
        if (share.gpu != number || share.multiprocessors <= 0)
            continue;
        devices.push_back(d);
        asked.push_back(share.multiprocessors);
        sum += share.multiprocessors;
        cut += std::max(least, (share.multiprocessors + step - 1) / step * step);
    }
    if (cut <= gpu.multiprocessors)
        return;
    const int each = gpu.multiprocessors / static_cast<int>(devices.size()) / step * step;
    const bool one = devices.size() == 1, tooMany = sum > gpu.multiprocessors;
    const std::string asking = fmt::format("device{} {} want{} {} multiprocessors of GPU {}", one ? "" : "s",
                                           joined(devices, ", "), one ? "s" : "", joined(asked, " + "), number);
    why.push_back({tooMany ? Severity::Error : Severity::Warning, "cluster.gpus",
                   tooMany ? fmt::format("{}, which has {}", asking, gpu.multiprocessors)
                           : fmt::format("{}, which is cut in steps of {}: that takes {} of its {}, and may be refused",
                                         asking, step, cut, gpu.multiprocessors),
                   each >= least ? fmt::format("give {} at most {}{}, or 0 to share the whole GPU", one ? "it" : "them",
                                               each, one ? "" : " each")
                                 : "put fewer devices on the GPU, or give them 0 to share the whole of it"});
}

} // namespace

Diagnostics whyNotPlaced(const std::vector<GpuShare>& wanted, int devices,
                         const std::vector<PipewrightCudaDevice>& gpus)
{
    if (wanted.empty())
        return {};
    if (std::ssize(wanted) < devices)
        return {{Severity::Error, "cluster.gpus",
                 fmt::format("says where {} devices run, and the design has {}", wanted.size(), devices),
                 "give one entry per device"}};
    const std::vector<GpuShare> used(wanted.begin(), wanted.begin() + devices);
    const int count = static_cast<int>(gpus.size());
    Diagnostics why;
    for (int d = 0; d < devices; ++d)
        if (const int gpu = used[d].gpu; gpu < 0 || gpu >= count)
            why.push_back({Severity::Error, fmt::format("cluster.gpus[{}]", d),
                           fmt::format("device {} is to run on GPU {}, and this machine has {}", d, gpu, count),
                           "GPUs are counted from 0; pipewright devices lists them"});
    for (int gpu = 0; gpu < count; ++gpu)
        checkSlices(gpu, gpus[gpu], used, why);
    return why;
}

std::vector<GpuShare> gpuSharesFor(const std::vector<GpuShare>& wanted, int devices,
                                   const std::vector<PipewrightCudaDevice>& gpus)
{
    if (Diagnostics why = whyNotPlaced(wanted, devices, gpus); hasErrors(why))
        throw Error(std::move(why));
    if (!wanted.empty())
        return {wanted.begin(), wanted.begin() + devices};
    const int count = static_cast<int>(gpus.size());
    if (count == 0)
        throw Error("--backend", "this machine has no GPU", "use --backend host");
    std::vector<GpuShare> shares;
    for (int d = 0; d < devices; ++d) {
        const int onSameGpu = (devices - d % count + count - 1) / count;
        // Slices come in steps of 8 on the GPUs of today; rounding down leaves room for everyone.
        const int slice = gpus[d % count].multiprocessors / onSameGpu / 8 * 8;
        shares.push_back({d % count, onSameGpu > 1 ? slice : 0});
    }
    return shares;
}

} // namespace pipewright
