// SPDX-License-Identifier: GPL-3.0-or-later
// Every GPU kernel against its fp64 reference, each run twice to see that it repeats its bits, and the speed of a
// large product. Needs a GPU and nothing of Qt; prints one line per kernel and returns 1 when one is wrong.
#include "executor/cuda/loader.h"
#include "kernels/cuda/kernels.h"
#include "kernels/numbers.h"
#include "kernels/reference/reference.h"
#include "kernels/tensoritems.h"

#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

using namespace pipewright;
using namespace pipewright::test;
namespace gpu = pipewright::kernels::cuda;

namespace {

int failures = 0;

void require(cudaError_t code, const char* what)
{
    if (code == cudaSuccess)
        return;
    std::printf("%s: %s\n", what, cudaGetErrorString(code));
    std::exit(2);
}

template<typename Element>
class Memory {
public:
    explicit Memory(std::size_t count) : m_count(count)
    {
        require(cudaMalloc(&m_data, count * sizeof(Element) + 1), "cudaMalloc");
        require(cudaMemset(m_data, 0, count * sizeof(Element)), "cudaMemset");
    }
    explicit Memory(const std::vector<Element>& values) : Memory(values.size())
    {
        require(cudaMemcpy(m_data, values.data(), m_count * sizeof(Element), cudaMemcpyHostToDevice),
                "copy to the GPU");
    }
    ~Memory() { cudaFree(m_data); }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    std::span<Element> span() { return {m_data, m_count}; }
    std::vector<Element> read() const
    {
        std::vector<Element> values(m_count);
        require(cudaMemcpy(values.data(), m_data, m_count * sizeof(Element), cudaMemcpyDeviceToHost), "run the kernel");
        return values;
    }

private:
    Element* m_data = nullptr;
    std::size_t m_count;
};
using Floats = Memory<float>;

/// `compute` returns what a kernel gave. The error is that of the whole tensor, relative to its largest value.
template<typename Compute>
void check(const char* name, const Values& expected, double tolerance, Compute compute)
{
    const std::vector<float> first = compute(), second = compute();
    double largest = 1e-30, worst = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
        largest = std::max(largest, std::abs(expected[i]));
        worst = std::max(worst, std::isfinite(first[i]) ? std::abs(first[i] - expected[i]) : 1e30);
    }
    const bool repeats = std::memcmp(first.data(), second.data(), first.size() * sizeof(float)) == 0;
    const bool right = worst <= tolerance * largest && first.size() == expected.size();
    failures += !(right && repeats);
    std::printf("%-28s error %.2e of %.0e %s%s\n", name, worst / largest, tolerance, right ? "ok" : "WRONG",
                repeats ? "" : ", and NOT THE SAME BITS TWICE");
}

void checkRows()
{
    const int rows = 300, columns = 200, classes = 130, length = 20, vocabulary = 90;
    const Values x = someValues(std::size_t(rows) * columns, 1, 2), dy = someValues(x.size(), 2),
                 gamma = someValues(columns, 3), beta = someValues(columns, 4);
    Floats input(single(x)), grad(single(dy)), scale(single(gamma)), shift(single(beta));
    check("gelu forward", reference::geluForward(x), 1e-6, [&] {
        Floats y(x.size());
        gpu::run({}, kernels::GeluForward{input.span(), y.span()});
        return y.read();
    });
    check("gelu input grad", reference::geluInputGrad(x, dy), 1e-6, [&] {
        Floats dx(x.size());
        gpu::run({}, kernels::GeluInputGrad{input.span(), grad.span(), dx.span()});
        return dx.read();
    });
    check("layer norm forward", reference::layerNormForward(rows, columns, x, gamma, beta), 1e-5, [&] {
        Floats y(x.size());
        gpu::run({}, kernels::LayerNormForward{rows, columns, input.span(), scale.span(), shift.span(), y.span()});
        return y.read();
    });
    check("layer norm input grad", reference::layerNormInputGrad(rows, columns, x, gamma, dy), 1e-5, [&] {
        Floats dx(x.size());
        gpu::run({}, kernels::LayerNormInputGrad{rows, columns, input.span(), scale.span(), grad.span(), dx.span()});
        return dx.read();
    });
    const auto norm = reference::layerNormWeightGrad(rows, columns, x, dy);
    for (const bool second : {false, true})
        check(second ? "layer norm beta grad" : "layer norm gamma grad", second ? norm.bias : norm.weight, 1e-5, [&] {
            Floats dg(columns), db(columns);
            gpu::run({}, kernels::LayerNormWeightGrad{rows, columns, input.span(), grad.span(), dg.span(), db.span()});
            return second ? db.read() : dg.read();
        });
    const auto tokens = someTokens(rows, vocabulary, 5), targets = someTokens(rows, classes, 6);
    const Values table = someValues(std::size_t(vocabulary) * columns, 7),
                 positions = someValues(std::size_t(length) * columns, 8);
    Memory<std::int32_t> words(tokens), wanted(targets);
    Floats tableValues(single(table)), positionValues(single(positions));
    check("embedding forward", reference::embeddingForward(length, columns, tokens, table, positions), 1e-7, [&] {
        Floats y(x.size());
        gpu::run({}, kernels::EmbeddingForward{length, columns, words.span(), tableValues.span(), positionValues.span(),
                                               y.span()});
        return y.read();
    });
    const auto embedding = reference::embeddingWeightGrad(length, columns, vocabulary, tokens, dy);
    check("embedding weight grad", embedding.weight, 1e-5, [&] {
        Floats dt(table.size()), dp(positions.size());
        gpu::run({}, kernels::EmbeddingWeightGrad{length, columns, words.span(), grad.span(), dt.span(), dp.span()});
        return dt.read();
    });
    const Values logits = someValues(std::size_t(rows) * classes, 9, 5);
    const auto entropy = reference::crossEntropyForward(rows, classes, logits, targets, 0.01);
    check("cross entropy loss", {entropy.loss}, 1e-5, [&] {
        Floats p(single(logits)), loss(1), scratch(rows);
        gpu::run({.rowLosses = scratch.span()},
                 kernels::CrossEntropyForward{rows, classes, p.span(), wanted.span(), 0.01f, loss.span()});
        return loss.read();
    });
    check("cross entropy input grad",
          reference::crossEntropyInputGrad(rows, classes, entropy.probabilities, targets, 0.01), 1e-5, [&] {
              Floats p(single(logits)), loss(1), scratch(rows), d(logits.size());
              gpu::run({.rowLosses = scratch.span()},
                       kernels::CrossEntropyForward{rows, classes, p.span(), wanted.span(), 0.01f, loss.span()});
              gpu::run({}, kernels::CrossEntropyInputGrad{rows, classes, p.span(), wanted.span(), 0.01f, d.span()});
              return d.read();
          });
    Values p = x, m = dy, v(x.size(), 0.25);
    reference::adamWStep({}, 3, p, dy, m, v);
    check("AdamW", p, 1e-6, [&] {
        Floats parameters(single(x)), first(single(dy)), second(std::vector<float>(x.size(), 0.25f));
        gpu::run({}, kernels::AdamWStep{{}, 3, parameters.span(), grad.span(), first.span(), second.span()});
        return parameters.read();
    });
    Values q = x, momentum = dy;
    reference::sgdMomentumStep({}, q, dy, momentum);
    check("SGD with momentum", q, 1e-6, [&] {
        Floats parameters(single(x)), moved(single(dy));
        gpu::run({}, kernels::SgdMomentumStep{{}, parameters.span(), grad.span(), moved.span()});
        return parameters.read();
    });
}

void checkAttention()
{
    const kernels::AttentionShape shape{2, 70, 3, 48};
    const std::size_t elements = shape.tokens() * shape.hidden();
    const Values q = someValues(elements, 1), k = someValues(elements, 2), v = someValues(elements, 3),
                 dy = someValues(elements, 4);
    Floats query(single(q)), key(single(k)), value(single(v)), grad(single(dy));
    const auto expected = reference::attentionForward(shape, q, k, v);
    Floats logSum(shape.tokens() * shape.heads), output(elements);
    check("attention forward", expected.output, 1e-5, [&] {
        gpu::run(
            {}, kernels::AttentionForward{shape, query.span(), key.span(), value.span(), logSum.span(), output.span()});
        return output.read();
    });
    check("attention input grad", reference::attentionInputGrad(shape, q, k, v, expected.probabilities, dy), 1e-5, [&] {
        Floats d(3 * elements), dots(shape.tokens() * shape.heads);
        gpu::run({}, kernels::AttentionInputGrad{shape, query.span(), key.span(), value.span(), logSum.span(),
                                                 output.span(), grad.span(), d.span(), dots.span()});
        return d.read();
    });
}

/// Sequences in pieces, forward from the first and back from the last, against the whole sequences.
void checkPieces()
{
    const int pieces = 3;
    const kernels::AttentionShape shape{2, 23, 3, 48, pieces}, whole{2, 69, 3, 48};
    const std::size_t part = shape.tokens() * shape.hidden(), count = part * pieces;
    const Values q = someValues(count, 1), k = someValues(count, 2), v = someValues(count, 3),
                 dy = someValues(count, 4);
    const auto expected = reference::attentionForward(whole, q, k, v);
    const Values expectedGrads = reference::attentionInputGrad(whole, q, k, v, expected.probabilities, dy);
    const auto cut = [&](const Values& all, int piece) { // of every sequence
        const std::size_t share = all.size() / (2 * pieces);
        Values result;
        for (const int sequence : {0, 1}) {
            const auto begin = all.begin() + std::ptrdiff_t(std::size_t(sequence * pieces + piece) * share);
            result.insert(result.end(), begin, begin + std::ptrdiff_t(share));
        }
        return result;
    };
    Values outputs, grads;
    struct Piece {
        Floats query, saved, grad, logSum, output; // keys, then values, as a stage would hold them
    };
    std::vector<std::unique_ptr<Piece>> at;
    std::vector<const float*> places;
    for (int i = 0; i < pieces; ++i) {
        for (const auto& [all, to] : {std::pair(&expected.output, &outputs), std::pair(&expectedGrads, &grads)}) {
            const Values own = cut(*all, i);
            to->insert(to->end(), own.begin(), own.end());
        }
        std::vector<float> saved = single(cut(k, i)), values = single(cut(v, i));
        saved.insert(saved.end(), values.begin(), values.end());
        at.emplace_back(new Piece{Floats(single(cut(q, i))), Floats(saved), Floats(single(cut(dy, i))),
                                  Floats(shape.tokens() * shape.heads), Floats(part)});
        places.push_back(at.back()->saved.span().data());
    }
    const auto earlier = [&](int i) {
        return kernels::EarlierPieces{std::span(places).first(std::size_t(i)), 0, part};
    };
    check("attention of pieces", outputs, 1e-5, [&] {
        std::vector<float> all;
        for (int i = 0; i < pieces; ++i) {
            Piece& is = *at[std::size_t(i)];
            gpu::run({}, kernels::AttentionForward{shape, is.query.span(), is.saved.span().first(part),
                                                   is.saved.span().last(part), is.logSum.span(), is.output.span(),
                                                   earlier(i)});
            const std::vector<float> own = is.output.read();
            all.insert(all.end(), own.begin(), own.end());
        }
        return all;
    });
    check("attention of pieces, grad", grads, 1e-5, [&] {
        Floats owed(std::vector<float>(shape.sequenceGradient(), NAN)), dots(shape.tokens() * shape.heads);
        std::vector<float> all(grads.size());
        for (int i = pieces; i-- > 0;) {
            Piece& is = *at[std::size_t(i)];
            Floats d(3 * part);
            gpu::run({}, kernels::AttentionInputGrad{shape, is.query.span(), is.saved.span().first(part),
                                                     is.saved.span().last(part), is.logSum.span(), is.output.span(),
                                                     is.grad.span(), d.span(), dots.span(), earlier(i), owed.span()});
            const std::vector<float> own = d.read();
            std::copy(own.begin(), own.end(), all.begin() + std::ptrdiff_t(std::size_t(i) * 3 * part));
        }
        return all;
    });
}

/// One operation of kernels/tensors.h: the host does the items one by one, the GPU all at once.
template<kernels::TensorOperation operation>
void checkTensor(const char* name, std::vector<std::int64_t> sizes, std::vector<std::vector<float>> inputs,
                 std::size_t outputs, std::vector<std::int32_t> whole = {})
{
    using Item = kernels::TensorItem<operation>;
    const std::vector<float> before = single(someValues(outputs, 99));
    kernels::TensorCall call{};
    call.operation = operation;
    call.number = 0.5f;
    std::copy(sizes.begin(), sizes.end(), call.size);
    const bool routes = operation == kernels::TensorOperation::Route; // starts from zeros
    const std::vector<float> start = routes ? std::vector<float>(outputs, 0.0f) : before;
    const std::size_t counters = routes ? std::size_t(sizes[0] * sizes[2]) : 1;
    std::vector<float> expected = start, counted(counters, 0.0f);
    for (std::size_t i = 0; i < inputs.size(); ++i)
        call.in[i] = inputs[i].empty() ? nullptr : inputs[i].data();
    call.out = expected.data();
    call.scratch = counted.data();
    call.whole = whole.data();
    const kernels::TensorItems items = Item::count(call);
    for (std::int64_t o = 0; o < items.outer; ++o)
        Item::run(call, o, 0, items.inner);
    check(name, Values(expected.begin(), expected.end()), 1e-5, [&] {
        std::vector<std::unique_ptr<Floats>> there;
        kernels::TensorCall onGpu = call;
        for (std::size_t i = 0; i < inputs.size(); ++i)
            onGpu.in[i] =
                inputs[i].empty() ? nullptr : there.emplace_back(std::make_unique<Floats>(inputs[i]))->span().data();
        Floats out(start), scratch(std::vector<float>(counters, 0.0f));
        onGpu.out = out.span().data();
        Memory<std::int32_t> numbers(whole);
        onGpu.scratch = scratch.span().data();
        onGpu.whole = numbers.span().data();
        gpu::run({}, onGpu);
        return out.read();
    });
}

void checkTensors()
{
    using enum kernels::TensorOperation;
    const std::int64_t rows = 70, columns = 130, all = rows * columns;
    const auto some = [](std::int64_t count, int seed) { return single(someValues(std::size_t(count), seed)); };
    const std::vector<float> x = some(all, 1), y = some(all, 2), perRow = some(rows, 3), perColumn = some(columns, 4);
    checkTensor<CopyBlocks>("copy blocks", {rows, 60, columns, 60}, {x}, std::size_t(rows * 60));
    checkTensor<Scale>("scale", {all}, {x}, x.size());
    checkTensor<Add>("add", {all}, {x, y}, x.size());
    checkTensor<Multiply>("multiply", {all}, {x, y}, x.size());
    checkTensor<Relu>("relu", {all}, {x}, x.size());
    checkTensor<ReluGrad>("relu grad", {all}, {x, y}, x.size());
    checkTensor<Silu>("silu", {all}, {x}, x.size());
    checkTensor<SiluGrad>("silu grad", {all}, {x, y}, x.size());
    checkTensor<FillFrom>("fill from", {all}, {perRow}, x.size());
    checkTensor<ScaleBy>("scale by", {all}, {x, perRow}, x.size());
    checkTensor<AddRepeated>("add repeated", {all, columns}, {x, perColumn}, x.size());
    checkTensor<SumRepeated>("sum repeated", {all, columns}, {x}, std::size_t(columns));
    checkTensor<SumParts>("sum in parts", {all, 64}, {x}, 64);
    checkTensor<RowLogSum>("log of sums of rows", {rows, columns}, {x}, std::size_t(rows));
    checkTensor<RowDot>("products of rows", {rows, columns}, {x, y, perColumn}, std::size_t(rows));
    checkTensor<RowDot>("sums of rows", {rows, columns}, {x, {}, {}}, std::size_t(rows));
    const std::int64_t few = 3, wide = 5003; // a row is a block's
    checkTensor<RowLogSum>("log of sums of long rows", {few, wide}, {some(few * wide, 5)}, std::size_t(few));
    checkTensor<RowDot>("products of long rows", {few, wide}, {some(few * wide, 5), some(few * wide, 6), some(wide, 7)},
                        std::size_t(few));
    checkTensor<InverseRms>("inverse rms of long rows", {few, wide}, {some(few * wide, 5)}, std::size_t(few));
    checkTensor<Softmax>("softmax", {rows, columns}, {x, perRow}, x.size());
    checkTensor<SoftmaxGrad>("softmax grad", {rows, columns}, {x, y, perRow}, x.size());
    checkTensor<LogSoftmax>("log softmax", {rows, columns}, {x, perRow}, x.size());
    checkTensor<LogSoftmaxGrad>("log softmax grad", {rows, columns}, {x, y, perRow}, x.size());
    checkTensor<InverseRms>("inverse rms", {rows, columns}, {x}, std::size_t(rows));
    checkTensor<RmsNorm>("rms norm", {rows, columns}, {x, perRow, perColumn}, x.size());
    checkTensor<RmsNormInputGrad>("rms norm input grad", {rows, columns}, {x, perRow, perColumn, y, perRow}, x.size());
    checkTensor<RmsNormWeightGrad>("rms norm weight grad", {rows, columns}, {x, perRow, y}, std::size_t(columns));
    std::vector<float> tokens;
    for (const std::int32_t token : someTokens(rows, 50, 5))
        tokens.push_back(float(token));
    checkTensor<LookUp>("look up", {rows, columns, 10, 30}, {tokens, some(30 * columns, 6)}, x.size());
    checkTensor<LookUpGrad>("look up grad", {rows, columns, 10, 30}, {tokens, y}, std::size_t(30 * columns));
    std::vector<std::int32_t> features = someTokens(std::size_t(rows * 7), 40, 13);
    checkTensor<FeatureBag>("bag of features", {rows, columns, 7}, {some(40 * columns, 14)}, x.size(), features);
    checkTensor<FeatureBagGrad>("bag of features grad", {rows, columns, 7}, {y}, std::size_t(40 * columns), features);
    checkTensor<RepeatHeads>("repeat heads", {all, 5, 2}, {some(all / 2, 7)}, x.size());
    checkTensor<FoldHeads>("fold heads", {all / 2, 5, 2}, {x}, std::size_t(all / 2));
    const std::int64_t groups = 3, group = 17, experts = 5, capacity = 6, width = 40;
    std::vector<float> weights = some(groups * group * experts * capacity, 8);
    for (std::size_t i = 0; i < weights.size(); ++i)
        weights[i] = i % 3 == 0 ? weights[i] : 0.0f; // slots that are taken
    const std::vector<float> likely = some(groups * group * experts, 9),
                             slots = some(groups * experts * capacity * width, 10),
                             here = some(groups * group * width, 11);
    checkTensor<Route>("route", {groups, group, experts, capacity, 2}, {likely}, weights.size());
    checkTensor<RouteGrad>("route grad", {groups, group, experts, capacity},
                           {weights, likely, some(std::int64_t(weights.size()), 12)}, likely.size());
    checkTensor<Dispatch>("dispatch", {groups, group, experts, capacity, width}, {weights, here}, slots.size());
    checkTensor<DispatchGrad>("dispatch grad", {groups, group, experts, capacity, width}, {weights, slots},
                              here.size());
    checkTensor<Combine>("combine", {groups, group, experts, capacity, width}, {weights, slots}, here.size());
    checkTensor<CombineSlotsGrad>("combine slots grad", {groups, group, experts, capacity, width}, {weights, here},
                                  slots.size());
    checkTensor<CombineWeightsGrad>("combine weights grad", {groups, group, experts, capacity, width},
                                    {weights, here, slots}, weights.size());
}

void checkProducts(gpu::Products& products, const char* name, gpu::Precision precision, double tolerance)
{
    const kernels::LinearShape shape{190, 96, 136};
    const Values x = someValues(std::size_t(190) * 96, 1), w = someValues(std::size_t(136) * 96, 2),
                 b = someValues(136, 3), dy = someValues(std::size_t(190) * 136, 4);
    Floats input(single(x)), weight(single(w)), bias(single(b)), grad(single(dy));
    check((std::string("linear forward, ") + name).c_str(), reference::linearForward(shape, x, w, b), tolerance, [&] {
        Floats y(dy.size());
        gpu::run({.precision = precision, .products = &products},
                 kernels::LinearForward{shape, input.span(), weight.span(), bias.span(), y.span()});
        return y.read();
    });
    check((std::string("linear input grad, ") + name).c_str(), reference::linearInputGrad(shape, dy, w), tolerance,
          [&] {
              Floats dx(x.size());
              gpu::run({.precision = precision, .products = &products},
                       kernels::LinearInputGrad{shape, grad.span(), weight.span(), dx.span()});
              return dx.read();
          });
    check((std::string("linear weight grad, ") + name).c_str(), reference::linearWeightGrad(shape, x, dy).weight,
          tolerance, [&] {
              Floats dw(w.size()), db(b.size());
              gpu::run({.precision = precision, .products = &products},
                       kernels::LinearWeightGrad{shape, input.span(), grad.span(), dw.span(), db.span()});
              return dw.read();
          });
}

/// Tensors are packed without gaps: factors and results begin anywhere.
void checkUnalignedProduct(gpu::Products& products, gpu::Precision precision, double tolerance)
{
    const kernels::LinearShape shape{96, 64, 72};
    const Values x = someValues(std::size_t(96) * 64, 1), w = someValues(std::size_t(72) * 64, 2);
    Floats input(x.size() + 1), weight(w.size() + 3), output(std::size_t(96) * 72 + 5);
    const std::vector<float> xs = single(x), ws = single(w);
    require(cudaMemcpy(input.span().data() + 1, xs.data(), xs.size() * sizeof(float), cudaMemcpyHostToDevice), "copy");
    require(cudaMemcpy(weight.span().data() + 3, ws.data(), ws.size() * sizeof(float), cudaMemcpyHostToDevice), "copy");
    check("linear forward, at odd places", reference::linearForward(shape, x, w, Values(72, 0.0)), tolerance, [&] {
        gpu::run({.precision = precision, .products = &products},
                 kernels::LinearForward{
                     shape, input.span().subspan(1), weight.span().subspan(3), {}, output.span().subspan(5)});
        std::vector<float> all = output.read();
        return std::vector<float>(all.begin() + 5, all.end());
    });
}

void measureProduct(gpu::Products& products, gpu::Precision precision, const char* name)
{
    const int size = 8192, repeats = 10;
    const auto elements = std::size_t(size) * size;
    const std::vector<float> values = single(someValues(elements, 1));
    Floats a(values), b(values), c(elements);
    cudaEvent_t begin = nullptr, end = nullptr;
    require(cudaEventCreate(&begin), "create an event");
    require(cudaEventCreate(&end), "create an event");
    for (int i = 0; i < repeats + 2; ++i) {
        if (i == 2) // warm by now
            require(cudaEventRecord(begin), "record an event");
        gpu::run({.precision = precision, .products = &products},
                 kernels::LinearForward{{size, size, size}, a.span(), b.span(), {}, c.span()});
    }
    require(cudaEventRecord(end), "record an event");
    require(cudaEventSynchronize(end), "run the product");
    float milliseconds = 0;
    require(cudaEventElapsedTime(&milliseconds, begin, end), "measure");
    std::printf("product of %d^3, %s: %.1f TFLOP/s\n", size, name,
                2.0 * size * size * size * repeats / milliseconds / 1e9);
}

} // namespace

int main()
{
    int gpus = 0;
    if (const cudaError_t code = cudaGetDeviceCount(&gpus); code != cudaSuccess || gpus == 0) {
        std::printf("no GPU to check: %s\n", cudaGetErrorString(code));
        return 2;
    }
    std::string library;
    for (const CudaLibrary& found : findCudaLibraries({}))
        if (found.name == "cuBLASLt")
            library = found.path;
    checkRows();
    checkAttention();
    checkPieces();
    checkTensors();
    Memory<char> workspace(64u << 20);
    gpu::Products plain({}, nullptr, 0), fast(library, workspace.span().data(), workspace.span().size());
    checkProducts(plain, "own kernel", gpu::Precision::Float32, 1e-5);
    if (!fast.whyNot().empty()) {
        std::printf("cuBLASLt cannot be used: %s\n", fast.whyNot().c_str());
    } else {
        checkProducts(fast, "fp32", gpu::Precision::Float32, 1e-5);
        checkProducts(fast, "bf16", gpu::Precision::BFloat16, 2e-2);
        checkUnalignedProduct(fast, gpu::Precision::Float32, 1e-5);
        checkUnalignedProduct(fast, gpu::Precision::BFloat16, 2e-2);
        measureProduct(fast, gpu::Precision::Float32, "fp32");
        measureProduct(fast, gpu::Precision::BFloat16, "bf16");
    }
    if (const std::string why = fast.takeFailure(); !why.empty()) {
        std::printf("%s\n", why.c_str());
        ++failures;
    }
    std::printf("%d wrong\n", failures);
    return failures > 0;
}
