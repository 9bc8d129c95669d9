// SPDX-License-Identifier: GPL-3.0-or-later
// The menus of the title: models, clusters and families to switch to, files of one's own, and the page of each.
#pragma once

#include "gui/designer/breadcrumb.h"
#include "gui/document/document.h"

#include <QObject>

#include <array>

class QMenu;

namespace pipewright {

class FamilyList;

class DesignMenus : public QObject {
    Q_OBJECT

public:
    DesignMenus(Document& document, FamilyList& families, QWidget* window);
    QMenu* menu(Breadcrumb::Part part) const { return m_menus[part]; }
    /// Switches the design to a preset, or to a file: one undoable command.
    void takeModel(const QString& presetOrFile);
    void takeCluster(const QString& presetOrFile);

Q_SIGNALS:
    void pageWanted(pipewright::Breadcrumb::Part part);
    void failed(const QString& why);

private:
    void fill(Breadcrumb::Part part);
    void fillFamilies();

    Document& m_document;
    FamilyList& m_families;
    QWidget* m_window;
    std::array<QMenu*, Breadcrumb::partCount> m_menus;
};

} // namespace pipewright
