// SPDX-License-Identifier: GPL-3.0-or-later
// Blocks by their difference from the prediction, largest first, as a table model over the overlay's comparison,
// without copies.
#pragma once

#include "gui/document/document.h"
#include "gui/widgets/quietfocus.h"

#include <QAbstractTableModel>
#include <QTableView>

namespace pipewright {

class ErrorTableModel : public QAbstractTableModel {
    Q_OBJECT

public:
    enum Column { BlockColumn, DeviceColumn, ContributionColumn, DurationErrorColumn, columnCountOfTable };

    explicit ErrorTableModel(Document& document, QObject* parent = nullptr);
    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role = Qt::DisplayRole) const override;
    std::optional<Block> blockAt(int row) const;

private:
    const Comparison* comparison() const;
    void reset();

    Document& m_document;
    int m_rows = 0;
};

/// The table; choosing a row, not the focus alone, selects its block in the document.
class ErrorTable : public QuietFocus<QTableView> {
    Q_OBJECT

public:
    explicit ErrorTable(Document& document, QWidget* parent = nullptr);
    const ErrorTableModel& errors() const { return *m_model; }

private:
    ErrorTableModel* m_model;
};

} // namespace pipewright
