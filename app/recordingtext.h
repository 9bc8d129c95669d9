// SPDX-License-Identifier: GPL-3.0-or-later
// Recordings without a design as text and JSON: kernels by name and group, launches and their queues, memory, and the
// differences between two recordings.
#pragma once

#include "app/stretchchoice.h"

#include "core/json/jsonvalue.h"
#include "traces/analysis/counterpeaks.h"
#include "traces/analysis/kerneltable.h"
#include "traces/analysis/launchqueue.h"
#include "traces/analysis/rangetimes.h"

#include <string>
#include <vector>

namespace pipewright::app {

JsonValue toJson(const KernelTable& table);
JsonValue toJson(const std::vector<LaunchQueue>& queues);
JsonValue toJson(const std::vector<CounterPeak>& peaks);
JsonValue toJson(const std::vector<RangeTime>& ranges);
void print(const KernelTable& table, std::size_t names);
void print(const std::vector<LaunchQueue>& queues);
void print(const std::vector<CounterPeak>& peaks);
void print(const std::vector<RangeTime>& ranges); ///< those that most was launched in

/// `compare TRACE TRACE`: compares the same stretch, or the same step, of both.
void compareRecordings(const std::string& before, const std::string& after, int step, const StretchChoice& choice,
                       bool json);

} // namespace pipewright::app
