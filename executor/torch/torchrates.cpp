// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/torch/torchrates.h"

#include "core/base/diagnostic.h"
#include "executor/torch/moduleprogram.h"

#include <nlohmann/json.hpp>

namespace pipewright {

TorchRates measureInTorch(std::span<const RatedShape> shapes, const TorchRatesOptions& options)
{
    JsonValue list = JsonValue::array();
    for (const RatedShape& shape : shapes) {
        JsonValue sizes = JsonValue::array();
        for (std::size_t d = 0; d < dimensionsOf(shape.operation).size(); ++d)
            sizes.push_back(shape.dims[d]);
        list.push_back({{"operation", std::string(nameOf(shape.operation))},
                        {"layout", std::string(shape.layout)},
                        {"types", std::string(shape.types)},
                        {"dims", std::move(sizes)}});
    }
    const ModuleProgram program{"pipewright.rates",
                                "measuring",
                                options.python,
                                {{"device", options.device}, {"seconds", options.seconds}, {"shapes", std::move(list)}},
                                options.cancel};
    TorchRates found;
    const bool complete = program.run([&](const nlohmann::json& report) {
        if (report.contains("hello")) {
            found.device = report.at("device");
            found.tool = "PyTorch " + report.at("torch").get<std::string>();
        }
        if (!report.contains("shape"))
            return;
        const auto index = report.at("shape").get<std::size_t>();
        if (index >= shapes.size())
            throw Error("measuring", "a time of a shape that was not asked for",
                        "the pipewright package in this Python is of another version than the program");
        const RatedShape& shape = shapes[index];
        if (report.contains("left_out"))
            found.leftOut.push_back({shape, report.at("left_out")});
        else if (const double seconds = report.at("seconds"); seconds > 0)
            found.times.push_back({shape, seconds});
        else
            found.leftOut.push_back({shape, "it took no time"});
        if (options.progress)
            options.progress(report.at("fraction"), textOf(shape));
    });
    if (!complete)
        throw Error("measuring", "cancelled", "nothing was written");
    return found;
}

} // namespace pipewright
