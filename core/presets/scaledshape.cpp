// SPDX-License-Identifier: GPL-3.0-or-later
// Changes fields of a model through its JSON form, so keys and values are those of a model file.
#include "core/presets/scaledshape.h"

#include "core/json/jsontext.h"
#include "core/json/locatedjson.h"
#include "core/model/transformer.h"
#include "core/presets/modeljson.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <sstream>

namespace pipewright {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* scaleOption = "--scale";

Json valueOfScale(const std::string& text)
{
    if (text == "on" || text == "true")
        return true;
    if (text == "off" || text == "false")
        return false;
    const Json number = Json::parse(text, nullptr, false);
    return number.is_number() ? number : Json(text);
}

std::string plainText(const Json& value)
{
    if (value.is_boolean())
        return value.get<bool>() ? "on" : "off";
    return value.is_string() ? value.get<std::string>() : jsonText(value);
}

} // namespace

ScaledShape scaledShape(const ModelShape& shape, const std::string& scale)
{
    if (shape.architecture == Architecture::Table)
        throw Error(scaleOption, "a table of layers has no dimensions to make smaller",
                    "use --synthetic with --time-scale and --memory-scale");
    LocatedJson document{shapeToJson(shape), scaleOption, {}};
    std::vector<std::string> keys;
    std::optional<FrameworkMemory> framework;
    std::istringstream parts(scale);
    for (std::string part; std::getline(parts, part, ',');) {
        const std::size_t equals = part.find('=');
        if (equals == std::string::npos || equals == 0 || equals + 1 == part.size())
            throw Error(scaleOption, fmt::format("\"{}\" is no field with a value", part),
                        "write keys of a model file, such as layers=8,vocabulary=32000");
        const std::string key = part.substr(0, equals);
        if (key == "name" || key == "architecture")
            throw Error(scaleOption, fmt::format("\"{}\" is no size of a model", key), "make a model file of your own");
        if (key == "framework") { // by its name, not by the properties that a model file lists
            framework = frameworkNamed(part.substr(equals + 1));
            if (!framework)
                throw Error(scaleOption, fmt::format("\"{}\" is no framework", part.substr(equals + 1)),
                            "use one of " + frameworkNames());
            continue;
        }
        keys.push_back(key);
        document.value[key] = valueOfScale(part.substr(equals + 1));
    }
    if (keys.empty() && !framework)
        throw Error(scaleOption, "nothing is to be scaled", "write keys of a model file, such as layers=8");
    Diagnostics faults;
    ObjectReader reader(document, document.value, "", faults);
    ScaledShape result{readShape(reader), {}};
    reader.finish();
    if (!faults.empty())
        throw Error(std::move(faults));
    if (framework) {
        if (*framework != shape.framework)
            result.fields.push_back(
                {"framework", std::string(nameOf(shape.framework)), std::string(nameOf(*framework))});
        result.shape.framework = *framework;
    }
    if (Diagnostics wrong = checkShape(result.shape); hasErrors(wrong))
        throw Error(std::move(wrong));
    // A field that the JSON leaves out has its default value, which is reported "as usual".
    const Json before = shapeToJson(shape), after = shapeToJson(result.shape);
    for (const std::string& key : keys) {
        const auto said = [&](const Json& of) {
            return of.contains(key) ? plainText(of[key]) : std::string("as usual");
        };
        if (said(before) != said(after))
            result.fields.push_back({key, said(before), said(after)});
    }
    return result;
}

} // namespace pipewright
