// SPDX-License-Identifier: GPL-3.0-or-later
// Compares schedules: lanes on one time axis, and a table of differences. The current schedule comes first and follows
// the document; others are the opened state, kept states, other families and files. Any can become the schedule in one
// undo step. Schedules are made or read in a background thread. As a part of another window it leaves out what that has
// no room for, the table last.
#pragma once

#include "gui/document/document.h"

#include <QDialog>
#include <QThreadPool>

#include <functional>
#include <memory>

class QLabel;
class QMenu;
class QPushButton;
class QSplitter;
class QTableWidget;

namespace pipewright {

class CompareLanes;
class NoiseFields;

class CompareWindow : public QDialog {
    Q_OBJECT

public:
    explicit CompareWindow(Document& document, QWidget* parent = nullptr);
    ~CompareWindow() override;

    /// The state "before the edits": the design that was opened or created last.
    void setOpened(Design design);
    void addKept(); ///< the present state, as it is now
    void addOpened();
    void addFamily(std::size_t family);
    void addFile(const QString& path);
    void removeCurrent(); ///< not for the current schedule
    void takeCurrent();   ///< makes it the document's schedule

    /// A schedule compared with the present one. Its pointers are valid until a schedule is added or removed.
    struct Other {
        QString name;
        const Design* design;
        const Prediction* prediction;
    };
    std::vector<Other> others() const; ///< only those that are ready and can run

    int count() const { return static_cast<int>(m_entries.size()); }
    bool isBusy() const { return m_pending > 0; }
    CompareLanes& lanes() { return *m_lanes; }
    QTableWidget* table() const { return m_table; }
    QPushButton* takeButton() const { return m_take; }
    QPushButton* removeButton() const { return m_remove; }
    NoiseFields& noise() { return *m_noise; }
    QMenu* addMenu() const { return m_addMenu; }
    QWidget* offers() const { return m_offers; }

Q_SIGNALS:
    void changed();      ///< the shown schedules changed
    void windowWanted(); ///< it is a part of another window and should have its own

public Q_SLOTS:
    void reject() override; ///< closes the window; as a part of another it stays

protected:
    void showEvent(QShowEvent* event) override;
    void resizeEvent(QResizeEvent* event) override;

private:
    struct Entry {
        QString name;
        QString note; ///< shown while there is no prediction
        Design design;
        std::shared_ptr<const Prediction> prediction;
        int id = 0;
    };
    void buildAddMenu();
    void followDocument();
    void add(const QString& name, std::function<Design()> make);
    void settle(int id, Entry made);
    void refresh();
    void fillTable();
    void shareHeight();
    void fitInto(); ///< its window, or its place in another one
    void buildOffers();
    QString uniqueName(const QString& wanted) const;
    int current() const;

    Document& m_document;
    std::optional<Design> m_opened;
    std::vector<Entry> m_entries; ///< the first is the document's
    int m_lastId = 0;
    int m_pending = 0;
    CompareLanes* m_lanes;
    QTableWidget* m_table;
    NoiseFields* m_noise;
    QSplitter* m_splitter;
    int m_laidOut = 0;          ///< number of schedules at the last automatic split
    bool m_borderIsOwn = false; ///< the user has dragged the splitter since then
    QLabel* m_hint;
    QWidget* m_offers; ///< well-known families to compare with
    QMenu* m_addMenu;
    QPushButton* m_take;
    QPushButton* m_remove;
    QWidget* m_underNoise; ///< the noise with its caption
    QWidget* m_closing;    ///< the row at the bottom of a window
    QPushButton* m_own;    ///< "In a window"
    QThreadPool m_worker;
};

} // namespace pipewright
