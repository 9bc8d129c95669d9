// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/model/thismachine.h"

#include "core/base/diagnostic.h"
#include "core/json/jsonvalue.h"
#include "core/presets/clusterfile.h"
#include "gui/widgets/labels.h"
#include "gui/widgets/layouts.h"
#include "gui/widgets/words.h"

#include <QComboBox>
#include <QPushButton>
#include <QStandardItemModel>

namespace pipewright {

namespace {

const QString threads = QStringLiteral("host"), gpus = QStringLiteral("cuda");

} // namespace

ThisMachine::ThisMachine(std::function<int()> devices, QWidget* parent)
    : QWidget(parent), m_devices(std::move(devices)), m_choice(new QComboBox(this)),
      m_button(new QPushButton(tr("Measure this machine"), this)), m_state(makeCaption({}, TextSize::Small, this))
{
    m_choice->setAccessibleName(tr("What is measured"));
    m_choice->addItem(tr("its CPU's threads"), threads);
    m_choice->addItem(tr("its GPUs"), gpus);
    qobject_cast<QStandardItemModel*>(m_choice->model())->item(1)->setEnabled(false); // until it is known
    m_button->setAutoDefault(false);
    m_button->setToolTip(tr("Measures a thread, or a GPU or a slice of one, for every device: products, copies, and "
                            "messages between each two; the design then takes them"));
    m_state->setAccessibleName(tr("Measuring"));
    m_state->setWordWrap(true);
    auto* layout = makeLayout<QHBoxLayout>(this, {0, 0, 0, 0}, 10);
    layout->addWidget(m_button);
    layout->addWidget(m_choice);
    layout->addWidget(m_state, 1);
    connect(m_button, &QPushButton::clicked, this, [this] {
        if (m_child.isRunning())
            m_child.cancel();
        else
            begin();
    });
    connect(&m_query, &BackendQuery::ready, this, &ThisMachine::offer);
    connect(&m_child, &ChildProcess::line, this, &ThisMachine::takeLine);
    connect(&m_child, &ChildProcess::ended, this, &ThisMachine::end);
}

QString ThisMachine::state() const
{
    return m_state->text();
}

void ThisMachine::showEvent(QShowEvent* event)
{
    QWidget::showEvent(event);
    m_query.start(m_program, {});
}

void ThisMachine::offer(const std::vector<BackendChoice>& backends)
{
    for (const BackendChoice& backend : backends) {
        const int row = m_choice->findData(backend.name);
        if (row < 0)
            continue;
        qobject_cast<QStandardItemModel*>(m_choice->model())->item(row)->setEnabled(backend.available);
        m_choice->setItemData(row, backend.description, Qt::ToolTipRole);
        if (!backend.available) {
            m_choice->setItemText(row, tr("its GPUs (off)"));
            m_state->setText(tr("GPUs cannot be measured: %1").arg(backend.description));
        }
    }
}

void ThisMachine::begin()
{
    m_lastMessage.clear();
    m_button->setText(tr("Stop"));
    m_choice->setEnabled(false);
    m_state->setText(tr("measuring …"));
    m_child.start(m_program, {QStringLiteral("devices"), QStringLiteral("--measure"), QStringLiteral("--backend"),
                              m_choice->currentData().toString(), QStringLiteral("--devices"),
                              QString::number(m_devices()), QStringLiteral("--progress"), QStringLiteral("json"),
                              QStringLiteral("--json"), QStringLiteral("--force"), QStringLiteral("-o"),
                              m_folder.filePath(QStringLiteral("this machine.json"))}); // the cluster's name
}

void ThisMachine::takeLine(const QByteArray& line)
{
    const JsonValue json = JsonValue::fromText(line.toStdString());
    if (const auto fraction = json.member("fraction").number())
        m_state->setText(tr("%1 %: %2")
                             .arg(qRound(100 * *fraction))
                             .arg(QString::fromStdString(json.member("what").text().value_or(std::string()))));
    else
        m_lastMessage = proseText(QString::fromUtf8(line));
}

void ThisMachine::end(const ChildEnd& child)
{
    m_button->setText(tr("Measure this machine"));
    m_choice->setEnabled(true);
    QString why;
    if (child.cancelled)
        why = tr("cancelled");
    else if (child.kind == ChildEnd::NotStarted)
        why = tr("The measurement could not be started: %1").arg(child.whyNot);
    else if (child.kind == ChildEnd::Crashed)
        why = tr("The measurement ended unexpectedly (signal %1). The designer is not affected.").arg(child.code);
    else if (child.code != 0)
        why = m_lastMessage.isEmpty() ? tr("The measurement failed (exit code %1).").arg(child.code) : m_lastMessage;
    else
        try {
            const Cluster cluster =
                readClusterFile(m_folder.filePath(QStringLiteral("this machine.json")).toStdString());
            m_state->setText(tr("measured"));
            Q_EMIT measured(cluster);
            return;
        } catch (const Error& error) {
            why = proseText(error);
        }
    m_state->setText(why);
    Q_EMIT stopped(why);
}

} // namespace pipewright

#include "moc_thismachine.cpp"
