// SPDX-License-Identifier: GPL-3.0-or-later
// A design on the command line: FAMILY and its numbers, or a FILE, wherever one is expected.
#pragma once

#include "core/predict/designbuilder.h"

#include <CLI/App.hpp>

#include <string>

namespace pipewright::app {

class InlineDesign {
public:
    /// Adds the positional FAMILY (with `acceptFile`: FILE or FAMILY) and the options of an inline design.
    InlineDesign(CLI::App& command, bool acceptFile);

    /// The design that was given. Throws Error: bad numbers, a file that cannot be read, or options of an
    /// inline design beside a file.
    Design make() const;
    /// The file it was given as; empty for an inline one.
    std::string file() const;

private:
    DesignRequest request() const;

    bool m_acceptFile;
    const CLI::App& m_command;
    CLI::Option_group* m_options = nullptr;
    std::string m_what;
    int m_devices = 0, m_microbatches = 0, m_chunks = 0, m_group = 0, m_sequence = 0, m_microbatchSize = 0;
    std::string m_forward, m_inputGrad, m_weightGrad, m_transfer, m_memoryLimit, m_saved, m_savedForWeightGrad;
    std::string m_model, m_device, m_cluster, m_name;
    std::vector<int> m_layersPerStage;
    bool m_perChunk = false;
};

} // namespace pipewright::app
