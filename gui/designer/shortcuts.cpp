// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/designer/shortcuts.h"

#include "gui/widgets/closingrow.h"
#include "gui/widgets/labels.h"
#include "gui/widgets/layouts.h"

#include <QAction>
#include <QHeaderView>
#include <QLineEdit>
#include <QPainter>
#include <QStyledItemDelegate>
#include <QTreeWidget>

#include <algorithm>
#include <cmath>

namespace pipewright {

namespace {

constexpr int capHeight = 20, capPadding = 7, capGap = 4, sequenceGap = 12;
const QString sequenceMark = QStringLiteral("\n"); ///< between two ways to press an action

/// "Ctrl+Shift+P" -> Ctrl, Shift, P; the plus key itself stays.
QStringList capsOf(const QString& sequence)
{
    QStringList caps = sequence.split(QLatin1Char('+'), Qt::SkipEmptyParts);
    if (sequence.endsWith(QLatin1String("++")) || sequence == QLatin1String("+"))
        caps << QStringLiteral("+");
    return caps;
}

/// Keys as caps, from the right; the item's text stays words, for search and assistive technology.
class KeycapDelegate : public QStyledItemDelegate {
public:
    using QStyledItemDelegate::QStyledItemDelegate;

    QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override
    {
        if (!index.parent().isValid())
            return {QStyledItemDelegate::sizeHint(option, index).width(), 34};
        return {widthOf(index.data().toString()), capHeight + 6};
    }
    void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override
    {
        if (!index.parent().isValid())
            return;
        const Theme& theme = Theme::of(option.palette);
        painter->save();
        painter->setRenderHint(QPainter::Antialiasing);
        painter->setFont(Theme::words(TextSize::Small));
        double x = option.rect.right() - widthOf(index.data().toString()) + capGap;
        const double y = option.rect.center().y() - capHeight / 2.0 + 0.5;
        for (const QString& sequence : index.data().toString().split(sequenceMark)) {
            for (const QString& cap : capsOf(sequence)) {
                const QRectF place(x, y, widthOfCap(cap), capHeight);
                painter->setPen(theme.hairline);
                painter->setBrush(theme.control);
                painter->drawRoundedRect(place, 4, 4);
                painter->setPen(theme.text);
                painter->drawText(place, Qt::AlignCenter, cap);
                x += place.width() + capGap;
            }
            x += sequenceGap - capGap;
        }
        painter->restore();
    }

private:
    static double widthOfCap(const QString& cap)
    {
        const QFontMetricsF metrics(Theme::words(TextSize::Small));
        return std::max<double>(capHeight, std::ceil(metrics.horizontalAdvance(cap)) + 2 * capPadding);
    }
    static int widthOf(const QString& text)
    {
        double width = capGap;
        const QStringList sequences = text.split(sequenceMark);
        for (const QString& sequence : sequences)
            for (const QString& cap : capsOf(sequence))
                width += widthOfCap(cap) + capGap;
        return static_cast<int>(width + (sequenceGap - capGap) * double(sequences.size() - 1));
    }
};

} // namespace

ShortcutList::ShortcutList(const QList<Group>& groups, QWidget* parent)
    : QDialog(parent), m_list(new QTreeWidget(this)), m_search(new QLineEdit(this))
{
    m_search->setPlaceholderText(tr("Find a command or a key"));
    m_search->setAccessibleName(tr("Find a shortcut"));
    m_search->setClearButtonEnabled(true);
    connect(m_search, &QLineEdit::textChanged, this, &ShortcutList::filter);
    m_list->setItemDelegateForColumn(1, new KeycapDelegate(m_list));
    m_list->setFocusPolicy(Qt::TabFocus);
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
            new QTreeWidgetItem(heading, {text, keys.join(sequenceMark)});
        }
    }
    m_list->expandAll();
    auto* layout = makeLayout<QVBoxLayout>(this, {24, 20, 24, 20}, 12);
    layout->addWidget(m_search);
    layout->addWidget(m_list, 1);
    layout->addLayout(makeClosingRow(*this));
    m_search->setFocus();
    resize(520, 560);
}

void ShortcutList::filter(const QString& text)
{
    for (int g = 0; g < m_list->topLevelItemCount(); ++g) {
        QTreeWidgetItem* group = m_list->topLevelItem(g);
        bool any = false;
        for (int r = 0; r < group->childCount(); ++r) {
            QTreeWidgetItem* row = group->child(r);
            const bool shown = row->text(0).contains(text, Qt::CaseInsensitive)
                               || row->text(1).contains(text, Qt::CaseInsensitive)
                               || group->text(0).contains(text, Qt::CaseInsensitive);
            row->setHidden(!shown);
            any = any || shown;
        }
        group->setHidden(!any);
    }
}

} // namespace pipewright

#include "moc_shortcuts.cpp"
