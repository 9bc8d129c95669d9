// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/cuda/cudaoperations.h"

#include "core/base/diagnostic.h"

namespace pipewright {

namespace {

class CudaOperations final : public kernels::Operations {
public:
    CudaOperations(const CudaStream& stream, const std::string& cublasLt, bool bfloat16, Region workspace)
        : m_gpu(stream.gpu()), m_table(*m_gpu.table)
    {
        m_gpu.check(m_table.createMaths(m_gpu.index, stream.handle(), cublasLt.empty() ? nullptr : cublasLt.c_str(),
                                        bfloat16, workspace.data, &m_maths),
                    "prepare its maths");
    }
    ~CudaOperations() override { m_table.destroyMaths(m_maths); }
    CudaOperations(const CudaOperations&) = delete;
    CudaOperations& operator=(const CudaOperations&) = delete;

    std::size_t attentionSaved(const kernels::AttentionShape& shape) const override
    {
        return shape.tokens() * static_cast<std::size_t>(shape.heads);
    }

protected:
    void issue(kernels::Operation operation, const void* call, std::size_t bytes) const override
    {
        m_gpu.check(
            m_table.compute(m_maths, static_cast<std::int32_t>(operation), call, static_cast<std::int64_t>(bytes)),
            "compute");
    }

private:
    CudaGpu m_gpu;
    const PipewrightCudaTable& m_table;
    void* m_maths = nullptr;
};

} // namespace

std::unique_ptr<kernels::Operations> createCudaOperations(const CudaStream& stream, const std::string& cublasLt,
                                                          bool bfloat16, Region workspace)
{
    return std::make_unique<CudaOperations>(stream, cublasLt, bfloat16, workspace);
}

} // namespace pipewright
