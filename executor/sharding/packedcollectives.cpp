// SPDX-License-Identifier: GPL-3.0-or-later
// Each collective packs its pieces into buffers of one size, or issues one broadcast, reduction, send or receive per
// piece, and pastes what arrives. Packing costs one more copy of the tensor on each device; what crosses the links is
// the communicator's collective of the packed size: the largest piece times the devices when padded, else the tensor.
#include "executor/sharding/packedcollectives.h"

#include <algorithm>
#include <utility>

namespace pipewright::sharding {

namespace {

std::size_t size(std::int64_t count)
{
    return static_cast<std::size_t>(count);
}

/// Elements of a tensor of this shape with a length of 1 along `dim`.
std::int64_t slice(const Shape& shape, int dim)
{
    std::int64_t elements = 1;
    for (std::size_t i = 0; i < shape.size(); ++i)
        elements *= i == size(dim) ? 1 : shape[i];
    return elements;
}

Shape withLength(Shape shape, int dim, std::int64_t length)
{
    shape[size(dim)] = length;
    return shape;
}

/// A packed piece in a larger buffer, as a tensor.
Tensor view(std::span<float> data, Shape shape)
{
    return {std::move(shape), data, {}};
}

/// The elements that one device has, or needs, of another's along a dimension.
struct Range {
    std::int64_t first = 0, length = 0;
};

Range overlap(const Cut& a, int i, const Cut& b, int j)
{
    const std::int64_t first = std::max(a.first(i), b.first(j)),
                       last = std::min(a.first(i) + a.length(i), b.first(j) + b.length(j));
    return {first, std::max<std::int64_t>(0, last - first)};
}

} // namespace

PackedCollectives::PackedCollectives(std::vector<MemberDevice*> members,
                                     std::vector<std::unique_ptr<Communicator>> communicators)
    : MemberCollectives(std::move(members)), m_communicators(std::move(communicators))
{
}

void PackedCollectives::abortCommunicators()
{
    for (const auto& communicator : m_communicators)
        if (communicator)
            communicator->abort();
}

void PackedCollectives::awaitCalls()
{
    for (const auto& communicator : m_communicators)
        if (communicator)
            communicator->awaitCalls();
}

Tensor PackedCollectives::allReduce(int device, const Tensor& part)
{
    MemberDevice& here = member(device);
    Tensor sum = here.make(part.shape);
    if (sum.elements() > 0)
        communicator(device).allReduce(here.stream(), part.data, sum.data);
    return sum;
}

Tensor PackedCollectives::allGather(int device, const Tensor& piece, const Cut& cut)
{
    MemberDevice& here = member(device);
    Communicator& group = communicator(device);
    const std::int64_t unit = slice(piece.shape, cut.dim), padded = cut.largest() * unit;
    Tensor whole = here.make(withLength(piece.shape, cut.dim, cut.whole()));
    if (whole.elements() == 0)
        return whole;
    // Every device's piece has its own place here, of exact or of padded size.
    const auto placeOf = [&](int d) { return cut.pieceByPiece ? cut.first(d) * unit : d * padded; };
    const Tensor all = here.make({cut.pieceByPiece ? cut.whole() * unit : devices() * padded});
    const auto packed = [&](int d) { return all.data.subspan(size(placeOf(d)), size(cut.length(d) * unit)); };
    if (cut.pieceByPiece) {
        if (piece.elements() > 0)
            here.operations().copy(std::span<const float>(piece.data), packed(device));
        group.beginGroup();
        for (int root = 0; root < devices(); ++root)
            if (cut.length(root) > 0)
                group.broadcast(here.stream(), packed(root), root);
        group.endGroup();
    } else {
        const Tensor mine = here.zeros({padded});
        if (piece.elements() > 0)
            here.operations().copy(std::span<const float>(piece.data), mine.data.first(piece.elements()));
        group.allGather(here.stream(), mine.data, all.data);
    }
    for (int d = 0; d < devices(); ++d)
        paste(here, whole, view(packed(d), withLength(piece.shape, cut.dim, cut.length(d))), cut.dim, cut.first(d));
    return whole;
}

Tensor PackedCollectives::reduceScatter(int device, const Tensor& part, const Cut& cut)
{
    MemberDevice& here = member(device);
    Communicator& group = communicator(device);
    const std::int64_t unit = slice(part.shape, cut.dim), padded = cut.largest() * unit;
    const Shape own = withLength(part.shape, cut.dim, cut.length(device));
    if (part.elements() == 0)
        return here.make(own);
    if (cut.pieceByPiece) {
        Tensor mine = here.make(own);
        std::vector<Tensor> pieces;
        for (int d = 0; d < devices(); ++d)
            pieces.push_back(sharding::cut(here, part, cut.dim, cut.first(d), cut.length(d)));
        group.beginGroup();
        for (int root = 0; root < devices(); ++root)
            if (cut.length(root) > 0)
                group.reduce(here.stream(), pieces[size(root)].data, root == device ? mine.data : std::span<float>(),
                             root);
        group.endGroup();
        return mine;
    }
    const Tensor all = here.zeros({devices() * padded});
    for (int d = 0; d < devices(); ++d) {
        const Tensor piece = sharding::cut(here, part, cut.dim, cut.first(d), cut.length(d));
        if (piece.elements() > 0)
            here.operations().copy(std::span<const float>(piece.data),
                                   all.data.subspan(size(d * padded), piece.elements()));
    }
    Tensor mine = here.make({padded});
    group.reduceScatter(here.stream(), all.data, mine.data);
    mine.data = mine.data.first(size(cut.length(device) * unit)); // without the padding
    mine.shape = own;
    return mine;
}

Tensor PackedCollectives::allToAll(int device, const Tensor& piece, const Cut& from, const Cut& to)
{
    MemberDevice& here = member(device);
    Communicator& group = communicator(device);
    const bool same = from.dim == to.dim;
    const Shape own = withLength(withLength(piece.shape, from.dim, from.whole()), to.dim, to.length(device));
    Tensor result = here.make(own);
    std::vector<Tensor> leaving, coming;
    for (int d = 0; d < devices(); ++d) {
        // Along the same dimension the overlap of the two pieces, otherwise the whole part of the other's piece that is
        // here.
        const Range out = same ? overlap(from, device, to, d) : Range{to.first(d), to.length(d)};
        const Range in = same ? overlap(from, d, to, device) : Range{from.first(d), from.length(d)};
        leaving.push_back(sharding::cut(here, piece, to.dim,
                                        out.length == 0 ? 0 : out.first - (same ? from.first(device) : 0), out.length));
        coming.push_back(d == device ? leaving.back() : here.make(withLength(own, from.dim, in.length)));
    }
    group.beginGroup();
    for (int d = 0; d < devices(); ++d) {
        if (d != device && leaving[size(d)].elements() > 0)
            group.send(here.stream(), leaving[size(d)].data, d);
        if (d != device && coming[size(d)].elements() > 0)
            group.receive(here.stream(), coming[size(d)].data, d);
    }
    group.endGroup();
    for (int d = 0; d < devices(); ++d) {
        const std::int64_t first = same ? overlap(from, d, to, device).first - to.first(device) : from.first(d);
        if (coming[size(d)].elements() > 0)
            paste(here, result, coming[size(d)], from.dim, first);
    }
    return result;
}

} // namespace pipewright::sharding
