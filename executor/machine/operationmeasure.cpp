// SPDX-License-Identifier: GPL-3.0-or-later
// Every shape becomes calls of kernels/calls.h on buffers of its own. O(shapes) allocations and timings.
#include "executor/machine/operationmeasure.h"

#include "core/base/diagnostic.h"
#include "core/base/median.h"
#include "executor/runtime/devicethreads.h"
#include "executor/runtime/steadyclock.h"
#include "kernels/operands.h"
#include "kernels/operations.h"

#include <fmt/format.h>

#include <algorithm>
#include <barrier>
#include <bit>
#include <cmath>
#include <limits>

namespace pipewright {

namespace {

/// Buffers of one device for one shape; the device computes with bf16 where it is told to.
class Calls {
public:
    Calls(Device& device, Stream& stream, bool narrow)
        : m_device(device), m_operations(device.createOperations(stream)), m_narrow(narrow)
    {
    }

    const kernels::Operations& operations() const { return *m_operations; }

    std::span<float> values(double elements) { return room(elements, m_narrow ? 2 : 4, half); }
    std::span<float> wide(double elements) { return room(elements, 4, half); }
    std::span<std::int32_t> numbers(double elements) ///< zeros
    {
        const std::span<float> made = room(elements, 4, 0);
        return {reinterpret_cast<std::int32_t*>(made.data()), made.size()};
    }

    /// `wideOperands`: bits of the operands that stay fp32 where others are bf16 (operands.h).
    template<typename Call>
    void add(const Call& call, kernels::StoredOperands wideOperands = 0)
    {
        m_issue.emplace_back([this, call, stored = m_narrow ? ~wideOperands : 0u] {
            if (stored != 0)
                m_operations->runStored(
                    call,
                    stored & ((1u << std::tuple_size_v<decltype(kernels::operandsOf(const_cast<Call&>(call)))>)-1));
            else
                m_operations->run(call);
        });
    }
    void run() const
    {
        for (const auto& issue : m_issue)
            issue();
    }
    std::size_t count() const { return m_issue.size(); }

private:
    static constexpr float half = std::bit_cast<float>(0x3f003f00u); ///< as two numbers of bf16 too

    std::span<float> room(double elements, int width, float value)
    {
        const auto count = static_cast<std::size_t>(elements);
        const auto bytes = std::max<Bytes>(4, static_cast<Bytes>(count) * width);
        const Region region = m_memory.emplace_back(m_device.allocate((bytes + 3) / 4 * 4))->region();
        std::span<float> made{reinterpret_cast<float*>(region.data), count};
        m_operations->run(kernels::Fill{{made.data(), static_cast<std::size_t>(region.bytes) / 4}, value});
        return made;
    }

    Device& m_device;
    std::unique_ptr<kernels::Operations> m_operations;
    bool m_narrow;
    std::vector<std::unique_ptr<Allocation>> m_memory;
    std::vector<std::function<void()>> m_issue;
};

bool isWhole(double value)
{
    return value >= 1 && value == std::floor(value) && value <= std::numeric_limits<int>::max();
}

constexpr int classes = 1024;

/// Bytes that the buffers take, about.
double bytesOf(const RatedShape& shape)
{
    const RateDimensions& d = shape.dims;
    switch (shape.operation) {
    case RatedOperation::Product: return 4 * (d[0] * d[1] + d[1] * d[2] + d[0] * d[2]);
    case RatedOperation::AttentionForward:
    case RatedOperation::AttentionBackward: {
        const double values = 4 * d[4] * (4 * d[0] + 4 * d[1]) * (d[2] + d[3]);
        return values + (shape.layout == "stored" ? 8 * d[0] * d[4] * d[4] : 0);
    }
    case RatedOperation::Memory: return 3 * d[0];
    case RatedOperation::GroupedProduct:
    case RatedOperation::AllReduce:
    case RatedOperation::AllGather:
    case RatedOperation::ReduceScatter:
    case RatedOperation::AllToAll:
    case RatedOperation::Send: break;
    }
    return 0;
}

/// Why this device cannot be asked for this shape; empty: it can.
std::string whyNot(const RatedShape& shape, Device& device, const kernels::Operations& operations)
{
    const RateDimensions& d = shape.dims;
    if (!shape.types.empty() && !shape.types.starts_with("fp32")
        && !(shape.types.starts_with("bf16") && operations.computesWithStored()))
        return fmt::format("{} does not multiply {}", device.name(), shape.types.substr(0, shape.types.find('+')));
    switch (shape.operation) {
    case RatedOperation::Product:
        if (!std::all_of(d.begin(), d.begin() + 3, isWhole))
            return "its sizes are no whole numbers";
        if (shape.types == "bf16+bf16")
            return "weight gradients are summed in fp32 here";
        return {};
    case RatedOperation::AttentionForward:
    case RatedOperation::AttentionBackward:
        if (!std::all_of(d.begin(), d.end(), isWhole) || std::fmod(d[0], d[1]) != 0)
            return "a member's share of its heads is no whole number";
        if (shape.layout == "stored" && (!operations.keepsProbabilities() || d[2] != d[3]))
            return "attention does not keep its scores here";
        return {};
    case RatedOperation::Memory: return {};
    case RatedOperation::GroupedProduct: return "experts are one call here, with their activation";
    case RatedOperation::AllReduce:
    case RatedOperation::AllGather:
    case RatedOperation::ReduceScatter:
    case RatedOperation::AllToAll:
    case RatedOperation::Send: break;
    }
    return "collectives are not measured by operation";
}

void addProduct(const RatedShape& shape, Calls& calls)
{
    const RateDimensions& d = shape.dims;
    const auto at = [&](int i) { return static_cast<int>(d[static_cast<std::size_t>(i)]); };
    if (shape.layout == "TN") {
        kernels::LinearForward call;
        call.shape = {at(0), at(1), at(2)};
        call.input = calls.values(d[0] * d[1]);
        call.weight = calls.values(d[1] * d[2]);
        call.output = calls.values(d[0] * d[2]);
        calls.add(call);
    } else if (shape.layout == "NN") { // the result's gradient, as wide as the outputs, times the weight
        kernels::LinearInputGrad call;
        call.shape = {at(0), at(2), at(1)};
        call.outputGrad = calls.values(d[0] * d[1]);
        call.weight = calls.values(d[1] * d[2]);
        call.inputGrad = calls.values(d[0] * d[2]);
        calls.add(call);
    } else { // over the rows of input and gradient; a row of the sums for each output
        kernels::LinearWeightGrad call;
        call.shape = {at(1), at(2), at(0)};
        call.input = calls.values(d[1] * d[2]);
        call.outputGrad = calls.values(d[1] * d[0]);
        call.weightGrad = calls.wide(d[0] * d[2]);
        calls.add(call, 0b11); // weightGrad and biasGrad are sums
    }
}

void addStoredAttention(const RatedShape& shape, Calls& calls)
{
    const RateDimensions& d = shape.dims;
    const kernels::AttentionShape sizes{1, static_cast<int>(d[4]), static_cast<int>(d[0]), static_cast<int>(d[2])};
    const double elements = static_cast<double>(sizes.tokens()) * sizes.hidden();
    const auto scores = static_cast<double>(sizes.scores());
    if (shape.operation == RatedOperation::AttentionForward) {
        kernels::AttentionForward call{sizes,
                                       calls.values(elements),
                                       calls.values(elements),
                                       calls.values(elements),
                                       calls.wide(scores),
                                       calls.values(elements)};
        calls.add(call);
        return;
    }
    kernels::AttentionInputGrad call{sizes,
                                     calls.values(elements),
                                     calls.values(elements),
                                     calls.values(elements),
                                     calls.wide(scores),
                                     calls.values(elements),
                                     calls.values(elements),
                                     calls.values(3 * elements),
                                     calls.wide(scores)};
    calls.add(call);
}

void addAttention(const RatedShape& shape, Calls& calls)
{
    if (shape.layout == "stored")
        return addStoredAttention(shape, calls);
    const RateDimensions& d = shape.dims;
    kernels::GroupedAttentionShape sizes;
    sizes.sequences = 1;
    sizes.length = static_cast<int>(d[4]);
    sizes.heads = static_cast<int>(d[0]);
    sizes.keyValueHeads = static_cast<int>(d[1]);
    sizes.querySize = static_cast<int>(d[2]);
    sizes.valueSize = static_cast<int>(d[3]);
    sizes.causal = shape.layout == "causal";
    sizes.scale = 1 / std::sqrt(static_cast<float>(d[2]));
    const auto queries = static_cast<double>(sizes.queries()), keys = static_cast<double>(sizes.keys()),
               values = static_cast<double>(sizes.values()), outputs = static_cast<double>(sizes.outputs()),
               numbers = static_cast<double>(sizes.numbers());
    const auto withOperands = [&](auto call) {
        call.shape = sizes;
        call.query = calls.values(queries);
        call.key = calls.values(keys);
        call.value = calls.values(values);
        call.logSums = calls.wide(numbers);
        call.output = calls.values(outputs);
        return call;
    };
    if (shape.operation == RatedOperation::AttentionForward) {
        calls.add(withOperands(kernels::GroupedAttentionForward{}));
        return;
    }
    kernels::GroupedAttentionInputGrad call = withOperands(kernels::GroupedAttentionInputGrad{});
    call.outputGrad = calls.values(outputs);
    call.queryGrad = calls.values(queries);
    call.keyGrad = calls.values(keys);
    call.valueGrad = calls.values(values);
    call.dots = calls.wide(numbers);
    calls.add(call);
}

/// Kernels that move so many bytes each.
void addMemory(const RatedShape& shape, Calls& calls)
{
    const double floats = std::max(3.0, shape.dims[0] / 4);
    if (shape.layout == "loss") { // reads the logits twice and writes once
        const double rows = std::max(1.0, std::floor(floats / 3 / classes));
        const int columns = static_cast<int>(std::max(1.0, std::floor(floats / 3 / rows)));
        kernels::CrossEntropyForward call{static_cast<int>(rows), columns, calls.wide(rows * columns),
                                          calls.numbers(rows),    1,       calls.wide(1)};
        calls.operations().run(call);
        calls.add(call);
        return;
    }
    if (shape.layout == "permutation") {
        const double half = std::floor(floats / 2);
        const std::span<const float> from = calls.wide(half);
        calls.add(kernels::copyOf(from, calls.wide(half)));
        return;
    }
    const double two = std::floor(floats / 2), three = std::floor(floats / 3);
    const int columns = static_cast<int>(std::min(two, static_cast<double>(classes)));
    const double rows = std::floor(two / columns);
    calls.add(kernels::RmsNormForward{static_cast<int>(rows), columns, 1e-5f, calls.wide(rows * columns),
                                      calls.wide(columns), calls.wide(rows * columns)});
    calls.add(kernels::Add{calls.wide(three), calls.wide(three)});
    calls.add(
        kernels::GatedForward{kernels::ActivationKind::Silu, calls.wide(three), calls.wide(three), calls.wide(three)});
}

void addCalls(const RatedShape& shape, Calls& calls)
{
    switch (shape.operation) {
    case RatedOperation::Product: return addProduct(shape, calls);
    case RatedOperation::AttentionForward:
    case RatedOperation::AttentionBackward: return addAttention(shape, calls);
    case RatedOperation::Memory: return addMemory(shape, calls);
    case RatedOperation::GroupedProduct:
    case RatedOperation::AllReduce:
    case RatedOperation::AllGather:
    case RatedOperation::ReduceScatter:
    case RatedOperation::AllToAll:
    case RatedOperation::Send: break; // whyNot()
    }
}

class OperationTimer {
public:
    OperationTimer(Backend& backend, const OperationMeasureOptions& options) : m_backend(backend), m_options(options) {}

    OperationMeasurement run(std::span<const RatedShape> shapes)
    {
        std::vector<RatedShape> ordered(shapes.begin(), shapes.end());
        std::stable_sort(ordered.begin(), ordered.end(),
                         [](const RatedShape& a, const RatedShape& b) { return cost(a) < cost(b); });
        const auto stream = m_backend.device(0).createStream();
        const auto operations = m_backend.device(0).createOperations(*stream);
        const Nanoseconds begin = steadyNow();
        double done = 0;
        OperationMeasurement found;
        for (std::size_t i = 0; i < ordered.size(); ++i) {
            if (m_options.cancel && *m_options.cancel)
                throw Error("measuring", "cancelled", "nothing was written");
            const RatedShape& shape = ordered[i];
            if (m_options.progress)
                m_options.progress(static_cast<double>(i) / static_cast<double>(ordered.size()), textOf(shape));
            if (std::string why = whyNot(shape, m_backend.device(0), *operations); !why.empty()) {
                found.leftOut.push_back({shape, std::move(why)});
                continue;
            }
            if (const Bytes memory = m_backend.device(0).memory().bytes;
                memory > 0 && bytesOf(shape) * m_backend.devices() > 0.5 * static_cast<double>(memory)) {
                found.leftOut.push_back({shape, "its operands take more than half of the memory"});
                continue;
            }
            const double spent = static_cast<double>(steadyNow() - begin) / 1e9;
            const double each = done > 0 ? spent / done * cost(shape) : 0; // seconds of all repetitions, as so far
            if (spent + each / m_options.repetitions > m_options.seconds) {
                found.leftOut.push_back({shape, fmt::format("{:.0f} s had passed", spent)});
                continue;
            }
            const double share = each > 0 ? (m_options.seconds - spent) / each : 1;
            const int repetitions =
                std::clamp(static_cast<int>(share * m_options.repetitions), 1, m_options.repetitions);
            found.times.push_back({shape, secondsOf(shape, repetitions)});
            done += cost(shape);
        }
        return found;
    }

private:
    /// What measuring it takes, in FLOPs: a byte through memory takes about as long as ten of them, and nothing less
    /// than some milliseconds.
    static double cost(const RatedShape& shape)
    {
        return 1e8 + amountOf(shape) * (shape.operation == RatedOperation::Memory ? 10 : 1);
    }

    double secondsOf(const RatedShape& shape, int repetitions) const
    {
        const auto devices = static_cast<std::size_t>(m_backend.devices());
        std::vector<double> seconds(devices);
        std::barrier<> together(static_cast<std::ptrdiff_t>(devices));
        onDeviceThreads(
            devices, [&](std::size_t d) { seconds[d] = secondsOn(static_cast<int>(d), shape, repetitions, together); },
            [&](std::size_t) { together.arrive_and_drop(); });
        return medianOf(seconds);
    }

    double secondsOn(int d, const RatedShape& shape, int repetitions, std::barrier<>& together) const
    {
        Device& device = m_backend.device(d);
        const auto stream = device.createStream();
        Calls calls(device, *stream, shape.types.starts_with("bf16"));
        addCalls(shape, calls);
        const auto once = [&] {
            calls.run();
            stream->synchronize();
        };
        once();
        Nanoseconds start = steadyNow();
        once();
        const Nanoseconds first = std::max<Nanoseconds>(1, steadyNow() - start);
        const int often = static_cast<int>(std::clamp<Nanoseconds>(m_options.atLeast / first, 1, 4096));
        together.arrive_and_wait();
        std::vector<Nanoseconds> times;
        for (int i = 0; i < repetitions; ++i) {
            start = steadyNow();
            for (int again = 0; again < often; ++again)
                calls.run();
            stream->synchronize();
            times.push_back(std::max<Nanoseconds>(1, steadyNow() - start));
        }
        return static_cast<double>(medianOf(times)) / often / static_cast<double>(calls.count()) / 1e9;
    }

    Backend& m_backend;
    const OperationMeasureOptions& m_options;
};

} // namespace

OperationMeasurement measureOperations(Backend& backend, std::span<const RatedShape> shapes,
                                       const OperationMeasureOptions& options)
{
    return OperationTimer(backend, options).run(shapes);
}

} // namespace pipewright
