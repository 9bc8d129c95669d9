// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/cuda/cudabackend.h"

#include "core/base/diagnostic.h"
#include "executor/cuda/cudalink.h"

#include <chrono>
#include <thread>

namespace pipewright {

namespace {

class CudaAllocation final : public Allocation {
public:
    CudaAllocation(const CudaGpu& gpu, Bytes bytes, int device) : m_gpu(gpu), m_bytes(bytes)
    {
        if (gpu.table->allocate(gpu.index, bytes, &m_data) != 0)
            throw Error("device " + std::to_string(device),
                        "cannot allocate " + formatSize(bytes) + " on GPU " + std::to_string(gpu.index) + ": "
                            + gpu.table->lastError(),
                        "use fewer or smaller microbatches, or another schedule");
    }
    ~CudaAllocation() override { m_gpu.table->release(m_gpu.index, m_data); }
    CudaAllocation(const CudaAllocation&) = delete;
    CudaAllocation& operator=(const CudaAllocation&) = delete;
    Region region() const override { return {static_cast<std::byte*>(m_data), m_bytes}; }

private:
    CudaGpu m_gpu;
    Bytes m_bytes;
    void* m_data = nullptr;
};

class CudaDevice final : public Device {
public:
    CudaDevice(const CudaGpu& gpu, int index, std::string name) : m_gpu(gpu), m_index(index), m_name(std::move(name)) {}
    std::string name() const override { return m_name; }
    Capabilities capabilities() const override { return {.hostAddressable = false, .asynchronous = true}; }
    std::unique_ptr<Allocation> allocate(Bytes bytes) override
    {
        return std::make_unique<CudaAllocation>(m_gpu, bytes, m_index);
    }
    std::unique_ptr<Stream> createStream() override { return std::make_unique<CudaStream>(m_gpu); }
    std::unique_ptr<Event> createEvent(Stream& waiter) override
    {
        return std::make_unique<CudaEvent>(m_gpu, static_cast<CudaStream&>(waiter));
    }

private:
    CudaGpu m_gpu;
    int m_index;
    std::string m_name;
};

class CudaBackend final : public Backend {
public:
    CudaBackend(const PipewrightCudaTable& table, std::vector<int> gpuOfDevice)
    {
        for (std::size_t d = 0; d < gpuOfDevice.size(); ++d) {
            const CudaGpu gpu{&table, gpuOfDevice[d]};
            PipewrightCudaDevice info{};
            gpu.check(table.deviceInfo(gpu.index, &info), "look at");
            m_gpus.push_back(gpu);
            m_devices.push_back(std::make_unique<CudaDevice>(gpu, static_cast<int>(d),
                                                             "GPU " + std::to_string(gpu.index) + " (" + info.name
                                                                 + "), device " + std::to_string(d)));
        }
    }
    std::string name() const override { return "cuda"; }
    int devices() const override { return static_cast<int>(m_devices.size()); }
    Device& device(int index) override { return *m_devices.at(static_cast<std::size_t>(index)); }
    std::unique_ptr<Link> createLink(int from, int to, const LinkOptions& options) override
    {
        return std::make_unique<CudaLink>(m_gpus.at(static_cast<std::size_t>(from)),
                                          m_gpus.at(static_cast<std::size_t>(to)), options);
    }

private:
    std::vector<CudaGpu> m_gpus;
    std::vector<std::unique_ptr<CudaDevice>> m_devices;
};

void copyAndWait(const PipewrightCudaTable& table, int gpu, void* to, int toGpu, const void* from, int fromGpu,
                 Bytes bytes)
{
    CudaStream stream({&table, gpu});
    stream.gpu().check(table.copy(to, toGpu, from, fromGpu, bytes, stream.handle()), "copy");
    stream.synchronize();
}

} // namespace

std::unique_ptr<Backend> createCudaBackend(const PipewrightCudaTable& table, std::vector<int> gpuOfDevice)
{
    return std::make_unique<CudaBackend>(table, std::move(gpuOfDevice));
}

void writeToDevice(const PipewrightCudaTable& table, int gpu, Region to, const void* from)
{
    copyAndWait(table, gpu, to.data, gpu, from, -1, to.bytes);
}

void readFromDevice(const PipewrightCudaTable& table, int gpu, Region from, void* to)
{
    copyAndWait(table, gpu, to, -1, from.data, gpu, from.bytes);
}

} // namespace pipewright
