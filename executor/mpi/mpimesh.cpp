// SPDX-License-Identifier: GPL-3.0-or-later
// Non-blocking MPI sends and receives, polled by one thread: a posted receive for headers from any rank, and one for
// each payload that a header announces.
#include "executor/mpi/mpimesh.h"

#include "core/base/diagnostic.h"
#include "executor/runtime/clock.h"

#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>
#include <list>
#include <mutex>
#include <thread>

namespace pipewright {

namespace {

constexpr int headerTag = 1, payloadTag = 2;
constexpr Bytes largestPiece = Bytes{1} << 30; // a count is an int

class MpiMesh final : public Mesh {
public:
    MpiMesh()
    {
        int provided = 0;
        MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
        if (provided < MPI_THREAD_SERIALIZED)
            throw Error("mpi", "this MPI library lets only the first thread communicate",
                        "use a build with thread support");
        MPI_Comm_rank(MPI_COMM_WORLD, &m_rank);
        MPI_Comm_size(MPI_COMM_WORLD, &m_size);
        expectHeader();
    }
    int rank() const override { return m_rank; }
    int size() const override { return m_size; }

    void send(int to, Message message, std::vector<Region> payload, std::uint64_t ticket) override
    {
        message.bytes = 0;
        for (const Region& region : payload)
            message.bytes += region.bytes;
        Sending& sending = m_sending.emplace_back();
        sending.header = message;
        sending.ticket = ticket;
        MPI_Isend(&sending.header, sizeof(Message), MPI_BYTE, to, headerTag, MPI_COMM_WORLD,
                  &sending.requests.emplace_back());
        forPieces(payload, message.bytes, [&](MPI_Datatype type) {
            MPI_Isend(MPI_BOTTOM, 1, type, to, payloadTag, MPI_COMM_WORLD, &sending.requests.emplace_back());
        });
    }

    bool poll(MeshHandler& handler) override
    {
        bool busy = false;
        for (auto each = m_sending.begin(); each != m_sending.end();) {
            if (!allDone(each->requests)) {
                ++each;
                continue;
            }
            const std::uint64_t ticket = each->ticket;
            each = m_sending.erase(each);
            handler.sent(ticket);
            busy = true;
        }
        for (;;) {
            int arrived = 0;
            MPI_Status status;
            MPI_Test(&m_headerRequest, &arrived, &status);
            if (!arrived)
                break;
            busy = true;
            Receiving& receiving = m_receiving.emplace_back();
            receiving.from = status.MPI_SOURCE;
            receiving.header = m_header;
            expectHeader();
            if (receiving.header.bytes != 0) {
                const std::vector<Region> places = handler.place(receiving.from, receiving.header);
                if (totalBytes(places) != receiving.header.bytes) {
                    const int from = receiving.from;
                    m_receiving.pop_back();
                    handler.lost(from);
                    break;
                }
                forPieces(places, receiving.header.bytes, [&](MPI_Datatype type) {
                    MPI_Irecv(MPI_BOTTOM, 1, type, receiving.from, payloadTag, MPI_COMM_WORLD,
                              &receiving.requests.emplace_back());
                });
            }
            // Messages of one sender stay in order; only those of other senders may overtake one that is still in
            // flight.
            deliver(handler);
        }
        return deliver(handler) || busy;
    }

    void idle(Nanoseconds atMost) override
    {
        std::this_thread::sleep_for(std::chrono::nanoseconds(std::min<Nanoseconds>(atMost, 100'000)));
    }

    /// When the run failed, MPI_Finalize is not called, since it would wait for processes that may be gone. Instead
    /// this process aborts the rest when it exits, with a code that mpirun passes on.
    void close(bool orderly) override
    {
        if (!orderly) {
            static int ownRank = 0;
            ownRank = m_rank;
            std::at_quick_exit([] { // runs when the program ends
                std::fflush(nullptr);
                if (ownRank != 0) // gives rank 0 time to print its message first, unless rank 0 is gone
                    std::this_thread::sleep_for(std::chrono::seconds(3));
                MPI_Abort(MPI_COMM_WORLD, 2);
            });
            return;
        }
        MPI_Cancel(&m_headerRequest);
        MPI_Wait(&m_headerRequest, MPI_STATUS_IGNORE);
        MPI_Finalize();
    }

private:
    struct Sending {
        Message header;
        std::list<MPI_Request> requests;
        std::uint64_t ticket = 0;
    };
    struct Receiving {
        int from = 0;
        Message header;
        std::list<MPI_Request> requests;
    };

    /// The two sides may hold the bytes in different regions. So a payload is sent as one contiguous message (or
    /// several, above the limit of an int count), and each side describes with an MPI type where the bytes are in its
    /// memory.
    template<typename Use>
    static void forPieces(const std::vector<Region>& regions, Bytes total, Use use)
    {
        for (Bytes begin = 0; begin < total; begin += largestPiece) {
            const Bytes end = std::min(total, begin + largestPiece);
            std::vector<int> lengths;
            std::vector<MPI_Aint> places;
            Bytes at = 0;
            for (const Region& region : regions) {
                const Bytes from = std::max(begin, at), to = std::min(end, at + region.bytes);
                if (from < to) {
                    lengths.push_back(static_cast<int>(to - from));
                    MPI_Get_address(region.data + (from - at), &places.emplace_back());
                }
                at += region.bytes;
            }
            MPI_Datatype type = MPI_DATATYPE_NULL;
            MPI_Type_create_hindexed(static_cast<int>(lengths.size()), lengths.data(), places.data(), MPI_BYTE, &type);
            MPI_Type_commit(&type);
            use(type);
            MPI_Type_free(&type); // once the communication with it has ended
        }
    }

    static bool allDone(std::list<MPI_Request>& requests)
    {
        for (auto each = requests.begin(); each != requests.end();) {
            int done = 0;
            MPI_Test(&*each, &done, MPI_STATUS_IGNORE);
            if (!done)
                return false;
            each = requests.erase(each);
        }
        return true;
    }

    bool deliver(MeshHandler& handler)
    {
        bool busy = false;
        std::vector<bool> blocked(static_cast<std::size_t>(m_size));
        for (auto each = m_receiving.begin(); each != m_receiving.end();) {
            const auto from = static_cast<std::size_t>(each->from);
            if (blocked[from] || !allDone(each->requests)) {
                blocked[from] = true;
                ++each;
                continue;
            }
            const Receiving receiving = std::move(*each);
            each = m_receiving.erase(each);
            handler.received(receiving.from, receiving.header);
            busy = true;
        }
        return busy;
    }

    void expectHeader()
    {
        MPI_Irecv(&m_header, sizeof(Message), MPI_BYTE, MPI_ANY_SOURCE, headerTag, MPI_COMM_WORLD, &m_headerRequest);
    }

    int m_rank = 0, m_size = 1;
    Message m_header;
    MPI_Request m_headerRequest = MPI_REQUEST_NULL;
    std::list<Sending> m_sending;
    std::list<Receiving> m_receiving;
};

} // namespace

std::unique_ptr<Mesh> createMpiMesh(Nanoseconds deadline, const std::atomic<bool>* cancel,
                                    const std::function<void(const std::string& why)>& giveUp)
{
    std::mutex mutex;
    std::condition_variable changed;
    bool up = false;
    std::thread watch([&, until = steadyNow() + deadline] {
        std::unique_lock lock(mutex);
        while (!changed.wait_for(lock, std::chrono::milliseconds(100), [&] { return up; })) {
            if (cancel && cancel->load())
                giveUp("cancelled before all processes had come");
            if (steadyNow() > until)
                giveUp(fmt::format("not every process has come within {}: one has ended, stands still or was never "
                                   "started",
                                   formatDuration(deadline)));
        }
    });
    const auto join = [&] {
        {
            const std::lock_guard lock(mutex);
            up = true;
        }
        changed.notify_all();
        watch.join();
    };
    try {
        auto mesh = std::make_unique<MpiMesh>();
        join();
        return mesh;
    } catch (...) {
        join();
        throw;
    }
}

std::string mpiVersion()
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
    int length = 0;
    MPI_Get_library_version(text, &length);
    const std::string whole(text, static_cast<std::size_t>(length));
    return whole.substr(0, whole.find_first_of(",\n"));
}

} // namespace pipewright
