// SPDX-License-Identifier: GPL-3.0-or-later
// The shortcuts of the main window and its views, made from their actions when the list opens: in groups, drawn as
// keycaps, and searchable by name or by keys.
#pragma once

#include <QDialog>
#include <QList>

class QAction;
class QLineEdit;
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
    QLineEdit* searchField() const { return m_search; }

private:
    void filter(const QString& text);

    QTreeWidget* m_list;
    QLineEdit* m_search;
};

} // namespace pipewright
