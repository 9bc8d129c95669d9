// SPDX-License-Identifier: GPL-3.0-or-later
// SQL over an open trace: its tables and columns at the left, the statement above, the rows below. Statements run in
// the background, can be stopped, and are read-only (traces/store/query.h).
#pragma once

#include "traces/store/query.h"

#include <QThreadPool>
#include <QWidget>

#include <atomic>

class QLabel;
class QPlainTextEdit;
class QPushButton;
class QTableWidget;
class QTreeWidget;

namespace pipewright {

class QueryWindow : public QWidget {
    Q_OBJECT

public:
    explicit QueryWindow(QWidget* parent = nullptr);
    ~QueryWindow() override;

    void setTrace(const QString& path); ///< shows its tables
    void run();                         ///< the statement; answered() follows
    void stop();

    QPlainTextEdit* statement() const { return m_statement; }
    QTreeWidget* tables() const { return m_tables; }
    QTableWidget* rows() const { return m_rows; }
    QString state() const;

Q_SIGNALS:
    void answered();

protected:
    void keyPressEvent(QKeyEvent* event) override;

private:
    QWidget* buildQuestion();
    void fill(const QueryResult& result, qint64 milliseconds);

    QString m_path;
    QTreeWidget* m_tables;
    QPlainTextEdit* m_statement;
    QPushButton* m_run;
    QPushButton* m_stop;
    QTableWidget* m_rows;
    QLabel* m_state;
    QThreadPool m_worker;
    std::atomic<int> m_request{0};
};

} // namespace pipewright
