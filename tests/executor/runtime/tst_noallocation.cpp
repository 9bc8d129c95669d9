// SPDX-License-Identifier: GPL-3.0-or-later
// During a step no device thread allocates. operator new is replaced by one that counts in threads that
// have armed themselves; a thread arms itself in its first block of the second step.
#include "checksumwork.h"
#include "executor/host/hostbackend.h"
#include "executor/runtime/runtime.h"
#include "makers/tinydesigns.h"
#include "testmain.h"

#include <QTest>

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

thread_local bool armed = false;
std::atomic<int> allocations{0};

void* counted(std::size_t size)
{
    if (armed)
        allocations.fetch_add(1);
    if (void* memory = std::malloc(size > 0 ? size : 1))
        return memory;
    throw std::bad_alloc();
}

} // namespace

void* operator new(std::size_t size)
{
    return counted(size);
}
void* operator new[](std::size_t size)
{
    return counted(size);
}
// The standard library's own temporary buffers use these, and a sanitizer minds who frees what.
void* operator new(std::size_t size, const std::nothrow_t&) noexcept
{
    return counted(size);
}
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept
{
    return counted(size);
}
void operator delete(void* memory, const std::nothrow_t&) noexcept
{
    std::free(memory);
}
void operator delete[](void* memory, const std::nothrow_t&) noexcept
{
    std::free(memory);
}
void operator delete(void* memory) noexcept
{
    std::free(memory);
}
void operator delete[](void* memory) noexcept
{
    std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept
{
    std::free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept
{
    std::free(memory);
}

using namespace pipewright;

namespace {

struct DiscardingSink final : RecordSink {
    void append(const std::vector<TaskRecord>&) override {}
    void append(const std::vector<MemoryRecord>&) override {}
    void append(const StepRecord&) override {}
    void commit() override {}
};

} // namespace

class TestNoAllocation : public QObject {
    Q_OBJECT

private slots:
    void theCounterCounts()
    {
        armed = true;
        ::operator delete(::operator new(1)); // a direct call, which no compiler may leave out
        armed = false;
        QCOMPARE(allocations.exchange(0), 1);
    }

    void noDeviceThreadAllocatesDuringAStep()
    {
        for (const tiny::Named& named : tiny::all) {
            for (const int eager : {0, 2}) {
                const Program program = tiny::compiled(named.make());
                const auto backend = createHostBackend(static_cast<int>(program.devices.size()));
                test::ChecksumWork work;
                std::atomic<int> armedBlocks{0};
                work.onCompute = [&](const TaskContext& context) {
                    if (context.step >= 1) {
                        armed = true; // this thread belongs to the runtime and ends with it
                        armedBlocks.fetch_add(1);
                    }
                };
                DiscardingSink sink;
                Recorder recorder(sink, backend->devices(), 4096);
                Runtime runtime(program, *backend, work, &recorder, {.eagerSlots = eager, .checkMemory = true});
                for (int step = 0; step < 3; ++step)
                    runtime.runStep(step);
                QCOMPARE(armedBlocks.load(), 2 * static_cast<int>(program.computeCount()));
                QVERIFY2(allocations.load() == 0, named.name);
            }
        }
    }
};

PIPEWRIGHT_TEST(TestNoAllocation, QCoreApplication)
#include "tst_noallocation.moc"
