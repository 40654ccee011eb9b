/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (C) 2026 The slurm-ocs authors */

#ifndef OCS_UTIL_SVG_H
#define OCS_UTIL_SVG_H

/* The ground of a picture with curves and bars, and its colours where the reader wants them dark: those of
 * ocsctl report.  Light ones are attributes of the elements, which viewers without style sheets know, too.
 * Classes: axis and line (strokes), gap (a stroke in the colour of the ground), free (what nothing has),
 * deep and use (fills that would be too dark on a dark ground). */
#define OCS_SVG_GROUND                                                                   \
	"<style>@media(prefers-color-scheme:dark){.back{fill:#14171a}text{fill:#e6e8ea}" \
	".axis{stroke:#98a2ad}.line{stroke:#333a41}.gap{stroke:#14171a}"                 \
	".free{fill:#2a3037}.deep{fill:#8ab4de}.use{fill:#f0927c}}</style>\n"            \
	"<rect class=\"back\" width=\"100%\" height=\"100%\" fill=\"white\"/>\n"

#endif
