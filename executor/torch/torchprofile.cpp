// SPDX-License-Identifier: GPL-3.0-or-later
#include "executor/torch/torchprofile.h"

#include "core/base/diagnostic.h"
#include "core/model/layertable.h"
#include "executor/torch/modulefacts.h"
#include "executor/torch/moduleprogram.h"
#include "executor/torch/python.h"

#include <nlohmann/json.hpp>

#include <filesystem>

namespace pipewright {

namespace {

using Json = nlohmann::json;

constexpr int mostRounds = 200;

/// What the measuring process reported so far.
class Reports {
public:
    explicit Reports(const TorchProfileOptions& options) : m_options(options) {}

    TorchProfile result()
    {
        const std::string name = std::filesystem::path(m_options.module.substr(0, m_options.module.rfind(':'))).stem();
        profile.shape = tableShape(name, std::move(m_table), m_type, m_rows);
        profile.shape.autograd = true;
        if (Diagnostics wrong = checkTable(profile.shape); !wrong.empty() && !profile.cancelled)
            throw Error(std::move(wrong));
        return std::move(profile);
    }

    TorchProfile profile;

    void take(const Json& report)
    {
        if (report.contains("note"))
            profile.notes.push_back(report["note"]);
        for (const Diagnostic& note : notesOf(factsOfReport(report)))
            profile.notes.push_back(note.what);
        if (report.contains("estimated"))
            profile.estimated = report["estimated"].get<std::vector<std::string>>();
        if (report.contains("hello")) {
            profile.device = report.at("device");
            profile.tool = "PyTorch " + report.at("torch").get<std::string>();
            m_layers = report.at("layers");
            m_rows = report.at("rows");
            m_type = report.at("data_type") == "bf16" ? DataType::Bf16 : DataType::Fp32;
        }
        if (report.contains("layer")) {
            KnownLayer& layer = m_table.emplace_back();
            layer.name = report.at("layer");
            layer.forward = report.at("forward");
            layer.inputGrad = report.at("input_grad");
            layer.weightGrad = report.at("weight_grad");
            layer.backward = report.at("backward");
            layer.saved = report.at("saved");
            layer.savedForWeightGrad = report.at("saved_for_weight_grad");
            layer.parameters = report.at("parameters");
            layer.output = report.at("output");
            layer.frozen = report.value("frozen", Bytes{0});
            if (report.contains("shared")) {
                layer.shared = report["shared"];
                const auto owner = report.at("shared_with").get<std::size_t>();
                layer.sharedWith = owner < m_table.size() ? m_table[owner].name : std::string();
            }
            forEachAutogradField(layer.autograd, [&report](const char* key, Bytes& bytes) { bytes = report.at(key); });
            const Json peak = report.value("peak", Json());
            profile.layers.push_back({report.at("spread"), peak.is_number() ? Bytes(peak) : -1, report.at("rounds")});
            if (m_options.progress)
                m_options.progress(static_cast<int>(m_table.size()), m_layers, layer.name);
        }
    }

private:
    const TorchProfileOptions& m_options;
    std::vector<KnownLayer> m_table;
    int m_layers = 0;
    std::int64_t m_rows = 1;
    DataType m_type = DataType::Fp32;
};

} // namespace

TorchProfile profileWithTorch(const TorchProfileOptions& options)
{
    requireModuleFile(options.module);
    const ModuleProgram program{"pipewright.profile",
                                "profile",
                                options.python,
                                {{"module", options.module},
                                 {"device", options.device},
                                 {"seed", options.seed},
                                 {"seconds", options.seconds},
                                 {"most", mostRounds},
                                 {"microbatches", options.microbatches}},
                                options.cancel};
    Reports reports(options);
    reports.profile.cancelled = !program.run([&reports](const Json& report) { reports.take(report); });
    return reports.result();
}

} // namespace pipewright
