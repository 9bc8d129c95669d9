// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/dock/steptable.h"

#include "gui/widgets/copying.h"
#include "gui/widgets/theme.h"

#include <QHeaderView>

#include <algorithm>
#include <numeric>
#include <utility>

namespace pipewright {

StepTableModel::StepTableModel(Document& document, Make make, QObject* parent)
    : QAbstractTableModel(parent), m_document(document), m_make(std::move(make))
{
}

const Timeline& StepTableModel::shownTimeline() const
{
    return m_document.showsMeasured() ? m_document.overlay()->measured : m_document.prediction()->timeline;
}

void StepTableModel::refill()
{
    beginResetModel();
    m_rows = m_document.prediction() ? m_make(m_document) : StepRows();
    arrange();
    endResetModel();
}

void StepTableModel::clear()
{
    beginResetModel();
    m_rows = {};
    m_order.clear();
    endResetModel();
}

void StepTableModel::arrange()
{
    m_order.resize(m_rows.count);
    std::iota(m_order.begin(), m_order.end(), 0u);
    if (m_order.empty() || m_sorted < 0 || m_sorted >= std::ssize(m_rows.columns))
        return;
    const Timeline& timeline = shownTimeline();
    std::vector<double> keys(m_rows.count);
    for (std::size_t row = 0; row < m_rows.count; ++row)
        keys[row] = m_rows.columns[static_cast<std::size_t>(m_sorted)].key(row, timeline);
    const bool ascending = m_direction == Qt::AscendingOrder;
    std::stable_sort(m_order.begin(), m_order.end(), [&](std::uint32_t a, std::uint32_t b) {
        return ascending ? keys[a] < keys[b] : keys[a] > keys[b];
    });
}

void StepTableModel::sort(int column, Qt::SortOrder order)
{
    m_sorted = column;
    m_direction = order;
    beginResetModel();
    arrange();
    endResetModel();
}

int StepTableModel::rowCount(const QModelIndex& parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_order.size());
}

int StepTableModel::columnCount(const QModelIndex& parent) const
{
    return parent.isValid() ? 0 : static_cast<int>(m_rows.columns.size());
}

QVariant StepTableModel::data(const QModelIndex& index, int role) const
{
    // Rows refer to tasks of the prediction that they were made for; a new one refills them.
    if (!index.isValid() || index.row() >= std::ssize(m_order) || !m_document.prediction())
        return {};
    const StepColumn& column = m_rows.columns[static_cast<std::size_t>(index.column())];
    if (role == Qt::TextAlignmentRole)
        return QVariant(index.column() == 0 ? Qt::AlignLeft | Qt::AlignVCenter : Qt::AlignRight | Qt::AlignVCenter);
    if (role == Qt::ToolTipRole)
        return column.tip;
    if (role != Qt::DisplayRole)
        return {};
    const std::size_t row = m_order[static_cast<std::size_t>(index.row())];
    const QString predicted = column.text(row, m_document.prediction()->timeline);
    const Document::Overlay* const overlay = m_document.overlay();
    return column.timed && overlay ? sidedText(m_document.side(), predicted, column.text(row, overlay->measured))
                                   : predicted;
}

QVariant StepTableModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal || section < 0 || section >= std::ssize(m_rows.columns))
        return {};
    const StepColumn& column = m_rows.columns[static_cast<std::size_t>(section)];
    if (role == Qt::TextAlignmentRole)
        return QVariant(section == 0 ? Qt::AlignLeft | Qt::AlignVCenter : Qt::AlignRight | Qt::AlignVCenter);
    return role == Qt::DisplayRole   ? QVariant(column.title)
           : role == Qt::ToolTipRole ? QVariant(column.tip)
                                     : QVariant();
}

std::vector<Block> StepTableModel::blocksOf(int row) const
{
    return row >= 0 && row < std::ssize(m_order) ? m_rows.blocks(m_order[static_cast<std::size_t>(row)])
                                                 : std::vector<Block>();
}

StepTable::StepTable(Document& document, const QString& name, StepTableModel::Make make, QWidget* parent)
    : QuietFocus(parent), m_model(new StepTableModel(document, std::move(make), this))
{
    setModel(m_model);
    setAccessibleName(name);
    setFont(Theme::numbers(TextSize::Small));
    setSelectionBehavior(QAbstractItemView::SelectRows);
    setEditTriggers(QAbstractItemView::NoEditTriggers);
    setShowGrid(false);
    setFrameShape(QFrame::NoFrame);
    setTabKeyNavigation(false);
    setSortingEnabled(true);
    sortByColumn(0, Qt::AscendingOrder);
    setHorizontalScrollMode(QAbstractItemView::ScrollPerPixel);
    verticalHeader()->hide();
    verticalHeader()->setDefaultSectionSize(22);
    verticalHeader()->setMinimumSectionSize(18);
    // As wide as the visible cells need; none is cut.
    horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
    horizontalHeader()->setResizeContentsPrecision(0);
    horizontalHeader()->setMinimumSectionSize(84);
    horizontalHeader()->setHighlightSections(false);
    horizontalHeader()->setFont(Theme::words(TextSize::Small));
    makeCopyable(*this);
    connect(selectionModel(), &QItemSelectionModel::currentRowChanged, this, [this](const QModelIndex& current) {
        if (current.isValid())
            Q_EMIT blocksChosen(m_model->blocksOf(current.row()));
    });
    for (const auto signal : {&Document::designChanged, &Document::overlayChanged, &Document::sideChanged})
        connect(&document, signal, this, &StepTable::refillWhenSeen);
}

void StepTable::refillWhenSeen()
{
    m_stale = !isVisible();
    if (m_stale)
        m_model->clear(); // its rows refer to the prediction that was
    else
        m_model->refill();
}

void StepTable::showEvent(QShowEvent* event)
{
    QTableView::showEvent(event);
    if (std::exchange(m_stale, false))
        m_model->refill();
}

} // namespace pipewright

#include "moc_steptable.cpp"
