// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/command.h"

#include <fmt/format.h>

#include <dlfcn.h>
#include <fstream>
#include <memory>
#include <set>
#include <thread>
#include <unistd.h>

namespace pipewright::app {

namespace {

struct HostDevice {
    std::string name = "CPU";
    unsigned threads = 1;
    unsigned cores = 0; ///< 0: unknown
    Bytes memory = 0;
};

std::string valueOf(const std::string& line)
{
    const std::size_t colon = line.find(": ");
    return colon == std::string::npos ? std::string() : line.substr(colon + 2);
}

HostDevice lookAtHost()
{
    HostDevice host;
    host.threads = std::max(1u, std::thread::hardware_concurrency());
    host.memory = static_cast<Bytes>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
    std::set<std::pair<std::string, std::string>> cores;
    std::ifstream cpus("/proc/cpuinfo");
    std::string socket;
    for (std::string line; std::getline(cpus, line);) {
        if (line.starts_with("model name"))
            host.name = valueOf(line);
        else if (line.starts_with("physical id"))
            socket = valueOf(line);
        else if (line.starts_with("core id"))
            cores.emplace(socket, valueOf(line));
    }
    host.cores = static_cast<unsigned>(cores.size());
    return host;
}

/// Why the CUDA backend cannot run here; the driver is looked for even while the build has no backend, since
/// both have to be put right.
std::string whyNoCuda()
{
    std::string reason = "this build has no CUDA backend yet";
    if (void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL))
        dlclose(driver);
    else
        reason += ", and no NVIDIA driver was found (libcuda.so.1)";
    return reason;
}

constexpr const char* whyNoMpi = "this build has no MPI backend yet";

void print(const HostDevice& host)
{
    fmt::print("host  on   {}: {} threads{}, {} of memory\n", host.name, host.threads,
               host.cores > 0 ? fmt::format(" on {} cores", host.cores) : std::string(), formatSize(host.memory));
    fmt::print("cuda  off  {}\n", whyNoCuda());
    fmt::print("mpi   off  {}\n", whyNoMpi);
}

Json toJson(const HostDevice& host)
{
    Json entry{{"available", true}, {"name", host.name}, {"threads", host.threads}};
    if (host.cores > 0)
        entry["cores"] = host.cores;
    entry["memory_bytes"] = host.memory;
    return {{"host", std::move(entry)},
            {"cuda", {{"available", false}, {"reason", whyNoCuda()}}},
            {"mpi", {{"available", false}, {"reason", whyNoMpi}}}};
}

} // namespace

void addDevicesCommand(CLI::App& app, int& exitCode)
{
    CLI::App* command = app.add_subcommand("devices", "What can run here, and the reason for what cannot");
    const auto json = std::make_shared<bool>(false);
    command->add_flag("--json", *json, "print one JSON object");
    command->callback([json, &exitCode] {
        const HostDevice host = lookAtHost();
        if (*json)
            printJson(toJson(host));
        else
            print(host);
        exitCode = exitSuccess;
    });
}

} // namespace pipewright::app
