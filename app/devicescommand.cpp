// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/command.h"
#include "app/ranks.h"
#include "app/terminal.h"

#include "executor/cuda/gpushares.h"
#include "executor/cuda/loader.h"

#include <fmt/format.h>

#include <fstream>
#include <memory>
#include <optional>
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

/// The named design, matched against the GPUs of this machine.
struct Mapping {
    LocatedDesign located;
    Diagnostics diagnostics; ///< why its devices cannot use the named GPUs
};

std::optional<Mapping> mappingOf(const std::string& file, const CudaStatus& cuda)
{
    if (file.empty())
        return std::nullopt;
    Mapping mapping{readLocatedDesign(file), {}};
    const Design& design = mapping.located.design;
    if (cuda.table)
        mapping.diagnostics =
            mapping.located.locate(whyNotPlaced(design.cluster.gpus, design.schedule.devices(), cuda.devices));
    return mapping;
}

void printCuda(const CudaStatus& cuda)
{
    printText("cuda  {}  {}\n", cuda.table ? "on " : "off",
              cuda.table ? fmt::format("driver for CUDA {}.{}, plugin for {}", cuda.driverVersion / 1000,
                                       cuda.driverVersion % 1000 / 10, cuda.buildInfo)
                         : cuda.reason);
    for (std::size_t i = 0; i < cuda.devices.size(); ++i) {
        const PipewrightCudaDevice& gpu = cuda.devices[i];
        printText("           GPU {}: {}, {} of memory, {} multiprocessors\n", i, gpu.name, formatSize(gpu.memory),
                  gpu.multiprocessors);
    }
    for (const CudaLibrary& library : cuda.libraries)
        printText("           {}: {}\n", library.name,
                  library.path.empty() ? "not found, so no " + library.purpose : library.path);
}

Json toJson(const CudaStatus& cuda, const std::optional<Mapping>& mapping)
{
    Json entry{{"available", cuda.table != nullptr}};
    if (!cuda.table)
        entry["reason"] = cuda.reason;
    if (!cuda.plugin.empty())
        entry["plugin"] = cuda.plugin;
    if (cuda.driverVersion > 0)
        entry["driver_version"] = cuda.driverVersion;
    for (const PipewrightCudaDevice& gpu : cuda.devices)
        entry["gpus"].push_back({{"name", gpu.name},
                                 {"memory_bytes", gpu.memory},
                                 {"multiprocessors", gpu.multiprocessors},
                                 {"compute_capability", fmt::format("{}.{}", gpu.major, gpu.minor)}});
    for (const CudaLibrary& library : cuda.libraries)
        entry["libraries"][library.name] = library.path.empty() ? Json() : Json(library.path);
    if (mapping && cuda.table) {
        entry["design_fits"] = !hasErrors(mapping->diagnostics);
        entry["design_diagnostics"] = Json::array();
        for (const Diagnostic& diagnostic : mapping->diagnostics)
            entry["design_diagnostics"].push_back(toString(diagnostic));
    }
    return entry;
}

void print(const HostDevice& host, const CudaStatus& cuda, const std::optional<Mapping>& mapping)
{
    printText("host  on   {}: {} threads{}, {} of memory\n", host.name, host.threads,
              host.cores > 0 ? fmt::format(" on {} cores", host.cores) : std::string(), formatSize(host.memory));
    printCuda(cuda);
    if (mapping && !cuda.table)
        printText("           {}: not checked, as there is no GPU here\n", mapping->located.source);
    else if (mapping && !hasErrors(mapping->diagnostics))
        printText("           {}: its {} devices fit here\n", mapping->located.source,
                  mapping->located.design.schedule.devices());
    const std::string whyNoMpi = whyNoRanks();
    printText("mpi   {}  {}\n", whyNoMpi.empty() ? "on " : "off", whyNoMpi.empty() ? ranksDescription() : whyNoMpi);
}

Json toJson(const HostDevice& host, const CudaStatus& cuda, const std::optional<Mapping>& mapping)
{
    Json entry{{"available", true}, {"name", host.name}, {"threads", host.threads}};
    if (host.cores > 0)
        entry["cores"] = host.cores;
    entry["memory_bytes"] = host.memory;
    const std::string whyNoMpi = whyNoRanks();
    const Json mpi = whyNoMpi.empty() ? Json{{"available", true}, {"name", ranksDescription()}}
                                      : Json{{"available", false}, {"reason", whyNoMpi}};
    return {{"host", std::move(entry)}, {"cuda", toJson(cuda, mapping)}, {"mpi", mpi}};
}

} // namespace

void addDevicesCommand(CommandLine& line, int& exitCode)
{
    Command command = line.add("devices", "Lists the backends that can run here, and why others cannot");
    const auto json = std::make_shared<bool>(false);
    const auto file = std::make_shared<std::string>();
    command.option("file", *file, "a design: also check whether its devices can use the GPUs that it names")
        .typeName("FILE");
    command.flag("--json", *json, "print one JSON object");
    command.onCall([json, file, &exitCode] {
        const HostDevice host = lookAtHost();
        const CudaStatus cuda = probeCuda();
        const std::optional<Mapping> mapping = mappingOf(*file, cuda);
        if (*json)
            printJson(toJson(host, cuda, mapping));
        else
            print(host, cuda, mapping);
        if (mapping)
            printDiagnostics(mapping->diagnostics);
        exitCode = mapping && hasErrors(mapping->diagnostics) ? exitFinding : exitSuccess;
    });
}

} // namespace pipewright::app
