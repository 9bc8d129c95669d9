// SPDX-License-Identifier: GPL-3.0-or-later
// A table about the shown step, with a row for each of something and numbers of the side that is shown: predicted,
// measured, or both as pairs. It is filled while it can be seen, holds one number per row, and asks for a cell's text
// when that is painted, so a million rows are no burden. A click on a heading sorts; rows are copied as text or CSV.
#pragma once

#include "gui/document/document.h"
#include "gui/widgets/quietfocus.h"

#include <QAbstractTableModel>
#include <QTableView>

#include <functional>
#include <memory>
#include <vector>

namespace pipewright {

struct StepColumn {
    QString title;
    QString tip;
    std::function<QString(std::size_t row, const Timeline&)> text;
    std::function<double(std::size_t row, const Timeline&)> key; ///< that it is sorted by
    bool timed = false; ///< differs between prediction and run: on side Both a pair
};

/// The rows of a table for one prediction, and what they say. Keeps what it refers to alive.
struct StepRows {
    std::size_t count = 0;
    std::vector<StepColumn> columns;
    std::function<std::vector<Block>(std::size_t row)> blocks; ///< that a row chooses
    std::shared_ptr<const void> held;
};

class StepTableModel : public QAbstractTableModel {
    Q_OBJECT

public:
    using Make = std::function<StepRows(const Document&)>; ///< the document has a prediction
    StepTableModel(Document& document, Make make, QObject* parent);
    int rowCount(const QModelIndex& parent = {}) const override;
    int columnCount(const QModelIndex& parent = {}) const override;
    QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role = Qt::DisplayRole) const override;
    void sort(int column, Qt::SortOrder order) override;
    void refill();
    void clear();
    std::vector<Block> blocksOf(int row) const;

private:
    const Timeline& shownTimeline() const; ///< the measured one where it is shown
    void arrange();

    Document& m_document;
    Make m_make;
    StepRows m_rows;
    std::vector<std::uint32_t> m_order;
    int m_sorted = 0;
    Qt::SortOrder m_direction = Qt::AscendingOrder;
};

class StepTable : public QuietFocus<QTableView> {
    Q_OBJECT

public:
    StepTable(Document& document, const QString& name, StepTableModel::Make make, QWidget* parent);

Q_SIGNALS:
    void blocksChosen(const std::vector<pipewright::Block>& blocks);

protected:
    void showEvent(QShowEvent* event) override;

private:
    void refillWhenSeen();

    StepTableModel* m_model;
    bool m_stale = true;
};

} // namespace pipewright
