// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/mpi/processes.h"

#include <array>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>
#include <sys/prctl.h>
#include <unistd.h>

namespace pipewright {

namespace {

/// State letter and start time from /proc; false when there is no such process.
bool look(std::int64_t process, char& state, std::int64_t& born)
{
    std::ifstream file("/proc/" + std::to_string(process) + "/stat");
    std::string text;
    if (!std::getline(file, text))
        return false;
    // The name, in parentheses, may contain anything; fields are counted after it.
    const std::size_t end = text.rfind(')');
    if (end == std::string::npos || end + 2 >= text.size())
        return false;
    state = text[end + 2];
    std::size_t at = end + 2;
    for (int field = 3; field < 22 && at != std::string::npos; ++field)
        at = text.find(' ', at + 1);
    if (at == std::string::npos)
        return false;
    born = std::strtoll(text.c_str() + at, nullptr, 10);
    return true;
}

} // namespace

ProcessIdentity ownIdentity()
{
    ProcessIdentity identity;
    identity.process = getpid();
    std::ifstream file("/proc/sys/kernel/random/boot_id");
    std::string text;
    std::getline(file, text);
    std::array<char, 128> space{};
    if (readlink("/proc/self/ns/pid", space.data(), space.size() - 1) > 0)
        text += space.data();
    identity.machine = static_cast<std::int64_t>(std::hash<std::string>{}(text));
    char state = 0;
    look(identity.process, state, identity.born);
    return identity;
}

bool isRunning(const ProcessIdentity& identity)
{
    char state = 0;
    std::int64_t born = 0;
    return look(identity.process, state, born) && born == identity.born && state != 'Z' && state != 'X';
}

void endWithParent(int signal, int parent)
{
    prctl(PR_SET_PDEATHSIG, signal);
    if (getppid() != parent)
        raise(signal);
}

} // namespace pipewright
