# SPDX-License-Identifier: GPL-3.0-or-later
# The rooms of traces, from the ground up.
pipewright_room(traces/store USES core/files core/predict LINK SQLiteCpp SQLite::SQLite3 simdjson::simdjson ZLIB::ZLIB FUZZED)
pipewright_room(traces/import USES traces/store core/exchange FUZZED)
pipewright_room(traces/analysis COLD USES traces/store FUZZED
                HOT activitysummary blockkernels calibration devicetime gpugaps handoff hostgaps idletime kerneltable
                    launchqueue layerranges layerslices rangetimes replay)
pipewright_room(traces/export USES traces/analysis core/exchange FUZZED)
pipewright_floor(traces)
