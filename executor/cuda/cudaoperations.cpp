// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/cuda/cudaoperations.h"

#include "core/base/diagnostic.h"

#include <utility>

namespace pipewright {

namespace {

class CudaOperations final : public kernels::Operations {
public:
    CudaOperations(const CudaStream& stream, const CudaMaths& maths, Region workspace, MathsNotes& notes)
        : m_gpu(stream.gpu()), m_table(*m_gpu.table), m_computesWithStored(maths.computesWithStored), m_notes(notes)
    {
        const PipewrightMathsSetup setup{maths.cublasLt.empty() ? nullptr : maths.cublasLt.c_str(),
                                         maths.cudnn.empty() ? nullptr : maths.cudnn.c_str(),
                                         maths.roundsFactors,
                                         inTable(maths.attention),
                                         workspace.data,
                                         workspace.bytes};
        m_gpu.check(m_table.createMaths(m_gpu.index, stream.handle(), &setup, &m_maths), "prepare its maths");
    }
    ~CudaOperations() override { m_table.destroyMaths(m_maths); }
    CudaOperations(const CudaOperations&) = delete;
    CudaOperations& operator=(const CudaOperations&) = delete;

    bool keepsProbabilities() const override { return false; }
    bool computesWithStored() const override { return m_computesWithStored; }

protected:
    void issue(kernels::Operation operation, const void* call, std::size_t bytes,
               kernels::StoredOperands stored) const override
    {
        m_gpu.check(m_table.compute(m_maths, static_cast<std::int32_t>(operation), call,
                                    static_cast<std::int64_t>(bytes), stored),
                    "compute");
        if (const char* const note = m_table.mathsNote(m_maths))
            m_notes.add("products", note);
        if (const char* const note = m_table.attentionNote(m_maths))
            m_notes.add("attention", note);
    }

private:
    CudaGpu m_gpu;
    const PipewrightCudaTable& m_table;
    bool m_computesWithStored;
    MathsNotes& m_notes;
    void* m_maths = nullptr;
};

} // namespace

void MathsNotes::add(const std::string& about, const std::string& note)
{
    const std::lock_guard lock(m_mutex);
    if (m_all.emplace(about, note).second)
        m_new.emplace(about, note);
}

Diagnostics MathsNotes::take()
{
    const std::lock_guard lock(m_mutex);
    Diagnostics notes;
    for (const auto& [about, note] : std::exchange(m_new, {}))
        notes.push_back({Severity::Note, about, note, {}});
    return notes;
}

std::unique_ptr<kernels::Operations> createCudaOperations(const CudaStream& stream, const CudaMaths& maths,
                                                          Region workspace, MathsNotes& notes)
{
    return std::make_unique<CudaOperations>(stream, maths, workspace, notes);
}

} // namespace pipewright
