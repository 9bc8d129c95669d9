// SPDX-License-Identifier: GPL-3.0-or-later
// Scores every entry by matchScore() at each key and sorts stably. O(entries × letters).
#include "gui/designer/findfield.h"

#include "gui/widgets/theme.h"

#include <QKeyEvent>
#include <QListWidget>
#include <QPainter>
#include <QRegularExpression>
#include <QStyledItemDelegate>

#include <algorithm>
#include <utility>

namespace pipewright {

namespace {

constexpr int entryRole = Qt::UserRole, groupRole = Qt::UserRole + 1, keysRole = Qt::UserRole + 2,
              offRole = Qt::UserRole + 3;
constexpr int rowHeight = 30, mostRows = 12, leastListWidth = 420;

class EntryDelegate : public QStyledItemDelegate {
public:
    using QStyledItemDelegate::QStyledItemDelegate;
    QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override
    {
        return {QStyledItemDelegate::sizeHint(option, index).width(), rowHeight};
    }
    void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override
    {
        const Theme& theme = Theme::of(option.palette);
        const bool enabled = !index.data(offRole).toBool();
        painter->save();
        if (option.state & (QStyle::State_Selected | QStyle::State_MouseOver)) {
            painter->setRenderHint(QPainter::Antialiasing);
            painter->setPen(Qt::NoPen);
            painter->setBrush(option.state & QStyle::State_Selected ? theme.control : theme.lane);
            painter->drawRoundedRect(QRectF(option.rect).adjusted(2, 1, -2, -1), Theme::controlRadius,
                                     Theme::controlRadius);
        }
        const QRect text = option.rect.adjusted(12, 0, -12, 0);
        painter->setFont(Theme::words(TextSize::Large));
        painter->setPen(enabled ? theme.text : theme.dim);
        const QString name = index.data().toString();
        painter->drawText(text, Qt::AlignLeft | Qt::AlignVCenter, name);
        const int used = painter->fontMetrics().horizontalAdvance(name);
        painter->setFont(Theme::words(TextSize::Small));
        painter->setPen(theme.dim);
        painter->drawText(text.adjusted(used + 12, 1, 0, 0), Qt::AlignLeft | Qt::AlignVCenter,
                          index.data(groupRole).toString());
        painter->setFont(Theme::numbers(TextSize::Small));
        painter->drawText(text, Qt::AlignRight | Qt::AlignVCenter, index.data(keysRole).toString());
        painter->restore();
    }
};

} // namespace

int matchScore(const QString& typed, const QString& text)
{
    const QString wanted = typed.simplified().toLower();
    const QString in = text.toLower();
    if (wanted.isEmpty())
        return 0;
    if (const int at = static_cast<int>(in.indexOf(wanted)); at >= 0)
        return 1000 - at + (at == 0 || in[at - 1] == QLatin1Char(' ') ? 500 : 0);
    // Letters in order; the first letters of words score more.
    int score = 0, from = 0;
    for (const QChar letter : wanted) {
        if (letter == QLatin1Char(' '))
            continue;
        int beginning = -1;
        for (int i = from; i < in.size() && beginning < 0; ++i)
            if (in[i] == letter && (i == 0 || in[i - 1] == QLatin1Char(' ')))
                beginning = i;
        const int inside = static_cast<int>(in.indexOf(letter, from));
        if (inside < 0)
            return -1;
        const bool next = inside == from && from > 0; // adjacent to the last letter
        score += next ? 8 : beginning >= 0 ? 10 : 1;
        from = (next ? inside : beginning >= 0 ? beginning : inside) + 1;
    }
    return score;
}

FindField::FindField(std::function<std::vector<Entry>()> entries, QWidget* parent)
    : QLineEdit(parent), m_source(std::move(entries)), m_list(new QListWidget(parent))
{
    setPlaceholderText(tr("Find a block, a family, a command    /"));
    setAccessibleName(tr("Find a block, a family, a command"));
    setToolTip(tr("Blocks by name (operation, stage, microbatch: F0.3), stages, devices, families and commands"));
    m_list->setObjectName(QStringLiteral("found"));
    m_list->setAccessibleName(tr("Found"));
    m_list->setFocusPolicy(Qt::NoFocus);
    m_list->setItemDelegate(new EntryDelegate(m_list));
    m_list->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    m_list->setMouseTracking(true);
    m_list->hide();
    connect(this, &QLineEdit::textChanged, this, &FindField::filter);
    connect(m_list, &QListWidget::itemClicked, this, &FindField::take);
}

bool FindField::namesBlock() const
{
    static const QRegularExpression beginning(QStringLiteral("^\\s*[FBIWRUfbiwru][0-9]"));
    return beginning.match(text()).hasMatch();
}

void FindField::filter()
{
    if (!hasFocus())
        return m_list->hide();
    const QString typed = text();
    std::vector<std::pair<int, std::size_t>> found; // (−score, entry): stable for equal scores
    for (std::size_t i = 0; i < m_entries.size() && !namesBlock(); ++i)
        if (const int score =
                std::max(matchScore(typed, m_entries[i].name),
                         matchScore(typed, m_entries[i].group + QLatin1Char(' ') + m_entries[i].name) - 400);
            score >= 0 || typed.trimmed().isEmpty())
            found.emplace_back(-score, i);
    std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    m_list->clear();
    for (const auto& [score, entry] : found) {
        auto* item = new QListWidgetItem(m_entries[entry].name, m_list);
        item->setData(entryRole, qulonglong(entry));
        item->setData(groupRole, m_entries[entry].group);
        item->setData(keysRole, m_entries[entry].keys);
        item->setData(offRole, !m_entries[entry].enabled);
    }
    if (namesBlock()) {
        auto* item = new QListWidgetItem(tr("Blocks that begin with %1").arg(typed.trimmed().toUpper()), m_list);
        item->setData(groupRole, tr("block"));
        item->setData(keysRole, tr("Enter: next, Shift+Enter: before"));
    }
    m_list->setCurrentRow(0);
    placeList();
    m_list->setVisible(m_list->count() > 0);
    m_list->raise();
}

/// Over what is below the field, in its window.
void FindField::placeList()
{
    QWidget* const around = window();
    if (m_list->parentWidget() != around)
        m_list->setParent(around);
    const QPoint below = mapTo(around, QPoint(0, height() + 4));
    const int wide = std::max(width(), leastListWidth);
    const int high = std::min(m_list->count(), mostRows) * rowHeight + 10;
    m_list->setGeometry(std::max(4, std::min(below.x(), around->width() - wide - 4)), below.y(), wide,
                        std::min(high, around->height() - below.y() - 8));
}

void FindField::take()
{
    const QListWidgetItem* item = m_list->currentItem();
    if (!item || namesBlock() || item->data(offRole).toBool())
        return;
    const std::function<void()> take = m_entries[item->data(entryRole).toULongLong()].take;
    clear();
    m_list->hide();
    Q_EMIT left(); // first: what is taken may open a window of its own
    take();
}

void FindField::focusInEvent(QFocusEvent* event)
{
    QLineEdit::focusInEvent(event);
    m_entries = m_source();
    filter();
}

void FindField::focusOutEvent(QFocusEvent* event)
{
    QLineEdit::focusOutEvent(event);
    if (event->reason() != Qt::ActiveWindowFocusReason)
        m_list->hide();
}

bool FindField::event(QEvent* event)
{
    // The window's shortcuts of single letters and of the arrows are typed here.
    if (event->type() == QEvent::ShortcutOverride) {
        const auto* key = static_cast<QKeyEvent*>(event);
        if (!(key->modifiers() & (Qt::ControlModifier | Qt::AltModifier | Qt::MetaModifier))) {
            event->accept();
            return true;
        }
    }
    return QLineEdit::event(event);
}

void FindField::keyPressEvent(QKeyEvent* event)
{
    const int rows = m_list->count(), key = event->key();
    if (key == Qt::Key_Down || key == Qt::Key_Up) {
        if (rows > 0)
            m_list->setCurrentRow((m_list->currentRow() + (key == Qt::Key_Down ? 1 : rows - 1)) % rows);
    } else if (key == Qt::Key_Return || key == Qt::Key_Enter) {
        if (namesBlock())
            Q_EMIT blockWanted(text(), event->modifiers() & Qt::ShiftModifier ? -1 : 1);
        else
            take();
    } else if (key == Qt::Key_Escape) {
        clear();
        m_list->hide();
        Q_EMIT left();
    } else {
        QLineEdit::keyPressEvent(event);
    }
}

} // namespace pipewright

#include "moc_findfield.cpp"
