// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/host/hostbackend.h"

#include "core/base/diagnostic.h"
#include "executor/host/hostlink.h"

#include <cstdlib>
#include <new>
#include <vector>

namespace pipewright {

namespace {

constexpr std::size_t alignment = 64;

class HostAllocation final : public Allocation {
public:
    /// Throws bad_alloc when there is not that much memory.
    explicit HostAllocation(Bytes bytes)
        : m_region{static_cast<std::byte*>(
                       std::aligned_alloc(alignment, (static_cast<std::size_t>(bytes) / alignment + 1) * alignment)),
                   bytes}
    {
        if (m_region.data == nullptr)
            throw std::bad_alloc();
    }
    ~HostAllocation() override { std::free(m_region.data); }
    HostAllocation(const HostAllocation&) = delete;
    HostAllocation& operator=(const HostAllocation&) = delete;
    Region region() const override { return m_region; }

private:
    Region m_region;
};

class HostDevice final : public Device {
public:
    explicit HostDevice(int index) : m_index(index) {}
    std::string name() const override { return "host thread " + std::to_string(m_index); }
    Capabilities capabilities() const override { return {.hostAddressable = true, .asynchronous = false}; }
    std::unique_ptr<Allocation> allocate(Bytes bytes) override
    {
        try {
            return std::make_unique<HostAllocation>(bytes);
        } catch (const std::bad_alloc&) {
            throw Error("device " + std::to_string(m_index), "cannot allocate " + formatSize(bytes),
                        "use fewer or smaller microbatches, or another schedule");
        }
    }
    std::unique_ptr<Stream> createStream() override { return std::make_unique<HostStream>(); }
    std::unique_ptr<Event> createEvent(Stream& waiter) override
    {
        return std::make_unique<HostEvent>(static_cast<HostStream&>(waiter));
    }

private:
    int m_index;
};

class HostBackend final : public Backend {
public:
    explicit HostBackend(int devices)
    {
        for (int i = 0; i < devices; ++i)
            m_devices.push_back(std::make_unique<HostDevice>(i));
    }
    std::string name() const override { return "host"; }
    int devices() const override { return static_cast<int>(m_devices.size()); }
    Device& device(int index) override { return *m_devices.at(static_cast<std::size_t>(index)); }
    std::unique_ptr<Link> createLink(int, int, const LinkOptions& options) override
    {
        return std::make_unique<HostLink>(options);
    }

private:
    std::vector<std::unique_ptr<Device>> m_devices;
};

} // namespace

std::unique_ptr<Backend> createHostBackend(int devices)
{
    return std::make_unique<HostBackend>(devices);
}

} // namespace pipewright
