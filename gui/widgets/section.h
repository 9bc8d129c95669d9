// SPDX-License-Identifier: GPL-3.0-or-later
// A foldable part of a panel: a heading that is a button, and the body below it.
#pragma once

#include <QWidget>

class QToolButton;

namespace pipewright {

class Section : public QWidget {
    Q_OBJECT

public:
    /// Takes ownership of the body.
    Section(const QString& title, QWidget* body, bool open, QWidget* parent = nullptr);
    void setTitle(const QString& title);
    QString title() const { return m_title; }
    bool isOpen() const { return m_open; }
    void setOpen(bool open);

private:
    void refresh();

    QString m_title;
    QToolButton* m_heading;
    QWidget* m_body;
    bool m_open;
};

} // namespace pipewright
