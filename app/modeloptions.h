// SPDX-License-Identifier: GPL-3.0-or-later
// What a command line says of a model besides its sizes: --framework and --precision.
#pragma once

#include "app/command.h"
#include "core/base/producttype.h"
#include "core/model/frameworkmemory.h"

#include <optional>

namespace pipewright::app {

struct ModelOptions {
    std::optional<FrameworkMemory> framework;
    std::optional<Precision> precision;

    /// Adds both options. They throw Error for unknown names, and refer to this object as long as `options` parses.
    void addTo(CLI::App& options);
};

} // namespace pipewright::app
