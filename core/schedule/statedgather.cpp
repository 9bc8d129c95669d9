// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/schedule/statedgather.h"

#include <fmt/format.h>

#include <algorithm>

namespace pipewright {

namespace {

constexpr std::string_view joint = "UNSHARD@";

/// B and I read alike, so what is said stays valid when a backward is split.
Block key(Block reader)
{
    if (reader.op == Op::I)
        reader.op = Op::B;
    return reader;
}

auto placeOf(auto& gathers, const Block& reader)
{
    return std::lower_bound(
        gathers.begin(), gathers.end(), key(reader),
        [](const StatedGather& gather, const Block& sought) { return key(gather.reader) < sought; });
}

} // namespace

std::string gatherName(const Block& reader)
{
    return fmt::format("{}{}{}{}", reader.stage, joint, letter(reader.op), reader.microbatch);
}

std::optional<Block> parseGather(std::string_view text, const PipelineShape& shape)
{
    const std::size_t at = text.find(joint);
    if (at == std::string_view::npos || at == 0)
        return std::nullopt;
    const std::string_view operation = text.substr(at + joint.size());
    if (operation.size() < 2)
        return std::nullopt;
    std::optional<Block> reader =
        parseBlock(fmt::format("{}{}.{}", operation.front(), text.substr(0, at), operation.substr(1)));
    if (!reader || !isPass(reader->op) || reader->microbatch >= shape.microbatches || gatherName(*reader) != text)
        return std::nullopt;
    reader->replica = shape.replicaOf(reader->microbatch);
    return reader;
}

const StatedGather* statedGather(const Schedule& schedule, const Block& reader)
{
    const auto found = placeOf(schedule.gathers, reader);
    return found != schedule.gathers.end() && key(found->reader) == key(reader) ? &*found : nullptr;
}

void stateGather(Schedule& schedule, const StatedGather& gather)
{
    const auto place = placeOf(schedule.gathers, gather.reader);
    if (place != schedule.gathers.end() && key(place->reader) == key(gather.reader))
        *place = gather;
    else
        schedule.gathers.insert(place, gather);
}

bool freeGather(Schedule& schedule, const Block& reader)
{
    const auto place = placeOf(schedule.gathers, reader);
    if (place == schedule.gathers.end() || key(place->reader) != key(reader))
        return false;
    schedule.gathers.erase(place);
    return true;
}

} // namespace pipewright
