// SPDX-License-Identifier: GPL-3.0-or-later
// A table of values with units, some of which can be edited in place: F2, Return, a double click or typing starts
// editing, Return commits, Escape reverts. The table only reports the entered text; its owner parses it, changes the
// document, and refreshes the rows. Columns are equally wide except those whose text needs more. The table scrolls when
// the columns do not fit, so that no text is cut.
#pragma once

#include <QTableWidget>

#include <vector>

namespace pipewright {

struct ValueCell {
    QString text = {};
    bool editable = false;
    QString tip = {};
    bool number = true; ///< right-aligned in figures; words otherwise
    bool bad = false;
};

class ValueTable : public QTableWidget {
    Q_OBJECT

public:
    ValueTable(const QString& name, const QStringList& columns, QWidget* parent = nullptr);
    void setRows(const std::vector<std::vector<ValueCell>>& rows);
    void appendRow(const std::vector<ValueCell>& cells);
    void growWithRows(int most);     ///< as high as its rows, at most `most` pixels
    int heightOfRows() const;        ///< pixels that show them all
    void setLeastColumn(int pixels); ///< no column is narrower
    QString text(int row, int column) const;
    void setColumnTip(int column, const QString& tip);

Q_SIGNALS:
    void edited(int row, int column, const QString& text);

protected:
    void keyPressEvent(QKeyEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;

private:
    void colour(QTableWidgetItem& item) const;
    void fitColumns();
    void setCells(int row, const std::vector<ValueCell>& cells);

    bool m_filling = false;
    int m_mostHeight = 0; ///< 0: the layout decides
    int m_leastColumn = 64;
};

} // namespace pipewright
