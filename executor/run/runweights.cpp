// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/run/runweights.h"

#include "core/base/outputfile.h"
#include "core/base/textfile.h"
#include "executor/run/publishedparts.h"
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

TrainedWork::Start startFromWeights(const Workload& workload, const std::string& path, Diagnostics& notes)
{
    const auto file = std::make_shared<SafetensorsFile>(SafetensorsFile::open(path));
    if (const auto unused = unusedTensors(*file, workload.shape, wholeModel(workload)); !unused.empty())
        notes.push_back({Severity::Note,
                         path,
                         fmt::format("{} of its tensors are of no parameter of the model, such as \"{}\"",
                                     unused.size(), unused.front()),
                         {}});
    return [file, shape = workload.shape](const ParameterLayout& layout, std::span<float> parameters) {
        readPublished(*file, shape, layout, parameters);
    };
}

void checkWeightsOutput(const Workload& workload, const std::string& path, bool overwrite)
{
    checkOutput(path, overwrite);
    const ParameterLayout whole = wholeModel(workload);
    for (const Parameter& parameter : whole.parameters())
        publishedParts(workload.shape, parameter);
}

void saveWeights(const std::vector<std::vector<float>>& parameters, const Workload& workload, const std::string& path,
                 bool overwrite)
{
    std::vector<float> all;
    for (const std::vector<float>& stage : parameters)
        all.insert(all.end(), stage.begin(), stage.end());
    Safetensors file;
    file.setMetadata("format", "pt");
    addPublished(file, workload.shape, wholeModel(workload), all);
    writeFileAtomically(path, file.bytes(), overwrite);
}

} // namespace pipewright
