// SPDX-License-Identifier: GPL-3.0-or-later
// What every backend must do, whatever it is made of. A new backend adds a row to backends().
#include "core/base/diagnostic.h"
#include "executor/clock.h"
#include "executor/cuda/cudabackend.h"
#include "executor/host/hostbackend.h"
#include "executor/mpi/rankbackend.h"
#include "executor/mpi/socketmesh.h"

#include <QTest>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>

using namespace pipewright;

namespace {

struct Entry {
    const char* name;
    std::unique_ptr<Backend> (*create)(int devices);
};

/// Both processes of a pair in this one, with sockets between them: what either does through its own half.
class TwoRanks final : public Backend {
public:
    explicit TwoRanks(int devices)
    {
        auto meshes = createLocalMeshes(devices);
        m_ranks.resize(meshes.size());
        std::vector<std::thread> starting; // each waits for the others
        for (std::size_t r = 0; r < meshes.size(); ++r)
            starting.emplace_back([&, r] { m_ranks[r] = createRankBackend(std::move(meshes[r]), 30'000'000'000); });
        for (std::thread& thread : starting)
            thread.join();
    }
    std::string name() const override { return "ranks"; }
    int devices() const override { return static_cast<int>(m_ranks.size()); }
    Device& device(int index) override { return m_ranks.at(static_cast<std::size_t>(index))->device(index); }
    std::unique_ptr<Link> createLink(int from, int to, const LinkOptions& options) override
    {
        return std::make_unique<BothEnds>(m_ranks[static_cast<std::size_t>(from)]->createLink(from, to, options),
                                          m_ranks[static_cast<std::size_t>(to)]->createLink(from, to, options));
    }

private:
    class BothEnds final : public Link {
    public:
        BothEnds(std::unique_ptr<Link> from, std::unique_ptr<Link> to) : m_from(std::move(from)), m_to(std::move(to)) {}
        Copied send(Stream& stream, const Posting& posting) override { return m_from->send(stream, posting); }
        Copied receive(Stream& stream, const Posting& posting) override { return m_to->receive(stream, posting); }
        Heads heads() const override { return m_from->heads(); }
        void finished(std::vector<Copied>& to) override { m_to->finished(to); }
        void reset() override
        {
            m_from->reset();
            m_to->reset();
        }

    private:
        std::unique_ptr<Link> m_from, m_to;
    };
    std::vector<std::unique_ptr<Backend>> m_ranks;
};

std::unique_ptr<Backend> createTwoRanks(int devices)
{
    return std::make_unique<TwoRanks>(devices);
}

/// The CUDA backend over a table whose GPU is the host: a copy happens when it is issued, an event when it is
/// recorded. What it shows is that the backend keeps the order that it must keep; not that a GPU does.
const PipewrightCudaTable& pretendedGpu()
{
    static constexpr PipewrightCudaTable table{
        PIPEWRIGHT_CUDA_ABI, sizeof(PipewrightCudaTable), [] { return "pretended"; },
        [] { return "the host has not that much"; }, [](std::int32_t* count) { return *count = 2, 0; },
        [](std::int32_t, PipewrightCudaDevice* info) { return *info = {}, std::strcpy(info->name, "pretended"), 0; },
        [](std::int32_t, std::int64_t bytes, void** data) {
            *data = std::aligned_alloc(256, (static_cast<std::size_t>(bytes) / 256 + 1) * 256);
            return *data ? 0 : 2;
        },
        [](std::int32_t, void* data) { return std::free(data), 0; },
        [](std::int32_t, void** stream) { return *stream = new char, 0; },
        [](void* stream) { return delete static_cast<char*>(stream), 0; },
        [](void*, std::int32_t* done) { return *done = 1, 0; },
        [](std::int32_t, void** event) { return *event = new std::atomic<bool>(false), 0; },
        [](void* event) { return delete static_cast<std::atomic<bool>*>(event), 0; },
        [](void* event, void*) { return static_cast<std::atomic<bool>*>(event)->store(true), 0; },
        [](void* event, std::int32_t* done) { return *done = static_cast<std::atomic<bool>*>(event)->load(), 0; },
        // A wait for an event that was never recorded would pass at once on a GPU: a mistake of the backend.
        [](void*, void* event) { return static_cast<std::atomic<bool>*>(event)->load() ? 0 : 1; },
        [](void*, void*, float* time) { return *time = 0, 0; },
        [](void* to, std::int32_t, const void* from, std::int32_t, std::int64_t bytes, void*) {
            return std::memcpy(to, from, static_cast<std::size_t>(bytes)), 0;
        }};
    return table;
}

std::unique_ptr<Backend> createPretendedCuda(int devices)
{
    std::vector<int> gpus;
    for (int d = 0; d < devices; ++d)
        gpus.push_back(d);
    return createCudaBackend(pretendedGpu(), std::move(gpus));
}

constexpr Entry backends[] = {{"host", createHostBackend},
                              {"ranks over sockets", createTwoRanks},
                              {"cuda with a pretended GPU", createPretendedCuda}};

/// How long something that is under way may take, and how long something that must not happen is watched.
constexpr int patience = 5000;
void watchQuietly(const Backend& backend)
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
    std::unique_ptr<Event> event(int device)
    {
        return backend->device(device).createEvent(*streams[static_cast<std::size_t>(device)]);
    }

    /// Of a receive that has been waited for: what a call returned, or what the link tells afterwards.
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

} // namespace

class TestBackendConformance : public QObject {
    Q_OBJECT

private slots:
    void memoryIsAlignedAndWritable_data() { rows(); }
    void memoryIsAlignedAndWritable()
    {
        QFETCH(int, backend);
        const auto tested = backends[backend].create(2);
        QCOMPARE(tested->devices(), 2);
        for (const Bytes bytes : {Bytes{0}, Bytes{1}, Bytes{4097}}) {
            const Piece piece(*tested, 1, bytes, 0x5a);
            QCOMPARE(piece.region.bytes, bytes);
            QCOMPARE(reinterpret_cast<std::uintptr_t>(piece.region.data) % 64, std::uintptr_t{0});
            QVERIFY(piece.holds(0x5a));
        }
    }

    void capabilitiesAreTrue_data() { rows(); }
    void capabilitiesAreTrue()
    {
        QFETCH(int, backend);
        const auto tested = backends[backend].create(2);
        for (int d = 0; d < 2; ++d) {
            Device& device = tested->device(d);
            QVERIFY(!device.name().empty());
            // These tests touch the memory of all, but only where the backend says so may its users.
            QCOMPARE(device.capabilities().hostAddressable, tested->name() != "cuda");
            // Without anything that runs by itself, a copy is over when the second call returns.
            QCOMPARE(device.capabilities().asynchronous, std::string(backends[backend].name) != "host");
        }
    }

    void anAbsurdAllocationIsAnErrorThatNamesTheDevice_data() { rows(); }
    void anAbsurdAllocationIsAnErrorThatNamesTheDevice()
    {
        QFETCH(int, backend);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
        QSKIP("sanitizers abort on absurd allocations");
#endif
        const auto tested = backends[backend].create(2);
        try {
            tested->device(1).allocate(Bytes{1} << 60);
            QFAIL("allocated an exbibyte");
        } catch (const Error& error) {
            QCOMPARE(error.diagnostics().front().where, std::string("device 1"));
        }
    }

    void nothingMovesBeforeBothSidesArePosted_data()
    {
        rows();
    }
    void nothingMovesBeforeBothSidesArePosted()
    {
        QFETCH(int, backend);
        for (const bool sendFirst : {true, false}) {
            Pair pair(backend, {.storedSends = 0, .slotBytes = 0, .postings = 4});
            Piece source(*pair.backend, 0, 100, 1), destination(*pair.backend, 1, 100, 2);
            const auto sent = pair.event(0), arrived = pair.event(1);
            const auto send = [&] { return pair.link->send(*pair.streams[0], {7, {&source.region, 1}, sent.get()}); };
            const auto receive = [&] {
                return pair.link->receive(*pair.streams[1], {7, {&destination.region, 1}, arrived.get()});
            };
            QCOMPARE(sendFirst ? send().task : receive().task, none);
            watchQuietly(*pair.backend);
            QVERIFY(!sent->complete() && !arrived->complete());
            QVERIFY(destination.holds(2));
            sendFirst ? receive() : send();
            QVERIFY(pair.streams[0]->wait(*sent) && pair.streams[1]->wait(*arrived));
            QVERIFY(destination.holds(1));
        }
    }

    void slotsFreeTheSourceBeforeTheReceive_data()
    {
        rows();
    }
    void slotsFreeTheSourceBeforeTheReceive()
    {
        QFETCH(int, backend);
        Pair pair(backend, {.storedSends = 1, .slotBytes = 100, .postings = 4});
        Piece first(*pair.backend, 0, 100, 1), second(*pair.backend, 0, 100, 2);
        Piece firstTo(*pair.backend, 1, 100, 9), secondTo(*pair.backend, 1, 100, 9);
        const auto sent1 = pair.event(0), sent2 = pair.event(0), arrived1 = pair.event(1), arrived2 = pair.event(1);
        pair.link->send(*pair.streams[0], {1, {&first.region, 1}, sent1.get()});
        QVERIFY(pair.streams[0]->wait(*sent1)); // stored: it may be overwritten
        std::memset(first.region.data, 0xee, 100);
        pair.link->send(*pair.streams[0], {2, {&second.region, 1}, sent2.get()});
        QVERIFY(!sent2->complete()); // no slot left: it stays posted
        pair.link->receive(*pair.streams[1], {1, {&firstTo.region, 1}, arrived1.get()});
        pair.link->receive(*pair.streams[1], {2, {&secondTo.region, 1}, arrived2.get()});
        QVERIFY(pair.streams[1]->wait(*arrived1) && pair.streams[1]->wait(*arrived2) && pair.streams[0]->wait(*sent2));
        QVERIFY(firstTo.holds(1));
        QVERIFY(secondTo.holds(2));
    }

    void aTransferLargerThanASlotStaysWithTheSender_data()
    {
        rows();
    }
    void aTransferLargerThanASlotStaysWithTheSender()
    {
        QFETCH(int, backend);
        Pair pair(backend, {.storedSends = 2, .slotBytes = 10, .postings = 4});
        Piece source(*pair.backend, 0, 100, 1);
        const auto sent = pair.event(0);
        pair.link->send(*pair.streams[0], {1, {&source.region, 1}, sent.get()});
        QVERIFY(!sent->complete());
    }

    void severalRegionsTravelTogether_data()
    {
        rows();
    }
    void severalRegionsTravelTogether()
    {
        QFETCH(int, backend);
        for (const int eager : {0, 1}) {
            Pair pair(backend, {.storedSends = eager, .slotBytes = 64, .postings = 4});
            Piece a(*pair.backend, 0, 30, 1), b(*pair.backend, 0, 34, 2), toA(*pair.backend, 1, 30, 0),
                toB(*pair.backend, 1, 34, 0);
            const std::vector<Region> from{a.region, b.region}, to{toA.region, toB.region};
            const auto sent = pair.event(0), arrived = pair.event(1);
            pair.link->send(*pair.streams[0], {1, from, sent.get()});
            pair.link->receive(*pair.streams[1], {1, to, arrived.get()});
            QVERIFY(pair.streams[1]->wait(*arrived));
            QVERIFY(toA.holds(1) && toB.holds(2));
        }
    }

    void aWrongOrderIsStuckAndSaysSo_data()
    {
        rows();
    }
    void aWrongOrderIsStuckAndSaysSo()
    {
        QFETCH(int, backend);
        for (const int eager : {0, 2}) {
            Pair pair(backend, {.storedSends = eager, .slotBytes = 100, .postings = 4});
            Piece source(*pair.backend, 0, 100, 1), destination(*pair.backend, 1, 100, 2);
            const auto sent1 = pair.event(0), sent2 = pair.event(0), arrived1 = pair.event(1), arrived2 = pair.event(1);
            pair.link->send(*pair.streams[0], {1, {&source.region, 1}, sent1.get()});
            pair.link->send(*pair.streams[0], {2, {&source.region, 1}, sent2.get()});
            pair.link->receive(*pair.streams[1], {2, {&destination.region, 1}, arrived2.get()});
            pair.link->receive(*pair.streams[1], {1, {&destination.region, 1}, arrived1.get()});
            QTRY_VERIFY_WITH_TIMEOUT(pair.link->heads().mismatch, patience);
            watchQuietly(*pair.backend);
            QVERIFY(!arrived1->complete() && !arrived2->complete());
            QVERIFY(destination.holds(2));
            const Link::Heads heads = pair.link->heads();
            QCOMPARE(heads.send, TaskId{1});
            QCOMPARE(heads.receive, TaskId{2});
        }
    }

    void sizesMustAgree_data()
    {
        rows();
    }
    void sizesMustAgree()
    {
        QFETCH(int, backend);
        Pair pair(backend, {.storedSends = 0, .slotBytes = 0, .postings = 4});
        Piece source(*pair.backend, 0, 100, 1), destination(*pair.backend, 1, 99, 2);
        const auto sent = pair.event(0), arrived = pair.event(1);
        pair.link->send(*pair.streams[0], {1, {&source.region, 1}, sent.get()});
        pair.link->receive(*pair.streams[1], {1, {&destination.region, 1}, arrived.get()});
        QTRY_VERIFY_WITH_TIMEOUT(pair.link->heads().mismatch, patience);
        QVERIFY(!arrived->complete());
    }

    void anEmptyTransferArrives_data()
    {
        rows();
    }
    void anEmptyTransferArrives()
    {
        QFETCH(int, backend);
        Pair pair(backend, {.storedSends = 0, .slotBytes = 0, .postings = 4});
        const Region nothing{};
        const auto sent = pair.event(0), arrived = pair.event(1);
        pair.link->receive(*pair.streams[1], {1, {&nothing, 1}, arrived.get()});
        pair.link->send(*pair.streams[0], {1, {&nothing, 1}, sent.get()});
        QVERIFY(pair.streams[1]->wait(*arrived) && pair.streams[0]->wait(*sent));
    }

    void eventsAndLinksCanBeUsedAgain_data()
    {
        rows();
    }
    void eventsAndLinksCanBeUsedAgain()
    {
        QFETCH(int, backend);
        Pair pair(backend, {.storedSends = 1, .slotBytes = 100, .postings = 1});
        Piece source(*pair.backend, 0, 100, 0), destination(*pair.backend, 1, 100, 0);
        const auto sent = pair.event(0), arrived = pair.event(1);
        for (int step = 1; step < 5; ++step) {
            std::memset(source.region.data, step, 100);
            pair.link->send(*pair.streams[0], {1, {&source.region, 1}, sent.get()});
            pair.link->receive(*pair.streams[1], {1, {&destination.region, 1}, arrived.get()});
            QVERIFY(pair.streams[1]->wait(*arrived) && pair.streams[0]->wait(*sent));
            QVERIFY(destination.holds(step));
            pair.link->reset();
            sent->reset();
            arrived->reset();
            QVERIFY(!sent->complete() && !arrived->complete());
        }
    }

    void aWaitCanBeInterruptedFromOutside_data()
    {
        rows();
    }
    void aWaitCanBeInterruptedFromOutside()
    {
        QFETCH(int, backend);
        Pair pair(backend, {});
        const auto never = pair.event(1);
        std::atomic<bool> result{true};
        std::thread waiting([&] { result = pair.streams[1]->wait(*never); });
        pair.streams[1]->interrupt();
        waiting.join();
        QVERIFY(!result);
        QVERIFY(!pair.streams[1]->synchronize());
        pair.streams[1]->resume();
        QVERIFY(pair.streams[1]->synchronize());
    }

    void aSlowLinkDeliversNoEarlierThanItsTime_data()
    {
        rows();
    }
    void aSlowLinkDeliversNoEarlierThanItsTime()
    {
        QFETCH(int, backend);
        for (const int eager : {0, 1}) {
            Pair pair(backend, {.storedSends = eager, .slotBytes = 100, .postings = 4});
            Piece source(*pair.backend, 0, 100, 1), destination(*pair.backend, 1, 100, 2);
            const auto sent = pair.event(0), arrived = pair.event(1);
            const Nanoseconds slow = 5'000'000;
            pair.link->send(*pair.streams[0], {1, {&source.region, 1}, sent.get(), slow});
            Copied copied = pair.link->receive(*pair.streams[1], {1, {&destination.region, 1}, arrived.get(), slow});
            QVERIFY(pair.streams[1]->wait(*arrived));
            copied = pair.theCopy(copied);
            QCOMPARE(copied.task, TaskId{1});
            QVERIFY(copied.end - copied.start >= slow);
        }
    }

    void aBlockingTransferHoldsTheSenderAsLong_data()
    {
        rows();
    }
    void aBlockingTransferHoldsTheSenderAsLong()
    {
        QFETCH(int, backend);
        for (const bool senderFirst : {true, false}) {
            Pair pair(backend, {.postings = 4});
            Piece source(*pair.backend, 0, 100, 1), destination(*pair.backend, 1, 100, 2);
            const auto sent = pair.event(0), arrived = pair.event(1);
            const Nanoseconds slow = 5'000'000;
            const Posting from{1, {&source.region, 1}, sent.get(), slow, true},
                to{1, {&destination.region, 1}, arrived.get(), slow, true};
            Copied copied;
            if (senderFirst) {
                pair.link->send(*pair.streams[0], from);
                copied = pair.link->receive(*pair.streams[1], to);
            } else {
                pair.link->receive(*pair.streams[1], to);
                copied = pair.link->send(*pair.streams[0], from);
            }
            QVERIFY(pair.streams[0]->wait(*sent) && pair.streams[0]->synchronize());
            QVERIFY(pair.streams[1]->wait(*arrived));
            copied = pair.theCopy(copied);
            QCOMPARE(copied.task, TaskId{1});
            QVERIFY(steadyNow() >= copied.start + slow);
        }
    }

    void twoThreadsExchangeManyTransfersInOrder_data()
    {
        rows();
    }
    void twoThreadsExchangeManyTransfersInOrder()
    {
        QFETCH(int, backend);
        constexpr std::size_t count = 2000;
        for (const int eager : {0, 1, 3}) {
            Pair pair(backend, {.storedSends = eager, .slotBytes = 64, .postings = count});
            Piece source(*pair.backend, 0, 64 * count, 0), destination(*pair.backend, 1, 64 * count, 0xff);
            std::vector<std::unique_ptr<Event>> sent, arrived;
            std::vector<Region> from, to;
            for (std::size_t i = 0; i < count; ++i) {
                sent.push_back(pair.event(0));
                arrived.push_back(pair.event(1));
                from.push_back({source.region.data + 64 * i, 64});
                to.push_back({destination.region.data + 64 * i, 64});
            }
            std::thread sender([&] {
                for (std::size_t i = 0; i < count; ++i) {
                    std::memset(from[i].data, static_cast<int>(i % 251), 64);
                    pair.link->send(*pair.streams[0], {static_cast<TaskId>(i), {&from[i], 1}, sent[i].get()});
                    if (i >= 2)
                        pair.streams[0]->wait(*sent[i - 2]);
                }
            });
            bool right = true;
            for (std::size_t i = 0; i < count; ++i) {
                pair.link->receive(*pair.streams[1], {static_cast<TaskId>(i), {&to[i], 1}, arrived[i].get()});
                right = pair.streams[1]->wait(*arrived[i]) && right;
                right = right && to[i].data[0] == std::byte(i % 251) && to[i].data[63] == std::byte(i % 251);
            }
            sender.join();
            QVERIFY(right);
        }
    }

private:
    static void rows()
    {
        QTest::addColumn<int>("backend");
        for (int i = 0; i < static_cast<int>(std::size(backends)); ++i)
            QTest::addRow("%s", backends[i].name) << i;
    }
};

QTEST_GUILESS_MAIN(TestBackendConformance)
#include "tst_backend_conformance.moc"
