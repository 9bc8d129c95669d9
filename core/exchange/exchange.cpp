// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/exchange/exchange.h"

#include "core/exchange/blockscsv.h"
#include "core/exchange/chrometrace.h"
#include "core/exchange/deepspeed.h"
#include "core/exchange/jaxpp.h"
#include "core/exchange/megatronargs.h"
#include "core/exchange/megatronlayout.h"
#include "core/exchange/perfetto.h"
#include "core/exchange/pytorchcsv.h"
#include "core/exchange/saillines.h"
#include "core/exchange/sharedpage.h"
#include "core/exchange/torchtitan.h"
#include "core/predict/predict.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace pipewright {

namespace {

using WriteTimes = void (*)(const Program&, const Timeline&, const Timeline*, const Pieces&);

template<WriteTimes write>
void withTimes(const Design&, const Prediction& prediction, const ExportOptions& options, const Pieces& to)
{
    write(prediction.program, prediction.timeline, options.measured, to);
}

void chrome(const Design& design, const Prediction& prediction, const ExportOptions& options, const Pieces& to)
{
    chromeTrace(prediction.program, prediction.timeline, design.name, options.measured, to, options.predictedCurve);
}

void perfetto(const Design&, const Prediction& prediction, const ExportOptions& options, const Pieces& to)
{
    perfettoTrace(prediction.program, prediction.timeline, options.measured, to, options.predictedCurve);
}

void page(const Design& design, const Prediction& prediction, const ExportOptions& options, const Pieces& to)
{
    sharedPage(design, prediction, options.measured, options.predictedCurve, to);
}

constexpr std::array<ExportFormat, 15> exporters{{
    {"pytorch-csv", "PyTorch schedule, computations only", "csv",
     "torch.distributed.pipelining adds the communication itself",
     [](const Design& d, const ExportOptions&) { return pytorchCsv(d); }},
    {"pytorch-comms-csv", "PyTorch schedule with communication", "csv",
     "every send, receive and wait, in an order proved free of deadlock; for PyTorch 2.15 and later",
     [](const Design& d, const ExportOptions&) { return pytorchCommsCsv(d, PytorchVersion::V2_15); }},
    {"pytorch-2.14-comms-csv", "PyTorch 2.10 to 2.14 schedule with communication", "csv", "the same without waits",
     [](const Design& d, const ExportOptions&) { return pytorchCommsCsv(d, PytorchVersion::V2_10); }},
    {"pytorch-2.9-comms-csv", "PyTorch 2.6 to 2.9 schedule with communication", "csv",
     "the same without waits and reductions",
     [](const Design& d, const ExportOptions&) { return pytorchCommsCsv(d, PytorchVersion::V2_9); }},
    {"torchtitan", "torchtitan configuration", "py",
     "a Python function that sets ranks, microbatches, schedule file and the modules of each stage",
     [](const Design& d, const ExportOptions& o) { return torchtitanConfig(d, o.csv); }},
    {"automodel", "NeMo Automodel configuration", "yaml",
     "ranks, microbatches, schedule file and the modules of each stage",
     [](const Design& d, const ExportOptions& o) { return automodelConfig(d, o.csv); }},
    {"jaxpp", "JaxPP schedule class", "py", "a Python class that lists the tasks of every actor",
     [](const Design& d, const ExportOptions&) { return jaxppSchedule(d); }},
    {"megatron-layout", "Megatron-LM layout", "txt", "the partition as --pipeline-model-parallel-layout",
     [](const Design& d, const ExportOptions&) { return megatronLayout(d); }},
    {"megatron-args", "Megatron-LM arguments", "txt",
     "degrees, layout, batch, recomputation, distributed optimizer and the model's dimensions",
     [](const Design& d, const ExportOptions&) { return megatronArguments(d); }},
    {"deepspeed", "DeepSpeed configuration", "json", "batch, ZeRO stage, precision, stages and recomputed layers",
     [](const Design& d, const ExportOptions&) { return deepspeedConfig(d); }},
    {"chrome", "Chrome trace of the prediction", "json", "for ui.perfetto.dev and chrome://tracing", nullptr, chrome,
     Curves::OneByOne},
    {"perfetto", "Perfetto trace of the prediction", "perfetto-trace",
     "for ui.perfetto.dev, predicted and measured as sibling tracks", nullptr, perfetto, Curves::OneByOne},
    {"page", "page to share", "html",
     "one file for a browser: zoom, click a block and read what it waits for, memory and idle time, a run beside it",
     nullptr, page, Curves::OneByOne},
    {"blocks-csv", "table of the blocks", "csv", "start and end of every block, predicted and measured", nullptr,
     withTimes<blocksCsv>},
    {"metrics-csv", "table of the metrics", "csv", "busy and idle time of every device by cause", nullptr,
     withTimes<metricsCsv>},
}};

Imported readSailLines(std::string_view text, const std::string& source, const ImportOptions& options)
{
    if (options.transfers)
        throw Error("--transfers", "is of PyTorch's schedules, and " + source + " is of the zero-bubble tools",
                    "leave it out");
    return importSailLines(text, source);
}

constexpr std::array<ImportFormat, 3> importers{{
    {"pytorch-csv", "PyTorch schedule, computations only",
     [](std::string_view text, const std::string& source, const ImportOptions& options) {
         return importPytorchCsv(text, source, options.letters, PytorchCsv::ComputeOnly, options.transfers);
     }},
    {"pytorch-comms-csv", "PyTorch schedule with communication",
     [](std::string_view text, const std::string& source, const ImportOptions& options) {
         return importPytorchCsv(text, source, options.letters, PytorchCsv::ComputeComms, options.transfers);
     }},
    {"sail", "schedule lines of the zero-bubble tools", readSailLines},
}};

/// PyTorch's cells begin with a digit or a bracket, the zero-bubble tools' with a letter.
bool beginsWithLetter(std::string_view text)
{
    const std::size_t at = text.find_first_of("0123456789(FBWfbw");
    return at != std::string_view::npos && text[at] != '(' && (text[at] < '0' || text[at] > '9');
}

template<class Formats>
std::string namesOf(const Formats& formats)
{
    std::string names;
    for (const auto& format : formats)
        names += fmt::format("{}{}", names.empty() ? "" : ", ", format.name);
    return names;
}

} // namespace

std::span<const ExportFormat> exportFormats()
{
    return exporters;
}

const ExportFormat& exportFormat(std::string_view name)
{
    const auto found =
        std::find_if(exporters.begin(), exporters.end(), [&](const ExportFormat& f) { return f.name == name; });
    if (found == exporters.end())
        throw Error("--to", fmt::format("unknown format {}", inQuotes(name)), "known formats: " + namesOf(exporters));
    return *found;
}

Diagnostics ExportFormat::writeTo(const Pieces& to, const Design& design, const ExportOptions& options) const
{
    if (times != nullptr) {
        if (options.predicted != nullptr)
            times(design, *options.predicted, options, to);
        else
            times(design, predict(design), options, to);
        return {};
    }
    ExportedText exported = text(design, options);
    to(exported.text);
    return std::move(exported.diagnostics);
}

ExportedText ExportFormat::write(const Design& design, const ExportOptions& options) const
{
    ExportedText whole;
    whole.text = joined([&](const Pieces& to) { whole.diagnostics = writeTo(to, design, options); });
    return whole;
}

std::span<const ImportFormat> importFormats()
{
    return importers;
}

Imported importDesign(std::string_view text, const std::string& source, const ImportOptions& options)
{
    if (text.find_first_not_of(" \t\r\n") == std::string_view::npos)
        throw Error(source, "the file is empty");
    if (options.format.empty())
        return beginsWithLetter(text) ? readSailLines(text, source, options)
                                      : importPytorchCsv(text, source, options.letters, {}, options.transfers);
    const auto found = std::find_if(importers.begin(), importers.end(),
                                    [&](const ImportFormat& f) { return f.name == options.format; });
    if (found == importers.end())
        throw Error("--from", fmt::format("unknown format {}", inQuotes(options.format)),
                    "known formats: " + namesOf(importers));
    return found->read(text, source, options);
}

} // namespace pipewright
