// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/cuda/cudabackend.h"

#include "core/base/diagnostic.h"
#include "core/base/formattedtext.h"
#include "executor/cuda/cudaclock.h"
#include "executor/cuda/cudahoststore.h"
#include "executor/cuda/cudaoperations.h"
#include "executor/cuda/ncclgroup.h"
#include "executor/cuda/nccllink.h"
#include "executor/cuda/ncclsum.h"

#include <algorithm>
#include <atomic>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>

namespace pipewright {

namespace {

class CudaAllocation final : public Allocation {
public:
    CudaAllocation(const CudaGpu& gpu, Bytes bytes, int device, std::atomic<Bytes>& held)
        : m_gpu(gpu), m_bytes(bytes), m_held(held)
    {
        if (gpu.table->allocate(gpu.index, bytes, &m_data) != 0)
            throw Error("device " + std::to_string(device),
                        "cannot allocate " + formatSize(bytes) + " on GPU " + std::to_string(gpu.index) + ": "
                            + gpu.table->lastError(),
                        "use fewer or smaller microbatches, or another schedule");
        m_held += m_bytes;
    }
    ~CudaAllocation() override
    {
        m_gpu.table->release(m_gpu.index, m_data);
        m_held -= m_bytes;
    }
    CudaAllocation(const CudaAllocation&) = delete;
    CudaAllocation& operator=(const CudaAllocation&) = delete;
    Region region() const override { return {static_cast<std::byte*>(m_data), m_bytes}; }

private:
    CudaGpu m_gpu;
    Bytes m_bytes;
    std::atomic<Bytes>& m_held;
    void* m_data = nullptr;
};

class CudaStaging final : public Allocation {
public:
    CudaStaging(const CudaGpu& gpu, Bytes bytes) : m_gpu(gpu), m_bytes(bytes)
    {
        gpu.check(gpu.table->allocateHost(bytes, &m_data), "have host memory for what is copied before a step");
    }
    ~CudaStaging() override { m_gpu.table->releaseHost(m_data); }
    CudaStaging(const CudaStaging&) = delete;
    CudaStaging& operator=(const CudaStaging&) = delete;
    Region region() const override { return {static_cast<std::byte*>(m_data), m_bytes}; }

private:
    CudaGpu m_gpu;
    Bytes m_bytes;
    void* m_data = nullptr;
};

/// Enables peer access between pairs of GPUs, on first use of each pair.
class GpuReach {
public:
    explicit GpuReach(const PipewrightCudaTable& table) : m_table(table) {}

    void open(const CudaGpu& gpu, int other)
    {
        const std::lock_guard lock(m_mutex);
        if (gpu.index == other || !m_open.insert(std::minmax(gpu.index, other)).second)
            return;
        std::int32_t direct = 0; // if not, the driver copies through the host
        gpu.check(m_table.enablePeer(gpu.index, other, &direct), "reach another GPU");
    }

private:
    const PipewrightCudaTable& m_table;
    std::mutex m_mutex; ///< guards what follows
    std::set<std::pair<int, int>> m_open;
};

class CudaDevice final : public Device {
public:
    CudaDevice(const CudaGpu& gpu, int index, std::string name, const PipewrightCudaDevice& info,
               const CudaSetup& setup, GpuReach& reach, MathsNotes& notes)
        : m_gpu(gpu), m_index(index), m_name(std::move(name)),
          m_memory(info.memory), m_maths{setup.cublasLt, setup.bfloat16, computesWithBf16(info), setup.cudnn,
                                         setup.attention},
          m_reach(reach), m_notes(notes)
    {
    }
    std::string name() const override { return m_name; }
    Capabilities capabilities() const override
    {
        return {.hostAddressable = false,
                .asynchronous = true,
                .flashAttention = true,
                .bf16Arithmetic = m_maths.computesWithStored,
                .workspaceBytes =
                    PIPEWRIGHT_MATHS_WORKSPACE + std::max<Bytes>(0, m_forAttention - PIPEWRIGHT_PRODUCT_WORKSPACE)};
    }
    void expectAttention(std::span<const kernels::GroupedAttentionShape> shapes)
    {
        if (m_maths.attention == CudaAttention::Own || m_maths.cudnn.empty() || !m_maths.computesWithStored)
            return;
        const CudaStream stream(m_gpu);
        for (const kernels::GroupedAttentionShape& shape : shapes) {
            Bytes bytes = 0;
            m_gpu.check(m_gpu.table->attentionWorkspace(m_gpu.index, stream.handle(), m_maths.cudnn.c_str(), &shape,
                                                        sizeof shape, &bytes),
                        "plan its attention");
            constexpr Bytes line = 256; // the row scratch of other maths follows it, aligned
            if (m_maths.attention == CudaAttention::Cudnn || bytes <= m_memory / attentionShareOfMemory)
                m_forAttention = std::max(m_forAttention, (bytes + line - 1) / line * line);
        }
    }
    std::unique_ptr<Allocation> allocate(Bytes bytes) override
    {
        return std::make_unique<CudaAllocation>(m_gpu, bytes, m_index, m_held);
    }
    Bytes heldBytes() const override { return m_held; }
    Pool memory() const override { return {m_memory, m_gpu.index}; }
    std::unique_ptr<Stream> createStream() override { return std::make_unique<CudaStream>(m_gpu); }
    std::unique_ptr<Event> createEvent(Stream& waiter) override
    {
        return std::make_unique<CudaEvent>(m_gpu, static_cast<CudaStream&>(waiter));
    }
    std::unique_ptr<kernels::Operations> createOperations(Stream& stream) override
    {
        if (!m_room)
            m_room = allocate(capabilities().workspaceBytes);
        return createCudaOperations(static_cast<CudaStream&>(stream), m_maths, m_room->region(), m_notes);
    }
    std::unique_ptr<Stopwatch> createStopwatch(Stream& stream, std::size_t places) override
    {
        return std::make_unique<CudaStopwatch>(static_cast<CudaStream&>(stream), *m_gpu.clock, places);
    }
    std::unique_ptr<BlockMarks> createBlockMarks(Stream& stream, bool) override
    {
        return std::make_unique<CudaBlockMarks>(static_cast<CudaStream&>(stream));
    }
    void write(Stream& stream, Region to, const void* from) override
    {
        move(stream, to.data, m_gpu.index, from, -1, to.bytes);
    }
    void read(Stream& stream, Region from, void* to) override
    {
        move(stream, to, -1, from.data, m_gpu.index, from.bytes);
    }
    std::unique_ptr<Allocation> createStaging(Bytes bytes) override
    {
        return std::make_unique<CudaStaging>(m_gpu, bytes);
    }
    void fetch(Stream& stream, Region to, const Device& owner, Region from) override
    {
        const int other = static_cast<const CudaDevice&>(owner).m_gpu.index;
        if (to.bytes == 0)
            return;
        m_reach.open(m_gpu, other);
        m_gpu.check(m_gpu.table->copy(to.data, m_gpu.index, from.data, other, to.bytes,
                                      static_cast<CudaStream&>(stream).handle()),
                    "copy");
    }
    std::unique_ptr<HostStore> createHostStore(Bytes bytes) override
    {
        return std::make_unique<CudaHostStore>(m_gpu, bytes);
    }
    bool reaches(const Device& other) const override
    {
        return static_cast<const CudaDevice&>(other).m_gpu.index == m_gpu.index;
    }

private:
    void move(Stream& stream, void* to, int toGpu, const void* from, int fromGpu, Bytes bytes)
    {
        if (bytes > 0)
            m_gpu.check(m_gpu.table->copy(to, toGpu, from, fromGpu, bytes, static_cast<CudaStream&>(stream).handle()),
                        "copy");
        // The caller may reuse its host memory afterwards, so this waits even if the stream is interrupted.
        static_cast<CudaStream&>(stream).finish();
    }

    CudaGpu m_gpu;
    int m_index;
    std::string m_name;
    Bytes m_memory; ///< of the whole GPU
    CudaMaths m_maths;
    std::atomic<Bytes> m_held{0};
    GpuReach& m_reach;
    MathsNotes& m_notes;
    Bytes m_forAttention = 0;           ///< of workspace
    std::unique_ptr<Allocation> m_room; ///< of the maths; allocated by the first createOperations()
};

struct EndSlice {
    void operator()(void* slice) const { table->destroySlice(slice); }
    const PipewrightCudaTable* table = nullptr;
};

class CudaBackend final : public Backend {
public:
    CudaBackend(const PipewrightCudaTable& table, const CudaSetup& setup) : m_table(table), m_setup(setup)
    {
        for (const GpuShare& share : setup.devices)
            m_gpus.push_back({&table, share.gpu, nullptr, nullptr});
        if (sendsByNccl())
            openNccl();
        if (setup.attention == CudaAttention::Cudnn && setup.cudnn.empty())
            throw Error("--attention", "cuDNN was not found (libcudnn.so.9)",
                        "name its folder with --cuda-libraries, or leave --attention out");
        for (CudaGpu& gpu : m_gpus) {
            auto& clock = m_clocks[gpu.index];
            if (!clock)
                clock = std::make_unique<CudaClock>(gpu);
            gpu.clock = clock.get();
        }
        cutSlices();
        for (std::size_t d = 0; d < m_gpus.size(); ++d) {
            PipewrightCudaDevice info{};
            m_gpus[d].check(table.deviceInfo(m_gpus[d].index, &info), "be looked at");
            if (setup.attention == CudaAttention::Cudnn && !computesWithBf16(info))
                throw Error("--attention",
                            fmt::format("GPU {} ({}) does not multiply bf16, and cuDNN's attention is for that",
                                        m_gpus[d].index, info.name),
                            "leave it out");
            m_devices.push_back(std::make_unique<CudaDevice>(m_gpus[d], setup.firstDevice + static_cast<int>(d),
                                                             nameOf(static_cast<int>(d), info), info, setup, m_reach,
                                                             m_notes));
        }
    }
    ~CudaBackend() override
    {
        m_owners.clear();
        if (m_records)
            m_table.stopActivities();
    }
    std::string name() const override { return "cuda"; }
    int devices() const override { return static_cast<int>(m_devices.size()); }
    Device& device(int index) override { return *m_devices.at(static_cast<std::size_t>(index)); }
    void beginStep() override
    {
        for (auto& [gpu, clock] : m_clocks)
            clock->compare();
    }
    std::string startRecording() override
    {
        if (!m_setup.recordKernels)
            return {};
        if (m_setup.cupti.empty())
            return "CUPTI was not found: pipewright devices says which file it is";
        m_records = m_table.startActivities(m_setup.cupti.c_str()) == 0;
        return m_records ? std::string() : m_table.lastError();
    }
    std::int64_t takeRecords(std::int32_t step, std::vector<GpuRecord>& records) override;
    std::int64_t untimedRecords() const override { return m_untimed; }
    std::string recorderNote() const override
    {
        const char* const what = m_records ? m_table.recorderNote() : nullptr;
        return what ? what : std::string();
    }
    Diagnostics takeNotes() override { return m_notes.take(); }
    void expectAttention(std::span<const kernels::GroupedAttentionShape> shapes) override
    {
        for (const auto& device : m_devices)
            device->expectAttention(shapes);
    }
    std::unique_ptr<Link> createLink(int from, int to, const LinkOptions& options) override
    {
        const CudaGpu &sender = m_gpus.at(static_cast<std::size_t>(from)),
                      &receiver = m_gpus.at(static_cast<std::size_t>(to));
        if (connectsByNccl(from, to))
            return std::make_unique<NcclLink>(sender, receiver, owner(sender.index), owner(receiver.index), options,
                                              m_setup.deadline);
        m_reach.open(sender, receiver.index);
        const LinkMemory memory = CudaLink::memoryFor(options);
        return std::make_unique<CudaLink>(sender, receiver, options,
                                          memory.sender > 0 ? device(from).allocate(memory.sender) : nullptr,
                                          device(to).allocate(memory.receiver));
    }
    LinkMemory linkMemory(int from, int to, const LinkOptions& options) const override
    {
        return connectsByNccl(from, to) ? LinkMemory{} : CudaLink::memoryFor(options);
    }
    std::vector<std::unique_ptr<Communicator>> createCommunicators(std::span<const int> members) override
    {
        if (!hasCommunicators(members))
            return {};
        std::vector<CudaGpu> gpus;
        std::vector<NcclOwner*> owners;
        for (const int member : members) {
            gpus.push_back(m_gpus.at(static_cast<std::size_t>(member)));
            owners.push_back(&owner(gpus.back().index));
        }
        return joinNccl(gpus, owners, m_setup.deadline);
    }
    bool hasCommunicators(std::span<const int> members) override
    {
        const bool asked = sendsByNccl();
        if (!mayUseNccl() || (!asked && m_setup.nccl.empty()))
            return false;
        std::set<int> gpus;
        for (const int member : members)
            gpus.insert(m_gpus.at(static_cast<std::size_t>(member)).index);
        if (gpus.size() < members.size()) {
            if (!asked)
                return false;
            throw Error("--link",
                        fmt::format("{} devices share {} GPUs, and NCCL connects a GPU with others only",
                                    members.size(), gpus.size()),
                        "use --link copy, or one GPU for each device");
        }
        if (!asked && !m_ncclOpens)
            m_ncclOpens = m_table.ncclOpen(m_setup.nccl.c_str()) == 0;
        return asked || *m_ncclOpens;
    }
    std::unique_ptr<PairSum> createPairSum(int first, int second, std::size_t sums) override
    {
        const CudaGpu &a = m_gpus.at(static_cast<std::size_t>(first)), &b = m_gpus.at(static_cast<std::size_t>(second));
        if (!sendsByNccl() || a.index == b.index)
            return nullptr;
        return std::make_unique<NcclSum>(std::array{first, second}, std::array{a, b},
                                         std::array{&owner(a.index), &owner(b.index)}, sums, m_setup.deadline);
    }
    void giveUp(std::span<Abortable* const> all) override
    {
        if (m_owners.empty())
            Backend::giveUp(all);
        else
            giveUpTogether(m_table, all);
    }

private:
    bool sendsByNccl() const
    {
        switch (m_setup.transport) {
        case CudaTransport::Nccl: return true;
        case CudaTransport::Automatic:
        case CudaTransport::Copy: return false;
        }
        return false;
    }
    bool mayUseNccl() const ///< for collectives
    {
        switch (m_setup.transport) {
        case CudaTransport::Nccl:
        case CudaTransport::Automatic: return true;
        case CudaTransport::Copy: return false;
        }
        return false;
    }

    bool connectsByNccl(int from, int to) const
    {
        return sendsByNccl()
               && m_gpus.at(static_cast<std::size_t>(from)).index != m_gpus.at(static_cast<std::size_t>(to)).index;
    }

    NcclOwner& owner(int gpu)
    {
        auto& thread = m_owners[gpu];
        if (!thread)
            thread = std::make_unique<NcclOwner>();
        return *thread;
    }

    void openNccl()
    {
        if (m_setup.nccl.empty())
            throw Error("--link", "NCCL was not found (libnccl.so.2)",
                        "name its folder with --cuda-libraries, or use --link copy");
        if (m_table.ncclOpen(m_setup.nccl.c_str()) != 0)
            throw Error(m_setup.nccl, std::string("cannot be used: ") + m_table.lastError(), "use --link copy");
    }

    /// Makes the slices of GPUs whose pipeline devices ask for a number of multiprocessors.
    void cutSlices()
    {
        std::map<int, std::vector<std::size_t>> devicesOfGpu;
        for (std::size_t d = 0; d < m_gpus.size(); ++d)
            if (m_setup.devices[d].multiprocessors > 0)
                devicesOfGpu[m_gpus[d].index].push_back(d);
        for (const auto& [gpu, devices] : devicesOfGpu) {
            std::vector<std::int32_t> wanted, granted(devices.size());
            for (const std::size_t d : devices)
                wanted.push_back(m_setup.devices[d].multiprocessors);
            std::vector<void*> slices(devices.size());
            if (m_table.createSlices(gpu, wanted.data(), static_cast<std::int32_t>(wanted.size()), granted.data(),
                                     slices.data())
                != 0)
                throw Error("GPU " + std::to_string(gpu),
                            fmt::format("cannot be cut into {} slices of {} multiprocessors: {}", wanted.size(),
                                        joined(wanted, ", "), m_table.lastError()),
                            "ask for fewer, or leave the slices out: the devices then share the whole GPU");
            for (std::size_t i = 0; i < devices.size(); ++i) {
                m_gpus[devices[i]].slice = slices[i];
                m_granted[static_cast<int>(devices[i])] = granted[i];
                m_slices.emplace_back(slices[i], EndSlice{&m_table});
            }
        }
    }

    std::string nameOf(int device, const PipewrightCudaDevice& info) const
    {
        const CudaGpu& gpu = m_gpus[device];
        const auto granted = m_granted.find(device);
        return fmt::format(
            "GPU {} ({}){}, device {}", gpu.index, info.name,
            granted == m_granted.end() ? std::string() : fmt::format(", {} multiprocessors", granted->second), device);
    }

    const PipewrightCudaTable& m_table;
    const CudaSetup m_setup;
    std::vector<CudaGpu> m_gpus; ///< per device
    std::map<int, std::unique_ptr<CudaClock>> m_clocks;
    std::map<int, std::unique_ptr<NcclOwner>> m_owners;
    std::optional<bool> m_ncclOpens; ///< set once opening NCCL was tried under Automatic
    std::map<int, int> m_granted;    ///< multiprocessors of a device that has a slice
    std::vector<std::unique_ptr<void, EndSlice>> m_slices;
    bool m_records = false; ///< CUPTI records
    std::int64_t m_untimed = 0;
    GpuReach m_reach{m_table};
    MathsNotes m_notes;
    std::vector<std::unique_ptr<CudaDevice>> m_devices;
};

/// The switch covers all kinds: a plugin with another version of the table is refused.
GpuRecord::Kind kindOf(std::int32_t kind)
{
    switch (static_cast<PipewrightGpuActivityKind>(kind)) {
    case PIPEWRIGHT_GPU_KERNEL: return GpuRecord::Kind::Kernel;
    case PIPEWRIGHT_GPU_COPY: return GpuRecord::Kind::Copy;
    case PIPEWRIGHT_GPU_SET: return GpuRecord::Kind::Set;
    case PIPEWRIGHT_GPU_OVERHEAD: return GpuRecord::Kind::Overhead;
    case PIPEWRIGHT_GPU_MEMORY: return GpuRecord::Kind::Memory;
    case PIPEWRIGHT_GPU_CALL: return GpuRecord::Kind::Call;
    }
    return GpuRecord::Kind::Kernel;
}

struct Taken {
    std::int32_t step;
    std::vector<GpuRecord>& records;
};

/// Called by the plugin with what its recorder has seen.
extern "C" void takeActivities(void* context, const PipewrightGpuActivity* activities, std::int32_t count)
{
    Taken& taken = *static_cast<Taken*>(context);
    for (const PipewrightGpuActivity& each : std::span(activities, static_cast<std::size_t>(count)))
        taken.records.push_back({taken.step, each.block < 0 ? none : static_cast<TaskId>(each.block), kindOf(each.kind),
                                 each.name, each.device, each.stream, each.start, each.end, each.bytes, each.copyKind,
                                 each.toDevice, each.correlation, each.graphNode, each.thread});
}

std::int64_t CudaBackend::takeRecords(std::int32_t step, std::vector<GpuRecord>& records)
{
    if (!m_records)
        return 0;
    Taken taken{step, records};
    std::int64_t dropped = 0, untimed = 0;
    m_gpus.front().check(m_table.flushActivities(takeActivities, &taken, &dropped, &untimed), "read its recorder");
    m_untimed += untimed;
    return dropped;
}

} // namespace

CudaTransport cudaTransportNamed(std::string_view name)
{
    std::vector<std::string_view> known;
    for (const CudaTransport transport : cudaTransports) {
        if (nameOf(transport) == name)
            return transport;
        known.push_back(nameOf(transport));
    }
    throw Error("--link", fmt::format("\"{}\" is no way between GPUs", name),
                fmt::format("use one of {}", joined(known, ", ")));
}

std::unique_ptr<Backend> createCudaBackend(const PipewrightCudaTable& table, const CudaSetup& setup)
{
    return std::make_unique<CudaBackend>(table, setup);
}

} // namespace pipewright
