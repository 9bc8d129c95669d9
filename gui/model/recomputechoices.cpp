// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/model/recomputechoices.h"

#include <QCoreApplication>

#include <algorithm>

namespace pipewright {

namespace {

QString titleOf(RecomputeKind kind)
{
    const auto tr = [](const char* text) { return QCoreApplication::translate("Recompute", text); };
    switch (kind) {
    case RecomputeKind::None: return tr("none");
    case RecomputeKind::Selective: return tr("selective: attention cores, inside the backward");
    case RecomputeKind::Full: return tr("full: layer by layer, inside the backward");
    case RecomputeKind::BlockSelective: return tr("block-selective: attention cores, as R blocks");
    case RecomputeKind::Block: return tr("block: whole stages, as R blocks");
    }
    return {};
}

} // namespace

void addRecomputes(QComboBox& combo)
{
    for (const Recompute recompute : recomputeKinds)
        combo.addItem(titleOf(recompute.kind), QString::fromStdString(nameOf(recompute)));
    combo.setToolTip(QCoreApplication::translate(
        "Recompute", "Which activations every stage makes again for the backward, and where: inside the backward, one "
                     "layer at a time, as frameworks do; or by R blocks of their own, which can be moved"));
}

Recompute chosenRecompute(const QComboBox& combo)
{
    const std::string name = combo.currentData().toString().toStdString();
    const auto* const found = std::find_if(std::begin(recomputeKinds), std::end(recomputeKinds),
                                           [&](Recompute recompute) { return nameOf(recompute) == name; });
    return found == std::end(recomputeKinds) ? Recompute::None : *found;
}

} // namespace pipewright
