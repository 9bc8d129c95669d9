// SPDX-License-Identifier: GPL-3.0-or-later
// Estimates the share of a GPU's bf16 peak that a layer can reach with our kernels. The passes of a real layer, at its
// real size, are issued to the kernels' launch code, and no kernel runs. The FLOPs and bytes of every launch are
// counted; with a data sheet's rates it takes at least the longer of the two times, plus a gap after it. That is a
// lower bound of the layer's time, and an estimate: nothing here was run on a GPU.
//   standin_layershare         prints the tables of resources/experiments/layer-share-of-peak.md
//   standin_layershare PAGE    exits 1 if the page's tables differ, or the share falls below the claimed one
#include "core/base/diagnostic.h"
#include "core/base/textfile.h"
#include "core/model/recomputedtensors.h"
#include "core/model/transformer.h"
#include "core/presets/presets.h"
#include "executor/cuda/table.h"
#include "executor/stage/storedstage.h"
#include "kernels/cuda/kernels.h"
#include "launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime_api.h>
#include <map>
#include <optional>
#include <string>
#include <vector>

using namespace pipewright;

namespace {

enum class Group { Product, Attention, Norm, Elementwise, Copy };
constexpr int groupCount = 5;

const char* nameOf(Group group)
{
    switch (group) {
    case Group::Product: return "product";
    case Group::Attention: return "attention";
    case Group::Norm: return "norm";
    case Group::Elementwise: return "elementwise";
    case Group::Copy: return "copy";
    }
    return "";
}

/// The least work of a launch.
struct Work {
    std::string kernel, operation;
    Group group;
    double flops = 0, bytes = 0;
};

/// An operand of the call whose launches are observed: each launch with its address as an argument reads or writes it
/// once.
struct Operand {
    const std::byte* at;
    double bytes; ///< read and written
    std::size_t size;
};

/// How an operation is counted. `sums`: it adds to its results, and therefore reads them too.
struct Counted {
    Group group;
    bool sums = false;
};

struct Seen {
    std::optional<Counted> call;
    std::string operation;
    std::vector<Operand> operands;
    double product = 0; ///< FLOPs of a linear layer's product, or of one of attention's products
    std::vector<Work> launches;
};
Seen seen;

[[noreturn]] void fail(const std::string& why)
{
    std::fprintf(stderr, "layershare: %s\n", why.c_str());
    std::exit(1);
}

template<class Call>
constexpr bool isProduct =
    std::is_same_v<
        Call,
        kernels::
            LinearForward> || std::is_same_v<Call, kernels::LinearInputGrad> || std::is_same_v<Call, kernels::LinearWeightGrad>;
template<class Call>
constexpr bool isAttention =
    std::is_same_v<Call, kernels::GroupedAttentionForward> || std::is_same_v<Call, kernels::GroupedAttentionInputGrad>;

/// Unset: no layer here has this operation, so it has no count.
template<class Call>
std::optional<Counted> countedAs(const Call& call)
{
    using namespace kernels;
    if constexpr (std::is_same_v<Call, LinearForward> || std::is_same_v<Call, LinearInputGrad>)
        return Counted{Group::Product, call.store == Store::Add};
    else if constexpr (std::is_same_v<Call, LinearWeightGrad>)
        return Counted{Group::Product, true};
    else if constexpr (isAttention<Call>)
        return Counted{Group::Attention};
    else if constexpr (std::is_same_v<Call, RmsNormForward> || std::is_same_v<Call, RmsNormInputGrad>)
        return Counted{Group::Norm, call.store == Store::Add};
    else if constexpr (std::is_same_v<Call, RmsNormWeightGrad>)
        return Counted{Group::Norm, true};
    else if constexpr (std::is_same_v<Call, Rotate> || std::is_same_v<Call, Add>)
        return Counted{Group::Elementwise, true};
    else if constexpr (std::is_same_v<Call, GatedForward> || std::is_same_v<Call, GatedInputGrad>)
        return Counted{Group::Elementwise};
    else if constexpr (std::is_same_v<Call, Copy>)
        return Counted{Group::Copy};
    else
        return std::nullopt;
}

template<class Call>
double flopsOfProduct(const Call& call)
{
    if constexpr (isProduct<Call>) {
        return 2.0 * call.shape.rows * call.shape.inputs * call.shape.outputs;
    } else if constexpr (isAttention<Call>) { // each query with the keys up to its own
        const kernels::GroupedAttentionShape& shape = call.shape;
        const double pairs = 0.5 * shape.length * (shape.length + 1.0);
        return 2.0 * shape.sequences * shape.heads * pairs * shape.querySize;
    } else {
        return 0;
    }
}

/// The number of products in each of attention's kernels (kernels/cuda/tensorattention.cu).
int productsOf(const std::string& kernel)
{
    const auto is = [&](const char* name) { return kernel.find(name) != std::string::npos; };
    if (is("fillDots"))
        return 0;
    if (is("tensorForward"))
        return 2; // scores, outputs
    if (is("tensorQueryGradient"))
        return 3; // scores, their gradients, queries' gradients
    if (is("tensorKeyValueGradient<width, true, true>"))
        return 4; // scores, their gradients, keys' and values' gradients
    fail("how many products " + kernel + " has is not said");
}

void launched(const std::string& kernel, const std::vector<const void*>& addresses)
{
    if (!seen.call)
        fail(kernel + " was launched outside of an operation");
    Work work{seen.call->group == Group::Product ? "cublasLtMatmul" : kernel, seen.operation, seen.call->group};
    for (const Operand& operand : seen.operands)
        if (std::any_of(addresses.begin(), addresses.end(), [&operand](const void* address) {
                const auto* const at = static_cast<const std::byte*>(address);
                return at >= operand.at && at < operand.at + operand.size;
            }))
            work.bytes += operand.bytes;
    if (work.group == Group::Product)
        work.flops = seen.product;
    else if (work.group == Group::Attention)
        work.flops = productsOf(kernel) * seen.product;
    if (work.bytes == 0)
        fail("no operand of " + kernel + " was found");
    seen.launches.push_back(std::move(work));
}

} // namespace

extern "C" {

void pipewrightStandinLaunch(const standin::Launch& launch)
{
    if (const std::string why = standin::whyNot(launch); !why.empty())
        fail(std::string(launch.kernel) + " cannot be launched: " + why);
    std::vector<const void*> addresses = launch.pointers;
    addresses.insert(addresses.end(), launch.words.begin(), launch.words.end());
    launched(launch.kernel, addresses);
}

cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind, cudaStream_t)
{
    seen.operands = {{static_cast<const std::byte*>(from), double(bytes), bytes},
                     {static_cast<const std::byte*>(to), double(bytes), bytes}};
    launched("cudaMemcpyAsync", {to, from});
    return cudaSuccess;
}

cudaError_t cudaGetLastError()
{
    std::abort(); // not called here
}

} // extern "C"

namespace {

/// GPU operations whose launches are observed.
class SeenOperations final : public kernels::Operations {
public:
    bool keepsProbabilities() const override { return false; }
    bool computesWithStored() const override { return true; }

private:
    void issue(kernels::Operation operation, const void* call, std::size_t,
               kernels::StoredOperands stored) const override
    {
        kernels::visit(operation, call, [&](auto known, const char* name) {
            seen.call = countedAs(known);
            if (!seen.call)
                fail(std::string("how ") + name + " is counted is not said");
            seen.operands.clear();
            seen.product = flopsOfProduct(known);
            seen.operation = name;
            if constexpr (isProduct<std::decay_t<decltype(known)>>)
                seen.operation += fmt::format(", {} to {}", known.shape.inputs, known.shape.outputs);
            int number = 0;
            kernels::forOperands(known, [&]<class Element>(std::span<Element>& operand) {
                std::size_t width = sizeof(Element);
                if constexpr (std::is_same_v<std::remove_const_t<Element>, float>)
                    width = stored >> number++ & 1 ? 2 : 4;
                const std::size_t size = operand.size() * width;
                const bool both = !std::is_const_v<Element> && seen.call->sums;
                if (size > 0)
                    seen.operands.push_back(
                        {reinterpret_cast<const std::byte*>(operand.data()), (both ? 2.0 : 1.0) * double(size), size});
            });
            kernels::cuda::Context context;
            context.precision = kernels::cuda::Precision::BFloat16;
            context.products = &m_products;
            context.rowScratch = {reinterpret_cast<float*>(std::uintptr_t{1} << 40), PIPEWRIGHT_MATHS_ROWS};
            context.stored = stored;
            kernels::cuda::run(context, known);
            seen.call.reset();
        });
    }

    /// One launch for each product, as in the library.
    mutable kernels::cuda::Products m_products{{}, nullptr, 0};
};

/// Dummy addresses that are never read, of a given size and with a buffer's alignment.
class Nowhere {
public:
    std::span<std::byte> take(Bytes bytes)
    {
        const std::uintptr_t at = m_next;
        m_next += (static_cast<std::uintptr_t>(bytes) + 511) / 256 * 256;
        return {reinterpret_cast<std::byte*>(at), static_cast<std::size_t>(bytes)};
    }

private:
    std::uintptr_t m_next = std::uintptr_t{1} << 44;
};

/// A layer between the ends in bf16, as GPUs keep and compute it.
Workload asOnGpus(ModelShape shape)
{
    shape.attention = AttentionMemory::Streamed;
    shape.dataType = DataType::Bf16;
    shape.widened = false;
    return makeWorkload(shape, Optimizer::AdamW, "layer");
}

/// The launches of a forward and a backward pass of one layer, in this order.
std::vector<Work> launchesOf(const Workload& workload)
{
    const StoredStage stage(workload, 1, 2, 1);
    const SeenOperations on;
    Nowhere memory;
    StageMemory of;
    of.savedUntilInputGrad = memory.take(stage.bytes(BufferKind::SavedUntilInputGrad));
    of.savedUntilWeightGrad = memory.take(stage.bytes(BufferKind::SavedUntilWeightGrad));
    of.savedFromInputGrad = memory.take(stage.bytes(BufferKind::SavedFromInputGrad));
    of.operations = &on;
    const std::span<std::byte> parameters = memory.take(stage.parameterBytes()),
                               input = memory.take(stage.activationBytes()),
                               output = memory.take(stage.activationBytes()),
                               outputGrad = memory.take(stage.activationBytes()),
                               inputGrad = memory.take(stage.activationBytes()),
                               sums = memory.take(static_cast<Bytes>(stage.parameters().count() * sizeof(float)));
    const std::span<float> gradients(reinterpret_cast<float*>(sums.data()), stage.parameters().count());
    seen.launches.clear();
    of.workspace = memory.take(stage.workspace(Op::F));
    stage.forward(parameters, {{}, input, {}}, of, output);
    of.workspace = memory.take(stage.workspace(Op::B));
    stage.backward(parameters, of, outputGrad, inputGrad, gradients);
    return std::move(seen.launches);
}

constexpr double gap = 1e-6; ///< seconds after each launch

/// Assumptions about a GPU: attainable shares of its peak and of its memory bandwidth.
struct Assumed {
    const char* name;
    double products, attention, memory;
};
constexpr Assumed assumptions[] = {
    {"the data sheet's peak and bandwidth", 1, 1, 1},
    {"products at 73 %, attention at 75 %", 0.73, 0.75, 1},
    {"products at 73 %, attention at 35 %", 0.73, 0.35, 1},
    {"the same, and memory at 80 %", 0.73, 0.35, 0.8},
};

double timeOf(const Work& work, const DeviceSpec& gpu, const Assumed& as)
{
    const double share = work.group == Group::Attention ? as.attention : as.products;
    return std::max(work.flops / (share * gpu.peakFlops), work.bytes / (as.memory * gpu.memoryBandwidth));
}

double boundOf(const std::vector<Work>& launches, const DeviceSpec& gpu, const Assumed& as)
{
    double time = 0;
    for (const Work& work : launches)
        time += timeOf(work, gpu, as) + gap;
    return time;
}

/// FLOPs that a layer needs: of attention's backward the four products of gradients, without the scores made again.
double needed(const Layer& layer)
{
    const double all = layer.forwardFlops + layer.inputGradFlops + layer.weightGradFlops;
    return all - 0.5 * attentionCoreFlops(layer);
}

std::string tablesOf(const PresetLibrary& presets)
{
    const ModelShape shape = presets.model("llama-3-8b");
    ModelShape shorter = shape;
    shorter.sequence = 1024;
    shorter.microbatchSize = 8;
    const Workload whole = asOnGpus(shape), pieces = asOnGpus(shorter);
    const std::vector<Work> launches = launchesOf(whole), ofPieces = launchesOf(pieces);
    const DeviceSpec sxm = presets.device("h100-sxm"), pcie = presets.device("h100-pcie");

    std::string text = "| kernels | launches | TFLOP | GB | at least | of the bound |\n"
                       "| --- | --- | --- | --- | --- | --- |\n";
    const double bound = boundOf(launches, sxm, assumptions[0]);
    const auto row = [&](const std::string& name, auto counts) {
        int count = 0;
        double flops = 0, bytes = 0, time = 0;
        for (const Work& work : launches)
            if (counts(work)) {
                ++count;
                flops += work.flops;
                bytes += work.bytes;
                time += timeOf(work, sxm, assumptions[0]);
            }
        text += fmt::format("| {} | {} | {:.3f} | {:.3f} | {:.3f} ms | {:.1f} % |\n", name, count, flops * 1e-12,
                            bytes * 1e-9, time * 1e3, 100 * time / bound);
    };
    for (int group = 0; group < groupCount; ++group)
        row(nameOf(Group(group)), [group](const Work& work) { return work.group == Group(group); });
    text += fmt::format("| gaps | | | | {:.3f} ms | {:.1f} % |\n", gap * 1e3 * double(launches.size()),
                        100 * gap * double(launches.size()) / bound);
    row("all", [](const Work&) { return true; });

    text +=
        "\n| taken for granted | H100 SXM | of its peak | H100 PCIe | of its peak | SXM, 8 sequences of 1,024 | of its "
        "peak |\n| --- | --- | --- | --- | --- | --- | --- |\n";
    for (const Assumed& as : assumptions) {
        text += fmt::format("| {} |", as.name);
        const auto cell = [&](const std::vector<Work>& of, const Workload& workload, const DeviceSpec& gpu) {
            const double time = boundOf(of, gpu, as), share = needed(workload.layers[1]) / time / gpu.peakFlops;
            text += fmt::format(" {:.2f} ms | {:.1f} % |", time * 1e3, 100 * share);
            if (share < 0.5)
                fail(fmt::format("on {}, {}: {:.1f} % of the peak, and the layer is written for 50", gpu.name, as.name,
                                 100 * share));
        };
        cell(launches, whole, sxm);
        cell(launches, whole, pcie);
        cell(ofPieces, pieces, sxm);
        text += "\n";
    }

    // Attention's products are bound by arithmetic in all rows: what is left for them of twice the ideal time.
    const Assumed& slow = assumptions[2];
    double products = 0, others = 0;
    for (const Work& work : launches) {
        const bool isProduct = work.group == Group::Attention && work.flops > 0;
        products += isProduct ? work.flops : 0;
        others += gap + (isProduct ? 0 : timeOf(work, sxm, slow));
    }
    const double least = products / sxm.peakFlops / (2 * needed(whole.layers[1]) / sxm.peakFlops - others);
    text +=
        fmt::format("\nWith products at {:.0f} % on the SXM, half of its peak needs attention at {:.0f} % or more.\n",
                    100 * slow.products, 100 * least);

    std::map<std::string, std::pair<int, Work>> kernels; // launches with the same kernel and work
    std::vector<std::string> order;
    for (const Work& work : launches) {
        const std::string key = fmt::format("{} {} {} {}", work.operation, work.kernel, work.flops, work.bytes);
        const auto [found, isNew] = kernels.try_emplace(key, 0, work);
        ++found->second.first;
        if (isNew)
            order.push_back(key);
    }
    text += "\n| group | operation | kernel | launches | TFLOP each | GB each | at least, each | bound by |\n"
            "| --- | --- | --- | --- | --- | --- | --- | --- |\n";
    for (const std::string& key : order) {
        const auto& [count, work] = kernels.at(key);
        const double time = timeOf(work, sxm, assumptions[0]);
        const bool byMemory = work.bytes / sxm.memoryBandwidth >= time;
        text += fmt::format("| {} | {} | `{}` | {} | {:.3f} | {:.3f} | {:.0f} µs | {} |\n", nameOf(work.group),
                            work.operation, work.kernel, count, work.flops * 1e-12, work.bytes * 1e-9, time * 1e6,
                            byMemory ? "memory" : "arithmetic");
    }
    return text;
}

/// A layer's launches do not depend on its size: tst_standinrecords counts those of this layer in the whole program.
void checkSmallLayer(const PresetLibrary& presets)
{
    ModelShape small = presets.model("llama-3-8b");
    small.hidden = 128;
    small.heads = 2;
    small.keyValueHeads = 1;
    small.headSize = 128;
    small.ffn = 80;
    small.sequence = 8;
    const std::vector<Work> few = launchesOf(asOnGpus(small)), many = launchesOf(asOnGpus(presets.model("llama-3-8b")));
    if (!std::equal(few.begin(), few.end(), many.begin(), many.end(),
                    [](const Work& a, const Work& b) { return a.kernel == b.kernel; }))
        fail("a small layer launches other kernels than a large one");
    const auto products =
        std::count_if(many.begin(), many.end(), [](const Work& of) { return of.group == Group::Product; });
    if (products != 21) // as the stand-in of cuBLASLt counts them in a run
        fail(fmt::format("{} products in a layer, and 21 in a run of the program", products));
}

} // namespace

int main(int argc, char** argv)
{
    try {
        const PresetLibrary presets;
        checkSmallLayer(presets);
        const std::string tables = tablesOf(presets);
        if (argc < 2) {
            std::fputs(tables.c_str(), stdout);
            return 0;
        }
        const std::string page = readTextFile(argv[1]);
        std::size_t begin = 0;
        for (std::size_t end = 0; (end = tables.find('\n', begin)) != std::string::npos; begin = end + 1)
            if (const std::string line = tables.substr(begin, end - begin + 1); page.find(line) == std::string::npos)
                fail(std::string(argv[1]) + " lacks this line, which is computed today: " + line
                     + "print the tables again without an argument");
        return 0;
    } catch (const Error& error) {
        fail(error.what());
    }
}
