// SPDX-License-Identifier: GPL-3.0-or-later
// The optimizers, each with its names and the state it keeps: the one list for files, options, training, predicted
// weights and the window. A new one is a line of the table; switches without it do not compile.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace pipewright {

enum class Optimizer : std::uint8_t { SgdMomentum, Adam, AdamW, RmsProp };

struct OptimizerFacts {
    Optimizer optimizer;
    std::string_view name;        ///< of options and of a design's weight policy: "sgd"
    std::string_view nameInModel; ///< of a design's model: "sgd-momentum"; empty: not used by models
    std::string_view title;       ///< "SGD with momentum"
    int values;                   ///< number of values that it keeps per parameter
};

inline constexpr std::array optimizers{
    OptimizerFacts{Optimizer::SgdMomentum, "sgd", "sgd-momentum", "SGD with momentum", 1},
    OptimizerFacts{Optimizer::Adam, "adam", "", "Adam", 2},
    OptimizerFacts{Optimizer::AdamW, "adamw", "adamw", "AdamW", 2},
    OptimizerFacts{Optimizer::RmsProp, "rmsprop", "", "RMSProp", 2},
};

inline constexpr std::size_t noOptimizer = ~std::size_t{0};

/// Its place in the table; noOptimizer for a number that is none.
constexpr std::size_t indexOf(Optimizer optimizer)
{
    switch (optimizer) {
    case Optimizer::SgdMomentum: return 0;
    case Optimizer::Adam: return 1;
    case Optimizer::AdamW: return 2;
    case Optimizer::RmsProp: return 3;
    }
    return noOptimizer;
}
static_assert(
    [] {
        for (std::size_t i = 0; i < optimizers.size(); ++i)
            if (indexOf(optimizers[i].optimizer) != i || static_cast<std::size_t>(optimizers[i].optimizer) != i)
                return false;
        return indexOf(static_cast<Optimizer>(optimizers.size())) == noOptimizer;
    }(),
    "the table has a line for every optimizer, in the order of the enumeration");

constexpr const OptimizerFacts& factsOf(Optimizer optimizer)
{
    return optimizers[indexOf(optimizer)];
}
constexpr std::string_view nameOf(Optimizer optimizer) ///< "sgd", "adam", …; empty for a number that is none
{
    return indexOf(optimizer) < optimizers.size() ? factsOf(optimizer).name : std::string_view();
}

/// The inverse of nameOf; nothing for an unknown name.
constexpr std::optional<Optimizer> optimizerNamed(std::string_view name)
{
    for (const OptimizerFacts& facts : optimizers)
        if (facts.name == name)
            return facts.optimizer;
    return std::nullopt;
}

/// The optimizer of a model that keeps as much state. Models know fewer than weight policies do.
constexpr Optimizer inModel(Optimizer optimizer)
{
    switch (optimizer) {
    case Optimizer::SgdMomentum: return Optimizer::SgdMomentum;
    case Optimizer::Adam:
    case Optimizer::AdamW:
    case Optimizer::RmsProp: return Optimizer::AdamW;
    }
    return optimizer;
}
static_assert(
    [] {
        for (const OptimizerFacts& facts : optimizers)
            if (const OptimizerFacts& model = factsOf(inModel(facts.optimizer));
                model.nameInModel.empty() || model.values != facts.values)
                return false;
        return true;
    }(),
    "a model's optimizer has a name in models, and the same state");

} // namespace pipewright
