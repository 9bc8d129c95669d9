// SPDX-License-Identifier: GPL-3.0-or-later
// A PyTorch CSV that is accepted gives a valid schedule that is the same after writing and reading it, but for the
// order of transfers: the file's own, or the one that PyTorch would use.
#include "core/exchange/pytorchcsv.h"
#include "core/schedule/validate.h"
#include "structured.h"
#include "survive.h"

using namespace pipewright;

namespace {

Schedule withoutTransfers(Schedule schedule)
{
    schedule.transferOrder.clear();
    return schedule;
}

Schedule readAgain(const ExportedText& written)
{
    return withoutTransfers(importPytorchCsv(written.text, "again").design.schedule);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    for (const PytorchLetters letters : {PytorchLetters::Current, PytorchLetters::Legacy}) {
        Imported imported;
        if (!fuzz::survives([&] { imported = importPytorchCsv(text, "file", letters); }))
            continue;
        fuzz::require(!hasErrors(validate(imported.design.schedule)));
        const Schedule schedule = withoutTransfers(imported.design.schedule);
        fuzz::require(readAgain(pytorchCsv(imported.design)) == schedule);
        ExportedText comms; // refused where PyTorch would mix up the losses
        if (fuzz::survives([&] { comms = pytorchCommsCsv(imported.design); }))
            fuzz::require(readAgain(comms) == schedule);
    }
    return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed)
{
    return fuzz::mutateTable(data, size, most, seed);
}
