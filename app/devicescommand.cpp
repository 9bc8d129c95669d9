// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cancel.h"
#include "app/command.h"
#include "app/gpus.h"
#include "app/operationrates.h"
#include "app/progress.h"
#include "app/table.h"
#include "app/terminal.h"

#include "core/base/formattedtext.h"
#include "core/base/textfile.h"
#include "core/presets/clusterfile.h"
#include "executor/cuda/gpushares.h"
#include "executor/cuda/gpuwires.h"
#include "executor/cuda/loader.h"
#include "executor/machine/machinemeasure.h"
#include "executor/torch/torchstate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <thread>
#include <unistd.h>

namespace pipewright::app {

namespace {

constexpr const char* aboutRanks = "a process for each device, started here or by mpirun, srun or torchrun";

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
    Diagnostics diagnostics; ///< why the design's devices cannot use the named GPUs
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
                  library.path.empty() ? fmt::format("{} was not found, so no {}", library.file, library.purpose)
                                       : library.path);
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

void print(const HostDevice& host, const CudaStatus& cuda, const std::optional<Mapping>& mapping,
           const TorchState& torch)
{
    printText("host  on   {}: {} threads{}, {} of memory\n", host.name, host.threads,
              host.cores > 0 ? fmt::format(" on {} cores", host.cores) : std::string(), formatSize(host.memory));
    printCuda(cuda);
    if (mapping && !cuda.table)
        printText("           {}: not checked, as there is no GPU here\n", mapping->located.source);
    else if (mapping && !hasErrors(mapping->diagnostics))
        printText("           {}: its {} devices fit here\n", mapping->located.source,
                  mapping->located.design.schedule.devices());
    printText("mpi   on   {}\n", aboutRanks);
    if (!torch.reason.empty())
        printText("torch off  {}\n", torch.reason);
    else
        printText("torch on   PyTorch {} in Python {}, with {} and {}\n", torch.torch, torch.python,
                  joined(torch.backends, ", "), torch.gpus == 1 ? "1 GPU" : fmt::format("{} GPUs", torch.gpus));
}

Json toJson(const TorchState& torch)
{
    if (!torch.reason.empty())
        return {{"available", false}, {"reason", torch.reason}};
    return {{"available", true},
            {"name", "PyTorch " + torch.torch},
            {"python", torch.python},
            {"backends", torch.backends},
            {"gpus", torch.gpus}};
}

Json toJson(const HostDevice& host, const CudaStatus& cuda, const std::optional<Mapping>& mapping,
            const TorchState& torch)
{
    Json entry{{"available", true}, {"name", host.name}, {"threads", host.threads}};
    if (host.cores > 0)
        entry["cores"] = host.cores;
    entry["memory_bytes"] = host.memory;
    return {{"host", std::move(entry)},
            {"cuda", toJson(cuda, mapping)},
            {"mpi", {{"available", true}, {"name", aboutRanks}}},
            {"torch", toJson(torch)}};
}

struct DevicesOptions {
    explicit DevicesOptions(CLI::App& command)
    {
        command
            .add_option("file", file,
                        "a design: also check whether its devices can use the GPUs that it names; with --operations: "
                        "measure the shapes of its model")
            ->type_name("FILE");
        command.add_flag("--measure", measure,
                         "measure rates, latencies and bandwidths, and write the machine as a cluster for --cluster");
        command.add_flag("--operations", operations,
                         "with --measure: also the rates of single operations, for exactly the shapes of a design, or "
                         "over a grid, into NAME.rates.json, which the cluster's devices name");
        command.add_option("-o,--output", output, "with --measure: the cluster's file, NAME.json")->type_name("FILE");
        command
            .add_option("--backend", backend,
                        "with --measure: host (threads, the default) or cuda (GPUs); torch measures the operations "
                        "of a design alone, and keeps the rest of its cluster")
            ->type_name("BACKEND");
        command.add_option("--devices", devices, "with --measure: how many (host: a thread for each core, 2 to 8)")
            ->type_name("N")
            ->check(CLI::Range(1, 64));
        command.add_option("--python", python, "the interpreter that is asked for PyTorch (python3)")
            ->type_name("PATH");
        command.add_option("--progress", progressStyle, "auto, bar, json or none")->type_name("STYLE");
        command.add_flag("--force", force, "replace the file if it exists");
        command.add_flag("--json", json, "print one JSON object");
    }
    std::string file, output, backend = "host", progressStyle = "auto", python = "python3";
    int devices = 0;
    bool measure = false, operations = false, force = false, json = false;
};

void checkMeasureOptions(const DevicesOptions& options)
{
    if (!options.measure) {
        for (const auto& [given, name] :
             {std::pair(!options.output.empty(), "--output"), std::pair(options.backend != "host", "--backend"),
              std::pair(options.operations, "--operations"), std::pair(options.devices > 0, "--devices"),
              std::pair(options.force, "--force")})
            if (given)
                throw Error(name, "is for measuring", "add --measure");
        return;
    }
    if (!options.file.empty() && !options.operations)
        throw Error(options.file, "a design and --measure together", "add --operations, or give one of the two");
    if (!namesClusterFile(options.output))
        throw Error("--output", "no file for the cluster", "-o NAME.json");
    const bool torch = options.backend == "torch";
    if (options.backend != "host" && options.backend != "cuda" && !torch)
        throw Error("--backend", "\"" + options.backend + "\" cannot be measured", "host, cuda or torch");
    if (torch && (!options.operations || options.file.empty()))
        throw Error("--backend", "PyTorch measures the operations of a design, and nothing else",
                    "add --operations and name a design, whose cluster is kept");
    if (torch && options.devices > 0)
        throw Error("--devices", "PyTorch measures one device, and the design says how many there are", "leave it out");
    checkProgressStyle(options.progressStyle);
}

std::string busBetween(const Cluster& cluster, int from, int to)
{
    const auto pair = cluster.linkOfPair.find({from, to});
    return (pair == cluster.linkOfPair.end() ? cluster.link : pair->second).bus;
}

Json toJson(const MachineMeasurement& machine, const Cluster& cluster, const DevicesOptions& options)
{
    Json object{{"output", options.output}, {"backend", options.backend}};
    object["devices"] = Json::array();
    for (const MachineMeasurement::Device& device : machine.devices)
        object["devices"].push_back({{"name", device.name},
                                     {"memory_bytes", device.memory},
                                     {"flops_alone", device.alone},
                                     {"flops_together", device.together},
                                     {"product_rows", device.productSize},
                                     {"copied_bytes_per_second", device.copying}});
    object["links"] = Json::array();
    for (const MachineMeasurement::Pair& pair : machine.pairs)
        object["links"].push_back({{"first", pair.first},
                                   {"second", pair.second},
                                   {"way", pair.way.name},
                                   {"wire", pair.way.wire},
                                   {"bus", busBetween(cluster, pair.first, pair.second)},
                                   {"latency_ns", pair.latency},
                                   {"bytes_per_second", pair.bandwidth}});
    object["crowding"] = machine.crowds.empty() ? Json() : Json(machine.crowding());
    object["crowds"] = Json::array();
    for (const MachineMeasurement::Crowd& crowd : machine.crowds) {
        const MachineMeasurement::Pair &a = machine.pairs[crowd.first], &b = machine.pairs[crowd.second];
        object["crowds"].push_back({{"pairs", {{a.first, a.second}, {b.first, b.second}}},
                                    {"factor", crowd.factor},
                                    {"shares", crowd.shares()}});
    }
    object["links_share_a_wire"] = machine.linksShareAWire();
    object["link"] = {{"latency_ns", cluster.link.latency}, {"bytes_per_second", cluster.link.bandwidth}};
    return object;
}

void print(const MachineMeasurement& machine, const Cluster& cluster, const DevicesOptions& options)
{
    TextTable devices({"device", "memory", "products alone", "all together", "copies"});
    for (const MachineMeasurement::Device& d : machine.devices)
        devices.addRow({d.name, d.memory > 0 ? formatSize(d.memory) : "not known",
                        fmt::format("{:.1f} GFLOP/s", d.alone * 1e-9), fmt::format("{:.1f} GFLOP/s", d.together * 1e-9),
                        fmt::format("{:.1f} GB/s", d.copying * 1e-9)});
    devices.print();
    if (!machine.pairs.empty()) {
        printText("\n");
        TextTable links({"between", "by", "latency", "bandwidth", "shares"});
        for (const MachineMeasurement::Pair& pair : machine.pairs)
            links.addRow({fmt::format("{} and {}", pair.first, pair.second), pair.way.name,
                          formatDuration(pair.latency), fmt::format("{:.2f} GB/s", pair.bandwidth * 1e-9),
                          busBetween(cluster, pair.first, pair.second)});
        links.print();
    }
    const auto shares = [](const MachineMeasurement::Crowd& crowd) { return crowd.shares(); };
    printText("\n");
    if (machine.crowds.empty())
        printText("whether links share a wire takes four devices to measure\n");
    else if (const bool all = std::all_of(machine.crowds.begin(), machine.crowds.end(), shares);
             all || !machine.linksShareAWire())
        printText("{} share a wire: at once, messages take up to {:.2f} times as long\n",
                  all ? "all links" : "no two links", machine.crowding());
    else
        for (const MachineMeasurement::Crowd& crowd : machine.crowds)
            if (crowd.shares()) {
                const MachineMeasurement::Pair &a = machine.pairs[crowd.first], &b = machine.pairs[crowd.second];
                printText("{} and {} share a wire with {} and {}: at once, messages take {:.2f} times as long\n",
                          a.first, a.second, b.first, b.second, crowd.factor);
            }
    printText("\n{}: {} devices, {} and {:.2f} GB/s between them; use it with --cluster {}\n", options.output,
              cluster.devices.size(), formatDuration(cluster.link.latency), cluster.link.bandwidth * 1e-9,
              options.output);
}

/// The devices that are measured: threads, or GPUs and slices of them.
struct Measured {
    std::unique_ptr<Backend> backend;
    std::vector<GpuShare> gpus{};
    std::string title;
    std::function<LinkWay(int, int)> wayBetween{};
};

Measured gpusToMeasure(int devices)
{
    const CudaStatus cuda = probeCuda();
    Measured measured;
    const int count = devices > 0 ? devices : std::max(1, static_cast<int>(cuda.devices.size()));
    GpuChoice choice;
    if (cuda.table)
        choice.shares = gpuSharesFor({}, count, cuda.devices);
    Diagnostics notes;
    measured.backend = cudaBackend(choice, count, notes)(count); // throws Error with the reason when there is no GPU
    printDiagnostics(notes);
    const bool sliced = std::any_of(choice.shares.begin(), choice.shares.end(),
                                    [](const GpuShare& share) { return share.multiprocessors > 0; });
    measured.title = fmt::format("{} {} {}", count, sliced ? "slices of" : "x", cuda.devices.front().name);
    GpuWires wires = gpuWires(cuda.devices);
    if (!wires.reason.empty())
        printDiagnostics({{Severity::Note, "links", "what connects the GPUs is not known: " + wires.reason,
                           "latency and bandwidth of each pair are measured all the same"}});
    measured.wayBetween = [table = cuda.table, shares = choice.shares, wires = std::move(wires.between)](int a, int b) {
        const int first = shares[a].gpu, second = shares[b].gpu;
        if (first == second)
            return LinkWay{"memory of one GPU", "memory of one GPU"};
        std::int32_t direct = 0;
        if (table->enablePeer(first, second, &direct) != 0)
            throw Error(fmt::format("GPU {}", first),
                        fmt::format("cannot reach GPU {}: {}", second, table->lastError()));
        if (!direct) // otherwise the driver copies through the host's memory
            return LinkWay{"host memory", "PCIe"};
        const GpuWire wire = wires[static_cast<std::size_t>(first)][static_cast<std::size_t>(second)];
        return LinkWay{std::string(nameOf(wire)), wire == GpuWire::NvLink ? "NVLink" : "PCIe"};
    };
    measured.gpus = std::move(choice.shares);
    return measured;
}

Measured threadsToMeasure(int devices)
{
    const HostDevice host = lookAtHost();
    const unsigned cores = host.cores > 0 ? host.cores : host.threads;
    const int count = devices > 0 ? devices : static_cast<int>(std::clamp(cores, 2u, 8u));
    return {thisMachine(count), {}, fmt::format("{} threads of {}", count, host.name)};
}

/// Shows how far measuring is.
std::function<void(double, const std::string&)> showing(ProgressPrinter& printer)
{
    return [&printer](double fraction, const std::string& what) {
        printer.show(
            fraction, [&] { return what; },
            [&] {
                return Json{{"fraction", fraction}, {"what", what}}.dump();
            });
    };
}

void measureInTorch(const DevicesOptions& options)
{
    const LocatedDesign located = readLocatedDesign(options.file);
    ProgressPrinter printer(options.progressStyle);
    Cluster cluster = located.design.cluster;
    const OperationsMeasured operations = measureOperationsInTorch(
        {&located.design, options.output, options.force, cancelOnSignals(), showing(printer)}, options.python, cluster);
    writeFileAtomically(
        options.output,
        clusterFileText(cluster, cluster.name,
                        fmt::format("the cluster of {}, with {}", options.file, operations.rates.origin)),
        options.force);
    if (options.json)
        return printJson(
            {{"output", options.output}, {"backend", options.backend}, {"operations", toJson(operations)}});
    print(operations);
    printText("\n{}: use it with --cluster {}\n", options.output, options.output);
}

void measureThisMachine(const DevicesOptions& options)
{
    std::optional<LocatedDesign> located;
    int devices = options.devices;
    if (!options.file.empty()) {
        located = readLocatedDesign(options.file);
        if (devices == 0)
            devices = std::min(64, located->design.schedule.devices());
    }
    const Measured measured = options.backend == "cuda" ? gpusToMeasure(devices) : threadsToMeasure(devices);
    ProgressPrinter printer(options.progressStyle);
    MachineMeasureOptions how;
    how.cancel = cancelOnSignals();
    how.progress = showing(printer);
    how.wayBetween = measured.wayBetween;
    const MachineMeasurement machine = measureMachine(*measured.backend, how);
    Cluster cluster = clusterOf(machine, std::filesystem::path(options.output).stem().string());
    cluster.gpus = measured.gpus;
    std::optional<OperationsMeasured> operations;
    if (options.operations)
        operations = measureOperations(
            {located ? &located->design : nullptr, options.output, options.force, how.cancel, how.progress},
            *measured.backend, measured.title, cluster);
    writeFileAtomically(options.output,
                        clusterFileText(cluster, measured.title,
                                        fmt::format("measured by pipewright devices --measure: achieved rates of fp32 "
                                                    "products of {} rows and columns, half of round trips of messages",
                                                    machine.devices.front().productSize)),
                        options.force);
    if (options.json) {
        Json object = toJson(machine, cluster, options);
        if (operations)
            object["operations"] = toJson(*operations);
        return printJson(object);
    }
    print(machine, cluster, options);
    if (operations)
        print(*operations);
}

} // namespace

void addDevicesCommand(CLI::App& program, int& exitCode)
{
    CLI::App& command =
        *program.add_subcommand("devices", "Lists the backends that can run here, and why others cannot");
    const auto options = std::make_shared<DevicesOptions>(command);
    command.callback([options, &exitCode] {
        checkMeasureOptions(*options);
        if (options->measure) {
            options->backend == "torch" ? measureInTorch(*options) : measureThisMachine(*options);
            exitCode = exitSuccess;
            return;
        }
        const HostDevice host = lookAtHost();
        const CudaStatus cuda = probeCuda();
        const std::optional<Mapping> mapping = mappingOf(options->file, cuda);
        const TorchState torch = torchState(options->python);
        if (options->json)
            printJson(toJson(host, cuda, mapping, torch));
        else
            print(host, cuda, mapping, torch);
        if (mapping)
            printDiagnostics(mapping->diagnostics);
        exitCode = mapping && hasErrors(mapping->diagnostics) ? exitFinding : exitSuccess;
    });
}

} // namespace pipewright::app
