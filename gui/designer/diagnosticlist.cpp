// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/designer/diagnosticlist.h"

#include "gui/widgets/closingrow.h"
#include "gui/widgets/labels.h"
#include "gui/widgets/words.h"

#include <QEvent>
#include <QLabel>
#include <QListWidget>
#include <QPushButton>
#include <QRegularExpression>
#include <QVBoxLayout>

namespace pipewright {

std::optional<Block> blockNamedIn(const Diagnostic& diagnostic)
{
    static const QRegularExpression pattern = [] {
        QString letters;
        for (const Op op : allOps)
            letters += QLatin1Char(letter(op));
        return QRegularExpression(QStringLiteral("\\b[%1]\\d+\\.\\d+(/\\d+)?").arg(letters));
    }();
    for (const std::string* text : {&diagnostic.where, &diagnostic.what, &diagnostic.hint}) {
        const auto match = pattern.match(QString::fromStdString(*text));
        if (match.hasMatch())
            return parseBlock(match.captured().toStdString());
    }
    return std::nullopt;
}

DiagnosticList::DiagnosticList(Document& document, QWidget* parent)
    : QDialog(parent), m_document(document), m_summary(new QLabel(this)), m_list(new QListWidget(this))
{
    setWindowTitle(tr("Conflicts"));
    makePanel(this);
    m_list->setAccessibleName(tr("Conflicts"));
    m_list->setWordWrap(true);
    m_list->setFrameShape(QFrame::NoFrame);
    m_list->setSpacing(4);
    m_list->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    m_summary->setFont(Theme::words(TextSize::Large, QFont::DemiBold));
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(24, 20, 24, 20);
    layout->setSpacing(12);
    layout->addWidget(m_summary);
    layout->addWidget(m_list, 1);
    layout->addLayout(makeClosingRow(*this));
    connect(&m_document, &Document::designChanged, this, &DiagnosticList::refresh);
    connect(m_list, &QListWidget::currentRowChanged, this, [this](int row) {
        if (row < 0 || row >= static_cast<int>(m_document.diagnostics().size()))
            return;
        if (const auto block = blockNamedIn(m_document.diagnostics()[row]))
            m_document.select(block);
    });
    refresh();
    resize(560, 320);
}

void DiagnosticList::refresh()
{
    const Diagnostics& diagnostics = m_document.diagnostics();
    m_summary->setText(diagnostics.empty()       ? tr("✓ Nothing stands in the way of running this schedule")
                       : diagnostics.size() == 1 ? tr("One thing to look at")
                                                 : tr("%1 things to look at").arg(diagnostics.size()));
    const QSignalBlocker quiet(m_list);
    m_list->clear();
    const Theme& theme = Theme::of(*this);
    for (const Diagnostic& diagnostic : diagnostics) {
        auto* item = new QListWidgetItem(proseText(diagnostic), m_list);
        if (diagnostic.severity == Severity::Error)
            item->setForeground(theme.bad);
    }
}

void DiagnosticList::changeEvent(QEvent* event)
{
    QDialog::changeEvent(event);
    if (event->type() == QEvent::PaletteChange)
        refresh();
}

} // namespace pipewright

#include "moc_diagnosticlist.cpp"
