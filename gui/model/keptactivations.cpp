// SPDX-License-Identifier: GPL-3.0-or-later
// The model window's edits of what stages keep in memory: activations (recompute and offload), and the states
// that copies of the pipeline share out.
#include "core/design/redesign.h"
#include "core/predict/offloadedstages.h"
#include "gui/model/modelwindow.h"
#include "gui/widgets/words.h"

namespace pipewright {

void ModelWindow::setRecomputeOfStage(int stage, const QString& text)
{
    commit(tr("Let stage %1 recompute: %2").arg(stage).arg(text), [&] {
        const Design& design = m_document.design();
        std::vector<Recompute> ofStage = design.schedule.recompute;
        ofStage.resize(design.schedule.deviceOfStage.size(), Recompute::None);
        ofStage[stage] = recomputeOfName(text.trimmed().toStdString(), "stage " + std::to_string(stage));
        return withRecompute(design, ofStage);
    });
}

void ModelWindow::setOffloadOfStage(int stage, const QString& text)
{
    const std::string wanted = text.trimmed().toStdString(), where = "stage " + std::to_string(stage);
    commit(tr("Let stage %1 offload: %2").arg(stage).arg(text), [&] {
        const Design& design = m_document.design();
        if (wanted == "auto")
            return chooseOffloadedStages(design).design;
        if (wanted != "yes" && wanted != "no")
            throw Error(where, "\"" + wanted + "\" does not say whether it offloads",
                        "write yes or no; auto: the stages that cost no time, and as many more as memory needs");
        std::vector<bool> ofStage = design.schedule.offload;
        ofStage.resize(design.schedule.deviceOfStage.size(), false);
        ofStage[stage] = wanted == "yes";
        return withOffload(design, std::move(ofStage));
    });
}

void ModelWindow::setZero(const Zero& zero)
{
    const Diagnostics forbids = m_document.apply(SetZero{zero});
    showFault(hasErrors(forbids) ? proseText(forbids) : QString());
    refresh(); // the fields show the state of the design
}

void ModelWindow::setRecompute(Recompute recompute)
{
    commit(tr("Let every stage recompute: %1").arg(QString::fromStdString(nameOf(recompute))), [&] {
        const Design& design = m_document.design();
        return withRecompute(design, std::vector<Recompute>(design.schedule.deviceOfStage.size(), recompute));
    });
}

} // namespace pipewright
