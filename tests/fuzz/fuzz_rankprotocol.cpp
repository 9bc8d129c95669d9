// SPDX-License-Identifier: GPL-3.0-or-later
// What another process of a run sends, whatever it is: rank 0 stays answerable, counts it as gone when its connection
// ends, and ends itself. The input is the stream of messages behind the introduction.
#include "executor/mpi/rankhub.h"
#include "executor/mpi/rankrecords.h"
#include "executor/mpi/socketmesh.h"
#include "executor/runtime/clock.h"
#include "structured.h"
#include "survive.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <thread>
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

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    int pair[2];
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        std::abort();
    const int peer = pair[1];
    const Message introduction[2] = {
        {.kind = RankHub::Hello, .time = 1, .a = ::getpid(), .b = 2},
        {.kind = RankHub::Clock, .time = 0, .a = 0, .b = 0},
    };
    fuzz::require(writeAll(peer, introduction, sizeof introduction));
    fuzz::survives([&] {
        RankHub hub(createSocketMesh(0, {-1, pair[0]}), 2'000'000'000);
        NoSink nowhere;
        GatheringSink gathered(hub, nowhere);
        (void)writeAll(peer, data, size);
        ::shutdown(peer, SHUT_WR);
        const Nanoseconds until = steadyNow() + 8'000'000'000; // a message may announce a gibibyte, which is made ready
        while (!hub.gone(1) && steadyNow() < until)
            std::this_thread::sleep_for(std::chrono::microseconds(50));
        fuzz::require(hub.gone(1));
        fuzz::survives([&] { gathered.commit(); });
        fuzz::survives([&] { (void)unpack(gathered.takeOthers(), [](BufferId) { return Region{}; }); });
        (void)hub.failureReason();
        (void)hub.standing(1);
        (void)hub.clockOffset(1);
    });
    ::close(peer);
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
