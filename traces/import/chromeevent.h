// SPDX-License-Identifier: GPL-3.0-or-later
// One event of a Chrome trace, as text fields. Members may come in any order and numbers may be written as strings. If
// an event has bytes that are invalid in JSON (control characters, broken UTF-8), they are replaced and it is parsed
// once more before it is dropped.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pipewright {

struct ChromeEvent {
    std::string_view phase, name, category, time, duration, process, thread, id, bindingPoint;
    // of "args"; empty where absent
    std::string_view correlation, device, stream, bytes, graphNode, collective, group, groupSize, elements, type,
        sourceRank, targetRank, newName, sortIndex, deviceType, deviceId, totalAllocated, totalReserved;
    std::string_view rank, predicted;                        ///< likewise; of a process, in our own exports
    std::vector<std::pair<std::string_view, double>> values; ///< of a counter
    bool repaired = false;
};

class ChromeEventParser {
public:
    ChromeEventParser();
    ~ChromeEventParser();
    /// `text` must be followed by JsonEvents::padding readable bytes. False when it is not a JSON object. `event` is
    /// valid until the next call.
    bool parse(std::string_view text, ChromeEvent& event);
    /// Parses a JSON list of events at once, which is faster; false unless all of `events` are found and valid.
    bool parseList(std::string_view text, const std::vector<ChromeEvent*>& events);

private:
    struct Private;
    std::unique_ptr<Private> d;
};

} // namespace pipewright
