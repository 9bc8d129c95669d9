// SPDX-License-Identifier: GPL-3.0-or-later
// The dock below the lanes: one page at a time, chosen by tabs. Which one is shown is remembered. A page that has
// nothing to show says what would fill it.
#pragma once

#include <QTabWidget>

#include <vector>

class QSettings;

namespace pipewright {

class Dock : public QTabWidget {
    Q_OBJECT

public:
    Dock(QSettings& settings, QWidget* parent);
    /// `key` names the page in the settings. The page is as low as the dock, whatever it would need.
    void addPage(const QString& key, const QString& title, QWidget* page);
    void showPage(const QString& key); ///< one that was added
    void restorePage();                ///< the one of the last session, once all were added
    QSize minimumSizeHint() const override;

private:
    QSettings& m_settings;
};

/// A page of `content` in whose place `nothing` stands while `content` is hidden: it hides and shows itself.
QWidget* makePageWith(QWidget* content, const QString& nothing, QWidget* parent);
QWidget* makeTablePage(QWidget* table, QWidget* parent); ///< beside whose edges is room

} // namespace pipewright
