// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/presets/huggingfacerotary.h"

#include "core/json/objectreader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace pipewright {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t anyLength = std::int64_t(1) << 53; // checkShape() knows the real limits

constexpr std::string_view full = "full_attention", windowed = "sliding_attention";

constexpr std::string_view knownKeys[] = {
    "rope_theta",      "rope_type",        "type",      "factor",    "original_max_position_embeddings",
    "low_freq_factor", "high_freq_factor", "beta_slow", "beta_fast", "mscale",
    "mscale_all_dim",  "attention_factor", "truncate"};

class RotaryReader {
public:
    RotaryReader(const LocatedJson& config, const HuggingFaceType& type, Diagnostics& faults, Diagnostics& notes)
        : m_config(config), m_type(type), m_reader(config, config.value, "", faults), m_faults(faults), m_notes(notes)
    {
    }

    RotaryPositions read()
    {
        RotaryPositions result;
        m_reader.readRate("rope_theta", result.all.base);
        if (m_config.value.contains("rope_local_base_freq"))
            m_reader.readRate("rope_local_base_freq", result.windowedBase);
        const char* key = isGiven("rope_scaling") ? "rope_scaling" : "rope_parameters"; // the library's preference
        if (!isGiven(key))
            return result;
        const std::string pointer = m_reader.pointerTo(key);
        const Json* object = m_reader.object(key);
        if (object == nullptr)
            return result;
        if (!object->contains(full) && !object->contains(windowed)) {
            result.all = readObject(*object, pointer, result.all.base);
            return result;
        }
        for (const auto& [name, value] : sortedMembers(*object))
            if (name != full && name != windowed)
                leftOut(fmt::format("{}/{}", pointer, name), name);
        if (object->contains(full))
            result.all = readObject((*object)[std::string(full)], fmt::format("{}/{}", pointer, full), result.all.base);
        if (object->contains(windowed)) {
            const std::string at = fmt::format("{}/{}", pointer, windowed);
            const double usual = result.windowedBase > 0 ? result.windowedBase : result.all.base;
            const Rotary local = readObject((*object)[std::string(windowed)], at, usual);
            if (local.scaling != Rotary::Scaling::None)
                note(at, "positions in layers with a window are not scaled here, and their scaling is left out");
            result.windowedBase = local.base;
        }
        return result;
    }

private:
    bool isGiven(const char* key) const
    {
        const auto found = m_config.value.find(key);
        return found != m_config.value.end() && !found->is_null() && !(found->is_object() && found->empty());
    }
    void note(const std::string& pointer, std::string what)
    {
        m_notes.push_back({Severity::Note, m_config.placeOf(pointer), std::move(what), {}});
    }
    void leftOut(const std::string& pointer, const std::string& key)
    {
        note(pointer, fmt::format("\"{}\" is not known for rotary positions and is left out", key));
    }

    /// Without nulls, which say nothing. Notes keys that are not known.
    Json checkedKeys(const Json& given, const std::string& pointer)
    {
        if (!given.is_object())
            return given; // which is a fault
        Json object = Json::object();
        for (const auto& [key, value] : sortedMembers(given)) {
            if (!value->is_null())
                object[key] = *value;
            const bool whole = key == "partial_rotary_factor" && *value == 1;
            if (!whole && std::find(std::begin(knownKeys), std::end(knownKeys), key) == std::end(knownKeys))
                leftOut(fmt::format("{}/{}", pointer, key), key);
        }
        return object;
    }

    Rotary readObject(const Json& given, const std::string& pointer, double base)
    {
        Rotary rotary{.base = base};
        const Json object = checkedKeys(given, pointer);
        ObjectReader reader(m_config, object, pointer, m_faults);
        reader.readRate("rope_theta", rotary.base);
        std::string type = "default";
        reader.read(object.contains("rope_type") ? "rope_type" : "type", type);
        reader.readRate("factor", rotary.factor);
        if (type == "llama3" || type == "yarn") // the library's default
            m_reader.read("max_position_embeddings", rotary.original, 1, anyLength);
        reader.read("original_max_position_embeddings", rotary.original, 1, anyLength);
        if (type == "linear") {
            rotary.scaling = Rotary::Scaling::Linear;
        } else if (type == "llama3") {
            rotary.scaling = Rotary::Scaling::Llama3;
            reader.readRate("low_freq_factor", rotary.low, Presence::Required);
            reader.readRate("high_freq_factor", rotary.high, Presence::Required);
        } else if (type == "yarn") {
            rotary.scaling = Rotary::Scaling::Yarn;
            rotary.high = 32;
            reader.readRate("beta_slow", rotary.low);
            reader.readRate("beta_fast", rotary.high);
            readYarnFactor(reader, object, rotary);
            bool wholePairs = true;
            reader.read("truncate", wholePairs);
            if (!wholePairs)
                note(pointer, "the blend of stretched and plain frequencies begins and ends at whole pairs here, and "
                              "\"truncate\": false is left out: a model that is trained here differs in the pairs "
                              "there");
        } else if (type != "default") {
            note(pointer, fmt::format("rotary positions are scaled by {}, which is left out: a model that is trained "
                                      "here has them unscaled",
                                      inQuotes(type)));
        }
        return rotary.scaling == Rotary::Scaling::None ? Rotary{.base = rotary.base} : rotary;
    }

    /// The factor on the attention scores, as the library computes it (arXiv 2309.00071, section 3.4).
    void readYarnFactor(ObjectReader& reader, const Json& object, Rotary& rotary)
    {
        const auto stretched = [&](double share) {
            return rotary.factor > 1 ? 0.1 * share * std::log(rotary.factor) + 1 : 1.0;
        };
        double share = 1, ofAll = 0;
        reader.readRate("mscale", share);
        reader.readRate("mscale_all_dim", ofAll);
        const bool both = object.contains("mscale") && object.contains("mscale_all_dim");
        rotary.attentionFactor = both ? stretched(share) / stretched(ofAll) : stretched(1);
        if (m_type.type == "deepseek_v3" && ofAll > 0)
            rotary.attentionFactor *= stretched(ofAll);
        reader.readRate("attention_factor", rotary.attentionFactor);
    }

    const LocatedJson& m_config;
    const HuggingFaceType& m_type;
    ObjectReader m_reader;
    Diagnostics& m_faults;
    Diagnostics& m_notes;
};

} // namespace

RotaryPositions readRotaryPositions(const LocatedJson& config, const HuggingFaceType& type, Diagnostics& faults,
                                    Diagnostics& notes)
{
    return RotaryReader(config, type, faults, notes).read();
}

} // namespace pipewright
