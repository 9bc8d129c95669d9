// SPDX-License-Identifier: GPL-3.0-or-later
// What no plan of a setting can go below, whatever its family.
#pragma once

#include "core/plan/plan.h"

namespace pipewright {

struct PlanBounds {
    Nanoseconds step = 0; ///< a device's share of the step's blocks, when all devices have the same
    /// A device's share of the states, and of what one microbatch has saved when its last forward ends.
    Bytes peak = 0;
    /// About what the shortest step of a pipeline is, filling and draining included: for the order of trying alone.
    Nanoseconds likely = 0;
    Bytes limit = 0; ///< of the device that has least memory; 0: not known
};

/// From the costs of as many stages as there are devices: other cuts of the same layers have the same sums. Throws
/// Error when the setting cannot be. O(layers).
PlanBounds boundsOf(const PlanRequest& request, const PlanSetting& setting, const Workload& workload,
                    const Cluster& cluster);
PlanBounds boundsOf(const PlanRequest& request, const PlanSetting& setting);

/// The same of one family: a device that holds none of the first stages begins when a microbatch has come there, and
/// what it made last goes all the way back. `chunks` stages per device. O(layers).
Nanoseconds stepBoundOf(const PlanSetting& setting, const PlanBounds& bounds, const PlanOrder& order,
                        const Workload& workload, const Cluster& cluster);

/// The model and the devices of a setting, as boundsOf() and designOf() take them.
Workload workloadOf(const PlanRequest& request, const PlanSetting& setting);
std::shared_ptr<const Cluster> clusterOf(const PlanRequest& request, const PlanSetting& setting);

} // namespace pipewright
