// SPDX-License-Identifier: GPL-3.0-or-later
#include "traces/store/notes.h"

#include "core/base/diagnostic.h"
#include "core/base/inputfile.h"
#include "core/base/textfile.h"
#include "core/json/jsontext.h"
#include "core/json/locatedjson.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <tuple>

namespace pipewright {

namespace {

void sort(std::vector<TraceNote>& notes)
{
    std::stable_sort(notes.begin(), notes.end(), [](const TraceNote& a, const TraceNote& b) {
        return std::tie(a.step, a.start, a.end) < std::tie(b.step, b.start, b.end);
    });
}

} // namespace

std::string notesPath(const std::string& trace)
{
    return trace + ".notes.json";
}

std::vector<TraceNote> readNotes(const std::string& trace)
{
    const std::string path = notesPath(trace);
    if (!pathExists(path))
        return {};
    std::vector<TraceNote> notes;
    try {
        const auto file = parseLocatedJson(readTextFile(path), path).value;
        for (const auto& entry : file.at("notes")) {
            TraceNote note;
            note.start = entry.at("start_ns").get<Nanoseconds>();
            note.end = entry.at("end_ns").get<Nanoseconds>();
            note.step = entry.value("step", -1);
            note.text = entry.at("text").get<std::string>();
            if (note.end < note.start || note.text.empty())
                throw Error(path, "a note ends before it starts, or says nothing", "mend the file, or move it away");
            notes.push_back(std::move(note));
        }
    } catch (const nlohmann::json::exception& error) {
        throw Error(path, std::string("these are no notes: ") + error.what(), "mend the file, or move it away");
    }
    sort(notes);
    return notes;
}

void writeNotes(const std::string& trace, std::vector<TraceNote> notes)
{
    const std::string path = notesPath(trace);
    if (notes.empty()) {
        std::error_code error;
        std::filesystem::remove(path, error);
        if (error)
            throw Error(path, "cannot be removed: " + error.message(), "is the folder writable?");
        return;
    }
    sort(notes);
    nlohmann::ordered_json file{{"pipewright_notes", 1}, {"notes", nlohmann::ordered_json::array()}};
    for (const TraceNote& note : notes) {
        nlohmann::ordered_json entry{{"start_ns", note.start}, {"end_ns", note.end}};
        if (note.step >= 0)
            entry["step"] = note.step;
        entry["text"] = note.text;
        file["notes"].push_back(std::move(entry));
    }
    writeFileAtomically(path, jsonText(file, 2) + "\n", true);
}

} // namespace pipewright
