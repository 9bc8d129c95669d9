// SPDX-License-Identifier: GPL-3.0-or-later
// Scores every command by matchScore() at each key and sorts stably. O(commands × letters).
#include "gui/designer/commandpalette.h"

#include "gui/widgets/labels.h"
#include "gui/widgets/layouts.h"

#include <QAction>
#include <QKeyEvent>
#include <QLineEdit>
#include <QListWidget>
#include <QPainter>
#include <QStyledItemDelegate>

#include <algorithm>

namespace pipewright {

namespace {

constexpr int commandRole = Qt::UserRole, groupRole = Qt::UserRole + 1, keysRole = Qt::UserRole + 2,
              offRole = Qt::UserRole + 3;
constexpr int commandRowHeight = 30;

class CommandDelegate : public QStyledItemDelegate {
public:
    using QStyledItemDelegate::QStyledItemDelegate;
    QSize sizeHint(const QStyleOptionViewItem& option, const QModelIndex& index) const override
    {
        return {QStyledItemDelegate::sizeHint(option, index).width(), commandRowHeight};
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

CommandPalette::CommandPalette(const QList<ShortcutList::Group>& groups, QWidget* parent)
    : QDialog(parent, Qt::Popup | Qt::FramelessWindowHint), m_field(new QLineEdit(this)), m_list(new QListWidget(this))
{
    setAccessibleName(tr("Command palette"));
    makePanel(this);
    m_field->setAccessibleName(tr("Command"));
    m_field->setPlaceholderText(tr("Type a command"));
    m_field->installEventFilter(this);
    m_list->setAccessibleName(tr("Commands"));
    m_list->setFrameShape(QFrame::NoFrame);
    m_list->setFocusPolicy(Qt::NoFocus);
    m_list->setItemDelegate(new CommandDelegate(m_list));
    m_list->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    m_list->setMouseTracking(true);
    auto* layout = makeLayout<QVBoxLayout>(this, {10, 10, 10, 10}, 8);
    layout->addWidget(m_field);
    layout->addWidget(m_list, 1);

    for (const ShortcutList::Group& group : groups) {
        for (QAction* action : group.actions) {
            QString name = action->text();
            name.remove(QLatin1Char('&'));
            if (!name.isEmpty() && action->isVisible())
                m_commands.push_back({name, group.name, action->shortcut().toString(QKeySequence::NativeText), action});
        }
    }
    connect(m_field, &QLineEdit::textChanged, this, &CommandPalette::filter);
    connect(m_list, &QListWidget::itemClicked, this, &CommandPalette::run);
    filter({});
    m_field->setFocus(); // a popup without a focus widget would leave focus and shortcuts to the window
    resize(520, 380);
}

void CommandPalette::filter(const QString& typed)
{
    std::vector<std::pair<int, int>> found; // (−score, command): stable for equal scores
    for (int i = 0; i < m_commands.size(); ++i)
        if (const int score =
                std::max(matchScore(typed, m_commands[i].name),
                         matchScore(typed, m_commands[i].group + QLatin1Char(' ') + m_commands[i].name) - 400);
            score >= 0 || typed.trimmed().isEmpty())
            found.emplace_back(-score, i);
    std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    m_list->clear();
    for (const auto& [score, command] : found) {
        auto* item = new QListWidgetItem(m_commands[command].name, m_list);
        item->setData(commandRole, command);
        item->setData(groupRole, m_commands[command].group);
        item->setData(keysRole, m_commands[command].keys);
        // Shown and selectable, but dim and without effect.
        item->setData(offRole, !m_commands[command].action || !m_commands[command].action->isEnabled());
    }
    m_list->setCurrentRow(0);
}

void CommandPalette::run()
{
    const QListWidgetItem* item = m_list->currentItem();
    if (!item)
        return;
    const QPointer<QAction> action = m_commands[item->data(commandRole).toInt()].action;
    if (!action || !action->isEnabled())
        return;
    accept(); // closed first: the command may open a window of its own
    action->trigger();
}

void CommandPalette::paintEvent(QPaintEvent*)
{
    // It has the window's surface colour, so its edge is drawn.
    const Theme& theme = Theme::of(*this);
    QPainter painter(this);
    painter.setPen(theme.dim);
    painter.setBrush(theme.panel);
    painter.drawRect(rect().adjusted(0, 0, -1, -1));
}

bool CommandPalette::eventFilter(QObject* watched, QEvent* event)
{
    if (watched == m_field && event->type() == QEvent::KeyPress) {
        const int key = static_cast<QKeyEvent*>(event)->key();
        const int rows = m_list->count();
        if (key == Qt::Key_Down || key == Qt::Key_Up) {
            if (rows > 0)
                m_list->setCurrentRow((m_list->currentRow() + (key == Qt::Key_Down ? 1 : rows - 1)) % rows);
            return true;
        }
        if (key == Qt::Key_Return || key == Qt::Key_Enter) {
            run();
            return true;
        }
    }
    return QDialog::eventFilter(watched, event);
}

} // namespace pipewright

#include "moc_commandpalette.cpp"
