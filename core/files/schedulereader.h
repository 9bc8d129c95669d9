// SPDX-License-Identifier: GPL-3.0-or-later
// JSON -> Schedule: the "schedule" of a design file, and the state that the readers of all sections share.
#pragma once

#include "core/files/buildingblockreader.h"
#include "core/json/locatedjson.h"
#include "core/json/objectreader.h"
#include "core/schedule/schedule.h"

#include <string>
#include <utility>
#include <vector>

namespace pipewright {

/// A file that is being read, and what was found wrong in it.
struct Reading {
    const LocatedJson& document;
    Diagnostics diagnostics;

    ObjectReader object(const nlohmann::ordered_json& value, std::string pointer)
    {
        return ObjectReader(document, value, std::move(pointer), diagnostics);
    }
    void fault(const std::string& pointer, std::string what, std::string hint)
    {
        addBounded(diagnostics, {Severity::Error, document.placeOf(pointer), std::move(what), std::move(hint)});
    }
};

inline std::vector<int> readIntegers(Reading& reading, const nlohmann::ordered_json& list, const std::string& pointer,
                                     int low, int high)
{
    return readIntegers(reading.document, list, pointer, low, high, reading.diagnostics);
}

/// What of the file around it a schedule's meaning depends on.
struct ScheduleFile {
    bool unrolled = false; ///< a building block gives the order, which the file then leaves out
    int version = 0;       ///< of the file
};
/// `schedule` is an unrolled building block, or empty, and then more keys are required.
void readSchedule(Reading& reading, const nlohmann::ordered_json& value, Schedule& schedule, ScheduleFile file);

} // namespace pipewright
