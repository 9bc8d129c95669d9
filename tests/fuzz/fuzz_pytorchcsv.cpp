// SPDX-License-Identifier: GPL-3.0-or-later
// A PyTorch CSV that is accepted gives a valid schedule that is the same after writing and reading it.
#include "core/exchange/pytorchcsv.h"
#include "core/schedule/validate.h"
#include "structured.h"
#include "survive.h"

using namespace pipewright;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    for (const PytorchLetters letters : {PytorchLetters::Current, PytorchLetters::Legacy}) {
        Imported imported;
        if (!fuzz::survives([&] { imported = importPytorchCsv(text, "file", letters); }))
            continue;
        const Schedule& schedule = imported.design.schedule;
        fuzz::require(!hasErrors(validate(schedule)));
        fuzz::require(importPytorchCsv(pytorchCsv(imported.design).text, "again").design.schedule == schedule);
        ExportedText comms; // refused where PyTorch would mix up the losses
        if (fuzz::survives([&] { comms = pytorchCommsCsv(imported.design); }))
            fuzz::require(importPytorchCsv(comms.text, "again").design.schedule == schedule);
    }
    return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed)
{
    return fuzz::mutateTable(data, size, most, seed);
}
