// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/mpi/rankbackend.h"

#include "core/base/diagnostic.h"
#include "executor/cuda/ncclgroup.h"
#include "executor/host/hostbackend.h"
#include "executor/mpi/rankgroup.h"
#include "executor/mpi/remotelink.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <span>
#include <string_view>

namespace pipewright {

namespace {

/// This process's device, or what is known here of another process's device.
class RankDevice final : public Device {
public:
    RankDevice(Device& device, std::string name, const Capabilities& capabilities, bool local)
        : m_device(device), m_name(std::move(name)), m_capabilities(capabilities), m_local(local)
    {
        m_capabilities.hostAddressable = m_capabilities.hostAddressable && local;
        m_capabilities.asynchronous = true;
    }
    std::string name() const override { return m_name; }
    Capabilities capabilities() const override { return m_capabilities; }
    std::unique_ptr<Allocation> allocate(Bytes bytes) override { return m_device.allocate(bytes); }
    Bytes heldBytes() const override { return m_local ? m_device.heldBytes() : 0; }
    Pool memory() const override { return m_local ? m_device.memory() : Pool{}; }
    std::unique_ptr<Stream> createStream() override { return m_device.createStream(); }
    std::unique_ptr<Event> createEvent(Stream& waiter) override { return m_device.createEvent(waiter); }
    std::unique_ptr<kernels::Operations> createOperations(Stream& stream) override
    {
        return m_device.createOperations(stream);
    }
    std::unique_ptr<Stopwatch> createStopwatch(Stream& stream, std::size_t places) override
    {
        return m_device.createStopwatch(stream, places);
    }
    std::unique_ptr<BlockMarks> createBlockMarks(Stream& stream, bool capture) override
    {
        return m_device.createBlockMarks(stream, capture);
    }
    void write(Stream& stream, Region to, const void* from) override { m_device.write(stream, to, from); }
    void read(Stream& stream, Region from, void* to) override { m_device.read(stream, from, to); }
    std::unique_ptr<Allocation> createStaging(Bytes bytes) override { return m_device.createStaging(bytes); }
    void fetch(Stream& stream, Region to, const Device&, Region from) override
    {
        m_device.fetch(stream, to, m_device, from);
    }
    std::unique_ptr<HostStore> createHostStore(Bytes bytes) override { return m_device.createHostStore(bytes); }
    bool reaches(const Device& other) const override { return m_local && &other == this; }

private:
    Device& m_device;
    std::string m_name;
    Capabilities m_capabilities;
    bool m_local;
};

/// How a process describes its GPU to the others.
struct GpuPlace {
    std::int32_t gpu = 0; ///< as it sees it
    std::int32_t bf16Arithmetic = 0;
    char busId[sizeof PipewrightCudaDevice::busId] = {};
};

/// What a process has of GPUs.
class OwnGpu {
public:
    OwnGpu(RankHub& hub, const PipewrightCudaTable& table, const CudaSetup& setup)
        : m_hub(hub), m_order(hub), m_backend(createCudaBackend(table, placed(table, setup))),
          m_stream(m_backend->device(0).createStream()), m_own{hub, m_order, m_owner,
                                                               static_cast<CudaStream&>(*m_stream).gpu(),
                                                               setup.deadline}
    {
    }
    Backend& backend() { return *m_backend; }
    const RankGpu& gpu() const { return m_own; }
    int gpuOf(int process) const { return m_places[process].gpu; }
    /// Whether the GPUs of all processes compute with bf16.
    bool bf16Arithmetic() const
    {
        return std::all_of(m_places.begin(), m_places.end(),
                           [](const GpuPlace& place) { return place.bf16Arithmetic != 0; });
    }

private:
    CudaSetup placed(const PipewrightCudaTable& table, CudaSetup setup)
    {
        std::int32_t gpus = 0;
        if (table.deviceCount(&gpus) != 0)
            throw Error("--device", std::string("GPUs cannot be counted: ") + table.lastError());
        const GpuShare own = ownShare(setup.devices, gpus);
        PipewrightCudaDevice info{};
        if (table.deviceInfo(own.gpu, &info) != 0)
            throw Error("GPU " + std::to_string(own.gpu), std::string("cannot be looked at: ") + table.lastError());
        if (own.multiprocessors > info.multiprocessors)
            throw Error(fmt::format("cluster.gpus[{}]", m_hub.self()),
                        fmt::format("device {} wants {} multiprocessors of GPU {}, which has {}", m_hub.self(),
                                    own.multiprocessors, own.gpu, info.multiprocessors),
                        fmt::format("give it at most {}, or 0 for the whole GPU", info.multiprocessors));
        GpuPlace place{own.gpu, computesWithBf16(info)};
        std::memcpy(place.busId, info.busId, sizeof place.busId);
        tellAll(place);
        refuseSharding(gpus);
        if (setup.nccl.empty())
            throw Error("--device",
                        "NCCL was not found (libnccl.so.2), and GPUs of several processes reach each other by nothing "
                        "else",
                        "name its folder with --cuda-libraries, or leave --device cuda out");
        if (table.ncclOpen(setup.nccl.c_str()) != 0)
            throw Error(setup.nccl, std::string("cannot be used: ") + table.lastError(), "leave --device cuda out");
        setup.devices = {own};
        setup.firstDevice = m_hub.self();
        setup.transport = CudaTransport::Automatic;
        return setup;
    }

    /// The cluster's mapping where it has one. Otherwise the GPU with the process's number among those of the machine.
    /// If fewer GPUs are visible than there are processes, each process may be shown only its own (as Slurm does), and
    /// uses the first.
    GpuShare ownShare(const std::vector<GpuShare>& wanted, int gpus) const
    {
        const RankHub::LocalRank local = m_hub.localRank(m_hub.self());
        if (wanted.empty())
            return {local.count <= gpus ? local.rank : 0, 0};
        if (std::ssize(wanted) < m_hub.count())
            throw Error("cluster.gpus",
                        fmt::format("says where {} devices run, and there are {}", wanted.size(), m_hub.count()),
                        "give one entry per device");
        const GpuShare own = wanted[m_hub.self()];
        if (own.gpu >= gpus)
            throw Error(fmt::format("cluster.gpus[{}]", m_hub.self()),
                        fmt::format("device {} is to run on GPU {}, and its process sees {} of its machine's GPUs",
                                    m_hub.self(), own.gpu, gpus),
                        "with a process per device a number is that of a GPU on the process's machine, counted from 0; "
                        "leave the list out to give each process the next one");
        return own;
    }

    void tellAll(const GpuPlace& own)
    {
        const int self = m_hub.self();
        m_places.resize(static_cast<std::size_t>(m_hub.count()));
        m_places[self] = own;
        for (int r = 0; r < m_hub.count(); ++r)
            if (r != self)
                m_hub.sendSetup(r, m_order.gpuNumber(self), std::as_bytes(std::span(&own, 1)));
        for (int r = 0; r < m_hub.count(); ++r) {
            if (r == self)
                continue;
            const UnfilledVector<std::byte> told = m_hub.awaitSetup(m_order.gpuNumber(r));
            if (told.size() != sizeof(GpuPlace))
                throw Error("ranks", "the processes are of different builds", "start the same program everywhere");
            std::memcpy(&m_places[r], told.data(), sizeof(GpuPlace));
        }
    }

    /// NCCL refuses shared GPUs too, by the same test, but its message does not name the processes.
    void refuseSharding(int gpus) const
    {
        const int self = m_hub.self();
        const std::string_view own = m_places[self].busId;
        for (int r = 0; r < m_hub.count(); ++r)
            if (r != self && m_hub.onOneMachine(r, self) && own == m_places[r].busId)
                throw Error("--device",
                            fmt::format("devices {} and {} would share one GPU ({}), with {} processes on this machine "
                                        "and {} GPUs that they can see: NCCL wants one GPU for each process",
                                        std::min(r, self), std::max(r, self), own, m_hub.localRank(self).count, gpus),
                            "start fewer processes per machine, let each see all its GPUs or one of its own, write "
                            "other numbers in cluster.gpus, or use --backend cuda, where devices share GPUs");
    }

    RankHub& m_hub;
    IssueOrder m_order;
    std::vector<GpuPlace> m_places; ///< per process
    NcclOwner m_owner;
    std::unique_ptr<Backend> m_backend;
    std::unique_ptr<Stream> m_stream;
    RankGpu m_own;
};

class RankBackend final : public Backend {
public:
    RankBackend(std::unique_ptr<Mesh> mesh, Nanoseconds deadline)
        : m_host(createHostBackend(mesh->size())), m_hub(std::move(mesh), deadline)
    {
        nameDevices();
    }
    RankBackend(std::unique_ptr<Mesh> mesh, Nanoseconds deadline, const PipewrightCudaTable& table,
                const CudaSetup& setup)
        : m_host(createHostBackend(mesh->size())), m_hub(std::move(mesh), deadline)
    {
        try {
            m_gpu = std::make_unique<OwnGpu>(m_hub, table, setup);
        } catch (const std::exception& error) {
            m_hub.fail(error.what()); // the others need not wait for this one
            throw;
        }
        nameDevices();
    }
    std::string name() const override { return "mpi"; }
    int devices() const override { return m_hub.count(); }
    Device& device(int index) override { return *m_devices.at(static_cast<std::size_t>(index)); }
    bool isLocal(int device) const override { return device == m_hub.self(); }
    Peers* peers() override { return &m_hub; }
    void beginStep() override
    {
        if (m_gpu)
            m_gpu->backend().beginStep();
    }
    std::string startRecording() override { return m_gpu ? m_gpu->backend().startRecording() : std::string(); }
    std::int64_t untimedRecords() const override { return m_gpu ? m_gpu->backend().untimedRecords() : 0; }
    std::string recorderNote() const override { return m_gpu ? m_gpu->backend().recorderNote() : std::string(); }
    Diagnostics takeNotes() override { return m_gpu ? m_gpu->backend().takeNotes() : Diagnostics(); }
    void expectAttention(std::span<const kernels::GroupedAttentionShape> shapes) override
    {
        if (!m_gpu)
            return;
        m_gpu->backend().expectAttention(shapes);
        nameDevices();
    }
    std::int64_t takeRecords(std::int32_t step, std::vector<GpuRecord>& records) override
    {
        return m_gpu ? m_gpu->backend().takeRecords(step, records) : 0;
    }
    std::unique_ptr<Link> createLink(int from, int to, const LinkOptions& options) override
    {
        if (m_gpu)
            return createRankLink(m_gpu->gpu(), from, to, options);
        const Bytes storage = isLocal(from) ? remoteLinkStorage(options) : 0;
        return createRemoteLink(m_hub, from, to, options,
                                storage > 0 ? m_host->device(from).allocate(storage) : nullptr);
    }
    LinkMemory linkMemory(int, int, const LinkOptions& options) const override
    {
        return {m_gpu ? 0 : remoteLinkStorage(options), 0};
    }
    /// Creates this process's communicator alone, at its place among the members; the others stay null.
    std::vector<std::unique_ptr<Communicator>> createCommunicators(std::span<const int> members) override
    {
        std::vector<std::unique_ptr<Communicator>> communicators(m_gpu ? members.size() : 0);
        for (std::size_t rank = 0; rank < communicators.size(); ++rank)
            if (isLocal(members[rank]))
                communicators[rank] = createRankGroup(m_gpu->gpu(), members);
        return communicators;
    }
    bool hasCommunicators(std::span<const int>) override { return m_gpu != nullptr; }
    std::unique_ptr<PairSum> createPairSum(int first, int second, std::size_t sums) override
    {
        return m_gpu ? createRankSum(m_gpu->gpu(), first, second, sums) : nullptr;
    }
    void giveUp(std::span<Abortable* const> all) override
    {
        if (m_gpu)
            giveUpTogether(*m_gpu->gpu().gpu.table, all);
        else
            Backend::giveUp(all);
    }

private:
    /// Creates the devices again when their capabilities have changed.
    void nameDevices()
    {
        m_devices.clear();
        for (int d = 0; d < m_hub.count(); ++d) {
            Device& device = m_gpu && isLocal(d) ? m_gpu->backend().device(0) : m_host->device(d);
            // A capability counts only where all processes have it.
            Capabilities same = (m_gpu ? m_gpu->backend().device(0) : device).capabilities();
            same.bf16Arithmetic = m_gpu && m_gpu->bf16Arithmetic();
            m_devices.push_back(std::make_unique<RankDevice>(
                device, m_gpu ? fmt::format("rank {}, GPU {}", d, m_gpu->gpuOf(d)) : fmt::format("rank {}", d), same,
                isLocal(d)));
        }
    }

    std::unique_ptr<Backend> m_host;
    RankHub m_hub;
    std::unique_ptr<OwnGpu> m_gpu;
    std::vector<std::unique_ptr<RankDevice>> m_devices;
};

} // namespace

std::unique_ptr<Backend> createRankBackend(std::unique_ptr<Mesh> mesh, Nanoseconds deadline)
{
    return std::make_unique<RankBackend>(std::move(mesh), deadline);
}

std::unique_ptr<Backend> createRankBackend(std::unique_ptr<Mesh> mesh, Nanoseconds deadline,
                                           const PipewrightCudaTable& table, const CudaSetup& setup)
{
    return std::make_unique<RankBackend>(std::move(mesh), deadline, table, setup);
}

} // namespace pipewright
