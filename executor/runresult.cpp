// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/run.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace pipewright {

std::string RunResult::toJson() const
{
    nlohmann::ordered_json json;
    json["backend"] = backend;
    json["maths"] = maths;
    json["devices"] = devices;
    json["steps"] = stepTimes.size();
    json["step_ns"] = stepTimes;
    json["loss"] = nlohmann::ordered_json::array();
    for (const double loss : losses)
        json["loss"].push_back(std::isnan(loss) ? nlohmann::ordered_json() : nlohmann::ordered_json(loss));
    json["peak_bytes"] = peakBytes;
    json["predicted_peak_bytes"] = predictedPeakBytes;
    json["arena_bytes"] = arenaBytes;
    json["allocated_bytes"] = heldBytes;
    json["predicted_allocated_bytes"] = nlohmann::ordered_json::array();
    nlohmann::ordered_json kept;
    for (const char* part : {"gaps", "maths", "text", "links"})
        kept[part] = nlohmann::ordered_json::array();
    for (const HeldMemory& device : memory) {
        json["predicted_allocated_bytes"].push_back(device.total());
        kept["gaps"].push_back(device.gaps);
        kept["maths"].push_back(device.maths);
        kept["text"].push_back(device.text);
        kept["links"].push_back(device.links);
    }
    json["kept_bytes"] = std::move(kept); // beside the peak, of the predicted ones
    json["dropped_records"] = droppedRecords;
    if (gradients)
        json["gradient_check"] = {{"reference", "sequential"},
                                  {"bit_equal", gradients->bitEqual},
                                  {"max_relative_error", gradients->maxRelativeError}};
    else
        json["gradient_check"] = nullptr;
    if (!clockOffsets.empty()) {
        json["clock_offset_ns"] = clockOffsets;
        json["clock_uncertainty_ns"] = clockUncertainties;
    }
    if (cancelled)
        json["cancelled"] = true;
    json["trace"] = trace.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(trace);
    return json.dump();
}

} // namespace pipewright
