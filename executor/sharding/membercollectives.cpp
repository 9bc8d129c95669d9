// SPDX-License-Identifier: GPL-3.0-or-later
// Collectives without communicators. Members of one process publish their tensors at a barrier, read what they need of
// the others', and leave at a second barrier; members of several processes send each other their tensors. Sums are made
// in the order of the members on each device, so all get the same bits. A device reads up to (devices - 1) times the
// tensor.
#include "executor/sharding/membercollectives.h"

#include "executor/sharding/packedcollectives.h"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <optional>

namespace pipewright::sharding {

std::int64_t Cut::first(int device) const
{
    return std::accumulate(lengths.begin(), lengths.begin() + device, std::int64_t(0));
}

std::int64_t Cut::largest() const
{
    return *std::max_element(lengths.begin(), lengths.end());
}

MemberCollectives::MemberCollectives(std::vector<MemberDevice*> members)
    : m_members(std::move(members)), m_narrow(m_members.size(), 0)
{
}

void MemberCollectives::wait()
{
    std::unique_lock lock(m_mutex);
    if (!m_failed && ++m_come == devices()) {
        m_come = 0;
        ++m_round;
        m_changed.notify_all();
        return;
    }
    constexpr auto pollInterval = std::chrono::milliseconds(20);
    const std::uint64_t round = m_round;
    while (!m_changed.wait_for(lock, pollInterval, [&] { return m_failed || m_round != round; }))
        if (isStopped())
            break;
    if (m_failed || m_round == round)
        throw Stopped();
}

void MemberCollectives::abort()
{
    {
        const std::lock_guard lock(m_mutex);
        if (std::exchange(m_failed, true))
            return;
    }
    m_changed.notify_all();
    for (MemberDevice* member : m_members)
        if (member)
            member->interrupt();
    abortCommunicators();
}

namespace {

class ReadingCollectives final : public MemberCollectives {
public:
    explicit ReadingCollectives(std::vector<MemberDevice*> members)
        : MemberCollectives(std::move(members)), m_shown(m_members.size())
    {
    }
    ReadingCollectives(std::vector<MemberDevice*> members, ImaginedOthers others)
        : MemberCollectives(std::move(members)), m_imagined(std::move(others))
    {
    }
    ReadingCollectives(std::vector<MemberDevice*> members, Exchange& exchange, std::vector<int> numbers)
        : MemberCollectives(std::move(members)), m_exchange(&exchange), m_numbers(std::move(numbers))
    {
    }

    Tensor allGather(int device, const Tensor& piece, const Cut& cut) override
    {
        return together(device, piece, &cut, [&](const Seen& seen) { return joined(member(device), seen, cut.dim); });
    }
    Tensor allReduce(int device, const Tensor& part) override
    {
        return together(device, part, nullptr, [&](const Seen& seen) { return sum(device, seen); });
    }
    Tensor reduceScatter(int device, const Tensor& part, const Cut& cut) override
    {
        return together(device, part, nullptr,
                        [&](const Seen& seen) { return sum(device, piecesOf(device, seen, cut)); });
    }
    Tensor allToAll(int device, const Tensor& piece, const Cut& from, const Cut& to) override
    {
        return together(device, piece, &from, [&](const Seen& seen) {
            if (from.dim == to.dim)
                return cut(member(device), joined(member(device), seen, from.dim), to.dim, to.first(device),
                           to.length(device));
            return joined(member(device), piecesOf(device, seen, to), from.dim);
        });
    }

private:
    /// The tensors of all members, in memory that this device can read.
    struct Seen : std::vector<const Tensor*> {
        std::vector<Tensor> own;
    };

    /// `cut`: the lengths of the devices' tensors where they differ; null: all have the same shape.
    template<typename Work>
    Tensor together(int device, const Tensor& mine, const Cut* cut, Work work)
    {
        MemberDevice& here = member(device);
        if (m_exchange)
            return work(exchanged(device, mine, cut));
        if (m_imagined)
            return work(imagined(device, mine, cut));
        m_shown[device] = &mine;
        if (devices() == 1) // no wait, which could not be captured
            return work(seenBy(device));
        here.synchronize();
        wait();
        Tensor result = work(seenBy(device));
        here.synchronize(); // this device has finished reading the others' tensors
        wait();
        return result;
    }

    /// The shape of another device's tensor.
    static Shape shapeOf(int device, const Tensor& mine, const Cut* cut)
    {
        Shape shape = mine.shape;
        if (cut)
            shape[static_cast<std::size_t>(cut->dim)] = cut->length(device);
        return shape;
    }

    /// The tensors of all members as they would be; for a dry run.
    Seen imagined(int device, const Tensor& mine, const Cut* cut)
    {
        if (m_imagined->way == ImaginedOthers::Way::Apart)
            return Sent(*this, device, mine, cut).taken();
        Seen seen;
        seen.own.reserve(m_members.size());
        for (int d = 0; d < devices(); ++d) {
            if (d == device) { // a result may be this very tensor, which then keeps its memory
                seen.push_back(&mine);
                continue;
            }
            Shape shape = shapeOf(d, mine, cut);
            Tensor& other = seen.own.emplace_back();
            if (m_imagined->reached.empty() || m_imagined->reached[static_cast<std::size_t>(d)]) {
                const std::size_t elements = product(shape.begin(), shape.end());
                // An address that is never read; this member may have none of the tensor.
                float* const imagined = mine.data.empty() ? reinterpret_cast<float*>(alignof(float)) : mine.data.data();
                other = {std::move(shape), {imagined, elements}, {}};
            } else { // copied here, as seenBy() does
                other = member(device).make(std::move(shape));
            }
            seen.push_back(&other);
        }
        return seen;
    }

    /// The tensors as they are sent to and received from other processes: unchanged or, if they hold bf16 values, with
    /// two values in the space of a float.
    struct Sent {
        Sent(ReadingCollectives& all, int self, const Tensor& mine, const Cut* cut)
            : here(all.member(self)), narrow(all.narrow(self) != 0)
        {
            seen.own.reserve(all.m_members.size());
            for (int d = 0; d < all.devices(); ++d)
                seen.push_back(d == self ? &mine : &seen.own.emplace_back(here.make(shapeOf(d, mine, cut))));
            for (const Tensor* tensor : seen)
                onWire.push_back(narrow ? here.make({(count(*tensor) + 1) / 2}) : *tensor);
            if (narrow && mine.elements() > 0)
                here.operations().run(kernels::Narrow{mine.data, halves(static_cast<std::size_t>(self))});
        }
        std::span<std::uint16_t> halves(std::size_t device) const
        {
            return {reinterpret_cast<std::uint16_t*>(onWire[device].data.data()), seen[device]->elements()};
        }
        /// To be called after everything has arrived.
        Seen taken()
        {
            for (Tensor& other : seen.own)
                if (narrow && other.elements() > 0)
                    here.operations().run(kernels::Widen{
                        halves(static_cast<std::size_t>(std::find(seen.begin(), seen.end(), &other) - seen.begin())),
                        other.data});
            return std::move(seen);
        }

        MemberDevice& here;
        bool narrow;
        Seen seen;
        std::vector<Tensor> onWire; ///< per device
    };

    /// The tensors of all members, received here.
    Seen exchanged(int device, const Tensor& mine, const Cut* cut)
    {
        Sent sent(*this, device, mine, cut);
        m_exchange->beginGroup();
        for (int d = 0; d < devices(); ++d) {
            const Tensor& theirs = sent.onWire[static_cast<std::size_t>(d)];
            if (d != device && mine.elements() > 0)
                m_exchange->send(*waiter(), sent.onWire[static_cast<std::size_t>(device)].data,
                                 m_numbers[static_cast<std::size_t>(d)]);
            if (d != device && theirs.elements() > 0)
                m_exchange->receive(*waiter(), theirs.data, m_numbers[static_cast<std::size_t>(d)]);
        }
        m_exchange->endGroup();
        if (isStopped())
            throw Stopped();
        return sent.taken();
    }

    Seen seenBy(int device)
    {
        MemberDevice& here = member(device);
        Seen seen;
        seen.own.reserve(m_shown.size());
        for (std::size_t d = 0; d < m_shown.size(); ++d) {
            const Tensor& there = *m_shown[d];
            if (here.device().reaches(m_members[d]->device())) {
                seen.push_back(&there);
                continue;
            }
            Tensor copy = here.make(there.shape);
            here.device().fetch(here.stream(), regionOf(copy.data), m_members[d]->device(), regionOf(there.data));
            seen.own.push_back(std::move(copy));
            seen.push_back(&seen.own.back());
        }
        return seen;
    }

    Seen piecesOf(int device, const Seen& whole, const Cut& cut)
    {
        Seen pieces;
        pieces.own.reserve(whole.size());
        for (const Tensor* other : whole) {
            pieces.own.push_back(sharding::cut(member(device), *other, cut.dim, cut.first(device), cut.length(device)));
            pieces.push_back(&pieces.own.back());
        }
        return pieces;
    }

    /// Adds up in the order of the devices.
    Tensor sum(int device, const Seen& parts)
    {
        Tensor total = *parts.front(); // a new tensor is made only if something is added
        if (parts.size() == 1)
            return total;
        MemberDevice& here = member(device);
        Tensor made = here.make(total.shape);
        if (made.elements() > 0)
            here.call(kernels::TensorOperation::Add, {static_cast<std::int64_t>(made.elements())},
                      {total.data.data(), parts[1]->data.data()}, made.data.data());
        for (std::size_t d = 2; d < parts.size(); ++d)
            accumulate(here, made, *parts[d]);
        return made;
    }

    std::optional<ImaginedOthers> m_imagined; ///< a dry run: there are no others
    Exchange* m_exchange = nullptr;           ///< to the others' processes
    std::vector<int> m_numbers;               ///< the members' device numbers in the run
    std::vector<const Tensor*> m_shown;
};

} // namespace

namespace {

class ImaginedCommunicator final : public Communicator {
public:
    void allReduce(Stream&, std::span<const float>, std::span<float>) override {}
    void allGather(Stream&, std::span<const float>, std::span<float>) override {}
    void reduceScatter(Stream&, std::span<const float>, std::span<float>) override {}
    void broadcast(Stream&, std::span<float>, int) override {}
    void reduce(Stream&, std::span<const float>, std::span<float>, int) override {}
    void send(Stream&, std::span<const float>, int) override {}
    void receive(Stream&, std::span<float>, int) override {}
    void beginGroup() override {}
    void endGroup() override {}
};

} // namespace

std::unique_ptr<MemberCollectives> createLoneCollectives(MemberDevice& member, int devices, ImaginedOthers others)
{
    std::vector<MemberDevice*> members(static_cast<std::size_t>(devices), &member);
    if (others.way != ImaginedOthers::Way::Communicator)
        return std::make_unique<ReadingCollectives>(std::move(members), std::move(others));
    std::vector<std::unique_ptr<Communicator>> communicators;
    for (int d = 0; d < devices; ++d)
        communicators.push_back(std::make_unique<ImaginedCommunicator>());
    return std::make_unique<PackedCollectives>(std::move(members), std::move(communicators));
}

std::unique_ptr<MemberCollectives> createCollectives(std::vector<MemberDevice*> members, Exchange& exchange,
                                                     std::vector<int> numbers)
{
    return std::make_unique<ReadingCollectives>(std::move(members), exchange, std::move(numbers));
}

std::unique_ptr<MemberCollectives> createCollectives(std::vector<MemberDevice*> members,
                                                     std::vector<std::unique_ptr<Communicator>> communicators)
{
    if (communicators.empty())
        return std::make_unique<ReadingCollectives>(std::move(members));
    return std::make_unique<PackedCollectives>(std::move(members), std::move(communicators));
}

} // namespace pipewright::sharding
