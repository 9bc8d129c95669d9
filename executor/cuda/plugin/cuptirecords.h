// SPDX-License-Identifier: GPL-3.0-or-later
// From CUPTI's raw buffers to plain activities. Records come grouped by thread, in no order of time, and what a
// kernel belongs to comes in a record of its own that may lie in a later buffer: so buffers are kept until they are
// asked for, and then read twice, first for what belongs together, then for what happened. Nothing here calls CUPTI,
// so it is tested with buffers made by hand.
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

/// The name of a call, as cuptiGetCallbackName gives it; it stays.
using NameOfCall = CUptiResult (*)(CUpti_CallbackDomain domain, uint32_t call, const char** name);

/// How what CUPTI allocated for a record's reader is given back.
using Release = void (*)(void* data);

class CuptiRecords {
public:
    explicit CuptiRecords(NextRecord next, NameOfCall nameOfCall = nullptr, Release release = std::free)
        : m_next(next), m_nameOfCall(nameOfCall), m_release(release)
    {
    }

    struct Buffer {
        uint8_t* data = nullptr;
        size_t bytes = 0; ///< that are valid
    };
    /// Appends what happened in the buffers, by start; of the host's calls those that launched something. Labels of
    /// launches whose kernels are not there yet are kept for the next call.
    void read(const std::vector<Buffer>& buffers, std::vector<PipewrightGpuActivity>& activities);

    /// So far: times that cannot be, as a GPU gives when its own buffers overflow.
    int64_t malformed() const { return m_malformed; }
    /// So far: records of which CUPTI has no time (CUPTI_TIMESTAMP_UNKNOWN). They are not lost by anyone.
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
    [[maybe_unused]] Release m_release;                            ///< headers of CUPTI 12 have nothing that it frees
    std::unordered_set<uint32_t> m_launched;                       ///< correlations of what ran on a GPU, of this call
    std::unordered_map<uint32_t, int64_t> m_blocks, m_olderBlocks; ///< per correlation: of this call and the one before
    std::unordered_map<uint32_t, int32_t> m_contextGpus;           ///< per context: its GPU
    std::map<std::pair<uint32_t, uint32_t>, int32_t> m_streams;    ///< per context and stream there
    std::set<std::pair<int32_t, int32_t>> m_taken;                 ///< GPU and stream of these
    int64_t m_malformed = 0, m_untimed = 0;
};

} // namespace pipewright::plugin
