// SPDX-License-Identifier: GPL-3.0-or-later
// A design given on the command line: a FAMILY with its numbers, or a FILE, wherever a design is expected.
#pragma once

#include "app/costschoice.h"
#include "app/modeloptions.h"
#include "app/shardingchoice.h"
#include "core/base/offload.h"
#include "core/design/designbuilder.h"
#include "core/files/locateddesign.h"
#include "core/predict/scaledmodel.h"

#include <optional>
#include <string>

namespace pipewright::app {

class InlineDesign {
public:
    /// Adds the positional FAMILY (with `acceptFile`: FILE or FAMILY) and the options of an inline design.
    InlineDesign(CLI::App& command, bool acceptFile);

    /// The given design. Throws Error for bad numbers, a file that cannot be read, or options of an inline design
    /// beside a file. With --costs-from the costs are those of another schedule. The source is empty for an inline
    /// design. With --scale the model is made smaller; `scale` then gets how, and what the full model would take.
    LocatedDesign make(std::optional<ScaleReport>* scale = nullptr, std::optional<UnevenEnds>* uneven = nullptr) const;

private:
    void addSchedule(), addTimes(), addModel(), addMachine(), addTraining();
    template<class Find, class Field>
    CLI::Option* named(const char* option, Find find, Field& field, const char* values, const char* meaning);

    bool isFile() const;
    DesignRequest request() const;
    LocatedDesign fullDesign(std::optional<UnevenEnds>& ends) const;
    Design offloading(Design design) const;

    bool m_acceptFile;
    CLI::App &m_command, &m_options;
    ShardingChoice m_sharding;
    CostsChoice m_costs;
    std::string m_what, m_scale;
    DesignRequest m_asked; ///< what the options fill in directly
    Parallelism m_parallel;
    std::optional<Bytes> m_memoryLimit, m_hostLink;
    std::optional<Communication> m_communication;
    std::optional<OffloadChoice> m_offload;
    ModelOptions m_modelOptions;
};

} // namespace pipewright::app
