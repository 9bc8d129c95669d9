// SPDX-License-Identifier: GPL-3.0-or-later
// Reads and unrolls a building block; its faults are mapped back to the lines of passes. O(passes × microbatches).
#include "core/files/buildingblockreader.h"

#include "core/files/locateddesign.h"
#include "core/json/locatedjson.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>

namespace pipewright {

namespace {

using Json = nlohmann::ordered_json;

constexpr int latest = 1'000'000; // larger offsets count as typing errors

/// JSON pointer of a place named by checkBlock() ("I3.m", "device 0, F0.m and W0.m", "microbatches", "block"); of two
/// colliding passes the second.
std::string pointerTo(const std::string& where, const std::string& block)
{
    if (where == "microbatches")
        return block + "/microbatches";
    const std::size_t last = where.rfind(' ');
    std::string pass = where.substr(last == std::string::npos ? 0 : last + 1);
    const bool isPass =
        pass.ends_with(".m") && pass.size() > 3
        && std::any_of(std::begin(passKeys), std::end(passKeys),
                       [&](const PassKey& known) { return known.key[0] == pass[0]; })
        && std::all_of(pass.begin() + 1, pass.end() - 2, [](unsigned char c) { return std::isdigit(c) != 0; });
    pass.resize(isPass ? pass.size() - 2 : pass.size());
    return isPass ? fmt::format("{}/{}/{}", block, pass[0], pass.substr(1)) : block;
}

class BlockReader {
public:
    BlockReader(const LocatedJson& document, const Json& value, const std::string& pointer, Diagnostics& diagnostics)
        : m_document(document), m_pointer(pointer), m_diagnostics(diagnostics), m_value(value)
    {
    }

    BlockReading run()
    {
        const std::size_t before = m_diagnostics.size();
        BlockReading result;
        RepeatedBlock& repeated = result.repeated;
        BuildingBlock& block = repeated.block;
        ObjectReader reader(m_document, m_value, m_pointer, m_diagnostics);
        reader.read("name", block.name);
        reader.read("interval", block.interval, 1, latest, Presence::Required);
        reader.read("microbatches", repeated.microbatches, 1, maxMicrobatches, Presence::Required);
        if (const Json* placement = reader.array("placement", Presence::Required))
            block.deviceOfStage =
                readIntegers(m_document, *placement, m_pointer + "/placement", 0, maxDevices - 1, m_diagnostics);
        block.backward = BackwardStyle::Full;
        reader.readName<BackwardStyle>("backward", block.backward,
                                       {{"full", BackwardStyle::Full}, {"split", BackwardStyle::Split}});
        reader.read("reorder", repeated.reorder);
        readPasses(reader, block);
        reader.finish();
        result.schedule.microbatches = repeated.microbatches; // the rest of the file is checked against it
        result.schedule.deviceOfStage = block.deviceOfStage;
        result.schedule.backward = block.backward;
        if (m_diagnostics.size() != before)
            return result;
        try {
            result.schedule = unroll(repeated);
        } catch (const Error& error) {
            for (const Diagnostic& wrong : error.diagnostics())
                if (wrong.severity == Severity::Error)
                    addBounded(m_diagnostics, {Severity::Error, m_document.placeOf(pointerTo(wrong.where, m_pointer)),
                                               wrong.where == "block" ? "building block: " + wrong.what
                                                                      : wrong.where + ": " + wrong.what,
                                               wrong.hint});
        }
        return result;
    }

private:
    void readPasses(ObjectReader& reader, BuildingBlock& block)
    {
        const bool split = block.backward == BackwardStyle::Split;
        const Json* lengths = split ? nullptr : reader.object("lengths");
        std::optional<ObjectReader> lengthReader;
        if (lengths)
            lengthReader.emplace(m_document, *lengths, m_pointer + "/lengths", m_diagnostics);
        for (const PassKey& key : passKeys) {
            if (!isNeeded(key.op, block.backward))
                continue;
            const std::vector<int> starts =
                perStage(reader, key.key, key.op == Op::W ? Presence::Optional : Presence::Required, m_pointer, 0);
            std::vector<int> length;
            if (lengthReader)
                length = perStage(*lengthReader, key.key, Presence::Optional, m_pointer + "/lengths", 1);
            for (std::size_t stage = 0; stage < std::min(starts.size(), block.deviceOfStage.size()); ++stage)
                block.passes.push_back({key.op, static_cast<int>(stage), starts[stage],
                                        stage < length.size() ? length[stage] : key.length});
            checkCount(starts, key.key, m_pointer, block);
            checkCount(length, key.key, m_pointer + "/lengths", block);
        }
        if (lengthReader)
            lengthReader->finish();
    }

    std::vector<int> perStage(ObjectReader& reader, const char* key, Presence presence, const std::string& pointer,
                              int low)
    {
        const Json* list = reader.array(key, presence);
        return list ? readIntegers(m_document, *list, fmt::format("{}/{}", pointer, key), low, latest, m_diagnostics)
                    : std::vector<int>();
    }

    void checkCount(const std::vector<int>& numbers, const char* key, const std::string& pointer,
                    const BuildingBlock& block)
    {
        if (!numbers.empty() && numbers.size() != block.deviceOfStage.size())
            addBounded(m_diagnostics,
                       {Severity::Error, m_document.placeOf(fmt::format("{}/{}", pointer, key)),
                        fmt::format("\"{}\" has {} numbers for {} stages", key, numbers.size(), block.stages()),
                        "give one number per stage of \"placement\""});
    }

    const LocatedJson& m_document;
    const std::string& m_pointer;
    Diagnostics& m_diagnostics;
    const Json& m_value;
};

} // namespace

BlockReading readBuildingBlock(const LocatedJson& document, const Json& value, const std::string& pointer,
                               Diagnostics& diagnostics)
{
    return BlockReader(document, value, pointer, diagnostics).run();
}

std::vector<int> readIntegers(const LocatedJson& document, const Json& list, const std::string& pointer, int low,
                              int high, Diagnostics& diagnostics)
{
    std::vector<int> numbers;
    numbers.reserve(list.size());
    for (std::size_t i = 0; i < list.size(); ++i) {
        const Json& element = list[i];
        const bool whole =
            element.is_number_integer()
            && (!element.is_number_unsigned() || element.get<std::uint64_t>() <= std::uint64_t(INT64_MAX));
        const std::int64_t number = whole ? element.get<std::int64_t>() : 0;
        if (!whole || number < low || number > high)
            addBounded(diagnostics, {Severity::Error, document.placeOf(fmt::format("{}/{}", pointer, i)),
                                     whole ? fmt::format("{} is out of range", number)
                                           : fmt::format("element {} is not a whole number that fits", i),
                                     fmt::format("between {} and {}", low, high)});
        numbers.push_back(static_cast<int>(std::clamp<std::int64_t>(number, low, high)));
    }
    return numbers;
}

} // namespace pipewright
