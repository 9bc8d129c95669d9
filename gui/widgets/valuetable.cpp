// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/widgets/valuetable.h"

#include "gui/widgets/theme.h"
#include "gui/widgets/themechange.h"

#include <QHeaderView>
#include <QKeyEvent>
#include <QStyledItemDelegate>

#include <algorithm>

namespace pipewright {

namespace {

constexpr int toneRole = Qt::UserRole;
constexpr int gap = 8; ///< between figures and the next column
enum Tone { Usual, Quiet, Wrong };

/// Writes a dash where nothing is set and something can be: an empty place does not look as if one could type there.
class EmptyCells : public QStyledItemDelegate {
public:
    using QStyledItemDelegate::QStyledItemDelegate;

protected:
    void initStyleOption(QStyleOptionViewItem* option, const QModelIndex& index) const override
    {
        QStyledItemDelegate::initStyleOption(option, index);
        if (!option->text.isEmpty() || !(index.flags() & Qt::ItemIsEditable))
            return;
        option->features |= QStyleOptionViewItem::HasDisplay;
        option->text = QStringLiteral("–");
    }
};

} // namespace

ValueTable::ValueTable(const QString& name, const QStringList& columns, QWidget* parent) : QTableWidget(parent)
{
    onThemeChange(this, [this] {
        m_filling = true;
        for (int r = 0; r < rowCount(); ++r)
            for (int c = 0; c < columnCount(); ++c)
                if (QTableWidgetItem* cell = item(r, c))
                    colour(*cell);
        m_filling = false;
    });
    setAccessibleName(name);
    setItemDelegate(new EmptyCells(this));
    setColumnCount(static_cast<int>(columns.size()));
    setHorizontalHeaderLabels(columns);
    // Columns after the first are taken to be numbers until the first row sets the alignment.
    for (int column = 1; column < columnCount(); ++column)
        horizontalHeaderItem(column)->setTextAlignment(Qt::AlignRight | Qt::AlignVCenter);
    setSelectionMode(QAbstractItemView::SingleSelection);
    setEditTriggers(QAbstractItemView::DoubleClicked | QAbstractItemView::EditKeyPressed
                    | QAbstractItemView::AnyKeyPressed);
    setShowGrid(false);
    setFrameShape(QFrame::NoFrame);
    setTabKeyNavigation(false);
    verticalHeader()->hide();
    verticalHeader()->setDefaultSectionSize(26);
    horizontalHeader()->setFont(Theme::words(TextSize::Small));
    horizontalHeader()->setHighlightSections(false);
    horizontalHeader()->setSectionResizeMode(QHeaderView::Fixed);
    horizontalHeader()->setMinimumSectionSize(m_leastColumn);
    horizontalHeader()->setDefaultAlignment(Qt::AlignLeft | Qt::AlignVCenter);
    setHorizontalScrollMode(QAbstractItemView::ScrollPerPixel);
    connect(this, &QTableWidget::itemChanged, this, [this](QTableWidgetItem* item) {
        if (!m_filling)
            Q_EMIT edited(item->row(), item->column(), item->text().trimmed());
        if (!m_filling)
            fitColumns();
    });
}

void ValueTable::setColumnTip(int column, const QString& tip)
{
    horizontalHeaderItem(column)->setToolTip(tip);
}

void ValueTable::setLeastColumn(int pixels)
{
    m_leastColumn = pixels;
    horizontalHeader()->setMinimumSectionSize(pixels);
    fitColumns();
}

int ValueTable::heightOfRows() const
{
    return horizontalHeader()->sizeHint().height() + rowCount() * verticalHeader()->defaultSectionSize()
           + 2 * frameWidth() + 2;
}

void ValueTable::setRows(const std::vector<std::vector<ValueCell>>& rows)
{
    m_filling = true;
    const int row = currentRow(), column = currentColumn();
    setRowCount(static_cast<int>(rows.size()));
    for (int r = 0; r < rowCount(); ++r)
        setCells(r, rows[r]);
    if (row >= 0 && row < rowCount())
        setCurrentCell(row, column);
    m_filling = false;
    fitColumns();
}

void ValueTable::appendRow(const std::vector<ValueCell>& cells)
{
    m_filling = true;
    insertRow(rowCount());
    setCells(rowCount() - 1, cells);
    m_filling = false;
    fitColumns();
}

void ValueTable::setCells(int row, const std::vector<ValueCell>& cells)
{
    for (int c = 0; c < columnCount(); ++c) {
        const ValueCell& cell = cells[c];
        auto* item = new QTableWidgetItem(cell.text);
        item->setToolTip(cell.tip);
        item->setFont(cell.number ? Theme::numbers(TextSize::Small) : Theme::words());
        item->setTextAlignment((cell.number ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter);
        item->setData(toneRole, cell.bad ? Wrong : cell.editable || !cell.number ? Usual : Quiet);
        colour(*item);
        Qt::ItemFlags flags = Qt::ItemIsEnabled | Qt::ItemIsSelectable;
        item->setFlags(cell.editable ? flags | Qt::ItemIsEditable : flags);
        setItem(row, c, item);
        if (row == 0)
            horizontalHeaderItem(c)->setTextAlignment((cell.number ? Qt::AlignRight : Qt::AlignLeft)
                                                      | Qt::AlignVCenter);
    }
}

void ValueTable::fitColumns()
{
    std::vector<int> needs, order;
    for (int column = 0; column < columnCount(); ++column) {
        needs.push_back(std::max(
            m_leastColumn, gap + std::max(sizeHintForColumn(column), horizontalHeader()->sectionSizeHint(column))));
        if (!isColumnHidden(column))
            order.push_back(column);
    }
    // The widest column first; the others share the remaining width equally.
    std::sort(order.begin(), order.end(), [&](int a, int b) { return needs[a] > needs[b]; });
    int space = viewport()->width(), left = static_cast<int>(order.size());
    for (const int column : order) {
        const int width = std::max(needs[column], space / left--);
        setColumnWidth(column, width);
        space -= width;
    }
    if (m_mostHeight > 0)
        setMaximumHeight(std::min(m_mostHeight, heightOfRows()));
}

void ValueTable::growWithRows(int most)
{
    m_mostHeight = most;
    connect(model(), &QAbstractItemModel::rowsRemoved, this, &ValueTable::fitColumns);
}

void ValueTable::resizeEvent(QResizeEvent* event)
{
    QTableWidget::resizeEvent(event);
    fitColumns();
}

void ValueTable::colour(QTableWidgetItem& item) const
{
    const Theme& theme = Theme::of(*this);
    const int tone = item.data(toneRole).toInt();
    item.setForeground(tone == Wrong ? theme.bad : tone == Quiet ? theme.dim : theme.text);
}

QString ValueTable::text(int row, int column) const
{
    return item(row, column)->text();
}

void ValueTable::keyPressEvent(QKeyEvent* event)
{
    const bool begins = event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter;
    if (begins && state() != QAbstractItemView::EditingState && currentItem()
        && currentItem()->flags() & Qt::ItemIsEditable)
        return editItem(currentItem());
    QTableWidget::keyPressEvent(event);
}

} // namespace pipewright

#include "moc_valuetable.cpp"
