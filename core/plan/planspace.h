// SPDX-License-Identifier: GPL-3.0-or-later
// The space of ways to train: settings, which fix what a block costs, and for each the families that order the blocks.
#pragma once

#include "core/base/recompute.h"
#include "core/families/family.h"
#include "core/model/modelshape.h"
#include "core/schedule/zero.h"

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace pipewright {

/// All but the order of the blocks.
struct PlanSetting {
    int tensor = 1, context = 1, expert = 1, pipeline = 1, data = 1;
    int microbatchSize = 1, microbatches = 1;
    Zero zero{};
    Recompute recompute{};
    bool foldedExperts = false;
    /// Tokens are shared out between products wherever heads are (sequence parallelism).
    Parallelism parallel() const;
};

/// What is asked for.
struct PlanSpace {
    int devices = 1;                   ///< all of them
    int batch = 1;                     ///< sequences of a step
    std::vector<std::string> families; ///< empty: all that update once a step and do not search for their order
    /// Dimensions that are fixed.
    std::optional<int> tensor, context, expert, pipeline, data, chunks, microbatchSize, zero;
    std::optional<bool> reshard, foldedExperts;
    std::optional<Recompute> recompute;
};

struct PlanSettings {
    std::vector<PlanSetting> possible;
    /// Refused, each with as many as it stands for.
    std::map<std::string, std::int64_t> byShape, byBatch;
};

/// O(settings). Divisors of the devices are taken for degrees, of the batch for microbatches.
PlanSettings settingsOf(const PlanSpace& space, const ModelShape& shape);

struct PlanOrder {
    const Family* family = nullptr;
    int chunks = 1;
};
/// The families of a setting, those with selectable chunks once for each number of stages per device that the model has
/// layers for. Where a device has no more stages than are gathered ahead, none is freed between visits: such families
/// are of the setting that holds what it gathers. Throws Error for an unknown family.
std::vector<PlanOrder> ordersOf(const PlanSpace& space, const PlanSetting& setting, int layers);

/// Sets a dimension by its name: "tensor=8", "recompute=full", "reshard=always". Throws Error at `where`.
void pin(PlanSpace& space, std::string_view text, const std::string& where);

} // namespace pipewright
