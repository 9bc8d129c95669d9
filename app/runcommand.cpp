// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cancel.h"
#include "app/command.h"
#include "app/defaultdata.h"
#include "app/gpus.h"
#include "app/progress.h"
#include "app/ranks.h"
#include "app/runprogress.h"
#include "app/shardingchoice.h"
#include "app/table.h"
#include "app/terminal.h"
#include "app/torchrun.h"

#include "core/base/median.h"
#include "core/base/outputfile.h"
#include "core/base/units.h"
#include "executor/cuda/cudabackend.h"
#include "executor/mpi/rankbackend.h"
#include "executor/mpi/ranksecret.h"
#include "executor/mpi/socketmesh.h"
#include "executor/run/grouprun.h"
#include "executor/run/machinefit.h"
#include "executor/run/memorycheck.h"
#include "executor/run/run.h"
#include "executor/runtime/faultspec.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <utility>

namespace pipewright::app {

namespace {

struct RunCommandOptions {
    explicit RunCommandOptions(CLI::App& command) : torch(command), given(command), sharding(command)
    {
        command.add_option("file", file, "the design file")->required()->type_name("FILE");
        command.add_option("--backend", backend, "host, cuda, mpi or torch")->required()->type_name("BACKEND");
        command
            .add_option(
                "--device", device,
                "with --backend mpi: what each process has: host, or cuda: the GPU of its machine that cluster.gpus "
                "gives its device, else the one with the process's number there, NCCL between them (host). With torch: "
                "host, cuda, or auto (GPUs where there are enough)")
            ->type_name("DEVICE");
        command.add_option("--steps", run.steps, "training steps to do")->required()->type_name("N");
        command.add_option("-o,--output", run.trace, "the trace to write")->type_name("TRACE");
        command
            .add_option(
                "--record", record,
                "what the trace holds: kernels (and blocks, the default), blocks alone, or nothing: no trace. With "
                "torch: blocks (the default), or kernels too, by PyTorch's profiler: of CPUs the operators")
            ->type_name("WHAT");
        command.add_flag("--force", run.overwriteTrace, "replace the trace if it exists");
        command.add_option("--maths", maths, "training, timed, synthetic, or auto: training when the model allows it")
            ->type_name("MATHS");
        command.add_flag("--synthetic", synthetic,
                         "blocks that burn the design's times and hold its bytes, without a model");
        command
            .add_option("--time-scale", run.scale.time, "with --synthetic or --maths timed: multiplies every time (1)")
            ->type_name("X");
        command
            .add_option("--memory-scale", run.scale.memory,
                        "with --synthetic or --maths timed: multiplies every buffer (1)")
            ->type_name("X");
        command
            .add_option("--device-memory", deviceMemory,
                        "memory limit of each device, overhead included (all of its memory)")
            ->type_name("SIZE");
        command
            .add_option("--inject", faults,
                        "a failure to inject: KIND:DEVICE:STEP:INSTRUCTION, with KIND one of dies, "
                        "stalls, throws, out-of-memory, link-stalls, killed, or slows:…:DELAY")
            ->type_name("FAULT");
        command.add_option("--clock", clock, "real, or virtual: timed maths in logical time")->type_name("CLOCK");
        command
            .add_option(
                "--data", run.data,
                "text to train on, or a file of tokens: two bytes each (.u16, .bin) or four (.u32) (the program's "
                "own sources)")
            ->type_name("PATH");
        command
            .add_option(
                "--scale", modelScale,
                "run a smaller model by the same schedule: keys of a model file, such as "
                "layers=8,vocabulary=32000,data_type=fp32,dropout=off; the report says what was scaled and what "
                "the full model would take")
            ->type_name("KEY=VALUE,…");
        command.add_option("--seed", run.seed, "of parameters and data order")->type_name("N");
        command.add_option("--transport", transport, "rendezvous, or eager:K with K sends on their way")
            ->type_name("TRANSPORT");
        command.add_option("--deadline", deadline, "give up after so long without progress (30s)")->type_name("T");
        command.add_flag(
            "--no-gradient-check", skipGradientCheck,
            "do not compare with the sequential reference (a gradient off by more than 1e-4 of its norm, 3e-2 with "
            "--bf16, is a finding)");
        command
            .add_option(
                "--dump", run.dump,
                "parameters before, during and after, the last step's gradients and predictions, all batches and "
                "losses, for comparison in another framework")
            ->type_name("FILE.safetensors");
        command
            .add_option("--weights", run.weights,
                        "begin with published weights: a safetensors file in the layout of GPT-2, BLOOM, BERT, ViT, "
                        "Llama, Qwen, "
                        "Mixtral, DeepSeek, Gemma or GPT-OSS, or a folder of them (random ones)")
            ->type_name("FILE|FOLDER");
        command.add_option("--save-weights", run.saveWeights, "write the trained weights in that layout")
            ->type_name("FILE.safetensors");
        command.add_flag("--check-memory", run.runtime.checkMemory, "refuse overlaps, overwrite what was released");
        command
            .add_option("--link", link,
                        "with --backend cuda: how GPUs reach each other: auto, copy (copy engines), nccl (between "
                        "processes always)")
            ->type_name("LINK");
        command.add_option("--cuda-libraries", libraries, "folders searched first for cuBLASLt, cuDNN, NCCL and CUPTI")
            ->type_name("FOLDER");
        command
            .add_option(
                "--attention", attention,
                "on GPUs, of models in bf16: who computes attention: auto (cuDNN where it is found and does it, and "
                "its workspace is at most a sixteenth of the memory), own (kernels of this program), cudnn")
            ->type_name("WHO");
        command.add_flag("--bf16", bfloat16, "on GPUs: matrix products of bf16 factors, summed in fp32");
        command.add_flag("--graphs", run.runtime.captureBlocks,
                         "on GPUs: blocks are captured once and launched as CUDA graphs");
        command.add_option("--progress", progress, "auto, bar, json (lines on standard error) or none")
            ->type_name("STYLE");
        command.add_flag("--json", json, "print one JSON object");
    }
    TorchRunOptions torch;
    CLI::App& given;
    ShardingChoice sharding;
    bool onGpus() const { return backend == "cuda" || device == "cuda"; }
    RunOptions run; ///< options that need no parsing
    std::string file, backend, device = "host", maths = "auto", clock = "real", transport = "rendezvous", deadline;
    std::string progress = "auto", record = "kernels", deviceMemory, link = "auto", attention = "auto", modelScale;
    std::vector<std::string> faults, libraries;
    bool bfloat16 = false, synthetic = false, skipGradientCheck = false, json = false;
};

void requireOneOf(const std::string& option, const std::string& value, const std::vector<std::string_view>& known)
{
    std::string list;
    for (const std::string_view word : known) {
        if (value == word)
            return;
        list += (list.empty() ? "" : ", ") + std::string(word);
    }
    throw Error(option, "\"" + value + "\" is none that is known", "use one of " + list);
}

int eagerSlotsOf(const std::string& transport)
{
    if (transport == "rendezvous")
        return 0;
    if (transport == "eager")
        return 1;
    int slots = 0;
    const char* end = transport.data() + transport.size();
    if (transport.starts_with("eager:"))
        if (const auto [stop, error] = std::from_chars(transport.data() + 6, end, slots);
            error == std::errc() && stop == end && slots >= 1 && slots <= 1024)
            return slots;
    throw Error("--transport", "\"" + transport + "\" is no transport",
                "use rendezvous, eager, or eager:K with K from 1 to 1024");
}

RunOptions::Maths mathsOf(const RunCommandOptions& given)
{
    if (given.synthetic && given.maths != "auto" && given.maths != "synthetic")
        throw Error("--synthetic", "contradicts --maths " + given.maths, "leave one of them out");
    if (given.synthetic || given.maths == "synthetic")
        return RunOptions::Maths::Synthetic;
    return given.maths == "training" ? RunOptions::Maths::Training
           : given.maths == "timed"  ? RunOptions::Maths::Timed
                                     : RunOptions::Maths::Automatic;
}

RunOptions runOptions(const RunCommandOptions& given, bool writesTrace)
{
    const CudaTransport link = cudaTransportNamed(given.link);
    requireOneOf("--device", given.device, {"host", "cuda"});
    if (given.device != "host" && given.backend != "mpi")
        throw Error("--device", "says what each of several processes has", "add --backend mpi, or leave it out");
    if (given.device == "cuda" && !reachesProcesses(link))
        throw Error("--link", "GPUs of several processes reach each other by NCCL only",
                    "leave it out, or use --backend cuda");
    if (!given.onGpus()
        && (given.bfloat16 || given.run.runtime.captureBlocks || link != CudaTransport::Automatic
            || cudaAttentionNamed(given.attention) != CudaAttention::Automatic || !given.libraries.empty()))
        throw Error("--bf16, --graphs, --link, --attention, --cuda-libraries", "are for GPUs",
                    "add --backend cuda, or --backend mpi --device cuda, or leave them out");
    requireOneOf("--maths", given.maths, {"auto", "training", "timed", "synthetic"});
    requireOneOf("--clock", given.clock, {"real", "virtual"});
    checkProgressStyle(given.progress);
    if (given.run.steps < 1)
        throw Error("--steps", fmt::format("{} steps", given.run.steps), "do at least one");
    if (writesTrace && !given.run.trace.empty())
        checkOutput(given.run.trace, given.run.overwriteTrace);

    RunOptions options = given.run;
    options.backend = given.backend;
    options.gpus = given.onGpus();
    options.maths = mathsOf(given);
    if (options.scale != SyntheticScale{} && options.maths != RunOptions::Maths::Synthetic
        && options.maths != RunOptions::Maths::Timed)
        throw Error("--time-scale, --memory-scale", "only blocks that take the design's times can be scaled",
                    "add --synthetic, or --maths timed");
    if (!given.deviceMemory.empty())
        options.runtime.deviceMemory = parseSize(given.deviceMemory, "--device-memory");
    for (const std::string& fault : given.faults)
        options.runtime.faults.push_back(parseFault(fault, "--inject"));
    options.clock = given.clock == "virtual" ? RunOptions::Clock::Virtual : RunOptions::Clock::Real;
    options.runtime.eagerSlots = eagerSlotsOf(given.transport);
    if (!given.deadline.empty())
        options.runtime.deadline = parseDuration(given.deadline, "--deadline");
    options.checkGradients = !given.skipGradientCheck;
    options.gradientBound = given.bfloat16 ? bf16GradientBound : fp32GradientBound;
    options.runtime.cancel = cancelOnSignals();
    options.runtime.abandon = [](const Diagnostics& why) {
        printDiagnostics(why);
        endProcess(exitBadInput);
    };
    return options;
}

std::string_view referenceOf(const RunResult& result)
{
    return result.gradients->lagged ? "sequential, equally lagged" : "sequential";
}

void print(const RunResult& result)
{
    printText("{} steps of {} maths on {} devices ({})\n\n", result.stepTimes.size(), result.maths, result.devices,
              result.backend);
    const bool groups = !result.groups.empty();
    std::vector<std::string> titles{"device",          "peak",     "predicted peak", "predicted overhead",
                                    "predicted total", "allocated"};
    if (groups)
        titles.insert(titles.begin() + 1, "group");
    TextTable table(titles);
    bool exact = !result.cancelled;
    for (std::size_t device = 0; device < result.peakBytes.size(); ++device) {
        const HeldMemory& memory = result.memory[device];
        std::vector<std::string> row{std::to_string(device),     formatSize(result.peakBytes[device]),
                                     formatSize(memory.peak),    formatSize(memory.beside()),
                                     formatSize(memory.total()), formatSize(result.heldBytes[device])};
        if (groups)
            row.insert(row.begin() + 1, std::to_string(result.groups[device]));
        table.addRow(row);
        exact = exact && result.heldBytes[device] == memory.total();
    }
    table.print();
    const std::string parts = keptParts(result.memory);
    if (!parts.empty())
        printText("overhead: memory of a device outside its buffers, at most {}\n", parts);
    for (std::size_t device = 0; device < result.hostBytes.size(); ++device)
        printText("device {} offloaded up to {} to the host's memory, predicted {}\n", device,
                  formatSize(result.hostBytes[device]), formatSize(result.predictedHostBytes[device]));
    if (exact)
        printText("every device allocated exactly as many bytes as were predicted before the run\n");
    printText("\n");
    printLastStep(result);
    if (result.gradients && !result.gradients->skipped.empty())
        printText("gradients   not compared: {}\n", result.gradients->skipped);
    else if (result.gradients)
        printText("{}   {}\n", result.gradients->lagged ? "weights  " : "gradients",
                  result.gradients->bitEqual ? fmt::format("bit-equal to the {} reference", referenceOf(result))
                  : result.gradients->worst.empty()
                      ? fmt::format("differ from the {} reference by rounding alone", referenceOf(result))
                      : fmt::format("differ from the {} reference by {:.3g} relative, "
                                    "in {} ({:.3g} is the most)",
                                    referenceOf(result), result.gradients->maxRelativeError, result.gradients->worst,
                                    result.gradients->within));
    if (result.scale) {
        const ScaleReport& scale = *result.scale;
        printText("scaled      {}\n", scale.text());
        printText("            predicted: {} a step, the full model {} and at most {} on a device\n",
                  formatDuration(scale.scaledMakespan), formatDuration(scale.fullMakespan),
                  formatSize(*std::max_element(scale.fullPeaks.begin(), scale.fullPeaks.end())));
        if (!result.stepTimes.empty())
            printText("            the full model would take {} a step here\n",
                      formatDuration(scale.fullStep(medianOf(result.stepTimes))));
    }
    if (result.recorder.records > 0)
        printText("recording   took {}, {} record{} of CUPTI's own work: part of what was measured\n",
                  formatDuration(result.recorder.time), result.recorder.records,
                  result.recorder.records == 1 ? "" : "s");
    if (result.droppedRecords > 0)
        printText("dropped     {} records\n", result.droppedRecords);
    printTrace(result);
}

std::unique_ptr<Backend> hostRank(std::unique_ptr<Mesh> mesh, Nanoseconds deadline)
{
    return createRankBackend(std::move(mesh), deadline);
}

RunResult runReporting(const Design& design, RunOptions options, const std::string& style)
{
    ProgressPrinter printer(style);
    RunProgress last;
    last.loss = std::nan("");
    options.progress = [&](const RunProgress& now) {
        last = now;
        showStep(printer, now, options.steps);
    };
    options.tell = [&](const Diagnostics& now) { printer.interrupt([&] { printDiagnostics(now); }); };
    RunResult result = run(design, options);
    if (!result.cancelled && last.fraction < 1) {
        last.fraction = 1; // the check after the last step is done too
        last.remaining = 0;
        showStep(printer, last, options.steps);
    }
    return result;
}

int runThroughTorch(const RunCommandOptions& given)
{
    if (given.run.steps < 1)
        throw Error("--steps", fmt::format("{} steps", given.run.steps), "do at least one");
    checkProgressStyle(given.progress);
    checkOutput(given.run.trace, given.run.overwriteTrace);
    TorchOptions options;
    options.steps = given.run.steps;
    if (given.given.count("--device") > 0) {
        requireOneOf("--device", given.device, {"auto", "host", "cuda"});
        options.device = given.device;
    }
    if (given.given.count("--seed") > 0)
        options.seed = given.run.seed;
    options.checkGradients = !given.skipGradientCheck;
    options.profile = given.given.count("--record") > 0 && given.record == "kernels";
    if (!given.deadline.empty())
        options.deadline = parseDuration(given.deadline, "--deadline");
    options.trace = given.run.trace;
    options.overwriteTrace = given.run.overwriteTrace;
    options.cancel = cancelOnSignals();
    return given.torch.run(given.file, std::move(options), given.progress, given.json);
}

int runDesign(const RunCommandOptions& given)
{
    requireOneOf("--backend", given.backend, {"host", "cuda", "mpi", "torch"});
    requireOneOf("--record", given.record, {"kernels", "blocks", "nothing"});
    if (const bool nothing = given.record == "nothing"; nothing != given.run.trace.empty())
        throw Error("--output", nothing ? "a trace of nothing" : "no file for the trace",
                    nothing ? "leave out one of --output and --record nothing" : "-o TRACE, or --record nothing");
    if (given.record == "nothing" && given.backend == "torch")
        throw Error("--record", "PyTorch's runs are always recorded", "leave it out, or use blocks or kernels");
    given.torch.requireFitting(given.backend == "torch");
    if (given.backend == "torch")
        return runThroughTorch(given);
    const bool several = given.backend == "mpi";
    const RankEnvironment ranks = several ? rankEnvironment() : RankEnvironment{};
    RunOptions options = runOptions(given, ranks.rank == 0);
    LocatedDesign located = readLocatedDesign(given.file);
    std::optional<ScaleReport> scale;
    if (!given.modelScale.empty()) {
        ScaledDesign scaled = scaledDesign(located.design, given.modelScale);
        located.design = std::move(scaled.design);
        scale = std::move(scaled.report);
    }
    located.design = given.sharding.applied(std::move(located.design));
    // An invalid design is a finding, reported before any thread is started.
    const Program program = predictOrFind(located).program;
    if (runsMembers(located.design, meansOf(options)))
        orFind(located, [&] {
            return memberProgram(program, groupStages(located.design), located.design.costs,
                                 located.design.schedule.transferOrder);
        });
    for (const Fault& fault : options.runtime.faults)
        if (!hasGroups(located.design)) // with groups the run itself determines the devices
            requirePlace(fault, program, options.steps, "--inject");
    if (cudaAttentionNamed(given.attention) != CudaAttention::Automatic
        && (!located.design.workload || located.design.workload->shape.dataType != DataType::Bf16
            || hasGroups(located.design)))
        throw Error("--attention", "says who computes attention of bf16 values, and this design has none on its GPUs",
                    "leave it out, or use a model whose data_type is bf16, on devices without groups");
    const GpuChoice gpus{gpusOfRun(located.design, meansOf(options)),
                         given.link,
                         given.libraries,
                         given.bfloat16,
                         given.record == "kernels",
                         options.runtime.deadline,
                         given.attention};
    Diagnostics doubts;
    bool met = false; // whether this process is connected, so that the others learn of its failure
    if (several) {
        // Missing GPUs are reported before any process is started.
        const RankCreator create = given.onGpus() ? cudaRank(gpus, doubts) : RankCreator(hostRank);
        if (!ranks.launched)
            return runOnLocalRanks(devicesOfRun(located.design, meansOf(options)), options.runtime.deadline);
        options.createBackend = [&met, ranks, create, deadline = options.runtime.deadline](int) {
            std::unique_ptr<Backend> backend = create(
                connectSocketMesh(ranks.rank, ranks.size, ranks.address, ranks.port, rankSecret(), deadline), deadline);
            met = true;
            return backend;
        };
    }
    if (options.data.empty())
        options.data = defaultData(located.design);
    if (given.backend == "cuda")
        options.createBackend = cudaBackend(gpus, devicesOfRun(located.design, meansOf(options)), doubts);
    if (given.backend == "host")
        if (const BackendCheck check = checkForBackend(located.design, meansOf(options)); !hasErrors(check.found)) {
            const Diagnostics slow = whySlow(located.design, meansOf(options), check.trains);
            doubts.insert(doubts.end(), slow.begin(), slow.end());
        }
    if (ranks.rank == 0)
        printDiagnostics(located.locate(doubts));
    RunResult result;
    try {
        result = runReporting(located.design, options, ranks.rank == 0 ? given.progress : "none");
    } catch (const Error& error) {
        // All ranks know the error; rank 0 prints it, or all do if rank 0 is gone.
        if (ranks.rank == 0 || !met || std::string_view(error.what()).find("(rank 0, ") != std::string_view::npos)
            throw;
        return exitBadInput;
    }
    result.scale = std::move(scale);
    if (!result.isRankZero)
        return result.cancelled ? exitFinding : exitSuccess;
    if (given.json)
        printText("{}\n", result.toJson());
    else
        print(result);
    return endRun(result, given.run.trace, given.run.steps);
}

} // namespace

void addRunCommand(CLI::App& program, int& exitCode)
{
    CLI::App& command = *program.add_subcommand("run", "Executes a design and records a trace");
    const auto options = std::make_shared<RunCommandOptions>(command);
    command.callback([options, &exitCode] { exitCode = runDesign(*options); });
}

} // namespace pipewright::app
