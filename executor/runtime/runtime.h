// SPDX-License-Identifier: GPL-3.0-or-later
// Runs a Program: one actor thread per device walks its own instruction list, and this thread watches. Memory is
// planned and allocated before the first step; during a step nothing is allocated and no thread coordinates the others.
// A step ends when every device has finished its list (a flush). When no device can continue, the run ends with an
// Error that says who waited for whom.
#pragma once

#include "executor/runtime/heldmemory.h"
#include "executor/runtime/peers.h"
#include "executor/runtime/stall.h"

#include <condition_variable>
#include <mutex>
#include <thread>

namespace pipewright {

struct StepOutcome {
    Nanoseconds start = 0, end = 0;
    double loss = 0; ///< NaN when the maths has none
    bool cancelled = false;
    /// How long a device's thread waited for a processor core, on average; -1 where the clock is virtual, the kernel
    /// does not count it or other processes run devices.
    Nanoseconds coreWait = -1;
};

class Runtime {
public:
    /// Plans everything, checks that it fits, and allocates it. Keeps references to all arguments. `recorder` may be
    /// null. Throws Error when the program is not consistent or memory is short.
    Runtime(const Program& program, Backend& backend, StageWork& work, Recorder* recorder, RuntimeOptions options = {});
    ~Runtime();
    Runtime(const Runtime&) = delete;
    Runtime& operator=(const Runtime&) = delete;

    /// One step. Throws Error when it cannot be finished; the runtime cannot be used again. Returns only when no device
    /// runs any more, so a block whose maths never returns blocks it: end the process then.
    StepOutcome runStep(int step);

    std::vector<Bytes> hostPeakBytes() const; ///< of the host's memory, as peakBytes()
    std::vector<Bytes>
    peakBytes() const; ///< per device, measured over the steps so far; 0 where another process runs it
    std::vector<Bytes> arenaBytes() const { return m_arenaBytes; }        ///< per device, without persistent buffers
    const std::vector<HeldMemory>& memory() const { return m_predicted; } ///< per device, from before allocating
    const std::vector<Region>& regions() const { return m_run.regions; }  ///< per buffer

private:
    enum class Verdict { Finished, Cancelled, Failed };

    void allocate();
    std::unique_ptr<HostStore> hostStore(int device, Bytes bytes);
    void predict(std::span<const BufferPlaces> places);
    void plan(std::vector<std::vector<BufferLife>> lifetimes);
    void startActors();
    void endThreads();
    void actorThread(std::size_t device);
    Verdict watch(RunSnapshot& snapshot, std::string& reason);
    bool cancelled() const;
    void publish() const;
    Actor& actor(int device) const { return *m_actors[m_actorOfDevice[device]]; }
    RunSnapshot takeSnapshot() const;
    std::uint64_t totalProgress() const;
    void stopActors();
    [[noreturn]] void fail(const std::string& reason, const RunSnapshot& snapshot);

    Backend& m_backend;
    RunState m_run;
    std::vector<std::unique_ptr<Allocation>> m_memory;
    std::vector<std::unique_ptr<HostStore>> m_hostStores; ///< per device; null: nothing of it is offloaded
    std::vector<Bytes> m_arenaBytes, m_persistentBytes;
    std::vector<HeldMemory> m_predicted;
    std::vector<std::unique_ptr<Actor>> m_actors; ///< of the devices of this process
    std::vector<std::size_t> m_actorOfDevice;
    Peers* m_peers = nullptr;
    std::vector<std::thread> m_threads;
    bool m_inStep = false;  ///< also once a step has thrown
    std::thread m_givingUp; ///< what was in flight when a step failed or was cancelled

    std::atomic<std::uint32_t> m_round{0}; ///< actors run one step whenever it changes
    std::atomic<bool> m_quit{false};
    std::mutex m_mutex;
    std::condition_variable m_finished;
    std::size_t m_running = 0;  ///< guarded by m_mutex
    Nanoseconds m_coreWait = 0; ///< guarded by m_mutex; of the threads that ended this step
};

} // namespace pipewright
