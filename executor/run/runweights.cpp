// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/run/runweights.h"

#include "core/base/outputfile.h"
#include "core/base/textfile.h"
#include "executor/run/publishedweights.h"

#include <fmt/format.h>

#include <memory>

namespace pipewright {

namespace {

ParameterLayout wholeModel(const Workload& workload)
{
    return {workload, 0, static_cast<int>(workload.layers.size())};
}

} // namespace

void startFromWeights(TrainingWork& work, const Workload& workload, const std::string& path, Diagnostics& notes)
{
    const auto file = std::make_shared<SafetensorsFile>(SafetensorsFile::open(path));
    if (const auto unused = unusedTensors(*file, workload.shape, wholeModel(workload)); !unused.empty())
        notes.push_back({Severity::Note,
                         path,
                         fmt::format("{} of its tensors are of no parameter of the model, such as \"{}\"",
                                     unused.size(), unused.front()),
                         {}});
    work.setStart([file, shape = workload.shape](const ParameterLayout& layout, std::span<float> parameters) {
        readPublished(*file, shape, layout, parameters);
    });
}

void checkWeightsOutput(const Workload& workload, const std::string& path, bool overwrite)
{
    checkOutput(path, overwrite);
    const ParameterLayout whole = wholeModel(workload);
    for (const Parameter& parameter : whole.parameters())
        publishedParts(workload.shape, parameter);
}

void saveWeights(TrainingWork& work, const Workload& workload, const std::string& path, bool overwrite)
{
    work.fetch(BufferKind::Parameters);
    std::vector<float> all;
    for (int stage = 0; stage < work.stages(); ++stage) {
        const auto parameters = work.parameters(stage);
        all.insert(all.end(), parameters.begin(), parameters.end());
    }
    Safetensors file;
    file.setMetadata("format", "pt");
    addPublished(file, workload.shape, wholeModel(workload), all);
    writeFileAtomically(path, file.bytes(), overwrite);
}

} // namespace pipewright
