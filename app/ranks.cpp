// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/ranks.h"

#include "app/cancel.h"
#include "app/command.h"
#include "app/terminal.h"

#include "core/base/diagnostic.h"
#include "core/base/findprogram.h"
#include "executor/mpi/ranksecret.h"
#include "executor/mpi/tcp.h"
#include "executor/torch/rankprocesses.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <optional>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

namespace pipewright::app {

namespace {

constexpr const char* loopback = "127.0.0.1";

/// Keeps a port of the loopback address for rank 0, which listens there: no other program is given it meanwhile.
class KeptPort {
public:
    KeptPort() : m_socket(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0))
    {
        const int on = 1;
        const TcpAddress place = addressesOf(loopback, 0, 0).front();
        // Both ends of this have to allow it, and neither listens yet.
        if (m_socket < 0 || setsockopt(m_socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0
            || bind(m_socket, reinterpret_cast<const sockaddr*>(&place.address), place.length) != 0)
            throw Error("--backend", std::string("no port for the processes to meet at: ") + std::strerror(errno),
                        "close some files or programs");
    }
    ~KeptPort() { close(m_socket); }
    KeptPort(const KeptPort&) = delete;
    KeptPort& operator=(const KeptPort&) = delete;

    int number() const { return ownAddressOf(m_socket).port(); }

private:
    int m_socket;
};

} // namespace

int runOnLocalRanks(int devices, Nanoseconds deadline)
{
    using Clock = std::chrono::steady_clock;
    // Once rank 0 has ended, or another one has failed: then each notices within the deadline that nothing goes on.
    const std::chrono::nanoseconds patience = std::chrono::seconds(10) + std::chrono::nanoseconds(deadline);
    const KeptPort port;
    const std::string secret = freshSecret();
    std::vector<ProcessToStart> wanted;
    for (int rank = 0; rank < devices; ++rank)
        wanted.push_back({.words = ownCommand(),
                          .environment = {{"RANK", std::to_string(rank)},
                                          {"WORLD_SIZE", std::to_string(devices)},
                                          {"MASTER_ADDR", loopback},
                                          {"MASTER_PORT", std::to_string(port.number() - 1)},
                                          {rankSecretVariable, secret}},
                          .ownOutput = rank == 0});
    const std::atomic<bool>* cancelled = cancelOnSignals();
    RankProcesses ranks(wanted);
    std::optional<int> first;
    std::optional<Clock::time_point> over;
    for (bool told = false; ranks.anyRuns() && (!over || Clock::now() - *over < patience);) {
        if (*cancelled && !std::exchange(told, true))
            ranks.send(SIGTERM);
        for (const ProcessEvent& event : ranks.wait())
            if (event.ended && (event.process == 0 || event.status != 0)) {
                if (event.process == 0)
                    first = event.status;
                over = over.value_or(Clock::now());
            }
    }
    if (first && WIFEXITED(*first))
        return WEXITSTATUS(*first);
    printDiagnostics({{Severity::Error, "rank 0", first ? endText(*first) : "has not ended",
                       "look at what the other ranks said; the trace has the steps that are over"}});
    return exitBadInput;
}

} // namespace pipewright::app
