// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/widgets/copying.h"

#include <QAbstractItemView>
#include <QAction>
#include <QClipboard>
#include <QCoreApplication>
#include <QGuiApplication>
#include <QHeaderView>
#include <QTableView>
#include <QTreeView>

#include <vector>

namespace pipewright {

namespace {

QString cellText(QString text, CopyAs as)
{
    text.replace(QChar(0x00A0), QLatin1Char(' ')); // a unit's space is a plain one elsewhere
    if (as == CopyAs::Tabs)
        return text.replace(QLatin1Char('\t'), QLatin1Char(' ')).replace(QLatin1Char('\n'), QLatin1Char(' '));
    if (!text.contains(QLatin1Char(',')) && !text.contains(QLatin1Char('"')) && !text.contains(QLatin1Char('\n')))
        return text;
    return QLatin1Char('"') + text.replace(QLatin1Char('"'), QLatin1String("\"\"")) + QLatin1Char('"');
}

const QHeaderView* headerOf(const QAbstractItemView& view)
{
    if (const auto* table = qobject_cast<const QTableView*>(&view))
        return table->horizontalHeader();
    const auto* tree = qobject_cast<const QTreeView*>(&view);
    return tree ? tree->header() : nullptr;
}

class Writer {
public:
    Writer(const QAbstractItemView& view, CopyAs as, bool chosen) : m_view(view), m_model(*view.model()), m_as(as)
    {
        m_chosen = chosen && view.selectionModel() && view.selectionModel()->hasSelection();
        const QHeaderView* const header = headerOf(view);
        for (int i = 0; i < m_model.columnCount(); ++i) {
            const int column = header ? header->logicalIndex(i) : i;
            if (!header || !header->isSectionHidden(column))
                m_columns.push_back(column);
        }
    }
    QString write()
    {
        const auto* table = qobject_cast<const QTableView*>(&m_view);
        m_names = table && !table->verticalHeader()->isHidden();
        QStringList headings;
        if (m_names)
            headings << QString();
        for (const int column : m_columns)
            headings << m_model.headerData(column, Qt::Horizontal).toString();
        writeLine(headings);
        writeRows({});
        return m_text;
    }

private:
    void writeLine(const QStringList& cells)
    {
        QStringList written;
        for (const QString& cell : cells)
            written << cellText(cell, m_as);
        m_text += written.join(m_as == CopyAs::Tabs ? QLatin1Char('\t') : QLatin1Char(','))
                  + (m_as == CopyAs::Tabs ? QLatin1String("\n") : QLatin1String("\r\n"));
    }
    void writeRows(const QModelIndex& parent)
    {
        for (int row = 0; row < m_model.rowCount(parent); ++row) {
            if (!m_chosen || m_view.selectionModel()->rowIntersectsSelection(row, parent)) {
                QStringList cells;
                if (m_names)
                    cells << m_model.headerData(row, Qt::Vertical).toString();
                for (const int column : m_columns)
                    cells << m_model.index(row, column, parent).data().toString();
                writeLine(cells);
            }
            writeRows(m_model.index(row, 0, parent));
        }
    }

    const QAbstractItemView& m_view;
    const QAbstractItemModel& m_model;
    CopyAs m_as;
    bool m_chosen;
    bool m_names = false; ///< rows have headings of their own
    std::vector<int> m_columns;
    QString m_text;
};

} // namespace

QString copyOf(const QAbstractItemView& view, CopyAs as, bool chosen)
{
    return Writer(view, as, chosen).write();
}

void makeCopyable(QAbstractItemView& view)
{
    const auto add = [&view](const char* name, CopyAs as, bool chosen) {
        auto* action = new QAction(QCoreApplication::translate("Copying", name), &view);
        action->setShortcutContext(Qt::WidgetShortcut);
        QObject::connect(action, &QAction::triggered, &view,
                         [&view, as, chosen] { QGuiApplication::clipboard()->setText(copyOf(view, as, chosen)); });
        view.addAction(action);
        return action;
    };
    add(QT_TRANSLATE_NOOP("Copying", "Copy"), CopyAs::Tabs, true)->setShortcut(QKeySequence::Copy);
    add(QT_TRANSLATE_NOOP("Copying", "Copy the table as CSV"), CopyAs::Csv, false);
    view.setContextMenuPolicy(Qt::ActionsContextMenu);
}

} // namespace pipewright
