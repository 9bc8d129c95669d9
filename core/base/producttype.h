// SPDX-License-Identifier: GPL-3.0-or-later
// The numbers that the matrix products of transformer layers multiply, where those are narrower than the model's own.
// What is between products stays in the model's type, and so do routers, embedding, head and attention's own products,
// as Transformer Engine and torchao have it. Sums are fp32.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace pipewright {

enum class ProductType : std::uint8_t {
    Own,   ///< the model's
    Fp8,   ///< E4M3 or E5M2
    Nvfp4, ///< E2M1
};
inline constexpr std::array allProductTypes{ProductType::Own, ProductType::Fp8, ProductType::Nvfp4};

constexpr std::string_view nameOf(ProductType type) ///< as in files; empty behind the last one
{
    switch (type) {
    case ProductType::Own: return "own";
    case ProductType::Fp8: return "fp8";
    case ProductType::Nvfp4: return "nvfp4";
    }
    return {};
}

/// Of 32 numbers with their scales. FP8 has a byte of scale for 32 numbers (OCP MX) or four for 128 (DeepSeek-V3, arXiv
/// 2412.19437, section 3.3); where a whole tensor has one scale it is this 3 % too much. NVFP4 has one byte for 16.
constexpr int bytesOf32(ProductType type)
{
    switch (type) {
    case ProductType::Own: break; // has no such copies
    case ProductType::Fp8: return 33;
    case ProductType::Nvfp4: return 18;
    }
    return 0;
}

/// Of so many numbers with their scales. Precondition: not Own.
constexpr std::int64_t bytesIn(ProductType type, std::int64_t count)
{
    return (count * bytesOf32(type) + 31) / 32;
}

/// What a product reads comes in two copies, one for each direction in which it is read: for the forward, and for the
/// gradient of the other operand.
inline constexpr int narrowCopies = 2;

/// To read `count` numbers of so many bytes each, and to write these copies. Precondition: not Own.
constexpr double castBytes(std::int64_t count, int bytesPerElement, ProductType type)
{
    return static_cast<double>(count) * (bytesPerElement + narrowCopies * bytesOf32(type) / 32.);
}

/// What --precision names: the type of the products, of a bf16 model but for fp32.
struct Precision {
    bool narrowModel = true; ///< bf16, not fp32
    ProductType products = ProductType::Own;
    bool parameters = false; ///< what products read of parameters exists in their type alone
    bool operator==(const Precision&) const = default;
};
struct NamedPrecision {
    std::string_view name;
    Precision precision;
};
inline constexpr std::array precisions{
    NamedPrecision{"fp32", {false, ProductType::Own}},
    NamedPrecision{"bf16", {}},
    NamedPrecision{"fp8", {true, ProductType::Fp8}},
    NamedPrecision{"fp8-parameters", {true, ProductType::Fp8, true}},
    NamedPrecision{"nvfp4", {true, ProductType::Nvfp4}},
    NamedPrecision{"nvfp4-parameters", {true, ProductType::Nvfp4, true}},
};
constexpr std::string_view nameOf(const Precision& precision) ///< empty: of no such mixture
{
    for (const NamedPrecision& each : precisions)
        if (each.precision == precision)
            return each.name;
    return {};
}
/// Nothing: no such name.
constexpr std::optional<Precision> precisionNamed(std::string_view name)
{
    for (const NamedPrecision& each : precisions)
        if (each.name == name)
            return each.precision;
    return std::nullopt;
}

} // namespace pipewright
