// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/widgets/valuetable.h"

#include "gui/widgets/theme.h"

#include <QHeaderView>
#include <QKeyEvent>

#include <algorithm>

namespace pipewright {

namespace {

constexpr int toneRole = Qt::UserRole;
enum Tone { Usual, Quiet, Wrong };

} // namespace

ValueTable::ValueTable(const QString& name, const QStringList& columns, QWidget* parent) : QTableWidget(parent)
{
    setAccessibleName(name);
    setColumnCount(static_cast<int>(columns.size()));
    setHorizontalHeaderLabels(columns);
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
    horizontalHeader()->setSectionResizeMode(QHeaderView::Stretch);
    horizontalHeader()->setMinimumSectionSize(64);
    connect(this, &QTableWidget::itemChanged, this, [this](QTableWidgetItem* item) {
        if (!m_filling)
            Q_EMIT edited(item->row(), item->column(), item->text().trimmed());
    });
}

void ValueTable::setColumnTip(int column, const QString& tip)
{
    horizontalHeaderItem(column)->setToolTip(tip);
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
    for (int r = 0; r < rowCount(); ++r) {
        for (int c = 0; c < columnCount(); ++c) {
            const ValueCell& cell = rows[r][c];
            auto* item = new QTableWidgetItem(cell.text);
            item->setToolTip(cell.tip);
            item->setFont(cell.number ? Theme::numbers(TextSize::Small) : Theme::words());
            item->setTextAlignment((cell.number ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter);
            item->setData(toneRole, cell.bad ? Wrong : cell.editable || !cell.number ? Usual : Quiet);
            colour(*item);
            Qt::ItemFlags flags = Qt::ItemIsEnabled | Qt::ItemIsSelectable;
            item->setFlags(cell.editable ? flags | Qt::ItemIsEditable : flags);
            setItem(r, c, item);
            if (r == 0)
                horizontalHeaderItem(c)->setTextAlignment((cell.number ? Qt::AlignRight : Qt::AlignLeft)
                                                          | Qt::AlignVCenter);
        }
    }
    if (row >= 0 && row < rowCount())
        setCurrentCell(row, column);
    m_filling = false;
}

void ValueTable::colour(QTableWidgetItem& item) const
{
    const Theme& theme = Theme::of(*this);
    const int tone = item.data(toneRole).toInt();
    item.setForeground(tone == Wrong ? theme.bad : tone == Quiet ? theme.dim : theme.text);
}

void ValueTable::changeEvent(QEvent* event)
{
    QTableWidget::changeEvent(event);
    if (event->type() != QEvent::PaletteChange)
        return;
    m_filling = true;
    for (int r = 0; r < rowCount(); ++r)
        for (int c = 0; c < columnCount(); ++c)
            if (QTableWidgetItem* cell = item(r, c))
                colour(*cell);
    m_filling = false;
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
