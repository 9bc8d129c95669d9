// SPDX-License-Identifier: GPL-3.0-or-later
// What a command line says of a model besides its sizes: --framework and --precision.
#pragma once

#include "app/command.h"
#include "core/base/producttype.h"
#include "core/model/frameworkmemory.h"

#include <optional>

namespace pipewright::app {

/// Of --expert-spread.
inline constexpr const char* expertSpreadMeaning =
    "tokens of the expert-parallel copy that gets the most, over the mean of all: from 1 (1)";
/// Of --node-dispatch.
inline constexpr const char* nodeDispatchMeaning =
    "a token goes once to each node with experts that it visits, and is handed on there, in place of a copy for every "
    "expert (DeepEP; --moe-token-dispatcher-type flex of Megatron-LM)";

struct ModelOptions {
    std::optional<FrameworkMemory> framework;
    std::optional<Precision> precision;

    /// Adds both options. They throw Error for unknown names, and refer to this object as long as `options` parses.
    void addTo(CLI::App& options);
};

} // namespace pipewright::app
