// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/mpi/rankbackend.h"

#include "core/base/diagnostic.h"
#include "executor/host/hostbackend.h"
#include "executor/mpi/rankpair.h"
#include "executor/mpi/remotelink.h"

#include <fmt/format.h>

namespace pipewright {

namespace {

/// The own device, or what is known here of another process's.
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
    void fetch(Stream& stream, Region to, const Device&, Region from) override
    {
        m_device.fetch(stream, to, m_device, from);
    }
    bool reaches(const Device& other) const override { return m_local && &other == this; }

private:
    Device& m_device;
    std::string m_name;
    Capabilities m_capabilities;
    bool m_local;
};

/// What a process has of GPUs.
class OwnGpu {
public:
    OwnGpu(RankHub& hub, const PipewrightCudaTable& table, const CudaSetup& setup)
        : m_order(hub), m_backend(createCudaBackend(table, placed(hub, table, setup))),
          m_stream(m_backend->device(0).createStream()),
          m_own{hub, m_order, m_owner, static_cast<CudaStream&>(*m_stream).gpu(), setup.deadline}
    {
    }
    Backend& backend() { return *m_backend; }
    const RankGpu& gpu() const { return m_own; }

private:
    static CudaSetup placed(const RankHub& hub, const PipewrightCudaTable& table, CudaSetup setup)
    {
        const RankHub::LocalRank local = hub.localRank(hub.self());
        std::int32_t gpus = 0;
        if (table.deviceCount(&gpus) != 0)
            throw Error("--device", std::string("GPUs cannot be counted: ") + table.lastError());
        if (local.count > gpus)
            throw Error("--device",
                        fmt::format("{} processes on this machine, and {} GPUs that they can see: NCCL wants one GPU "
                                    "for each process",
                                    local.count, gpus),
                        "start fewer processes per machine, let each see all its GPUs, or use --backend cuda, where "
                        "devices share GPUs");
        if (setup.nccl.empty())
            throw Error("--device",
                        "NCCL was not found (libnccl.so.2), and GPUs of several processes reach each other by nothing "
                        "else",
                        "name its folder with --cuda-libraries, or leave --device cuda out");
        if (table.ncclOpen(setup.nccl.c_str()) != 0)
            throw Error(setup.nccl, std::string("cannot be used: ") + table.lastError(), "leave --device cuda out");
        setup.devices = {{local.rank, 0}};
        setup.firstDevice = hub.self();
        setup.transport = CudaTransport::Automatic;
        return setup;
    }

    IssueOrder m_order;
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
    std::int64_t takeRecords(std::int32_t step, std::vector<GpuRecord>& records) override
    {
        return m_gpu ? m_gpu->backend().takeRecords(step, records) : 0;
    }
    std::unique_ptr<Link> createLink(int from, int to, const LinkOptions& options) override
    {
        return m_gpu ? createRankLink(m_gpu->gpu(), from, to, options) : createRemoteLink(m_hub, from, to, options);
    }
    std::unique_ptr<PairSum> createPairSum(int first, int second, std::size_t sums) override
    {
        return m_gpu ? createRankSum(m_gpu->gpu(), first, second, sums) : nullptr;
    }

private:
    void nameDevices()
    {
        for (int d = 0; d < m_hub.count(); ++d) {
            Device& device = m_gpu && isLocal(d) ? m_gpu->backend().device(0) : m_host->device(d);
            // Of others only what all have in common counts.
            const Capabilities same = (m_gpu ? m_gpu->backend().device(0) : device).capabilities();
            m_devices.push_back(std::make_unique<RankDevice>(
                device, m_gpu ? fmt::format("rank {}, GPU {}", d, m_hub.localRank(d).rank) : fmt::format("rank {}", d),
                same, isLocal(d)));
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
