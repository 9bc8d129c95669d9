// SPDX-License-Identifier: GPL-3.0-or-later
// Every command by its name: type some letters of its words, choose with the arrows, Return runs it. Made from
// the window's own actions at the moment it opens, with their shortcuts beside them, so it knows no command that
// is not there and misses none that is.
#pragma once

#include "gui/designer/shortcuts.h"

#include <QPointer>

class QLineEdit;
class QListWidget;

namespace pipewright {

/// How well `typed` names `text`: all its letters in order, each word of it at best the beginning of a word of the
/// text. Higher is better, negative is not at all.
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
