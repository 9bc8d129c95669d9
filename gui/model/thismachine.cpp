// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/model/thismachine.h"

#include "core/base/diagnostic.h"
#include "gui/widgets/labels.h"

#include <QHBoxLayout>
#include <QLabel>
#include <QPushButton>

namespace pipewright {

ThisMachine::ThisMachine(std::function<int()> devices, QWidget* parent)
    : QWidget(parent), m_devices(std::move(devices)), m_button(new QPushButton(tr("This machine"), this)),
      m_state(makeCaption({}, TextSize::Small, this))
{
    m_button->setAutoDefault(false);
    m_button->setToolTip(tr("Measures a thread of this machine for every device: products, copies, and messages "
                            "between each two; the design then takes them. No GPU is measured"));
    m_state->setAccessibleName(tr("Measuring"));
    auto* layout = new QHBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(10);
    layout->addWidget(m_button);
    layout->addWidget(m_state, 1);
    connect(m_button, &QPushButton::clicked, this, [this] {
        if (m_running)
            m_cancel = true;
        else
            begin();
    });
}

ThisMachine::~ThisMachine()
{
    m_cancel = true;
    m_worker.waitForDone();
}

QString ThisMachine::state() const
{
    return m_state->text();
}

void ThisMachine::begin()
{
    m_running = true;
    m_cancel = false;
    m_button->setText(tr("Stop"));
    const auto here = [this](auto work) { QMetaObject::invokeMethod(this, std::move(work), Qt::QueuedConnection); };
    m_worker.start([this, here, options = m_options, devices = m_devices()]() mutable {
        options.cancel = &m_cancel;
        options.progress = [this, here](double fraction, const std::string& what) {
            here([this, text = tr("%1 %: %2").arg(qRound(100 * fraction)).arg(QString::fromStdString(what))] {
                m_state->setText(text);
            });
        };
        try {
            const std::unique_ptr<Backend> machine = thisMachine(devices);
            here([this, cluster = clusterOf(measureMachine(*machine, options), "this machine")] {
                end();
                m_state->setText(tr("measured"));
                Q_EMIT measured(cluster);
            });
        } catch (const std::exception& error) {
            here([this, why = QString::fromUtf8(error.what())] {
                end();
                m_state->setText(why);
                Q_EMIT stopped(why);
            });
        }
    });
}

void ThisMachine::end()
{
    m_running = false;
    m_button->setText(tr("This machine"));
}

} // namespace pipewright

#include "moc_thismachine.cpp"
