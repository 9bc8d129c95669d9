// SPDX-License-Identifier: GPL-3.0-or-later
// Every command by its name: type some letters, choose with the arrows, Return runs it. It lists the window's actions
// and their shortcuts, read when it opens.
#pragma once

#include "gui/designer/shortcuts.h"

#include <QPointer>

class QLineEdit;
class QListWidget;

namespace pipewright {

/// Match score: all typed letters in order, best at the beginning of words. Higher is better, negative is no match.
int matchScore(const QString& typed, const QString& text);

class CommandPalette : public QDialog {
    Q_OBJECT

public:
    explicit CommandPalette(const QList<ShortcutList::Group>& groups, QWidget* parent = nullptr);
    QLineEdit* field() const { return m_field; }
    QListWidget* list() const { return m_list; }

protected:
    bool eventFilter(QObject* watched, QEvent* event) override;
    void paintEvent(QPaintEvent* event) override;

private:
    struct Command {
        QString name, group, keys;
        QPointer<QAction> action;
    };
    void filter(const QString& typed);
    void run();

    QList<Command> m_commands;
    QLineEdit* m_field;
    QListWidget* m_list;
};

} // namespace pipewright
