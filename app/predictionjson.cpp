// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/predictionjson.h"

#include "core/program/weightreport.h"

namespace pipewright::app {

Json byKind(const DeviceMemory& memory)
{
    return {{"weights", memory.weights},     {"gradients", memory.gradients}, {"optimizer", memory.optimizer},
            {"framework", memory.framework}, {"gathered", memory.gathered},   {"activations", memory.activations},
            {"buffers", memory.buffers},     {"workspace", memory.workspace}};
}

Json weightsToJson(const Program& program)
{
    Json object;
    object["rule"] = nameOf(program.weightPolicy.rule);
    object["optimizer"] = nameOf(program.weightPolicy.optimizer);
    object["per_stage"] = Json::array();
    for (const StageWeights& stage : weightReport(program))
        object["per_stage"].push_back({{"stage", stage.stage},
                                       {"updates", stage.updates},
                                       {"staleness", stage.staleness},
                                       {"mean_staleness", stage.meanStaleness},
                                       {"forward_steps", stage.forwardSteps},
                                       {"backward_steps", stage.backwardSteps},
                                       {"versions", stage.versions},
                                       {"copies", stage.copies},
                                       {"weight_bytes", stage.bytes},
                                       {"in_flight", stage.inFlight}});
    const WeightTraffic traffic = weightTraffic(program);
    object["gradient_traffic_bytes"] = traffic.gradients;
    object["weight_traffic_bytes"] = traffic.weights;
    object["reads"] = Json::array();
    for (TaskId t = 0; t < program.tasks.size(); ++t)
        if (program.tasks[t].kind == TaskKind::Compute)
            object["reads"].push_back({{"block", toString(program.tasks[t].block())},
                                       {"version", program.weights[t].version},
                                       {"steps", program.weights[t].steps},
                                       {"update", program.weights[t].update}});
    return object;
}

} // namespace pipewright::app
