// SPDX-License-Identifier: GPL-3.0-or-later
// Converts CUPTI's raw buffers to plain activities. Records come grouped by thread and unordered in time, and the block
// of a kernel comes in a separate record that may be in a later buffer. So buffers are kept until they are requested
// and then read twice: first for correlations, then for activities. Nothing here calls CUPTI, so it is tested with
// handmade buffers.
#pragma once

#include "executor/cuda/table.h"

#include <cstdlib>
#include <cupti.h>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace pipewright::plugin {

/// The next record of a buffer, as cuptiActivityGetNextRecord gives it; `record` null at first.
using NextRecord = CUptiResult (*)(uint8_t* buffer, size_t bytes, CUpti_Activity** record);

/// The name of a call, as cuptiGetCallbackName gives it; it stays valid.
using NameOfCall = CUptiResult (*)(CUpti_CallbackDomain domain, uint32_t call, const char** name);

/// Frees memory that CUPTI allocated for the reader of a record.
using Release = void (*)(void* data);

class CuptiRecords {
public:
    explicit CuptiRecords(NextRecord next, NameOfCall nameOfCall = nullptr, Release release = std::free)
        : m_next(next), m_nameOfCall(nameOfCall), m_release(release)
    {
    }

    struct Buffer {
        uint8_t* data = nullptr;
        size_t bytes = 0; ///< valid bytes
    };
    /// Appends the buffers' activities, sorted by start; of the host's calls only those that launched something. Labels
    /// of launches whose kernel records have not arrived yet are kept for the next call.
    void read(const std::vector<Buffer>& buffers, std::vector<PipewrightGpuActivity>& activities);

    /// Number so far of records with impossible times, which a GPU gives when its own buffers overflow.
    int64_t malformed() const { return m_malformed; }
    /// Number so far of records without a time (CUPTI_TIMESTAMP_UNKNOWN). These do not count as lost.
    int64_t untimed() const { return m_untimed; }

private:
    template<typename Each>
    void forEach(const std::vector<Buffer>& buffers, Each each);
    void relate(const CUpti_Activity& record);
    template<typename Record>
    PipewrightGpuActivity onStream(const Record& record, int32_t kind, const char* name);
    int32_t streamOf(int32_t gpu, uint32_t context, uint32_t stream);
    void add(const CUpti_Activity& record, std::vector<PipewrightGpuActivity>& activities);

    NextRecord m_next;
    NameOfCall m_nameOfCall;
    [[maybe_unused]] Release m_release;                            ///< unused with headers of CUPTI 12
    std::unordered_set<uint32_t> m_launched;                       ///< correlations of GPU activities in this call
    std::unordered_map<uint32_t, int64_t> m_blocks, m_olderBlocks; ///< per correlation: of this call and the one before
    std::map<std::pair<uint32_t, uint32_t>, int32_t> m_streams;    ///< per context and stream there
    std::set<std::pair<int32_t, int32_t>> m_taken;                 ///< GPU and stream of these
    int64_t m_malformed = 0, m_untimed = 0;
};

} // namespace pipewright::plugin
