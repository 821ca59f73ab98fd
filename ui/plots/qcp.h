// SPDX-License-Identifier: GPL-3.0-or-later
// QCustomPlot's header uses the keywords that the studio is built without; they exist only while it is read.
#pragma once

#include <QObject>

#define signals Q_SIGNALS
#define foreach(variable, container) for (variable : container)
#include <qcustomplot.h>
#undef foreach
#undef signals
