// SPDX-License-Identifier: GPL-3.0-or-later
// A thread for whose products there is no memory is told so, instead of waiting for ever.
#include "kernels/host/gemm.h"
#include "sanitized.h"
#include "testmain.h"

#include <QTest>

#include <algorithm>
#include <array>
#include <barrier>
#include <cstdint>
#include <fstream>
#include <new>
#include <thread>
#include <vector>

#include <sys/resource.h>
#include <unistd.h>

using namespace pipewright;

class ProductBuffersTest : public QObject {
    Q_OBJECT

private:
    static constexpr int threads = 6;

    static std::uint64_t addressSpace()
    {
        std::uint64_t pages = 0;
        std::ifstream("/proc/self/statm") >> pages;
        return pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
    }

    static bool multiplies()
    {
        const std::array<float, 4> a{1, 2, 3, 4}, b{1, 0, 0, 1};
        std::array<float, 4> c{};
        try {
            kernels::gemm(2, 2, 2, 1, {a.data(), 2}, {b.data(), 2}, 0, c.data(), 2);
        } catch (const std::bad_alloc&) {
            return false;
        }
        return c == a;
    }

private Q_SLOTS:
    void withoutRoomForItsBufferAProductIsRefused()
    {
        if (sanitized)
            QSKIP("sanitizers need address space without a limit");
        rlimit before{};
        QCOMPARE(getrlimit(RLIMIT_AS, &before), 0);
        std::vector<int> first(threads), second(threads);
        int limited = -1, freed = -1;
        {
            std::barrier together(threads + 1);
            std::vector<std::jthread> all;
            for (int t = 0; t < threads; ++t)
                all.emplace_back([&, t] {
                    together.arrive_and_wait(); // every stack is there
                    together.arrive_and_wait();
                    first[t] = multiplies();
                    together.arrive_and_wait();
                    together.arrive_and_wait();
                    second[t] = multiplies();
                    together.arrive_and_wait(); // so many threads at a time
                });
            together.arrive_and_wait();
            rlimit narrow = before;
            narrow.rlim_cur = addressSpace() + (std::uint64_t{300} << 20); // two buffers
            limited = setrlimit(RLIMIT_AS, &narrow);
            together.arrive_and_wait();
            together.arrive_and_wait();
            freed = setrlimit(RLIMIT_AS, &before);
            together.arrive_and_wait();
            together.arrive_and_wait();
        }
        QCOMPARE(limited, 0);
        QCOMPARE(freed, 0);
        const auto succeeded = [](const std::vector<int>& of) { return std::count(of.begin(), of.end(), 1); };
        QVERIFY2(succeeded(first) >= 1 && succeeded(first) < threads, qPrintable(QString::number(succeeded(first))));
        QCOMPARE(succeeded(second), std::ptrdiff_t(threads));
    }
};

PIPEWRIGHT_TEST(ProductBuffersTest, NoApplication)
#include "tst_productbuffers.moc"
