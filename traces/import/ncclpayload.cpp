// SPDX-License-Identifier: GPL-3.0-or-later
#include "traces/import/ncclpayload.h"

#include "traces/import/nsighttable.h"

#include <cstring>
#include <string_view>

namespace pipewright {

namespace {

constexpr std::size_t headerSize = 32, schemaAt = 8;

template<typename Value>
std::optional<Value> valueAt(const std::string& payload, std::size_t offset)
{
    if (offset + sizeof(Value) > payload.size())
        return std::nullopt;
    Value value{};
    std::memcpy(&value, payload.data() + offset, sizeof(Value)); // exports are little-endian
    return value;
}

} // namespace

NcclPayloads::NcclPayloads(SQLite::Database& database, const std::function<std::string(std::int64_t)>& nameOf)
{
    NsightTable table(database, "NVTX_PAYLOAD_SCHEMA_ENTRIES", {"schemaId", "name|nameId", "offset"});
    while (table.next()) {
        const auto schema = table.integer(0);
        const auto offset = table.integerOr(2, 0); // no offset: the first field
        std::string name = table.text(1).value_or("");
        if (const auto id = table.integer(1))
            name = nameOf(*id);
        if (!schema || offset < 0 || offset > 4096)
            continue;
        const auto add = [&](Field field) {
            m_entries.emplace(static_cast<std::uint32_t>(*schema), Entry{field, static_cast<std::size_t>(offset)});
        };
        if (name == "NCCL communicator ID")
            add(Field::Communicator);
        else if (name.starts_with("Message size"))
            add(Field::Bytes);
        else if (name == "Peer rank")
            add(Field::Peer);
        else if (name == "Rank")
            add(Field::Rank);
        else if (name == "No. of ranks")
            add(Field::Ranks);
    }
}

std::optional<NcclCall> NcclPayloads::decode(const std::string& payload) const
{
    const auto schema = valueAt<std::uint32_t>(payload, schemaAt);
    if (!schema || payload.size() <= headerSize)
        return std::nullopt;
    const auto [first, last] = m_entries.equal_range(*schema);
    if (first == last)
        return std::nullopt;
    NcclCall call;
    for (auto entry = first; entry != last; ++entry) {
        const std::size_t at = headerSize + entry->second.offset;
        switch (entry->second.field) {
        case Field::Communicator: call.communicator = valueAt<std::uint64_t>(payload, at); break;
        case Field::Bytes: call.bytes = valueAt<std::int64_t>(payload, at); break;
        case Field::Peer: call.peer = valueAt<std::int32_t>(payload, at); break;
        case Field::Rank: call.rank = valueAt<std::int32_t>(payload, at); break;
        case Field::Ranks: call.ranks = valueAt<std::int32_t>(payload, at); break;
        }
    }
    return call;
}

} // namespace pipewright
