// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/designer/designmenus.h"

#include "core/design/redesign.h"
#include "core/families/family.h"
#include "core/presets/modelfile.h"
#include "core/presets/presets.h"
#include "gui/designer/familylist.h"
#include "gui/widgets/choices.h"
#include "gui/widgets/words.h"

#include <QAction>
#include <QFileDialog>
#include <QFileInfo>
#include <QMenu>

namespace pipewright {

DesignMenus::DesignMenus(Document& document, FamilyList& families, QWidget* window)
    : QObject(window), m_document(document), m_families(families), m_window(window)
{
    for (const auto part : {Breadcrumb::Model, Breadcrumb::Cluster, Breadcrumb::Family}) {
        m_menus[part] = new QMenu(window);
        connect(m_menus[part], &QMenu::aboutToShow, this, [this, part] { fill(part); });
    }
}

void DesignMenus::fill(Breadcrumb::Part part)
{
    QMenu* const menu = m_menus[part];
    menu->clear();
    menu->setToolTipsVisible(true);
    const QString pages[] = {tr("Layers and their cut into stages…"), tr("Devices and links…"),
                             tr("All families, with bubble and peak")};
    menu->addAction(pages[part], this, [this, part] { Q_EMIT pageWanted(part); });
    if (part == Breadcrumb::Family)
        return fillFamilies();
    const bool models = part == Breadcrumb::Model;
    const auto choose = [this, models](const QString& name) { models ? takeModel(name) : takeCluster(name); };
    menu->addAction(models ? tr("Open config.json…") : tr("Open a cluster file…"), this, [this, models, choose] {
        auto* dialog = new QFileDialog(m_window, models ? tr("Open a model") : tr("Open a cluster"), {},
                                       models ? tr("Models (*.json *.csv)") : tr("Clusters (*.json)"));
        dialog->setFileMode(QFileDialog::ExistingFile);
        dialog->setAttribute(Qt::WA_DeleteOnClose);
        connect(dialog, &QFileDialog::fileSelected, this, choose);
        dialog->open();
    });
    menu->addSeparator();
    for (const Preset& preset : presetsByTitle(PresetLibrary(), models ? PresetKind::Model : PresetKind::Cluster)) {
        const QString name = QString::fromStdString(preset.name);
        QAction* action = menu->addAction(QString::fromStdString(preset.title), this, [choose, name] { choose(name); });
        action->setToolTip(QString::fromStdString(preset.origin));
        action->setData(name);
    }
}

void DesignMenus::fillFamilies()
{
    QMenu* const menu = m_menus[Breadcrumb::Family];
    menu->addSeparator();
    for (std::size_t i = 0; i < families().size(); ++i) {
        const Family& family = families()[i];
        QAction* action = menu->addAction(QString::fromUtf8(family.title), this, [this, i] { m_families.switchTo(i); });
        action->setToolTip(QString::fromUtf8(family.description));
        action->setCheckable(true);
        action->setChecked(family.name == m_document.design().schedule.family);
        const auto& known = m_families.estimates()[i];
        if (known && !known->possible) {
            action->setEnabled(false);
            action->setToolTip(known->reason);
        }
    }
}

void DesignMenus::takeModel(const QString& presetOrFile)
{
    try {
        ModelFile model = loadModel(presetOrFile.toStdString());
        if (const auto& workload = m_document.design().workload) { // how the design is trained stays
            model.shape.parallel = workload->shape.parallel;
            model.shape.framework = workload->shape.framework;
            model.shape.microbatchSize = workload->shape.microbatchSize;
        }
        m_document.replaceDesign(withModel(m_document.design(), model.shape),
                                 tr("Switch to %1").arg(QString::fromStdString(model.shape.name)));
    } catch (const std::exception& error) {
        Q_EMIT failed(proseText(error));
    }
}

void DesignMenus::takeCluster(const QString& presetOrFile)
{
    try {
        const Design& design = m_document.design();
        const std::int64_t members = design.workload ? design.workload->shape.parallel.devicesPerStage() : 1;
        Cluster cluster = PresetLibrary().cluster(presetOrFile.toStdString(), design.schedule.devices(), members);
        const QString name = QString::fromStdString(cluster.name);
        m_document.replaceDesign(withCluster(design, std::move(cluster)), tr("Switch to %1").arg(name));
    } catch (const std::exception& error) {
        Q_EMIT failed(proseText(error));
    }
}

} // namespace pipewright

#include "moc_designmenus.cpp"
