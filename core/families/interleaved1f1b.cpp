// SPDX-License-Identifier: GPL-3.0-or-later
// Interleaved 1F1B (arXiv 2104.04473, Megatron's order): each device holds v chunks, stage s on device
// s mod p. Microbatches go round in groups of g: chunk 0 for the whole group, then chunk 1, and so on;
// backwards follow the same table with the chunks reversed. Warm-up is 2(p - r - 1) + (v - 1) g forwards.
//
// Combined 1F1B (Megatron-Core's guide "Combined 1F1B: Expert-Parallel All-to-All Overlap") runs each forward of the
// steady state beside the backward that follows it, so that the tokens of one travel to their experts while the other
// computes. The two need different microbatches, hence one more forward of warm-up.
#include "core/families/orders.h"

#include <fmt/format.h>

#include <algorithm>

namespace pipewright {

namespace {

struct Slot {
    int chunk, microbatch;
};

/// The order in which a device runs its (chunk, microbatch) pairs; the last group may be shorter.
std::vector<Slot> slots(int chunks, int microbatches, int group)
{
    std::vector<Slot> table;
    table.reserve(static_cast<std::size_t>(chunks) * static_cast<std::size_t>(microbatches));
    for (int first = 0; first < microbatches; first += group)
        for (int chunk = 0; chunk < chunks; ++chunk)
            for (int m = first; m < std::min(first + group, microbatches); ++m)
                table.push_back({chunk, m});
    return table;
}

Diagnostics checkGroup(const FamilyParameters& p)
{
    const int group = p.group.value_or(p.devices);
    if (p.microbatches < p.devices)
        return {{Severity::Error, "--microbatches",
                 fmt::format("{} microbatches on {} devices", p.microbatches, p.devices),
                 "interleaving needs at least as many microbatches as devices"}};
    if (group < p.devices || group > p.microbatches)
        return {{Severity::Error, "--group", fmt::format("a group of {} microbatches", group),
                 fmt::format("use {} (devices) to {} (microbatches)", p.devices, p.microbatches)}};
    if (const int rest = p.microbatches % group; rest != 0 && rest < p.devices)
        return {{Severity::Error, p.group ? "--group" : "--microbatches",
                 fmt::format("{} microbatches in groups of {} leave a last group of {}", p.microbatches, group, rest),
                 fmt::format("the last group must be whole or hold at least {} microbatches", p.devices)}};
    return {};
}

Schedule makeInterleaved(const FamilyParameters& p, bool combined)
{
    const int chunks = p.chunks.value_or(2);
    const int group = p.group.value_or(p.devices);
    const std::vector<Slot> table = slots(chunks, p.microbatches, group);
    const int total = static_cast<int>(table.size());
    Schedule schedule;
    schedule.deviceOfStage = loopedPlacement(p.devices, chunks);
    for (int device = 0; device < p.devices; ++device) {
        std::vector<Block>& lane = schedule.order.emplace_back();
        lane.reserve(table.size() * 2);
        const auto forward = [&](int k) {
            lane.push_back({Op::F, table[k].chunk * p.devices + device, table[k].microbatch});
        };
        const auto backward = [&](int k) {
            lane.push_back({Op::B, (chunks - 1 - table[k].chunk) * p.devices + device, table[k].microbatch});
        };
        const int warmUp = std::min(total, 2 * (p.devices - device - 1) + (chunks - 1) * group + (combined ? 1 : 0));
        for (int k = 0; k < warmUp; ++k)
            forward(k);
        for (int k = warmUp; k < total; ++k) {
            forward(k);
            backward(k - warmUp);
            if (combined)
                schedule.overlaps.push_back({lane[lane.size() - 2], lane.back()});
        }
        for (int k = total - warmUp; k < total; ++k)
            backward(k);
    }
    std::sort(schedule.overlaps.begin(), schedule.overlaps.end());
    return schedule;
}

} // namespace

Family interleaved()
{
    return {.name = "interleaved-1f1b",
            .title = "Interleaved 1F1B",
            .description = "Several chunks per device shrink the bubble by their number and move more data.",
            .defaultChunks = 2,
            .chunksSelectable = true,
            .backward = BackwardStyle::Full,
            .check = checkGroup,
            .make = [](const FamilyParameters& p) { return makeInterleaved(p, false); },
            .interleaves = true};
}

Family combined()
{
    return {.name = "combined-1f1b",
            .title = "Combined 1F1B",
            .description = "Interleaved 1F1B whose forwards run beside backwards and hide their all-to-alls of tokens.",
            .defaultChunks = 2,
            .chunksSelectable = true,
            .backward = BackwardStyle::Full,
            .check = checkGroup,
            .make = [](const FamilyParameters& p) { return makeInterleaved(p, true); },
            .interleaves = true,
            .combines = true};
}

} // namespace pipewright
