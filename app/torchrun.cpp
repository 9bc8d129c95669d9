// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/torchrun.h"

#include "app/command.h"
#include "app/runprogress.h"
#include "app/table.h"
#include "app/terminal.h"

#include "core/base/textfile.h"
#include "core/base/units.h"
#include "executor/torch/torchbackend.h"
#include "executor/torch/torchcopies.h"

#include <fmt/format.h>

namespace pipewright::app {

namespace {

std::string gradientsText(const GradientCheck& check)
{
    if (!check.skipped.empty())
        return "not compared: " + check.skipped;
    const bool lagged = check.reference == "sequential-lagged"; // then weights are compared instead of gradients
    if (check.bitEqual)
        return lagged ? "none compared; the weights are bit-equal to those of a sequential emulation, and every block "
                        "read "
                        "the version that the design says"
                      : "bit-equal to the same module run whole";
    return fmt::format("{} {}: {:.3g} relative{}, {:.3g} is the most", check.holds() ? "equal to" : "differ from",
                       lagged ? "a sequential emulation's weights" : "the whole module's", check.maxRelativeError,
                       check.worst.empty() ? "" : " in " + check.worst, check.within);
}

void printTorchRun(const RunResult& result)
{
    printText("{} steps of {}{} on {} ranks (PyTorch)\n", result.stepTimes.size(),
              result.maths == "synthetic" ? "stages that take the design's times" : "the module",
              result.copies > 1 ? fmt::format(" in {} copies", result.copies) : std::string(),
              result.devices * result.copies);
    if (!result.peakBytes.empty()) {
        TextTable table({"device", "peak", "predicted peak"});
        for (std::size_t device = 0; device < result.peakBytes.size(); ++device)
            table.addRow({std::to_string(device), formatSize(result.peakBytes[device]),
                          formatSize(result.predictedPeakBytes[device])});
        printText("\n");
        table.print();
    }
    printText("\n");
    printLastStep(result);
    if (result.gradients)
        printText("gradients   {}\n", gradientsText(*result.gradients));
    if (const RecorderCost& cost = result.recorder; cost.stepWithout > 0)
        printText("recording   PyTorch's profiler: {} a step with it, {} without ({:+.1f} %)\n",
                  formatDuration(cost.stepWith), formatDuration(cost.stepWithout),
                  100 * (static_cast<double>(cost.stepWith) / static_cast<double>(cost.stepWithout) - 1));
    printTrace(result);
}

} // namespace

TorchRunOptions::TorchRunOptions(CLI::App& command)
    : m_command(command), m_group(*command.add_option_group("PyTorch", "with --backend torch"))
{
    m_group
        .add_option(
            "--module", m_module,
            "your model: FILE.py:build returns its layers in order, or build(stage) one stage, and a tuple that one "
            "returns is as many arguments of the next; the file has batch(step) and loss(output, target) too, and may "
            "have optimizer(parameters)")
        ->type_name("FILE.py:NAME");
    m_group
        .add_option("--ranks", m_ranks,
                    "processes: as many as the design has devices, times the copies of the pipeline")
        ->type_name("N");
    m_group
        .add_option(
            "--replicas", m_replicas,
            "copies of the pipeline, each with rows of its own; your file's replicate(module, mesh) joins those of a "
            "stage, as with DistributedDataParallel or fully_shard (1). Copies that the design counts (new "
            "--data-parallel "
            "N) run without it: what they share out (--zero) says what joins them")
        ->check(CLI::Range(1, 1 << 16))
        ->type_name("N");
    m_group.add_flag("--synthetic-stages", m_synthetic, "stages that take the design's times, without a module");
    m_group.add_option("--python", m_python, "the Python that has PyTorch (python3)")->type_name("PROGRAM");
    m_group.add_flag("--print-command", m_printCommand,
                     "write the job to TRACE.job.json, and print how torchrun or srun starts it");
    m_group
        .add_option("--collect", m_collect,
                    "make the trace of what the ranks of such a start recorded into this folder")
        ->type_name("FOLDER");
}

void TorchRunOptions::requireFitting(bool torch) const
{
    if (!torch) {
        if (const auto given = givenOptions(m_group); !given.empty())
            throw Error(given.front(), "is for PyTorch's ranks", "add --backend torch, or leave it out");
        return;
    }
    for (const char* option :
         {"--maths", "--synthetic", "--time-scale", "--memory-scale", "--device-memory", "--inject", "--clock",
          "--data", "--transport", "--check-memory", "--link", "--attention", "--cuda-libraries", "--bf16", "--graphs",
          "--dump", "--weights", "--save-weights"})
        if (m_command.count(option) > 0)
            throw Error(option, "is for the built-in backends, and PyTorch runs your module",
                        "leave it out, or use another backend");
    if (m_synthetic && !m_module.empty())
        throw Error("--synthetic-stages", "stand in for a module, and --module is given too",
                    "leave one of the two out");
    if (!m_synthetic && m_module.empty() && m_collect.empty())
        throw Error("--module", "is missing: what PyTorch is to run",
                    "give --module FILE.py:build, or --synthetic-stages");
}

TorchOptions TorchRunOptions::complete(TorchOptions common) const
{
    common.module = m_module;
    common.syntheticStages = m_synthetic;
    common.ranks = m_ranks;
    common.replicas = m_replicas;
    common.python = m_python;
    return common;
}

int TorchRunOptions::run(const std::string& designFile, TorchOptions common, const std::string& progress,
                         bool json) const
{
    const LocatedDesign located = readLocatedDesign(designFile);
    predictOrFind(located); // an invalid design is a finding, reported before any process is started
    TorchOptions options = complete(std::move(common));
    if (m_printCommand) {
        Diagnostics notes;
        const std::string job = options.trace + ".job.json", folder = options.trace + ".ranks";
        writeFileAtomically(job, torchJob(located.design, options, notes), options.overwriteTrace);
        printDiagnostics(located.locate(notes));
        printText("{}pipewright run {} --backend torch --steps {}{} --collect {} -o {}\n",
                  torchCommandText(options, located.design.schedule.devices() * copiesOf(located.design, options), job,
                                   folder),
                  shellWord(designFile), options.steps,
                  options.replicas > 1 ? fmt::format(" --replicas {}", options.replicas) : std::string(),
                  shellWord(folder), shellWord(options.trace));
        return exitSuccess;
    }
    ProgressPrinter printer(progress);
    options.progress = [&](const RunProgress& now) { showStep(printer, now, options.steps); };
    options.tell = [&](const Diagnostics& now) { printer.interrupt([&] { printDiagnostics(now); }); };
    const RunResult result =
        m_collect.empty() ? runWithTorch(located.design, options) : collectTorchRun(located.design, m_collect, options);
    if (json)
        printText("{}\n", result.toJson());
    else
        printTorchRun(result);
    return endRun(result, options.trace, options.steps);
}

} // namespace pipewright::app
