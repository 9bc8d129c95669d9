// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/run/smalldesign.h"

#include "core/design/newdesign.h"
#include "core/design/redesign.h"
#include "core/model/transformer.h"
#include "core/presets/modelfile.h"
#include "core/presets/presets.h"

#include <algorithm>
#include <utility>

namespace pipewright {

Design smallDesign(const Design& base)
{
    ModelFile model = loadModel("byte-gpt");
    model.shape.layers = std::max(model.shape.layers, base.schedule.stages());
    model.shape.tiedHead = model.shape.tiedHead && (!base.workload || base.workload->shape.tiedHead);
    NewDesign choice;
    choice.workload =
        makeWorkload(model.shape, base.workload ? base.workload->optimizer : Optimizer::AdamW, model.source);
    choice.cluster = PresetLibrary().cluster("host", base.schedule.devices());
    choice.family = "gpipe"; // the schedule is replaced; this one is quick to make
    choice.microbatches = 1;
    Schedule schedule = base.schedule;
    schedule.offload.clear();
    const Design design = withSchedule(designFromModel(choice), std::move(schedule));
    return base.schedule.offload.empty() ? design : withOffload(design, base.schedule.offload);
}

} // namespace pipewright
