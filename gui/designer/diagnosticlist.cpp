// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/designer/diagnosticlist.h"

#include "gui/widgets/closingrow.h"
#include "gui/widgets/labels.h"
#include "gui/widgets/layouts.h"
#include "gui/widgets/themechange.h"
#include "gui/widgets/words.h"

#include <QLabel>
#include <QListWidget>
#include <QPushButton>
#include <QRegularExpression>

namespace pipewright {

namespace {

QString nameOf(const MemoryRemedy& remedy)
{
    QString name = QString::fromStdString(remedy.name);
    name[0] = name[0].toUpper();
    return name;
}

} // namespace

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

DiagnosticList::DiagnosticList(Document& document, Findings& findings, QWidget* parent)
    : QDialog(parent), m_document(document), m_findings(findings), m_summary(new QLabel(this)),
      m_list(new QListWidget(this)), m_remedyHeading(makeCaption({}, TextSize::Normal, this)),
      m_remedies(new QVBoxLayout)
{
    onThemeChange(this, [this] { refresh(); });
    setWindowTitle(tr("Conflicts"));
    makePanel(this);
    m_list->setAccessibleName(tr("Conflicts"));
    m_list->setWordWrap(true);
    m_list->setFrameShape(QFrame::NoFrame);
    m_list->setSpacing(4);
    m_list->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    m_summary->setFont(Theme::words(TextSize::Large, QFont::DemiBold));
    auto* layout = makeLayout<QVBoxLayout>(this, {24, 20, 24, 20}, 12);
    layout->addWidget(m_summary);
    layout->addWidget(m_list, 1);
    m_remedyHeading->setWordWrap(true);
    m_remedies->setSpacing(6);
    layout->addWidget(m_remedyHeading);
    layout->addLayout(m_remedies);
    layout->addLayout(makeClosingRow(*this));
    connect(&m_findings, &Findings::changed, this, &DiagnosticList::refresh);
    connect(&m_findings, &Findings::remediesChanged, this, &DiagnosticList::showRemedies);
    connect(m_list, &QListWidget::currentRowChanged, this, [this](int row) {
        if (row < 0 || row >= static_cast<int>(m_findings.all().size()))
            return;
        if (const auto block = blockNamedIn(m_findings.all()[row]))
            m_document.select(block);
    });
    refresh();
    m_list->setMinimumHeight(160);
    resize(640, 460);
}

void DiagnosticList::refresh()
{
    const Diagnostics& diagnostics = m_findings.all();
    m_summary->setText(!m_findings.isKnown()     ? tr("Dependencies, deadlock and memory are being checked")
                       : diagnostics.empty()     ? tr("✓ Nothing stands in the way of running this schedule")
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
    showRemedies();
}

/// Only a window that is looked at has them worked out.
void DiagnosticList::showRemedies()
{
    for (QPushButton* button : m_buttons) {
        button->hide();
        button->deleteLater(); // it may be the one that was pressed
    }
    m_buttons.clear();
    const bool isOver = m_findings.overMemory() > 0;
    m_remedyHeading->setVisible(isOver);
    if (!isOver || !isVisible())
        return;
    const std::vector<MemoryRemedy>& remedies = m_findings.remedies();
    m_remedyHeading->setText(!m_findings.areRemediesKnown() ? tr("Looking for changes that make it fit…")
                             : remedies.empty() ? tr("No change of recomputation, offload or family makes it fit: use "
                                                     "more devices, smaller microbatches or a smaller model")
                                                : tr("It fits after one of these; undo takes it back"));
    const Nanoseconds now = m_document.prediction() ? m_document.prediction()->metrics.makespan : 0;
    Bytes largest = 0;
    for (const MemoryRemedy& remedy : remedies)
        largest = std::max(largest, remedy.peak);
    for (std::size_t i = 0; i < remedies.size(); ++i) {
        const double change = now > 0 ? double(remedies[i].makespan - now) / double(now) : 0;
        auto* button =
            new QPushButton(tr("%1: step %2, peak %3")
                                .arg(nameOf(remedies[i]), signedPercent(change), sizeAmong(remedies[i].peak, largest)),
                            this);
        button->setAutoDefault(false);
        connect(button, &QPushButton::clicked, this, [this, i] {
            const MemoryRemedy taken = m_findings.remedies().at(i); // the list goes with the design
            m_document.replaceDesign(taken.design, nameOf(taken));
        });
        m_remedies->addWidget(button);
        m_buttons.push_back(button);
    }
}

void DiagnosticList::showEvent(QShowEvent* event)
{
    QDialog::showEvent(event);
    showRemedies();
}

} // namespace pipewright

#include "moc_diagnosticlist.cpp"
