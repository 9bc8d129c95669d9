// SPDX-License-Identifier: GPL-3.0-or-later
// How often each kernel, copy and set ran in a stretch of a recording, and for how long, by name and by group. For a
// recording without a device it lists the framework's operators, each without the time of operators that it calls.
// Slices are clipped to the stretch. O(slices of the stretch log slices).
#pragma once

#include "traces/store/activitystore.h"

#include <map>
#include <string>
#include <vector>

namespace pipewright {

struct KernelRow {
    std::string name, group; ///< in a row for a whole group both are the group's name
    std::int64_t count = 0;
    Nanoseconds total = 0, shortest = 0, longest = 0;
    double mean() const { return count > 0 ? static_cast<double>(total) / static_cast<double>(count) : 0; }
};

struct KernelTable {
    bool ofHost = false;          ///< the rows are operators, as no device was recorded
    Nanoseconds total = 0;        ///< of all rows; times of devices and streams are added
    std::vector<KernelRow> names; ///< longest total first
    std::vector<KernelRow> groups;
    double shareOf(const KernelRow& row) const
    {
        return total > 0 ? static_cast<double>(row.total) / static_cast<double>(total) : 0;
    }
};

KernelTable kernelTable(const StoredActivities& trace, Nanoseconds from, Nanoseconds to);

/// A name or a group in two recordings; if one lacks it, its row is 0.
struct KernelChange {
    std::string name;
    KernelRow before, after;
    Nanoseconds change() const { return after.total - before.total; }
};

/// Every row of either, largest change first.
std::vector<KernelChange> changesOf(const std::vector<KernelRow>& before, const std::vector<KernelRow>& after);

} // namespace pipewright
