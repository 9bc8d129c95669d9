// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/backendmemory.h"
#include "app/command.h"
#include "app/modulecheck.h"
#include "app/terminal.h"

#include "core/design/costorigins.h"
#include "core/predict/designcheck.h"
#include "core/program/pairtimes.h"
#include "core/schedule/validate.h"
#include "executor/run/backendcheck.h"
#include "executor/run/machinefit.h"
#include "executor/run/memorycheck.h"
#include "executor/torch/torchjob.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

namespace pipewright::app {

namespace {

struct CheckOptions {
    explicit CheckOptions(CLI::App& command)
    {
        command
            .add_option(
                "file", file,
                "the design file; or with --for torch your model, FILE.py:build, which says what it holds that a "
                "pipeline has to know: shared and frozen parameters, tuples, backwards that cannot be split, "
                "random numbers")
            ->required()
            ->type_name("FILE");
        command
            .add_option(
                "--for", backend,
                "also say what `run --backend` of that name cannot run, or runs otherwise than drawn, and what it "
                "would allocate of each device")
            ->type_name("host|mpi|cuda|torch");
        command.add_option("--maths", maths, "with --for: as of `run` (auto)")->type_name("auto|training|timed");
        command.add_flag("--graphs", graphs, "with --for cuda: as of `run`");
        ofModule = command.add_option_group("Of a module");
        ofModule->add_option("--python", module.python, "the Python that has PyTorch (python3)")->type_name("PROGRAM");
        ofModule->add_option("--device", module.device, "host, cuda, or auto: the GPU where there is one")
            ->type_name("DEVICE");
        ofModule->add_option("--seed", module.seed, "of parameters and data")->type_name("N");
        command.add_flag("--json", json, "print one JSON object");
    }
    CLI::App* ofModule;
    ModuleLookOptions module;
    std::string file, backend, maths = "auto";
    bool graphs = false, json = false;
};

std::string_view word(Severity severity)
{
    return severity == Severity::Error ? "error" : severity == Severity::Warning ? "warning" : "note";
}

Json toJson(const MemoryPeak& peak)
{
    if (peak.during.empty() && peak.persistent == 0) // of a group's member: its parts are not worked out
        return {{"member", peak.device}, {"limit_bytes", peak.limit}, {"peak_bytes", peak.peak}};
    Json saved = Json::array();
    for (const MemoryPeak::Saved& stage : peak.saved)
        saved.push_back({{"stage", stage.stage}, {"microbatches", stage.microbatches}, {"bytes", stage.bytes}});
    return {{"device", peak.device},
            {"limit_bytes", peak.limit},
            {"peak_bytes", peak.peak},
            {"time_ns", peak.time},
            {"during", peak.during},
            {"persistent_bytes", peak.persistent},
            {"saved_bytes", peak.savedBytes()},
            {"saved_by_stage", std::move(saved)},
            {"gathered_bytes", peak.gathered},
            {"whole_gradients_bytes", peak.wholeGradients},
            {"received_bytes", peak.received},
            {"made_bytes", peak.made},
            {"workspace_bytes", peak.workspace}};
}

Json toJson(const std::string& file, const Diagnostics& diagnostics, const std::vector<MemoryPeak>& crossed,
            const std::optional<MemoryCheck>& held)
{
    Json list = Json::array();
    for (const Diagnostic& diagnostic : diagnostics)
        list.push_back({{"severity", word(diagnostic.severity)},
                        {"where", diagnostic.where},
                        {"what", diagnostic.what},
                        {"hint", diagnostic.hint}});
    Json memory = Json::array();
    for (const MemoryPeak& peak : crossed)
        memory.push_back(toJson(peak));
    Json object{{"design", file},
                {"valid", !hasErrors(diagnostics)},
                {"diagnostics", std::move(list)},
                {"memory_crossed", std::move(memory)}};
    if (held && !held->memory.empty())
        addHeldMemory(object, held->memory);
    return object;
}

void printValid(const std::string& file, const Design& design, const std::optional<MemoryCheck>& held,
                const std::string& backend)
{
    printText("{}: {} can run: {} blocks on {} devices\n", file, design.name, design.schedule.blocks(),
              design.schedule.devices());
    if (const std::string gaps = hostGapsText(design); !gaps.empty())
        printText("the host takes {}\n", gaps);
    if (const std::string pairs = pairLengthsText(design.schedule, design.costs); !pairs.empty())
        printText("overlapped pairs: {}\n", pairs);
    if (held && !held->memory.empty())
        printText("{}\n", backendMemoryText(held->memory, backend));
}

/// What PyTorch's ranks cannot run of the design, or run otherwise.
void addFaults(const Design& design, Diagnostics& found)
{
    try {
        requirePossible(design, {});
        const Diagnostics notes = notesForTorch(design, {});
        found.insert(found.end(), notes.begin(), notes.end());
    } catch (const Error& error) {
        found.insert(found.end(), error.diagnostics().begin(), error.diagnostics().end());
    }
}

std::optional<MemoryCheck> addBackend(const CheckOptions& options, const Design& design, Diagnostics& found)
{
    const std::pair<std::string_view, RunOptions::Maths> known[] = {{"auto", RunOptions::Maths::Automatic},
                                                                    {"training", RunOptions::Maths::Training},
                                                                    {"timed", RunOptions::Maths::Timed}};
    const auto* const maths =
        std::find_if(std::begin(known), std::end(known), [&](const auto& way) { return way.first == options.maths; });
    if (maths == std::end(known))
        throw Error("--maths", "\"" + options.maths + "\" is none that is known", "use auto, training or timed");
    const bool torch = options.backend == "torch";
    if (!torch && std::find(std::begin(runBackends), std::end(runBackends), options.backend) == std::end(runBackends))
        throw Error("--for", "\"" + options.backend + "\" is no backend", "use host, mpi, cuda or torch");
    if (hasErrors(validate(design.schedule, design.dataflow.skips)))
        return std::nullopt; // it runs nowhere
    if (torch) {
        addFaults(design, found);
        return std::nullopt;
    }
    const RunMeans means{options.backend, maths->second, false, false, options.graphs};
    const BackendCheck check = checkForBackend(design, means);
    found.insert(found.end(), check.found.begin(), check.found.end());
    if (hasErrors(found))
        return std::nullopt;
    const Diagnostics slow = whySlow(design, means, check.trains);
    found.insert(found.end(), slow.begin(), slow.end());
    MemoryCheck memory = memoryWith(design, options.backend, maths->second);
    if (memory.memory.empty())
        found.push_back({Severity::Note, "--for",
                         "what the devices hold beside the buffers is not known here: " + memory.reason,
                         "check where it is to run"});
    found.insert(found.end(), memory.found.begin(), memory.found.end());
    return memory;
}

} // namespace

void addCheckCommand(CLI::App& program, int& exitCode)
{
    CLI::App& command = *program.add_subcommand("check", "Checks a design: dependencies, duplicates, memory, deadlock");
    const auto options = std::make_shared<CheckOptions>(command);
    command.callback([options, &exitCode] {
        if (options->backend == "torch" && options->maths != "auto")
            throw Error("--maths", "is for the built-in backends, and PyTorch runs your module", "leave it out");
        if (isModule(options->file)) {
            if (options->backend != "torch")
                throw Error("--for", "a module is checked for PyTorch", "add --for torch");
            if (options->graphs)
                throw Error("--graphs", "is for a design, and this is a module", "leave it out");
            options->module.module = options->file;
            exitCode = checkModule(options->module, options->json);
            return;
        }
        if (const auto given = givenOptions(*options->ofModule); !given.empty())
            throw Error(given.front(), "is for a module, and this is a design", "leave it out, or check FILE.py:build");
        const LocatedDesign located = readLocatedDesign(options->file);
        const Design& design = located.design;
        std::vector<MemoryPeak> crossed;
        Diagnostics found = checkDesign(design, &crossed);
        std::optional<MemoryCheck> held;
        if (options->graphs && options->backend != "cuda")
            throw Error("--graphs", "is of GPUs", "add --for cuda");
        if (!options->backend.empty())
            held = addBackend(*options, design, found);
        else if (options->maths != "auto")
            throw Error("--maths", "says how a backend would run it, and none is named",
                        "add --for host, mpi, cuda or torch");
        const Diagnostics diagnostics = located.locate(std::move(found));
        printDiagnostics(diagnostics);
        const bool valid = !hasErrors(diagnostics);
        if (options->json)
            printJson(toJson(options->file, diagnostics, crossed, held));
        else if (valid)
            printValid(options->file, design, held, options->backend);
        exitCode = valid ? exitSuccess : exitFinding;
    });
}

} // namespace pipewright::app
