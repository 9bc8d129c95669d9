// SPDX-License-Identifier: GPL-3.0-or-later
// While it lives this process gets one more thread and no second one: each wants a stack of 256 MiB, and the address
// space has room for less than two. Sanitizers, which reserve most of it, know no such limit.
#pragma once

#include "sanitized.h"

#include <fstream>

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

namespace pipewright::test {

inline constexpr bool canLimitThreads = !threadSanitized && !addressSanitized;

class FewThreads {
public:
    FewThreads()
    {
        rlim_t pages = 0;
        std::ifstream("/proc/self/statm") >> pages;
        getrlimit(RLIMIT_AS, &m_before);
        rlimit limit = m_before;
        limit.rlim_cur = pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + stack + stack / 4 * 3;
        setrlimit(RLIMIT_AS, &limit);
        pthread_getattr_default_np(&m_attributes);
        pthread_attr_getstacksize(&m_attributes, &m_stackBefore);
        pthread_attr_setstacksize(&m_attributes, stack);
        pthread_setattr_default_np(&m_attributes);
    }
    ~FewThreads()
    {
        pthread_attr_setstacksize(&m_attributes, m_stackBefore);
        pthread_setattr_default_np(&m_attributes);
        pthread_attr_destroy(&m_attributes);
        setrlimit(RLIMIT_AS, &m_before);
    }
    FewThreads(const FewThreads&) = delete;
    FewThreads& operator=(const FewThreads&) = delete;

private:
    static constexpr std::size_t stack = std::size_t{256} << 20;

    rlimit m_before{};
    pthread_attr_t m_attributes{};
    std::size_t m_stackBefore = 0;
};

} // namespace pipewright::test
