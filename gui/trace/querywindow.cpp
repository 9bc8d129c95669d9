// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/trace/querywindow.h"

#include "core/base/diagnostic.h"
#include "gui/widgets/labels.h"
#include "gui/widgets/layouts.h"
#include "gui/widgets/onscreen.h"
#include "gui/widgets/theme.h"

#include <QElapsedTimer>
#include <QFileInfo>
#include <QHeaderView>
#include <QKeyEvent>
#include <QLocale>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QShortcut>
#include <QSplitter>
#include <QTableWidget>
#include <QTreeWidget>

#include <algorithm>

namespace pipewright {

namespace {

constexpr std::size_t rowsShown = 5000;

QString textOf(const QueryValue& value)
{
    struct Visitor {
        QString operator()(std::monostate) const { return QStringLiteral("NULL"); }
        QString operator()(std::int64_t number) const { return QString::number(number); }
        QString operator()(double number) const { return QString::number(number, 'g', 12); }
        QString operator()(const std::string& text) const { return QString::fromStdString(text); }
        QString operator()(QueryBlob blob) const { return QueryWindow::tr("%1 bytes").arg(blob.bytes); }
    };
    return std::visit(Visitor{}, value);
}

bool isNumber(const QueryValue& value)
{
    return std::holds_alternative<std::int64_t>(value) || std::holds_alternative<double>(value);
}

/// An initial query for a table: its rows, or the longest entries, with names joined in.
QString questionFor(const TableShape& table)
{
    const auto has = [&](const std::string& column) {
        return std::any_of(table.columns.begin(), table.columns.end(),
                           [&](const std::string& c) { return c.substr(0, c.find(' ')) == column; });
    };
    const QString name = QString::fromStdString(table.name);
    if (!has("start") || !has("end"))
        return QStringLiteral("SELECT *\nFROM %1\nLIMIT 100").arg(name);
    QString what, join;
    if (has("taskId")) {
        what = QStringLiteral("label, ");
        join = QStringLiteral("LEFT JOIN TASKS USING (taskId)\n");
    } else {
        for (const char* id : {"shortName", "nameId", "textId", "collectiveId"})
            if (join.isEmpty() && has(id)) {
                what = QStringLiteral("StringIds.value AS name, ");
                join = QStringLiteral("LEFT JOIN StringIds ON StringIds.id = %1\n").arg(QLatin1String(id));
            }
    }
    return QStringLiteral(
               "SELECT %1T.end - T.start AS duration, T.*\nFROM %2 AS T\n%3ORDER BY duration DESC\nLIMIT 100")
        .arg(what, name, join);
}

} // namespace

QueryWindow::QueryWindow(QWidget* parent)
    : QWidget(parent, Qt::Window), m_tables(new QTreeWidget(this)), m_statement(new QPlainTextEdit(this)),
      m_run(new QPushButton(tr("Run"), this)), m_stop(new QPushButton(tr("Stop"), this)),
      m_rows(new QTableWidget(this)), m_state(makeCaption({}, TextSize::Small, this))
{
    setWindowTitle(tr("SQL"));
    makePanel(this);
    m_worker.setMaxThreadCount(1);
    m_tables->setHeaderLabels({tr("table"), tr("rows")});
    m_tables->setAccessibleName(tr("Tables of the trace"));
    m_tables->setFrameShape(QFrame::NoFrame);
    m_tables->header()->setStretchLastSection(false);
    m_tables->header()->setSectionResizeMode(0, QHeaderView::Stretch);
    m_tables->header()->setSectionResizeMode(1, QHeaderView::ResizeToContents);
    m_tables->setToolTip(tr("Double-click a table for a first question, a column to insert its name"));
    connect(m_tables, &QTreeWidget::itemDoubleClicked, this, [this](QTreeWidgetItem* item) {
        if (item->parent())
            m_statement->insertPlainText(item->data(0, Qt::UserRole).toString());
        else
            m_statement->setPlainText(item->data(0, Qt::UserRole).toString());
        m_statement->setFocus();
    });
    m_tables->setExpandsOnDoubleClick(false);
    auto* splitter = new QSplitter(Qt::Horizontal, this);
    splitter->addWidget(m_tables);
    splitter->addWidget(buildQuestion());
    splitter->setStretchFactor(1, 1);
    splitter->setSizes({280, 720});
    splitter->setChildrenCollapsible(false);
    auto* layout = makeLayout<QVBoxLayout>(this, {12, 12, 12, 8});
    layout->addWidget(splitter, 1);
    layout->addWidget(m_state);
    m_state->setAccessibleName(tr("State"));
    connect(m_run, &QPushButton::clicked, this, &QueryWindow::run);
    connect(m_stop, &QPushButton::clicked, this, &QueryWindow::stop);
    connect(new QShortcut(QKeySequence::Close, this), &QShortcut::activated, this, &QWidget::close);
    resizeOnScreen(*this, {1040, 640});
}

/// Ctrl+Return runs the statement; a plain Return in its field starts a new line.
void QueryWindow::keyPressEvent(QKeyEvent* event)
{
    if (event->modifiers().testFlag(Qt::ControlModifier)
        && (event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter))
        run();
    else
        QWidget::keyPressEvent(event);
}

QueryWindow::~QueryWindow()
{
    ++m_request;
    m_worker.waitForDone();
}

QWidget* QueryWindow::buildQuestion()
{
    auto* side = new QWidget(this);
    m_statement->setAccessibleName(tr("Statement"));
    m_statement->setPlaceholderText(tr("SELECT …  (Ctrl+Return runs it)"));
    m_statement->setFont(Theme::numbers(TextSize::Normal));
    m_statement->setMaximumHeight(150);
    m_statement->setTabChangesFocus(true);
    m_run->setToolTip(tr("Run the statement (Ctrl+Return)"));
    m_stop->setEnabled(false);
    m_rows->setAccessibleName(tr("Answer"));
    m_rows->setEditTriggers(QAbstractItemView::NoEditTriggers);
    m_rows->setFrameShape(QFrame::NoFrame);
    m_rows->setFont(Theme::numbers(TextSize::Small));
    m_rows->verticalHeader()->setDefaultSectionSize(22);
    m_rows->verticalHeader()->hide();
    m_rows->setTabKeyNavigation(false);
    auto* buttons = new QHBoxLayout;
    buttons->addWidget(m_run);
    buttons->addWidget(m_stop);
    buttons->addStretch(1);
    auto* layout = makeLayout<QVBoxLayout>(side, {10, 0, 0, 0});
    layout->addWidget(m_statement);
    layout->addLayout(buttons);
    layout->addWidget(m_rows, 1);
    return side;
}

QString QueryWindow::state() const
{
    return m_state->text();
}

void QueryWindow::setTrace(const QString& path)
{
    if (path == m_path)
        return;
    stop();
    m_path = path;
    m_tables->clear();
    m_rows->setRowCount(0);
    m_rows->setColumnCount(0);
    setWindowTitle(tr("%1 – SQL").arg(QFileInfo(path).fileName()));
    try {
        for (const TableShape& table : schemaOf(path.toStdString())) {
            auto* item = new QTreeWidgetItem(m_tables, {QString::fromStdString(table.name),
                                                        QLocale(QLocale::English).toString(qlonglong(table.rows))});
            item->setTextAlignment(1, Qt::AlignRight | Qt::AlignVCenter);
            item->setData(0, Qt::UserRole, questionFor(table));
            for (const std::string& column : table.columns) {
                auto* child = new QTreeWidgetItem(item, {QString::fromStdString(column)});
                child->setData(0, Qt::UserRole, QString::fromStdString(column.substr(0, column.find(' '))));
            }
            if (m_statement->toPlainText().isEmpty() && table.rows > 0
                && (table.name == "RECORDS" || table.name == "CUPTI_ACTIVITY_KIND_KERNEL"))
                m_statement->setPlainText(questionFor(table));
        }
        m_state->setText(tr("Ctrl+Return runs the statement"));
    } catch (const Error& error) {
        m_state->setText(QString::fromUtf8(error.what()));
    }
}

void QueryWindow::run()
{
    const int request = ++m_request;
    m_run->setEnabled(false);
    m_stop->setEnabled(true);
    m_state->setText(tr("running …"));
    m_worker.start([this, request, path = m_path.toStdString(), sql = m_statement->toPlainText().toStdString()] {
        QElapsedTimer clock;
        clock.start();
        QueryResult result;
        QString why;
        try {
            WorkProgress progress;
            progress.report = [this, request](double) { return m_request == request; };
            result = queryTrace(path, sql, {.rows = rowsShown}, progress);
        } catch (const std::exception& error) {
            why = QString::fromUtf8(error.what());
        }
        QMetaObject::invokeMethod(
            this,
            [this, request, why, result = std::move(result), took = clock.elapsed()] {
                if (m_request != request)
                    return;
                m_run->setEnabled(true);
                m_stop->setEnabled(false);
                if (why.isEmpty())
                    fill(result, took);
                else
                    m_state->setText(why);
                Q_EMIT answered();
            },
            Qt::QueuedConnection);
    });
}

void QueryWindow::stop()
{
    if (!m_stop->isEnabled())
        return;
    ++m_request;
    m_run->setEnabled(true);
    m_stop->setEnabled(false);
    m_state->setText(tr("stopped"));
    Q_EMIT answered();
}

void QueryWindow::fill(const QueryResult& result, qint64 milliseconds)
{
    QStringList columns;
    for (const std::string& column : result.columns)
        columns << QString::fromStdString(column);
    m_rows->clear();
    m_rows->setColumnCount(static_cast<int>(columns.size()));
    m_rows->setHorizontalHeaderLabels(columns);
    for (int c = 0; c < m_rows->columnCount(); ++c) {
        const bool numbers = !result.rows.empty() && isNumber(result.rows[0][c]);
        m_rows->horizontalHeaderItem(c)->setTextAlignment((numbers ? Qt::AlignRight : Qt::AlignLeft)
                                                          | Qt::AlignVCenter);
    }
    m_rows->setRowCount(static_cast<int>(result.rows.size()));
    for (int r = 0; r < m_rows->rowCount(); ++r) {
        const auto& row = result.rows[r];
        for (int c = 0; c < m_rows->columnCount(); ++c) {
            const QueryValue& value = row[c];
            auto* item = new QTableWidgetItem(textOf(value));
            if (isNumber(value))
                item->setTextAlignment(Qt::AlignRight | Qt::AlignVCenter);
            m_rows->setItem(r, c, item);
        }
    }
    m_rows->horizontalHeader()->setResizeContentsPrecision(50);
    m_rows->resizeColumnsToContents();
    constexpr int widest = 360; // kernel names would hide the other columns
    for (int c = 0; c < m_rows->columnCount(); ++c)
        m_rows->setColumnWidth(c, std::min(widest, m_rows->columnWidth(c)));
    m_state->setText(result.cut ? tr("the first %1 rows, %2\u00a0ms; a LIMIT or a narrower question shows others")
                                      .arg(result.rows.size())
                                      .arg(milliseconds)
                                : tr("%1 rows, %2\u00a0ms").arg(result.rows.size()).arg(milliseconds));
}

} // namespace pipewright

#include "moc_querywindow.cpp"
