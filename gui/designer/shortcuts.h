// SPDX-License-Identifier: GPL-3.0-or-later
// The shortcuts of the main window and its views, made from their actions when the list opens.
#pragma once

#include <QDialog>
#include <QList>

class QAction;
class QTreeWidget;

namespace pipewright {

class ShortcutList : public QDialog {
    Q_OBJECT

public:
    struct Group {
        QString name;
        QList<QAction*> actions;
    };
    explicit ShortcutList(const QList<Group>& groups, QWidget* parent = nullptr);
    QTreeWidget* list() const { return m_list; }

private:
    QTreeWidget* m_list;
};

} // namespace pipewright
