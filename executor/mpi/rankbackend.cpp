// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/mpi/rankbackend.h"

#include "executor/host/hostbackend.h"
#include "executor/mpi/remotelink.h"

namespace pipewright {

namespace {

class RankDevice final : public Device {
public:
    RankDevice(Device& host, std::string name, bool local) : m_host(host), m_name(std::move(name)), m_local(local) {}
    std::string name() const override { return m_name; }
    Capabilities capabilities() const override { return {.hostAddressable = m_local, .asynchronous = true}; }
    std::unique_ptr<Allocation> allocate(Bytes bytes) override { return m_host.allocate(bytes); }
    std::unique_ptr<Stream> createStream() override { return m_host.createStream(); }
    std::unique_ptr<Event> createEvent(Stream& waiter) override { return m_host.createEvent(waiter); }
    std::unique_ptr<kernels::Operations> createOperations(Stream& stream) override
    {
        return m_host.createOperations(stream);
    }
    void write(Stream& stream, Region to, const void* from) override { m_host.write(stream, to, from); }
    void read(Stream& stream, Region from, void* to) override { m_host.read(stream, from, to); }
    void fetch(Stream& stream, Region to, const Device&, Region from) override { m_host.read(stream, from, to.data); }
    bool reaches(const Device& other) const override { return m_local && &other == this; }

private:
    Device& m_host;
    std::string m_name;
    bool m_local;
};

class RankBackend final : public Backend {
public:
    RankBackend(std::unique_ptr<Mesh> mesh, Nanoseconds deadline)
        : m_host(createHostBackend(mesh->size())), m_hub(std::move(mesh), deadline)
    {
        for (int d = 0; d < m_hub.count(); ++d)
            m_devices.push_back(
                std::make_unique<RankDevice>(m_host->device(d), "rank " + std::to_string(d), isLocal(d)));
    }
    std::string name() const override { return "mpi"; }
    int devices() const override { return m_hub.count(); }
    Device& device(int index) override { return *m_devices.at(static_cast<std::size_t>(index)); }
    bool isLocal(int device) const override { return device == m_hub.self(); }
    Peers* peers() override { return &m_hub; }
    std::unique_ptr<Link> createLink(int from, int to, const LinkOptions& options) override
    {
        return createRemoteLink(m_hub, from, to, options);
    }

private:
    std::unique_ptr<Backend> m_host;
    RankHub m_hub;
    std::vector<std::unique_ptr<RankDevice>> m_devices;
};

} // namespace

std::unique_ptr<Backend> createRankBackend(std::unique_ptr<Mesh> mesh, Nanoseconds deadline)
{
    return std::make_unique<RankBackend>(std::move(mesh), deadline);
}

} // namespace pipewright
