// SPDX-License-Identifier: GPL-3.0-or-later
// Decodes the binary payload of NCCL's NVTX ranges: message size, peer, communicator. The export's table
// NVTX_PAYLOAD_SCHEMA_ENTRIES describes the fields by name. A header of 32 bytes precedes them in one of two layouts;
// schema number and payload size are at the same offset in both.
#pragma once

#include <SQLiteCpp/Database.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace pipewright {

struct NcclCall {
    std::optional<std::uint64_t> communicator;
    std::optional<std::int64_t> bytes;
    std::optional<std::int32_t> peer, rank, ranks;
};

class NcclPayloads {
public:
    /// `nameOf` resolves numbers of StringIds.
    NcclPayloads(SQLite::Database& database, const std::function<std::string(std::int64_t)>& nameOf);
    /// Nothing when the payload is too short or its schema is unknown.
    std::optional<NcclCall> decode(const std::string& payload) const;

private:
    enum class Field { Communicator, Bytes, Peer, Rank, Ranks };
    struct Entry {
        Field field;
        std::size_t offset = 0;
    };
    std::multimap<std::uint32_t, Entry> m_entries; ///< by schema
};

} // namespace pipewright
