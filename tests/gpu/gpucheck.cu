// SPDX-License-Identifier: GPL-3.0-or-later
// Every GPU kernel against a reference, and the speed of a large product. Needs a GPU and nothing of Qt; prints one
// line per kernel and returns 1 when one is wrong.
//   gpucheck [--small] [--own-products] [--products]    few rows; cuBLASLt is not asked for; products are only measured
#include "executor/cuda/loader.h"
#include "gpu/check.h"
#include "gpu/decoderchecks.h"
#include "gpu/expertchecks.h"
#include "gpu/fusedchecks.h"
#include "gpu/productchecks.h"
#include "gpu/storedchecks.h"
#include "gpu/tensorchecks.h"
#include "kernels/cuda/kernels.h"
#include "kernels/reference/reference.h"

#include <memory>
#include <string>
#include <string_view>

using namespace pipewright;
using namespace pipewright::test;
namespace gpu = pipewright::kernels::cuda;

namespace {

void checkRows()
{
    const int rows = small ? 40 : 300, columns = small ? 270 : 300, classes = small ? 30 : 130, length = 20,
              vocabulary = small ? 15 : 90;
    const Values x = someValues(std::size_t(rows) * columns, 1, 2), dy = someValues(x.size(), 2),
                 gamma = someValues(columns, 3), beta = someValues(columns, 4);
    Floats input(single(x)), grad(single(dy)), scale(single(gamma)), shift(single(beta));
    check("gelu forward", reference::geluForward(x), elementError, [&] {
        Floats y(x.size());
        gpu::run({}, kernels::ActivationForward{kernels::ActivationKind::GeluTanh, input.span(), y.span()});
        return y.read();
    });
    check("gelu input grad", reference::geluInputGrad(x, dy), elementError, [&] {
        Floats dx(x.size());
        gpu::run({},
                 kernels::ActivationInputGrad{kernels::ActivationKind::GeluTanh, input.span(), grad.span(), dx.span()});
        return dx.read();
    });
    check("layer norm forward", reference::layerNormForward(rows, columns, x, gamma, beta), sumError, [&] {
        Floats y(x.size());
        gpu::run({}, kernels::LayerNormForward{rows, columns, input.span(), scale.span(), shift.span(), y.span()});
        return y.read();
    });
    check("layer norm input grad", reference::layerNormInputGrad(rows, columns, x, gamma, dy), sumError, [&] {
        Floats dx(x.size());
        gpu::run({}, kernels::LayerNormInputGrad{rows, columns, input.span(), scale.span(), grad.span(), dx.span()});
        return dx.read();
    });
    const float large = 0.5f; // an epsilon that is seen
    check("layer norm input grad in place", reference::layerNormInputGrad(rows, columns, x, gamma, dy, large), sumError,
          [&] {
              Floats dx(single(dy));
              gpu::run({}, kernels::LayerNormInputGrad{rows, columns, input.span(), scale.span(), dx.span(), dx.span(),
                                                       large, kernels::Store::Replace});
              return dx.read();
          });
    const auto norm = reference::layerNormWeightGrad(rows, columns, x, dy);
    for (const bool second : {false, true})
        check(
            second ? "layer norm beta grad" : "layer norm gamma grad", second ? norm.bias : norm.weight, sumError, [&] {
                Floats dg(columns), db(columns), scratch(second ? 2 * rows : 33); // all rows at once, or 16
                gpu::run({.rowScratch = scratch.span()},
                         kernels::LayerNormWeightGrad{rows, columns, input.span(), grad.span(), dg.span(), db.span()});
                return second ? db.read() : dg.read();
            });
    const auto tokens = someTokens(rows, vocabulary, 5);
    auto targets = someTokens(rows, classes, 6);
    targets[1] = targets[3] = -1; // no part in the loss
    const Values table = someValues(std::size_t(vocabulary) * columns, 7),
                 positions = someValues(std::size_t(length) * columns, 8);
    Memory<std::int32_t> words(tokens), wanted(targets);
    Floats tableValues(single(table)), positionValues(single(positions));
    check("embedding forward", reference::embeddingForward(length, columns, tokens, table, positions), elementError,
          [&] {
              Floats y(x.size());
              gpu::run({}, kernels::EmbeddingForward{length, columns, words.span(), tableValues.span(),
                                                     positionValues.span(), y.span()});
              return y.read();
          });
    const auto embedding = reference::embeddingWeightGrad(length, columns, vocabulary, tokens, dy);
    for (const bool ofTable : {true, false})
        check(ofTable ? "embedding table grad" : "embedding positions grad",
              ofTable ? embedding.weight : embedding.bias, sumError, [&] {
                  Floats dt(table.size()), dp(positions.size());
                  gpu::run({}, kernels::EmbeddingWeightGrad{length, columns, words.span(), grad.span(), dt.span(),
                                                            dp.span()});
                  return ofTable ? dt.read() : dp.read();
              });
    const int bag = 7, bags = 20;
    const auto features = someTokens(std::size_t(bags) * bag, vocabulary, 10);
    const Values bagGrad = someValues(std::size_t(bags) * columns, 11);
    Memory<std::int32_t> named(features);
    Floats ofBags(single(bagGrad));
    check("feature bag forward", reference::featureBagForward(bag, columns, features, table), sumError, [&] {
        Floats y(bagGrad.size());
        gpu::run({}, kernels::FeatureBagForward{bag, columns, named.span(), tableValues.span(), y.span()});
        return y.read();
    });
    check("feature bag weight grad", reference::featureBagWeightGrad(bag, columns, vocabulary, features, bagGrad),
          sumError, [&] {
              Floats dt(table.size());
              gpu::run({}, kernels::FeatureBagWeightGrad{bag, columns, named.span(), ofBags.span(), dt.span()});
              return dt.read();
          });
    const Values logits = someValues(std::size_t(rows) * classes, 9, 5);
    const auto entropy = reference::crossEntropyForward(rows, classes, logits, targets, 0.01);
    check("cross entropy loss", {entropy.loss}, sumError, [&] {
        Floats p(single(logits)), loss(1), scratch(rows);
        gpu::run({.rowScratch = scratch.span()},
                 kernels::CrossEntropyForward{rows, classes, p.span(), wanted.span(), 0.01f, loss.span()});
        return loss.read();
    });
    check("cross entropy input grad",
          reference::crossEntropyInputGrad(rows, classes, entropy.probabilities, targets, 0.01), sumError, [&] {
              Floats p(single(logits)), loss(1), scratch(rows), d(logits.size());
              gpu::run({.rowScratch = scratch.span()},
                       kernels::CrossEntropyForward{rows, classes, p.span(), wanted.span(), 0.01f, loss.span()});
              gpu::run({}, kernels::CrossEntropyInputGrad{rows, classes, p.span(), wanted.span(), 0.01f, d.span()});
              return d.read();
          });
}

/// Copies, sums and optimizers: a formula for each element.
void checkElements()
{
    const std::size_t count = 1000;
    const Values x = someValues(count, 1, 2), dy = someValues(count, 2), fresh(count, 0.25);
    const std::vector<float> xs = single(x), dys = single(dy), quarters(count, 0.25f);
    Floats input(xs), grad(dys), squares(quarters);
    const auto each = [&](const char* name, auto formula, auto compute) {
        Values expected(count);
        for (std::size_t i = 0; i < count; ++i)
            expected[i] = formula(x[i], dy[i]);
        check(name, expected, elementError, [&] {
            Floats changed(xs);
            compute(changed.span());
            return changed.read();
        });
    };
    each(
        "fill", [](double, double) { return 0.5; },
        [&](auto to) {
            gpu::run({}, kernels::Fill{to, 0.5f});
        });
    each("sum", std::plus<>(), [&](auto to) { gpu::run({}, kernels::Add{to, grad.span()}); });
    check("copy", x, 0, [&] {
        Floats to(count);
        gpu::run({}, kernels::copyOf(std::span<const float>(input.span()), to.span()));
        return to.read();
    });
    check("time stamp", {1}, 0, [&] {
        Memory<std::int64_t> times(2);
        gpu::stamp(nullptr, times.span().data());
        gpu::spin(nullptr, 20'000);
        gpu::spinFrom(nullptr, times.span().data(), 50'000);
        gpu::stamp(nullptr, times.span().data() + 1);
        const std::vector<std::int64_t> at = times.read();
        return std::vector<float>{at[1] - at[0] >= 50'000 ? 1.0f : 0.0f};
    });

    Values p = x, m = dy, v = fresh;
    reference::adamWStep({}, 3, p, dy, m, v);
    check("AdamW", p, elementError, [&] {
        Floats parameters(xs), first(dys), second(quarters);
        gpu::run({}, kernels::AdamWStep{{}, 3, parameters.span(), grad.span(), first.span(), second.span()});
        return parameters.read();
    });
    Values q = x, momentum = dy;
    reference::sgdMomentumStep({}, q, dy, momentum);
    check("SGD with momentum", q, elementError, [&] {
        Floats parameters(xs), moved(dys);
        gpu::run({}, kernels::SgdMomentumStep{{}, parameters.span(), grad.span(), moved.span()});
        return parameters.read();
    });
    const kernels::RmsPropSettings rms;
    each(
        "RMSProp",
        [&](double a, double g) {
            return a
                   - rms.learningRate * g
                         / (std::sqrt(rms.smoothing * 0.25 + (1 - rms.smoothing) * g * g) + rms.epsilon);
        },
        [&](auto to) {
            Floats second(quarters), last(count);
            gpu::run({}, kernels::RmsPropStep{rms, to, grad.span(), second.span(), last.span()});
        });
    const float distance = 0.3f;
    each(
        "predicted from momentum", [&](double a, double g) { return a - distance * g; },
        [&](auto to) {
            gpu::run({}, kernels::PredictMomentum{distance, to, grad.span(), to});
        });
    each(
        "predicted from RMSProp", [&](double a, double g) { return a - distance * g / (0.5 + rms.epsilon); },
        [&](auto to) {
            gpu::run({}, kernels::PredictRmsProp{distance, rms.epsilon, to, squares.span(), grad.span(), to});
        });
    const kernels::AdamWSettings adam;
    each(
        "predicted from Adam",
        [&](double a, double g) {
            const double first = g / (1 - std::pow(double(adam.beta1), 3)),
                         second = 0.25 / (1 - std::pow(double(adam.beta2), 3));
            return a - distance * first / (std::sqrt(second) + adam.epsilon);
        },
        [&](auto to) {
            gpu::run({}, kernels::PredictAdam{adam, 3, distance, to, grad.span(), squares.span(), to});
        });
}

void checkAttention(bool bf16)
{
    const kernels::AttentionShape shape{2, small ? 18 : 70, 3, 48};
    const std::size_t elements = shape.tokens() * shape.hidden();
    const double limit = bf16 ? bf16AttentionError : sumError;
    const Values q = valuesFor(bf16, someValues(elements, 1)), k = valuesFor(bf16, someValues(elements, 2)),
                 v = valuesFor(bf16, someValues(elements, 3)), dy = valuesFor(bf16, someValues(elements, 4));
    Floats query(single(q)), key(single(k)), value(single(v)), grad(single(dy));
    const auto expected = reference::attentionForward(shape, q, k, v);
    Floats logSum(shape.tokens() * shape.heads), output(elements);
    check(bf16 ? "attention forward, bf16" : "attention forward", expected.output, limit, [&] {
        gpu::run({}, kernels::AttentionForward{
                         shape, query.span(), key.span(), value.span(), logSum.span(), output.span(), {}, bf16});
        return output.read();
    });
    check(bf16 ? "attention input grad, bf16" : "attention input grad",
          reference::attentionInputGrad(shape, q, k, v, expected.probabilities, dy), limit, [&] {
              Floats d(3 * elements), dots(shape.tokens() * shape.heads);
              gpu::run({}, kernels::AttentionInputGrad{shape,
                                                       query.span(),
                                                       key.span(),
                                                       value.span(),
                                                       logSum.span(),
                                                       output.span(),
                                                       grad.span(),
                                                       d.span(),
                                                       dots.span(),
                                                       {},
                                                       {},
                                                       bf16});
              return d.read();
          });
}

/// Sequences in pieces, forward from the first and back from the last, against the whole sequences.
void checkPieces()
{
    const int pieces = 3;
    const int length = small ? 5 : 23;
    const kernels::AttentionShape shape{2, length, 3, 48, pieces}, whole{2, pieces * length, 3, 48};
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
    check("attention of pieces", outputs, sumError, [&] {
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
    check("attention of pieces, grad", grads, sumError, [&] {
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

void measureProduct(gpu::Products& products, int size, gpu::Precision precision, const char* name)
{
    const auto elements = std::size_t(size) * size;
    const std::vector<float> values = single(someValues(elements, 1));
    Floats a(values), b(values), c(elements);
    const double milliseconds = millisecondsOf([&] {
        gpu::run({.precision = precision, .products = &products},
                 kernels::LinearForward{{size, size, size}, a.span(), b.span(), {}, c.span()});
    });
    std::printf("%d^3 %s: %.1f TFLOP/s\n", size, name, 2.0 * size * size * size / milliseconds / 1e9);
}

/// `measures`: nothing is checked.
void checkLibrary(bool measures)
{
    std::string library;
    for (const CudaLibrary& found : findCudaLibraries(CUDART_VERSION / 1000, {}))
        if (found.name == "cuBLASLt")
            library = found.path;
    Memory<char> workspace(64u << 20);
    gpu::Products fast(library, workspace.span().data(), workspace.span().size());
    if (!fast.whyNot().empty()) {
        std::printf("WRONG: cuBLASLt cannot be used: %s\n", fast.whyNot().c_str());
        ++failures;
        return;
    }
    if (measures) {
        for (const int size : small ? std::vector{16} : std::vector{256, 1024, 4096, 8192}) {
            measureProduct(fast, size, gpu::Precision::Float32, "fp32");
            measureProduct(fast, size, gpu::Precision::BFloat16, "fp32 of bf16 factors");
        }
    } else {
        checkProducts(fast, "fp32", gpu::Precision::Float32, sumError);
        checkProducts(fast, "bf16", gpu::Precision::BFloat16, bf16Error);
        checkEpilogues(fast, "epilogue");
        checkStoredFactors(fast, "stored as bf16");
        checkUnalignedProduct(fast, gpu::Precision::Float32, sumError);
        checkUnalignedProduct(fast, gpu::Precision::BFloat16, bf16Error);
    }
    if (const std::string why = fast.takeFailure(); !why.empty()) {
        std::printf("WRONG: %s\n", why.c_str());
        ++failures;
    }
}

} // namespace

int main(int count, char** arguments)
{
    bool ownProducts = false, products = false, attention = false;
    for (const std::string_view each : std::span(arguments, std::size_t(count)).subspan(1)) {
        if (each != "--small" && each != "--own-products" && each != "--products" && each != "--attention") {
            std::printf("usage: gpucheck [--small] [--own-products] [--products] [--attention]\n");
            return 2;
        }
        (each == "--small"       ? small
         : each == "--products"  ? products
         : each == "--attention" ? attention
                                 : ownProducts) = true;
    }
    int gpus = 0;
    if (const cudaError_t code = cudaGetDeviceCount(&gpus); code != cudaSuccess || gpus == 0) {
        std::printf("no GPU to check: %s\n", cudaGetErrorString(code));
        return 2;
    }
    if (products) {
        checkLibrary(true);
        return failures > 0;
    }
    if (attention) {
        if (multipliesBf16())
            measureAttention();
        else
            std::printf("this GPU does not multiply bf16\n");
        return failures > 0;
    }
    checkRows();
    checkElements();
    checkAttention(false);
    if (multipliesBf16())
        checkAttention(true);
    checkPieces();
    checkTensors();
    checkDecoders();
    checkExperts();
    gpu::Products plain({}, nullptr, 0);
    checkProducts(plain, "own kernel", gpu::Precision::Float32, sumError);
    checkEpilogues(plain, "own kernel");
    checkStoredFactors(plain, "own kernel, stored as bf16");
    checkStoredProducts(plain, "own kernel");
    if (multipliesBf16())
        checkStoredOperands();
    if (!ownProducts) {
        checkLibrary(false);
        if (multipliesBf16())
            checkFusedAttention();
    }
    std::printf("%d wrong\n", failures);
    return failures > 0;
}
