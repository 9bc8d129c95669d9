// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/presets/modelfile.h"

#include "core/base/formattedtext.h"
#include "core/base/inputfile.h"
#include "core/base/textcells.h"
#include "core/base/textfile.h"
#include "core/json/locatedjson.h"
#include "core/model/layertable.h"
#include "core/model/transformer.h"
#include "core/presets/huggingface.h"
#include "core/presets/modeljson.h"
#include "core/presets/presets.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <optional>

namespace pipewright {

namespace {

enum Column {
    Name,
    Forward,
    InputGrad,
    WeightGrad,
    Saved,
    Parameters,
    Output,
    SavedForWeightGrad,
    Backward,
    Frozen,
    Shared,
    SharedWith
};
constexpr std::array<std::string_view, 12> columnNames{"layer",    "forward",    "input_grad", "weight_grad",
                                                       "saved",    "parameters", "output",     "saved_for_weight_grad",
                                                       "backward", "frozen",     "shared",     "shared_with"};
constexpr std::size_t requiredColumns = 7;

std::string fileName(const std::string& path)
{
    return std::filesystem::path(path).filename().string();
}

/// The name of a model whose file does not state one.
std::string stemOf(const std::string& path)
{
    const std::string stem = std::filesystem::path(path).stem().string();
    const std::string folder = std::filesystem::path(path).parent_path().filename().string();
    return stem == "config" && !folder.empty() ? folder : stem;
}

ModelFile readOwnFile(const LocatedJson& document, const std::string& path)
{
    Diagnostics diagnostics;
    ObjectReader reader(document, document.value, "", diagnostics);
    std::string title, origin;
    reader.read("title", title);
    reader.read("origin", origin);
    ModelFile file;
    file.shape = readShape(reader);
    reader.finish();
    if (diagnostics.empty())
        for (Diagnostic wrong : checkShape(file.shape)) {
            std::string pointer = wrong.where.substr(std::min(wrong.where.size(), sizeof("model") - 1));
            std::replace(pointer.begin(), pointer.end(), '.', '/');
            wrong.where = document.placeOf(pointer);
            diagnostics.push_back(std::move(wrong));
        }
    if (!diagnostics.empty())
        throw Error(std::move(diagnostics));
    file.source = origin.empty() ? fileName(path) : fmt::format("{}: {}", fileName(path), origin);
    return file;
}

/// "forward [ms]" is the column forward, whose plain numbers are in ms.
struct ColumnTitle {
    std::string_view name, unit;
};

ColumnTitle titleOf(std::string_view text)
{
    const std::size_t open = text.find('[');
    if (open == std::string_view::npos || text.back() != ']')
        return {text, {}};
    return {withoutBlanks(text.substr(0, open)), withoutBlanks(text.substr(open + 1, text.size() - open - 2))};
}

/// Index of each known column in the header; other columns are ignored.
std::array<std::optional<std::size_t>, columnNames.size()> columnsOf(const TextLine& header, CellFaults& faults)
{
    std::array<std::optional<std::size_t>, columnNames.size()> columns;
    for (std::size_t at = 0; at < header.cells.size(); ++at)
        for (std::size_t column = 0; column < columnNames.size(); ++column)
            if (titleOf(header.cells[at].text).name == columnNames[column]) {
                if (columns[column])
                    faults.add(header.number, header.cells[at], "the column is there twice", "keep one of them");
                columns[column] = at;
            }
    for (std::size_t column = 0; column < requiredColumns; ++column)
        if (!columns[column])
            faults.add(header.number, fmt::format("the column \"{}\" is missing", columnNames[column]),
                       fmt::format("the header names {}", joined(std::span(columnNames).first(requiredColumns), ",")));
    return columns;
}

bool isPlainNumber(std::string_view text)
{
    return !text.empty() && text.find_first_not_of("0123456789.") == std::string_view::npos;
}

/// The columns of what autograd holds. With any of them the layers count as run by PyTorch (ModelShape::autograd).
std::map<std::string_view, std::size_t> autogradColumnsOf(const TextLine& header)
{
    std::map<std::string_view, std::size_t> columns;
    AutogradBytes all;
    forEachAutogradField(all, [&](std::string_view name, Bytes) {
        for (std::size_t at = 0; at < header.cells.size(); ++at)
            if (titleOf(header.cells[at].text).name == name)
                columns[name] = at;
    });
    return columns;
}

} // namespace

bool isModelFile(std::string_view presetOrFile)
{
    return presetOrFile.find('/') != std::string_view::npos || presetOrFile.ends_with(".json")
           || presetOrFile.ends_with(".csv");
}

bool isModelText(std::string_view text, std::string_view name)
{
    const std::string_view start = text.substr(0, 1 << 16);
    const auto has = [&](std::string_view part) { return start.find(part) != std::string_view::npos; };
    if (name.ends_with(".csv"))
        return start.substr(0, start.find('\n')).find(columnNames[InputGrad]) != std::string_view::npos;
    if (!name.ends_with(".json") || has("\"pipewright\"") || has("\"schedule\"") || has("\"traceEvents\""))
        return false;
    return has("\"model_type\"") || has("\"layer_table\"") || has("\"hidden\"");
}

ModelFile loadModel(const std::string& presetOrFile)
{
    if (isModelFile(presetOrFile))
        return readModelFile(readTextFile(presetOrFile), presetOrFile);
    try {
        return {PresetLibrary().model(presetOrFile), "preset " + presetOrFile, {}};
    } catch (const Error& error) {
        Diagnostics found = error.diagnostics();
        if (pathExists(presetOrFile))
            found.push_back({Severity::Note, presetOrFile, "a file of this name exists, but its ending is unknown",
                             "name it .json (a configuration or a model file) or .csv (a table of layers)"});
        throw Error(std::move(found));
    }
}

ModelFile readModelFile(std::string_view text, const std::string& name)
{
    if (name.ends_with(".csv"))
        return readLayerTable(text, name);
    const LocatedJson document = parseLocatedJson(text, name);
    if (!document.value.is_object())
        throw Error(name, "a model is a JSON object", "give a config.json, or a model file as in resources/models");
    if (document.value.contains("schedule"))
        throw Error(name, "this is a design, not a model", "open it, or give it to --costs-from");
    if (!isHuggingFaceConfig(document.value))
        return readOwnFile(document, name);
    ModelFile file = readHuggingFaceConfig(document, stemOf(name));
    file.source = fmt::format("{}: {}", fileName(name), file.source);
    return file;
}

ModelFile readLayerTable(std::string_view text, const std::string& name)
{
    CellFaults faults(name);
    std::vector<TextLine> lines = splitCommas(text);
    std::erase_if(lines, [](const TextLine& line) { return line.cells.size() == 1 && line.cells[0].text.empty(); });
    if (lines.empty())
        throw Error(name, "the table is empty",
                    fmt::format("its header is {}", joined(std::span(columnNames).first(requiredColumns), ",")));
    const auto columns = columnsOf(lines.front(), faults);
    const auto autogradColumns = autogradColumnsOf(lines.front());
    faults.raise();
    std::vector<KnownLayer> table;
    for (std::size_t i = 1; i < lines.size(); ++i) {
        const TextLine& line = lines[i];
        if (line.cells.size() != lines.front().cells.size()) {
            faults.add(line.number,
                       fmt::format("{} cells under {} columns", line.cells.size(), lines.front().cells.size()),
                       "give every column a value");
            continue;
        }
        const auto cell = [&](Column column) -> const TextCell& { return line.cells[*columns[column]]; };
        const auto parsed = [&](const TextCell& from, std::string_view name, auto parse) -> std::int64_t {
            const std::string_view unit = titleOf(lines.front().cells[from.number - 1].text).unit;
            try {
                if (!unit.empty() && isPlainNumber(from.text))
                    return parse(std::string(from.text) + std::string(unit), name);
                return parse(from.text, name);
            } catch (const Error& error) {
                std::string hint = error.diagnostics().front().hint;
                if (unit.empty() && isPlainNumber(from.text))
                    hint += fmt::format("; or give the unit once, in the header: {} [{}]", name,
                                        parse == &parseDuration ? "ms" : "MiB");
                faults.add(line.number, from, error.diagnostics().front().what, hint);
                return 0;
            }
        };
        const auto value = [&](Column column, auto parse) { return parsed(cell(column), columnNames[column], parse); };
        KnownLayer& layer = table.emplace_back();
        layer.name = std::string(cell(Name).text);
        layer.forward = value(Forward, parseDuration);
        layer.inputGrad = value(InputGrad, parseDuration);
        layer.weightGrad = value(WeightGrad, parseDuration);
        layer.backward = columns[Backward] ? value(Backward, parseDuration) : layer.inputGrad + layer.weightGrad;
        layer.saved = value(Saved, parseSize);
        layer.parameters = value(Parameters, parseSize);
        layer.output = value(Output, parseSize);
        layer.frozen = columns[Frozen] ? value(Frozen, parseSize) : 0;
        layer.shared = columns[Shared] ? value(Shared, parseSize) : 0;
        layer.sharedWith = columns[SharedWith] ? std::string(cell(SharedWith).text) : std::string();
        layer.savedForWeightGrad = columns[SavedForWeightGrad] ? value(SavedForWeightGrad, parseSize) : layer.saved;
        forEachAutogradField(layer.autograd, [&](std::string_view column, Bytes& bytes) {
            if (const auto found = autogradColumns.find(column); found != autogradColumns.end())
                bytes = parsed(line.cells[found->second], column, parseSize);
        });
    }
    faults.raise();
    ModelFile file;
    file.shape = tableShape(stemOf(name), std::move(table));
    file.shape.autograd = !autogradColumns.empty();
    if (Diagnostics wrong = checkShape(file.shape); !wrong.empty()) {
        for (Diagnostic& each : wrong)
            each.where = name + ": " + each.where;
        throw Error(std::move(wrong));
    }
    file.source = fmt::format("{}: a table of {} layers, parameters of 4 bytes", fileName(name), file.shape.layers);
    return file;
}

} // namespace pipewright
