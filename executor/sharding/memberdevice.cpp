// SPDX-License-Identifier: GPL-3.0-or-later
// Blocks of memory by size, reused after their last tensor is gone; cut, paste and joined copy rows of strided pieces.
// O(bytes copied).
#include "executor/sharding/memberdevice.h"

#include "core/base/diagnostic.h"

#include <algorithm>
#include <bit>
#include <map>
#include <mutex>

namespace pipewright::sharding {

using kernels::TensorOperation;

namespace {

constexpr std::size_t smallestBlock = 256;

std::int64_t before(const Shape& shape, int dim)
{
    return static_cast<std::int64_t>(product(shape.begin(), shape.begin() + dim));
}

std::int64_t after(const Shape& shape, int dim)
{
    return static_cast<std::int64_t>(product(shape.begin() + dim + 1, shape.end()));
}

std::int64_t lengthOf(const Shape& shape, int dim)
{
    return shape[dim];
}

} // namespace

/// Blocks with sizes of powers of two. A returned block is reused on the same stream, so after the work that still
/// reads it.
class MemberDevice::Pool {
public:
    explicit Pool(Device& device) : m_device(device) {}

    std::unique_ptr<Allocation> take(std::size_t bytes)
    {
        const std::size_t size = std::bit_ceil(std::max(bytes, smallestBlock));
        {
            const std::lock_guard lock(m_mutex);
            if (auto& free = m_free[size]; !free.empty()) {
                auto block = std::move(free.back());
                free.pop_back();
                return block;
            }
        }
        return m_device.allocate(static_cast<Bytes>(size));
    }
    void giveBack(std::unique_ptr<Allocation> block)
    {
        const std::lock_guard lock(m_mutex);
        m_free[block->region().bytes].push_back(std::move(block));
    }

private:
    Device& m_device;
    std::mutex m_mutex; ///< the caller of the run drops results on its own thread
    std::map<std::size_t, std::vector<std::unique_ptr<Allocation>>> m_free;
};

MemberDevice::MemberDevice(Device& device)
    : m_device(device), m_stream(device.createStream()), m_operations(device.createOperations(*m_stream)),
      m_currentStream(m_stream.get()), m_currentOperations(m_operations.get()), m_pool(std::make_shared<Pool>(device))
{
}

MemberDevice::~MemberDevice()
{
    try {
        m_stream->resume();
        m_stream->synchronize();
    } catch (const Error&) { // a failed device runs nothing
    }
}

std::shared_ptr<void> MemberDevice::memory(std::size_t bytes, std::byte*& data)
{
    if (m_given) {
        data = m_given->take(bytes);
        return {data, [given = m_given, bytes](void* at) { given->giveBack(static_cast<std::byte*>(at), bytes); }};
    }
    std::unique_ptr<Allocation> block = m_pool->take(bytes);
    data = block->region().data;
    return {data,
            [pool = m_pool, kept = block.release()](void*) { pool->giveBack(std::unique_ptr<Allocation>(kept)); }};
}

Tensor MemberDevice::make(Shape shape)
{
    const std::size_t elements = product(shape.begin(), shape.end());
    Tensor tensor{std::move(shape), {}, {}};
    if (elements > 0) {
        std::byte* data = nullptr;
        tensor.memory = memory(elements * sizeof(float), data);
        tensor.data = {reinterpret_cast<float*>(data), elements};
    }
    return tensor;
}

Tensor MemberDevice::zeros(Shape shape)
{
    Tensor tensor = make(std::move(shape));
    if (tensor.elements() > 0)
        m_currentOperations->run(kernels::Fill{tensor.data, 0});
    return tensor;
}

Tensor MemberDevice::put(const HostTensor& tensor)
{
    Tensor here = make(tensor.shape);
    m_device.write(stream(), regionOf(here.data), tensor.data.data());
    return here;
}

HostTensor MemberDevice::get(const Tensor& tensor)
{
    HostTensor there(tensor.shape);
    synchronize();
    m_device.read(stream(), regionOf(tensor.data), there.data.data());
    return there;
}

void MemberDevice::call(TensorOperation operation, std::initializer_list<std::int64_t> sizes,
                        std::initializer_list<const float*> inputs, float* out, float number)
{
    kernels::TensorCall what{};
    what.operation = operation;
    std::copy(sizes.begin(), sizes.end(), what.size);
    std::copy(inputs.begin(), inputs.end(), what.in);
    what.out = out;
    what.number = number;
    m_currentOperations->run(what);
}

void MemberDevice::synchronize()
{
    if (!stream().synchronize())
        throw Stopped();
}

Tensor cut(MemberDevice& member, const Tensor& whole, int dim, std::int64_t first, std::int64_t length)
{
    if (first == 0 && length == lengthOf(whole.shape, dim))
        return whole;
    Shape shape = whole.shape;
    shape[dim] = length;
    Tensor piece = member.make(std::move(shape));
    const std::int64_t inner = after(whole.shape, dim);
    if (piece.elements() > 0)
        member.call(TensorOperation::CopyBlocks,
                    {before(whole.shape, dim), length * inner, lengthOf(whole.shape, dim) * inner, length * inner},
                    {whole.data.data() + first * inner}, piece.data.data());
    return piece;
}

void paste(MemberDevice& member, Tensor& whole, const Tensor& piece, int dim, std::int64_t first)
{
    const std::int64_t inner = after(whole.shape, dim), run = lengthOf(piece.shape, dim) * inner;
    if (piece.elements() > 0)
        member.call(TensorOperation::CopyBlocks,
                    {before(whole.shape, dim), run, run, lengthOf(whole.shape, dim) * inner}, {piece.data.data()},
                    whole.data.data() + first * inner);
}

Tensor joined(MemberDevice& member, std::span<const Tensor* const> pieces, int dim)
{
    Shape shape = pieces.front()->shape;
    auto& length = shape[dim];
    length = 0;
    for (const Tensor* piece : pieces)
        length += lengthOf(piece->shape, dim);
    Tensor whole = member.make(std::move(shape));
    std::int64_t first = 0;
    for (const Tensor* piece : pieces) {
        paste(member, whole, *piece, dim, first);
        first += lengthOf(piece->shape, dim);
    }
    return whole;
}

void accumulate(MemberDevice& member, Tensor& to, const Tensor& from)
{
    if (to.elements() == 0)
        return;
    if (to.memory.use_count() != 1) { // others may see it
        Tensor sum = member.make(to.shape);
        member.call(TensorOperation::Add, {count(to)}, {to.data.data(), from.data.data()}, sum.data.data());
        to = std::move(sum);
        return;
    }
    member.operations().run(kernels::Add{to.data, from.data});
}

} // namespace pipewright::sharding
