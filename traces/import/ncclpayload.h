// SPDX-License-Identifier: GPL-3.0-or-later
// What NCCL says of a call in the binary payload of its NVTX range: message size, peer, communicator. The layout of a
// payload stands in the export's tables NVTX_PAYLOAD_SCHEMA_ENTRIES; fields are found by their names there. In front of
// the fields stand 32 bytes of which two layouts are in use; schema number and payload size lie at the same place in
// both, and sizes are taken from the tables.
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
    /// Nothing when the payload is too short or of a schema that is not described.
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
