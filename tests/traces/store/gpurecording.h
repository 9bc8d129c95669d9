// SPDX-License-Identifier: GPL-3.0-or-later
// Records in the shape of CUPTI's, made up from a timeline: four kernels in every block with the calls that launched
// them, a copy for every transfer, and what CUPTI itself took. None of it comes from a GPU.
#pragma once

#include "traces/store/recording.h"

#include <array>

namespace pipewright::test {

/// A product of cuBLASLt, and kernels as a compiler names pipewright::attentionForward(float const*, float*, int) and
/// so on.
inline const std::array<std::string, 4> kernelNames{
    "sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x128x32_execute_kernel_cublas",
    "_ZN10pipewright16attentionForwardEPKfPfi", "_ZN10pipewright9layerNormEPKfPfi", "_ZN10pipewright4geluEPKfPfi"};

struct GpuShape {
    bool oneGpu = false;    ///< all devices of the design are slices of GPU 0
    TaskId late = none;     ///< a block whose third kernel is launched while the GPU has nothing to do
    Nanoseconds begin = 50; ///< per mille of a block before its first kernel …
    Nanoseconds each = 200; ///< … of each kernel …
    Nanoseconds gap = 20;   ///< … and of each gap between two, so that 90 are left behind the last
};

inline std::vector<GpuRecord> gpuRecordsOf(const Program& program, const Timeline& timeline, int step,
                                           Nanoseconds origin, const GpuShape& shape = {})
{
    std::vector<GpuRecord> records;
    std::uint32_t correlation = static_cast<std::uint32_t>(step) * 100'000;
    for (TaskId id = 0; id < program.tasks.size(); ++id) {
        const Task& task = program.tasks[id];
        const Nanoseconds start = origin + timeline.start[id], length = timeline.end[id] - timeline.start[id];
        const int gpu = shape.oneGpu ? 0 : task.device;
        if (length <= 0)
            continue;
        if (task.kind == TaskKind::Transfer) {
            GpuRecord copy{step, id, GpuRecord::Kind::Copy, "copy to another GPU", gpu, 100 + task.device};
            copy.start = start;
            copy.end = start + length;
            copy.bytes = 4096;
            copy.copyKind = 10;
            copy.toDevice = shape.oneGpu ? 0 : task.destination();
            copy.correlation = ++correlation;
            records.push_back(copy);
            continue;
        }
        for (std::size_t i = 0; i < kernelNames.size(); ++i) {
            GpuRecord kernel{step, id, GpuRecord::Kind::Kernel, kernelNames[i], gpu, 7 + task.device};
            kernel.start =
                start + length * (shape.begin + static_cast<Nanoseconds>(i) * (shape.each + shape.gap)) / 1000;
            kernel.end = kernel.start + length * shape.each / 1000;
            kernel.correlation = ++correlation;
            GpuRecord call{step, id, GpuRecord::Kind::Call, "cudaLaunchKernel"};
            call.correlation = correlation;
            call.thread = 4000 + task.device;
            call.end = id == shape.late && i == 2 ? kernel.start - length / 200
                                                  : start - 8000 + 1000 * static_cast<Nanoseconds>(i);
            call.start = call.end - 800;
            records.push_back(call);
            records.push_back(kernel);
        }
    }
    GpuRecord overhead{step, none, GpuRecord::Kind::Overhead, "flush of a buffer"};
    overhead.start = origin;
    overhead.end = origin + 5'000;
    records.push_back(overhead);
    return records;
}

/// A finished recording of `steps` steps that ran as the timeline says, with what CUPTI would have seen.
inline void writeGpuRecording(const std::string& path, const Design& design, const Program& program,
                              const Timeline& timeline, int steps, const GpuShape& shape = {})
{
    TraceHeader header = smallHeader();
    header.backend = "cuda";
    header.deviceNames.clear();
    for (std::size_t d = 0; d < program.devices.size(); ++d)
        header.deviceNames.push_back("GPU " + std::to_string(shape.oneGpu ? 0 : d) + " (made up), device "
                                     + std::to_string(d));
    TraceWriter writer(path, design, program, header);
    const Nanoseconds makespan = *std::max_element(timeline.end.begin(), timeline.end.end());
    for (int step = 0; step < steps; ++step) {
        const Nanoseconds origin = 1'000'000'000 + 2 * makespan * step;
        writer.append(recordsOf(program, timeline, step, origin));
        writer.append(gpuRecordsOf(program, timeline, step, origin, shape));
        writer.append(StepRecord{step, origin, origin + makespan, 0.5});
        writer.commit();
    }
    writer.finish({}, 0, "{}");
}

} // namespace pipewright::test
