// SPDX-License-Identifier: GPL-3.0-or-later
// What another process of a run sends, whatever it is: rank 0 stays answerable, counts it as gone when its connection
// ends, and ends itself. The input is the stream of messages behind the introduction.
// Starting a hub and waking its thread take a hundred times as long as reading an input. So a hub serves some inputs,
// each as a process of its own, and rests while the fuzzer's thread does its reading.
#include "executor/mpi/rankhub.h"
#include "executor/mpi/rankrecords.h"
#include "executor/mpi/socketmesh.h"
#include "structured.h"
#include "survive.h"

#include <condition_variable>
#include <fcntl.h>
#include <mutex>
#include <optional>
#include <sys/socket.h>
#include <unistd.h>

using namespace pipewright;

namespace {

/// Takes what is recorded and keeps nothing.
class NoSink final : public RecordSink {
public:
    void append(const std::vector<TaskRecord>&) override {}
    void append(const std::vector<MemoryRecord>&) override {}
    void append(const StepRecord&) override {}
    void append(const std::vector<GpuRecord>&) override {}
    void commit() override {}
};

bool writeAll(int socket, const void* data, std::size_t size)
{
    const auto* bytes = static_cast<const char*>(data);
    while (size > 0) {
        const ssize_t done = ::send(socket, bytes, size, MSG_NOSIGNAL);
        if (done <= 0)
            return false;
        bytes += done;
        size -= static_cast<std::size_t>(done);
    }
    return true;
}

/// Sockets, read by the hub's thread or, while that one rests, by whoever asks.
class RestingMesh final : public Mesh {
public:
    explicit RestingMesh(std::vector<int> sockets) : m_mesh(createSocketMesh(0, std::move(sockets))) {}

    int rank() const override { return m_mesh->rank(); }
    int size() const override { return m_mesh->size(); }
    void send(int to, Message message, std::vector<Region> payload, std::uint64_t ticket) override
    {
        m_mesh->send(to, message, std::move(payload), ticket);
    }
    bool poll(MeshHandler& handler) override
    {
        m_handler = &handler;
        return m_mesh->poll(handler);
    }
    void idle(Nanoseconds atMost) override
    {
        {
            std::unique_lock lock(m_mutex);
            m_rests = m_mayRest;
            m_changed.notify_all();
            m_changed.wait(lock, [this] { return !m_mayRest; });
            m_rests = false;
        }
        m_mesh->idle(atMost);
    }
    void wake() override { m_mesh->wake(); }
    void close() override { m_mesh->close(); }

    /// Returns when the hub's thread does.
    void rest()
    {
        std::unique_lock lock(m_mutex);
        m_mayRest = true;
        m_mesh->wake();
        m_changed.wait(lock, [this] { return m_rests; });
    }
    void goOn()
    {
        const std::lock_guard lock(m_mutex);
        m_mayRest = false;
        m_changed.notify_all();
    }
    /// In its place.
    bool read() { return m_mesh->poll(*m_handler); }

private:
    std::unique_ptr<Mesh> m_mesh;
    MeshHandler* m_handler = nullptr;
    std::mutex m_mutex;
    std::condition_variable m_changed;
    bool m_mayRest = false, m_rests = false;
};

/// Rank 0 of a run, and the connections of its other ranks.
class Run {
public:
    static constexpr int others = 16;

    Run()
    {
        std::vector<int> own{-1};
        const Message introduction[2] = {
            {.kind = RankHub::Hello, .time = 1, .a = ::getpid(), .b = 2},
            {.kind = RankHub::Clock, .time = 0, .a = 0, .b = 0},
        };
        for (int r = 0; r < others; ++r) {
            int pair[2];
            if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
                std::abort();
            own.push_back(pair[0]);
            m_ends.push_back(pair[1]);
            fuzz::require(writeAll(pair[1], introduction, sizeof introduction));
        }
        auto mesh = std::make_unique<RestingMesh>(std::move(own));
        m_mesh = mesh.get();
        m_hub.emplace(std::move(mesh), 20'000'000'000);
        m_gathered.emplace(*m_hub, m_nowhere);
        m_mesh->rest();
    }
    ~Run()
    {
        m_mesh->goOn();
        m_hub.reset();
        for (const int end : m_ends)
            ::close(end);
    }
    Run(const Run&) = delete;
    Run& operator=(const Run&) = delete;

    bool isOver() const { return m_next > others; }

    /// What the next rank sends before its connection ends.
    void send(const std::uint8_t* data, std::size_t size)
    {
        const int rank = m_next++, end = m_ends[static_cast<std::size_t>(rank) - 1];
        fuzz::require(writeAll(end, data, size));
        ::shutdown(end, SHUT_WR);
        while (m_mesh->read()) {
        }
        fuzz::require(m_hub->gone(rank));
        fuzz::survives([&] { m_gathered->commit(); });
        fuzz::survives([&] { (void)unpack(m_gathered->takeOthers(), [](BufferId) { return Region{}; }); });
        (void)m_hub->failureReason();
        (void)m_hub->standing(rank);
        (void)m_hub->clockOffset(rank);
    }

private:
    NoSink m_nowhere;
    std::vector<int> m_ends;
    RestingMesh* m_mesh = nullptr;
    std::optional<RankHub> m_hub;
    std::optional<GatheringSink> m_gathered;
    int m_next = 1;
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    static std::optional<Run> run;
    if (!run || run->isOver()) {
        run.reset();
        run.emplace();
    }
    run->send(data, size);
    return 0;
}

/// Message by message: other kinds, sizes that fit or do not, values from the edges.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed)
{
    fuzz::Random random(seed + 1);
    if (fuzz::below(random, 4) == 0)
        return LLVMFuzzerMutate(data, size, most);
    std::vector<std::string> messages; // header and payload
    for (std::size_t at = 0; at + sizeof(Message) <= size;) {
        Message header;
        std::memcpy(&header, data + at, sizeof header);
        const std::size_t rest = size - at - sizeof header;
        const std::size_t payload =
            header.bytes > 0 ? std::min<std::size_t>(rest, static_cast<std::size_t>(header.bytes)) : 0;
        messages.emplace_back(reinterpret_cast<const char*>(data) + at, sizeof header + payload);
        at += sizeof header + payload;
    }
    const std::int64_t edges[] = {0,         1,        -1, 64, 4096, std::int64_t{1} << 31, std::int64_t{1} << 62,
                                  INT64_MIN, INT64_MAX};
    const auto edge = [&] { return edges[fuzz::below(random, std::size(edges))]; };
    const std::size_t which = fuzz::below(random, messages.size() + 1);
    if (which == messages.size() || fuzz::below(random, 3) == 0) {
        Message header;
        header.kind = static_cast<std::uint32_t>(fuzz::below(random, RankHub::LinkMismatch + 2));
        header.link = static_cast<std::uint32_t>(fuzz::below(random, 8));
        header.a = edge();
        header.b = edge();
        header.time = edge();
        std::string payload(fuzz::below(random, 3) == 0 ? fuzz::below(random, 300) : 0, 'x');
        header.bytes = fuzz::below(random, 6) == 0 ? edge() : static_cast<std::int64_t>(payload.size());
        messages.insert(messages.begin() + static_cast<std::ptrdiff_t>(which),
                        std::string(reinterpret_cast<const char*>(&header), sizeof header) + payload);
    } else {
        Message header;
        std::memcpy(&header, messages[which].data(), sizeof header);
        switch (fuzz::below(random, 7)) {
        case 0: header.kind = static_cast<std::uint32_t>(edge()); break;
        case 1: header.link = static_cast<std::uint32_t>(edge()); break;
        case 2: header.sequence = static_cast<std::uint32_t>(edge()); break;
        case 3: header.bytes = edge(); break;
        case 4: header.time = edge(); break;
        case 5: header.task = static_cast<std::uint32_t>(edge()); break;
        default: header.a = edge(); header.b = edge();
        }
        std::memcpy(messages[which].data(), &header, sizeof header);
    }
    std::string all;
    for (const std::string& message : messages)
        all += message;
    return fuzz::replaceBy(all, data, size, most);
}
