// SPDX-License-Identifier: GPL-3.0-or-later
#include "ncclgroup.h"

#include <chrono>
#include <cstdio>
#include <fcntl.h>
#include <random>
#include <stdexcept>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>

namespace standin {

void rest()
{
    std::this_thread::sleep_for(std::chrono::microseconds(20));
}

std::string Group::newName()
{
    static const unsigned random = std::random_device{}();
    static std::atomic<int> count{0};
    char name[64];
    std::snprintf(name, sizeof name, "/pipewright-standin-%d-%d-%08x", ::getpid(), ++count, random);
    return name;
}

Group::Group(const std::string& name, int rank, int ranks) : rank(rank), ranks(ranks), m_name(name)
{
    const int file = shm_open(name.c_str(), O_CREAT | O_RDWR, 0600);
    if (file < 0 || ftruncate(file, sizeof(Shared)) != 0) // new memory is zero
        throw std::runtime_error("no shared memory for a communicator");
    void* place = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    ::close(file);
    if (place == MAP_FAILED)
        throw std::runtime_error("no shared memory for a communicator");
    m_shared = static_cast<Shared*>(place);
}

Group::~Group()
{
    munmap(m_shared, sizeof(Shared));
}

void Group::join()
{
    ++m_shared->joined;
    while (m_shared->joined < static_cast<std::uint32_t>(ranks))
        rest();
    if (rank == 0)
        shm_unlink(m_name.c_str());
}

bool Group::barrier()
{
    const std::uint64_t own = ++m_barriers;
    m_shared->parts[rank].come = own;
    for (int other = 0; other < ranks; ++other)
        while (m_shared->parts[other].come < own) {
            if (aborted())
                return false;
            rest();
        }
    return true;
}

} // namespace standin
