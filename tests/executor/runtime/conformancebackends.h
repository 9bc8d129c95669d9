// SPDX-License-Identifier: GPL-3.0-or-later
// The backends that tst_backend_conformance tests against the same rules, and its helpers. A new backend adds a row to
// `backends`.
#pragma once

#include "executor/cuda/cudabackend.h"
#include "executor/cuda/standingpus.h"
#include "executor/host/hostbackend.h"
#include "executor/mpi/rankbackend.h"
#include "makers/localmeshes.h"

#include <QTest>

#include <algorithm>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

namespace pipewright {

struct Entry {
    const char* name;
    std::unique_ptr<Backend> (*create)(int devices);
    bool stores = true; ///< links can store sends in flight, and can be slowed down
};

/// Both processes of a pair inside this one, with sockets between them: each device is used through its own half.
class TwoRanks final : public Backend {
public:
    explicit TwoRanks(int devices, const CudaSetup* gpus = nullptr) : m_onGpus(gpus)
    {
        auto meshes = test::createLocalMeshes(devices);
        m_ranks.resize(meshes.size());
        std::vector<std::thread> starting; // each waits for the others
        for (std::size_t r = 0; r < meshes.size(); ++r)
            starting.emplace_back([&, r] {
                constexpr Nanoseconds deadline = 30'000'000'000;
                m_ranks[r] = gpus ? createRankBackend(std::move(meshes[r]), deadline, test::standInTable(), *gpus)
                                  : createRankBackend(std::move(meshes[r]), deadline);
            });
        for (std::thread& thread : starting)
            thread.join();
    }
    std::string name() const override { return m_onGpus ? "cuda" : "ranks"; } // how its devices behave
    int devices() const override { return static_cast<int>(m_ranks.size()); }
    Device& device(int index) override { return m_ranks.at(static_cast<std::size_t>(index))->device(index); }
    std::unique_ptr<Link> createLink(int from, int to, const LinkOptions& options) override
    {
        std::unique_ptr<Link> sends, receives; // either may wait for the other
        std::thread sender([&] { sends = m_ranks[from]->createLink(from, to, options); });
        std::thread receiver([&] { receives = m_ranks[to]->createLink(from, to, options); });
        sender.join();
        receiver.join();
        return std::make_unique<BothEnds>(std::move(sends), std::move(receives));
    }
    LinkMemory linkMemory(int from, int to, const LinkOptions& options) const override
    {
        return m_ranks[from]->linkMemory(from, to, options);
    }

private:
    class BothEnds final : public Link {
    public:
        BothEnds(std::unique_ptr<Link> from, std::unique_ptr<Link> to) : m_from(std::move(from)), m_to(std::move(to)) {}
        Copied send(Stream& stream, const Posting& posting) override { return m_from->send(stream, posting); }
        Copied receive(Stream& stream, const Posting& posting) override { return m_to->receive(stream, posting); }
        Heads heads() const override
        {
            const Heads from = m_from->heads(), to = m_to->heads(); // one half may not know the other's heads
            return {from.send, from.receive == none ? to.receive : from.receive, from.mismatch};
        }
        void finished(std::vector<Copied>& to) override
        {
            m_from->settled();
            m_to->finished(to);
        }
        void reset() override
        {
            m_from->reset();
            m_to->reset();
        }

    private:
        std::unique_ptr<Link> m_from, m_to;
    };
    const bool m_onGpus;
    std::vector<std::unique_ptr<Backend>> m_ranks;
};

inline std::unique_ptr<Backend> createTwoRanks(int devices)
{
    return std::make_unique<TwoRanks>(devices);
}

inline std::unique_ptr<Backend> createTwoGpuRanks(int devices)
{
    CudaSetup setup;
    setup.nccl = test::standInLibrary("NCCL");
    return std::make_unique<TwoRanks>(devices, &setup);
}

inline std::unique_ptr<Backend> createGpus(int devices)
{
    return createCudaBackend(test::standInTable(), test::standInSetup(devices));
}

/// All devices on the same GPU, a slice each.
inline std::unique_ptr<Backend> createSlices(int devices)
{
    CudaSetup setup = test::standInSetup(devices, 1);
    for (GpuShare& share : setup.devices)
        share.multiprocessors = 128 / devices;
    return createCudaBackend(test::standInTable(), setup);
}

inline std::unique_ptr<Backend> createGpusWithNccl(int devices)
{
    CudaSetup setup = test::standInSetup(devices);
    setup.transport = CudaTransport::Nccl;
    return createCudaBackend(test::standInTable(), setup);
}

/// GPU backends use the real plugin on stand-in GPUs, if the toolkit's headers are available.
inline constexpr Entry backends[] = {{"host", createHostBackend},
                                     {"ranks over sockets", createTwoRanks},
                                     {"cuda", createGpus},
                                     {"cuda on slices of one", createSlices},
                                     {"cuda with NCCL", createGpusWithNccl, false},
                                     {"ranks with a GPU each", createTwoGpuRanks, false}};
inline constexpr int withoutGpus = 2;
inline int backendsHere()
{
    return test::hasStandInGpus ? static_cast<int>(std::size(backends)) : withoutGpus;
}

/// Milliseconds that something in flight may take; watchQuietly() waits to see that something does not happen.
inline constexpr int patience = 5000;
inline void watchQuietly(const Backend& backend)
{
    if (backend.name() != "host")
        QTest::qWait(30);
}

/// Two devices with a stream each, and one link between them.
struct Pair {
    Pair(int backend, const LinkOptions& options)
        : backend(backends[backend].create(2)), link(this->backend->createLink(0, 1, options))
    {
        for (int d = 0; d < 2; ++d)
            streams.push_back(this->backend->device(d).createStream());
    }
    std::unique_ptr<Event> event(int device) { return backend->device(device).createEvent(*streams[device]); }

    /// Waits for the event on the device's stream and synchronises, since the wait alone only orders later work.
    bool waited(int device, Event& event)
    {
        Stream& stream = *streams[device];
        return stream.wait(event) && stream.synchronize();
    }

    /// The result of a receive that has been waited for: the returned one, or the one that the link reports afterwards.
    Copied theCopy(const Copied& returned) const
    {
        std::vector<Copied> finished;
        link->finished(finished);
        return returned.task != none ? returned : finished.size() == 1 ? finished.front() : Copied{};
    }

    std::unique_ptr<Backend> backend;
    std::unique_ptr<Link> link;
    std::vector<std::unique_ptr<Stream>> streams;
};

/// A buffer of a device with a byte pattern.
struct Piece {
    Piece(Backend& backend, int device, Bytes bytes, int pattern) : memory(backend.device(device).allocate(bytes))
    {
        region = memory->region();
        std::memset(region.data, pattern, static_cast<std::size_t>(bytes));
    }
    bool holds(int pattern) const
    {
        return std::all_of(region.data, region.data + region.bytes,
                           [&](std::byte b) { return b == std::byte(pattern); });
    }
    std::unique_ptr<Allocation> memory;
    Region region;
};

} // namespace pipewright
