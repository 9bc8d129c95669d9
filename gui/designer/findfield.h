// SPDX-License-Identifier: GPL-3.0-or-later
// The field of the bar that finds everything by its name: blocks, stages, devices, families and commands. While it is
// typed in, a list below it names what was found; the arrows choose and Return takes it. A text that begins like a
// block's name, "F0", goes from block to block instead: Return to the next, Shift+Return to the one before.
#pragma once

#include <QLineEdit>

#include <functional>
#include <vector>

class QListWidget;

namespace pipewright {

/// Match score: all typed letters in order, best at the beginning of words. Higher is better, negative is no match.
int matchScore(const QString& typed, const QString& text);

class FindField : public QLineEdit {
    Q_OBJECT

public:
    /// Something that can be found.
    struct Entry {
        QString name, group, keys;
        std::function<void()> take;
        bool enabled = true; ///< otherwise shown dim, and without effect
    };
    /// `entries`: what can be found now; called when the field gets the focus.
    FindField(std::function<std::vector<Entry>()> entries, QWidget* parent);
    QListWidget* list() const { return m_list; } ///< of what was found; visible while the field has the focus

Q_SIGNALS:
    void blockWanted(const QString& begin, int direction); ///< +1: the next such block, -1: the one before
    void left();                                           ///< by Escape, or because something was taken

protected:
    void focusInEvent(QFocusEvent* event) override;
    void focusOutEvent(QFocusEvent* event) override;
    void keyPressEvent(QKeyEvent* event) override;
    bool event(QEvent* event) override;

private:
    void filter();
    void placeList();
    void take();
    bool namesBlock() const;

    std::function<std::vector<Entry>()> m_source;
    std::vector<Entry> m_entries;
    QListWidget* m_list;
};

} // namespace pipewright
