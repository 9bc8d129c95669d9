// SPDX-License-Identifier: GPL-3.0-or-later
// A design given on the command line: a FAMILY with its numbers, or a FILE, wherever a design is expected.
#pragma once

#include "app/commandline.h"
#include "app/costschoice.h"
#include "app/planchoice.h"
#include "core/design/designbuilder.h"
#include "core/files/locateddesign.h"
#include "core/predict/scaledmodel.h"

#include <optional>
#include <string>

namespace pipewright::app {

class InlineDesign {
public:
    /// Adds the positional FAMILY (with `acceptFile`: FILE or FAMILY) and the options of an inline design.
    InlineDesign(Command command, bool acceptFile);

    /// The given design. Throws Error for bad numbers, a file that cannot be read, or options of an inline design
    /// beside a file. With --costs-from the costs are those of another schedule. The source is empty for an inline
    /// design. With --scale the model is made smaller; `scale` then gets how, and what the full model would take.
    LocatedDesign make(std::optional<ScaleReport>* scale = nullptr, std::optional<UnevenEnds>* uneven = nullptr) const;

private:
    bool isFile() const;
    DesignRequest request() const;
    std::optional<Parallelism> parallel() const;
    NodeChange nodes() const;

    bool m_acceptFile;
    Command m_command, m_options;
    PlanChoice m_plan;
    std::string m_what;
    bool m_shardOptimizer = false;
    int m_devices = 0, m_microbatches = 0, m_replicas = 0, m_chunks = 0, m_group = 0, m_pieces = 0, m_sequence = 0,
        m_microbatchSize = 0;
    std::string m_forward, m_inputGrad, m_weightGrad, m_transfer, m_memoryLimit, m_saved, m_savedForWeightGrad;
    LocatedDesign fullDesign(std::optional<UnevenEnds>& ends) const;
    Design offloading(Design design) const;

    std::string m_model, m_device, m_cluster, m_name, m_scale;
    CostsChoice m_costs;
    int m_tensor = 1, m_context = 1, m_expert = 1, m_data = 1;
    bool m_splitTokens = false;
    double m_overlapExchanges = 0, m_oversubscription = 1, m_efficiency = 0.5, m_halfRateWidth = 0;
    int m_nodes = 1, m_devicesPerNode = 1, m_cardsPerNode = 1, m_nodesPerSwitch = 0;
    std::string m_recompute, m_offload, m_hostLink;
    std::vector<int> m_layersPerStage;
    std::string m_optimizer, m_predictionSteps, m_rounding, m_layout;
    int m_accumulate = 0, m_workers = 0, m_specTrain = 1;
    bool m_verticalSync = false;
    bool m_perChunk = false;
    double m_overlapFactor = 1;
};

} // namespace pipewright::app
