// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/designer/shortcuts.h"

#include "gui/widgets/labels.h"

#include <QAction>
#include <QDialogButtonBox>
#include <QHeaderView>
#include <QLabel>
#include <QTreeWidget>
#include <QVBoxLayout>

namespace pipewright {

ShortcutList::ShortcutList(const QList<Group>& groups, QWidget* parent) : QDialog(parent), m_list(new QTreeWidget(this))
{
    setWindowTitle(tr("Shortcuts"));
    makePanel(this);
    m_list->setAccessibleName(tr("Shortcuts"));
    m_list->setColumnCount(2);
    m_list->setHeaderHidden(true);
    m_list->setRootIsDecorated(false);
    m_list->setIndentation(0);
    m_list->setItemsExpandable(false);
    m_list->setFrameShape(QFrame::NoFrame);
    m_list->setSelectionMode(QAbstractItemView::NoSelection);
    m_list->header()->setStretchLastSection(false);
    m_list->header()->setSectionResizeMode(0, QHeaderView::Stretch);
    m_list->header()->setSectionResizeMode(1, QHeaderView::ResizeToContents);
    for (const Group& group : groups) {
        QTreeWidgetItem* heading = nullptr;
        for (const QAction* action : group.actions) {
            QStringList keys;
            for (const QKeySequence& key : action->shortcuts())
                keys << key.toString(QKeySequence::NativeText);
            if (keys.isEmpty() || action->text().isEmpty())
                continue;
            if (!heading) {
                heading = new QTreeWidgetItem(m_list, {group.name});
                heading->setFont(0, Theme::heading());
                heading->setForeground(0, Theme::of(*this).dim);
                heading->setFlags(Qt::ItemIsEnabled);
            }
            QString text = action->text();
            text.remove(QLatin1Char('&'));
            auto* row = new QTreeWidgetItem(heading, {text, keys.join(QStringLiteral("  "))});
            row->setFont(1, Theme::numbers(TextSize::Small));
            row->setTextAlignment(1, Qt::AlignRight | Qt::AlignVCenter);
        }
    }
    m_list->expandAll();
    auto* buttons = new QDialogButtonBox(QDialogButtonBox::Close, this);
    connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::close);
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(24, 20, 24, 20);
    layout->setSpacing(12);
    layout->addWidget(m_list, 1);
    layout->addWidget(buttons);
    resize(440, 560);
}

} // namespace pipewright

#include "moc_shortcuts.cpp"
