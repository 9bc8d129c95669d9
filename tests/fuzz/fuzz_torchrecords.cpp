// SPDX-License-Identifier: GPL-3.0-or-later
// Lines that ranks of PyTorch report in are taken, or refused with a reason; steps that all have ended have a length.
// The first byte of a line says whose it is.
#include "core/design/designbuilder.h"
#include "core/program/compile.h"
#include "executor/torch/torchrecords.h"
#include "structured.h"
#include "survive.h"

using namespace pipewright;

namespace {

class Counting : public RecordSink {
public:
    void append(const std::vector<TaskRecord>& records) override { count += records.size(); }
    void append(const std::vector<MemoryRecord>& records) override { count += records.size(); }
    void append(const StepRecord&) override { ++count; }
    void append(const std::vector<GpuRecord>& records) override { count += records.size(); }
    void commit() override {}
    std::size_t count = 0;
};

Program smallProgram()
{
    DesignRequest request;
    request.family = "1f1b";
    request.devices = 2;
    request.microbatches = 2;
    const Design design = makeDesign(request);
    return compile(design.schedule, design.costs, design.dataflow);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size)
{
    static const Program program = smallProgram();
    Counting sink;
    TorchRecords records(program, &sink);
    std::string_view rest(reinterpret_cast<const char*>(data), size);
    // A run ends at the first line that is refused. Some more are taken here, but a refusal takes far longer than a
    // line.
    int refused = 0;
    while (!rest.empty() && refused < 3) {
        const std::string_view line = rest.substr(0, rest.find('\n'));
        rest.remove_prefix(std::min(rest.size(), line.size() + 1));
        if (!line.empty()
            && !fuzz::survives([&] { records.take(line[0] == '1' ? 1 : 0, std::string(line.substr(1))); }))
            ++refused;
    }
    fuzz::require(records.result().stepTimes.size() == records.result().losses.size());
    (void)records.whereRanksAre();
    (void)records.deviceNames();
    return 0;
}

/// One of the lines.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed)
{
    return fuzz::mutateOneLine(data, size, most, seed, 1, fuzz::mutateJson);
}
