// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/dock/dock.h"

#include "gui/widgets/labels.h"
#include "gui/widgets/layouts.h"

#include <QEvent>
#include <QSettings>
#include <QTabBar>

namespace pipewright {

namespace {

const QString pageKey = QStringLiteral("dock/page");
constexpr int leastPage = 60;

/// Shows a caption while its content is hidden.
class PageWith : public QWidget {
public:
    PageWith(QWidget* content, const QString& nothing, QWidget* parent)
        : QWidget(parent), m_content(content), m_nothing(makeCaption(nothing, TextSize::Normal, this))
    {
        m_nothing->setWordWrap(true);
        m_nothing->setAlignment(Qt::AlignLeft | Qt::AlignTop);
        auto* layout = makeLayout<QVBoxLayout>(this, {18, 8, 12, 8}, 0);
        layout->addWidget(m_nothing);
        layout->addWidget(m_content, 1);
        m_content->installEventFilter(this);
        m_nothing->setVisible(m_content->isHidden());
    }

protected:
    bool eventFilter(QObject* watched, QEvent* event) override
    {
        // Of the content itself, not of the page it stands on.
        if (event->type() == QEvent::ShowToParent || event->type() == QEvent::HideToParent)
            m_nothing->setVisible(m_content->isHidden());
        return QWidget::eventFilter(watched, event);
    }

private:
    QWidget* m_content;
    QLabel* m_nothing;
};

} // namespace

Dock::Dock(QSettings& settings, QWidget* parent) : QTabWidget(parent), m_settings(settings)
{
    setDocumentMode(true);
    setAccessibleName(tr("Dock"));
    tabBar()->setUsesScrollButtons(true);
    tabBar()->setExpanding(false);
    makePanel(this);
    setStyleSheet(QStringLiteral("QTabWidget::tab-bar { left: 18px; }")); // where the lanes' names begin
}

void Dock::addPage(const QString& key, const QString& title, QWidget* page)
{
    page->setMinimumHeight(leastPage);
    page->setObjectName(key);
    makePanel(page);
    addTab(page, title);
}

void Dock::showPage(const QString& key)
{
    for (int i = 0; i < count(); ++i)
        if (widget(i)->objectName() == key)
            setCurrentIndex(i);
}

void Dock::restorePage()
{
    showPage(m_settings.value(pageKey).toString());
    connect(this, &QTabWidget::currentChanged, this,
            [this] { m_settings.setValue(pageKey, currentWidget()->objectName()); });
}

QSize Dock::minimumSizeHint() const
{
    return {200, tabBar()->sizeHint().height() + leastPage};
}

QWidget* makePageWith(QWidget* content, const QString& nothing, QWidget* parent)
{
    return new PageWith(content, nothing, parent);
}

QWidget* makeTablePage(QWidget* table, QWidget* parent)
{
    auto* page = new QWidget(parent);
    makeLayout<QVBoxLayout>(page, {18, 4, 12, 4}, 0)->addWidget(table);
    return page;
}

} // namespace pipewright

#include "moc_dock.cpp"
