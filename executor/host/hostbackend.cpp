// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/host/hostbackend.h"

#include "core/base/diagnostic.h"
#include "executor/host/hostlink.h"
#include "executor/host/hoststore.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <vector>

namespace pipewright {

namespace {

constexpr std::size_t alignment = 64;

class HostAllocation final : public Allocation {
public:
    /// Throws bad_alloc when there is not that much memory. `used` counts the bytes that the device holds.
    HostAllocation(Bytes bytes, std::shared_ptr<std::atomic<Bytes>> used)
        : m_region{static_cast<std::byte*>(
                       std::aligned_alloc(alignment, (static_cast<std::size_t>(bytes) / alignment + 1) * alignment)),
                   bytes},
          m_used(std::move(used))
    {
        if (m_region.data == nullptr)
            throw std::bad_alloc();
        *m_used += bytes;
    }
    ~HostAllocation() override
    {
        std::free(m_region.data);
        *m_used -= m_region.bytes;
    }
    HostAllocation(const HostAllocation&) = delete;
    HostAllocation& operator=(const HostAllocation&) = delete;
    Region region() const override { return m_region; }

private:
    Region m_region;
    std::shared_ptr<std::atomic<Bytes>> m_used;
};

class HostDevice final : public Device {
public:
    HostDevice(int index, Bytes memory) : m_index(index), m_memory(memory) {}
    std::string name() const override { return "host thread " + std::to_string(m_index); }
    Capabilities capabilities() const override { return {.hostAddressable = true, .asynchronous = false}; }
    std::unique_ptr<Allocation> allocate(Bytes bytes) override
    {
        const std::string place = "device " + std::to_string(m_index);
        if (bytes > m_memory - *m_used)
            throw Error(place,
                        "cannot allocate " + exactSize(bytes) + ": " + exactSize(m_memory - *m_used) + " of its "
                            + exactSize(m_memory) + " are left",
                        "use fewer or smaller microbatches, or another schedule");
        try {
            return std::make_unique<HostAllocation>(bytes, m_used);
        } catch (const std::bad_alloc&) {
            throw Error(place, "cannot allocate " + formatSize(bytes),
                        "use fewer or smaller microbatches, or another schedule");
        }
    }
    Bytes heldBytes() const override { return *m_used; }
    Pool memory() const override { return {m_memory == std::numeric_limits<Bytes>::max() ? 0 : m_memory, m_index}; }
    std::unique_ptr<Stream> createStream() override { return std::make_unique<HostStream>(); }
    std::unique_ptr<Event> createEvent(Stream& waiter) override
    {
        return std::make_unique<HostEvent>(static_cast<HostStream&>(waiter));
    }
    std::unique_ptr<kernels::Operations> createOperations(Stream&) override { return kernels::createHostOperations(); }
    void write(Stream&, Region to, const void* from) override
    {
        if (to.bytes > 0)
            std::memcpy(to.data, from, to.bytes);
    }
    void read(Stream&, Region from, void* to) override
    {
        if (from.bytes > 0)
            std::memcpy(to, from.data, from.bytes);
    }
    void fetch(Stream& stream, Region to, const Device&, Region from) override { read(stream, from, to.data); }
    std::unique_ptr<HostStore> createHostStore(Bytes bytes) override { return std::make_unique<HostCopies>(bytes); }
    bool reaches(const Device&) const override { return true; }

private:
    int m_index;
    Bytes m_memory;
    std::shared_ptr<std::atomic<Bytes>> m_used = std::make_shared<std::atomic<Bytes>>(0);
};

class HostBackend final : public Backend {
public:
    HostBackend(int devices, Bytes memory)
    {
        for (int i = 0; i < devices; ++i)
            m_devices.push_back(std::make_unique<HostDevice>(i, memory));
    }
    std::string name() const override { return "host"; }
    int devices() const override { return static_cast<int>(m_devices.size()); }
    Device& device(int index) override { return *m_devices.at(index); }
    std::unique_ptr<Link> createLink(int from, int, const LinkOptions& options) override
    {
        const Bytes storage = HostLink::storageFor(options);
        return std::make_unique<HostLink>(options, storage > 0 ? device(from).allocate(storage) : nullptr);
    }
    LinkMemory linkMemory(int, int, const LinkOptions& options) const override
    {
        return {HostLink::storageFor(options), 0};
    }

private:
    std::vector<std::unique_ptr<Device>> m_devices;
};

} // namespace

std::unique_ptr<Backend> createHostBackend(int devices)
{
    return createHostBackend(devices, std::numeric_limits<Bytes>::max());
}

std::unique_ptr<Backend> createHostBackend(int devices, Bytes memory)
{
    return std::make_unique<HostBackend>(devices, memory);
}

} // namespace pipewright
