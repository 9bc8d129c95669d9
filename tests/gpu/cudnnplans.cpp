// SPDX-License-Identifier: GPL-3.0-or-later
// Attention by the real cuDNN, as far as it goes without a GPU: for GPUs that are not here it makes the plans that a
// run makes, and says what workspace they want. Started with a driver that has no GPU (planningdriver.cpp). Ends with
// 77 where the library is not found. No kernel runs.
#include "executor/cuda/loader.h"
#include "executor/cuda/table.h"
#include "kernels/cuda/attentiongraph.h"
#include "kernels/cuda/cudnnlibrary.h"

#include <cstdio>
#include <fmt/format.h>
#include <string_view>

using namespace pipewright;
using namespace pipewright::kernels;
using namespace pipewright::kernels::cuda;

namespace {

int failures = 0;
bool all = false; ///< every length with every size and window

void require(bool holds, const std::string& what)
{
    failures += !holds;
    if (!holds)
        std::printf("WRONG: %s\n", what.c_str());
}

struct Gpu {
    const char* name;
    int capability, multiprocessors, sharedMemory;
};
constexpr Gpu gpus[] = {{"A100", 80, 108, 166'912}, {"H100", 90, 132, 232'448}, {"B200", 100, 148, 232'448}};

/// As the library writes down those of a GPU that it has (CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION).
std::shared_ptr<const cudnn_frontend::DeviceProperties> propertiesOf(const Gpu& gpu)
{
    const std::string text = fmt::format(
        R"({{"maxGridSize":[2147483647,65535,65535],"maxBlockSize":[1024,1024,64],"regsPerBlock":65536,)"
        R"("multiProcessorCount":{},"warpSize":32,"maxSharedMemoryPerBlock":49152,"maxSharedMemoryPerBlockOptin":{},)"
        R"("reservedSharedMemoryPerBlock":1024,"maxRegistersPerSM":65536,"maxCtasPerSM":32,"maxThreadsPerBlock":1024,)"
        R"("maxThreadsPerSM":2048,"pciDeviceId":0,"isTccDriver":0,"supportCoopLaunch":1,"totalGlobalMem":85899345920,)"
        R"("smClockRateKHz":1980000,"memClockRateKHz":2619000,"l2CacheSize":52428800,"cudaDeviceId":0,"deviceVer":{},)"
        R"("driverVer":13000,"deviceName":"{}"}})",
        gpu.multiprocessors, gpu.sharedMemory, 10 * gpu.capability, gpu.name);
    const auto properties = std::make_shared<cudnn_frontend::DeviceProperties>();
    auto status = properties->deserialize({text.begin(), text.end()});
    require(status.is_good(), status.get_message());
    return properties;
}

GroupedAttentionShape llama(int length, int size, int window = 0)
{
    return {.sequences = 1,
            .length = length,
            .heads = 32,
            .keyValueHeads = 8,
            .querySize = size,
            .valueSize = size,
            .window = window,
            .scale = 0.1f};
}

FusedPass backwardOf(const GroupedAttentionShape& shape)
{
    return fusedPass(shape, shape.heads * shape.querySize, shape.keyValueHeads * shape.querySize,
                     shape.keyValueHeads * shape.valueSize);
}

void checkPasses(const Gpu& gpu)
{
    const FusedTarget target{.properties = propertiesOf(gpu), .capability = gpu.capability};
    for (const int length : {2048, 8192})
        for (const int size : {64, 80, 96, 128})
            for (const int window : {0, 1024}) {
                if (!all && size != 128 && (length > 2048 || window > 0))
                    continue;
                const GroupedAttentionShape shape = llama(length, size, window);
                const FusedPlan forward = planOf(fusedPass(shape), target),
                                backward = planOf(backwardOf(shape), target);
                const std::string what = fmt::format("{}, {} tokens, 32 heads of {} over 8{}", gpu.name, length, size,
                                                     window > 0 ? ", window of 1024" : "");
                require(forward.graph != nullptr, what + ", forward: " + forward.whyNot);
                require(backward.graph != nullptr, what + ", gradients: " + backward.whyNot);
                std::printf("%s: forward %lld B, gradients %.1f MiB\n", what.c_str(),
                            static_cast<long long>(forward.workspace), double(backward.workspace) / (1 << 20));
                // The forward fits in what products have; the gradients, which are deterministic, do not.
                require(forward.workspace <= PIPEWRIGHT_PRODUCT_WORKSPACE, what + ": the forward needs a larger one");
                require(backward.workspace > 0, what + ": the gradients want none");
            }
}

/// GPT's heads with their gradients side by side, encoders, DeepSeek's sizes.
void checkOthers(const Gpu& gpu)
{
    const FusedTarget target{.properties = propertiesOf(gpu), .capability = gpu.capability};
    GroupedAttentionShape gpt = llama(1024, 64);
    gpt.keyValueHeads = gpt.heads;
    const int row = 3 * gpt.heads * gpt.querySize;
    GroupedAttentionShape encoder = gpt;
    encoder.causal = false;
    for (const FusedPass& pass :
         {fusedPass(gpt), fusedPass(gpt, row, row, row), fusedPass(encoder), backwardOf(encoder)}) {
        const FusedPlan plan = planOf(pass, target);
        require(plan.graph != nullptr, fmt::format("{}: {}", gpu.name, plan.whyNot));
    }
    GroupedAttentionShape latent = gpt;
    latent.querySize = 192;
    latent.valueSize = 128;
    for (const FusedPass& pass : {fusedPass(latent), backwardOf(latent)}) {
        const FusedPlan plan = planOf(pass, target);
        std::printf("%s, heads of 192 and 128, %s: %s\n", gpu.name, pass.isBackward ? "gradients" : "forward",
                    plan.graph ? fmt::format("{} B", plan.workspace).c_str() : plan.whyNot.c_str());
    }
    // What cannot be read 16 bytes at once is refused, with a reason.
    const FusedPlan odd = planOf(fusedPass(llama(256, 12)), target);
    require(!odd.graph && !odd.whyNot.empty(), "heads of 12 were not refused");
}

/// What the library does not do goes to own kernels, with a note that says why, or fails where it was asked for.
void checkRefusals(const std::string& library)
{
    using Use = FusedAttention::Use;
    const GroupedAttentionShape shape = llama(256, 64);
    GroupedAttentionShape pieces = shape, capped = shape, biased = shape;
    pieces.pieces = 2;
    capped.softCap = 3;
    biased.biasedHeads = biased.heads;
    const auto refuses = [&](Use use, const std::string& path, const GroupedAttentionShape& of, bool sinks, bool slice,
                             std::uintptr_t place, std::string_view why) {
        FusedAttention fused(use, path, nullptr, 0, nullptr, slice);
        const void* const there = reinterpret_cast<const void*>(place); // never touched
        for (int repeat = 0; repeat < 2; ++repeat) {
            const bool ran = fused.run(fusedPass(of), of, sinks, {there, there, there, there, nullptr});
            const std::string note = fused.takeNote(), failure = fused.takeFailure();
            require(!ran, fmt::format("it did what it cannot: {}", why));
            require(failure.empty() == (use != Use::Always), fmt::format("failure \"{}\", not {}", failure, why));
            require(note.empty() == (use == Use::Always || repeat > 0), fmt::format("note \"{}\", not {}", note, why));
            require(note.empty() || (note.find("a kernel of its own") != note.npos && note.find(why) != note.npos),
                    fmt::format("note \"{}\", not {}", note, why));
        }
    };
    for (const Use use : {Use::WhereCan, Use::Always}) {
        refuses(use, "", shape, false, false, 256, "not found");
        refuses(use, library, pieces, false, false, 256, "pieces");
        refuses(use, library, capped, false, false, 256, "capped");
        refuses(use, library, biased, false, false, 256, "linear biases");
        refuses(use, library, shape, true, false, 256, "sinks");
        refuses(use, library, shape, false, true, 256, "slice");
        refuses(use, library, shape, false, false, 8, "16 bytes");
        refuses(use, library, shape, false, false, 256, ""); // there is no GPU
    }
    refuses(Use::Never, library, shape, false, false, 256, "asked for");
}

} // namespace

int main(int count, char** arguments)
{
    all = count > 1 && std::string(arguments[1]) == "--all";
    std::string library;
    for (const CudaLibrary& found : findCudaLibraries(CUDART_VERSION / 1000, {}))
        if (found.name == "cuDNN")
            library = found.path;
    if (library.empty()) {
        std::printf("left out: cuDNN was not found (libcudnn.so.9)\n");
        return 77;
    }
    if (const std::string why = openCudnn(library); !why.empty()) {
        std::printf("WRONG: %s\n", why.c_str());
        return 1;
    }
    std::printf("cuDNN %s\n", cudnnVersion().c_str());
    require(!openCudnn("/another").empty(), "a second library was opened");
    checkRefusals(library);
    for (const Gpu& gpu : gpus) {
        checkPasses(gpu);
        checkOthers(gpu);
    }
    std::printf("%d wrong\n", failures);
    return failures > 0;
}
