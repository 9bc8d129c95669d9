// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/trace/errortable.h"

#include "gui/widgets/copying.h"
#include "gui/widgets/theme.h"
#include "gui/widgets/words.h"
#include "traces/analysis/durationdifference.h"

#include <QHeaderView>

namespace pipewright {

ErrorTableModel::ErrorTableModel(Document& document, QObject* parent)
    : QAbstractTableModel(parent), m_document(document)
{
    connect(&document, &Document::overlayChanged, this, &ErrorTableModel::reset);
    connect(&document, &Document::designChanged, this, &ErrorTableModel::reset);
    reset();
}

const Comparison* ErrorTableModel::comparison() const
{
    // Rows refer to tasks of the program, which does not exist when the design cannot run.
    return m_document.overlay() && m_document.prediction() ? &m_document.overlay()->comparison : nullptr;
}

void ErrorTableModel::reset()
{
    beginResetModel();
    m_rows = comparison() ? static_cast<int>(comparison()->blocks.size()) : 0;
    endResetModel();
}

int ErrorTableModel::rowCount(const QModelIndex& parent) const
{
    return parent.isValid() ? 0 : m_rows;
}

int ErrorTableModel::columnCount(const QModelIndex& parent) const
{
    return parent.isValid() ? 0 : columnCountOfTable;
}

std::optional<Block> ErrorTableModel::blockAt(int row) const
{
    if (!comparison() || row < 0 || row >= m_rows)
        return std::nullopt;
    const TaskId task = comparison()->blocks[row].task;
    const auto& tasks = m_document.prediction()->program.tasks;
    if (task >= tasks.size())
        return std::nullopt;
    return tasks[task].block();
}

QVariant ErrorTableModel::data(const QModelIndex& index, int role) const
{
    if (!index.isValid() || !comparison() || index.row() >= m_rows)
        return {};
    const Comparison::BlockError& error = comparison()->blocks[index.row()];
    if (role == Qt::TextAlignmentRole)
        return QVariant(index.column() <= DeviceColumn ? Qt::AlignLeft | Qt::AlignVCenter
                                                       : Qt::AlignRight | Qt::AlignVCenter);
    if (role == Qt::ToolTipRole)
        return tr("Measured less predicted duration, and that as a share of the predicted");
    if (role != Qt::DisplayRole)
        return {};
    const auto& tasks = m_document.prediction()->program.tasks;
    if (error.task >= tasks.size())
        return {};
    switch (index.column()) {
    case BlockColumn: return blockText(tasks[error.task].block());
    case DeviceColumn: return deviceLabel(m_document.design(), tasks[error.task].device);
    case ContributionColumn:
        return error.contribution == 0 ? QStringLiteral("0 ns") : signedDuration(error.contribution);
    case DurationErrorColumn: return signedPercent(beyondPrediction(error, m_document.prediction()->timeline));
    default: return {};
    }
}

QVariant ErrorTableModel::headerData(int section, Qt::Orientation orientation, int role) const
{
    if (orientation != Qt::Horizontal)
        return {};
    if (role == Qt::TextAlignmentRole)
        return QVariant(section <= DeviceColumn ? Qt::AlignLeft | Qt::AlignVCenter : Qt::AlignRight | Qt::AlignVCenter);
    if (role != Qt::DisplayRole)
        return {};
    switch (section) {
    case BlockColumn: return tr("block");
    case DeviceColumn: return tr("on");
    case ContributionColumn: return tr("slower by");
    case DurationErrorColumn: return tr("difference");
    default: return {};
    }
}

ErrorTable::ErrorTable(Document& document, QWidget* parent)
    : QuietFocus(parent), m_model(new ErrorTableModel(document, this))
{
    setModel(m_model);
    setAccessibleName(tr("Blocks by difference between prediction and run"));
    setFont(Theme::numbers(TextSize::Small));
    setSelectionBehavior(QAbstractItemView::SelectRows);
    setSelectionMode(QAbstractItemView::SingleSelection);
    setEditTriggers(QAbstractItemView::NoEditTriggers);
    setShowGrid(false);
    setFrameShape(QFrame::NoFrame);
    setTabKeyNavigation(false);
    setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    verticalHeader()->hide();
    verticalHeader()->setDefaultSectionSize(22);
    verticalHeader()->setMinimumSectionSize(18);
    // As wide as visible cells need; the rest goes to the sorted column.
    horizontalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);
    horizontalHeader()->setSectionResizeMode(ErrorTableModel::ContributionColumn, QHeaderView::Stretch);
    horizontalHeader()->setResizeContentsPrecision(0);
    horizontalHeader()->setHighlightSections(false);
    horizontalHeader()->setFont(Theme::words(TextSize::Small));
    makeCopyable(*this);
    connect(selectionModel(), &QItemSelectionModel::currentRowChanged, this,
            [this, &document](const QModelIndex& current) {
                if (const auto block = m_model->blockAt(current.row()); current.isValid() && block)
                    document.select(block);
            });
}

} // namespace pipewright

#include "moc_errortable.cpp"
