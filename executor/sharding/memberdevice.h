// SPDX-License-Identifier: GPL-3.0-or-later
// A device of a shared stage: its memory, its maths and the stream that orders both. Tensors are in its memory and are
// never changed once others may see them, so copying a Tensor copies no data. Memory comes from blocks that are reused:
// after the first step nothing is allocated. One thread uses a member at a time.
#pragma once

#include "executor/runtime/backend.h"
#include "executor/sharding/hosttensor.h"

#include <initializer_list>

namespace pipewright::sharding {

/// Another device has failed, or this one's work was interrupted.
class Stopped {};

/// A dense tensor in the memory of some device; row-major, empty when a dimension is 0.
struct Tensor {
    Shape shape;
    std::span<float> data;          ///< addresses of the device
    std::shared_ptr<void> memory{}; ///< null: the tensor does not own its memory
    std::size_t elements() const { return data.size(); }
};

inline Region regionOf(std::span<float> values)
{
    return {reinterpret_cast<std::byte*>(values.data()), static_cast<Bytes>(values.size_bytes())};
}

/// Number of elements, in the type that the kernels take.
inline std::int64_t count(const Tensor& tensor)
{
    return static_cast<std::int64_t>(tensor.elements());
}

/// Memory for a member's tensors in place of the member's own blocks: a part of a Program's buffer.
class TensorMemory {
public:
    virtual ~TensorMemory() = default;
    /// Device memory, aligned to 64 bytes. Throws Error when there is not enough.
    virtual std::byte* take(std::size_t bytes) = 0;
    virtual void giveBack(std::byte* data, std::size_t bytes) = 0;
};

class MemberDevice {
public:
    explicit MemberDevice(Device& device);
    ~MemberDevice(); ///< waits for the issued work, also after an interrupt: that work uses this memory
    MemberDevice(const MemberDevice&) = delete;
    MemberDevice& operator=(const MemberDevice&) = delete;

    Device& device() { return m_device; }
    Stream& stream() { return *m_currentStream; }
    const kernels::Operations& operations() const { return *m_currentOperations; }

    /// From now on uses the stream and the operations of a pipeline's device in place of the member's own, which are
    /// for work between steps.
    void workOn(Stream& stream, const kernels::Operations& operations)
    {
        m_currentStream = &stream;
        m_currentOperations = &operations;
    }
    void workOnOwn() { workOn(*m_stream, *m_operations); }
    /// From any thread: ends all waits for the member's own stream.
    void interrupt() { m_stream->interrupt(); }

    /// From now on makes tensors in this memory; null: in the member's own blocks again. Must outlive these tensors.
    void useMemory(TensorMemory* memory) { m_given = memory; }

    Tensor make(Shape shape); ///< contents undefined
    Tensor zeros(Shape shape);
    Tensor put(const HostTensor& tensor);
    HostTensor get(const Tensor& tensor); ///< waits for it

    /// An operation of kernels/tensors.h; a null input is not used.
    void call(kernels::TensorOperation operation, std::initializer_list<std::int64_t> sizes,
              std::initializer_list<const float*> inputs, float* out, float number = 0);
    /// Waits until all issued work is done. Throws Stopped.
    void synchronize();

private:
    class Pool;
    std::shared_ptr<void> memory(std::size_t bytes, std::byte*& data);

    Device& m_device;
    std::unique_ptr<Stream> m_stream;
    std::unique_ptr<kernels::Operations> m_operations;
    Stream* m_currentStream;
    const kernels::Operations* m_currentOperations;
    std::shared_ptr<Pool> m_pool;
    TensorMemory* m_given = nullptr;
};

/// Elements [first, first + length) along a dimension.
Tensor cut(MemberDevice& member, const Tensor& whole, int dim, std::int64_t first, std::int64_t length);
/// Writes a piece to where it was cut from.
void paste(MemberDevice& member, Tensor& whole, const Tensor& piece, int dim, std::int64_t first);
/// Pieces of which the lengths along `dim` may differ, and be 0.
Tensor joined(MemberDevice& member, std::span<const Tensor* const> pieces, int dim);
/// to += from; shapes are equal.
void accumulate(MemberDevice& member, Tensor& to, const Tensor& from);

} // namespace pipewright::sharding
